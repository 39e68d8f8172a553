// SPDX-License-Identifier: Apache-2.0
#include "tests/world/draw.hpp"

#include "tests/world/dice.hpp"
#include "tests/world/draw_copies.hpp"
#include "tests/world/draw_faults.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

constexpr std::int64_t few_fids = 6;
constexpr auto many_fids = static_cast<std::int64_t>(fid_count);
constexpr std::uint64_t dialog_salt = 0x6469616c6f6a;
constexpr std::uint64_t request_salt = 0x72657175657374;

class Drawing {
  public:
    explicit Drawing(std::uint64_t seed)
        : dice_{seed}, name_dice_{~seed}, found_dice_{seed ^ 0x666f756e64}, key_dice_{seed ^
                                                                                      (seed << 32)},
          copies_{seed + (~seed << 32)}, loop_dice_{seed ^ 0x6c6f6f70}, close_dice_{seed ^
                                                                                    0x636c6f7365},
          memory_dice_{seed ^ 0x6d656d6f7279}, keep_dice_{seed ^ 0x6b656570}, own_dice_{seed ^
                                                                                        0x6f776e},
          time_dice_{seed ^ 0x74696d65}, history_dice_{seed ^ 0x68697374},
          dialog_dice_{seed ^ dialog_salt}, request_dice_{seed ^ request_salt} {
        schedule_.world.set("seed", static_cast<std::int64_t>(seed));
    }

    Schedule draw() {
        if (dice_.percent(40)) schedule_.world.set("device", dice_.percent(70) ? 1 : 2);
        if (dice_.percent(30)) {
            schedule_.world.set("window_bytes", std::int64_t{1} << dice_.between(10, 18));
        }
        if (found_dice_.percent(10)) return draw_found();
        if (copies_.are_alone()) return draw_copied();
        if (dialog_dice_.percent(12)) return draw_dialogs_only();
        if (request_dice_.percent(12)) return draw_requests_only();
        const std::int64_t kind = dice_.between(0, 99);
        if (kind < 70) draw_publishing();
        if (kind >= 60 && kind < 85) draw_messages();
        if (kind >= 80) draw_streams();
        if (dialog_dice_.percent(4)) draw_dialogs();
        if (request_dice_.percent(3)) draw_requests();
        if (copies_.are_among_others()) copies_.draw(schedule_, span_us_);
        faults_.draw(schedule_, span_us_, fids_);
        draw_names();
        draw_keys();
        draw_keeping();
        draw_own_memory();
        draw_times();
        draw_history();
        std::ranges::stable_sort(schedule_.steps, {}, &Step::at_us);
        return std::move(schedule_);
    }

  private:
    Schedule draw_copied() {
        copies_.draw_troubled(schedule_, span_us_);
        faults_.draw(schedule_, span_us_, fids_);
        draw_keys();
        std::ranges::stable_sort(schedule_.steps, {}, &Step::at_us);
        return std::move(schedule_);
    }
    // Publishers that are found in a registry, and subscribers that know only fids.
    Schedule draw_found() {
        const std::int64_t publishers = found_dice_.between(1, 3);
        for (std::int64_t i = 0; i < publishers; ++i)
            draw_announced(2 * i);
        const std::int64_t finders = found_dice_.between(1, 2);
        for (std::int64_t i = 0; i < finders; ++i)
            draw_finder(2 * publishers - 1);
        const std::int64_t cuts = found_dice_.between(0, 3);
        for (std::int64_t i = 0; i < cuts; ++i) {
            const std::uint32_t who = found_dice_.one_of(schedule_.processes).number;
            schedule_.at(found_moment(), who, "bus_cut").with.set("us", found_dice_.while_us());
        }
        faults_.draw(schedule_, span_us_, 2 * publishers);
        if (close_dice_.percent(50)) draw_unreported_end();
        std::ranges::stable_sort(schedule_.steps, {}, &Step::at_us);
        return std::move(schedule_);
    }
    // A publisher dies and its lease expires while a finder is paused.
    void draw_unreported_end() {
        std::uint32_t finder = 0;
        std::uint32_t publisher = 0;
        for (const ProcessPlan& plan : schedule_.processes)
            (plan.kind == "finder" ? finder : publisher) = plan.number;
        const std::int64_t when = close_dice_.between(0, span_us_);
        schedule_.at(when, finder, "pause")
            .with.set("us", close_dice_.between(1'000'000, 6'000'000));
        const std::int64_t end = when + close_dice_.between(0, 300'000);
        schedule_.at(end, publisher, "kill");
        if (close_dice_.percent(50))
            schedule_.at(end + close_dice_.between(0, 6'000'000), publisher, "restart");
    }
    std::int64_t found_moment() { return found_dice_.between(0, span_us_); }
    void draw_announced(std::int64_t first) {
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("announced").options;
        options.set("first", first);
        if (found_dice_.percent(50)) options.set("pages", found_dice_.between(2, 16));
        if (loop_dice_.percent(40)) options.set("loops", 2);
        const std::int64_t flows = found_dice_.between(1, 6);
        for (std::int64_t i = 0; i < flows; ++i) {
            Step& step = schedule_.at(found_moment(), number, "publish");
            step.with.set("fid", found_dice_.between(0, 1));
            step.with.set("count", found_dice_.between(1, 60));
            step.with.set("bytes", found_dice_.between(24, 2000));
        }
    }
    void draw_finder(std::int64_t last) {
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("finder").options;
        if (found_dice_.percent(30)) options.set("retry_ms", found_dice_.between(1, 500));
        if (found_dice_.percent(20)) options.set("late_us", found_moment());
        draw_session(options);
        Step& all = schedule_.at(options.get("late_us"), number, "subscribe");
        all.with.set("first", 0);
        all.with.set("last", last);
        if (!found_dice_.percent(30)) return;
        const std::int64_t when = std::max(options.get("late_us"), found_moment());
        const std::int64_t fid = found_dice_.between(0, last);
        schedule_.at(when, number, "unsubscribe").with.set("first", fid);
        schedule_.at(when + found_moment(), number, "subscribe").with.set("first", fid);
    }

    bool has(const std::string& fault) const { return faults_.has(fault); }
    bool has_many_fids() const noexcept { return fids_ > few_fids; }
    std::int64_t moment() { return dice_.between(0, span_us_); }
    // Uses its own dice, so the rest of the world is the same with and without it.
    void draw_names() {
        for (ProcessPlan& plan : schedule_.processes) {
            if (!plan.options.has("of")) continue;
            if (name_dice_.percent(5)) plan.options.set("named", 1);
            if (!name_dice_.percent(5)) continue;
            const std::int64_t when = name_dice_.between(0, span_us_);
            schedule_.at(when, plan.number, "nameless").with.set("us", name_dice_.while_us());
        }
    }

    // Also with its own dice: who receives into memory of its own, takes whole pages, and reads
    // streams where they lie.
    void draw_own_memory() {
        for (ProcessPlan& plan : schedule_.processes) {
            const bool subscribes = plan.kind == "subscriber";
            const bool receives = plan.kind == "receiver" || plan.kind == "messenger";
            if ((subscribes || receives) && own_dice_.percent(15)) {
                plan.options.set("own_buffers", own_dice_.between(0, 6));
                // A listen socket needs as many as it has peers.
                plan.options.set("own_windows", subscribes ? own_dice_.between(1, 2) : 8);
            }
            if (subscribes && own_dice_.percent(15)) plan.options.set("whole_pages", 1);
            if (plan.kind == "stream" && own_dice_.percent(20)) plan.options.set("peeks", 1);
        }
    }

    // Also with its own dice: who sends a time with its messages.
    void draw_times() {
        for (ProcessPlan& plan : schedule_.processes)
            if (plan.kind == "publisher" && time_dice_.percent(25)) plan.options.set("times", 1);
    }

    // Also with its own dice: who keeps messages for late subscribers, who asks for them, and some
    // that join in the middle of a flow.
    void draw_history() {
        const bool any_keeps = history_dice_.percent(25);
        std::vector<std::uint32_t> keeping;
        for (ProcessPlan& plan : schedule_.processes) {
            const bool keeps = plan.kind == "publisher" && plan.options.get("mode") == 0;
            if (!keeps || !any_keeps || history_dice_.percent(20)) continue;
            plan.options.set("history", std::int64_t{4096} << history_dice_.between(0, 5));
            keeping.push_back(plan.number);
        }
        for (ProcessPlan& plan : schedule_.processes) {
            if (plan.kind != "subscriber") continue;
            if (history_dice_.percent(any_keeps ? 70 : 5)) plan.options.set("history", 1);
            if (!plan.options.has("history") || !history_dice_.percent(50)) continue;
            const std::int64_t later = history_dice_.between(0, span_us_);
            plan.options.set("late_us", std::max(later, plan.options.get("late_us")));
            for (Step& step : schedule_.steps)
                if (step.process == plan.number && step.what == "subscribe")
                    step.at_us = std::max(step.at_us, later);
        }
        for (const std::uint32_t publisher : keeping) {
            Step& step = schedule_.at(history_dice_.between(0, span_us_), publisher, "publish");
            step.with.set("fids", fids_);
            step.with.set("count", history_dice_.between(20, 300));
            step.with.set("bytes", history_dice_.between(0, 300));
            step.with.set("gap_us", history_dice_.one_of(std::vector<std::int64_t>{0, 10, 100}));
        }
    }

    // Also with its own dice: who keeps what it receives, and how long.
    void draw_keeping() {
        for (ProcessPlan& plan : schedule_.processes) {
            const bool receives = plan.kind == "subscriber" || plan.kind == "receiver" ||
                                  (plan.kind == "messenger" && !plan.options.has("posts"));
            if (!receives || !keep_dice_.percent(25)) continue;
            plan.options.set("keep_percent", keep_dice_.between(5, 100));
            plan.options.set("keep_limit", keep_dice_.percent(30)
                                               ? keep_dice_.between(0, 3 * 4096)
                                               : keep_dice_.between(1 << 12, 1 << 20));
            plan.options.set("keep_us", keep_dice_.between(1, 20'000));
        }
    }

    // Also with its own dice.
    void draw_keys() {
        for (ProcessPlan& plan : schedule_.processes)
            if (plan.kind == "stream" && key_dice_.percent(30)) plan.options.set("trusts", 1);
        if (!key_dice_.percent(30)) return;
        schedule_.world.set("protection", key_dice_.between(0, 3));
        for (ProcessPlan& plan : schedule_.processes) {
            if (key_dice_.percent(50)) plan.options.set("key_bytes", key_dice_.between(1, 4096));
            if (!key_dice_.percent(10)) continue;
            const std::int64_t when = key_dice_.between(0, span_us_);
            schedule_.at(when, plan.number, "revoke").with.set("us", key_dice_.while_us());
        }
    }

    void draw_session(Values& options) {
        if (dice_.percent(40)) options.set("receives", dice_.between(4, 8));
        if (name_dice_.percent(40)) options.set("window", name_dice_.between(0, 256 * 1024));
        if (dice_.percent(25)) options.set("sends", dice_.between(2, 6));
        if (dice_.percent(30)) {
            const std::int64_t heartbeat = dice_.one_of(std::vector<std::int64_t>{20, 100, 1000});
            options.set("heartbeat_ms", heartbeat);
            // Without a time-out for silent peers, a process waits forever for a peer that has
            // vanished or whose device gave up during a block.
            const bool breaks = schedule_.world.has("device") && has("block");
            const bool strikes = has("strike") || has("farewell");
            const bool trusts = dice_.percent(20) && !has("vanish") && !breaks && !strikes;
            options.set("dead_ms", trusts ? 0 : std::max<std::int64_t>(3000, heartbeat * 3));
        }
        if (dice_.percent(10)) options.set("handshake_ms", dice_.between(20, 500));
        // It has no such device, and its peers have to find that out.
        if (schedule_.world.has("device") && dice_.percent(15)) options.set("device", 0);
        if (dice_.percent(10)) options.set("resolve_us", dice_.while_us() % 5'000'000);
    }

    // --- publishing ---
    void draw_publishing() {
        const std::int64_t publishers = dice_.percent(15) ? 2 : 1;
        for (std::int64_t i = 0; i < publishers; ++i)
            draw_publisher();
    }

    void draw_publisher() {
        const std::uint32_t publisher = schedule_.next_number();
        std::int64_t frame = 0;
        const std::int64_t addresses = dice_.percent(20) ? 2 : 1;
        {
            Values& options = schedule_.add("publisher").options;
            const std::int64_t mode = dice_.percent(45) ? 0 : dice_.between(1, 2);
            if (mode != 0) options.set("mode", mode);
            if (addresses == 2) options.set("addresses", addresses);
            policies_ = mode == 0 ? 4 : 3; // only buffered publishers support conflation
            if (dice_.percent(60)) options.set("policy", dice_.between(0, policies_ - 1));
            if (dice_.percent(50)) options.set("disconnect_ms", dice_.between(5, 2000));
            frame = dice_.one_of(std::vector<std::int64_t>{256, 300, 512, 1000, 4096});
            if (mode == 0) {
                options.set("page_size_bytes", frame);
                if (dice_.percent(70)) options.set("pages", dice_.between(2, 8));
                if (dice_.percent(20)) options.set("share", dice_.between(1, 4));
                if (dice_.percent(20)) options.set("flush_us", dice_.between(0, 1) * 500);
                if (dice_.percent(20)) options.set("idle", 1);
                if (dice_.percent(15)) options.set("watermark", dice_.between(1, frame));
                if (dice_.percent(10)) options.set("newest", dice_.between(1, 2000));
            } else {
                if (dice_.percent(60)) options.set("outstanding", dice_.between(2, 12));
                if (dice_.percent(60)) options.set("remainder", dice_.between(1, 4));
                options.set("slot_bytes", 4 * frame + 64);
                if (mode == 2 && dice_.percent(40)) options.set("patient", 1);
                if (mode == 2 && dice_.percent(40)) options.set("abandons", dice_.between(1, 3));
            }
            if (dice_.percent(20)) options.set("close_ms", dice_.between(200, 3000));
            if (close_dice_.percent(25)) draw_close_limit(options);
            draw_session(options);
        }
        const std::int64_t subscribers =
            has_many_fids() ? dice_.between(2, 5)
                            : dice_.between(1, has("crowd") || dice_.percent(30) ? 5 : 2);
        for (std::int64_t i = 0; i < subscribers; ++i)
            draw_subscriber(publisher, addresses, frame);
        draw_flows(publisher, frame);
        if (memory_dice_.percent(15)) draw_little_memory(publisher);
    }

    // Uses its own dice: repeatedly publishes more than a few pages hold, for subscribers that
    // mostly may lose messages.
    void draw_little_memory(std::uint32_t publisher) {
        for (ProcessPlan& plan : schedule_.processes) {
            if (plan.number != publisher) continue;
            if (plan.options.get("mode") == 0) {
                plan.options.set("page_size_bytes",
                                 std::int64_t{1} << memory_dice_.between(10, 12));
                plan.options.set("pages", memory_dice_.between(2, 16));
                plan.options.set("watermark", 0);
            }
            plan.options.set("policy",
                             memory_dice_.percent(60) ? 1 : memory_dice_.between(0, policies_ - 1));
        }
        const std::int64_t flows = memory_dice_.between(1, 3);
        for (std::int64_t i = 0; i < flows; ++i) {
            Step& step = schedule_.at(memory_dice_.between(0, span_us_), publisher, "publish");
            step.with.set("fids", memory_dice_.between(1, fids_));
            step.with.set("count", memory_dice_.between(200, 800));
            step.with.set("bytes", memory_dice_.between(24, 2000));
            step.with.set("gap_us", memory_dice_.one_of(std::vector<std::int64_t>{0, 10, 100}));
        }
    }

    // Uses its own dice.
    void draw_close_limit(Values& options) {
        const std::int64_t limit = close_dice_.between(500, 6000);
        options.set("close_limit_ms", limit);
        options.set("close_ms", std::min<std::int64_t>(options.get("close_ms", 10000), limit));
    }

    void draw_subscriber(std::uint32_t publisher, std::int64_t addresses, std::int64_t frame) {
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("subscriber").options;
        options.set("of", publisher);
        if (addresses == 2) options.set("via", dice_.between(0, 1));
        // Large enough for the publisher's page with its frame; otherwise the socket detects it.
        options.set("receive_buffer_bytes", dice_.percent(80) ? frame + 64 : 256);
        if (has("restart") || dice_.percent(70)) {
            if (dice_.percent(30)) options.set("retry_ms", dice_.between(1, 500));
        } else {
            options.set("reconnect", 0);
        }
        if (has("slow") && dice_.percent(50)) options.set("slow_us", dice_.between(1, 5000));
        if (dice_.percent(15)) options.set("late_us", moment());
        draw_session(options);
        const std::int64_t late = options.get("late_us");
        const std::int64_t requests = dice_.between(1, dice_.percent(30) ? 6 : 2);
        for (std::int64_t i = 0; i < requests; ++i) {
            const bool more = i == 0 || dice_.percent(65);
            Step& step = schedule_.at(i == 0 ? late : std::max(late, moment()), number,
                                      more ? "subscribe" : "unsubscribe");
            step.with.set("first", dice_.between(0, fids_ - 1));
            step.with.set(
                "last", dice_.percent(10) ? -1 : dice_.between(step.with.get("first"), fids_ - 1));
            if (more && dice_.percent(20)) step.with.set("policy", dice_.between(0, policies_ - 1));
        }
        // Unsubscribes from everything, is disconnected, and subscribes again.
        if (!dice_.percent(20)) return;
        const std::int64_t when = std::max(late, moment());
        schedule_.at(when, number, "unsubscribe").with.set("last", -1);
        Step& back = schedule_.at(when + (dice_.percent(50) ? dice_.between(0, 300) : moment()),
                                  number, "subscribe");
        back.with.set("last", fids_ - 1);
    }

    void draw_flows(std::uint32_t publisher, std::int64_t frame) {
        const std::int64_t flows = dice_.between(1, 5);
        for (std::int64_t i = 0; i < flows; ++i) {
            Step& step = schedule_.at(moment(), publisher, "publish");
            step.with.set("fid", dice_.between(0, fids_ - 1));
            step.with.set("count",
                          dice_.percent(60) ? dice_.between(1, 20) : dice_.between(20, 120));
            step.with.set("bytes", draw_size(frame));
            step.with.set("gap_us", dice_.one_of(std::vector<std::int64_t>{0, 10, 100, 1000}));
            if (dice_.percent(20)) step.with.set("status", dice_.between(1, 255));
            if (has_many_fids()) draw_round(step);
        }
    }

    // Each message has the next fid, so that many fids lose messages and many groups have an open
    // page.
    void draw_round(Step& step) {
        const std::int64_t fids = dice_.between(1, fids_);
        step.with.set("fids", fids);
        step.with.set("fid", dice_.between(0, fids_ - fids));
        step.with.set("count", step.with.get("count") * 4);
        if (dice_.percent(50)) step.with.set("bytes", dice_.between(4, 64));
        if (dice_.percent(50)) step.with.set("gap_us", 0);
    }

    std::int64_t draw_size(std::int64_t frame) {
        switch (dice_.between(0, 5)) {
        case 0:
            return dice_.between(0, 3);
        case 1:
            return dice_.between(4, 64);
        case 2:
            return std::max<std::int64_t>(0, frame + dice_.between(-40, 3));
        case 3:
            return dice_.between(1, frame);
        default:
            return dice_.between(frame, 4 * frame);
        }
    }

    // --- from point to point ---
    void draw_messages() {
        const std::uint32_t receiver = schedule_.next_number();
        {
            Values& options = schedule_.add("receiver").options;
            options.set("receive_buffer_bytes",
                        dice_.one_of(std::vector<std::int64_t>{256, 600, 4096}));
            if (dice_.percent(20)) options.set("addresses", 2);
            if (has("slow") && dice_.percent(50)) options.set("slow_us", dice_.between(1, 5000));
            draw_session(options);
        }
        const std::int64_t senders = dice_.between(1, 2);
        for (std::int64_t i = 0; i < senders; ++i) {
            const std::uint32_t number = schedule_.next_number();
            Values& options = schedule_.add("sender").options;
            options.set("of", receiver);
            options.set("mode", dice_.between(0, 1));
            if (dice_.percent(60)) options.set("pages", dice_.between(2, 6));
            draw_session(options);
            schedule_.at(dice_.percent(80) ? 0 : moment(), number, "connect");
            const std::int64_t flows = dice_.between(1, 3);
            for (std::int64_t j = 0; j < flows; ++j) {
                Step& step = schedule_.at(moment(), number, "send");
                step.with.set("count", dice_.between(1, 80));
                step.with.set("bytes",
                              dice_.percent(80) ? dice_.between(0, 200) : dice_.between(200, 3000));
                step.with.set("gap_us", dice_.one_of(std::vector<std::int64_t>{0, 10, 100, 1000}));
            }
            if (dice_.percent(25)) schedule_.at(moment(), number, "close");
        }
    }

    // --- messages in both directions ---
    Schedule draw_dialogs_only() {
        draw_dialogs();
        faults_.draw(schedule_, span_us_, fids_);
        draw_names();
        draw_keys();
        draw_keeping();
        draw_own_memory();
        std::ranges::stable_sort(schedule_.steps, {}, &Step::at_us);
        return std::move(schedule_);
    }
    void draw_dialogs() {
        const std::uint32_t server = schedule_.next_number();
        const std::int64_t clients = dialog_dice_.between(1, 2);
        for (std::int64_t i = 0; i <= clients; ++i)
            draw_messenger(server);
    }
    void draw_messenger(std::uint32_t server) {
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("messenger").options;
        Dice& dice = dialog_dice_;
        if (number != server) {
            options.set("of", server);
            if (dice.percent(50)) options.set("reconnect", 1);
            if (dice.percent(30)) options.set("retry_ms", dice.between(1, 500));
        }
        draw_session(options);
        options.set("receive_buffer_bytes",
                    dice.one_of(std::vector<std::int64_t>{256, 600, 1000, 4096}));
        if (dice.percent(40)) options.set("page_size_bytes", dice.between(256, 4096));
        if (dice.percent(60)) options.set("pages", dice.between(2, 6));
        if (dice.percent(15)) options.set("largest", dice.between(1, 4000));
        if (dice.percent(20)) options.set("slow_us", dice.between(1, 3000));
        if (dice.percent(50)) draw_slices(options);
        if (dice.percent(60)) options.set("closes", 1);
        if (dice.percent(30)) {
            options.set("session_close_ms", dice.between(100, 2000));
            options.set("close_limit_ms", dice.between(2000, 6000));
        }
        draw_dialog_steps(number, server);
    }
    void draw_slices(Values& options) {
        options.set("posts", 1);
        options.set("depth", dialog_dice_.between(0, 5));
        if (dialog_dice_.percent(50)) options.set("posted_limit", dialog_dice_.between(1, 6));
        if (dialog_dice_.percent(60)) options.set("slice_bytes", dialog_dice_.between(1, 6000));
    }
    std::int64_t draw_message_size() {
        Dice& dice = dialog_dice_;
        // About as large as the frames of a peer.
        if (dice.percent(25))
            return dice.one_of(std::vector<std::int64_t>{256, 600, 1000}) - dice.between(0, 60);
        if (dice.percent(60)) return dice.between(0, 200);
        return dice.percent(50) ? dice.between(200, 1100) : dice.between(1100, 8000);
    }
    void draw_dialog_steps(std::uint32_t number, std::uint32_t server) {
        Dice& dice = dialog_dice_;
        const auto moment = [&] { return dice.between(0, span_us_); };
        if (number != server) schedule_.at(dice.percent(80) ? 0 : moment(), number, "connect");
        const std::int64_t flows = dice.between(0, 4);
        for (std::int64_t i = 0; i < flows; ++i) {
            Step& step = schedule_.at(moment(), number, "send");
            step.with.set("count", dice.between(1, 60));
            step.with.set("bytes", draw_message_size());
            step.with.set("gap_us", dice.one_of(std::vector<std::int64_t>{0, 10, 100, 1000}));
            if (dice.percent(40)) step.with.set("borrows", 1);
        }
        if (dice.percent(50))
            schedule_.at(moment(), number, "post").with.set("depth", dice.between(0, 5));
        if (dice.percent(25)) schedule_.at(moment(), number, "finish");
        if (dice.percent(20)) schedule_.at(moment(), number, "close");
        if (dice.percent(20))
            schedule_.at(moment(), number, "pause").with.set("us", dice.between(1, 30'000));
    }

    // --- requests and replies ---
    Schedule draw_requests_only() {
        draw_requests();
        faults_.draw(schedule_, span_us_, fids_);
        draw_names();
        draw_keys();
        std::ranges::stable_sort(schedule_.steps, {}, &Step::at_us);
        return std::move(schedule_);
    }
    void draw_requests() {
        Dice& dice = request_dice_;
        const std::uint32_t first = schedule_.next_number();
        const std::int64_t responders = dice.percent(60) ? 1 : dice.between(2, 3);
        for (std::int64_t i = 0; i < responders; ++i)
            draw_responder();
        const std::int64_t requesters = dice.between(1, 3);
        for (std::int64_t i = 0; i < requesters; ++i)
            draw_requester(first + static_cast<std::uint32_t>(
                                       i < responders ? i : dice.between(0, responders - 1)));
    }
    void draw_responder() {
        Dice& dice = request_dice_;
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("responder").options;
        draw_request_sockets(options);
        if (dice.percent(60)) options.set("requests", dice.between(1, 12));
        if (dice.percent(25)) options.set("request_bytes", dice.between(1, 3000));
        if (dice.percent(40)) options.set("queue", dice.between(1, 4000));
        if (dice.percent(30)) options.set("send_timeout_ms", dice.between(5, 3000));
        if (dice.percent(30)) options.set("depth", dice.between(1, 6));
        if (dice.percent(70)) options.set("think_us", dice.while_us() % 3'000'000);
        if (dice.percent(50)) options.set("odd_percent", dice.between(5, 90));
        options.set("parts", dice.percent(50) ? 1 : dice.between(2, 12));
        options.set("reply_bytes", dice.percent(60) ? dice.between(0, 300) : draw_message_size());
        if (dice.percent(20)) options.set("reply_bytes", dice.between(8'000, 30'000));
        if (dice.percent(10)) options.set("late_us", dice.between(0, span_us_));
        if (dice.percent(20))
            schedule_.at(dice.between(0, span_us_), number, "pause")
                .with.set("us", dice.between(1, 300'000));
        if (dice.percent(15)) schedule_.at(dice.between(0, span_us_), number, "close");
    }
    void draw_request_sockets(Values& options) {
        Dice& dice = request_dice_;
        draw_session(options);
        options.set("receive_buffer_bytes",
                    dice.one_of(std::vector<std::int64_t>{256, 600, 1000, 4096}));
        if (dice.percent(15)) options.set("keep_limit", dice.between(0, 60'000));
        if (dice.percent(40)) options.set("page_size_bytes", dice.between(256, 4096));
        if (dice.percent(60)) options.set("pages", dice.between(2, 6));
        if (dice.percent(20)) options.set("largest", dice.between(100, 4000));
        if (dice.percent(30)) {
            options.set("session_close_ms", dice.between(100, 2000));
            options.set("close_limit_ms", dice.between(2000, 6000));
        }
    }
    void draw_requester(std::uint32_t responder) {
        Dice& dice = request_dice_;
        const std::uint32_t number = schedule_.next_number();
        Values& options = schedule_.add("requester").options;
        options.set("of", responder);
        draw_request_sockets(options);
        if (dice.percent(30)) options.set("retry_ms", dice.between(1, 500));
        if (dice.percent(40)) options.set("outstanding", dice.between(1, 20));
        if (dice.percent(40)) options.set("queue", dice.between(0, 2000));
        if (dice.percent(40)) options.set("reply_limit", dice.between(0, 20'000));
        if (dice.percent(40)) options.set("request_ms", dice.between(0, 3000));
        if (dice.percent(40)) options.set("cancel_percent", dice.between(1, 80));
        if (dice.percent(30)) options.set("keep_percent", dice.between(5, 100));
        if (dice.percent(15)) options.set("slow_us", dice.between(1, 3000));
        if (dice.percent(10)) options.set("late_us", dice.between(0, span_us_));
        const std::int64_t late = options.get("late_us");
        const std::int64_t flows = dice.between(1, 4);
        for (std::int64_t i = 0; i < flows; ++i) {
            Step& step = schedule_.at(late + dice.between(0, span_us_), number, "request");
            step.with.set("count", dice.percent(80) ? dice.between(1, 30) : dice.between(30, 200));
            step.with.set("bytes", draw_message_size());
            step.with.set("gap_us", dice.one_of(std::vector<std::int64_t>{0, 0, 10, 100, 1000}));
            if (dice.percent(40))
                step.with.set("timeout_ms",
                              dice.percent(60) ? dice.between(0, 50) : dice.between(50, 5000));
        }
        if (dice.percent(25)) {
            Step& step = schedule_.at(late + dice.between(0, span_us_), number, "cancel");
            step.with.set("count", dice.between(1, 30));
            step.with.set("drops", dice.between(0, 1));
        }
        if (dice.percent(25))
            schedule_.at(late + dice.between(0, span_us_), number, "pause")
                .with.set("us", dice.between(1, 300'000));
        if (dice.percent(10)) schedule_.at(late + dice.between(0, span_us_), number, "close");
    }

    // --- streams ---
    void draw_streams() {
        const std::uint32_t server = schedule_.next_number();
        for (const bool serves : {true, false}) {
            const std::uint32_t number = schedule_.next_number();
            Values& options = schedule_.add("stream").options;
            if (!serves) options.set("of", server);
            options.set("ring", std::int64_t{1} << dice_.between(10, 16));
            if (dice_.percent(30)) options.set("published", 1);
            if (dice_.percent(40)) options.set("grows", 1);
            draw_session(options);
            if (dice_.percent(30)) options.set("sends", dice_.between(2, 3));
            if (!serves) schedule_.at(dice_.percent(80) ? 0 : moment(), number, "connect");
            const std::int64_t flows = dice_.between(0, 3);
            for (std::int64_t j = 0; j < flows; ++j) {
                Step& step = schedule_.at(moment(), number, "send");
                step.with.set("count", dice_.between(1, 40));
                step.with.set("bytes", dice_.percent(70) ? dice_.between(1, 3000)
                                                         : dice_.between(3000, 60'000));
            }
            Step& step = schedule_.at(dice_.percent(70) ? 0 : moment(), number, "receive");
            step.with.set("depth", dice_.between(1, 4));
            step.with.set("bytes",
                          dice_.percent(50) ? dice_.between(1, 4000) : dice_.between(4000, 50'000));
            step.with.set("fill", dice_.between(0, 1));
            if (dice_.percent(30)) schedule_.at(moment(), number, "shutdown");
            if (dice_.percent(15)) schedule_.at(moment(), number, "close");
            draw_close(number, serves ? number + 1 : server, options);
        }
    }
    // Uses its own dice, too: ends in order with one call and waits for its peer.
    void draw_close(std::uint32_t number, std::uint32_t peer, Values& options) {
        if (!close_dice_.percent(50)) return;
        options.set("closes", 1);
        if (close_dice_.percent(50)) {
            options.set("session_close_ms", close_dice_.between(100, 2000));
            options.set("close_limit_ms", close_dice_.between(2000, 6000));
        }
        if (close_dice_.percent(50)) draw_backlog(number, peer, options);
    }
    // It closes with much data to send, and is stopped itself while it waits for a peer that
    // receives nothing.
    void draw_backlog(std::uint32_t number, std::uint32_t peer, const Values& options) {
        const std::int64_t when = close_dice_.between(500, span_us_);
        schedule_.at(when, number, "close");
        if (close_dice_.percent(40)) {
            schedule_.at(when - 500, peer, "receive").with.set("depth", 0);
            Step& last = schedule_.at(when - close_dice_.between(0, 500), number, "send");
            last.with.set("count", close_dice_.between(1, 8));
            last.with.set("bytes", close_dice_.between(1, 60'000));
        }
        if (close_dice_.percent(50)) {
            const std::int64_t timeout_us = 1000 * options.get("session_close_ms", 10'000);
            schedule_.at(when + close_dice_.between(0, 1000), number, "stop")
                .with.set("us", close_dice_.between(1, 3 * timeout_us));
        }
    }

    Dice dice_;
    Dice name_dice_;
    Dice found_dice_;
    Dice key_dice_;
    CopyDrawing copies_;
    Dice loop_dice_;
    Dice close_dice_;
    Dice memory_dice_;
    Dice keep_dice_;
    Dice own_dice_;
    Dice time_dice_;
    Dice history_dice_;
    Dice dialog_dice_;
    Dice request_dice_;
    FaultDrawing faults_{dice_};
    Schedule schedule_;
    std::int64_t fids_ = name_dice_.percent(6) ? many_fids : dice_.between(1, few_fids);
    std::int64_t policies_ = 3; // of the latest publisher
    std::int64_t span_us_ = dice_.percent(70) ? 20'000 : 2'000'000;
};

} // namespace

Schedule draw(std::uint64_t seed) {
    return Drawing{seed}.draw();
}

} // namespace netio::world
