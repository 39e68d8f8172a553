// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriptions.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"
#include "netio/loop/check_caller.hpp"
#include "pubsub/client/discovered_publishers.hpp"
#include "pubsub/client/publisher_connection.hpp"
#include "pubsub/core/fid_assignment.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/discovery/bus.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// --- current and former publishers ----------------------------------------------------------

// The statistics of all publishers of a Subscriptions: of the current ones, and of those that are
// gone from the bus. A publisher that returns under its name continues its statistics. Bounded; of
// forgotten publishers the sums remain.
class PublisherHistory {
  public:
    struct Limits {
        std::size_t publishers = 0;     // that are gone
        std::size_t fids = 0;           // of all that are gone
        std::size_t forgotten_fids = 0; // of all that were summed up
    };
    // `current` must outlive it.
    PublisherHistory(const PublisherConnections& current, const Limits& limits) noexcept
        : current_{current}, limits_{limits} {}

    // Stores the connection of a publisher that is gone. May forget the oldest publishers, and this
    // one.
    void keep(std::unique_ptr<PublisherConnection> connection);
    // Removes and returns the connection of the publisher of that name, because it is back;
    // nullptr: none is stored.
    std::unique_ptr<PublisherConnection> take(const std::string& name);
    // Call it when the user has unsubscribed from these fids.
    void forget(const FidRange& range);

    std::vector<Subscriptions::PublisherStats> publisher_stats() const;
    Subscriptions::Sums sums() const;
    SubscriptionsSnapshot snapshot(std::size_t fids);

  private:
    void forget_oldest();

    const PublisherConnections& current_;
    Limits limits_;
    std::vector<std::unique_ptr<PublisherConnection>> departed_; // in the order of keep()
    std::size_t fids_ = 0;                                       // of those
    Subscriptions::PublisherStats forgotten_;                    // together
    RemotePublisherSnapshot forgotten_sums_;
    ShownFids<ReceivedFidSnapshot> shown_;
};

namespace {

void add(Subscriptions::PublisherStats& sum, const Subscriptions::PublisherStats& stats,
         std::size_t fid_limit) {
    Account::Rows rows{.fids = std::move(sum.fids), .others = sum.others};
    stats.fids.for_each([&](Fid fid, const Account::Row& row) { rows.of(fid, fid_limit) += row; });
    rows.others += stats.others;
    sum.fids = std::move(rows.fids);
    sum.others = rows.others;
    sum.connections += stats.connections;
    sum.changes += stats.changes;
    sum.unknown_tails += stats.unknown_tails;
    if (!stats.provider.empty()) sum.provider = stats.provider;
    merge(sum.seen, stats.seen);
}

void add(RemotePublisherSnapshot& sum, const RemotePublisherSnapshot& each) {
    sum.messages += each.messages;
    sum.bytes += each.bytes;
    sum.lost += each.lost;
    sum.connections += each.connections;
    sum.pauses += each.pauses;
}

} // namespace

void PublisherHistory::keep(std::unique_ptr<PublisherConnection> connection) {
    if (!connection->was_connected()) return;
    connection->leave();
    fids_ += connection->known_fids();
    departed_.push_back(std::move(connection));
    while (!departed_.empty() && (departed_.size() > limits_.publishers || fids_ > limits_.fids))
        forget_oldest();
}

void PublisherHistory::forget_oldest() {
    const std::unique_ptr<PublisherConnection> oldest = std::move(departed_.front());
    departed_.erase(departed_.begin());
    fids_ -= oldest->known_fids();
    add(forgotten_, oldest->publisher_stats(), limits_.forgotten_fids);
    add(forgotten_sums_, oldest->snapshot());
}

std::unique_ptr<PublisherConnection> PublisherHistory::take(const std::string& name) {
    const auto found = std::ranges::find_if(
        departed_, [&](const auto& each) { return each->source().name == name; });
    if (found == departed_.end()) return nullptr;
    std::unique_ptr<PublisherConnection> connection = std::move(*found);
    departed_.erase(found);
    fids_ -= connection->known_fids();
    return connection;
}

void PublisherHistory::forget(const FidRange& range) {
    for (const auto& connection : departed_) {
        fids_ -= connection->known_fids();
        connection->forget(range);
        fids_ += connection->known_fids();
    }
}

std::vector<Subscriptions::PublisherStats> PublisherHistory::publisher_stats() const {
    std::vector<Subscriptions::PublisherStats> all;
    for (const auto& [id, connection] : current_)
        all.push_back(connection->publisher_stats());
    for (const auto& connection : departed_)
        all.push_back(connection->publisher_stats());
    if (forgotten_.connections > 0) all.push_back(forgotten_);
    return all;
}

Subscriptions::Sums PublisherHistory::sums() const {
    RemotePublisherSnapshot all = forgotten_sums_;
    for (const auto& [id, connection] : current_)
        add(all, connection->snapshot());
    for (const auto& connection : departed_)
        add(all, connection->snapshot());
    return {.messages = all.messages, .bytes = all.bytes};
}

SubscriptionsSnapshot PublisherHistory::snapshot(std::size_t fids) {
    SubscriptionsSnapshot snapshot;
    shown_.begin_listing(fids);
    for (const auto& [id, connection] : current_)
        connection->add_to(snapshot, shown_);
    for (const auto& connection : departed_)
        connection->add_to(snapshot, shown_);
    if (forgotten_.connections > 0) {
        snapshot.publishers.push_back(forgotten_sums_);
        snapshot.fid_count += forgotten_.fids.size();
        shown_.add(forgotten_.fids, add_row);
    }
    snapshot.fids = shown_.rows();
    // If not all fids are shown, those of several publishers are counted several times.
    snapshot.fid_count = shown_.is_full() ? std::max(snapshot.fid_count, snapshot.fids.size())
                                          : snapshot.fids.size();
    return snapshot;
}

// --- subscriptions --------------------------------------------------------------------------

namespace {

// The announced addresses that are valid and reachable from this host, in order. An address that
// several providers serve is listed once.
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

struct [[gnu::visibility("hidden")]] Subscriptions::Impl final : private PublisherConnection::Owner,
                                                                 private Discovery::Handler {
    Impl(Transport & the_transport, Subscriptions::Options its_options,
         Subscriptions::Handler & handler, Subscriptions & subscriptions);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    static constexpr std::size_t trial_limit = 8; // at a time

    struct Trial {
        PublisherId id{};
        TimePoint since;
    };
    // Connections to publishers without requests, to find out whether they answer.
    struct Trials {
        std::vector<Trial> current;
        PublisherId last{};            // the last one that was begun; they take turns
        std::set<PublisherId> waiting; // without keys: owners without an answer at the last look
    };

    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy);
    void unsubscribe(const FidRange& range);
    void set_paused(bool value);
    void close();
    void check_ended();

    void carry_out(std::span<const FidAssignment::Order> orders);
    // Also schedules the remaining work for the next turns. May destroy this.
    void carry_out(const FidAssignment::Outcome& outcome);
    // Does one unit of the pending work: a publisher that waits for a slot, a slice of a changed
    // claim, or the next announcement.
    void do_next();
    void apply(const Announcement& announcement);
    void apply_gone(const std::string& name);
    PublisherConnection& enter(const std::string& name, std::vector<std::string> addresses);
    // Requires a slot.
    void open(PublisherConnection & connection);
    // The publisher is gone. Its statistics remain, and continue if it returns.
    void drop(PublisherId id);

    void schedule_trials();
    void try_claimants();
    void end_trials(bool all);
    bool is_awaited(PublisherId id, PublisherConnection & connection) const;
    void pass_to_next_claimants();
    void recognise(PublisherConnection & answering, PublisherConnection & named,
                   std::span<const FidRange> fids);

    bool on_identified(PublisherConnection & connection) override;
    void on_connected(PublisherConnection & connection) override;
    void on_closed(PublisherConnection & connection, const Subscriptions::Ending& ending,
                   bool reached) override;
    void on_announced(const Announcement& announcement) override;
    void on_gone(const std::string& name) override;
    void on_warning(const std::string& what) override;
    void on_caught_up() override;

    void schedule_hint();
    void give_hint();

    Transport& transport;
    Subscriptions::Options options;
    SubscribeSocket* delivering = nullptr; // whose message or answer the handler was given last
    PublisherConnection::User user;
    FidAssignment assignment;
    PublisherConnections publishers;
    DiscoveredPublishers discovered;
    RejectedPublishers rejected;
    ConnectionSlots slots;
    PublisherHistory history;
    PendingAnnouncements pending; // while a claim is being changed
    bool closing = false;
    bool paused = false;
    bool* destroyed = nullptr;
    Trials trials;
    Timer next_slice;
    Timer next_trial;
    Timer ended;  // reports that no events follow
    struct Hint { // that no publisher on the bus announces some fids
        static constexpr std::chrono::seconds interval{60}; // between two hints, at least
        static constexpr std::size_t range_limit = 8;       // in one line
        Timer timer;
        TimePoint not_before{};
        bool has_looked = false; // the bus has been read
    } hint;
};

Subscriptions::Impl::Impl(Transport& the_transport, Subscriptions::Options its_options,
                          Subscriptions::Handler& handler, Subscriptions& subscriptions)
    : transport{the_transport}, options{std::move(its_options)}, user{.subscriptions =
                                                                          subscriptions,
                                                                      .handler = handler,
                                                                      .delivering = delivering},
      discovered{publishers, options.publishers.size()},
      rejected{transport.loop(),
               [this](PublisherId id, const std::vector<FidRange>& fids) {
                   if (!closing && publishers.count(id) > 0 && !assignment.is_claimant(id))
                       carry_out(assignment.claim(id, fids));
               }},
      slots{options.publisher_limit}, history{publishers,
                                              {.publishers = options.publisher_limit,
                                               .fids = options.remembered_fids_limit,
                                               .forgotten_fids = options.socket.fid_limit}},
      next_slice{transport.loop(), [this] { do_next(); }}, next_trial{transport.loop(),
                                                                      [this] { try_claimants(); }},
      ended{transport.loop(), [this] { user.handler.on_ended(user.subscriptions); }},
      hint{.timer = Timer{transport.loop(), [this] { give_hint(); }}} {
    validate(options.socket);
    require_option(!options.publishers.empty() || options.bus != nullptr,
                   "publishers must not be empty where there is no bus");
    require_between("publisher_limit", options.publisher_limit,
                    std::max<std::size_t>(options.publishers.size(), 1), UINT32_MAX);
    std::set<std::string> given;
    for (const Address& publisher : options.publishers) {
        require_option(given.insert(to_string(publisher)).second,
                       "the publisher " + to_string(publisher) + " is given twice");
    }
    for (const Address& publisher : options.publishers) {
        PublisherConnection& connection = enter(to_string(publisher), {to_string(publisher)});
        carry_out(assignment.add(connection.id()).orders);
        slots.take(connection.id()); // permanently
        open(connection);
    }
    if (options.bus != nullptr) options.bus->watch(static_cast<Discovery::Handler&>(*this));
}

Subscriptions::Impl::~Impl() {
    if (destroyed != nullptr) *destroyed = true;
    if (options.bus != nullptr) options.bus->unwatch();
}

PublisherConnection& Subscriptions::Impl::enter(const std::string& name,
                                                std::vector<std::string> addresses) {
    const PublisherId id = discovered.next_id();
    std::unique_ptr<PublisherConnection> connection = history.take(name);
    if (connection) {
        connection->become(id, name, std::move(addresses));
        connection->process.move();
    } else {
        connection = std::make_unique<PublisherConnection>(
            id, name, std::move(addresses), static_cast<PublisherConnection::Owner&>(*this), user);
    }
    return *publishers.emplace(id, std::move(connection)).first->second;
}

void Subscriptions::Impl::open(PublisherConnection& connection) {
    connection.open(transport, options.socket);
    if (paused) connection.socket()->pause();
}

// --- what is wanted -------------------------------------------------------------------------

void Subscriptions::Impl::carry_out(std::span<const FidAssignment::Order> orders) {
    while (!orders.empty()) {
        // Sends consecutive orders of the same kind in one request.
        const FidAssignment::Order& first = orders.front();
        std::vector<FidRange> fids;
        while (!orders.empty() && orders.front().publisher == first.publisher &&
               orders.front().subscribe == first.subscribe &&
               orders.front().policy == first.policy) {
            fids.push_back(orders.front().fids);
            orders = orders.subspan(1);
        }
        PublisherConnection& connection = *publishers.at(first.publisher);
        if (first.subscribe) {
            if (!slots.take(first.publisher)) {
                next_slice.start(Duration::zero()); // to report it
                schedule_trials();
                continue;
            }
            open(connection);
            ended.cancel();
            std::erase_if(trials.current,
                          [&](const Trial& each) { return each.id == first.publisher; });
            connection.socket()->subscribe(fids, first.policy);
        } else if (connection.socket() != nullptr) {
            for (const FidRange& range : fids)
                connection.socket()->release(range);
        }
    }
}

void Subscriptions::Impl::carry_out(const FidAssignment::Outcome& outcome) {
    carry_out(outcome.orders);
    if (!assignment.is_settled() || !pending.empty()) next_slice.start(Duration::zero());
    if (!outcome.contests.empty()) schedule_trials();
    const DestructionWatch watch{destroyed};
    for (const FidAssignment::Contest& contest : outcome.contests) {
        const auto owner = publishers.find(contest.owner);
        const auto other = publishers.find(contest.other);
        if (owner == publishers.end() || other == publishers.end()) continue;
        user.handler.on_contest(user.subscriptions, {.owner = owner->second->source().name,
                                                     .other = other->second->source().name,
                                                     .first = contest.first,
                                                     .fids = contest.fids});
        if (watch.destroyed()) return;
    }
}

void Subscriptions::Impl::do_next() {
    if (closing) return;
    const auto unreported = slots.unreported();
    const auto next_with_slot = unreported ? std::nullopt : slots.next();
    if (unreported || next_with_slot) next_slice.start(Duration::zero());
    if (unreported) {
        on_warning("more publishers than publisher_limit; " +
                   publishers.at(*unreported)->source().name +
                   " and others found later wait until another one is gone");
    } else if (next_with_slot) {
        carry_out(assignment.ask(*next_with_slot).orders);
    } else if (!assignment.is_settled()) {
        carry_out(assignment.advance());
    } else if (!pending.empty()) {
        const PendingAnnouncements::News next = pending.take();
        if (!pending.empty()) next_slice.start(Duration::zero());
        next.second ? apply(*next.second) : apply_gone(next.first);
    }
}

void Subscriptions::Impl::subscribe(std::span<const FidRange> ranges,
                                    std::optional<SlowPolicy> policy) {
    for (const FidRange& range : ranges)
        require_option(range.first <= range.last, "a range of fids ends before it begins");
    if (closing) return;
    carry_out(assignment.want(ranges, policy).orders);
    if (options.bus != nullptr) schedule_trials();
    schedule_hint();
}

void Subscriptions::Impl::unsubscribe(const FidRange& range) {
    if (closing) return;
    carry_out(assignment.unwant(range).orders);
    history.forget(range);
    for (const auto& [id, connection] : publishers)
        connection->forget(range);
}

void Subscriptions::Impl::set_paused(bool value) {
    paused = value;
    for (const auto& [id, connection] : publishers) {
        SubscribeSocket* const socket = connection->socket();
        if (socket != nullptr) paused ? socket->pause() : socket->resume();
    }
}

// --- announcements --------------------------------------------------------------------------

// An announcement comes from an unauthenticated peer and may be long: while one is being applied,
// the others wait.
void Subscriptions::Impl::on_announced(const Announcement& announcement) {
    if (closing) return;
    if (assignment.is_settled() && pending.empty()) return apply(announcement);
    pending.put(announcement.name, announcement);
    next_slice.start(Duration::zero());
}

void Subscriptions::Impl::on_gone(const std::string& name) {
    if (closing) return;
    if (assignment.is_settled() && pending.empty()) return apply_gone(name);
    pending.put(name, {});
    next_slice.start(Duration::zero());
}

void Subscriptions::Impl::apply(const Announcement& announcement) {
    std::vector<std::string> addresses = addresses_of(announcement);
    if (addresses.empty()) {
        return on_warning(announcement.name + " on '" + announcement.host +
                          "' announces no address that can be reached from here");
    }
    PublisherConnection* known = discovered.find(announcement.name);
    if (known != nullptr && known->addresses() != addresses) {
        if (known->has_unreported_end()) {
            known->become(known->id(), announcement.name, addresses);
            known->process.move();
        } else {
            drop(known->id());
            known = nullptr;
        }
    }
    const bool is_new = known == nullptr;
    if (is_new) {
        if (discovered.is_configured(addresses)) return; // that one is asked for all fids
        known = &enter(announcement.name, std::move(addresses));
        discovered.put(*known);
    }
    const PublisherId id = known->id();
    PublisherConnection& connection = *known;
    const bool is_back = connection.process.is_expired() && connection.is_connected();
    connection.process.announce(announcement.instance);
    std::vector<FidRange> fids;
    for (const AnnouncedFids& announced : announcement.fids)
        fids.push_back(announced.fids);
    if (is_new) {
        PublisherConnection* const answering = discovered.answering_for(connection);
        if (answering != nullptr) return recognise(*answering, connection, fids);
    }
    FidAssignment::Outcome outcome = assignment.claim(id, fids);
    if (is_back && options.socket.key)
        std::ranges::move(assignment.reach(id).orders, std::back_inserter(outcome.orders));
    carry_out(outcome);
}

void Subscriptions::Impl::apply_gone(const std::string& name) {
    PublisherConnection* const known = discovered.find(name);
    if (known == nullptr) return;
    PublisherConnection& connection = *known;
    // A lost bus ends neither a connection nor the events that wait for a paused user.
    const bool waits = connection.has_unreported_end();
    if (!connection.is_connected() && !waits) return drop(connection.id());
    connection.process.expire();
    if (waits) return carry_out(assignment.yield(connection.id(), true).orders);
    // A process that got the port of the publisher does not keep fids from announced publishers.
    if (!connection.process.is_replaced()) return;
    carry_out(assignment.suspect(connection.id()).orders);
    schedule_trials();
}

void Subscriptions::Impl::on_warning(const std::string& what) {
    user.handler.on_warning(user.subscriptions, what);
}

void Subscriptions::Impl::drop(PublisherId id) {
    auto node = publishers.extract(id);
    discovered.forget(*node.mapped());
    history.keep(std::move(node.mapped()));
    slots.forget(id);
    rejected.forget(id);
    const FidAssignment::Outcome outcome = assignment.remove(id);
    carry_out(outcome.orders);
    next_slice.start(Duration::zero()); // its slot is free
    schedule_hint();
}

void Subscriptions::Impl::on_caught_up() {
    hint.has_looked = true;
    schedule_hint();
}

// --- fids that are not announced ------------------------------------------------------------

// Configured publishers are asked for all fids and need no announcement.
void Subscriptions::Impl::schedule_hint() {
    const auto after = options.socket.silence_hint;
    if (after.count() == 0 || closing || !hint.has_looked || !options.publishers.empty()) return;
    if (hint.timer.armed()) return;
    hint.timer.start_at(std::max(transport.loop().now() + after, hint.not_before));
}

void Subscriptions::Impl::give_hint() {
    if (closing) return;
    // A publisher that has rejected this client owns nothing, but announces its fids.
    if (!assignment.is_settled() || !pending.empty() || !rejected.empty()) return schedule_hint();
    std::vector<FidRange> fids = assignment.unclaimed(Hint::range_limit + 1);
    if (fids.empty()) return;
    hint.not_before = transport.loop().now() + Hint::interval;
    const bool has_more = fids.size() > Hint::range_limit;
    fids.resize(std::min(fids.size(), Hint::range_limit));
    std::string text = "no publisher announces fids ";
    for (const FidRange& range : fids)
        text += (&range == fids.data() ? "" : ", ") + to_string(range);
    text += has_more ? " and more" : "";
    on_warning(text + "; start their publisher, or compare with what is announced (netio list)");
}

// --- identities -----------------------------------------------------------------------------

// With keys only authenticated publishers are accepted, but any host may announce fids first, at
// addresses that do not answer. So claimants of contested fids are tried in addition to the owner,
// a few at a time, and the first that is authenticated gets the fids. A trial takes as long as an
// attempt at one address; if a claimant has not answered, the next one is tried.
void Subscriptions::Impl::schedule_trials() {
    if (!closing && (options.socket.key || !next_trial.armed())) next_trial.start(Duration::zero());
}

// Whether contested fids are owned by a publisher that has not answered, for which another process
// answers, or that has no slot.
bool Subscriptions::Impl::is_awaited(PublisherId id, PublisherConnection& connection) const {
    if (!assignment.is_contested(id)) return false;
    if (slots.is_waiting(id)) return true;
    const bool answers = connection.is_connected() && !connection.process.is_replaced();
    return connection.socket() != nullptr && !answers && !connection.socket()->wanted().empty();
}

// Ends the trials whose time has passed, or all.
void Subscriptions::Impl::end_trials(bool all) {
    const TimePoint now = transport.loop().now();
    std::erase_if(trials.current, [&](const Trial& trial) {
        const auto found = publishers.find(trial.id);
        if (found == publishers.end() || found->second->is_connected()) return true;
        if (!all && now < trial.since + options.socket.session.connect_timeout) return false;
        found->second->leave(1); // the tried address did not answer
        slots.release(trial.id);
        next_slice.start(Duration::zero());
        return true;
    });
}

void Subscriptions::Impl::try_claimants() {
    if (closing) return;
    if (!options.socket.key) return pass_to_next_claimants();
    const bool wanted = std::ranges::any_of(
        publishers, [this](const auto& each) { return is_awaited(each.first, *each.second); });
    end_trials(!wanted);
    if (!wanted) return;
    // In cyclic order from the one after the last.
    auto next = publishers.upper_bound(trials.last);
    for (std::size_t left = publishers.size();
         left > 0 && trials.current.size() < trial_limit && slots.has_free(); --left, ++next) {
        if (next == publishers.end()) next = publishers.begin();
        PublisherConnection& connection = *next->second;
        if (connection.socket() != nullptr || !assignment.is_contested(next->first)) continue;
        slots.take(next->first);
        open(connection);
        trials.last = next->first;
        trials.current.push_back({.id = next->first, .since = transport.loop().now()});
    }
    next_trial.start(options.socket.session.connect_timeout);
}

// Without keys any publisher that answers is accepted, so the claimants are asked one after the
// other, each for as long as an attempt at one address takes.
void Subscriptions::Impl::pass_to_next_claimants() {
    for (const PublisherId id : std::exchange(trials.waiting, {})) {
        const auto found = publishers.find(id);
        if (found != publishers.end() && is_awaited(id, *found->second))
            carry_out(assignment.yield(id, false).orders);
    }
    for (const auto& [id, connection] : publishers)
        if (is_awaited(id, *connection)) trials.waiting.insert(id);
    if (!trials.waiting.empty()) next_trial.start(options.socket.session.connect_timeout);
}

// The answering process has the name `named`, and its fids. Its connection continues, because a new
// one would begin in the middle of the stream. Its former name belongs to no connection, as long as
// the bus shows it.
void Subscriptions::Impl::recognise(PublisherConnection& answering, PublisherConnection& named,
                                    std::span<const FidRange> fids) {
    const std::vector<FidRange> former = assignment.claimed(answering.id());
    discovered.exchange_names(answering, named);
    const bool is_over = named.process.is_expired();
    if (is_over) drop(named.id());
    FidAssignment::Outcome outcome = assignment.claim(answering.id(), fids);
    if (!is_over) {
        FidAssignment::Outcome more = assignment.claim(named.id(), former);
        std::ranges::move(more.orders, std::back_inserter(outcome.orders));
        std::ranges::move(more.contests, std::back_inserter(outcome.contests));
    }
    carry_out(outcome);
}

// The announcement may have come before the answer.
bool Subscriptions::Impl::on_identified(PublisherConnection& connection) {
    if (closing) return true;
    if (PublisherConnection* const named = discovered.named_for(connection)) {
        const DestructionWatch watch{destroyed};
        recognise(connection, *named, assignment.claimed(named->id()));
        return !watch.destroyed();
    }
    // If a configured and a found publisher are the same, the configured one is asked for all fids.
    PublisherConnection* const twin = discovered.duplicate_of(connection);
    if (twin == nullptr) return true;
    const bool is_over = discovered.is_configured(twin->id());
    if (is_over) { // the twin brings its messages
        connection.leave();
        connection.forget({.first = Fid{0}, .last = Fid{UINT64_MAX}});
    }
    drop((is_over ? connection : *twin).id());
    return !is_over;
}

void Subscriptions::Impl::on_connected(PublisherConnection& connection) {
    if (!options.socket.key || closing) return;
    carry_out(assignment.reach(connection.id()).orders);
    schedule_trials();
}

// --- the end --------------------------------------------------------------------------------

void Subscriptions::Impl::on_closed(PublisherConnection& connection,
                                    const Subscriptions::Ending& ending, bool reached) {
    const PublisherId id = connection.id();
    const bool dropped = connection.process.is_expired() && !closing;
    const bool retrying = ending.retrying;
    const DestructionWatch watch{destroyed};
    user.handler.on_closed(user.subscriptions, connection.source(),
                           {.closed = ending.closed,
                            .retrying = ending.retrying && !dropped,
                            .complete = ending.complete});
    if (watch.destroyed()) return;
    if (!closing && publishers.count(id) > 0) {
        assignment.lose(id);
        schedule_trials();
        if (!retrying && discovered.knows(connection)) {
            slots.release(id);
            next_slice.start(Duration::zero());
            if (!reached) {
                if (options.socket.wait_for_publisher)
                    rejected.put(id, assignment.claimed(id),
                                 Subscriptions::refused_pause * options.socket.retry_limit);
                for (const FidRange& range : connection.socket()->wanted()) // for other publishers
                    connection.socket()->release(range);
            }
        }
        // A publisher that cannot be reached does not keep fids from others.
        if (dropped) {
            drop(id);
        } else if (connection.take_moved()) {
            connection.leave();
            carry_out(assignment.ask(id).orders);
        } else if (!reached) {
            carry_out(assignment.yield(id, !retrying).orders);
        }
    }
    check_ended();
}

void Subscriptions::Impl::close() {
    if (std::exchange(closing, true)) return;
    ended.cancel();
    for (const auto& [id, connection] : publishers) {
        SubscribeSocket* const socket = connection->socket();
        if (socket != nullptr && !connection->is_finished()) socket->close();
    }
    check_ended();
}

void Subscriptions::Impl::check_ended() {
    if (!closing && (options.bus != nullptr || assignment.empty())) return;
    const bool over = std::ranges::all_of(publishers, [](const auto& each) {
        return each.second->socket() == nullptr || each.second->is_finished();
    });
    if (over && !ended.armed()) ended.start(Duration::zero());
}

// --- the public class -----------------------------------------------------------------------

Subscriptions::Subscriptions(Transport& transport, Options options, Handler& handler)
    : impl_{std::make_unique<Impl>(transport, std::move(options), handler, *this)} {}

Subscriptions::~Subscriptions() {
    check_destructor(impl_->transport.loop(), "Subscriptions", impl_);
}

Subscriptions::Impl& Subscriptions::impl(const char* call) const noexcept {
    impl_->transport.loop().check_caller("Subscriptions", call);
    return *impl_;
}

void Subscriptions::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    impl().subscribe({&range, 1}, policy);
}

void Subscriptions::subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy) {
    impl().subscribe(ranges, policy);
}

void Subscriptions::unsubscribe(const FidRange& range) {
    impl().unsubscribe(range);
}

KeptBytes Subscriptions::keep(std::span<const std::byte> message) const {
    SubscribeSocket* const socket = impl().delivering;
    NETIO_CHECK_MSG(socket != nullptr, "keep() is for on_message");
    return socket->keep(message);
}

bool Subscriptions::may_keep_buffer() const {
    const SubscribeSocket* const socket = impl().delivering;
    return socket != nullptr && socket->may_keep_buffer();
}

std::vector<FidRange> Subscriptions::awaited(const FidRange& range) const {
    const SubscribeSocket* const socket = impl().delivering;
    return socket != nullptr ? socket->awaited(range) : std::vector<FidRange>{};
}

void Subscriptions::pause() {
    impl().set_paused(true);
}

void Subscriptions::resume() {
    impl().set_paused(false);
}

void Subscriptions::close() {
    impl().close();
}

std::vector<Subscriptions::PublisherStats> Subscriptions::publisher_stats() const {
    return impl().history.publisher_stats();
}

Subscriptions::Sums Subscriptions::sums() const {
    return impl().history.sums();
}

SubscriptionsSnapshot Subscriptions::snapshot(std::size_t fids) {
    return impl().history.snapshot(fids);
}

void Subscriptions::for_each(const std::function<void(const Source&, SubscribeSocket&)>& visit) {
    for (const auto& [id, connection] : impl().publishers)
        if (connection->socket() != nullptr) visit(connection->source(), *connection->socket());
}

std::size_t Subscriptions::connected_count() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        impl().publishers, [](const auto& each) { return each.second->is_connected(); }));
}

} // namespace netio::pubsub::inline v0_3
