// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/listener.hpp"

#include "netio/access/host.hpp"
#include "netio/base/observer.hpp"
#include "netio/fabric/addresses.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/provider.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace netio::fabric {

using access::machine_of;

// --- the pending peers ----------------------------------------------------------------------

void PendingHandshakes::enter(const PendingPeer& pending) {
    forget(pending.fd);
    pending_.emplace(pending.fd, Entry{.peer = pending.peer, .number = next_number_});
    machines_[machine_of(pending.peer.host)].silent.emplace(next_number_++, pending.fd);
}

std::optional<PendingHandshakes::Excess>
PendingHandshakes::excess(const access::AuthAddress& peer) const {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return std::nullopt;
    const auto& [silent, requested] = machine->second;
    const bool too_many_requested = requested.size() > requested_factor * limit_;
    if (silent.size() <= limit_ && !too_many_requested) return std::nullopt;
    const int fd = (too_many_requested ? requested : silent).begin()->second;
    return Excess{.pending = {.fd = fd, .peer = pending_.at(fd).peer},
                  .has_requested = too_many_requested};
}

void PendingHandshakes::mark_requested(int fd) {
    const auto entry = pending_.find(fd);
    if (entry == pending_.end() || std::exchange(entry->second.has_requested, true)) return;
    Machine& machine = machines_.at(machine_of(entry->second.peer.host));
    machine.silent.erase(entry->second.number);
    machine.requested.emplace(entry->second.number, fd);
}

void PendingHandshakes::forget(int fd) {
    if (const auto entry = pending_.find(fd); entry != pending_.end()) forget(entry);
}

int PendingHandshakes::leave(const access::AuthAddress& peer) {
    const auto machine = machines_.find(machine_of(peer.host));
    if (machine == machines_.end()) return -1;
    for (const Queue* const queue : {&machine->second.requested, &machine->second.silent}) {
        for (const auto& [number, fd] : *queue) {
            const auto found = pending_.find(fd);
            if (found->second.peer != peer) continue;
            const int result = fd;
            forget(found);
            return result;
        }
    }
    return -1;
}

bool PendingHandshakes::knows(const PendingPeer& pending) const {
    const auto found = pending_.find(pending.fd);
    return found != pending_.end() && found->second.peer == pending.peer;
}

void PendingHandshakes::keep(const std::map<int, access::AuthAddress>& present) {
    for (auto entry = pending_.begin(); entry != pending_.end();) {
        const auto there = present.find(entry->first);
        const bool gone = there == present.end() || there->second != entry->second.peer;
        const auto judged = entry++;
        if (gone) forget(judged);
    }
}

void PendingHandshakes::forget(Entries::iterator entry) {
    const auto machine = machines_.find(machine_of(entry->second.peer.host));
    auto& [silent, requested] = machine->second;
    (entry->second.has_requested ? requested : silent).erase(entry->second.number);
    if (silent.empty() && requested.empty()) machines_.erase(machine);
    pending_.erase(entry);
}

// --- the guard ------------------------------------------------------------------------------

HandshakeGuard::HandshakeGuard(EventLoop& loop, const access::AuthAddress& address,
                               const Limits& limits)
    : loop_{loop}, pending_per_host_{limits.pending_per_host}, socket_{address,
                                                                       limits.half_handshake},
      timeout_{limits.handshake}, timer_{loop, [this] { check(); }}, pending_{
                                                                         limits.pending_per_host} {}

void HandshakeGuard::on_accept_ready() {
    if (!timer_.armed()) timer_.start(timeout_);
}

void HandshakeGuard::note(int fd) {
    if (!socket_.has_accepted(fd)) return;
    CloseOnExec::set(fd);
    if (const auto peer = ListeningSocket::peer_of(fd)) enter({.fd = fd, .peer = *peer});
}

void HandshakeGuard::enter(const PendingPeer& pending) {
    pending_.enter(pending);
    while (const auto excess = pending_.excess(pending.peer)) {
        const auto& [fd, peer] = excess->pending;
        const bool is_there = socket_.has_accepted(fd) && ListeningSocket::peer_of(fd) == peer;
        if (is_there && !excess->has_requested && ListeningSocket::has_requested(fd)) {
            pending_.mark_requested(fd);
            continue;
        }
        if (is_there) {
            report_closed(*excess);
            cut_off(fd);
        }
        pending_.forget(fd);
    }
}

void HandshakeGuard::report_closed(const PendingHandshakes::Excess& excess) const {
    Observer* const observer = loop_.observer;
    if (observer == nullptr) return;
    const std::size_t limit =
        pending_per_host_ * (excess.has_requested ? PendingHandshakes::requested_factor : 1);
    observer->on_peer_rejected(
        {.peer = ListeningSocket::name_of_peer(excess.pending.fd),
         .why =
             "more than " + std::to_string(limit) + " connections of its machine " +
             (excess.has_requested ? "wait for an answer here" : "have not sent their request") +
             "; if these are wanted, raise pending_handshakes_per_host (FabricOptions, `fabric:` "
             "in YAML), or let their programs connect fewer sockets at once"});
}

KernelSocket HandshakeGuard::admit(const access::AuthAddress& peer) {
    KernelSocket socket = socket_.find_accepted(peer, pending_.leave(peer));
    if (!socket || !socket.report_all()) return {};
    return socket;
}

void HandshakeGuard::check() {
    Peers present;
    socket_.for_each_pending(
        [&](const access::AuthAddress& peer, int fd) { present.insert_or_assign(fd, peer); });
    pending_.keep(present);
    for (const auto& [fd, peer] : present) {
        const auto seen = last_seen_.find(fd);
        if (seen != last_seen_.end() && seen->second == peer) {
            cut_off(fd);
        } else if (!pending_.knows({.fd = fd, .peer = peer})) {
            enter({.fd = fd, .peer = peer});
        }
    }
    last_seen_ = std::move(present);
    if (!last_seen_.empty()) timer_.start(timeout_);
}

std::size_t HandshakeGuard::close_all() {
    return socket_.cut_off_pending();
}

namespace {

constexpr std::chrono::milliseconds rest_time{100};
// Further peers connect while the first are closed, so the number of rounds is limited.
constexpr unsigned clearing_rounds = 16;

} // namespace

// A request during on_request. The handler may destroy the listener meanwhile.
class Listener::Request final : public ConnectionRequest {
  public:
    Request(Listener& listener, Info info, std::span<const std::byte> data)
        : listener_{&listener}, fabric_{listener.fabric_}, endpoint_{*listener.endpoint_},
          info_{std::move(info)}, data_{data.first(std::min(data.size(), connection_data_limit))} {
        listener.pending_ = this;
        if (listener.guard_ && info_->dest_addr != nullptr) {
            socket_ = listener.guard_->admit(to_auth_address(info_->dest_addr));
            // Without the socket, bytes from such a peer would not be reported.
            if (!socket_) reject({});
        }
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

    access::Host source() const override {
        return info_ && info_->dest_addr != nullptr ? to_auth_address(info_->dest_addr).host
                                                    : access::Host{};
    }

    // The info of a request has the address that the listener is bound to, which may be any
    // address.
    access::AuthAddress dialled() const override {
        if (socket_) return socket_.local();
        return info_ && info_->src_addr != nullptr ? to_auth_address(info_->src_addr)
                                                   : access::AuthAddress{};
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
        // If this throws, the request can still be rejected, so that the peer is notified.
        EndpointHandle endpoint = Endpoint::open(domain, *info_, limits);
        // Now the endpoint has the connection: the peer is notified when the endpoint is closed,
        // and a rejection only frees the request.
        ::fid_t const handle = info_->handle;
        try {
            return std::make_unique<Connection>(
                domain, std::move(info_), std::move(endpoint),
                Origin{.accepting = true, .socket = std::move(socket_)}, limits, handler);
        } catch (const FabricError&) {
            ::fi_reject(&endpoint_, handle, nullptr, 0);
            throw;
        }
    }

    void reject(std::span<const std::byte> data) override {
        NETIO_CHECK_MSG(info_ != nullptr, "this request was answered already");
        NETIO_CHECK(data.size() <= connection_data_limit);
        socket_ = {};
        // Failure means that the peer is gone, which is the intended result.
        ::fi_reject(&endpoint_, info_->handle, data.data(), data.size());
        info_.reset();
    }

    netio::MemoryDomain& domain() override {
        NETIO_CHECK_MSG(info_ != nullptr, "this request was answered already");
        return fabric_.domain_for(*info_);
    }

    bool guards_memory() const noexcept override { return !fabric_.uses_kernel_sockets(); }
    bool is_answered() const noexcept override { return info_ == nullptr; }

    // Called when the listener is destroyed, and with it the endpoint that rejects.
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
    KernelSocket socket_;
    std::span<const std::byte> data_;
};

Listener::Listener(EventLoop& loop, const FabricOptions& options, Fabric& fabric, Info info,
                   const Address& requested, Handler& handler)
    : loop_{loop}, fabric_{fabric}, info_{std::move(info)}, handler_{handler},
      provider_{info_->fabric_attr->prov_name}, rest_timer_{loop, [this] { loop_.add(*this); }} {
    const CloseOnExec close_on_exec;
    const std::string what = "cannot listen at " + to_string(requested) + " (" + provider_ + ")";
    events_ = open_event_queue(fabric.handle(), wait_fd_);
    ::fid_pep* endpoint = nullptr;
    require(::fi_passive_ep(&fabric.handle(), info_.get(), &endpoint, nullptr), what);
    endpoint_.reset(endpoint);
    require(::fi_pep_bind(endpoint, &events_->fid, 0), what);
    require(::fi_listen(endpoint), what);
    sockaddr_storage name{};
    std::size_t size = sizeof name;
    require(::fi_getname(&endpoint->fid, &name, &size), what);
    address_ = to_address(&name);
    if (fabric.uses_kernel_sockets()) {
        guard_.emplace(
            loop, to_auth_address(&name),
            HandshakeGuard::Limits{.half_handshake = options.half_handshake_timeout,
                                   .handshake = options.handshake_timeout,
                                   .pending_per_host = options.pending_handshakes_per_host});
    }
    if (descriptors_are_short()) {
        throw FabricError{{EMFILE, std::system_category()},
                          what +
                              ": it could accept no peer, because no descriptors are left; raise "
                              "the limit (ulimit -n, or LimitNOFILE= of a systemd unit)"};
    }
    loop_.add(*this);
}

Listener::~Listener() {
    if (pending_ != nullptr) pending_->abandon();
    if (!rest_timer_.armed()) loop_.remove(*this);
    if (guard_) close_pending();
}

// When a provider closes its queue, it leaks the memory and the descriptor of each peer that has
// not finished the handshake (measured, libfabric 1.17). It frees a peer when it reads the peer's
// end of stream.
void Listener::close_pending() {
    for (unsigned round = 0; round < clearing_rounds; ++round) {
        const std::size_t open = guard_->close_all();
        if (open == 0) return;
        for (std::size_t reads = 0; reads < open + empty_reads; ++reads) {
            const auto result = reader_.read(*events_);
            if (result != CmReader::Result::event || reader_.event().type != FI_CONNREQ) continue;
            const Info info{reader_.event().info};
            ::fi_reject(endpoint_.get(), info->handle, nullptr, 0);
        }
    }
}

// A listener that is bound to any address serves every device of its fabric.
void Listener::prepare(RegisteredBuffer& buffer) {
    static_cast<void>(buffer.registration(fabric_.domain_for(*info_)));
    if (address_.host != "0.0.0.0" && address_.host != "::") return;
    const Info all = query_all(provider_);
    for (::fi_info* each = all.get(); each != nullptr; each = each->next) {
        const bool is_served = each->ep_attr->type == FI_EP_MSG && fabric_.serves(*each);
        if (is_served) static_cast<void>(buffer.registration(fabric_.domain_for(*each)));
    }
}

std::size_t Listener::drain(std::size_t budget) {
    if (guard_) guard_->on_accept_ready();
    std::size_t work = 0;
    unsigned empty = 0;
    while (work < budget && empty < empty_reads) {
        const auto result = read();
        if (result == CmReader::Result::nothing) {
            ++empty;
            continue;
        }
        empty = 0;
        ++work;
        // An error here means that a peer left during its handshake, which needs no action.
        if (result == CmReader::Result::event && reader_.event().type == FI_CONNREQ) {
            if (!handle_request(reader_.event())) return work;
        }
        if (is_broken(result)) break;
        if (loop_.time_is_up()) return work;
    }
    if (nameless_errors_ >= nameless_error_limit || (guard_ && lowest_free_descriptor() < 0))
        rest();
    return work;
}

// A failed queue would report an error at each read, so the listener pauses before it reads again.
bool Listener::is_broken(CmReader::Result result) {
    const bool nameless = result == CmReader::Result::error && reader_.error().handle == nullptr;
    nameless_errors_ = nameless ? nameless_errors_ + 1 : 0;
    return nameless_errors_ >= nameless_error_limit;
}

// The provider may accept a connection during the call.
template <typename Call>
auto Listener::noting(Call call) {
    const int next_descriptor = lowest_free_descriptor();
    const auto result = call();
    guard_->note(next_descriptor);
    return result;
}

CmReader::Result Listener::read() {
    if (!guard_) return reader_.read(*events_);
    return noting([this] { return reader_.read(*events_); });
}

void Listener::rest() {
    nameless_errors_ = 0;
    if (guard_) guard_->check();
    loop_.remove(*this);
    rest_timer_.start(rest_time);
}

bool Listener::may_sleep() {
    const auto ask = [this] {
        ::fid* handle = &events_->fid;
        return ::fi_trywait(&fabric_.handle(), &handle, 1) == 0;
    };
    return guard_ ? noting(ask) : ask();
}

bool Listener::handle_request(const CmEvent& event) {
    Request request{*this, Info{event.info}, event.data};
    if (request.is_answered()) return true;
    handler_.on_request(request);
    return !request.is_abandoned();
}

} // namespace netio::fabric
