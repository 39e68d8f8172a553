// SPDX-License-Identifier: Apache-2.0

// A connection that ends does not delay others, however many operations are outstanding.

#include "tests/scenario/fabric/ends.hpp"

namespace netio::test::turn_test {
namespace {

class TurnsOfTheEnd : public testing::Test {
  protected:
    // A refused attempt. `most`: how many of its receives one turn of `fabric` may complete.
    static void expect_at_most(std::size_t most, Fabric& fabric,
                               const std::function<void()>& at_completion) {
        Address nobody;
        {
            const Door door{*fabric.transport, {"127.0.0.1", 0}};
            nobody = door.listener->address();
        }
        End end{*fabric.transport, nobody};
        end.at_completion = at_completion;
        std::size_t before = 0;
        ASSERT_TRUE(fabric.run_until([&] {
            const std::size_t told = end.completions - std::exchange(before, end.completions);
            EXPECT_LE(told, most);
            return !end.closed.empty();
        }));
        EXPECT_EQ(end.completions, receive_count);
        fabric.run_for(1ms);
        EXPECT_EQ(end.completions, receive_count) << "after on_closed";
        EXPECT_EQ(end.closed.size(), 1U);
    }
};

TEST_F(TurnsOfTheEnd, AreBoundedInTime) {
    Fabric fabric;
    // The provider may complete the first one by itself.
    expect_at_most(2, fabric, [&, first = true]() mutable {
        while (!first && !fabric.loop.time_is_up()) {
        }
        first = false;
    });
}

TEST_F(TurnsOfTheEnd, AreBoundedInNumber) {
    Fabric fabric{{}, {.drain_limit = 3, .turn_limit = std::chrono::hours{1}}};
    expect_at_most(3, fabric, [] {});
}

} // namespace
} // namespace netio::test::turn_test
