// SPDX-License-Identifier: Apache-2.0
#include "tests/world/draw_faults.hpp"

#include "tests/world/actors/actor.hpp"

#include <algorithm>

namespace netio::world {
namespace {

// Rare combinations are listed more than once.
const std::vector<std::string> all_kinds{
    "stop", "kill", "vanish", "block",  "thin",   "sever",  "fail",     "leap",    "slow", "busy",
    "deed", "end",  "break",  "strike", "strike", "strike", "farewell", "restart", "pause"};

// Only momentary states, at the beginning of the list.
const std::vector<Event> events_to_strike_at{
    Event::again,       Event::closing, Event::partial,   Event::unsubscribed, Event::again,
    Event::closing,     Event::partial, Event::connected, Event::subscribed,   Event::message,
    Event::gap,         Event::totals,  Event::closed,    Event::writable,     Event::completed,
    Event::peer_closed, Event::message};

} // namespace

FaultDrawing::FaultDrawing(Dice& dice) : dice_{dice} {
    if (dice_.percent(10)) return;
    const std::int64_t count = dice_.percent(60) ? dice_.between(1, 3) : dice_.between(4, 8);
    for (std::int64_t i = 0; i < count; ++i)
        kinds_.push_back(dice_.percent(4) ? "crowd" : dice_.one_of(all_kinds));
}

bool FaultDrawing::has(const std::string& kind) const {
    return std::ranges::find(kinds_, kind) != kinds_.end();
}

void FaultDrawing::draw(Schedule& schedule, std::int64_t span_us, std::int64_t fids) {
    schedule_ = &schedule;
    span_us_ = span_us;
    fids_ = fids;
    for (const std::string& kind : kinds_) {
        const std::int64_t times = dice_.between(1, 3);
        for (std::int64_t i = 0; i < times; ++i)
            draw_one(kind);
    }
}

std::uint32_t FaultDrawing::somebody() {
    return dice_.one_of(schedule_->processes).number;
}

std::uint32_t FaultDrawing::partner_of(std::uint32_t process) {
    std::vector<std::uint32_t> partners;
    for (const ProcessPlan& plan : schedule_->processes) {
        const auto serves = [](const ProcessPlan& one, std::uint32_t other) {
            return one.options.has("of") && one.options.get("of") == other;
        };
        const auto own = std::ranges::find(schedule_->processes, process, &ProcessPlan::number);
        if (serves(plan, process) || serves(*own, plan.number)) partners.push_back(plan.number);
    }
    return partners.empty() ? somebody() : dice_.one_of(partners);
}

std::int64_t FaultDrawing::moment() {
    if (schedule_->steps.empty() || dice_.percent(50)) return dice_.between(0, span_us_);
    return dice_.one_of(schedule_->steps).at_us + dice_.between(0, 1'500);
}

// Most of the served processes stop at about the same time.
void FaultDrawing::draw_crowd() {
    const std::int64_t when = moment();
    const std::int64_t time = dice_.between(2'000'000, 20'000'000);
    const std::uint32_t spared = somebody();
    for (const ProcessPlan& plan : schedule_->processes) {
        if (plan.kind != "subscriber" || plan.number == spared) continue;
        schedule_->at(when + dice_.between(0, 300), plan.number, "stop").with.set("us", time);
        // A request made at the last moment is in transit while the process is stopped.
        if (!dice_.percent(30)) continue;
        schedule_->at(when - dice_.between(0, 100), plan.number, "unsubscribe")
            .with.set("last", fids_ - 1);
    }
}

// Hits the process that gets a callback, or its peer.
void FaultDrawing::draw_strike() {
    const std::uint32_t who = somebody();
    const std::uint32_t other = partner_of(who);
    Step& step = schedule_->at(0, who, "when");
    step.with.set("event", static_cast<std::int64_t>(dice_.one_of(events_to_strike_at)));
    step.with.set("nth", dice_.between(1, dice_.percent(60) ? 3 : 30));
    step.with.set("deed", static_cast<std::int64_t>(Deed::strike));
    step.with.set("kind", dice_.between(0, static_cast<std::int64_t>(World::strikes().size()) - 1));
    const bool here = dice_.percent(35);
    step.with.set("whom", here ? who : other);
    step.with.set("other", here ? other : who);
    step.with.set("us", dice_.while_us());
    if (dice_.percent(40)) step.with.set("both", 0);
    step.with.set("call", dice_.between(0, 5));
}

// One process ends in order while another one does not receive all of it.
void FaultDrawing::draw_farewell() {
    const std::uint32_t who = somebody();
    const std::uint32_t other = partner_of(who);
    const std::int64_t when = moment();
    schedule_->at(when, who, "close");
    const std::string what = dice_.one_of(
        std::vector<std::string>{"kill", "vanish", "sever", "destroy", "stop", "busy", "block"});
    Step& step =
        schedule_->at(when + dice_.between(0, dice_.percent(70) ? 300 : 100'000), other, what);
    if (what == "stop" || what == "busy" || what == "block") step.with.set("us", dice_.while_us());
    if (what == "block") step.with.set("other", who);
}

void FaultDrawing::draw_block(bool thin) {
    Step& step = schedule_->at(moment(), somebody(), "block");
    step.with.set("other", dice_.percent(50) ? partner_of(step.process) : somebody());
    step.with.set("us", dice_.while_us());
    if (dice_.percent(40)) step.with.set("both", 0);
    if (thin && dice_.percent(50))
        step.with.set("delay_us", dice_.while_us() % 2'000'000);
    else if (thin)
        step.with.set("rate", dice_.between(10'000, 10'000'000));
}

void FaultDrawing::draw_one(const std::string& kind) {
    const std::uint32_t who = somebody();
    if (kind == "crowd") return draw_crowd();
    if (kind == "strike") return draw_strike();
    if (kind == "farewell") return draw_farewell();
    if (kind == "block" || kind == "thin") return draw_block(kind == "thin");
    if (kind == "stop" || kind == "leap" || kind == "busy" || kind == "pause") {
        schedule_->at(moment(), who, kind).with.set("us", dice_.while_us());
    } else if (kind == "kill" || kind == "vanish" || kind == "restart") {
        const std::int64_t when = moment();
        schedule_->at(when, who, kind == "restart" ? "kill" : kind);
        if (kind == "restart" || dice_.percent(30)) {
            schedule_->at(when + dice_.while_us() % 3'000'000, who, "restart");
        }
    } else if (kind == "sever") {
        schedule_->at(moment(), who, "sever");
    } else if (kind == "fail") {
        Step& step = schedule_->at(dice_.percent(50) ? 0 : moment(), who, "fail");
        step.with.set("call", dice_.between(0, 5));
        step.with.set("first", dice_.between(1, dice_.percent(50) ? 3 : 40));
        step.with.set("count", dice_.percent(70) ? 1 : dice_.between(2, 1000));
    } else if (kind == "break") {
        Step& step = schedule_->at(moment(), who, "cut_next");
        step.with.set("other", dice_.between(0, 1));
        step.with.set("nth", dice_.between(1, 12));
    } else if (kind == "deed") {
        Step& step = schedule_->at(0, who, "when");
        step.with.set("event", dice_.between(1, static_cast<std::int64_t>(Event::unsubscribed)));
        step.with.set("nth", dice_.between(1, 12));
        step.with.set("deed", dice_.between(1, static_cast<std::int64_t>(Deed::pause)));
        step.with.set("us", dice_.while_us());
    } else if (kind == "end") {
        schedule_->at(moment(), who,
                      dice_.one_of(std::vector<std::string>{"close", "abort", "destroy"}));
    }
}

} // namespace netio::world
