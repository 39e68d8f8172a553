// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/disk.hpp"

#include <gmock/gmock.h>

#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace apps::copy::disk_thread_test {
namespace {

using testing::ElementsAre;

TEST(DiskThread, RunsTasksInOrderAndReportsOnTheLoop) {
    netio::EventLoop loop;
    DiskThread disk{loop};
    disk.start();
    std::vector<int> ran;
    std::vector<int> told;
    std::thread::id where;
    for (int i = 0; i < 3; ++i) {
        disk.run(
            [&, i](const std::stop_token&) {
                ran.push_back(i);
                where = std::this_thread::get_id();
            },
            [&, i](const std::string& problem) {
                EXPECT_EQ(problem, "");
                told.push_back(i);
                if (i == 2) loop.stop();
            });
    }
    EXPECT_FALSE(disk.is_idle());
    loop.run();
    EXPECT_THAT(ran, ElementsAre(0, 1, 2));
    EXPECT_THAT(told, ElementsAre(0, 1, 2));
    EXPECT_NE(where, std::this_thread::get_id());
    EXPECT_TRUE(disk.is_idle());
}

TEST(DiskThread, ReportsTheExceptionOfATask) {
    netio::EventLoop loop;
    DiskThread disk{loop};
    disk.start();
    std::string told;
    disk.run([](const std::stop_token&) { throw std::runtime_error{"broken"}; },
             [&](const std::string& problem) {
                 told = problem;
                 loop.stop();
             });
    loop.run();
    EXPECT_EQ(told, "broken");
}

TEST(DiskThread, DropStopsTheRunningTaskAndForgetsTheNextOnes) {
    netio::EventLoop loop;
    DiskThread disk{loop};
    disk.start();
    std::promise<void> running;
    bool forgotten_ran = false;
    std::vector<std::string> told;
    disk.run(
        [&](const std::stop_token& stop) {
            running.set_value();
            while (!stop.stop_requested())
                std::this_thread::yield();
            throw std::runtime_error{"stopped"};
        },
        [&](const std::string& problem) { told.push_back(problem); });
    disk.run([&](const std::stop_token&) { forgotten_ran = true; },
             [&](const std::string&) { told.emplace_back("forgotten"); });
    running.get_future().wait();
    disk.drop();
    disk.run([](const std::stop_token& stop) { EXPECT_FALSE(stop.stop_requested()); },
             [&](const std::string& problem) {
                 told.push_back(problem);
                 loop.stop();
             });
    loop.run();
    EXPECT_THAT(told, ElementsAre("stopped", ""));
    EXPECT_FALSE(forgotten_ran);
    EXPECT_TRUE(disk.is_idle());
}

TEST(DiskThread, MayBeDestroyedInItsCallback) {
    netio::EventLoop loop;
    auto disk = std::make_unique<DiskThread>(loop);
    disk->start();
    disk->run([](const std::stop_token&) {},
              [&](const std::string&) {
                  disk.reset();
                  loop.stop();
              });
    loop.run();
    EXPECT_EQ(disk, nullptr);
}

TEST(DiskThread, ReportsNothingAfterItsDestruction) {
    netio::EventLoop loop;
    int told = 0;
    for (int i = 0; i < 20; ++i) {
        DiskThread disk{loop};
        disk.start();
        std::promise<void> done;
        disk.run([](const std::stop_token&) {}, [&](const std::string&) { ++told; });
        disk.run([&](const std::stop_token&) { done.set_value(); },
                 [&](const std::string&) { ++told; });
        done.get_future().wait();
    }
    for (int i = 0; i < 20; ++i)
        loop.run_once();
    EXPECT_EQ(told, 0);
}

} // namespace
} // namespace apps::copy::disk_thread_test
