// SPDX-License-Identifier: Apache-2.0

// Processes that reply to requests: after a while, in any order and in several parts, or with a
// failure, or not at all; and some go on with requests that are not wanted any more.

#include "netio/messages/responder.hpp"

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

constexpr milliseconds again_after{3};

class ResponderActor final : public Actor {
  public:
    ResponderActor(World& world, Process& process);

    void behave() override;
    bool is_idle() const override { return jobs_.empty(); }
    void check_served() override;
    void close() override;
    bool is_closed() const override { return responder_ == nullptr || is_reported_closed_; }
    bool serves() const override { return responder_ != nullptr && !closing_; }
    std::string feature() const override { return "responder"; }
    std::string state() const override;
    void pause(Duration time) override;

  private:
    enum class Fate : std::uint8_t { reply, fail, drop, hold };
    struct Job {
        std::uint64_t number;
        std::uint64_t connection;
        Request request;
        Fate fate = Fate::reply;
        std::size_t part = 0; // of the reply, the next one
        std::size_t parts = 1;
        std::size_t largest = 0;
        bool has_left = false; // a reply has ended it
    };

    void carry_out(const Step& step) override;
    // Not during on_ready.
    void destroy() override;
    void abort() override { destroy(); }
    void end_now();
    Responder::Options options();

    void on_ready();
    void take();
    void begin(Request request);
    void plan(Job& job);
    void go_on_later(const Job& job, Duration after);
    void do_what_is_due();
    // Whether the job is over.
    bool go_on(Job& job);
    bool answer(Job& job);
    bool reply(Job& job);
    bool fail(Job& job, std::size_t bytes);
    bool is_refused(Job& job, const Error& error, std::size_t bytes);
    void finish(std::uint64_t number);
    bool excuses(const Job& job) const;
    void check_limits();
    void violate(RuleId rule, const std::string& what);
    std::size_t request_limit() const { return static_cast<std::size_t>(option("requests", 64)); }
    std::size_t request_limit_bytes() const {
        return static_cast<std::size_t>(option("request_bytes", 1 << 20));
    }
    milliseconds send_timeout() const { return milliseconds{option("send_timeout_ms", 10'000)}; }

    bool closing_ = false;
    bool is_reported_closed_ = false;
    bool behaves_ = false; // from the same time for all
    TimePoint free_since_; // of the limits of open requests
    Dice dice_;
    Timer due_;
    Timer resume_;
    Timer end_;
    std::multimap<TimePoint, std::uint64_t> agenda_;   // when a job goes on
    std::map<std::uint64_t, Job> jobs_;                // by the number of the request
    std::map<std::uint64_t, TimePoint> blocked_since_; // connections that take no replies
    std::unique_ptr<Responder> responder_;             // last member: destroyed first
};

ResponderActor::ResponderActor(World& world, Process& process)
    : Actor{world, process}, dice_{static_cast<std::uint64_t>(number_) * 41 + 3},
      due_{process.loop, [this] { do_what_is_due(); }}, resume_{process.loop, [this] { take(); }},
      end_{process.loop, [this] { end_now(); }},
      responder_{std::make_unique<Responder>(AddressList{World::address_of(number_)}, options())} {
    world.requests().responder_begins(number_);
}

Responder::Options ResponderActor::options() {
    Responder::Options options;
    options.context.emplace(process_.transport);
    options.request_limit = request_limit();
    options.request_limit_bytes = request_limit_bytes();
    options.reply_queue_limit_bytes = static_cast<std::size_t>(option("queue", 1 << 20));
    options.send_timeout = send_timeout();
    options.allow_remote_anonymous = true;
    options.keys = world_.keys_of_server(process_.loop);
    options.on_ready = [this] { on_ready(); };
    MessageSocket::Options& socket = options.socket;
    socket.session.receive_buffer_bytes = 1000;
    socket.session.receive_count = 8;
    socket.session = session_options(socket.session);
    socket.session.close_limit = milliseconds{option("close_limit_ms", 60'000)};
    socket.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 600));
    socket.page_count = static_cast<std::size_t>(option("pages", 16));
    socket.largest_message_bytes = static_cast<std::size_t>(option("largest", 32'768));
    return options;
}

std::string ResponderActor::state() const {
    if (responder_ == nullptr) return "over";
    if (closing_) return "closing";
    if (resume_.armed()) return "paused";
    const Responder::Stats stats = responder_->stats();
    if (stats.open >= request_limit()) return "full";
    if (!blocked_since_.empty()) return "again";
    if (stats.open > 0) return "busy";
    return stats.peers > 0 ? "quiet" : "alone";
}

void ResponderActor::violate(RuleId rule, const std::string& what) {
    world_.oracle().violate(rule, "process " + std::to_string(number_) + ": " + what);
}

// --- actions --------------------------------------------------------------------------------

void ResponderActor::carry_out(const Step& step) {
    if (step.what == "busy") {
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

// Takes no requests; they wait, up to the limits.
void ResponderActor::pause(Duration time) {
    note("pause");
    world_.oracle().lasts(Trouble::busy, number_, time);
    resume_.start(time);
}

void ResponderActor::on_ready() {
    note("ready");
    if (closing_ && responder_->is_closed()) is_reported_closed_ = true;
    if (!resume_.armed()) take();
}

void ResponderActor::take() {
    if (responder_ == nullptr) return;
    check_limits();
    while (jobs_.size() < static_cast<std::size_t>(option("depth", 1000))) {
        std::optional<Request> request = responder_->receive(milliseconds{0});
        if (!request) break;
        begin(*std::move(request));
        react(Event::message);
    }
    for (auto& [number, job] : jobs_)
        if (!job.has_left)
            world_.requests().is_held(number, job.request.is_canceled(), free_since_);
    check_limits();
}

void ResponderActor::begin(Request request) {
    const std::uint64_t connection = connection_of(request.peer_address());
    const std::uint64_t number = RequestOracle::number_in(request.bytes());
    note("arrived", number, connection);
    world_.requests().arrived(number_, connection, request.bytes());
    if (jobs_.contains(number)) return;
    Job& job =
        jobs_
            .emplace(number,
                     Job{.number = number, .connection = connection, .request = std::move(request)})
            .first->second;
    plan(job);
    go_on_later(job, behaves_ || dice_.percent(30)
                         ? Duration::zero()
                         : Duration{microseconds{dice_.between(0, option("think_us", 1000))}});
}

void ResponderActor::plan(Job& job) {
    job.parts = static_cast<std::size_t>(dice_.between(1, option("parts", 3)));
    job.largest = static_cast<std::size_t>(option("reply_bytes", 200));
    const std::int64_t draw = dice_.between(0, 99);
    const std::int64_t odd = behaves_ ? 0 : option("odd_percent");
    if (draw >= odd) return;
    job.fate = draw < odd / 3 ? Fate::fail : draw < 2 * odd / 3 ? Fate::drop : Fate::hold;
}

void ResponderActor::go_on_later(const Job& job, Duration after) {
    agenda_.emplace(process_.loop.now() + after, job.number);
    due_.start_at(agenda_.begin()->first);
}

void ResponderActor::do_what_is_due() {
    while (!agenda_.empty() && agenda_.begin()->first <= process_.loop.now()) {
        const auto found = jobs_.find(agenda_.extract(agenda_.begin()).mapped());
        if (found == jobs_.end() || !go_on(found->second)) continue;
        finish(found->first);
        react(Event::completed);
    }
    if (!agenda_.empty()) due_.start_at(agenda_.begin()->first);
    if (!resume_.armed()) take();
}

// --- replies --------------------------------------------------------------------------------

bool ResponderActor::go_on(Job& job) {
    check_limits();
    const bool is_canceled = job.request.is_canceled();
    world_.requests().is_held(job.number, is_canceled, free_since_);
    if (is_canceled && dice_.percent(60)) return true;
    if (job.fate == Fate::hold && !behaves_ && !is_canceled) {
        go_on_later(job, microseconds{dice_.between(1'000, 300'000)});
        return false;
    }
    if (job.fate == Fate::drop && !behaves_) return true;
    return answer(job);
}

bool ResponderActor::answer(Job& job) {
    const bool is_over = job.fate == Fate::fail
                             ? fail(job, static_cast<std::size_t>(dice_.between(0, 6000)))
                             : reply(job);
    if (!is_over) return false;
    // A request that has ended takes nothing.
    if (dice_.percent(10) && job.request.reply("once more"))
        violate(RuleId::reply_accepted,
                "request " + std::to_string(job.number) + " was replied to twice");
    return true;
}

// Parts until the reply is complete or must wait.
bool ResponderActor::reply(Job& job) {
    for (;;) {
        const bool is_last = job.part + 1 >= job.parts;
        std::vector<std::byte> bytes(static_cast<std::size_t>(
            dice_.percent(20) ? 0 : dice_.between(0, static_cast<std::int64_t>(job.largest))));
        fill(RequestOracle::name_of_part(job.number, job.part), bytes);
        bool is_given = false;
        try {
            is_given = is_last ? job.request.reply(bytes) : job.request.reply_part(bytes);
        } catch (const Error& error) {
            return is_refused(job, error, bytes.size());
        }
        std::ranges::fill(bytes, spoiled);
        note(is_given ? "part" : "not_given", job.number, job.part);
        if (!is_given) {
            world_.requests().not_given(job.number, job.request.is_canceled(), excuses(job));
            return true;
        }
        blocked_since_.erase(job.connection);
        world_.requests().part_given(job.number, bytes.size(), is_last);
        ++job.part;
        job.has_left = is_last;
        if (is_last) return true;
        if (behaves_ || dice_.percent(50)) continue;
        go_on_later(job, microseconds{dice_.between(0, option("think_us", 1000))});
        return false;
    }
}

bool ResponderActor::fail(Job& job, std::size_t bytes) {
    try {
        const bool is_given = job.request.fail(RequestOracle::text_of_failure(job.number, bytes));
        note(is_given ? "failed" : "not_given", job.number);
        if (is_given) {
            job.has_left = true;
            world_.requests().failure_given(job.number, bytes);
        } else {
            world_.requests().not_given(job.number, job.request.is_canceled(), excuses(job));
        }
        return true;
    } catch (const Error& error) {
        return is_refused(job, error, 0);
    }
}

bool ResponderActor::is_refused(Job& job, const Error& error, std::size_t bytes) {
    static constexpr std::string_view mark = "the limit is ";
    const std::string why = error.what();
    if (error.status() == Status::again) {
        free_since_ = world_.oracle().now();
        note("again", job.number);
        blocked_since_.emplace(job.connection, process_.loop.now());
        go_on_later(job, again_after);
        react(Event::again);
        return false;
    }
    const std::size_t place = why.find(mark);
    const bool is_right = error.status() == Status::too_large && place != std::string::npos &&
                          bytes > std::stoull(why.substr(place + mark.size()));
    note("too_large", job.number, bytes);
    if (!is_right)
        violate(RuleId::reply_accepted,
                "a reply of " + std::to_string(bytes) + " bytes was refused: " + why);
    if (dice_.percent(50)) return fail(job, bytes);
    job.largest = std::min<std::size_t>(job.largest / 2, 64);
    if (job.largest < 16) job.largest = 0;
    go_on_later(job, Duration::zero());
    return false;
}

// Its requester may have been disconnected because it has received nothing for too long.
bool ResponderActor::excuses(const Job& job) const {
    const auto found = blocked_since_.find(job.connection);
    return closing_ || responder_ == nullptr ||
           (found != blocked_since_.end() && process_.loop.now() - found->second >= send_timeout());
}

void ResponderActor::finish(std::uint64_t number) {
    const auto found = jobs_.find(number);
    if (found == jobs_.end()) return;
    if (!found->second.has_left && !found->second.request.is_canceled())
        world_.requests().given_up(number);
    note("over", number);
    jobs_.erase(found);
}

void ResponderActor::check_limits() {
    if (responder_ == nullptr) return;
    const Responder::Stats stats = responder_->stats();
    std::map<std::uint64_t, std::size_t> of_peer;
    std::size_t canceled = 0;
    std::size_t held = 0;
    std::size_t bytes = 0;
    for (const auto& [number, job] : jobs_) {
        if (job.has_left) continue;
        ++held;
        ++of_peer[job.connection];
        bytes += job.request.size();
        canceled += job.request.is_canceled() ? 1U : 0U;
    }
    const std::size_t half = std::max<std::size_t>(1, request_limit() / 2);
    if (stats.open >= half || stats.waiting > 0 || bytes >= request_limit_bytes())
        free_since_ = world_.oracle().now();
    if (stats.open > request_limit() ||
        std::ranges::any_of(of_peer, [&](const auto& each) { return each.second > half; }))
        violate(RuleId::responder_limits, std::to_string(stats.open) + " requests are open");
    if (stats.open != held + stats.waiting ||
        stats.requests !=
            stats.replied + stats.failed + stats.no_reply + stats.canceled + stats.open - canceled)
        violate(RuleId::request_counts, "of " + std::to_string(stats.requests) + " requests, " +
                                            std::to_string(stats.open) + " are open, " +
                                            std::to_string(held) + " are in use");
}

// --- the end --------------------------------------------------------------------------------

void ResponderActor::behave() {
    Actor::behave();
    behaves_ = true;
    resume_.cancel();
    check_limits();
    for (auto& [number, job] : jobs_) {
        world_.requests().is_held(number, job.request.is_canceled(), free_since_);
        job.fate = Fate::reply;
        go_on_later(job, Duration::zero());
    }
    take();
}

void ResponderActor::check_served() {
    if (responder_ == nullptr || closing_) return;
    check_limits();
    if (responder_->stats().waiting > 0)
        violate(RuleId::responder_notified, "requests wait, and their arrival was not reported");
}

void ResponderActor::close() {
    if (std::exchange(closing_, true) || responder_ == nullptr) return;
    note("close");
    react(Event::closing);
    world_.requests().ends(number_);
    responder_->close();
}

void ResponderActor::destroy() {
    note("destroy");
    end_.start(Duration::zero());
}

// Requests may outlive their responder.
void ResponderActor::end_now() {
    world_.oracle().happens(Trouble::gone, number_);
    world_.requests().ends(number_);
    responder_.reset();
}

} // namespace

std::unique_ptr<Actor> make_responder(World& world, Process& process) {
    return std::make_unique<ResponderActor>(world, process);
}

} // namespace netio::world
