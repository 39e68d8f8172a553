// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"

#include "tests/support/open_descriptors.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace apps::process_test {
namespace {

[[noreturn]] void forbid_and_look() {
    forbid_core_dumps();
    rlimit limit{.rlim_cur = 1, .rlim_max = 1};
    const bool none = ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0;
    const bool hidden = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
    // The library finds its sockets in /proc.
    const bool sees_itself = netio::test::open_descriptors().size() > 2;
    std::exit(none && hidden && sees_itself ? 0 : 1);
}

TEST(CoreDumpsDeathTest, NothingOfTheMemoryIsWrittenOrShown) {
    EXPECT_EXIT(forbid_and_look(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace apps::process_test
