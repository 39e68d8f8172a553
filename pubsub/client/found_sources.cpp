// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/found_sources.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

bool share_one(const std::vector<std::string>& some, const std::vector<std::string>& others) {
    return std::ranges::find_first_of(some, others) != some.end();
}

template <typename Is>
SourceConnection* find_source(const Sources& sources, Is is) {
    const auto found =
        std::ranges::find_if(sources, [&](const auto& each) { return is(*each.second); });
    return found == sources.end() ? nullptr : found->second.get();
}

} // namespace

SourceConnection* FoundSources::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : sources_.at(found->second).get();
}

bool FoundSources::is_given(const std::vector<std::string>& addresses) const {
    return given_ > 0 && find_source(sources_, [&](const SourceConnection& each) {
                             return is_given(each.id()) && share_one(each.addresses(), addresses);
                         }) != nullptr;
}

SourceConnection* FoundSources::answering_for(const SourceConnection& named) const {
    if (named.was_connected()) return nullptr;
    return find_source(sources_, [&](const SourceConnection& each) {
        return !is_given(each.id()) && each.is_connected() && each.process.is_another() &&
               share_one(each.addresses(), named.addresses());
    });
}

SourceConnection* FoundSources::named_for(const SourceConnection& answering) const {
    if (is_given(answering.id()) || !answering.process.is_another()) return nullptr;
    return find_source(sources_, [&](SourceConnection& each) {
        const bool is_idle = each.socket() == nullptr || each.socket()->wanted().empty();
        return &each != &answering && !is_given(each.id()) && is_idle && !each.was_connected() &&
               !each.process.is_another() && share_one(each.addresses(), answering.addresses());
    });
}

SourceConnection* FoundSources::twin_of(SourceConnection& source) const {
    const std::uint64_t instance = source.socket()->publisher_instance();
    return find_source(sources_, [&](SourceConnection& each) {
        return is_given(each.id()) != is_given(source.id()) && each.is_connected() &&
               each.socket()->publisher_instance() == instance;
    });
}

void FoundSources::exchange_names(SourceConnection& one, SourceConnection& other) {
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

} // namespace netio::pubsub::inline v0_2
