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
    sim_tcp,      // the simulator with the behaviour of the tcp provider
    sim_verbs,    // the simulator with the behaviour of RDMA hardware
    fabric_tcp,   // libfabric's tcp provider over the loopback interface
    fabric_verbs, // the verbs provider over the RDMA device at NETIO_TEST_ADDRESS
};

class TestBed {
  public:
    // `seed` sets the interleaving in the simulator.
    explicit TestBed(Bed bed, std::uint64_t seed = default_seed());
    // Fails the test if the simulator has recorded a violation.
    ~TestBed();
    TestBed(const TestBed&) = delete;
    TestBed& operator=(const TestBed&) = delete;

    EventLoop& loop() noexcept { return *loop_; }
    // The notifications of the loop's observer.
    Seen& seen() noexcept { return seen_; }
    Transport& transport() noexcept { return *transport_; }
    // The simulator, or null on the fabric.
    SimTransport* sim() noexcept { return sim_; }
    // The simulated process, or null on the fabric.
    SimWorld* world() noexcept { return world_.get(); }
    // An address to listen at, with any free port.
    Address address() const;
    // Runs the loop until done() is true. Returns false after the deadline, which is far longer
    // than any scenario needs, or if virtual time does not advance.
    bool run_until(const std::function<bool()>& done);
    // Runs the loop for this duration. Fails the test if the duration does not elapse.
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

// For INSTANTIATE_TEST_SUITE_P. Throws std::runtime_error if the environment names an unknown bed.
testing::internal::ParamGenerator<Bed> all_beds();
testing::internal::ParamGenerator<Bed> simulated_beds();
// The beds whose transport is libfabric.
testing::internal::ParamGenerator<Bed> fabric_beds();
std::string bed_name(const testing::TestParamInfo<Bed>& info);
// For GoogleTest's messages.
void PrintTo(Bed bed, std::ostream* out);

} // namespace netio::test
