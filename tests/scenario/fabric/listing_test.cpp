// SPDX-License-Identifier: Apache-2.0

// How often this process lists its file descriptors, which takes time proportional to their number:
// once or twice for each new connection, and never to query one.

#include "tests/scenario/fabric/ends.hpp"

#include <gmock/gmock.h>

#include <dirent.h>
#include <dlfcn.h>

namespace {

std::size_t listings = 0;

} // namespace

// Each listing starts with this call (netio/fabric/kernel_socket.cpp). The linker finds this
// function before the C library's.
extern "C" void rewinddir(DIR* directory) {
    static const auto of_the_library =
        reinterpret_cast<void (*)(DIR*)>(::dlsym(RTLD_NEXT, "rewinddir"));
    ++listings;
    of_the_library(directory);
}

namespace netio::test::listing_test {
namespace {

TEST(Listing, IsForConnectionsThatAreMadeAndNotForThoseThatAreLookedAt) {
    constexpr std::size_t count = 50;
    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    std::vector<std::unique_ptr<End>> ends;
    const auto connect = [&] {
        for (std::size_t i = 0; i < count; ++i)
            ends.push_back(std::make_unique<End>(*fabric.transport, door.listener->address()));
        ASSERT_TRUE(fabric.run_until([&] {
            return door.ends.size() == ends.size() &&
                   std::ranges::all_of(ends, [](const auto& end) { return end->connected; });
        }));
    };
    connect();
    const std::size_t of_the_first = listings;
    connect();
    EXPECT_LE(listings - of_the_first, 4 * count) << "the second half needs as many as the first";
    const std::size_t before = listings;
    for (int look = 0; look < 20; ++look) {
        for (const auto& all : {std::cref(ends), std::cref(door.ends)})
            for (const auto& end : all.get())
                static_cast<void>(end->connection->last_sign_of_life(1ms));
        fabric.run_for(1ms);
    }
    EXPECT_EQ(listings, before);
}

} // namespace
} // namespace netio::test::listing_test
