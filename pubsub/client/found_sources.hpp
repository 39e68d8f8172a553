// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the publishers of a Subscriptions has which name on the bus, and which two are one: a
// publisher has one connection, whatever names and addresses lead to it.

#include "pubsub/client/refused_sources.hpp"
#include "pubsub/client/source_accounts.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class FoundSources {
  public:
    // The first `given` sources were given, by their addresses. The sources must outlive it.
    FoundSources(const Sources& sources, std::size_t given, EventLoop& loop,
                 RefusedSources::Ask ask)
        : refused{loop, std::move(ask)}, sources_{sources}, given_{given} {}

    SourceId next_id() noexcept { return SourceId{++last_id_}; }
    bool is_given(SourceId id) const noexcept { return static_cast<std::uint64_t>(id) <= given_; }
    bool knows(const SourceConnection& source) const {
        return by_name_.count(source.source().name) > 0;
    }
    SourceConnection* find(const std::string& name) const; // nullptr: none has it
    void put(const SourceConnection& source) {
        by_name_.emplace(source.source().name, source.id());
    }
    void forget(const SourceConnection& source) { by_name_.erase(source.source().name); }

    // One of these addresses was given.
    bool is_given(const std::vector<std::string>& addresses) const;
    // What answers at one of its addresses is another process than was found there, so that it may
    // be this one. nullptr: none.
    SourceConnection* answering_for(const SourceConnection& named) const;
    // The other way round: one of those that are asked for nothing yet.
    SourceConnection* named_for(const SourceConnection& answering) const;
    // One was given and one was found, and they are connected to the same publish socket.
    SourceConnection* twin_of(SourceConnection& source) const;
    // The names, with all that the bus says of them.
    void exchange_names(SourceConnection& one, SourceConnection& other);

    RefusedSources refused; // who is to be asked again

  private:
    const Sources& sources_;
    std::size_t given_;
    std::uint64_t last_id_ = 0;
    std::map<std::string, SourceId> by_name_;
};

} // namespace netio::pubsub::inline v0_2
