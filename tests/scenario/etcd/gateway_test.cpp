// SPDX-License-Identifier: Apache-2.0
// A registry on etcd behind a fake gateway: it counts the requests, loses leases, and answers like
// a proxy that does not forward watches.

#include "apps/etcd/etcd_registry.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <gmock/gmock.h>
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace apps::gateway_test {
namespace {

using netio::Clock;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SizeIs;

std::string coded(const std::string& text) {
    std::string to(4 * ((text.size() + 2) / 3) + 1, '\0');
    to.resize(static_cast<std::size_t>(EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(to.data()),
        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()))));
    return to;
}

std::string decoded(const std::string& from) {
    std::string text(3 * (from.size() / 4) + 1, '\0');
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(from.data()),
                                     static_cast<int>(from.size()));
    const auto padding = static_cast<int>(std::ranges::count(from, '='));
    text.resize(static_cast<std::size_t>(size - padding));
    return text;
}

class Gateway {
  public:
    Gateway() {
        on("/v3/lease/grant", [this](const json&, httplib::Response&) {
            leases_.insert(std::to_string(++last_lease_));
            return json{{"ID", std::to_string(last_lease_)}, {"TTL", "3"}};
        });
        on("/v3/kv/put", [this](const json& request, httplib::Response& response) {
            if (!leases_.contains(request.at("lease").get<std::string>())) {
                response.status = 404;
                return json{{"message", "etcdserver: requested lease not found"}};
            }
            keys_[decoded(request.at("key"))] = {decoded(request.at("value")), ++revision_};
            return json::object();
        });
        on("/v3/kv/range", [this](const json& request, httplib::Response& response) {
            const int behind = asked_["/v3/kv/range"] - forgets_after_;
            if (behind > 0) keys_.clear();
            if (behind > 10) response.status = 500;
            return range(request);
        });
        on("/v3/watch", [this](const json&, httplib::Response&) { return watch_answer_; });
        port_ = server_.bind_to_any_port("127.0.0.1");
        thread_ = std::thread{[this] { server_.listen_after_bind(); }};
    }
    ~Gateway() {
        server_.stop();
        thread_.join();
    }
    EtcdPlace place() const {
        return parse_etcd_place("etcd://127.0.0.1:" + std::to_string(port_));
    }
    void put(const std::string& key, const std::string& text) {
        const std::lock_guard lock{mutex_};
        keys_[key] = {text, ++revision_};
    }
    void end_leases() {
        const std::lock_guard lock{mutex_};
        leases_.clear();
    }
    // After this many range requests its data is empty; after ten more it does not answer.
    void forget_after(int ranges) {
        const std::lock_guard lock{mutex_};
        forgets_after_ = ranges;
    }
    void answer_watches(const json& answer) {
        const std::lock_guard lock{mutex_};
        watch_answer_ = answer;
    }
    int asked(const std::string& path) {
        const std::lock_guard lock{mutex_};
        return asked_[path];
    }

  private:
    struct Value {
        std::string text;
        std::int64_t revision = 0;
    };
    void on(const std::string& path,
            const std::function<json(const json&, httplib::Response&)>& answer) {
        server_.Post(path, [=, this](const httplib::Request& request, httplib::Response& response) {
            const std::lock_guard lock{mutex_};
            ++asked_[path];
            const json made = answer(json::parse(request.body), response);
            response.set_content(made.dump() + "\n", "application/json");
        });
    }
    json range(const json& request) const {
        const std::string first = decoded(request.at("key"));
        const std::string end =
            request.contains("range_end") ? decoded(request["range_end"]) : first + '\0';
        const auto limit = std::stoul(request.value("limit", "1000000"));
        const auto since = std::stol(request.value("min_mod_revision", "0"));
        json pairs = json::array();
        for (auto each = keys_.lower_bound(first); each != keys_.end() && each->first < end;
             ++each) {
            if (each->second.revision < since || pairs.size() >= limit) continue;
            pairs.push_back({{"key", coded(each->first)},
                             {"mod_revision", std::to_string(each->second.revision)}});
            if (!request.value("keys_only", false))
                pairs.back()["value"] = coded(each->second.text);
        }
        return {{"header", {{"cluster_id", "7"}, {"revision", std::to_string(revision_)}}},
                {"kvs", pairs}};
    }

    httplib::Server server_;
    int port_ = 0;
    std::mutex mutex_;
    std::map<std::string, int> asked_;
    int forgets_after_ = 1000;
    std::set<std::string> leases_;
    json watch_answer_;
    std::map<std::string, Value> keys_;
    std::int64_t revision_ = 1;
    int last_lease_ = 0;
    std::thread thread_;
};

class Seen final : public netio::pubsub::Registry::Visitor {
  public:
    void on_text(const std::string& name, const std::string& text) override { texts[name] = text; }
    bool on_kept(const std::string&) override { return true; }
    void on_removed(const std::string& name) override { texts.erase(name); }
    void on_unreadable(const std::string& what) override { troubles.push_back(what); }

    std::map<std::string, std::string> texts;
    std::vector<std::string> troubles;
};

TEST(EtcdGateway, ALeaseThatHasEndedIsReplacedByTheSamePut) {
    Gateway gateway;
    EtcdRegistry board{gateway.place(), seconds{3}, milliseconds{50}};
    board.put("a", "first");
    gateway.end_leases();
    board.put("a", "second");
    EXPECT_EQ(board.get("a"), "second");
    EXPECT_EQ(gateway.asked("/v3/lease/grant"), 2);
}

TEST(EtcdGateway, WhatManyPublishersSayIsReadInFewAnswers) {
    Gateway gateway;
    for (int i = 0; i < 1000; ++i)
        gateway.put("/netio/p" + std::to_string(i), "text " + std::to_string(i));
    gateway.put("/netio/not a name", "");
    EtcdRegistry board{gateway.place(), seconds{3}, milliseconds{50}};
    Seen seen;
    board.look(seen);
    EXPECT_THAT(seen.texts, SizeIs(1000));
    EXPECT_EQ(seen.texts["p999"], "text 999");
    EXPECT_LE(gateway.asked("/v3/kv/range"), 6) << "the names, and 256 in each";
    // Only the changed entry is read.
    gateway.put("/netio/p3", "other");
    gateway.put("/netio/p7", "other");
    seen.texts.clear();
    board.look(seen);
    EXPECT_EQ(seen.texts, (std::map<std::string, std::string>{{"p3", "other"}, {"p7", "other"}}));
    EXPECT_LE(gateway.asked("/v3/kv/range"), 8);
}

// All entries may vanish between the list of names and the read of the texts: it does not ask for
// them forever.
TEST(EtcdGateway, DoesNotKeepAskingForEntriesOfDepartedPublishers) {
    Gateway gateway;
    for (const char* name : {"/netio/a", "/netio/b", "/netio/c"})
        gateway.put(name, "text");
    gateway.forget_after(1);
    EtcdRegistry board{gateway.place(), seconds{3}, milliseconds{50}};
    Seen seen;
    board.look(seen);
    EXPECT_THAT(seen.texts, SizeIs(0));
    EXPECT_EQ(gateway.asked("/v3/kv/range"), 5) << "the names, all texts at once, each once";
}

TEST(EtcdGateway, ATooLongTextIsReportedAndTheOthersAreRead) {
    Gateway gateway;
    gateway.put("/netio/a", "text");
    gateway.put("/netio/huge", std::string(std::size_t{13} << 20, 'x')); // a third more as base64
    gateway.put("/netio/z", "text");
    EtcdRegistry board{gateway.place(), seconds{3}, milliseconds{50}};
    Seen seen;
    board.look(seen);
    EXPECT_EQ(seen.texts, (std::map<std::string, std::string>{{"a", "text"}, {"z", "text"}}));
    EXPECT_THAT(seen.troubles,
                testing::ElementsAre(testing::AllOf(testing::HasSubstr("'huge' is ignored"),
                                                    testing::HasSubstr("16777216"))));
    gateway.put("/netio/huge", "short"); // it is read again when it changes
    board.look(seen);
    EXPECT_EQ(seen.texts["huge"], "short");
    EXPECT_THAT(seen.troubles, SizeIs(1));
}

// A reader that looks again at once would do so without a pause.
TEST(EtcdGateway, ARefusedWatchIsNotRetriedWithoutAPause) {
    for (const json& answer : {json{{"error", {{"message", "not here"}}}},
                               json{{"result", {{"created", true}, {"canceled", true}}}},
                               json{{"result", {{"created", true}}}}, json::object()}) {
        Gateway gateway;
        gateway.answer_watches(answer);
        constexpr milliseconds retry{200};
        EtcdRegistry board{gateway.place(), seconds{3}, retry};
        Seen seen;
        board.look(seen);
        const auto begin = Clock::now();
        board.wait(begin + seconds{60});
        EXPECT_GE(Clock::now() - begin, retry) << answer;
        EXPECT_GE(gateway.asked("/v3/watch"), 1);
    }
}

TEST(EtcdGateway, AWatchThatReportsAChangeIsHandledAtOnce) {
    Gateway gateway;
    gateway.answer_watches({{"result", {{"events", json::array({json::object()})}}}});
    EtcdRegistry board{gateway.place(), seconds{3}, std::chrono::hours{1}};
    Seen seen;
    board.look(seen);
    board.wait(Clock::now() + seconds{50});
    EXPECT_EQ(gateway.asked("/v3/watch"), 1);
}

} // namespace
} // namespace apps::gateway_test
