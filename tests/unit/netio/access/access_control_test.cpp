// SPDX-License-Identifier: Apache-2.0
#include "netio/access/auth.hpp"
#include "netio/access/key_file.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

namespace netio::access::access_control_test {
namespace {

using namespace std::chrono_literals;

struct Disk final : KeySource {
    FileFacts facts{.exists = true, .is_regular = true, .mode = 0600, .owner = 1000};
    std::string text;
    int looks = 0;

    void put(const std::string& fresh) {
        text = fresh;
        facts.bytes = fresh.size();
        ++facts.inode;
    }
    FileFacts look(const std::string&) override {
        ++looks;
        return facts;
    }
    Content read(const std::string&) override {
        return {.before = facts, .after = facts, .text = text, .error = {}};
    }
    std::uint32_t user() const override { return 1000; }
};

class AccessControlTest : public testing::Test {
  protected:
    static std::string two_keys() {
        return with_key(text_of_one(key_of(1, "services=pubsub connections=2")),
                        key_of(2, "services=pubsub connections=9"), "site.keys");
    }
    AccessControlTest() { disk_.put(two_keys()); }

    void open(Protection least = Protection::none) {
        control_.emplace(AccessControl::Options{.key_file = "site.keys",
                                                .min_protection = least,
                                                .connections_per_host = 3},
                         disk_, secret_of(200));
    }
    // Both attempts of a client with this key, from this host.
    Outcome connect(const Key& key, const Host& source) {
        TestClient client{key, address_a};
        client.instance = ++instance_;
        const auto judge = [&](const Message& request) {
            PeerSlot slot;
            AuthServer::Verdict verdict = control_->judge(
                {.data = request, .source = source, .dialled = address_a}, now_, slot);
            EXPECT_EQ(verdict.admission.has_value(), verdict.outcome == Outcome::admitted);
            if (slot) slots_.push_back(std::move(slot));
            return verdict;
        };
        const auto challenge = judge(client.request());
        static_cast<void>(
            client.gate.take_challenge(rejection_of(code_challenge, challenge.challenge)));
        const AuthServer::Verdict verdict = judge(client.request());
        shortage_ = verdict.shortage;
        return verdict.outcome;
    }

    Disk disk_;
    TimePoint now_{1h};
    std::optional<AccessControl> control_;
    std::vector<PeerSlot> slots_; // of the admitted connections, in order
    std::uint64_t instance_ = 0;
    Shortage shortage_ = Shortage::none; // of the last request
};

TEST_F(AccessControlTest, LimitsConnectionsPerKeyAndPerHost) {
    open();
    EXPECT_EQ(connect(key_of(1), host_of(1)), Outcome::admitted);
    EXPECT_EQ(connect(key_of(1), host_of(2)), Outcome::admitted);
    EXPECT_EQ(connect(key_of(1), host_of(3)), Outcome::busy);
    EXPECT_EQ(shortage_, Shortage::links_of_key);
    EXPECT_EQ(control_->counters().admitted, 2U);
    EXPECT_EQ(control_->counters().busy, 1U);
    EXPECT_EQ(connect(key_of(2), host_of(1)), Outcome::admitted);
    EXPECT_EQ(connect(key_of(2), host_of(1)), Outcome::admitted);
    EXPECT_EQ(connect(key_of(2), host_of(1)), Outcome::busy);
    EXPECT_EQ(shortage_, Shortage::links_of_host);
    slots_.erase(slots_.begin());
    EXPECT_EQ(connect(key_of(2), host_of(1)), Outcome::admitted);
    EXPECT_EQ(connect(key_of(1), host_of(9)), Outcome::admitted);
    EXPECT_EQ(control_->peers().of_key(1), 2U);
}

TEST_F(AccessControlTest, LeavesRoomForAnotherKeyOfTheHostByDefault) {
    disk_.put(with_key(text_of_one(key_of(1, "services=pubsub")), key_of(2, "services=pubsub"),
                       "site.keys"));
    control_.emplace(AccessControl::Options{.key_file = "site.keys"}, disk_, secret_of(200));
    while (connect(key_of(1), host_of(1)) == Outcome::admitted)
        ASSERT_LT(slots_.size(), 10'000U);
    EXPECT_EQ(shortage_, Shortage::links_of_key);
    EXPECT_EQ(connect(key_of(2), host_of(1)), Outcome::admitted);
    EXPECT_EQ(ServerKeys::Options{}.connections_per_host,
              AccessControl::Options{}.connections_per_host);
}

TEST_F(AccessControlTest, ARefusedPeerUsesNoSlot) {
    open(Protection::peers);
    for (int each = 0; each < 10; ++each)
        EXPECT_EQ(connect(key_of(1), host_of(1)), Outcome::refused);
    EXPECT_EQ(control_->peers().of_host(host_of(1)), 0U);
}

TEST_F(AccessControlTest, AKeyThatIsTakenAwayEndsItsConnectionsAndAdmitsNoMore) {
    open();
    EXPECT_EQ(connect(key_of(1), host_of(1)), Outcome::admitted);
    disk_.put(text_of_one(key_of(2, "services=pubsub connections=9")));
    const auto news = control_->look();
    ASSERT_TRUE(news);
    EXPECT_EQ(news->revoked, std::vector<KeyId>{1});
    EXPECT_EQ(news->problem, "");
    EXPECT_EQ(connect(key_of(1), host_of(2)), Outcome::refused);
    EXPECT_EQ(connect(key_of(2), host_of(2)), Outcome::admitted);
}

TEST_F(AccessControlTest, ABrokenKeyFileIsReportedOnceAndChangesNothing) {
    open();
    disk_.facts.mode = 0644;
    const auto news = control_->look();
    ASSERT_TRUE(news);
    EXPECT_NE(news->problem.find("chmod 600"), std::string::npos);
    EXPECT_TRUE(news->revoked.empty());
    for (int each = 0; each < 3; ++each)
        EXPECT_FALSE(control_->look());
    EXPECT_EQ(connect(key_of(1), host_of(1)), Outcome::admitted);
}

TEST_F(AccessControlTest, AFileThatIsTheSameIsNoNews) {
    open();
    const int before = disk_.looks;
    EXPECT_FALSE(control_->look());
    EXPECT_EQ(disk_.looks, before + 1);
}

TEST_F(AccessControlTest, WithoutItsFileThereIsNone) {
    disk_.facts.exists = false;
    EXPECT_THROW(open(), KeyFileError);
}

} // namespace
} // namespace netio::access::access_control_test
