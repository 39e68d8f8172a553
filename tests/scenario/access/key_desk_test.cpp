// SPDX-License-Identifier: Apache-2.0

// The keys of a server at their limits, and without an observer.

#include "tests/scenario/access/gate_fixture.hpp"

#include <stdexcept>

namespace netio::test::key_desk_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using KeyDesk = GateTest;

INSTANTIATE_TEST_SUITE_P(Beds, KeyDesk, simulated_beds(), bed_name);

TEST_P(KeyDesk, AcceptsEightAdvertisedAddressesAndNoNinth) {
    ServerKeys::Options options{.file = files.site()};
    for (std::uint16_t port = 1; port <= 8; ++port)
        options.advertised_addresses.push_back({"203.0.113.9", port});
    EXPECT_NO_THROW((ServerKeys{bed.loop(), options}));
    options.advertised_addresses.push_back({"203.0.113.9", 9});
    try {
        const ServerKeys nine{bed.loop(), options};
        FAIL() << "nine addresses were accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("advertised_addresses takes at most 8 addresses"));
    }
}

TEST_P(KeyDesk, WithoutAnObserverRefusesWrongAndRevokedKeysSilently) {
    bed.loop().observer = nullptr;
    files.permit(7, "services=messages");
    listen();
    expect_kept_out(key(files.forged(7)), "it does not admit this side");
    Visitor visitor{bed.transport()};
    visit(visitor, key(files.client(7)));
    ASSERT_EQ(visitor.opened, 1);
    ASSERT_TRUE(bed.run_until([&] { return open == 1; }));
    files.revoke(7);
    ASSERT_TRUE(bed.run_until([&] { return !closed.empty(); }));
    EXPECT_EQ(closed[0].reason, CloseReason::not_admitted);
    EXPECT_THAT(refused, IsEmpty());
    EXPECT_THAT(revoked, IsEmpty());
}

// It listens at an address that other machines reach, and admits only clients with a key.
TEST_P(KeyDesk, WithRequiredKeysAChangeOfTheFileGivesNoWarning) {
    files.permit(7, "services=messages");
    files.permit(8, "services=messages");
    keys = std::make_shared<ServerKeys>(
        bed.loop(), ServerKeys::Options{.file = files.site(), .look_interval = look_interval});
    const SessionListener everywhere{bed.transport(),
                                     {.service = Service::messages,
                                      .listen = {{.host = "0.0.0.0", .port = 0}},
                                      .service_bytes = 4,
                                      .keys = keys},
                                     static_cast<SessionListener::Handler&>(*this)};
    files.revoke(7);
    ASSERT_TRUE(bed.run_until([&] { return !revoked.empty(); }));
    EXPECT_THAT(revoked, ElementsAre(Pair(7U, 0U)));
    EXPECT_THAT(problems, IsEmpty());
}

} // namespace
} // namespace netio::test::key_desk_test
