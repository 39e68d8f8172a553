// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_writer.hpp"

#include <gmock/gmock.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace netio::pubsub::host_check_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Collects the warnings of one look(), from any thread, until all names are resolved.
class CollectedWarnings {
  public:
    HostCheck::Tell tell() {
        return [this](const std::string& line) {
            const std::lock_guard lock{mutex_};
            lines_.push_back(line);
        };
    }
    // Only "known" can be resolved. "last" is sorted after the other names here, and ends the wait.
    ResolveHost resolve() {
        return [resolved = resolved_](const std::string& host) -> std::string {
            if (host == "zz-last") {
                resolved->set_value();
                return {};
            }
            return host == "known" ? "" : "no such name";
        };
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock{mutex_};
        return lines_;
    }
    std::vector<std::string> lines_when_resolved() {
        resolved_->get_future().wait();
        return lines();
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
    std::shared_ptr<std::promise<void>> resolved_ = std::make_shared<std::promise<void>>();
};

Announcement at(std::vector<std::string> addresses, std::string metrics = {}) {
    addresses.emplace_back("tcp:zz-last:1");
    return {.addresses = std::move(addresses), .metrics = std::move(metrics)};
}

TEST(HostCheck, WarnsOfANameThatCannotBeResolved) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    check.look(at({"tcp:known:5556", "tcp:a1b2c3:5556"}));
    EXPECT_THAT(collected.lines_when_resolved(),
                ElementsAre(AllOf(HasSubstr("a1b2c3:5556"), HasSubstr("cannot be resolved here"),
                                  HasSubstr("(no such name)"), HasSubstr("`advertise`"))));
}

TEST(HostCheck, WarnsOnceOfANameThatSeveralAddressesHave) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    check.look(at({"verbs:a1b2c3:5556", "tcp:a1b2c3:5556"}, "a1b2c3:9100"));
    EXPECT_EQ(collected.lines_when_resolved().size(), 1U);
}

TEST(HostCheck, WarnsOfTheNameOfTheMetrics) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    check.look(at({"tcp:10.0.0.1:5556"}, "elsewhere:9100"));
    EXPECT_THAT(collected.lines_when_resolved(), ElementsAre(HasSubstr("elsewhere:9100")));
}

TEST(HostCheck, WarnsOfAddressesThatMeanNothingElsewhere) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    check.look({.addresses = {"tcp:[fe80::1%eth0]:5555", "tcp:[fe80::2]:5555", "tcp:0.0.0.0:5555",
                              "tcp:[::]:5556"}});
    EXPECT_THAT(collected.lines(),
                UnorderedElementsAre(
                    AllOf(HasSubstr("[fe80::1%eth0]:5555"), HasSubstr("link-local")),
                    AllOf(HasSubstr("[fe80::2]:5555"), HasSubstr("link-local")),
                    AllOf(HasSubstr("0.0.0.0:5555"), HasSubstr("every host that reads it")),
                    AllOf(HasSubstr("[::]:5556"), HasSubstr("every host that reads it"))));
}

TEST(HostCheck, DoesNotWarnOfValidAddresses) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    check.look(at({"tcp:known:1", "tcp:10.0.0.1:1", "tcp:[2001:db8::1]:1", "tcp:127.0.0.1:1",
                   "tcp:[::1]:1", "not an address"},
                  "not an address either"));
    EXPECT_THAT(collected.lines_when_resolved(), IsEmpty());
}

TEST(HostCheck, LooksAgainOnlyIfTheAddressesChange) {
    CollectedWarnings collected;
    HostCheck check{collected.tell(), collected.resolve()};
    Announcement announcement{.addresses = {"tcp:[fe80::1%eth0]:5555"}};
    check.look(announcement);
    announcement.counter = 1;
    announcement.fids = {{.fids = {.first = Fid{1}, .last = Fid{2}}, .meaning = {}}};
    check.look(announcement);
    EXPECT_EQ(collected.lines().size(), 1U);
    announcement.addresses = {"tcp:[fe80::1%eth1]:5555"};
    check.look(announcement);
    EXPECT_EQ(collected.lines().size(), 2U);
    announcement.metrics = "0.0.0.0:9100";
    check.look(announcement);
    EXPECT_EQ(collected.lines().size(), 4U);
}

// A resolver that does not answer, and addresses that change all the time.
TEST(HostCheck, OneThreadResolvesTheNewestNames) {
    std::mutex mutex;
    std::vector<std::string> resolved;
    std::promise<void> first_is_resolved;
    std::promise<void> go_on;
    CollectedWarnings collected;
    HostCheck check{collected.tell(),
                    [&, resolve = collected.resolve(), may_go_on = go_on.get_future().share()](
                        const std::string& host) -> std::string {
                        bool is_first = false;
                        {
                            const std::lock_guard lock{mutex};
                            resolved.push_back(host);
                            is_first = resolved.size() == 1;
                        }
                        if (is_first) first_is_resolved.set_value();
                        may_go_on.wait();
                        return resolve(host);
                    }};
    check.look({.addresses = {"tcp:host-0:1", "tcp:host-0b:1"}});
    first_is_resolved.get_future().wait();
    for (int i = 1; i <= 20; ++i)
        check.look(at({"tcp:host-" + std::to_string(i) + ":1"}));
    go_on.set_value();
    EXPECT_THAT(collected.lines_when_resolved(), ElementsAre(HasSubstr("host-20:1")))
        << "no warning of an address that is not announced any more";
    const std::lock_guard lock{mutex};
    EXPECT_THAT(resolved, ElementsAre("host-0", "host-20", "zz-last"));
}

TEST(HostCheck, ReportsTheReasonOfTheSystemsResolver) {
    EXPECT_EQ(resolve_here("localhost"), "");
    EXPECT_NE(resolve_here("no..name"), "") << "an empty label is refused without a name server";
}

// The check may be destroyed while a resolver is blocked.
TEST(HostCheck, MayEndBeforeItsResolver) {
    std::promise<void> answer;
    const auto collected = std::make_shared<std::promise<std::string>>();
    {
        HostCheck check{[collected](const std::string& line) { collected->set_value(line); },
                        [answered = std::make_shared<std::future<void>>(answer.get_future())](
                            const std::string&) -> std::string {
                            answered->wait();
                            return "no answer";
                        }};
        check.look({.addresses = {"tcp:a1b2c3:1"}});
    }
    answer.set_value();
    EXPECT_THAT(collected->get_future().get(), HasSubstr("a1b2c3"));
}

} // namespace
} // namespace netio::pubsub::host_check_test
