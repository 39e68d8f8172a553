// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a scenario takes place: an event loop and a transport on it. A scenario is written once and
// runs on every bed:
//
//     class Things : public testing::TestWithParam<Bed> {
//       protected:
//         TestBed bed{GetParam()};
//     };
//     TEST_P(Things, Happen) { ... ASSERT_TRUE(bed.run_until([&] { return happened; })); }
//     INSTANTIATE_TEST_SUITE_P(Beds, Things, all_beds(), bed_name);
//
// A machine with an RDMA device adds its own: NETIO_TEST_FABRIC=verbs and NETIO_TEST_ADDRESS, that
// of the device, bring the bed fabric_verbs (./dev rdma-test sets them). Where the machine is slow,
// NETIO_TEST_DEADLINE_FACTOR multiplies the deadlines.
//
// A simulated run depends on its seed alone. A test that fails there prints the command that
// replays it; NETIO_TEST_SEED=17 runs any test with another interleaving.

#include "netio/loop/event_loop.hpp"
#include "netio/transport.hpp"
#include "tests/support/seen.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/support/sim_world.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace netio::test {

enum class Bed : std::uint8_t {
    sim_tcp,      // the simulator with the manners of the tcp provider
    sim_verbs,    // and with those of RDMA hardware
    fabric_tcp,   // libfabric's tcp provider over the loopback interface
    fabric_verbs, // the verbs provider over the RDMA device at NETIO_TEST_ADDRESS
};

class TestBed {
  public:
    // `seed`: of the simulator's interleaving.
    explicit TestBed(Bed bed, std::uint64_t seed = default_seed());
    // Fails the test if the simulator has seen a violation.
    ~TestBed();
    TestBed(const TestBed&) = delete;
    TestBed& operator=(const TestBed&) = delete;

    EventLoop& loop() noexcept { return *loop_; }
    // What the loop's observer was told.
    Seen& seen() noexcept { return seen_; }
    Transport& transport() noexcept { return *transport_; }
    // The simulator; null on the fabric.
    SimTransport* sim() noexcept { return sim_; }
    // The process that it runs in; null on the fabric.
    SimWorld* world() noexcept { return world_.get(); }
    // Where to listen: any free port.
    Address address() const;
    // Runs the loop until it is done. False: the deadline has passed, which is far beyond what any
    // scenario needs, or virtual time stands still.
    bool run_until(const std::function<bool()>& done);
    // Runs it until so much time has passed. Fails the test if that does not come.
    void let_pass(Duration time);

    // NETIO_TEST_SEED, or 1.
    static std::uint64_t default_seed();

  private:
    TimePoint now() const;

    Seen seen_;
    Bed bed_;
    std::uint64_t seed_;
    std::unique_ptr<SimWorld> world_;
    std::unique_ptr<EventLoop> loop_;
    std::unique_ptr<Transport> transport_;
    SimTransport* sim_ = nullptr;
};

// For INSTANTIATE_TEST_SUITE_P. Throws std::runtime_error if the environment asks for a bed that is
// not known.
testing::internal::ParamGenerator<Bed> all_beds();
testing::internal::ParamGenerator<Bed> simulated_beds();
// Those of them whose transport is libfabric.
testing::internal::ParamGenerator<Bed> fabric_beds();
std::string bed_name(const testing::TestParamInfo<Bed>& info);
// For GoogleTest's messages.
void PrintTo(Bed bed, std::ostream* out);

} // namespace netio::test
