// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_writer.hpp"

#include "netio/access/host.hpp"
#include "netio/base/signals_blocked.hpp"

#include <netdb.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace netio::pubsub::inline v0_3 {

void RegistryWriter::update(Announcement announcement) {
    announcement.name = announcement_.name;
    announcement.instance = announcement_.instance;
    announcement.counter = announcement_.counter;
    announcement.lease = announcement_.lease;
    announcement_ = std::move(announcement);
    written_ = false;
}

void RegistryWriter::refresh(Registry& registry, TimePoint now) {
    try {
        const std::optional<Announcement> there = stored(registry);
        if (!lease_.may_write(there, registry.has_leases(), now)) {
            written_ = false;
            return warn("another publisher announces itself as '" + announcement_.name +
                            "' (host '" + there->host + "', process " + std::to_string(there->pid) +
                            "), so this one is not found; give each a different name",
                        now);
        }
        if (written_ && there && registry.keep(announcement_.name)) return;
        ++announcement_.counter;
        written_ = false;
        registry.put(announcement_.name, to_text(announcement_));
        written_ = true;
    } catch (const RegistryError& error) {
        warn(std::string{error.what()} + "; new subscribers may not find this publisher", now);
    }
}

void RegistryWriter::withdraw(Registry& registry) {
    try {
        const std::optional<Announcement> there = stored(registry);
        if (there && there->instance == announcement_.instance) registry.remove(announcement_.name);
    } catch (const RegistryError& error) { // the lease ends by itself
        return;
    }
}

std::vector<std::string> RegistryWriter::take_troubles() {
    return std::exchange(troubles_, {});
}

// A malformed announcement counts as none.
std::optional<Announcement> RegistryWriter::stored(Registry& registry) const {
    const std::optional<std::string> text = registry.get(announcement_.name);
    if (!text) return {};
    try {
        return parse_announcement(*text);
    } catch (const AnnouncementError&) {
        return {};
    }
}

void RegistryWriter::warn(const std::string& trouble, TimePoint now) {
    if (auto line = warnings_.line_for(trouble, now);
        line && troubles_.size() < RateLimitedWarnings::line_limit)
        troubles_.push_back(std::move(*line));
}

namespace {

// Each host once, with the first of its addresses.
using Hosts = std::map<std::string, std::string>;

Hosts hosts_of(const Announcement& announcement) {
    Hosts hosts;
    for (const std::string& text : announcement.addresses) {
        if (const auto endpoint = parse_announced_address(text))
            hosts.emplace(endpoint->address.host, to_string(endpoint->address));
    }
    if (announcement.metrics.empty()) return hosts;
    try {
        hosts.emplace(parse_address(announcement.metrics).host, announcement.metrics);
    } catch (
        const std::invalid_argument&) { // NOLINT(bugprone-empty-catch): any text is allowed there
    }
    return hosts;
}

// Returns an empty text for an address that other hosts may reach, or loopback.
std::string flaw_of(const access::Host& host) {
    if (access::is_any(host)) return "it stands for every host that reads it";
    if (access::is_link_local(host))
        return "it is a link-local address, whose interface is known to this host only";
    return {};
}

std::string warning(const std::string& address, const std::string& why) {
    return "subscribers on other hosts cannot use the announced address " + address + ": " + why +
           "; announce a name or an address that they can reach (in YAML `advertise` of `bus`, or "
           "another `listen`)";
}

} // namespace

struct HostCheck::Search {
    Search(Tell its_tell, ResolveHost its_resolve)
        : tell{std::move(its_tell)}, resolve{std::move(its_resolve)} {}

    // Returns whether a thread has to be started, which calls run().
    bool replace(Hosts hosts) {
        const std::lock_guard lock{mutex};
        names = std::move(hosts);
        ++lists;
        return !names.empty() && !std::exchange(running, true);
    }
    void run() {
        for (;;) {
            std::unique_lock lock{mutex};
            if (names.empty()) {
                running = false;
                return;
            }
            const auto next = names.extract(names.begin());
            const unsigned list = lists;
            lock.unlock();
            const std::string problem = resolve(next.key());
            lock.lock();
            const bool announced = list == lists;
            lock.unlock();
            if (!problem.empty() && announced)
                tell(warning(next.mapped(),
                             "'" + next.key() + "' cannot be resolved here (" + problem + ")"));
        }
    }
    void thread_failed() {
        const std::lock_guard lock{mutex};
        running = false;
    }

    const Tell tell;
    const ResolveHost resolve;
    std::mutex mutex; // of what follows
    Hosts names;      // of the newest list, not resolved yet
    unsigned lists = 0;
    bool running = false; // a thread is in run()
};

HostCheck::HostCheck(Tell tell, ResolveHost resolve)
    : tell_{std::move(tell)}, search_{std::make_shared<Search>(tell_, std::move(resolve))} {}

std::string resolve_here(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int result = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (result == EAI_SYSTEM) return std::generic_category().message(errno);
    if (result != 0) return ::gai_strerror(result);
    ::freeaddrinfo(found);
    return {};
}

void HostCheck::look(const Announcement& announcement) {
    if (announcement.addresses == addresses_ && announcement.metrics == metrics_) return;
    addresses_ = announcement.addresses;
    metrics_ = announcement.metrics;
    Hosts names;
    for (const auto& [text, address] : hosts_of(announcement)) {
        const std::optional<access::Host> host = access::parse_host(text);
        if (!host) {
            names.emplace(text, address);
        } else if (const std::string flaw = flaw_of(*host); !flaw.empty()) {
            tell_(warning(address, flaw));
        }
    }
    if (!search_->replace(std::move(names))) return;
    try {
        const AllSignalsBlocked blocked;
        std::thread{[search = search_] { search->run(); }}.detach();
    } catch (const std::system_error& error) {
        search_->thread_failed();
        tell_(std::string{"the announced host names are not checked: "} + error.what());
    }
}

} // namespace netio::pubsub::inline v0_3
