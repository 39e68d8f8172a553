// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_bed.hpp"

#include "netio/fabric.hpp"
#include "netio/loop/process.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

// libfabric's tcp provider does not free a half-received connection request when its listener is
// closed. This library cannot fix that. (The address sanitizer's runtime calls this function.)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libfabric.so\n";
}

namespace netio::test {
namespace {
// Limit of turns of a simulated loop without progress of time; more mean an endless loop.
constexpr std::size_t turn_limit = 1'000'000;

std::string_view environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view{} : value;
}

// Real or virtual time.
std::chrono::seconds deadline() {
    constexpr std::chrono::seconds usual{60};
    const char* const factor = std::getenv("NETIO_TEST_DEADLINE_FACTOR");
    return factor == nullptr ? usual : usual * std::max(1L, std::strtol(factor, nullptr, 10));
}

std::vector<Bed> beds_on_the_fabric() {
    std::vector<Bed> beds{Bed::fabric_tcp};
    const std::string_view wanted = environment("NETIO_TEST_FABRIC");
    if (wanted.empty()) return beds;
    if (wanted != "verbs" || environment("NETIO_TEST_ADDRESS").empty()) {
        throw std::runtime_error{"NETIO_TEST_FABRIC must be verbs, and NETIO_TEST_ADDRESS the "
                                 "address of an RDMA device"};
    }
    beds.push_back(Bed::fabric_verbs);
    return beds;
}

void print_replay(std::uint64_t seed) {
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    const testing::TestInfo* const test = tests.current_test_info();
    if (test == nullptr) return;
    std::cerr << "replay with: NETIO_TEST_SEED=" << seed << " <this program> --gtest_filter='"
              << test->test_suite_name() << '.' << test->name() << "'\n";
}
} // namespace

TestBed::TestBed(Bed bed, std::uint64_t seed) : bed_{bed}, seed_{seed} {
    if (bed == Bed::fabric_tcp || bed == Bed::fabric_verbs) {
        loop_ = std::make_unique<EventLoop>();
        loop_->observer = &seen_;
        transport_ = open_fabric(*loop_, {.provider = bed == Bed::fabric_tcp ? "tcp" : "verbs"});
        return;
    }
    world_ = std::make_unique<SimWorld>();
    loop_ = std::make_unique<EventLoop>(EventLoop::Options{.observer = &seen_}, *world_);
    auto sim = std::make_unique<SimTransport>(
        *loop_, *world_, bed == Bed::sim_tcp ? tcp_profile() : verbs_profile(), seed);
    sim_ = sim.get();
    transport_ = std::move(sim);
}

TestBed::~TestBed() {
    if (sim_ == nullptr) return;
    for (const std::string& violation : sim_->violations())
        ADD_FAILURE() << "violation (seed " << seed_ << "): " << violation;
    if (testing::Test::HasFailure()) print_replay(seed_);
}

TimePoint TestBed::now() const {
    return world_ ? world_->now() : Clock::now();
}

Address TestBed::address() const {
    if (bed_ != Bed::fabric_verbs) return {.host = "127.0.0.1", .port = 0};
    return {.host = std::string{environment("NETIO_TEST_ADDRESS")}, .port = 0};
}

bool TestBed::run_until(const std::function<bool()>& done) {
    const TimePoint end = now() + deadline();
    TimePoint last = now();
    std::size_t turns = 0;
    while (!done()) {
        if (now() >= end) return false;
        loop_->run_once(end);
        turns = now() == std::exchange(last, now()) ? turns + 1 : 0;
        if (turns > turn_limit) {
            ADD_FAILURE() << "the loop works without end, and time stands still";
            return false;
        }
    }
    return true;
}

void TestBed::let_pass(Duration time) {
    bool is_over = false;
    Timer end{*loop_, [&] { is_over = true; }};
    end.start(time);
    EXPECT_TRUE(run_until([&] { return is_over; }));
}

std::uint64_t TestBed::default_seed() {
    const char* const seed = std::getenv("NETIO_TEST_SEED");
    return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

testing::internal::ParamGenerator<Bed> all_beds() {
    std::vector<Bed> beds{Bed::sim_tcp, Bed::sim_verbs};
    for (const Bed bed : beds_on_the_fabric())
        beds.push_back(bed);
    return testing::ValuesIn(beds);
}
testing::internal::ParamGenerator<Bed> simulated_beds() {
    return testing::Values(Bed::sim_tcp, Bed::sim_verbs);
}
testing::internal::ParamGenerator<Bed> fabric_beds() {
    return testing::ValuesIn(beds_on_the_fabric());
}

std::string bed_name(const testing::TestParamInfo<Bed>& info) {
    switch (info.param) {
    case Bed::sim_tcp:
        return "sim_tcp";
    case Bed::sim_verbs:
        return "sim_verbs";
    case Bed::fabric_tcp:
        return "fabric_tcp";
    case Bed::fabric_verbs:
        return "fabric_verbs";
    }
    return "unknown";
}

void PrintTo(Bed bed, std::ostream* out) {
    *out << bed_name({bed, 0});
}

namespace {
// Otherwise a library that libfabric loads leaves a file with a backtrace in the working directory
// whenever a death test dies. This runs before main, because not every test opens the fabric.
[[maybe_unused]] const bool deaths_leave_no_files = (undo_foreign_signal_handlers(), true);
} // namespace

} // namespace netio::test
