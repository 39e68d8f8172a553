// SPDX-License-Identifier: Apache-2.0
#include "netio/session/server_keys.hpp"

#include "netio/access/crypto.hpp"
#include "netio/access/host.hpp"
#include "netio/base/observer.hpp"
#include "netio/base/option_check.hpp"
#include "netio/session/handshake.hpp"

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {
namespace {

access::AuthAddress in_numbers(const Address& address) {
    const std::optional<access::Host> host = access::parse_host(address.host);
    require_option(host && address.port != 0, "advertised_addresses: " + to_string(address) +
                                                  " must be an address in numbers, and a port");
    return {.host = *host, .port = address.port};
}

std::vector<access::AuthAddress> in_numbers(const std::vector<Address>& addresses) {
    require_option(addresses.size() <= 8, "advertised_addresses takes at most 8 addresses");
    std::vector<access::AuthAddress> found;
    for (const Address& address : addresses)
        found.push_back(in_numbers(address));
    return found;
}

access::AccessControl::Options control_options(const ServerKeys::Options& options) {
    require_time("look_interval", options.look_interval);
    require_between("connections_per_host", options.connections_per_host, 1, UINT32_MAX);
    return {.key_file = options.file,
            .min_protection = options.min_protection,
            .lacks_aes = !access::processor_has_aes(),
            .connections_per_host = options.connections_per_host,
            .advertised_addresses = in_numbers(options.advertised_addresses)};
}

std::string opened_by_a_line(const std::string& file, const std::string& address) {
    return file + ": the line `0 anyone` is in force, and " + address +
           " can be reached from other machines; remove the line, or set allow_remote_anonymous "
           "where it listens if this is intended";
}

} // namespace

ServerKeys::ServerKeys(EventLoop& loop, const Options& options)
    : impl_{std::make_unique<Authenticator>(loop, options)} {}

// The last owner may be a thread-safe publisher, on any thread. The task also serves a loop that
// does not run now, because another thread may drive it turn by turn.
ServerKeys::~ServerKeys() {
    EventLoop& loop = impl_->loop();
    if (loop.is_inherited()) return;
    loop.post_always([impl = std::shared_ptr<Authenticator>{std::move(impl_)}] {});
}

ServerKeys::Counters ServerKeys::counters() const noexcept {
    return impl_->counters();
}

Authenticator::Authenticator(EventLoop& loop, const ServerKeys::Options& options)
    : loop_{loop}, options_{options}, control_{control_options(options), source_,
                                               access::Secret::random()},
      look_timer_{loop, [this] { look(); }} {
    look_timer_.start(options_.look_interval);
}

access::AuthServer::Verdict Authenticator::judge(const ConnectionRequest& request,
                                                 access::PeerSlot& slot) {
    return control_.judge(
        {.data = request.data(), .source = request.source(), .dialled = request.dialled()},
        loop_.now(), slot);
}

void Authenticator::report_refused(const std::string& peer_address,
                                   const access::AuthServer::Verdict& verdict) const {
    Observer* const observer = loop_.observer;
    if (observer == nullptr) return;
    observer->on_not_admitted({.peer = peer_address,
                               .why = std::string{to_string(verdict.refusal)},
                               .key = verdict.claimed});
}

std::string Authenticator::shortage(const access::AuthServer::Verdict& verdict) const {
    const access::Key* const key = control_.find(verdict.claimed);
    const std::string name = key == nullptr ? "" : " (" + key->name + ")";
    const std::string who = "key " + std::to_string(verdict.claimed) + name;
    switch (verdict.shortage) {
    case access::Shortage::none:
        break;
    case access::Shortage::proofs:
        return who + " connects too often; its next connections are rejected for up to 16 s";
    case access::Shortage::links_of_key:
        return who + " has its maximum number of connections";
    case access::Shortage::links_of_host:
        return "its host has the maximum number of connections; it uses " + who;
    }
    return {};
}

void Authenticator::look() {
    look_timer_.start(options_.look_interval);
    const auto news = control_.look();
    if (!news) return;
    std::vector<std::size_t> ended(news->revoked.size());
    for (std::size_t at = 0; at < ended.size(); ++at) {
        for (const AdmittedPeer* one : present_) {
            if (one->result().id() != news->revoked[at]) continue;
            ++ended[at];
            one->revoke();
        }
    }
    Observer* const observer = loop_.observer;
    if (observer == nullptr) return;
    if (!news->problem.empty())
        observer->on_key_file_problem(news->problem + "; the previous keys stay in force");
    else if (!requires_key() && !guarded_.empty())
        observer->on_key_file_problem(opened_by_a_line(options_.file, guarded_.begin()->second));
    for (std::size_t at = 0; at < ended.size(); ++at)
        observer->on_key_revoked({.key = news->revoked[at], .sessions = ended[at]});
}

ServerKeys::Counters Authenticator::counters() const noexcept {
    const access::AuthServer::Counters& counted = control_.counters();
    return {.admitted = counted.admitted,
            .challenged = counted.challenged,
            .busy = counted.busy,
            .refused =
                std::accumulate(counted.refused.begin(), counted.refused.end(), std::uint64_t{0}),
            .sessions = present_.size()};
}

AdmittedPeer::AdmittedPeer(std::shared_ptr<ServerKeys> keys, access::AuthResult result,
                           access::PeerSlot slot)
    : keys_{std::move(keys)}, result_{std::move(result)}, slot_{std::move(slot)} {
    keys_->impl_->enter(*this);
}

AdmittedPeer::~AdmittedPeer() {
    keys_->impl_->leave(*this);
}

} // namespace netio::inline v0_3
