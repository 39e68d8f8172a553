// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fabric_faults.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace apps {
namespace {

using netio::Endpoint;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FabricFaults, BelongToTheVersionsThatWereLookedAt) {
    for (const Version version : {Version{1, 17}, Version{2, 5}, Version{2, 6}})
        EXPECT_EQ(faults_of(version).size(), 6U) << to_string(version);
    EXPECT_THAT(faults_of({1, 16}), IsEmpty());
    EXPECT_EQ(named_with_doubt({2, 6}), "libfabric 2.6");
}

TEST(FabricFaults, OfAVersionThatNobodyLookedAtAreSaidToBePossible) {
    for (const Version version : {Version{2, 7}, Version{3, 0}}) {
        EXPECT_EQ(faults_of(version).size(), 6U) << to_string(version);
        const std::string warning = fault_warning(
            {{.provider = "tcp", .address = {.host = "10.0.0.1", .port = 1}}}, version);
        EXPECT_THAT(warning, HasSubstr(to_string(version) + " (newer than 2.6, the newest that was "
                                                            "looked at: it may be mended)"));
    }
}

TEST(FabricFaults, AreWarnedOfWhereOtherMachinesReachTcp) {
    const Version bad{1, 17};
    const auto at = [](const char* host, const char* provider) {
        return std::vector{Endpoint{.provider = provider, .address = {.host = host, .port = 1}}};
    };
    EXPECT_THAT(fault_warning(at("10.0.0.1", "tcp"), bad), HasSubstr("libfabric 1.17"));
    EXPECT_THAT(fault_warning(at("0.0.0.0", "tcp"), bad), HasSubstr("netio doctor"));
    EXPECT_THAT(fault_warning(at("127.0.0.1", "tcp"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("::1", "tcp"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("10.0.0.1", "verbs"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("10.0.0.1", "tcp"), {1, 16}), IsEmpty());
}

TEST(FabricFaults, EachHasItsPatchesInTheDocuments) {
    for (const FabricFault& fault : faults_of({1, 17})) {
        if (fault.patch.empty()) continue;
        for (const char* version : {"v1.17.0", "v2.6.0"}) {
            const std::string name = std::string{fault.patch} + "-" + version + ".patch";
            EXPECT_TRUE(std::filesystem::exists(std::string{NETIO_UPSTREAM_FOLDER} + "/" + name))
                << name;
        }
    }
}

} // namespace
} // namespace apps
