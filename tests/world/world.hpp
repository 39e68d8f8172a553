// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries out a schedule: many simulated processes with the real loops and sockets, in virtual time
// and without a thread. In the first phase the schedule runs with its faults, and only safety is
// required. In the second phase all faults end, and every living process must be served within a
// limit of virtual time. In the third phase all end in order, and nothing may be left.

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
#include "tests/world/request_oracle.hpp"
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
    // `show` receives the trace, line by line.
    explicit World(const Schedule& schedule, std::function<void(const std::string&)> show = {});
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Outcome run();

    // --- for actors ---
    Oracle& oracle() noexcept { return oracle_; }
    PubSubOracle& pubsub() noexcept { return pubsub_; }
    PipeOracle& pipes() noexcept { return pipes_; }
    RequestOracle& requests() noexcept { return requests_; }
    FoundOracle& found() noexcept { return found_; }
    BusTexts& bus() noexcept { return bus_; }
    // The processes that can be found in the registry, alive or not.
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
    // An address at which a process listens; it may have several.
    static Address address_of(std::uint32_t process, std::int64_t which = 0);
    // The keys that a server admits, and the key that a client uses; null in a world without keys.
    std::shared_ptr<ServerKeys> keys_of_server(EventLoop& loop) const;
    std::shared_ptr<const ClientKey> key_of(std::uint32_t process);
    std::uint64_t incarnation_of(std::uint32_t process) const { return incarnations_.at(process); }
    bool is_alive(std::uint32_t process) const { return processes_.contains(process); }
    // Whether it has a socket that serves others, at any address.
    bool serves(std::uint32_t process) const;
    // Checks that a reported end has a cause among the faults.
    void judge_end(std::uint32_t process, std::uint32_t peer, TimePoint since, const Closed& closed,
                   Duration dead_after);

    // A fault during a callback: kinds[with.kind] happens to the process with.whom.
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
    TimePoint busy_until() const; // the maximum over all
    void kill(std::uint32_t process, bool host);
    void meet(const char* fault, std::uint32_t process);
    void check_turns(Process& process);
    void heal();
    void run_until(TimePoint end);
    // Returns whether the condition became true within the limit.
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
    RequestOracle requests_{oracle_};
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
