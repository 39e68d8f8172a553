// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a scenario takes place: an event loop and a transport on it. A scenario is written once and
// runs on every bed.

#include "netio/event_loop.hpp"
#include "netio/transport.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace netio::test {

enum class Bed : std::uint8_t {
    fabric_tcp, // libfabric's tcp provider over the loopback interface
};

class TestBed {
  public:
    explicit TestBed(Bed bed);
    ~TestBed();
    TestBed(const TestBed&) = delete;
    TestBed& operator=(const TestBed&) = delete;

    EventLoop& loop() noexcept { return loop_; }
    Transport& transport() noexcept { return *transport_; }
    // Where to listen: any free port.
    Address address() const;
    // Runs the loop until it is done. False: the deadline has passed, which is far beyond what any
    // scenario needs.
    bool run_until(const std::function<bool()>& done);

  private:
    EventLoop loop_;
    std::unique_ptr<Transport> transport_;
};

// For INSTANTIATE_TEST_SUITE_P.
testing::internal::ParamGenerator<Bed> all_beds();
std::string bed_name(const testing::TestParamInfo<Bed>& info);

} // namespace netio::test
