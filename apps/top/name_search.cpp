// SPDX-License-Identifier: Apache-2.0
#include "apps/top/name_search.hpp"

#include "netio/base/signals_blocked.hpp"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace apps::top {
namespace {

struct Search {
    std::vector<SocketAddress> found;
    std::string error;
    bool is_done = false;
};

} // namespace

struct NameSearch::Searches {
    Searches(Resolve by, std::size_t limit_count) : resolve{std::move(by)}, limit{limit_count} {}

    void run(const std::string& host, const std::shared_ptr<Search>& search) {
        std::vector<SocketAddress> found;
        std::string error;
        try {
            found = resolve(host);
        } catch (const std::exception& problem) {
            error = problem.what();
        }
        const std::lock_guard lock{mutex};
        search->found = std::move(found);
        search->error = std::move(error);
        search->is_done = true;
        changed.notify_all();
    }
    // What nobody has waited for gives way.
    bool has_room() {
        if (all.size() >= limit)
            std::erase_if(all, [](const auto& each) { return each.second->is_done; });
        return all.size() < limit;
    }

    std::mutex mutex;
    std::condition_variable changed;
    Resolve resolve;
    std::size_t limit;
    std::map<std::string, std::shared_ptr<Search>> all; // under way, or not asked for since
};

NameSearch::NameSearch()
    : NameSearch{[](const std::string& host) { return addresses_of({.host = host, .port = 0}); }} {}

NameSearch::NameSearch(Resolve resolve, std::size_t limit)
    : searches_{std::make_shared<Searches>(std::move(resolve), limit)} {}

std::vector<SocketAddress> NameSearch::find(const netio::Address& address, netio::TimePoint until) {
    try {
        return addresses_of(address, Lookup::numeric);
    } catch (const std::runtime_error&) { // it is a name
    }
    Searches& searches = *searches_;
    std::unique_lock lock{searches.mutex};
    std::shared_ptr<Search> search;
    const auto began = [&] {
        if (const auto known = searches.all.find(address.host); known != searches.all.end()) {
            search = known->second;
        } else if (searches.has_room()) {
            search = std::make_shared<Search>();
            const netio::AllSignalsBlocked blocked;
            std::thread{[all = searches_, host = address.host, search] {
                all->run(host, search);
            }}.detach();
            searches.all.emplace(address.host, search);
        }
        return search != nullptr;
    };
    const auto is_done = [&] { return search->is_done; };
    if (!searches.changed.wait_until(lock, until, began))
        throw std::runtime_error{"no answer: too many names are looked up"};
    if (!searches.changed.wait_until(lock, until, is_done))
        throw std::runtime_error{"no answer: its name was not resolved in time"};
    if (const auto known = searches.all.find(address.host);
        known != searches.all.end() && known->second == search)
        searches.all.erase(known);
    if (!search->error.empty()) throw std::runtime_error{"no answer: " + search->error};
    std::vector<SocketAddress> found = search->found;
    for (SocketAddress& each : found)
        each.set_port(address.port);
    return found;
}

} // namespace apps::top
