// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/waiting_news.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace netio::pubsub {
namespace {

Announcement saying(const std::string& name, const std::string& mode) {
    return {.name = name, .mode = mode};
}

TEST(WaitingNews, AreTheLastWordAboutEach) {
    WaitingNews news;
    EXPECT_TRUE(news.empty());
    news.put("a", saying("a", "first"));
    news.put("b", saying("b", "only"));
    news.put("a", saying("a", "last"));
    news.put("b", {});
    const WaitingNews::News first = news.take();
    EXPECT_EQ(first.first, "a");
    EXPECT_EQ(first.second->mode, "last");
    const WaitingNews::News next = news.take();
    EXPECT_EQ(next.first, "b");
    EXPECT_EQ(next.second, std::nullopt);
    EXPECT_TRUE(news.empty());
}

// One of them says something else all the time.
TEST(WaitingNews, AreTakenInTurnsSoThatNobodyKeepsTheOthersWaiting) {
    WaitingNews news;
    for (const char* const name : {"a", "b", "c"})
        news.put(name, {});
    std::vector<std::string> taken;
    while (!news.empty()) {
        taken.push_back(news.take().first);
        if (taken.size() < 4) news.put("a", {});
    }
    EXPECT_EQ(taken, (std::vector<std::string>{"a", "b", "c", "a"}));
}

} // namespace
} // namespace netio::pubsub
