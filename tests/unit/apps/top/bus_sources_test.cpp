// SPDX-License-Identifier: Apache-2.0
#include "apps/top/bus_sources.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace apps::top {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;

class BusSourcesTest : public testing::Test {
  protected:
    BusSourcesTest() { fs::create_directories(bus); }
    ~BusSourcesTest() override { fs::remove_all(bus); }
    void announce(const std::string& name, const std::string& host,
                  const std::string& metrics) const {
        std::ofstream{fs::path{bus} / (name + ".netio")} << to_text(netio::pubsub::Announcement{
            .name = name, .instance = 1, .host = host, .pid = 1, .metrics = metrics});
    }

    std::string bus = testing::TempDir() + "netio_bus_sources_" + std::to_string(::getpid());
};

TEST_F(BusSourcesTest, WhatOnlyAnotherMachineReachesIsNotAskedHere) {
    const std::string here = netio::pubsub::this_host();
    announce("a-here", here, "127.0.0.1:9001");
    announce("b-there", here + "-2", "127.0.0.1:9002");
    announce("c-there", here + "-2", "10.0.0.1:9003");
    announce("d-nowhere", here + "-2", "");
    announce("e-there", here + "-2", "[::1]:9004");
    announce("f-unsaid", "", "127.0.0.1:9005");
    netio::EventLoop loop;
    BusSources sources{loop, bus};
    ASSERT_TRUE(sources.read());
    const auto is = [](const std::string& name, const std::string& address) {
        return AllOf(Field(&Source::name, name), Field(&Source::address, address));
    };
    EXPECT_THAT(sources.sources(),
                ElementsAre(is("a-here", "127.0.0.1:9001"), is("c-there", "10.0.0.1:9003"),
                            is("f-unsaid", "127.0.0.1:9005")));
}

} // namespace
} // namespace apps::top
