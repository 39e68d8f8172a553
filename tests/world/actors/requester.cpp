// SPDX-License-Identifier: Apache-2.0

// Processes that send requests to one responder: many at a time, with time limits, of which some
// are canceled. A user that is paused takes no replies.

#include "netio/messages/requester.hpp"

#include "tests/world/actors/actor.hpp"
#include "tests/world/dice.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A reply is seen within this time after the deadline of its request.
constexpr Duration look_after = milliseconds{60};
constexpr milliseconds again_after{3};
constexpr milliseconds probe_timeout{60'000};

class RequesterActor final : public Actor {
  public:
    RequesterActor(World& world, Process& process);

    void behave() override;
    bool is_idle() const override;
    void probe() override;
    void check_served() override;
    void close() override;
    bool is_closed() const override { return closing_ || requester_ == nullptr; }
    bool ends_first() const override { return true; }
    std::string feature() const override { return "requester"; }
    std::string state() const override;
    void pause(Duration time) override;

  private:
    struct Asked {
        std::uint64_t number;
        Reply reply;
        bool is_ended = false;
        bool is_over = false; // its last message was taken
    };
    struct Flow {
        Flow(RequesterActor& actor, const Step& step);
        std::int64_t left;
        std::size_t bytes;
        Duration gap;
        std::int64_t timeout_ms; // -1: that of the requester
        bool waits = false;
        Timer timer;
    };
    struct Kept {
        KeptBytes bytes;
        std::vector<std::byte> expected;
    };
    // At its time: looks whether the request has ended, or does not want it any more.
    struct Due {
        std::uint64_t number;
        bool cancels;
    };

    void carry_out(const Step& step) override;
    // Not during on_ready.
    void destroy() override;
    void abort() override { destroy(); }
    void end_now();
    Requester::Options options();

    void go_on(Flow& flow);
    bool send(std::size_t bytes, std::int64_t timeout_ms);
    bool is_refused_rightly(std::size_t bytes) const;
    void plan(std::uint64_t number, Duration timeout);
    void add_due(TimePoint when, Due due);
    void do_what_is_due();
    // `destroys`: the Reply, and with it `asked`.
    void cancel(Asked& asked, bool destroys);
    void cancel_some(std::size_t count, bool destroys);
    void on_ready();
    void look();
    void look_at(Asked& asked);
    void see_end(Asked& asked);
    void take_all(Asked& asked);
    bool take_next(Asked& asked);
    void keep(const KeptBytes& part);
    void release_kept(std::size_t left);
    void check_arrived();
    void check_counts();
    std::size_t untaken() const;
    Asked* find(std::uint64_t number);
    void violate(RuleId rule, const std::string& what);
    std::size_t reply_limit() const {
        return static_cast<std::size_t>(option("reply_limit", 1 << 20));
    }
    std::size_t largest() const { return static_cast<std::size_t>(option("largest", 32'768)); }

    std::uint32_t server_;
    Duration slow_;
    bool closing_ = false;
    bool behaves_ = false; // from the same time for all
    Dice dice_;
    Timer due_;
    Timer resume_;
    Timer end_;
    std::multimap<TimePoint, Due> agenda_;
    std::vector<std::unique_ptr<Flow>> flows_;
    std::vector<Kept> kept_;
    std::vector<std::unique_ptr<Asked>> asked_; // in the order of the calls
    std::map<Ended, std::uint64_t> counts_;
    std::size_t dropped_ = 0; // untaken bytes of replies that were destroyed since the last look
    std::optional<std::uint64_t> last_probe_;
    std::unique_ptr<Requester> requester_; // last member: destroyed first
};

RequesterActor::Flow::Flow(RequesterActor& actor, const Step& step)
    : left{step.with.get("count", 1)}, bytes{static_cast<std::size_t>(step.with.get("bytes", 100))},
      gap{microseconds{step.with.get("gap_us", 0)}}, timeout_ms{step.with.get("timeout_ms", -1)},
      timer{actor.process_.loop, [this, &actor] { actor.go_on(*this); }} {}

RequesterActor::RequesterActor(World& world, Process& process)
    : Actor{world, process}, server_{static_cast<std::uint32_t>(option("of"))},
      slow_{microseconds{option("slow_us")}}, dice_{static_cast<std::uint64_t>(number_) * 37 + 5},
      due_{process.loop, [this] { do_what_is_due(); }}, resume_{process.loop, [this] { look(); }},
      end_{process.loop, [this] { end_now(); }},
      requester_{std::make_unique<Requester>(AddressList{World::address_of(server_)}, options())} {}

Requester::Options RequesterActor::options() {
    Requester::Options options;
    options.context.emplace(process_.transport);
    options.request_timeout = milliseconds{option("request_ms", 60'000)};
    options.outstanding_limit = static_cast<std::size_t>(option("outstanding", 1000));
    options.queue_limit_bytes = static_cast<std::size_t>(option("queue", 1 << 20));
    options.reply_limit_bytes = reply_limit();
    options.key = world_.key_of(number_);
    options.on_ready = [this] { on_ready(); };
    MessageSocket::Options& socket = options.socket;
    socket.session.receive_buffer_bytes = 1000;
    socket.session.receive_count = 8;
    socket.session = session_options(socket.session);
    socket.retry_interval = milliseconds{option("retry_ms", 250)};
    socket.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 600));
    socket.page_count = static_cast<std::size_t>(option("pages", 16));
    socket.largest_message_bytes = largest();
    return options;
}

std::string RequesterActor::state() const {
    if (requester_ == nullptr || closing_) return "over";
    if (resume_.armed()) return "paused";
    if (std::ranges::any_of(flows_, [](const auto& flow) { return flow->waits; })) return "again";
    const bool connected = requester_->stats().connected;
    if (asked_.empty()) return connected ? "quiet" : "apart";
    return connected ? "waiting" : "waiting-apart";
}

void RequesterActor::violate(RuleId rule, const std::string& what) {
    world_.oracle().violate(rule, "process " + std::to_string(number_) + ": " + what);
}

// --- actions --------------------------------------------------------------------------------

void RequesterActor::carry_out(const Step& step) {
    if (step.what == "request") {
        flows_.push_back(std::make_unique<Flow>(*this, step));
        go_on(*flows_.back());
    } else if (step.what == "cancel") {
        cancel_some(static_cast<std::size_t>(step.with.get("count", 1)),
                    step.with.get("drops") != 0);
    } else if (step.what == "busy") {
        dawdle(microseconds{step.with.get("us")});
    } else if (step.what == "pause") {
        pause(microseconds{step.with.get("us")});
    } else if (step.what == "close") {
        close();
    } else if (step.what == "destroy" || step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
}

void RequesterActor::go_on(Flow& flow) {
    flow.waits = false;
    while (flow.left > 0 && !closing_ && requester_ != nullptr) {
        if (!send(flow.bytes, flow.timeout_ms)) {
            flow.waits = true;
            return flow.timer.start(again_after);
        }
        --flow.left;
        if (flow.gap > Duration{}) return flow.timer.start(flow.gap);
    }
}

bool RequesterActor::send(std::size_t bytes, std::int64_t timeout_ms) {
    const std::uint64_t number = world_.requests().next();
    std::vector<std::byte> message(std::max(bytes, RequestOracle::least_bytes));
    world_.requests().fill_request(number, message);
    const bool must_be_refused =
        requester_->stats().outstanding >= static_cast<std::size_t>(option("outstanding", 1000));
    const milliseconds timeout{timeout_ms >= 0 ? timeout_ms : option("request_ms", 60'000)};
    try {
        Reply reply =
            timeout_ms >= 0 ? requester_->send(message, timeout) : requester_->send(message);
        std::ranges::fill(message, spoiled);
        note("request", number, message.size());
        asked_.push_back(
            std::make_unique<Asked>(Asked{.number = number, .reply = std::move(reply)}));
    } catch (const Error& error) {
        note("again");
        if (error.status() != Status::again || !is_refused_rightly(message.size()))
            violate(RuleId::request_limits, std::string{"a request was refused: "} + error.what());
        react(Event::again);
        return false;
    }
    if (must_be_refused)
        violate(RuleId::request_limits, "a request was accepted beyond outstanding_limit");
    world_.requests().accepted(number_, server_, message.size(), process_.loop.now(), timeout);
    plan(number, timeout);
    return true;
}

bool RequesterActor::is_refused_rightly(std::size_t bytes) const {
    constexpr std::size_t extra = 64 + 16; // for each, and its header
    const Requester::Stats stats = requester_->stats();
    return stats.outstanding >= static_cast<std::size_t>(option("outstanding", 1000)) ||
           (stats.queued_bytes > 0 && stats.queued_bytes + bytes + extra >
                                          static_cast<std::size_t>(option("queue", 1 << 20)));
}

void RequesterActor::plan(std::uint64_t number, Duration timeout) {
    add_due(process_.loop.now() + timeout + look_after, {.number = number, .cancels = false});
    if (behaves_ || !dice_.percent(option("cancel_percent"))) return;
    const microseconds after{dice_.percent(30) ? 0 : dice_.while_us() % 100'000};
    add_due(process_.loop.now() + after, {.number = number, .cancels = true});
}

void RequesterActor::add_due(TimePoint when, Due due) {
    agenda_.emplace(when, due);
    due_.start_at(agenda_.begin()->first);
}

void RequesterActor::do_what_is_due() {
    while (!agenda_.empty() && agenda_.begin()->first <= process_.loop.now()) {
        const Due due = agenda_.extract(agenda_.begin()).mapped();
        Asked* const asked = find(due.number);
        if (asked == nullptr) continue;
        if (due.cancels) {
            if (!behaves_) cancel(*asked, dice_.percent(40));
            continue;
        }
        if (asked->reply.end() == RequestEnd::open) {
            world_.requests().is_open(due.number, process_.loop.now());
        } else if (!asked->is_ended && !resume_.armed() &&
                   world_.oracle().was_free(number_, world_.oracle().now() - milliseconds{200})) {
            violate(RuleId::request_notified,
                    "the end of request " + std::to_string(due.number) + " was not reported");
        }
    }
    if (!agenda_.empty()) due_.start_at(agenda_.begin()->first);
}

void RequesterActor::cancel(Asked& asked, bool destroys) {
    note("cancel", asked.number, destroys ? 1 : 0);
    if (!asked.is_ended && asked.reply.end() == RequestEnd::open)
        world_.requests().cancels(asked.number);
    if (!destroys) {
        asked.reply.cancel();
        if (asked.reply.end() == RequestEnd::open)
            violate(RuleId::request_canceled, "a request is open after cancel()");
        return see_end(asked);
    }
    // The user sees nothing more of it.
    asked.reply.cancel();
    see_end(asked);
    dropped_ += world_.requests().untaken_cost(asked.number);
    std::erase_if(asked_, [&](const auto& each) { return each.get() == &asked; });
}

void RequesterActor::cancel_some(std::size_t count, bool destroys) {
    std::vector<std::uint64_t> numbers;
    for (const auto& asked : asked_)
        if (numbers.size() < count) numbers.push_back(asked->number);
    for (const std::uint64_t number : numbers)
        if (Asked* const asked = find(number)) cancel(*asked, destroys);
}

void RequesterActor::pause(Duration time) {
    note("pause");
    world_.oracle().lasts(Trouble::busy, number_, time);
    resume_.start(time);
}

RequesterActor::Asked* RequesterActor::find(std::uint64_t number) {
    const auto found = std::ranges::find_if(
        asked_, [&](const std::unique_ptr<Asked>& asked) { return asked->number == number; });
    return found == asked_.end() ? nullptr : found->get();
}

// --- what has happened ----------------------------------------------------------------------

void RequesterActor::on_ready() {
    note("ready");
    if (!resume_.armed()) look();
}

void RequesterActor::look() {
    for (const auto& asked : asked_)
        see_end(*asked);
    check_arrived();
    for (std::size_t i = 0; i < asked_.size(); ++i)
        take_all(*asked_[i]);
    std::erase_if(asked_, [](const auto& asked) { return asked->is_over; });
    dropped_ = 0;
    check_counts();
    dawdle(slow_);
}

// Whole replies have arrived, and the user has not taken them yet.
void RequesterActor::check_arrived() {
    if (requester_ == nullptr) return;
    std::size_t least = 0;
    for (const auto& asked : asked_)
        if (asked->reply.end() == RequestEnd::replied)
            least += world_.requests().untaken_cost(asked->number);
    if (requester_->stats().reply_bytes < least)
        violate(RuleId::reply_limit, std::to_string(requester_->stats().reply_bytes) +
                                         " bytes of replies, and " + std::to_string(least) +
                                         " have arrived");
}

void RequesterActor::see_end(Asked& asked) {
    const RequestEnd end = asked.reply.end();
    if (end == RequestEnd::open) return;
    const auto how = static_cast<Ended>(end);
    world_.requests().ended(asked.number, how, process_.loop.now(), newest_connection());
    if (std::exchange(asked.is_ended, true)) return;
    note("ended", asked.number, static_cast<std::uint64_t>(end));
    ++counts_[how];
    const std::size_t may_be_held = untaken() + dropped_;
    if (how == Ended::too_large && world_.requests().has_arrived(asked.number) &&
        may_be_held <= reply_limit())
        violate(RuleId::request_too_large, "request " + std::to_string(asked.number) +
                                               ": all replies have " + std::to_string(may_be_held) +
                                               " bytes");
}

std::size_t RequesterActor::untaken() const {
    std::size_t sum = 0;
    for (const auto& asked : asked_)
        sum += world_.requests().untaken_cost(asked->number);
    return sum;
}

void RequesterActor::take_all(Asked& asked) {
    while (asked.reply.is_ready())
        if (!take_next(asked)) break;
    if (asked.is_ended && !asked.is_over)
        violate(RuleId::reply_whole, "a reply has ended, and next() would wait");
    if (asked.is_over) react(Event::completed);
}

bool RequesterActor::take_next(Asked& asked) {
    std::string why;
    try {
        if (const std::optional<KeptBytes> part = asked.reply.next()) {
            note("part", asked.number, part->size());
            world_.requests().taken(asked.number, part->bytes());
            keep(*part);
            react(Event::message);
            return true;
        }
    } catch (const RequestError& error) {
        why = error.what();
        if (error.end() != asked.reply.end() ||
            why.find(to_string(World::address_of(server_))) == std::string::npos)
            violate(RuleId::request_ends_once, "it ends with another error: " + why);
    } catch (const Error& error) {
        violate(RuleId::reply_whole,
                std::string{"next() of a reply that is ready: "} + error.what());
    }
    asked.is_over = true;
    world_.requests().is_over(asked.number, why, largest() - 16);
    return false;
}

void RequesterActor::keep(const KeptBytes& part) {
    if (behaves_ || !dice_.percent(option("keep_percent"))) return;
    kept_.push_back({.bytes = part, .expected = {part.bytes().begin(), part.bytes().end()}});
    if (kept_.size() > 20) release_kept(static_cast<std::size_t>(dice_.between(0, 19)));
}

void RequesterActor::release_kept(std::size_t left) {
    while (kept_.size() > left) {
        const Kept kept = std::move(kept_.back());
        kept_.pop_back();
        if (!std::ranges::equal(kept.bytes.bytes(), kept.expected))
            violate(RuleId::kept_stays, "a part of a reply has changed");
    }
}

void RequesterActor::check_counts() {
    if (requester_ == nullptr) return;
    const Requester::Stats stats = requester_->stats();
    const auto open = static_cast<std::size_t>(std::ranges::count_if(
        asked_, [](const auto& asked) { return asked->reply.end() == RequestEnd::open; }));
    const std::uint64_t failed =
        counts_[Ended::no_reply] + counts_[Ended::failed] + counts_[Ended::too_large];
    // One that ended during this look is seen in the next.
    const bool is_news = std::ranges::any_of(asked_, [](const auto& asked) {
        return !asked->is_ended && asked->reply.end() != RequestEnd::open;
    });
    if (!is_news && (stats.outstanding != open || stats.replied != counts_[Ended::replied] ||
                     stats.timed_out != counts_[Ended::timed_out] ||
                     stats.canceled != counts_[Ended::canceled] ||
                     stats.disconnected != counts_[Ended::disconnected] || stats.failed != failed))
        violate(RuleId::request_counts,
                std::to_string(open) + " are open, it says " + std::to_string(stats.outstanding));
    if (stats.reply_bytes > reply_limit() || stats.reply_bytes > untaken())
        violate(RuleId::reply_limit, std::to_string(stats.reply_bytes) + " bytes of replies, of " +
                                         std::to_string(untaken()) + " that may have arrived");
}

// --- the end --------------------------------------------------------------------------------

void RequesterActor::behave() {
    Actor::behave();
    behaves_ = true;
    slow_ = Duration{};
    release_kept(0);
    resume_.cancel();
    look();
}

bool RequesterActor::is_idle() const {
    if (closing_ || requester_ == nullptr || !world_.serves(server_)) return true;
    return asked_.empty() &&
           std::ranges::all_of(flows_, [](const auto& flow) { return flow->left <= 0; });
}

void RequesterActor::probe() {
    if (closing_ || requester_ == nullptr) return;
    const std::uint64_t number = world_.requests().next();
    last_probe_.reset();
    if (send(100, probe_timeout.count())) last_probe_ = number;
}

void RequesterActor::check_served() {
    if (closing_ || requester_ == nullptr || !world_.serves(server_)) return;
    const Ended end = last_probe_ ? world_.requests().end_of(*last_probe_) : Ended::open;
    // A reply that is too large for it ends as failed.
    if (end != Ended::replied && end != Ended::too_large && end != Ended::failed)
        violate(RuleId::served_in_the_end, "its last request has no reply");
    if (requester_->stats().reply_bytes != 0)
        violate(RuleId::reply_limit, "bytes of replies are counted, and all were taken");
}

void RequesterActor::close() {
    if (std::exchange(closing_, true) || requester_ == nullptr) return;
    note("close");
    react(Event::closing);
    world_.requests().ends(number_);
    requester_->close();
    // They have ended now, without a further notification.
    for (const auto& asked : asked_)
        see_end(*asked);
    resume_.start(Duration::zero());
}

void RequesterActor::destroy() {
    note("destroy");
    end_.start(Duration::zero());
}

// Replies may outlive their requester.
void RequesterActor::end_now() {
    world_.oracle().happens(Trouble::gone, number_);
    world_.requests().ends(number_);
    requester_.reset();
    look();
    for (const auto& asked : asked_)
        violate(RuleId::request_ends_once, "request " + std::to_string(asked->number) +
                                               " is open after the end of its requester");
}

} // namespace

std::unique_ptr<Actor> make_requester(World& world, Process& process) {
    return std::make_unique<RequesterActor>(world, process);
}

} // namespace netio::world
