// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_delivery.hpp"

#include "netio/base/check.hpp"
#include "netio/coalescing/message_parts.hpp"

#include <algorithm>
#include <array>

namespace netio::pubsub::inline v0_2 {

PageTerms::Turn PageDelivery::turn_of(const Interest& member, std::size_t message_bytes) {
    const Subscriber& subscriber = sessions_.subscriber(member.subscriber);
    if (subscriber.idle.gave_way && member.policy == SlowPolicy::drop)
        return PageTerms::Turn::misses;
    return terms_.turn_of(subscriber.holding(), member.policy, sessions_.shares(), message_bytes);
}

bool PageDelivery::must_wait_for(std::span<const Interest> members, std::size_t message_bytes) {
    bool wait = false;
    for (const Interest& member : members) {
        if (turn_of(member, message_bytes) != PageTerms::Turn::waits) continue;
        sessions_.slow().note_waited_for(sessions_.subscriber(member.subscriber), member.policy);
        wait = true;
    }
    return wait;
}

void PageDelivery::send(std::uint32_t page, std::size_t bytes, std::span<const Interest> members) {
    pages_.seal(page, bytes, PageStore::Contents::records, {}, sessions_.shares());
    sessions_.make_others_give_way();
    bool anybody = false;
    for (const Interest& member : members) {
        Subscriber& subscriber = sessions_.subscriber(member.subscriber);
        if (subscriber.stage() == Subscriber::Stage::gone)
            continue; // its group is about to be void
        if (turn_of(member) == PageTerms::Turn::misses) {
            drop_page(page, subscriber);
        } else {
            send_page(page, member, {});
            anybody = true;
        }
    }
    if (anybody) ++counters_.pages;
    pages_.release(page, sessions_.shares());
}

void PageDelivery::send(const Large& message, std::span<const std::uint32_t> pages,
                        std::span<const Interest> members) {
    const std::vector<Interest> takers = takers_of(members, message);
    FragmentExtension fragment{.fid = message.fid,
                               .message_number = message.number,
                               .offset = 0,
                               .total = static_cast<std::uint32_t>(message.bytes),
                               .status = message.status};
    std::size_t offset = 0;
    for (const std::uint32_t page : pages) {
        const std::size_t part =
            std::min({pages_.memory(page).size(), terms_.page_bytes(), message.bytes - offset});
        copy_parts(message.parts, offset, pages_.memory(page).first(part));
        pages_.seal(page, part,
                    offset == 0 ? PageStore::Contents::first_fragment
                                : PageStore::Contents::later_fragment,
                    message.fid, sessions_.shares());
        fragment.offset = static_cast<std::uint32_t>(offset);
        std::array<std::byte, fragment_extension_bytes> extension;
        encode(fragment, extension);
        for (const Interest& member : takers)
            send_page(page, member, extension);
        pages_.release(page, sessions_.shares());
        offset += part;
    }
    if (!takers.empty()) counters_.pages += pages.size();
}

// A message is dropped whole or not at all.
std::vector<Interest> PageDelivery::takers_of(std::span<const Interest> members,
                                              const Large& message) {
    std::vector<Interest> takers;
    for (const Interest& member : members) {
        Subscriber& subscriber = sessions_.subscriber(member.subscriber);
        if (subscriber.stage() == Subscriber::Stage::gone) continue;
        if (turn_of(member, message.bytes) == PageTerms::Turn::misses) {
            subscriber.add_gap(message.fid, 1);
            count_dropped(message.fid);
        } else {
            takers.push_back(member);
        }
    }
    return takers;
}

void PageDelivery::send_page(std::uint32_t page, const Interest& member,
                             std::span<const std::byte> extension) {
    pages_.add_user(page);
    sessions_.subscriber(member.subscriber)
        .send_frame(extension.empty() ? page_kind : fragment_kind, extension, pages_.slice(page),
                    {.cookie = Cookie{page},
                     .amount = pages_.size(page),
                     .droppable = member.policy == SlowPolicy::drop,
                     .continues = pages_.contents(page) == PageStore::Contents::later_fragment});
    sessions_.slow().keep_watch();
}

std::uint64_t PageDelivery::tell_missed(std::uint32_t page, GapLedger& gap) {
    const std::uint64_t before = counters_.dropped;
    const auto miss = [&](Fid fid) {
        gap.add(fid, 1);
        count_dropped(fid);
    };
    if (pages_.contents(page) == PageStore::Contents::first_fragment) miss(pages_.fid(page));
    if (pages_.contents(page) != PageStore::Contents::records) return counters_.dropped - before;
    const bool sound =
        visit_page(pages_.memory(page), [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
            miss(fid);
            return true;
        });
    NETIO_CHECK(sound);
    return counters_.dropped - before;
}

void PageDelivery::count_dropped(Fid fid) {
    ++counters_.dropped;
    drops_.add(fid);
}

void PageDelivery::drop_page(std::uint32_t page, Subscriber& subscriber) {
    GapLedger gap;
    tell_missed(page, gap);
    for (const FidCount& missed : gap.take())
        subscriber.add_gap(missed.fid, missed.count);
}

} // namespace netio::pubsub::inline v0_2
