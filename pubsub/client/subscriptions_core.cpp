// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriptions_core.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/discovery/bus.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

// Those that can be understood and lead there from here, in order; one that several providers
// serve counts once.
std::vector<std::string> addresses_of(const Announcement& announcement) {
    const std::string here = this_host();
    std::vector<std::string> addresses;
    for (const std::string& announced : announcement.addresses) {
        const auto endpoint = parse_announced_address(announced);
        if (!endpoint || !leads_there_from(here, announcement, endpoint->address)) continue;
        std::string text = to_string(endpoint->address);
        if (std::ranges::find(addresses, text) == addresses.end()) {
            addresses.push_back(std::move(text));
        }
    }
    return addresses;
}

} // namespace

SubscriptionsCore::SubscriptionsCore(Transport& transport, Subscriptions::Options options,
                                     Subscriptions::Handler& handler, Subscriptions& subscriptions)
    : transport_{transport}, options_{std::move(options)}, user_{.subscriptions = subscriptions,
                                                                 .handler = handler},
      found_{sources_, options_.publishers.size(), transport.loop(),
             [this](SourceId id, const auto& fids) {
                 if (!closing_ && sources_.count(id) > 0 && !assignment_.is_claimant(id))
                     carry_out(assignment_.claim(id, fids));
             }},
      places_{options_.publisher_limit}, accounts_{sources_,
                                                   {.publishers = options_.publisher_limit,
                                                    .fids = options_.remembered_fids_limit,
                                                    .forgotten_fids = options_.socket.fid_limit}},
      next_slice_{transport.loop(), [this] { go_on(); }}, next_trial_{transport.loop(),
                                                                      [this] { try_rivals(); }},
      ended_{transport.loop(), [this] { user_.handler.on_ended(user_.subscriptions); }} {
    validate(options_.socket);
    require_option(!options_.publishers.empty() || options_.bus != nullptr,
                   "publishers must not be empty where there is no bus");
    require_between("publisher_limit", options_.publisher_limit,
                    std::max<std::size_t>(options_.publishers.size(), 1), UINT32_MAX);
    std::set<std::string> given;
    for (const Address& publisher : options_.publishers) {
        require_option(given.insert(to_string(publisher)).second,
                       "the publisher " + to_string(publisher) + " is given twice");
    }
    for (const Address& publisher : options_.publishers) {
        SourceConnection& connection = enter(to_string(publisher), {to_string(publisher)});
        carry_out(assignment_.add(connection.id()).orders);
        places_.take(connection.id()); // for ever
        open(connection);
    }
    if (options_.bus != nullptr) options_.bus->watch(static_cast<Discovery::Handler&>(*this));
}

SubscriptionsCore::~SubscriptionsCore() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (options_.bus != nullptr) options_.bus->unwatch();
}

SourceConnection& SubscriptionsCore::enter(const std::string& name,
                                           std::vector<std::string> addresses) {
    const SourceId id = found_.next_id();
    std::unique_ptr<SourceConnection> connection = accounts_.former.take(name);
    if (connection) {
        connection->become(id, name, std::move(addresses));
        connection->process.move();
    } else {
        connection = std::make_unique<SourceConnection>(
            id, name, std::move(addresses), static_cast<SourceConnection::Owner&>(*this), user_);
    }
    return *sources_.emplace(id, std::move(connection)).first->second;
}

void SubscriptionsCore::open(SourceConnection& connection) {
    connection.open(transport_, options_.socket);
    if (paused_) connection.socket()->pause();
}

// --- what is wanted -------------------------------------------------------------------------

void SubscriptionsCore::carry_out(std::span<const Assignment::Order> orders) {
    while (!orders.empty()) {
        // Those that go together are asked for together.
        const Assignment::Order& first = orders.front();
        std::vector<FidRange> fids;
        while (!orders.empty() && orders.front().source == first.source &&
               orders.front().subscribe == first.subscribe &&
               orders.front().policy == first.policy) {
            fids.push_back(orders.front().fids);
            orders = orders.subspan(1);
        }
        SourceConnection& connection = *sources_.at(first.source);
        if (first.subscribe) {
            if (!places_.take(first.source)) {
                next_slice_.start(Duration::zero()); // to tell it
                look_at_rivals();
                continue;
            }
            open(connection);
            ended_.cancel(); // if it was on its way
            std::erase_if(trials_.going_on,
                          [&](const Trial& each) { return each.id == first.source; });
            connection.socket()->subscribe(fids, first.policy);
        } else if (connection.socket() != nullptr) {
            for (const FidRange& range : fids)
                connection.socket()->release(range);
        }
    }
}

void SubscriptionsCore::carry_out(const Assignment::Outcome& outcome) {
    carry_out(outcome.orders);
    if (!assignment_.is_settled() || !news_.empty()) next_slice_.start(Duration::zero());
    if (!outcome.contests.empty()) look_at_rivals();
    const DestructionWatch watch{destroyed_};
    for (const Assignment::Contest& contest : outcome.contests) {
        const auto owner = sources_.find(contest.owner);
        const auto other = sources_.find(contest.other);
        if (owner == sources_.end() || other == sources_.end()) continue;
        user_.handler.on_contest(user_.subscriptions, {.owner = owner->second->source().name,
                                                       .other = other->second->source().name,
                                                       .first = contest.first,
                                                       .fids = contest.fids});
        if (watch.destroyed()) return;
    }
}

void SubscriptionsCore::go_on() {
    if (closing_) return;
    const auto untold = places_.untold();
    const auto next_asked = untold ? std::nullopt : places_.next();
    if (untold || next_asked) next_slice_.start(Duration::zero());
    if (untold) {
        on_trouble("more publishers than publisher_limit; " + sources_.at(*untold)->source().name +
                   " and who else is found waits until another one is gone");
    } else if (next_asked) {
        carry_out(assignment_.ask(*next_asked).orders);
    } else if (!assignment_.is_settled()) {
        carry_out(assignment_.advance());
    } else if (!news_.empty()) {
        const WaitingNews::News next = news_.take();
        if (!news_.empty()) next_slice_.start(Duration::zero());
        next.second ? take(*next.second) : let_go(next.first);
    }
}

void SubscriptionsCore::subscribe(std::span<const FidRange> ranges,
                                  std::optional<SlowPolicy> policy) {
    for (const FidRange& range : ranges)
        require_option(range.first <= range.last, "a range of fids ends before it begins");
    if (closing_) return;
    carry_out(assignment_.want(ranges, policy).orders);
    if (options_.bus != nullptr) look_at_rivals();
}

void SubscriptionsCore::unsubscribe(const FidRange& range) {
    if (closing_) return;
    carry_out(assignment_.unwant(range).orders);
    accounts_.former.forget(range);
    for (const auto& [id, connection] : sources_)
        connection->forget(range);
}

void SubscriptionsCore::set_paused(bool paused) {
    paused_ = paused;
    for (const auto& [id, connection] : sources_) {
        SubscribeSocket* const socket = connection->socket();
        if (socket != nullptr) paused ? socket->pause() : socket->resume();
    }
}

// --- who is there ---------------------------------------------------------------------------

// An announcement is a stranger's word, and may be long: while one is carried out the others wait.
void SubscriptionsCore::on_announced(const Announcement& announcement) {
    if (closing_) return;
    if (assignment_.is_settled() && news_.empty()) return take(announcement);
    news_.put(announcement.name, announcement);
    next_slice_.start(Duration::zero());
}

void SubscriptionsCore::on_gone(const std::string& name) {
    if (closing_) return;
    if (assignment_.is_settled() && news_.empty()) return let_go(name);
    news_.put(name, {});
    next_slice_.start(Duration::zero());
}

void SubscriptionsCore::take(const Announcement& announcement) {
    std::vector<std::string> addresses = addresses_of(announcement);
    if (addresses.empty()) {
        return on_trouble(announcement.name + " on '" + announcement.host +
                          "' announces no address that leads there from here");
    }
    SourceConnection* known = found_.find(announcement.name);
    if (known != nullptr && known->addresses() != addresses) {
        if (known->is_to_be_told()) {
            known->become(known->id(), announcement.name, addresses);
            known->process.move();
        } else {
            drop(known->id());
            known = nullptr;
        }
    }
    const bool is_new = known == nullptr;
    if (is_new) {
        if (found_.is_given(addresses)) return; // it is asked for all
        known = &enter(announcement.name, std::move(addresses));
        found_.put(*known);
    }
    const SourceId id = known->id();
    SourceConnection& connection = *known;
    const bool is_back = connection.process.is_expired() && connection.is_connected();
    connection.process.announce(announcement.instance);
    std::vector<FidRange> fids;
    for (const AnnouncedFids& announced : announcement.fids)
        fids.push_back(announced.fids);
    if (is_new) {
        SourceConnection* const answering = found_.answering_for(connection);
        if (answering != nullptr) return recognise(*answering, connection, fids);
    }
    Assignment::Outcome outcome = assignment_.claim(id, fids);
    if (is_back && options_.socket.key)
        std::ranges::move(assignment_.reach(id).orders, std::back_inserter(outcome.orders));
    carry_out(outcome);
}

void SubscriptionsCore::let_go(const std::string& name) {
    SourceConnection* const known = found_.find(name);
    if (known == nullptr) return;
    SourceConnection& connection = *known;
    // A bus that is lost does not end data that flows, or waits for a user who has paused.
    const bool waits = connection.is_to_be_told();
    if (!connection.is_connected() && !waits) return drop(connection.id());
    connection.process.expire();
    if (waits) return carry_out(assignment_.yield(connection.id(), true).orders);
    // But who has got its port keeps no fid from one that the bus shows.
    if (!connection.process.is_replaced()) return;
    carry_out(assignment_.doubt(connection.id()).orders);
    look_at_rivals();
}

void SubscriptionsCore::on_trouble(const std::string& what) {
    user_.handler.on_trouble(user_.subscriptions, what);
}

void SubscriptionsCore::drop(SourceId id) {
    auto node = sources_.extract(id);
    found_.forget(*node.mapped());
    accounts_.former.keep(std::move(node.mapped()));
    places_.forget(id);
    found_.refused.forget(id);
    const Assignment::Outcome outcome = assignment_.remove(id);
    carry_out(outcome.orders);
    next_slice_.start(Duration::zero()); // its place is free
}

// --- who is it ------------------------------------------------------------------------------

// With keys only who proves himself is taken, but anybody may announce himself first, at addresses
// that answer nothing. So those that claim the same fids are tried beside the one that they are to
// be asked of, some at a time, and the first that is let in has them. Each attempt takes no longer
// than one at one address; who has not answered then is left for the next.
void SubscriptionsCore::look_at_rivals() {
    if (!closing_ && (options_.socket.key || !next_trial_.armed()))
        next_trial_.start(Duration::zero());
}

// Whether fids that others claim, too, are to be asked of it, and it has not answered, or another
// one in its place, or there is no place for it.
bool SubscriptionsCore::is_awaited(SourceId id, SourceConnection& connection) const {
    if (!assignment_.is_contested(id)) return false;
    if (places_.is_passed_over(id)) return true;
    const bool answers = connection.is_connected() && !connection.process.is_replaced();
    return connection.socket() != nullptr && !answers && !connection.socket()->wanted().empty();
}

// Of those whose time is over, or all.
void SubscriptionsCore::end_trials(bool all) {
    const TimePoint now = loop().now();
    std::erase_if(trials_.going_on, [&](const Trial& trial) {
        const auto found = sources_.find(trial.id);
        if (found == sources_.end() || found->second->is_connected()) return true;
        if (!all && now < trial.since + options_.socket.session.connect_timeout) return false;
        found->second->leave(1); // what was tried did not answer
        places_.give_back(trial.id);
        next_slice_.start(Duration::zero());
        return true;
    });
}

void SubscriptionsCore::try_rivals() {
    if (closing_) return;
    if (!options_.socket.key) return pass_on();
    const bool wanted = std::ranges::any_of(
        sources_, [this](const auto& each) { return is_awaited(each.first, *each.second); });
    end_trials(!wanted);
    if (!wanted) return;
    // In a circle from the one behind the last.
    auto next = sources_.upper_bound(trials_.last);
    for (std::size_t left = sources_.size();
         left > 0 && trials_.going_on.size() < trial_limit && places_.has_room(); --left, ++next) {
        if (next == sources_.end()) next = sources_.begin();
        SourceConnection& connection = *next->second;
        if (connection.socket() != nullptr || !assignment_.is_contested(next->first)) continue;
        places_.take(next->first);
        open(connection);
        trials_.last = next->first;
        trials_.going_on.push_back({.id = next->first, .since = loop().now()});
    }
    next_trial_.start(options_.socket.session.connect_timeout);
}

// Without keys whoever answers is taken, so one after the other is asked; none for longer than an
// attempt at one address takes.
void SubscriptionsCore::pass_on() {
    for (const SourceId id : std::exchange(trials_.waiting, {})) {
        const auto found = sources_.find(id);
        if (found != sources_.end() && is_awaited(id, *found->second))
            carry_out(assignment_.yield(id, false).orders);
    }
    for (const auto& [id, connection] : sources_)
        if (is_awaited(id, *connection)) trials_.waiting.insert(id);
    if (!trials_.waiting.empty()) next_trial_.start(options_.socket.session.connect_timeout);
}

// What answers is the process that has this name, which has these fids. Its connection goes on as
// it is: another one would bring what comes from somewhere in the middle. The former name is that
// of nobody who is connected, as long as the bus shows it.
void SubscriptionsCore::recognise(SourceConnection& answering, SourceConnection& named,
                                  std::span<const FidRange> fids) {
    const std::vector<FidRange> former = assignment_.claimed(answering.id());
    found_.exchange_names(answering, named);
    const bool is_over = named.process.is_expired();
    if (is_over) drop(named.id());
    Assignment::Outcome outcome = assignment_.claim(answering.id(), fids);
    if (!is_over) {
        Assignment::Outcome more = assignment_.claim(named.id(), former);
        std::ranges::move(more.orders, std::back_inserter(outcome.orders));
        std::ranges::move(more.contests, std::back_inserter(outcome.contests));
    }
    carry_out(outcome);
}

// Its announcement may have come before it answered.
bool SubscriptionsCore::on_source_met(SourceConnection& source) {
    if (closing_) return true;
    if (SourceConnection* const named = found_.named_for(source)) {
        const DestructionWatch watch{destroyed_};
        recognise(source, *named, assignment_.claimed(named->id()));
        return !watch.destroyed();
    }
    // One that was given and one that was found are the same publisher: the one that was given is
    // asked for all.
    SourceConnection* const twin = found_.twin_of(source);
    if (twin == nullptr) return true;
    const bool is_over = found_.is_given(twin->id());
    if (is_over) { // what it would have brought comes from the other
        source.leave();
        source.forget({.first = Fid{0}, .last = Fid{UINT64_MAX}});
    }
    drop((is_over ? source : *twin).id());
    return !is_over;
}

void SubscriptionsCore::on_source_connected(SourceConnection& source) {
    if (!options_.socket.key || closing_) return;
    carry_out(assignment_.reach(source.id()).orders);
    look_at_rivals();
}

// --- the end --------------------------------------------------------------------------------

void SubscriptionsCore::on_source_closed(SourceConnection& source,
                                         const Subscriptions::Ending& ending, bool reached) {
    const SourceId id = source.id();
    const bool dropped = source.process.is_expired() && !closing_;
    const bool retrying = ending.retrying;
    const DestructionWatch watch{destroyed_};
    user_.handler.on_closed(user_.subscriptions, source.source(),
                            {.closed = ending.closed,
                             .retrying = ending.retrying && !dropped,
                             .complete = ending.complete});
    if (watch.destroyed()) return;
    if (!closing_ && sources_.count(id) > 0) {
        assignment_.lose(id);
        look_at_rivals();
        if (!retrying && found_.knows(source)) {
            places_.give_back(id);
            next_slice_.start(Duration::zero());
            if (!reached) {
                if (options_.socket.wait_for_publisher)
                    found_.refused.put(id, assignment_.claimed(id),
                                       Subscriptions::refused_pause * options_.socket.retry_limit);
                for (const FidRange& range : source.socket()->wanted()) // others may have it soon
                    source.socket()->release(range);
            }
        }
        // An announcement is a stranger's word: who cannot be reached keeps no fid from another.
        if (dropped) {
            drop(id);
        } else if (source.take_moved()) {
            source.leave();
            carry_out(assignment_.ask(id).orders);
        } else if (!reached) {
            carry_out(assignment_.yield(id, !retrying).orders);
        }
    }
    check_ended();
}

void SubscriptionsCore::close() {
    if (std::exchange(closing_, true)) return;
    ended_.cancel(); // if it was on its way
    for (const auto& [id, connection] : sources_) {
        SubscribeSocket* const socket = connection->socket();
        if (socket != nullptr && !connection->is_finished()) socket->close();
    }
    check_ended();
}

void SubscriptionsCore::check_ended() {
    if (!closing_ && (options_.bus != nullptr || assignment_.empty())) return;
    const bool over = std::ranges::all_of(sources_, [](const auto& each) {
        return each.second->socket() == nullptr || each.second->is_finished();
    });
    if (over && !ended_.armed()) ended_.start(Duration::zero());
}

} // namespace netio::pubsub::inline v0_2
