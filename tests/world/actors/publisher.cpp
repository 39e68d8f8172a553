// SPDX-License-Identifier: Apache-2.0

// A process that publishes: buffered, unbuffered or explicit.

#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace netio::world {
namespace {

using pubsub::Fid;
using pubsub::FidRange;
using pubsub::SubscriberPeer;

constexpr std::size_t slot_count = 12;          // maximum publications in flight
constexpr std::int64_t queues_every = 8;        // messages
constexpr std::size_t least_page_bytes = 64;    // minimum memory of a page
constexpr std::size_t time_bytes = 8;           // that a message takes more with a time
constexpr std::size_t requests_of_a_world = 64; // maximum for one subscriber

class PublishActor final : public Actor, public pubsub::PublishSocket::Handler {
  public:
    PublishActor(World& world, Process& process);

    void behave() override;
    bool is_idle() const override;
    void probe() override;
    void close() override;
    bool is_closed() const override { return socket_ == nullptr || closed_; }
    bool serves() const override { return !is_closed() && !closing_since_; }
    bool ends_first() const override { return true; }
    std::string feature() const override;
    std::string state() const override;

  private:
    enum class Mode : std::uint8_t { buffered, unbuffered, explicitly };
    struct Flow {
        Flow(PublishActor& actor, const Step& step);
        // Fid of the next message: cycles through `fids` fids, beginning with `first`.
        std::uint64_t fid;
        std::uint64_t first;
        std::uint64_t fids;
        std::int64_t left;
        std::size_t bytes;
        std::uint8_t status;
        Duration gap;
        bool waits = false;   // waits for on_writable or for memory
        bool no_slot = false; // waits for memory
        Timer timer;
    };

    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override;
    void begin(const Step& step);
    void go_on(Flow& flow);
    void go_on_all();
    void memory_is_free();
    Status publish(Flow& flow);
    Status publish_from_slot(Flow& flow);
    bool waits_for_others(const Flow& flow) const;
    void resume_tickets();
    void abandon_tickets();
    void flush();
    void give_up_flows();
    void check_in_time(TimePoint since) const;
    void check_queues();
    Duration close_limit() const {
        return std::chrono::milliseconds{option("close_limit_ms", 60000)};
    }

    void on_subscriber_connected(pubsub::Publisher&, const SubscriberPeer& peer) override;
    void on_subscribed(pubsub::Publisher&, const SubscriberPeer&, const FidRange&) override;
    void on_unsubscribed(pubsub::Publisher&, const SubscriberPeer&, const FidRange&) override;
    void on_subscriber_closed(pubsub::Publisher&, const SubscriberPeer&, const Closed&) override;
    void on_writable(pubsub::Publisher&) override;
    void on_publish_completed(pubsub::PublishSocket&, Cookie cookie,
                              const pubsub::PublicationOutcome& outcome) override;
    void on_closed(pubsub::Publisher&, const Closed& closed) override;

    Mode mode_;
    bool sends_times_ = option("times") != 0;
    Timer retry_;
    std::vector<std::unique_ptr<Flow>> flows_;
    std::unique_ptr<RegisteredBuffer> memory_; // slots of slot_bytes_
    std::size_t slot_bytes_;
    std::vector<std::size_t> free_slots_;
    std::map<std::uint64_t, std::size_t> lent_; // slot by cookie
    std::uint64_t next_cookie_ = 1;
    std::vector<std::pair<std::uint64_t, pubsub::PublishTicket>> tickets_; // tickets by fid
    std::uint64_t partials_ = 0;
    std::vector<std::uint64_t> abandoned_; // the fids
    Timer abandoned_timer_;
    Timer slots_;
    std::map<std::uint64_t, TimePoint> peers_; // connected since
    std::optional<TimePoint> closing_since_;
    bool closed_ = false;
    pubsub::BufferedPublishSocket* buffered_ = nullptr;
    pubsub::PublishSocket* unbuffered_ = nullptr;
    std::unique_ptr<pubsub::Publisher> socket_; // last member: destroyed first
};

PublishActor::Flow::Flow(PublishActor& actor, const Step& step)
    : fid{static_cast<std::uint64_t>(step.with.get("fid"))}, first{fid},
      fids{static_cast<std::uint64_t>(step.with.get("fids", 1))}, left{step.with.get("count", 1)},
      bytes{static_cast<std::size_t>(step.with.get("bytes", 40))}, status{static_cast<std::uint8_t>(
                                                                       step.with.get("status"))},
      gap{std::chrono::microseconds{step.with.get("gap_us", 100)}}, timer{actor.process_.loop,
                                                                          [this, &actor] {
                                                                              actor.go_on(*this);
                                                                          }} {}

PublishActor::PublishActor(World& world, Process& process)
    : Actor{world, process}, mode_{static_cast<Mode>(option("mode"))}, retry_{process.loop,
                                                                              [this] {
                                                                                  go_on_all();
                                                                              }},
      slot_bytes_{static_cast<std::size_t>(option("slot_bytes", 4096))},
      abandoned_timer_{process.loop, [this] { abandon_tickets(); }}, slots_{process.loop, [this] {
                                                                                memory_is_free();
                                                                            }} {
    pubsub::Publisher::Options options;
    options.allow_remote_anonymous = true;
    for (std::int64_t i = 0; i < option("addresses", 1); ++i)
        options.listen.push_back(World::address_of(number_, i));
    options.keys = world_.keys_of_server(process.loop);
    if (sends_times_) options.time_stamps = StampClock::own;
    options.session = session_options(options.session);
    options.slow_policy = static_cast<pubsub::SlowPolicy>(option("policy"));
    options.disconnect_after = std::chrono::milliseconds{option("disconnect_ms", 10000)};
    options.largest_message_bytes = static_cast<std::size_t>(option("largest", 16 * 1024 * 1024));
    options.close_timeout = std::chrono::milliseconds{option("close_ms", 10000)};
    options.close_limit = std::chrono::duration_cast<std::chrono::milliseconds>(close_limit());
    if (mode_ == Mode::buffered) {
        pubsub::BufferedPublishSocket::Options all{.publisher = options};
        all.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 4096));
        all.page_count = static_cast<std::size_t>(option("pages", 16));
        all.queue_limit_bytes =
            std::min(static_cast<std::size_t>(option("share")) * all.page_size_bytes,
                     all.page_size_bytes * all.page_count / 2);
        all.watermark_bytes = static_cast<std::size_t>(option("watermark"));
        all.newest_bytes =
            static_cast<std::size_t>(option("newest", static_cast<std::int64_t>(all.newest_bytes)));
        all.flush_time = std::chrono::microseconds{option("flush_us", 40)};
        all.flush_when_idle = option("idle") != 0;
        all.history_limit_bytes = static_cast<std::size_t>(option("history"));
        auto made = std::make_unique<pubsub::BufferedPublishSocket>(process.transport, all, *this);
        buffered_ = made.get();
        socket_ = std::move(made);
    } else {
        pubsub::PublishSocket::Options all{.publisher = options};
        all.outstanding_limit = static_cast<std::size_t>(option("outstanding", 256));
        all.queue_limit_messages =
            std::min(static_cast<std::size_t>(option("remainder")), all.outstanding_limit / 2);
        memory_ = std::make_unique<RegisteredBuffer>(slot_count * slot_bytes_);
        for (std::size_t i = 0; i < slot_count; ++i)
            free_slots_.push_back(i);
        auto made = std::make_unique<pubsub::PublishSocket>(process.transport, all, *this);
        unbuffered_ = made.get();
        socket_ = std::move(made);
    }
    world_.pubsub().opens(number_, world_.incarnation_of(number_),
                          static_cast<Policy>(option("policy")), options.disconnect_after,
                          mode_ == Mode::explicitly);
    if (option("newest") != 0) world_.pubsub().keeps_little(number_);
    if (sends_times_) world_.pubsub().sends_times(number_);
    if (buffered_ != nullptr)
        world_.pubsub().keeps_history(number_, static_cast<std::size_t>(option("history")));
}

std::string PublishActor::feature() const {
    return mode_ == Mode::buffered     ? "buffered"
           : mode_ == Mode::unbuffered ? "unbuffered"
                                       : "explicit";
}

std::string PublishActor::state() const {
    if (closed_ || socket_ == nullptr) return "ended";
    if (closing_since_) return "closing";
    if (world_.pubsub().has_ticket(number_)) return "ticket-open";
    if (world_.pubsub().waits(number_)) return "again";
    if (world_.pubsub().has_backlog(number_)) return "backlog";
    return peers_.empty() ? "alone" : "quiet";
}

// --- publishing -----------------------------------------------------------------------------

void PublishActor::carry_out(const Step& step) {
    if (socket_ == nullptr) return;
    if (step.what == "publish") return begin(step);
    if (step.what == "flush" && buffered_ != nullptr) return buffered_->flush();
    if (step.what == "close") return close();
    if (step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        return abort();
    }
    if (step.what == "destroy") {
        world_.oracle().happens(Trouble::gone, number_);
        return destroy();
    }
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
}

void PublishActor::begin(const Step& step) {
    flows_.push_back(std::make_unique<Flow>(*this, step));
    go_on(*flows_.back());
}

void PublishActor::go_on(Flow& flow) {
    while (socket_ != nullptr && !closing_since_ && flow.left > 0) {
        const Status status = publish(flow);
        flow.waits = status == Status::again;
        if (flow.waits) {
            if (!flow.no_slot) react(Event::again);
            return;
        }
        --flow.left;
        if (flow.left % queues_every == 0) check_queues();
        flow.fid = flow.first + (flow.fid + 1 - flow.first) % flow.fids;
        if (status == Status::closed || status == Status::too_large) flow.left = 0;
        if (flow.gap > Duration{} && flow.left > 0) return flow.timer.start(flow.gap);
    }
}

void PublishActor::go_on_all() {
    const bool tickets_last = option("patient") != 0;
    if (!tickets_last) resume_tickets();
    for (std::size_t i = 0; i < flows_.size(); ++i)
        if (flows_[i]->waits) go_on(*flows_[i]);
    // Notifies flows that failed before that the fid is free again.
    if (tickets_last) resume_tickets();
    flush();
}

void PublishActor::memory_is_free() {
    for (std::size_t i = 0; i < flows_.size(); ++i)
        if (flows_[i]->waits && flows_[i]->no_slot) go_on(*flows_[i]);
}

Status PublishActor::publish(Flow& flow) {
    PubSubOracle& oracle = world_.pubsub();
    Status status = Status::ok;
    if (mode_ == Mode::buffered) {
        std::vector<std::byte> bytes(flow.bytes);
        fill(oracle.next(number_, flow.fid), bytes);
        const auto time = time_of(oracle.next(number_, flow.fid));
        status = sends_times_ && time
                     ? buffered_->publish_at(*time, Fid{flow.fid}, bytes, flow.status)
                     : buffered_->publish(Fid{flow.fid}, bytes, flow.status);
        if (status == Status::ok) oracle.accepted(number_, flow.fid, flow.bytes, flow.status);
    } else {
        if (flow.bytes > slot_bytes_) return Status::too_large;
        flow.no_slot = free_slots_.empty(); // of this actor, not of the socket
        if (flow.no_slot) return Status::again;
        status = publish_from_slot(flow);
    }
    note("publish", flow.fid, static_cast<std::uint64_t>(status));
    if (status == Status::no_subscribers)
        oracle.nobody_wants(number_, flow.fid, flow.bytes, flow.status);
    if (status == Status::again && !waits_for_others(flow)) oracle.refused(number_, flow.fid);
    return status;
}

// "A message that takes more than half of the memory, with 3 % for the heads of its pages, may have
// to wait until others have taken theirs."
// (docs/operations.md)
bool PublishActor::waits_for_others(const Flow& flow) const {
    const std::int64_t memory = option("page_size_bytes", 4096) * option("pages", 16);
    const auto bytes = static_cast<std::int64_t>(flow.bytes + (sends_times_ ? time_bytes : 0));
    return mode_ == Mode::buffered && 33 * bytes > 16 * memory;
}

Status PublishActor::publish_from_slot(Flow& flow) {
    PubSubOracle& oracle = world_.pubsub();
    const std::size_t slot = free_slots_.back();
    const Slice slice = memory_->slice(slot * slot_bytes_, flow.bytes);
    fill(oracle.next(number_, flow.fid), {slice.data, slice.size});
    pubsub::PublishSocket::Extras extras{.status = flow.status, .header = {}};
    if (sends_times_) extras.time = time_of(oracle.next(number_, flow.fid));
    const std::uint64_t cookie = next_cookie_++;
    Status status = Status::ok;
    pubsub::PublishTicket ticket;
    if (mode_ == Mode::explicitly) {
        auto attempt =
            unbuffered_->try_publishv(Fid{flow.fid}, {&slice, 1}, Cookie{cookie}, extras);
        status = attempt.status;
        ticket = std::move(attempt.ticket);
    } else {
        status = unbuffered_->publishv(Fid{flow.fid}, {&slice, 1}, Cookie{cookie}, extras);
    }
    if (status != Status::ok && status != Status::partial) return status;
    free_slots_.pop_back();
    lent_[cookie] = slot;
    world_.pipes().begins(number_, cookie,
                          2 * static_cast<std::size_t>(option("outstanding", 256)));
    oracle.accepted(number_, flow.fid, flow.bytes, flow.status);
    if (status == Status::partial) {
        oracle.ticket_opens(number_, flow.fid);
        const std::int64_t nth = option("abandons");
        if (nth != 0 && ++partials_ % static_cast<std::uint64_t>(nth) == 0) {
            note("abandon", flow.fid);
            abandoned_.push_back(flow.fid); // this call releases the ticket
            abandoned_timer_.start(std::chrono::milliseconds{1});
        } else {
            tickets_.emplace_back(flow.fid, std::move(ticket));
        }
        react(Event::partial);
    }
    return Status::ok;
}

// The library has sent the others by now.
void PublishActor::abandon_tickets() {
    for (const std::uint64_t fid : std::exchange(abandoned_, {})) {
        const bool another =
            std::ranges::any_of(tickets_, [&](const auto& entry) { return entry.first == fid; });
        if (!another) world_.pubsub().ticket_closes(number_, fid);
    }
}

void PublishActor::resume_tickets() {
    std::erase_if(tickets_, [this](auto& entry) {
        if (unbuffered_ == nullptr) return true;
        if (entry.second.is_open()) {
            const Status status = unbuffered_->resume(entry.second);
            note("resume", entry.first, static_cast<std::uint64_t>(status));
        }
        if (entry.second.is_open()) return false;
        world_.pubsub().ticket_closes(number_, entry.first);
        return true;
    });
}

// --- callbacks ------------------------------------------------------------------------------

void PublishActor::on_subscriber_connected(pubsub::Publisher&, const SubscriberPeer& peer) {
    note("subscriber_connected", connection_of(peer.address));
    peers_[connection_of(peer.address)] = world_.oracle().now();
    react(Event::connected);
}

void PublishActor::on_subscribed(pubsub::Publisher&, const SubscriberPeer& peer,
                                 const FidRange& range) {
    note("subscribed", connection_of(peer.address), to_integer(range.first));
    world_.pubsub().peer_subscribed(number_, connection_of(peer.address), fids_of(range));
    react(Event::subscribed);
}

void PublishActor::on_unsubscribed(pubsub::Publisher&, const SubscriberPeer& peer,
                                   const FidRange& range) {
    note("unsubscribed", connection_of(peer.address), to_integer(range.first));
    if (peer.gone) return; // not requested by the peer
    world_.pubsub().peer_unsubscribed(number_, connection_of(peer.address), fids_of(range));
    react(Event::unsubscribed);
}

void PublishActor::on_subscriber_closed(pubsub::Publisher&, const SubscriberPeer& peer,
                                        const Closed& closed) {
    const std::uint64_t connection = connection_of(peer.address);
    note("subscriber_closed", connection, static_cast<std::uint64_t>(closed.reason));
    const auto known = peers_.find(connection);
    const TimePoint since = known == peers_.end() ? world_.oracle().now() : known->second;
    peers_.erase(connection);
    world_.pubsub().peer_closed(number_, connection, closing_since_.has_value());
    world_.judge_end(number_, world_.network().process_of(connection), since, closed, dead_after());
    react(Event::peer_closed);
}

void PublishActor::on_writable(pubsub::Publisher&) {
    note("writable");
    world_.pubsub().writable(number_);
    if (react(Event::writable)) return;
    // Calls outside a handler, in a turn of its own, as many users do.
    retry_.start(Duration{});
}

void PublishActor::on_publish_completed(pubsub::PublishSocket&, Cookie cookie,
                                        const pubsub::PublicationOutcome& outcome) {
    const auto number = static_cast<std::uint64_t>(cookie);
    note("completed", number, outcome.sent);
    world_.pipes().ends(number_, number, "on_publish_completed");
    const auto slot = lent_.find(number);
    if (slot != lent_.end()) {
        std::fill_n(memory_->data() + slot->second * slot_bytes_, slot_bytes_, spoiled);
        free_slots_.push_back(slot->second);
        lent_.erase(slot);
    }
    if (react(Event::completed)) return;
    option("patient") != 0 ? slots_.start(Duration{}) : retry_.start(Duration{});
}

void PublishActor::on_closed(pubsub::Publisher&, const Closed& closed) {
    note("closed", static_cast<std::uint64_t>(closed.reason));
    if (std::exchange(closed_, true)) {
        world_.oracle().violate(RuleId::last_word, "the end of a publisher was reported twice");
    }
    world_.pubsub().closed(number_, closed.reason == CloseReason::orderly);
    if (closing_since_) check_in_time(*closing_since_);
    if (closed.reason != CloseReason::orderly && closing_since_ &&
        world_.oracle().now() < *closing_since_ + close_limit() &&
        world_.oracle().was_calm(*closing_since_)) {
        world_.oracle().violate(RuleId::close_is_confirmed,
                                "process " + std::to_string(number_) + " got " +
                                    std::string{to_string(closed.reason)} + ' ' + closed.detail);
    }
    if (closed.reason == CloseReason::orderly) {
        world_.pipes().all_ended(number_, "the publisher has closed");
    }
    react(Event::closed);
}

// A page, a publication or an answer separates two loss reports; a report has one count per fid.
void PublishActor::check_queues() {
    if (socket_ == nullptr) return;
    for (const pubsub::SubscriberSnapshot& each :
         socket_->snapshot({.fids = 0, .subscribers = peers_.size()}).subscribers) {
        const std::size_t waiting =
            mode_ == Mode::buffered ? each.waiting / least_page_bytes : each.waiting;
        const std::size_t entries = 2 * (waiting + requests_of_a_world) + 1;
        const std::size_t counts = entries * fid_count;
        if (each.queued <= entries && each.queued_counts <= counts) continue;
        world_.oracle().violate(RuleId::queue_is_limited,
                                "process " + std::to_string(number_) + " has queued " +
                                    std::to_string(each.queued) + " entries with " +
                                    std::to_string(each.queued_counts) + " counts for " +
                                    each.address + ", of which " + std::to_string(each.waiting) +
                                    " bytes or publications wait");
    }
}

// A clock that leaps runs ahead of the others, so a wait measured by it is shorter.
void PublishActor::check_in_time(TimePoint since) const {
    const Oracle& oracle = world_.oracle();
    const Duration away = oracle.lasted(Trouble::stopped, number_, since) +
                          oracle.lasted(Trouble::busy, number_, since);
    const Duration slack = std::chrono::seconds{2};
    if (oracle.now() - since <= close_limit() + away + slack) return;
    world_.oracle().violate(RuleId::close_is_bounded,
                            "process " + std::to_string(number_) +
                                " has closed for longer than its close_limit");
}

// --- the end --------------------------------------------------------------------------------

void PublishActor::behave() {
    Actor::behave();
    go_on_all();
    flush();
}

// A publisher without a flush time flushes explicitly.
void PublishActor::flush() {
    if (buffered_ == nullptr || option("flush_us", 40) != 0) return;
    buffered_->flush();
}

bool PublishActor::is_idle() const {
    if (is_closed() || closing_since_) return true;
    return tickets_.empty() &&
           std::ranges::all_of(flows_, [](const auto& flow) { return flow->left <= 0; });
}

void PublishActor::probe() {
    if (is_closed() || closing_since_) return;
    for (std::uint64_t fid = 0; fid < fid_count; ++fid) {
        Step step{.at_us = 0, .process = number_, .what = "publish", .with = {}};
        step.with.set("fid", static_cast<std::int64_t>(fid));
        begin(step);
    }
    flush();
}

void PublishActor::give_up_flows() {
    for (const auto& flow : flows_)
        flow->left = 0;
}

void PublishActor::close() {
    if (socket_ == nullptr || closing_since_) return;
    note("close");
    closing_since_ = world_.oracle().now();
    give_up_flows();
    tickets_.clear(); // the library finishes their publications
    world_.pubsub().begins_to_close(number_);
    socket_->close();
    react(Event::closing);
}

void PublishActor::abort() {
    if (socket_ == nullptr || closing_since_) return;
    note("abort");
    world_.oracle().happens(Trouble::gone, number_);
    closing_since_ = world_.oracle().now();
    give_up_flows();
    world_.pubsub().begins_to_close(number_);
    socket_->abort();
}

void PublishActor::destroy() {
    note("destroy");
    give_up_flows();
    world_.pubsub().vanishes(number_);
    world_.pipes().forget(number_);
    tickets_.clear();
    buffered_ = nullptr;
    unbuffered_ = nullptr;
    socket_.reset();
}

} // namespace

std::unique_ptr<Actor> make_publisher(World& world, Process& process) {
    return std::make_unique<PublishActor>(world, process);
}

} // namespace netio::world
