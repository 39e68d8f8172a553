// SPDX-License-Identifier: Apache-2.0
#include "apps/common/machine.hpp"

#include <gmock/gmock.h>

#include <string>

namespace apps {
namespace {

using testing::ElementsAre;
using testing::Pair;

// The addresses are no machine's, so an answer cannot come from a question for each of them.
TEST(PickedProviders, AreThoseOfTheDescriptionsInTheirOrder) {
    EXPECT_THAT(
        picked_providers({{.provider = "verbs", .domain = "mlx5_0", .addresses = {"192.0.2.2"}},
                          {.provider = "tcp",
                           .domain = "eth0",
                           .addresses = {"192.0.2.1", "192.0.2.2", "2001:db8::1"}}}),
        ElementsAre(Pair("192.0.2.1", "tcp"), Pair("192.0.2.2", "verbs"),
                    Pair("2001:db8::1", "tcp")));
}

} // namespace
} // namespace apps
