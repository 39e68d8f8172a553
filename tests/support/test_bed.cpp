// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_bed.hpp"

#include "netio/fabric.hpp"

// libfabric's tcp provider does not free a connection request that is half received when its
// listener is closed; that is not ours to mend. (Called by the address sanitizer's runtime.)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libfabric.so\n";
}

namespace netio::test {
namespace {
constexpr std::chrono::seconds deadline{60};
}

TestBed::TestBed(Bed bed) {
    switch (bed) {
    case Bed::fabric_tcp:
        transport_ = open_fabric(loop_, {.provider = "tcp"});
        break;
    }
}

TestBed::~TestBed() = default;

Address TestBed::address() const {
    return {.host = "127.0.0.1", .port = 0};
}

bool TestBed::run_until(const std::function<bool()>& done) {
    const TimePoint end = Clock::now() + deadline;
    while (!done()) {
        if (Clock::now() > end) return false;
        loop_.run_once(end);
    }
    return true;
}

testing::internal::ParamGenerator<Bed> all_beds() {
    return testing::Values(Bed::fabric_tcp);
}

std::string bed_name(const testing::TestParamInfo<Bed>& info) {
    switch (info.param) {
    case Bed::fabric_tcp:
        return "fabric_tcp";
    }
    return "unknown";
}

} // namespace netio::test
