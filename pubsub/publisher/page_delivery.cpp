// SPDX-License-Identifier: Apache-2.0
#include "pubsub/publisher/page_delivery.hpp"

#include "netio/base/check.hpp"
#include "netio/coalescing/message_parts.hpp"

#include <algorithm>
#include <array>

namespace netio::pubsub::inline v0_2 {
namespace {

struct Record {
    Fid fid{};
    std::span<const std::byte> message;
    std::uint8_t status = 0;
};

std::vector<Record> backwards(std::span<const std::byte> page) {
    std::vector<Record> records;
    const bool sound =
        visit_page(page, [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
            records.push_back({.fid = fid, .message = message, .status = status});
            return true;
        });
    NETIO_CHECK(sound);
    std::ranges::reverse(records);
    return records;
}

} // namespace

PageTerms::Turn PageDelivery::turn_of(const Interest& member, const PageTerms::Offer& offer) {
    const Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
    if (subscriber.idle.gave_way && member.policy == SlowPolicy::drop)
        return PageTerms::Turn::misses;
    // Who is behind is sent what is newest then. Of who could be sent something now nothing is kept
    // for having given way: no event would tell when it can.
    if (member.policy == SlowPolicy::newest &&
        (subscriber.has_kept || (subscriber.idle.gave_way && !subscriber.can_send_now())))
        return PageTerms::Turn::misses;
    if (subscriber.queue().gaps_are_full())
        return may_miss(member.policy) ? PageTerms::Turn::misses : PageTerms::Turn::waits;
    return terms_.turn_of(subscriber.queue().holding(), member.policy, sessions_.shares(), offer);
}

bool PageDelivery::must_wait_for(std::span<const Interest> members, PageTerms::Offer offer) {
    const bool is_plenty = sessions_.shares().is_plenty(offer.bytes, offer.free);
    bool wait = false;
    for (const Interest& member : members) {
        const Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
        offer.is_confined = !is_plenty && !subscriber.can_send_now(offer.bytes);
        if (turn_of(member, offer) != PageTerms::Turn::waits) continue;
        sessions_.slow().wait_for(member);
        wait = true;
    }
    return wait;
}

void PageDelivery::send(std::uint32_t page, std::size_t bytes, std::span<const Interest> members) {
    pages_.seal(page, bytes, PageStore::Contents::records, {}, sessions_.shares());
    sessions_.make_others_give_way();
    bool anybody = false;
    for (const Interest& member : members) {
        Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
        if (subscriber.stage() == Subscriber::Stage::gone)
            continue; // its group is about to be void
        if (turn_of(member, {}) == PageTerms::Turn::misses) {
            member.policy == SlowPolicy::newest ? keep_page(page, subscriber)
                                                : drop_page(page, subscriber);
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
    send_to(takers_of(members, message), message, pages);
}

void PageDelivery::send_to(std::span<const Interest> takers, const Large& message,
                           std::span<const std::uint32_t> pages) {
    FragmentExtension fragment{.fid = message.fid,
                               .message_number = next_number_++,
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
                    {.fid = message.fid, .status = message.status}, sessions_.shares());
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
        Subscriber& subscriber = sessions_.subscribers()[member.subscriber];
        if (subscriber.stage() == Subscriber::Stage::gone) continue;
        if (turn_of(member, {.bytes = message.bytes, .is_large = true}) !=
            PageTerms::Turn::misses) {
            takers.push_back(member);
        } else if (member.policy == SlowPolicy::newest) {
            keep(subscriber, message.fid, message.parts, message.status);
        } else {
            subscriber.add_gap(message.fid, 1);
            count_dropped(message.fid);
        }
    }
    return takers;
}

void PageDelivery::send_page(std::uint32_t page, const Interest& member,
                             std::span<const std::byte> extension) {
    pages_.add_user(page);
    sessions_.subscribers()[member.subscriber].send_frame(
        extension.empty() ? page_kind : fragment_kind, extension, pages_.slice(page),
        {.cookie = Cookie{page},
         .amount = pages_.size(page),
         .droppable = may_miss(member.policy),
         .limited = member.policy == SlowPolicy::disconnect,
         .continues = pages_.contents(page) == PageStore::Contents::later_fragment,
         .mark = member.policy == SlowPolicy::newest ? newest_.requests(member.subscriber) : 0});
    sessions_.slow().keep_watch();
}

// --- what is missed -------------------------------------------------------------------------

void PageDelivery::tell_missed(std::uint32_t page, GapLedger& gap) {
    const auto miss = [&](Fid fid) {
        gap.add(fid, 1);
        count_dropped(fid);
    };
    if (pages_.contents(page) == PageStore::Contents::first_fragment)
        miss(pages_.fragment(page).fid);
    if (pages_.contents(page) != PageStore::Contents::records) return;
    const bool sound =
        visit_page(pages_.memory(page), [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
            miss(fid);
            return true;
        });
    NETIO_CHECK(sound);
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

std::uint64_t PageDelivery::take_back(Subscriber& subscriber, const SendQueue::TakenBack& taken) {
    const std::uint64_t before = counters_.dropped;
    const auto keep_or_miss = [&](Fid fid, MessageParts parts, std::uint8_t status) {
        using Older = NewestStore::Older;
        NewestStore* const store = newest_.store_of(subscriber.id(), fid, taken.mark);
        const Older older =
            store != nullptr ? store->put_older(fid, parts, status) : Older::not_last;
        if (older != Older::not_last) subscriber.has_kept = true;
        if (older == Older::not_last) taken.gap->add(fid, 1);
        if (older != Older::kept) count_dropped(fid);
    };
    const auto first = static_cast<std::uint32_t>(taken.cookies.front());
    if (newest_.store_of(subscriber.id()) == nullptr) {
        tell_missed(first, *taken.gap);
    } else if (pages_.contents(first) == PageStore::Contents::records) {
        for (const Record& each : backwards(pages_.memory(first)))
            keep_or_miss(each.fid, {&each.message, 1}, each.status);
    } else {
        std::vector<std::span<const std::byte>> parts;
        for (const Cookie page : taken.cookies)
            parts.emplace_back(pages_.memory(static_cast<std::uint32_t>(page)));
        keep_or_miss(pages_.fragment(first).fid, parts, pages_.fragment(first).status);
    }
    for (const Cookie page : taken.cookies)
        pages_.release(static_cast<std::uint32_t>(page), sessions_.shares());
    return counters_.dropped - before;
}

// --- what is kept ---------------------------------------------------------------------------

void PageDelivery::keep_page(std::uint32_t page, Subscriber& subscriber) {
    const bool sound = visit_page(
        pages_.memory(page), [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
            keep(subscriber, fid, {&message, 1}, status);
            return true;
        });
    NETIO_CHECK(sound);
}

void PageDelivery::keep(Subscriber& subscriber, Fid fid, MessageParts parts, std::uint8_t status) {
    NewestStore* const store = newest_.store_of(subscriber.id());
    NETIO_CHECK(store != nullptr);
    for (const Fid missed : store->put(fid, parts, status)) {
        count_dropped(missed);
        subscriber.account.note_missed(1);
    }
    if (!std::exchange(subscriber.has_kept, true)) subscriber.request_capacity();
    sessions_.slow().keep_watch();
}

void PageDelivery::note_policy(Subscriber& subscriber, std::span<const FidRange> fids,
                               std::optional<SlowPolicy> policy) {
    const NewestStore::Forgotten gone = newest_.note(subscriber.id(), fids, policy);
    for (const Fid fid : gone.dropped) {
        count_dropped(fid);
        subscriber.account.note_missed(1);
    }
    for (const FidCount& missed : gone.missed)
        subscriber.tell_gap(missed);
    subscriber.has_kept = newest_.keeps(subscriber.id());
}

void PageDelivery::give_kept(Subscriber& subscriber) {
    NewestStore* const store = newest_.store_of(subscriber.id());
    while (store != nullptr && !store->empty()) {
        if (!subscriber.is_turn_of_kept()) return;
        for (const FidCount& missed : store->take_missed())
            subscriber.tell_gap(missed);
        if (store->has_messages() && !send_kept(*store, subscriber)) {
            stuck_ = true;
            return;
        }
    }
    subscriber.has_kept = false;
}

// A page of it, or a message that takes several. False: there is no memory now.
bool PageDelivery::send_kept(NewestStore& store, Subscriber& subscriber) {
    const std::size_t least = store.front().bytes.size() + page::header_bytes;
    if (least > terms_.page_bytes()) return send_large_kept(store, subscriber);
    const std::size_t most = std::min(terms_.page_bytes(), store.bytes());
    auto page = pages_.open(least, most);
    if (!page) {
        open_.shrink(0);
        page = pages_.open(least, most);
    }
    if (!page) return false;
    const std::span<std::byte> memory = pages_.memory(*page);
    PageWriter writer{memory.first(std::min(memory.size(), terms_.page_bytes()))};
    while (store.has_messages()) {
        const NewestStore::Message& message = store.front();
        std::byte* const out = writer.append(message.fid, message.status, message.bytes.size());
        if (out == nullptr) break;
        netio::copy_message(out, message.bytes);
        store.pop_front();
    }
    pages_.seal(*page, writer.used(), PageStore::Contents::records, {}, sessions_.shares());
    send_page(*page, {.subscriber = subscriber.id(), .policy = SlowPolicy::newest}, {});
    ++counters_.pages;
    pages_.release(*page, sessions_.shares());
    return true;
}

bool PageDelivery::send_large_kept(NewestStore& store, Subscriber& subscriber) {
    const NewestStore::Message& message = store.front();
    const std::vector<std::uint32_t> pages = open_.take_pages(message.bytes.size());
    if (pages.empty()) return false;
    const std::span<const std::byte> whole{message.bytes};
    const Interest taker{.subscriber = subscriber.id(), .policy = SlowPolicy::newest};
    send_to(
        {&taker, 1},
        {.fid = message.fid, .status = message.status, .parts = {&whole, 1}, .bytes = whole.size()},
        pages);
    store.pop_front();
    return true;
}

} // namespace netio::pubsub::inline v0_2
