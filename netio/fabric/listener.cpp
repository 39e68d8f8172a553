// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/listener.hpp"

#include "netio/fabric/provider.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace netio::fabric {
namespace {

// Descriptors kept back from new peers, so that those we have can be served and closed.
constexpr rlim_t descriptor_reserve = 32;
// Wake-ups without an event after which we look whether descriptors have run out: the provider
// then cannot accept, and its listening socket stays readable.
constexpr std::size_t idle_drain_limit = 256;

bool descriptors_are_short() {
    const int lowest_free = ::eventfd(0, EFD_CLOEXEC);
    if (lowest_free < 0) return true;
    ::close(lowest_free);
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    return static_cast<rlim_t>(lowest_free) + descriptor_reserve > limit.rlim_cur;
}

} // namespace

// A request while its handler looks at it. The handler may destroy the listener meanwhile.
class Listener::Request final : public ConnectionRequest {
  public:
    Request(Listener& listener, Info info, std::span<const std::byte> data)
        : listener_{&listener}, fabric_{listener.fabric_}, endpoint_{*listener.endpoint_},
          info_{std::move(info)}, data_{data} {
        listener.pending_ = this;
    }
    ~Request() {
        if (listener_ == nullptr) return;
        if (info_) reject({});
        listener_->pending_ = nullptr;
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    std::span<const std::byte> data() const noexcept override { return data_; }

    std::string peer_address() const override {
        return info_ && info_->dest_addr != nullptr ? to_string(to_address(info_->dest_addr))
                                                    : "unknown peer";
    }

    std::unique_ptr<netio::Connection>
    make_connection(const QueueLimits& limits, netio::Connection::Handler& handler) override {
        NETIO_CHECK_MSG(info_ != nullptr, "this request was answered already");
        if (descriptors_are_short()) {
            throw FabricError{{EMFILE, std::system_category()},
                              "no descriptors are left for another connection; raise the limit "
                              "(ulimit -n, or LimitNOFILE= of a systemd unit)"};
        }
        Domain& domain = fabric_.domain_for(*info_);
        // Should this throw, the request is still there to be rejected, so that the peer is told.
        EndpointHandle endpoint = open_endpoint(domain, *info_, limits);
        // Now the endpoint has the connection: closing it is what the peer hears of, and all that a
        // rejection does is to free the request.
        ::fid_t const handle = info_->handle;
        try {
            return std::make_unique<Connection>(domain, std::move(info_), std::move(endpoint), true,
                                                limits, handler);
        } catch (const FabricError&) {
            ::fi_reject(&endpoint_, handle, nullptr, 0);
            throw;
        }
    }

    void reject(std::span<const std::byte> data) override {
        NETIO_CHECK_MSG(info_ != nullptr, "this request was answered already");
        NETIO_CHECK(data.size() <= connection_data_limit);
        // Failure means that the peer is gone, which is what we want of it.
        ::fi_reject(&endpoint_, info_->handle, data.data(), data.size());
        info_.reset();
    }

    netio::MemoryDomain& domain() override {
        NETIO_CHECK_MSG(info_ != nullptr, "this request was answered already");
        return fabric_.domain_for(*info_);
    }

    bool is_answered() const noexcept override { return info_ == nullptr; }

    // The listener goes, and with it the endpoint to reject with.
    void abandon() {
        if (info_) reject({});
        listener_ = nullptr;
    }
    bool is_abandoned() const noexcept { return listener_ == nullptr; }

  private:
    Listener* listener_;
    Fabric& fabric_;
    ::fid_pep& endpoint_;
    Info info_;
    std::span<const std::byte> data_;
};

Listener::Listener(EventLoop& loop, const FabricOptions& options, Fabric& fabric, Info info,
                   const Address& requested, Handler& handler)
    : loop_{loop}, options_{options}, fabric_{fabric}, info_{std::move(info)}, handler_{handler},
      provider_{info_->fabric_attr->prov_name}, events_{open_event_queue(fabric.handle(),
                                                                         wait_fd_)},
      stranger_timer_{loop, [this] { look_for_strangers(); }} {
    const std::string what = "cannot listen at " + to_string(requested) + " (" + provider_ + ")";
    ::fid_pep* endpoint = nullptr;
    require(::fi_passive_ep(&fabric.handle(), info_.get(), &endpoint, nullptr), what);
    endpoint_.reset(endpoint);
    require(::fi_pep_bind(endpoint, &events_->fid, 0), what);
    require(::fi_listen(endpoint), what);
    sockaddr_storage name{};
    std::size_t size = sizeof name;
    require(::fi_getname(&endpoint->fid, &name, &size), what);
    address_ = to_address(&name);
    if (TcpSockets* const sockets = fabric.sockets()) {
        const int fd = sockets->find_listener(address_);
        if (fd < 0) {
            throw FabricError{{ENOENT, std::system_category()},
                              what + ": the provider's listening socket cannot be found"};
        }
        TcpSockets::limit_receive_time(fd, options_.half_handshake_timeout);
    }
    loop_.add(*this);
}

Listener::~Listener() {
    if (pending_ != nullptr) pending_->abandon();
    loop_.remove(*this);
}

std::size_t Listener::drain(std::size_t budget) {
    // Somebody is at the door, whoever it is.
    if (fabric_.sockets() != nullptr && !stranger_timer_.armed()) {
        stranger_timer_.start(options_.stranger_timeout);
    }
    std::size_t work = 0;
    while (work < budget) {
        const auto result = reader_.read(*events_);
        if (result == CmReader::Result::nothing) break;
        ++work;
        // An error here is a peer that went away during its handshake: its own affair.
        if (result == CmReader::Result::event && reader_.event().type == FI_CONNREQ) {
            if (!handle_request(reader_.event())) return work;
        }
    }
    idle_drains_ = work > 0 ? 0 : idle_drains_ + 1;
    if (idle_drains_ >= idle_drain_limit) {
        idle_drains_ = 0;
        if (descriptors_are_short()) look_for_strangers();
    }
    return work;
}

bool Listener::may_sleep() {
    ::fid* handle = &events_->fid;
    return ::fi_trywait(&fabric_.handle(), &handle, 1) == 0;
}

bool Listener::handle_request(const CmEvent& event) {
    Request request{*this, Info{event.info}, event.data};
    if (fabric_.sockets() != nullptr) known_peers_.insert(request.peer_address());
    handler_.on_request(request);
    return !request.is_abandoned();
}

void Listener::look_for_strangers() {
    TcpSockets* const sockets = fabric_.sockets();
    if (sockets == nullptr) return;
    std::set<std::string> known;
    std::set<std::string> suspects;
    sockets->for_each_peer(address_.port, [&](const std::string& peer, int fd) {
        if (known_peers_.contains(peer)) {
            known.insert(peer);
        } else if (suspects_.contains(peer)) {
            TcpSockets::cut_off(fd);
        } else {
            suspects.insert(peer);
        }
    });
    known_peers_ = std::move(known);
    suspects_ = std::move(suspects);
    if (!suspects_.empty()) stranger_timer_.start(options_.stranger_timeout);
}

} // namespace netio::fabric
