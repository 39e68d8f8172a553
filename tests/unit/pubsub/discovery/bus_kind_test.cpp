// SPDX-License-Identifier: Apache-2.0
// A bus on a registry that a test has added: it follows the script, and waits until it is woken.

#include "pubsub/discovery/bus.hpp"

#include <gmock/gmock.h>

#include <array>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace netio::pubsub::bus_kind_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The content of the registry, and control of its thread. Used by both threads.
class Script {
  public:
    // The first `count` reads fail, each with a different text.
    void fail(int count) { failures_ = count; }
    // The first `count` waits return at once; the thread waits in the next one until wake().
    void turn(int count) { turns_ = count; }
    void write(const std::string& name, const std::string& text) {
        const std::lock_guard lock{mutex_};
        texts_[name] = text;
    }
    std::map<std::string, std::string> texts() {
        const std::lock_guard lock{mutex_};
        return texts_;
    }
    int puts() {
        const std::lock_guard lock{mutex_};
        return puts_;
    }
    // Waits until the thread waits for wake(). Returns false after 60 s.
    bool waits_for_wake() {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, seconds{60}, [this] { return at_rest_; });
    }

    // Called by the registry.
    std::string get(const std::string& name) {
        const std::lock_guard lock{mutex_};
        if (failures_ > 0) throw RegistryError{"failure " + std::to_string(failures_--)};
        const auto found = texts_.find(name);
        return found == texts_.end() ? std::string{} : found->second;
    }
    void put(const std::string& name, const std::string& text) {
        const std::lock_guard lock{mutex_};
        texts_[name] = text;
        ++puts_;
    }
    void remove(const std::string& name) {
        const std::lock_guard lock{mutex_};
        texts_.erase(name);
    }
    void wait() {
        std::unique_lock lock{mutex_};
        if (turns_-- > 0) return;
        at_rest_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return woken_; });
        woken_ = at_rest_ = false;
    }
    void wake() {
        const std::lock_guard lock{mutex_};
        woken_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> texts_;
    int failures_ = 0;
    int turns_ = 0;
    int puts_ = 0;
    bool at_rest_ = false;
    bool woken_ = false;
};

class ScriptedRegistry final : public Registry {
  public:
    explicit ScriptedRegistry(std::shared_ptr<Script> script) : script_{std::move(script)} {}

    void put(const std::string& name, const std::string& text) override {
        script_->put(name, text);
    }
    bool has_leases() const noexcept override { return true; }
    bool keep(const std::string&) override { return true; }
    std::optional<std::string> get(const std::string& name) override {
        const std::string text = script_->get(name);
        return text.empty() ? std::nullopt : std::optional{text};
    }
    void remove(const std::string& name) override { script_->remove(name); }
    void look(Visitor& visitor) override {
        for (const auto& [name, text] : script_->texts())
            visitor.on_text(name, text);
    }
    void wait(TimePoint) override { script_->wait(); }
    void interrupt() noexcept override { script_->wake(); }

  private:
    std::shared_ptr<Script> script_;
};

// For the registries that are opened next.
std::shared_ptr<Script>& next_script() {
    static std::shared_ptr<Script> script;
    return script;
}

constexpr std::string_view scheme = "script://";

void add_scripted_kind() {
    static const bool once = [] {
        add_bus_kind(
            {.is_one = [](std::string_view where) noexcept { return where.starts_with(scheme); },
             .open = [](std::string_view, const BusOptions&) -> std::unique_ptr<Registry> {
                 return std::make_unique<ScriptedRegistry>(next_script());
             },
             .spelling = "script://NAME"});
        return true;
    }();
    static_cast<void>(once);
}

// Records its callbacks, and then runs the action of the test.
class RecordingHandler final : public Discovery::Handler, public Announcer::Handler {
  public:
    void on_announced(const Announcement& announcement) override {
        announced.push_back(announcement.name);
        if (at_announced) at_announced();
    }
    void on_gone(const std::string&) override {}
    void on_warning(const std::string& what) override {
        troubles.push_back(what);
        if (at_trouble) at_trouble();
    }
    void on_caught_up() override { ++caught_up; }
    void on_written() override {
        ++written;
        if (at_written) at_written();
    }

    std::vector<std::string> announced;
    std::vector<std::string> troubles;
    int caught_up = 0;
    int written = 0;
    std::function<void()> at_announced, at_trouble, at_written;
};

class AddedBus : public testing::Test {
  protected:
    AddedBus() {
        add_scripted_kind();
        next_script() = script;
    }
    ~AddedBus() override { next_script().reset(); }
    // Runs the loop until it has no more work.
    void settle() {
        for (int turn = 0; turn < 1000; ++turn)
            if (!loop.run_once()) return;
        ADD_FAILURE() << "the loop never finishes its work";
    }
    std::unique_ptr<Announcer> announced() {
        return announce(loop, "script://", {.name = "a", .instance = 1}, recorded,
                        {.lease = seconds{600}});
    }
    std::string refusal_of(const std::string& where, const BusOptions& options = {}) {
        try {
            open_bus(loop, where, options);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "it is opened";
    }

    std::shared_ptr<Script> script = std::make_shared<Script>();
    EventLoop loop;
    RecordingHandler recorded;
};

TEST_F(AddedBus, IsOpenedWhereItsKindKnowsThePlaceAndNamedWhereNoneDoes) {
    EXPECT_EQ(refusal_of("script://here"), "it is opened");
    for (const std::string none : {"", "other://here"}) {
        EXPECT_THAT(refusal_of(none), HasSubstr("is no bus; allowed: a directory"));
        EXPECT_THAT(refusal_of(none), HasSubstr(", script://NAME"));
    }
    EXPECT_NE(refusal_of(std::string{"a\0b", 3}), "it is opened") << "file names have no zero byte";
}

TEST_F(AddedBus, HasOptionsWithinBounds) {
    constexpr milliseconds hour{3'600'000};
    for (const BusOptions& good :
         {BusOptions{.lease = milliseconds{100}}, BusOptions{.lease = hour},
          BusOptions{.poll = milliseconds{10}}, BusOptions{.poll = hour},
          BusOptions{.publisher_limit = 1}, BusOptions{.publisher_limit = 1'000'000}}) {
        EXPECT_EQ(refusal_of("script://", good), "it is opened");
    }
    EXPECT_THAT(refusal_of("script://", {.lease = milliseconds{99}}), HasSubstr("lease is 99"));
    EXPECT_THAT(refusal_of("script://", {.lease = hour + milliseconds{1}}), HasSubstr("lease is"));
    EXPECT_THAT(refusal_of("script://", {.poll = milliseconds{9}}), HasSubstr("poll is 9"));
    EXPECT_THAT(refusal_of("script://", {.poll = milliseconds{-1}}), HasSubstr("poll is"));
    EXPECT_THAT(refusal_of("script://", {.publisher_limit = 0}), HasSubstr("publisher_limit is 0"));
    EXPECT_THAT(refusal_of("script://", {.publisher_limit = 1'000'001}),
                HasSubstr("publisher_limit is 1000001"));
}

TEST_F(AddedBus, AnAnnouncedPublisherRestsUntilAChange) {
    const auto announcer = announced();
    ASSERT_TRUE(script->waits_for_wake());
    settle();
    EXPECT_EQ(recorded.written, 1);
    EXPECT_EQ(script->puts(), 1);
    EXPECT_THROW(announcer->update({.name = "no name"}), AnnouncementError);
    settle();
    EXPECT_EQ(script->puts(), 1);
}

TEST_F(AddedBus, AReaderRestsBetweenItsLooksAndSoDoesItsLoop) {
    script->write("a", to_text({.name = "a", .instance = 1}));
    const auto bus = open_bus(loop, "script://");
    bus->watch(recorded);
    EXPECT_THROW(bus->watch(recorded), std::logic_error);
    ASSERT_TRUE(script->waits_for_wake());
    settle();
    EXPECT_THAT(recorded.announced, ElementsAre("a"));
    EXPECT_EQ(recorded.caught_up, 1);
}

// The loop is busy and does not take them.
TEST_F(AddedBus, QueuedTroublesAreLimited) {
    script->fail(40);
    script->turn(40);
    const auto announcer = announced();
    ASSERT_TRUE(script->waits_for_wake());
    settle();
    ASSERT_THAT(recorded.troubles, SizeIs(33)) << "and one that there are more";
    EXPECT_THAT(recorded.troubles.front(), HasSubstr("failure 40; new subscribers"));
    EXPECT_EQ(recorded.written, 1);
}

TEST_F(AddedBus, AnAnnouncerMayEndInAHandlerWithoutMoreCallbacks) {
    script->fail(2);
    script->turn(2);
    auto announcer = announced();
    ASSERT_TRUE(script->waits_for_wake());
    recorded.at_written = [&] { announcer.reset(); };
    settle();
    EXPECT_EQ(announcer, nullptr);
    EXPECT_THAT(recorded.troubles, IsEmpty());

    script->fail(2);
    script->turn(2);
    recorded = {};
    announcer = announced();
    ASSERT_TRUE(script->waits_for_wake());
    recorded.at_trouble = [&] { announcer.reset(); };
    settle();
    EXPECT_EQ(announcer, nullptr);
    EXPECT_THAT(recorded.troubles, SizeIs(1));
}

TEST_F(AddedBus, AReaderThatStopsInAHandlerGetsNoMoreCallbacks) {
    for (const char* const torn : {"b", "c"})
        script->write(torn, "x");
    for (const char* const name : {"d", "e"})
        script->write(name, to_text({.name = name, .instance = 1}));
    {
        const auto bus = open_bus(loop, "script://");
        bus->watch(recorded);
        ASSERT_TRUE(script->waits_for_wake());
        settle();
        EXPECT_THAT(recorded.troubles, SizeIs(2));
        EXPECT_THAT(recorded.announced, ElementsAre("d", "e"));
    }
    {
        const auto bus = open_bus(loop, "script://");
        recorded = {};
        recorded.at_trouble = [&] { bus->unwatch(); };
        bus->watch(recorded);
        ASSERT_TRUE(script->waits_for_wake());
        settle();
        EXPECT_THAT(recorded.troubles, SizeIs(1));
        EXPECT_THAT(recorded.announced, IsEmpty());
    }
    const auto bus = open_bus(loop, "script://");
    recorded = {};
    recorded.at_announced = [&] { bus->unwatch(); };
    bus->watch(recorded);
    ASSERT_TRUE(script->waits_for_wake());
    settle();
    EXPECT_THAT(recorded.announced, ElementsAre("d"));
    EXPECT_EQ(recorded.caught_up, 0);
}

TEST_F(AddedBus, APublisherThatEndsHasWithdrawnByThen) {
    auto announcer = announced();
    ASSERT_TRUE(script->waits_for_wake());
    EXPECT_THAT(script->texts(), SizeIs(1));
    announcer.reset();
    EXPECT_THAT(script->texts(), IsEmpty()) << "its text is removed before its lease ends";
}

TEST(ThisHost, IsNamedAsTheMachineIs) {
    std::array<char, 256> name{};
    ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
    EXPECT_EQ(this_host(), name.data());
}

} // namespace
} // namespace netio::pubsub::bus_kind_test
