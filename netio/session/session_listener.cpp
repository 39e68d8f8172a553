// SPDX-License-Identifier: Apache-2.0
#include "netio/session/session_listener.hpp"

#include "netio/access/host.hpp"
#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "netio/session/handshake.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace netio::inline v0_3 {
namespace {

void reject_request(ConnectionRequest& request, const Rejection& rejection,
                    std::span<const std::byte> more = {}) {
    ConnectionData data;
    const std::size_t size = encode(rejection, data);
    std::ranges::copy(more, data.begin() + static_cast<std::ptrdiff_t>(size));
    request.reject(std::span{data}.first(size + more.size()));
}

// A request that remembers its peer, and with which code it was rejected, here or by the service.
class WatchedRequest final : public ConnectionRequest {
  public:
    explicit WatchedRequest(ConnectionRequest& request)
        : request_{request}, peer_address_{request.peer_address()} {}

    RejectCode rejection() const noexcept { return rejection_; }

    std::span<const std::byte> data() const noexcept override { return request_.data(); }
    std::string peer_address() const override { return peer_address_; }
    access::Host source() const override { return request_.source(); }
    access::AuthAddress dialled() const override { return request_.dialled(); }
    MemoryDomain& domain() override { return request_.domain(); }
    bool guards_memory() const noexcept override { return request_.guards_memory(); }
    std::unique_ptr<Connection> make_connection(const QueueLimits& limits,
                                                Connection::Handler& handler) override {
        return request_.make_connection(limits, handler);
    }
    void reject(std::span<const std::byte> data) override {
        rejection_ = decode_rejection(data).code;
        request_.reject(data);
    }
    bool is_answered() const noexcept override { return request_.is_answered(); }

  private:
    ConnectionRequest& request_;
    std::string peer_address_;
    RejectCode rejection_ = RejectCode::none;
};

// Reports from the loop, as everything is reported.
void tell_unused(EventLoop& loop, ProviderUnused event) {
    const bool posted = loop.post([&loop, event = std::move(event)] {
        if (Observer* const observer = loop.observer) observer->on_provider_unused(event);
    });
    static_cast<void>(posted); // a loop with a full task queue has more serious problems
}

// Returns an empty text if there is nothing to report, or it is reported elsewhere.
std::string reason_for_operators(RejectCode code) {
    switch (code) {
    case RejectCode::not_this_protocol:
        return "it speaks another protocol or version";
    case RejectCode::other_service:
        return "it asks for another service";
    case RejectCode::receive_too_small:
        return "its receive buffers are too small";
    case RejectCode::full:
        return "there is no free slot for another peer";
    case RejectCode::service_data:
        return "its request is not acceptable";
    case RejectCode::messages_too_large:
        return "it does not accept messages as large as may be sent";
    default:
        return {};
    }
}

bool stands_for_all(const Address& address) {
    return address.host == "0.0.0.0" || address.host == "::";
}

// Explains an address in use, which may be in conflict with another address of the same list.
FabricError explained(const FabricError& error, const Address& address,
                      std::span<const std::unique_ptr<Listener>> before) {
    if (error.code() != std::errc::address_in_use) return error;
    for (const auto& listener : before) {
        const Address& own = listener->address();
        if (own.port != address.port) continue;
        if (own.host != address.host && !stands_for_all(own) && !stands_for_all(address)) continue;
        return {error.code(), "cannot listen at " + to_string(address) + " together with " +
                                  to_string(own) +
                                  ", which is in the same list and uses it ([::] includes all "
                                  "addresses of IPv4)"};
    }
    return {error.code(), "cannot listen at " + to_string(address) +
                              " (another socket listens there: use another port, or port 0 for any "
                              "free one)"};
}

} // namespace

IncomingSession::IncomingSession(Transport& transport, ConnectionRequest& request,
                                 const Hello& peer, Stay stay, std::string& refusal)
    : transport_{transport}, request_{request}, peer_{peer}, stay_{std::move(stay)}, refusal_{
                                                                                         refusal} {}

IncomingSession::~IncomingSession() = default;

std::unique_ptr<Session> IncomingSession::accept(const Hello& hello, const SessionOptions& options,
                                                 Session::Handler& handler) {
    if (is_answered()) {
        throw FabricError{std::make_error_code(std::errc::connection_aborted),
                          "cannot accept " + peer_address() +
                              ": it has been answered, or its listener is gone"};
    }
    return std::make_unique<Session>(transport_, request_, peer_, hello, options, handler,
                                     std::move(stay_.admitted), std::move(stay_.slot));
}

const access::Rights* IncomingSession::rights() const noexcept {
    return stay_.admitted ? &stay_.admitted->result().rights() : nullptr;
}

access::Protection IncomingSession::protection() const noexcept {
    return stay_.admitted ? stay_.admitted->result().protection() : access::Protection::none;
}

void IncomingSession::reject(const Rejection& rejection, std::string why) {
    if (is_answered()) return;
    refusal_ = std::move(why);
    reject_request(request_, rejection);
}

SessionListener::SessionListener(Transport& transport, Options options, Handler& handler)
    : transport_{transport}, options_{std::move(options)}, handler_{handler},
      limiter_{options_.peer_limit,
               options_.keys ? options_.peer_limit : options_.connections_per_host} {
    if (options_.listen.empty()) {
        throw FabricError{{EINVAL, std::system_category()}, "no address to listen at"};
    }
    NETIO_CHECK(!options_.keys || options_.service_bytes == 4);
    require_option(!options_.keys || options_.keys->impl_->is_of(transport_.loop()),
                   "keys: these ServerKeys are of another event loop, and one thread at a time may "
                   "use them; make ServerKeys of the same file for each loop");
    const bool has_keys = options_.keys && options_.keys->impl_->requires_key();
    const ListenOptions reach{.allow_remote_anonymous = options_.allow_remote_anonymous,
                              .has_keys = has_keys};
    for (const Address& wanted : options_.listen) {
        Address address = wanted;
        bool first = true;
        for (const std::string& provider : transport_.providers_at(wanted)) {
            try {
                listeners_.push_back(transport_.listen(provider, address, reach, *this));
            } catch (const FabricError& error) {
                // The best provider must work; the others share its port if they can.
                if (first) throw explained(error, address, listeners_);
                tell_unused(transport_.loop(),
                            {.provider = provider, .address = address, .why = error.what()});
                continue;
            }
            address.port = listeners_.back()->address().port;
            first = false;
        }
    }
    if (!options_.keys || options_.allow_remote_anonymous) return;
    for (const auto& listener : listeners_) {
        const auto host = access::parse_host(listener->address().host);
        if (!host || !access::is_loopback(*host))
            options_.keys->impl_->guard(*this, to_string(listener->address()));
    }
}

SessionListener::~SessionListener() {
    if (options_.keys) options_.keys->impl_->forget(*this);
    if (destroyed_ != nullptr) *destroyed_ = true;
}

std::vector<Endpoint> SessionListener::endpoints() const {
    std::vector<Endpoint> endpoints;
    for (const auto& listener : listeners_) {
        endpoints.push_back({.provider = listener->provider(), .address = listener->address()});
    }
    return endpoints;
}

void SessionListener::prepare(RegisteredBuffer& buffer) {
    for (const auto& listener : listeners_)
        listener->prepare(buffer);
}

// --- requests -------------------------------------------------------------------------------

bool SessionListener::authenticate(ConnectionRequest& request, const Hello& peer,
                                   std::unique_ptr<AdmittedPeer>& admitted, std::string& refusal) {
    if (!options_.keys) {
        if (peer.flags == 0) return true;
        // The peer expects a proof that this side cannot give.
        refusal = "it uses a key, and this side has none";
        reject_request(request, {.code = RejectCode::not_admitted});
        return false;
    }
    using Outcome = access::AuthServer::Verdict::Outcome;
    Authenticator& authenticator = *options_.keys->impl_;
    access::PeerSlot slot;
    access::AuthServer::Verdict verdict = authenticator.judge(request, slot);
    switch (verdict.outcome) {
    case Outcome::admitted:
        admitted = std::make_unique<AdmittedPeer>(options_.keys, *std::move(verdict.admission),
                                                  std::move(slot));
        return true;
    case Outcome::challenged:
        reject_request(request, {.code = RejectCode::prove_key}, verdict.challenge);
        return false;
    case Outcome::busy:
        reject_request(request, {.code = RejectCode::full});
        refusal = authenticator.shortage(verdict);
        return false;
    case Outcome::refused:
        break;
    }
    reject_request(request, {.code = RejectCode::not_admitted});
    authenticator.report_refused(request.peer_address(), verdict);
    return false;
}

access::PeerSlot SessionListener::slot_for(ConnectionRequest& request, std::string& refusal) {
    access::PeerLimiter::Entry entry =
        limiter_.enter({.host = request.source(), .address = request.peer_address()});
    if (!entry.slot) {
        refusal = std::move(entry.why);
        reject_request(request, {.code = RejectCode::full});
    }
    return std::move(entry.slot);
}

Rejection SessionListener::judge(const Hello& peer, RejectCode problem) const {
    if (problem == RejectCode::none) {
        problem = judge_receives(peer, options_.required_receive_bytes);
    }
    if (problem != RejectCode::receive_too_small) return {.code = problem};
    return {.code = problem,
            .required_bytes = static_cast<std::uint32_t>(options_.required_receive_bytes)};
}

void SessionListener::on_request(ConnectionRequest& request) {
    std::optional<WatchedRequest> watched;
    try {
        watched.emplace(request);
    } catch (const std::bad_alloc&) { // no memory even for its address
        return reject_request(request, {.code = RejectCode::no_resources});
    }
    const DestructionWatch watch{destroyed_};
    std::string refusal;
    take_request(*watched, refusal);
    if (watch.destroyed()) return;
    const std::string why = refusal.empty() ? reason_for_operators(watched->rejection()) : refusal;
    if (why.empty()) return;
    if (Observer* const observer = transport_.loop().observer)
        observer->on_peer_rejected({.peer = watched->peer_address(), .why = why});
    handler_.on_peer_rejected(watched->peer_address(), why);
}

void SessionListener::take_request(ConnectionRequest& request, std::string& refusal) {
    const DestructionWatch watch{destroyed_};
    EventLoop& loop = transport_.loop(); // it outlives this listener
    const auto fail = [&](const FabricError& why) {
        if (!request.is_answered()) reject_request(request, {.code = RejectCode::no_resources});
        if (Observer* const observer = loop.observer)
            observer->on_accept_failed({.peer = request.peer_address(), .why = why});
        if (watch.destroyed()) return;
        handler_.on_accept_failed(request.peer_address(), why); // may destroy this listener
    };
    try {
        admit_peer(request, refusal);
    } catch (const FabricError& error) {
        fail(error);
    } catch (const std::bad_alloc&) {
        fail({{ENOMEM, std::system_category()}, "no memory for another connection"});
    }
}

void SessionListener::admit_peer(ConnectionRequest& request, std::string& refusal) {
    Hello peer;
    const RejectCode problem = decode(request.data(), options_.service_bytes, peer);
    if (problem == RejectCode::not_this_protocol) {
        return reject_request(request, {.code = problem});
    }
    if (peer.service != options_.service) {
        return reject_request(request,
                              {.code = RejectCode::other_service,
                               .required_bytes = static_cast<std::uint32_t>(options_.service)});
    }
    std::unique_ptr<AdmittedPeer> admitted;
    if (!authenticate(request, peer, admitted, refusal)) return;
    const Rejection rejection = judge(peer, problem);
    if (rejection.code != RejectCode::none) return reject_request(request, rejection);
    access::PeerSlot slot = slot_for(request, refusal);
    if (!slot) return;
    IncomingSession incoming{transport_,
                             request,
                             peer,
                             {.admitted = std::move(admitted), .slot = std::move(slot)},
                             refusal};
    handler_.on_incoming(incoming);
}

} // namespace netio::inline v0_3
