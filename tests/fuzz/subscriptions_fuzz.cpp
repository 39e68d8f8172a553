// SPDX-License-Identifier: Apache-2.0

// Subscriptions that come and go, each request all or nothing, and the requested policies, compared
// with models that are obviously correct.

#include "pubsub/publisher/subscription_table.hpp"

#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace netio::fuzz::subscriptions_fuzz {
namespace {

using pubsub::Fid;
using pubsub::FidRange;
using pubsub::Interest;

constexpr std::size_t fid_count = 16;
constexpr std::size_t subscriber_count = 3;
using Wanted = std::array<bool, fid_count>;

// Two interests belong to one subscriber, with two policies.
Interest interest_of(std::size_t who) {
    return {.subscriber = pubsub::SubscriberId{who == 0 ? 0U : 1U},
            .policy = who == 1 ? pubsub::SlowPolicy::drop : pubsub::SlowPolicy::block};
}

// The last two fids are the largest of all.
Fid fid_at(std::size_t place) {
    const std::size_t from_end = fid_count - 1 - place;
    return from_end < 2 ? Fid{UINT64_MAX - from_end} : Fid{place};
}

struct Places {
    std::size_t first = 0;
    std::size_t last = 0;

    FidRange fids() const { return {.first = fid_at(first), .last = fid_at(last)}; }
    bool has(std::size_t place) const { return first <= place && place <= last; }
};
Places some_places(Input& input) {
    const auto one = static_cast<std::size_t>(input.below(fid_count));
    const auto other = static_cast<std::size_t>(input.below(fid_count));
    return {.first = std::min(one, other), .last = std::max(one, other)};
}

class Table {
  public:
    explicit Table(std::size_t limit) : table_{limit} {}

    void request(Interest subscriber, Wanted& wanted, Input& input) {
        const bool adding = input.flag();
        std::vector<FidRange> done;
        Wanted after = wanted;
        for (std::uint64_t left = 1 + input.below(4); left > 0; --left) {
            const Places places = some_places(input);
            const bool carried_out = adding ? table_.add(subscriber, places.fids(), done)
                                            : table_.remove(subscriber, places.fids(), done);
            if (!carried_out) return undo(subscriber, adding, done);
            for (std::size_t place = places.first; place <= places.last; ++place)
                after[place] = adding;
        }
        wanted = after;
    }
    void check(Interest subscriber, const Wanted& wanted) const {
        for (std::size_t place = 0; place < fid_count; ++place) {
            const Fid fid = fid_at(place);
            NETIO_CHECK(table_.wants(subscriber, fid) == wanted[place]);
            const auto members = table_.members(table_.find(fid));
            NETIO_CHECK(std::ranges::binary_search(members, subscriber) == wanted[place]);
        }
    }
    void remove(Interest subscriber) { table_.remove_subscriber(subscriber); }

  private:
    void undo(Interest subscriber, bool adding, const std::vector<FidRange>& done) {
        std::vector<FidRange> undone;
        for (auto range = done.rbegin(); range != done.rend(); ++range)
            NETIO_CHECK(adding ? table_.remove(subscriber, *range, undone)
                               : table_.add(subscriber, *range, undone));
    }

    pubsub::SubscriptionTable table_;
};

const Target subscriptions{"subscriptions", [](Bytes bytes) {
                               Input input{bytes};
                               Table table{1 + static_cast<std::size_t>(input.below(4))};
                               std::array<Wanted, subscriber_count> wanted{};
                               while (!input.empty()) {
                                   const auto who =
                                       static_cast<std::size_t>(input.below(subscriber_count));
                                   const Interest subscriber = interest_of(who);
                                   if (input.below(16) == 0) {
                                       table.remove(subscriber);
                                       wanted[who] = {};
                                   } else {
                                       table.request(subscriber, wanted[who], input);
                                   }
                                   for (std::size_t each = 0; each < subscriber_count; ++each)
                                       table.check(interest_of(each), wanted[each]);
                               }
                           }};

} // namespace
} // namespace netio::fuzz::subscriptions_fuzz
