// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/discovered_publishers.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

bool share_one(const std::vector<std::string>& some, const std::vector<std::string>& others) {
    return std::ranges::find_first_of(some, others) != some.end();
}

template <typename Is>
PublisherConnection* find_connection(const PublisherConnections& all, Is is) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& each) { return is(*each.second); });
    return found == all.end() ? nullptr : found->second.get();
}

} // namespace

PublisherConnection* DiscoveredPublishers::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : all_.at(found->second).get();
}

bool DiscoveredPublishers::is_configured(const std::vector<std::string>& addresses) const {
    return configured_ > 0 && find_connection(all_, [&](const PublisherConnection& each) {
                                  return is_configured(each.id()) &&
                                         share_one(each.addresses(), addresses);
                              }) != nullptr;
}

PublisherConnection* DiscoveredPublishers::answering_for(const PublisherConnection& named) const {
    if (named.was_connected()) return nullptr;
    return find_connection(all_, [&](const PublisherConnection& each) {
        return !is_configured(each.id()) && each.is_connected() && each.process.is_another() &&
               share_one(each.addresses(), named.addresses());
    });
}

PublisherConnection* DiscoveredPublishers::named_for(const PublisherConnection& answering) const {
    if (is_configured(answering.id()) || !answering.process.is_another()) return nullptr;
    return find_connection(all_, [&](PublisherConnection& each) {
        const bool is_idle = each.socket() == nullptr || each.socket()->wanted().empty();
        return &each != &answering && !is_configured(each.id()) && is_idle &&
               !each.was_connected() && !each.process.is_another() &&
               share_one(each.addresses(), answering.addresses());
    });
}

PublisherConnection* DiscoveredPublishers::duplicate_of(PublisherConnection& connection) const {
    const std::uint64_t instance = connection.socket()->publisher_instance();
    return find_connection(all_, [&](PublisherConnection& each) {
        return is_configured(each.id()) != is_configured(connection.id()) && each.is_connected() &&
               each.socket()->publisher_instance() == instance;
    });
}

void DiscoveredPublishers::exchange_names(PublisherConnection& one, PublisherConnection& other) {
    const std::string name = one.source().name;
    const std::vector<std::string> addresses = one.addresses();
    forget(one);
    forget(other);
    one.become(one.id(), other.source().name, other.addresses());
    other.become(other.id(), name, addresses);
    std::swap(one.process, other.process);
    put(one);
    put(other);
}

} // namespace netio::pubsub::inline v0_3
