// SPDX-License-Identifier: Apache-2.0

// A key file that changes while connections exist.

#include "tests/scenario/access/gate_fixture.hpp"

namespace netio::test::key_change_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class KeyChange : public GateTest {
  protected:
    void open_one(Visitor& visitor, int id) {
        const int before = open;
        visit(visitor, key(files.client(id)));
        ASSERT_EQ(visitor.opened, 1);
        ASSERT_TRUE(bed.run_until([&] { return open > before; }));
    }
};

using KeyChangeInVirtualTime = KeyChange;

TEST_P(KeyChange, EndsTheSessionsOfARevokedKeyAndNoOthers) {
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    listen();
    Visitor seven{bed.transport()}, eight{bed.transport()};
    open_one(seven, 7);
    open_one(eight, 8);
    files.revoke(7);
    ASSERT_TRUE(bed.run_until([&] { return !closed.empty() && !seven.closed.empty(); }));
    EXPECT_EQ(closed[0].reason, CloseReason::not_admitted);
    EXPECT_THAT(closed[0].detail, HasSubstr("was removed or changed"));
    EXPECT_THAT(revoked, ElementsAre(Pair(7U, 1U)));
    EXPECT_EQ(sessions.size(), 1U);
    EXPECT_TRUE(eight.session && eight.session->is_open());
    EXPECT_THAT(problems, IsEmpty());
    incoming = 0;
    expect_kept_out(key(files.client(7)), "it does not admit this side");
}

TEST_P(KeyChange, EndsTheSessionsOfAKeyWithChangedRightsAndReadmitsIt) {
    files.permit(7, "services=messages connections=5");
    listen();
    Visitor visitor{bed.transport()};
    open_one(visitor, 7);
    files.permit(7, "services=messages connections=6");
    ASSERT_TRUE(bed.run_until([&] { return !closed.empty(); }));
    EXPECT_EQ(closed[0].reason, CloseReason::not_admitted);
    expect_let_in(key(files.client(7)));
}

TEST_P(KeyChange, KeepsTheFormerKeysWhileTheFileIsWrongAndReportsItOnce) {
    files.permit(7, "services=messages");
    listen();
    Visitor visitor{bed.transport()};
    open_one(visitor, 7);
    files.spoil();
    ASSERT_TRUE(bed.run_until([&] { return !problems.empty(); }));
    EXPECT_THAT(problems, ElementsAre(HasSubstr("site.keys:2")));
    EXPECT_TRUE(visitor.session->is_open());
    Visitor another{bed.transport()};
    open_one(another, 7);
    files.permit(8, "services=messages"); // valid again
    int opened = 0;
    for (int tries = 0; opened == 0 && tries < 100000; ++tries) {
        Visitor eight{bed.transport()};
        visit(eight, key(files.client(8)));
        opened = eight.opened;
    }
    EXPECT_EQ(opened, 1);
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_TRUE(visitor.session->is_open()) << "its key did not change";
}

TEST_P(KeyChange, OfAClientCountsFromItsNextAttemptOn) {
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    listen();
    const std::string file = files.client(7);
    const auto shown = key(file);
    expect_let_in(shown);
    files.revoke(7);
    ASSERT_TRUE(bed.run_until([&] { return !revoked.empty(); }));
    incoming = 0;
    expect_kept_out(shown, "it does not admit this side");
    access::write_key_file(file, access::text_of_one(files.key(8)), true);
    expect_let_in(shown);
    EXPECT_THAT(problems, IsEmpty());
}

TEST_P(KeyChange, OfAClientKeepsItsKeyWhileTheFileIsWrongAndReportsItOnce) {
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    listen();
    const std::string file = files.client(7);
    const auto shown = key(file);
    access::write_key_file(file, "netio-keys 1\n7 ", true);
    for (int each = 0; each < 3; ++each)
        expect_let_in(shown);
    EXPECT_THAT(problems, ElementsAre(HasSubstr("client7.key:2")));
    access::write_key_file(
        file, access::with_key(access::text_of_one(files.key(7)), files.key(8), file), true);
    for (int each = 0; each < 3; ++each)
        expect_let_in(shown);
    EXPECT_THAT(problems,
                ElementsAre(HasSubstr("client7.key:2"), HasSubstr("it must hold one key")));
}

// The change comes just after the file was read, so the next read is farthest away, and the loop's
// turns are long.
TEST_P(KeyChangeInVirtualTime, EndsASessionWithinOneIntervalAlsoOfABusyLoop) {
    constexpr auto interval = std::chrono::seconds{1};
    constexpr auto turn = std::chrono::milliseconds{30};
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    keys = std::make_shared<ServerKeys>(
        bed.loop(), ServerKeys::Options{.file = files.site(), .look_interval = interval});
    const TimePoint begin = bed.loop().now();
    listen_with(keys);
    Visitor seven{bed.transport()}, eight{bed.transport()};
    open_one(seven, 7);
    open_one(eight, 8);
    Timer busy{bed.loop(), [&] {
                   bed.world()->spend(turn);
                   busy.start(std::chrono::milliseconds{1});
               }};
    busy.start({});
    for (int look = 1; look <= 3; ++look) {
        ASSERT_TRUE(bed.run_until(
            [&] { return bed.loop().now() - begin > look * (interval + turn) + turn; }));
        ASSERT_TRUE(closed.empty());
    }
    for (const int id : {7, 8}) { // the second change just after the read that saw the first
        files.revoke(id);
        const std::size_t before = closed.size();
        const TimePoint change = bed.loop().now();
        ASSERT_TRUE(bed.run_until([&] { return closed.size() > before; }));
        EXPECT_LE(bed.loop().now() - change, interval + 3 * turn);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, KeyChange, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, KeyChangeInVirtualTime, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::key_change_test
