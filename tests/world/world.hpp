// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries a schedule out: many simulated processes with the real loops and sockets, in virtual time
// and without a thread. First what the schedule says happens, under its faults, and only safety is
// demanded. Then everything is healed, and within a bound of virtual time everybody who is alive
// must be served. Then all end in order, and nothing may be left.

#include "netio/base/status.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_scheduler.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/world/bus.hpp"
#include "tests/world/file_oracle.hpp"
#include "tests/world/found_oracle.hpp"
#include "tests/world/meetings.hpp"
#include "tests/world/oracle.hpp"
#include "tests/world/pipe_oracle.hpp"
#include "tests/world/process.hpp"
#include "tests/world/pubsub_oracle.hpp"
#include "tests/world/schedule.hpp"
#include "tests/world/site_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace netio::world {

class Actor;

struct Outcome {
    std::vector<Violation> violations;
    std::uint64_t trace_hash = 0;
    std::uint64_t delivered = 0;
    std::uint64_t turns = 0;
    Meetings meetings;
};

class World {
  public:
    // `show`: the trace, line by line.
    explicit World(const Schedule& schedule, std::function<void(const std::string&)> show = {});
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Outcome run();

    // --- for actors ---
    Oracle& oracle() noexcept { return oracle_; }
    PubSubOracle& pubsub() noexcept { return pubsub_; }
    PipeOracle& pipes() noexcept { return pipes_; }
    FoundOracle& found() noexcept { return found_; }
    BusTexts& bus() noexcept { return bus_; }
    // Those who are to be found on it, whether or not they live.
    template <class Visit>
    void for_each_announced(Visit visit) const {
        for (const ProcessPlan& plan : schedule_.processes)
            if (plan.kind == "announced") visit(plan);
    }
    FileOracle& files() noexcept { return files_; }
    std::size_t count_of_copiers() const {
        return static_cast<std::size_t>(
            std::ranges::count(schedule_.processes, "copier", &ProcessPlan::kind));
    }
    test::SimNetwork& network() noexcept { return network_; }
    // Where a process listens; it may have several places.
    static Address address_of(std::uint32_t process, std::int64_t which = 0);
    // Whom a process lets in, and what it shows to be let in; null: this world has no keys.
    std::shared_ptr<ServerKeys> keys_of_server(EventLoop& loop) const;
    std::shared_ptr<const ClientKey> key_of(std::uint32_t process);
    std::uint64_t incarnation_of(std::uint32_t process) const { return incarnations_.at(process); }
    bool is_alive(std::uint32_t process) const { return processes_.contains(process); }
    // Whether there is a socket that others can be served by, wherever it was to listen.
    bool serves(std::uint32_t process) const;
    // Whether this end, which a process was told, has a reason in what happened.
    void judge_end(std::uint32_t process, std::uint32_t peer, TimePoint since, const Closed& closed,
                   Duration dead_after);

    // A fault at the moment at which somebody is told something: kinds[with.kind] happens to
    // process with.whom.
    void strike(const Step& step);
    static std::span<const char* const> strikes();

  private:
    void begin(const ProcessPlan& plan);
    void apply(const Step& step);
    bool apply_to_process(const Step& step);
    void stop(std::uint32_t process, Duration time);
    void go_on(Process& process);
    static Address address_of_peer(const ProcessPlan& plan);
    void lose_name(std::uint32_t process, Duration time);
    void find_name(std::uint32_t process);
    void block(std::uint32_t from, std::uint32_t to, const Step& step);
    void revoke(std::uint32_t process, Duration time);
    void permit(std::uint32_t process);
    TimePoint busy_until() const; // all of them
    void kill(std::uint32_t process, bool host);
    void meet(const char* fault, std::uint32_t process);
    void check_turns(Process& process);
    void heal();
    void run_until(TimePoint end);
    // Whether it came true within the time.
    bool run_until_true(Duration limit, const std::function<bool()>& done);
    void finish();
    void end_all();
    void tell(std::uint32_t process, std::function<void(Actor&)> what);

    Schedule schedule_;
    std::unique_ptr<SiteKeys> keys_;
    test::SimClock clock_;
    Oracle oracle_{clock_};
    PubSubOracle pubsub_{oracle_};
    PipeOracle pipes_{oracle_};
    FoundOracle found_{oracle_};
    BusTexts bus_;
    FileOracle files_{oracle_};
    test::SimNetwork network_;
    test::SimScheduler scheduler_;
    Meetings meetings_;
    std::map<std::uint32_t, std::unique_ptr<Process>> processes_;
    std::map<std::uint32_t, std::uint64_t> incarnations_;
    std::map<std::uint32_t, TimePoint> stopped_until_;
    TimePoint start_;
    bool healed_ = false;
    bool stuck_ = false;
};

} // namespace netio::world
