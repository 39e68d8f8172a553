// SPDX-License-Identifier: Apache-2.0

// Schedules with streams only.

#include "tests/world/expect_good.hpp"

#include <string>

namespace netio::world::stream_world_test {
namespace {

// The peer receives nothing until long after the close, is stopped, or takes longer because of its
// ring.
TEST(WorldOfStreams, AStreamClosesWithinItsTimeLimit) {
    const std::string all = "process 0 stream ring=65536\n"
                            "process 1 stream of=0 closes=1 session_close_ms=500 "
                            "close_limit_ms=2000\n"
                            "at 0 process 1 connect\n"
                            "at 1000 process 1 send bytes=50000 count=6\n"
                            "at 50000 process 1 close\n";
    for (const char* const device : {"0", "1", "2"}) {
        for (const char* const peer : {"", "at 0 process 0 stop us=9000000\n",
                                       "at 0 process 0 receive\n"
                                       "at 40000 process 0 stop us=9000000\n",
                                       "at 40000 process 1 stop us=9000000\n"}) {
            SCOPED_TRACE(peer);
            expect_good((std::string{"world tail_us=10000000 device="} + device + "\n" + all + peer)
                            .c_str());
        }
    }
}

} // namespace
} // namespace netio::world::stream_world_test
