// SPDX-License-Identifier: Apache-2.0
#include "tests/world/world.hpp"

#include "netio/context.hpp"
#include "tests/world/actors/actor.hpp"
#include "tests/world/reported_end.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace netio::world {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Limit of turns without progress of time; more mean an endless loop. A stream that is read with
// one receive of a few bytes at a time needs a hundred thousand.
constexpr std::size_t turn_limit = 300'000;
// Time limits after the end of all faults: until all are served, and until all have ended.
constexpr Duration serving_limit = seconds{75};
constexpr Duration closing_limit = seconds{75};

std::vector<test::SimProfile> profiles_of(const Values& world, const Values& process) {
    test::SimProfile tcp = test::tcp_profile();
    if (world.has("window_bytes")) {
        tcp.window_bytes = static_cast<std::size_t>(world.get("window_bytes"));
    }
    const std::int64_t device = process.get("device", world.get("device"));
    if (device == 1) return {test::verbs_profile(), tcp};
    if (device == 2) return {test::iwarp_profile(), tcp};
    return {tcp};
}

} // namespace

World::World(const Schedule& schedule, std::function<void(const std::string&)> show)
    : schedule_{schedule}, network_{clock_,
                                    static_cast<std::uint64_t>(schedule.world.get("seed", 1))},
      scheduler_{clock_, static_cast<std::uint64_t>(schedule.world.get("seed", 1)) + 1},
      start_{clock_.now()} {
    oracle_.show = std::move(show);
    spdlog::set_level(spdlog::level::off); // a copy server logs each peer's actions
    set_log({});                           // so do requesters and responders
    network_.reset_percent(static_cast<unsigned>(schedule.world.get("reset_percent", 50)));
    if (!schedule_.world.has("protection")) return;
    keys_ = std::make_unique<SiteKeys>(
        static_cast<access::Protection>(schedule_.world.get("protection")));
    for (const ProcessPlan& plan : schedule_.processes)
        keys_->permit(plan.number);
}

World::~World() = default;

Address World::address_of(std::uint32_t process, std::int64_t which) {
    return {.host = "10.0." + std::to_string(which) + '.' + std::to_string(process + 1),
            .port = 1000};
}

std::shared_ptr<ServerKeys> World::keys_of_server(EventLoop& loop) const {
    return keys_ ? keys_->server(loop) : nullptr;
}

std::shared_ptr<const ClientKey> World::key_of(std::uint32_t process) {
    return keys_ ? keys_->client(process) : nullptr;
}

// --- the run --------------------------------------------------------------------------------

Outcome World::run() {
    std::int64_t last = 0;
    for (const ProcessPlan& plan : schedule_.processes) {
        if (plan.options.get("late_us") == 0) {
            begin(plan);
        } else {
            clock_.at(start_ + microseconds{plan.options.get("late_us")},
                      [this, &plan] { begin(plan); });
        }
        last = std::max(last, plan.options.get("late_us"));
    }
    for (const Step& step : schedule_.steps) {
        clock_.at(start_ + microseconds{step.at_us}, [this, &step] { apply(step); });
        last = std::max(last, step.at_us + step.with.get("us"));
    }
    run_until(start_ + microseconds{last + schedule_.world.get("tail_us", 20'000)});
    heal();
    finish();
    end_all();
    Outcome outcome{.violations = oracle_.violations(),
                    .trace_hash = oracle_.trace_hash(),
                    .delivered = pubsub_.delivered() + pipes_.arrived_count() + found_.delivered() +
                                 requests_.replied_count(),
                    .turns = scheduler_.turns(),
                    .meetings = std::move(meetings_)};
    return outcome;
}

void World::begin(const ProcessPlan& plan) {
    if (is_alive(plan.number)) return;
    const std::uint64_t incarnation = ++incarnations_[plan.number];
    oracle_.note(plan.number, "begins", incarnation);
    auto process = std::make_unique<Process>(
        clock_, network_, profiles_of(schedule_.world, plan.options), plan,
        static_cast<std::uint64_t>(schedule_.world.get("seed", 1)) * 100 + plan.number);
    Process& made = *process;
    processes_[plan.number] = std::move(process);
    made.listens_failed_before = network_.failed_calls(plan.number, test::SimCall::listen);
    made.for_each_loop([this](auto& poller, auto& loop) { scheduler_.add(poller, loop); });
    made.transport.delay_resolution(microseconds{plan.options.get("resolve_us")});
    // The peer's name resolves to a second address where no process listens.
    if (plan.options.get("named") != 0) {
        const std::string host = address_of_peer(plan).host;
        made.transport.name(host, {"10.9.9.9", host});
    }
    // The program's first lines run before its loop.
    try {
        made.actor = make_actor(*this, made);
    } catch (const std::invalid_argument& refused) {
        oracle_.note(plan.number, "options_refused");
    } catch (const FabricError& refused) {
        oracle_.note(plan.number, "setup_refused");
    }
}

void World::run_until(TimePoint end) {
    while (clock_.now() < end && !stuck_) {
        scheduler_.step(end);
        if (scheduler_.turns_at_once() > turn_limit) {
            stuck_ = true;
            oracle_.violate(RuleId::time_goes_on, "the loops work without end");
        }
    }
    pubsub_.check_waits();
}

bool World::run_until_true(Duration limit, const std::function<bool()>& done) {
    const TimePoint end = clock_.now() + limit;
    Duration pause = milliseconds{1};
    while (!done()) {
        if (clock_.now() >= end || stuck_) return false;
        run_until(std::min(end, clock_.now() + pause));
        pause = std::min<Duration>(2 * pause, milliseconds{500});
    }
    return true;
}

void World::tell(std::uint32_t process, std::function<void(Actor&)> what) {
    const auto found = processes_.find(process);
    if (found == processes_.end() || found->second->actor == nullptr) return;
    const bool posted = found->second->loop.post(
        [actor = found->second->actor.get(), what = std::move(what)] { what(*actor); });
    if (!posted) oracle_.violate(RuleId::time_goes_on, "a loop has no room for a task");
}

// --- faults ---------------------------------------------------------------------------------

void World::meet(const char* fault, std::uint32_t process) {
    const auto found = processes_.find(process);
    if (found == processes_.end() || found->second->actor == nullptr) return;
    // Records the current state of each process.
    for (const auto& [number, other] : processes_) {
        if (other->actor == nullptr) continue;
        const char* const side = number == process ? " here" : "";
        meetings_.count({other->actor->feature() + side, fault, other->actor->state()});
    }
}

void World::apply(const Step& step) {
    if (healed_) return;
    oracle_.note(step.process, step.what.c_str(), static_cast<std::uint64_t>(step.at_us));
    if (step.what == "restart") {
        if (is_alive(step.process)) return;
        for (const ProcessPlan& plan : schedule_.processes)
            if (plan.number == step.process) begin(plan);
        return;
    }
    if (!is_alive(step.process)) return;
    if (step.what != "when") meet(step.what.c_str(), step.process); // it only prepares a fault
    if (!apply_to_process(step)) {
        tell(step.process, [&step](Actor& actor) { actor.act(step); });
    }
    pubsub_.check_waits();
}

std::span<const char* const> World::strikes() {
    static constexpr std::array kinds{"kill",  "vanish", "sever", "stop",
                                      "block", "leap",   "fail",  "restart"};
    return kinds;
}

// A fault cannot hit a process during a call of that process.
void World::strike(const Step& step) {
    Step fault = step;
    fault.process = static_cast<std::uint32_t>(step.with.get("whom"));
    const std::string what = strikes()[static_cast<std::size_t>(step.with.get("kind"))];
    fault.what = what == "restart" ? "kill" : what;
    clock_.at(clock_.now(), [this, fault] { apply(fault); });
    if (what != "restart") return;
    fault.what = what;
    clock_.at(clock_.now() + microseconds{step.with.get("us")}, [this, fault] { apply(fault); });
}

// Returns whether the step was a fault of a process, and not an action of its user.
bool World::apply_to_process(const Step& step) {
    const std::uint32_t number = step.process;
    const auto other = static_cast<std::uint32_t>(step.with.get("other"));
    const auto time = microseconds{step.with.get("us")};
    if (step.what == "stop") {
        stop(number, time);
    } else if (step.what == "kill" || step.what == "vanish") {
        kill(number, step.what == "vanish");
    } else if (step.what == "block") {
        block(number, other, step);
        if (step.with.get("both", 1) != 0) block(other, number, step);
    } else if (step.what == "sever") {
        oracle_.happens(Trouble::broken, number);
        network_.sever(network_.newest_connection(number));
    } else if (step.what == "cut_next") {
        for (const auto& [each, unused] : incarnations_)
            oracle_.begin(Trouble::broken, each);
        network_.break_at_send(network_.next_connection() + static_cast<std::uint64_t>(other),
                               static_cast<std::size_t>(step.with.get("nth", 1)));
    } else if (step.what == "fail") {
        oracle_.begin(Trouble::broken, number);
        network_.fail_calls(number, static_cast<test::SimCall>(step.with.get("call")),
                            static_cast<std::uint64_t>(step.with.get("first", 1)),
                            static_cast<std::uint64_t>(step.with.get("count", 1)));
    } else if (step.what == "nameless") {
        lose_name(number, time);
    } else if (step.what == "revoke") {
        revoke(number, time);
    } else if (step.what == "leap") {
        oracle_.happens(Trouble::busy, number);
        processes_.at(number)->for_each_loop([&](auto& poller, auto&) { poller.leap(time); });
    } else {
        return false;
    }
    return true;
}

Address World::address_of_peer(const ProcessPlan& plan) {
    return address_of(static_cast<std::uint32_t>(plan.options.get("of")), plan.options.get("via"));
}

// The name service does not know its peer for this time.
void World::lose_name(std::uint32_t process, Duration time) {
    Process& it = *processes_.at(process);
    if (!it.plan.options.has("of")) return;
    oracle_.lasts(Trouble::broken, process, time);
    it.transport.name(address_of_peer(it.plan).host, {});
    clock_.at(clock_.now() + time, [this, process] { find_name(process); });
}

void World::find_name(std::uint32_t process) {
    if (!is_alive(process)) return;
    Process& it = *processes_.at(process);
    const std::string host = address_of_peer(it.plan).host;
    it.transport.name(host, {host});
}

// Its key is revoked for this time; existing sessions of the key end.
void World::revoke(std::uint32_t process, Duration time) {
    if (keys_ == nullptr) return;
    oracle_.lasts(Trouble::broken, process, time);
    keys_->revoke(process);
    clock_.at(clock_.now() + time, [this, process] { permit(process); });
}

// A busy process has last read the file at the beginning of its turn.
void World::permit(std::uint32_t process) {
    keys_->permit(process);
    const TimePoint from = std::max(clock_.now(), busy_until());
    oracle_.lasts(Trouble::broken, process, from - clock_.now() + SiteKeys::look_interval);
}

TimePoint World::busy_until() const {
    TimePoint latest = TimePoint::min();
    for (const auto& [number, process] : processes_)
        process->for_each_loop(
            [&](auto& poller, auto&) { latest = std::max(latest, poller.busy_until()); });
    return latest;
}

void World::stop(std::uint32_t process, Duration time) {
    if (stopped_until_.contains(process)) return;
    oracle_.begin(Trouble::stopped, process);
    processes_.at(process)->for_each_loop([&](auto& poller, auto&) { scheduler_.stop(poller); });
    stopped_until_[process] = clock_.now() + time;
    clock_.at(clock_.now() + time, [this, process, due = clock_.now() + time] {
        const auto found = stopped_until_.find(process);
        if (found == stopped_until_.end() || found->second != due) return;
        stopped_until_.erase(found);
        oracle_.end(Trouble::stopped, process);
        if (is_alive(process)) go_on(*processes_.at(process));
    });
}

void World::go_on(Process& process) {
    process.for_each_loop([this](auto& poller, auto&) { scheduler_.go_on(poller); });
}

void World::block(std::uint32_t from, std::uint32_t to, const Step& step) {
    test::SimPath path;
    path.blocked = step.with.get("delay_us") == 0 && step.with.get("rate") == 0;
    path.delay = microseconds{step.with.get("delay_us")};
    path.bytes_per_second = static_cast<double>(step.with.get("rate"));
    const Trouble trouble = path.blocked ? Trouble::blocked : Trouble::slow_way;
    oracle_.begin(trouble, from, to);
    network_.set_path(from, to, path);
    clock_.at(clock_.now() + microseconds{step.with.get("us")}, [this, trouble, from, to] {
        oracle_.end(trouble, from, to);
        network_.set_path(from, to, {});
    });
}

void World::kill(std::uint32_t process, bool host) {
    // Peers get no notification that a host has vanished; the fault lasts until they detect it.
    if (host) {
        oracle_.begin(Trouble::vanished, process);
    } else {
        oracle_.happens(Trouble::gone, process);
    }
    network_.kill(process, host);
    pubsub_.vanishes(process);
    pubsub_.ended(process, false, true);
    pipes_.forget(process);
    requests_.ends(process);
    // Its memory vanishes without any notification.
    auto found = processes_.extract(process);
    found.mapped()->for_each_loop([&](auto& poller, auto&) { scheduler_.remove(poller); });
    stopped_until_.erase(process);
    oracle_.end(Trouble::stopped, process);
}

// Tasks, sources and timers each end after the piece of work in which their time limit expires. The
// rest of a page for a user that was paused is delivered by a timer, which has no time limit.
void World::check_turns(Process& process) {
    Duration turn{};
    Duration piece = process.longest_handler;
    process.for_each_loop([&](auto& poller, auto& loop) {
        turn = std::max(turn, loop.turns().longest());
        piece = std::max(piece, poller.longest_piece());
    });
    if (process.has_paused || turn <= 3 * (EventLoop::Options{}.turn_limit + piece)) return;
    const auto us = [](Duration time) {
        return std::to_string(std::chrono::duration_cast<microseconds>(time).count()) + " us";
    };
    oracle_.violate(RuleId::turn_is_bounded, "process " + std::to_string(process.plan.number) +
                                                 ": a turn took " + us(turn) +
                                                 ", no piece of work more than " + us(piece));
}

// --- the end --------------------------------------------------------------------------------

void World::heal() {
    healed_ = true;
    network_.heal_breaks();
    for (const auto& [number, process] : processes_) {
        network_.heal_calls(number);
        oracle_.end(Trouble::broken, number);
        oracle_.end(Trouble::stopped, number);
        if (process->plan.options.has("of")) find_name(number);
        go_on(*process);
        for (const auto& [other, unused] : incarnations_) {
            network_.set_path(number, other, {});
            network_.set_path(other, number, {});
            for (const Trouble trouble : {Trouble::blocked, Trouble::slow_way}) {
                oracle_.end(trouble, number, other);
                oracle_.end(trouble, other, number);
            }
        }
        tell(number, [](Actor& actor) { actor.behave(); });
    }
    stopped_until_.clear();
}

void World::finish() {
    const auto all_idle = [this] {
        return std::ranges::all_of(processes_, [](const auto& entry) {
            return entry.second->actor == nullptr || entry.second->actor->is_idle();
        });
    };
    // Other processes have waited for a user that takes long, until it continues.
    while (busy_until() > clock_.now() && !stuck_)
        run_until(busy_until());
    // Time-outs have to be detected, retried and recovered.
    run_until(clock_.now() + seconds{1});
    if (!run_until_true(serving_limit, all_idle)) {
        for (const auto& [number, process] : processes_) {
            if (process->actor == nullptr || process->actor->is_idle()) continue;
            oracle_.violate(RuleId::again_is_followed,
                            "process " + std::to_string(number) + " (" + process->actor->feature() +
                                ") still waits: " + process->actor->state());
        }
    }
    if (schedule_.world.get("settle_us", 0) != 0) {
        run_until(clock_.now() + microseconds{schedule_.world.get("settle_us")});
    }
    // A connection may be lost without either side knowing it yet: 30 s of silence count, and a
    // process that was busy itself checks for signs of life only after half of them.
    run_until(clock_.now() + seconds{schedule_.world.get("patience_s", 55)});
    for (const auto& [number, process] : processes_)
        tell(number, [](Actor& actor) { actor.probe(); });
    run_until(clock_.now() + seconds{1});
    run_until_true(serving_limit, all_idle);
    run_until(clock_.now() + seconds{2});
    for (const auto& [number, process] : processes_)
        if (process->actor) process->actor->check_served();
}

void World::end_all() {
    for (const bool first : {true, false}) {
        for (const auto& [number, process] : processes_) {
            if (process->actor == nullptr || process->actor->ends_first() != first) continue;
            // Messages are in transit when the end begins.
            tell(number, [](Actor& actor) {
                actor.probe();
                actor.close();
            });
        }
        const auto all_closed = [&] {
            return std::ranges::all_of(processes_, [&](const auto& entry) {
                const auto& actor = entry.second->actor;
                return actor == nullptr || actor->ends_first() != first || actor->is_closed();
            });
        };
        if (run_until_true(closing_limit, all_closed)) continue;
        for (const auto& [number, process] : processes_) {
            if (process->actor == nullptr || process->actor->ends_first() != first ||
                process->actor->is_closed()) {
                continue;
            }
            oracle_.violate(RuleId::close_is_bounded, "process " + std::to_string(number) + " (" +
                                                          process->actor->feature() +
                                                          ") does not end");
        }
    }
    for (auto& [number, process] : processes_) {
        check_turns(*process);
        process->for_each_loop([&](auto& poller, auto&) { scheduler_.remove(poller); });
        process->actor.reset();
    }
    if (network_.connection_count() + network_.listener_count() + network_.registration_count() >
        0) {
        oracle_.violate(RuleId::nothing_left,
                        std::to_string(network_.connection_count()) + " connections, " +
                            std::to_string(network_.listener_count()) + " listeners, " +
                            std::to_string(network_.registration_count()) +
                            " registrations are left");
    }
    processes_.clear();
    for (const std::string& violation : network_.violations())
        oracle_.violate(RuleId::simulator, violation);
}

bool World::serves(std::uint32_t process) const {
    const auto found = processes_.find(process);
    return found != processes_.end() && found->second->actor != nullptr &&
           found->second->actor->serves() &&
           found->second->listens_failed_before ==
               network_.failed_calls(process, test::SimCall::listen);
}

void World::judge_end(std::uint32_t process, std::uint32_t peer, TimePoint since,
                      const Closed& closed, Duration dead_after) {
    const auto has_history = [&](std::uint32_t number) {
        return std::ranges::any_of(schedule_.processes, [&](const ProcessPlan& plan) {
            return plan.number == number && plan.options.get("history") != 0;
        });
    };
    world::judge_end(oracle_, schedule_.world.get("device"),
                     {.process = process,
                      .peer = peer,
                      .since = since,
                      .closed = closed,
                      .dead_after = dead_after,
                      .has_history = has_history(process) && has_history(peer)});
}

} // namespace netio::world
