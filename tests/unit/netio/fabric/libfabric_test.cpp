// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/libfabric.hpp"

#include <gtest/gtest.h>

#include <string>

namespace netio::fabric::libfabric_test {
namespace {

// fi_getinfo and similar functions exist in several versions, each with its own data layout.
TEST(Library, HasTheSymbolVersionsOfTheseHeaders) {
    EXPECT_EQ(library().dupinfo, &::fi_dupinfo);
    EXPECT_EQ(library().fabric, &::fi_fabric);
    EXPECT_EQ(library().freeinfo, &::fi_freeinfo);
    EXPECT_EQ(library().getinfo, &::fi_getinfo);
    EXPECT_EQ(library().strerror, &::fi_strerror);
    EXPECT_EQ(library().version, &::fi_version);
}

TEST(Library, IsLoadedOnce) {
    EXPECT_EQ(&library(), &library());
}

TEST(Library, AnEmptyDescriptionIsADuplicateOfNone) {
    const Info empty{library().dupinfo(nullptr)};
    ASSERT_TRUE(empty);
    EXPECT_EQ(empty->next, nullptr);
    EXPECT_NE(empty->domain_attr, nullptr);
}

} // namespace
} // namespace netio::fabric::libfabric_test
