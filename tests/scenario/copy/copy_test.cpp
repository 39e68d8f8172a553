// SPDX-License-Identifier: Apache-2.0
#include "tests/scenario/copy/copy_bed.hpp"

namespace apps::copy::test::copy_test {
namespace {

using testing::HasSubstr;

std::string pattern(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i)
        text[i] = static_cast<char>((i * 2654435761U) >> 13U);
    return text;
}

TEST_F(CopyBed, FilesOfAllSizesArriveAsTheyAre) {
    serve();
    const std::vector<std::size_t> sizes = {
        0, 1, 4096, chunk_bytes - 1, chunk_bytes, chunk_bytes + 1, 10 * chunk_bytes + 12345};
    std::vector<std::string> names;
    for (const std::size_t size : sizes) {
        names.push_back(std::to_string(size));
        put("source/" + names.back(), pattern(size));
    }
    for (const ChecksumKind kind : {ChecksumKind::xxh3_128, ChecksumKind::sha256}) {
        Sender::Options what = options(names);
        what.checksum = kind;
        what.overwrite = kind == ChecksumKind::sha256;
        const Outcome outcome = copy(what);
        EXPECT_EQ(*outcome.problem, "");
        ASSERT_EQ(outcome.files.size(), sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_EQ(outcome.files[i].outcome, CopiedFile::Outcome::copied)
                << outcome.files[i].detail;
            EXPECT_EQ(outcome.files[i].size_bytes, sizes[i]);
            EXPECT_TRUE(content("served/" + names[i]) == pattern(sizes[i])) << names[i];
        }
    }
    EXPECT_EQ(server->counters().files, 2 * sizes.size());
    EXPECT_EQ(server->counters().failures, 0U);
}

TEST_F(CopyBed, ContinuesAfterTheExistingPartOnlyIfItIsTheSame) {
    serve();
    const std::string text = pattern(5 * chunk_bytes);
    put("source/same", text);
    put("source/other", text);
    put("served/.same.netio-part", text.substr(0, 3'000'001));
    put("served/.other.netio-part", std::string(3'000'001, 'x'));
    const Outcome outcome = copy(options({"same", "other"}));
    ASSERT_EQ(outcome.files.size(), 2U);
    EXPECT_EQ(outcome.files[0].resumed_bytes, 3'000'001U);
    EXPECT_EQ(outcome.files[1].resumed_bytes, 0U);
    EXPECT_TRUE(content("served/same") == text);
    EXPECT_TRUE(content("served/other") == text);
}

TEST_F(CopyBed, ACompletePartNeedsItsNameOnly) {
    serve();
    const std::string text = pattern(chunk_bytes);
    put("source/a", text);
    put("served/.a.netio-part", text);
    const Outcome outcome = copy(options({"a"}));
    ASSERT_EQ(outcome.files.size(), 1U);
    EXPECT_EQ(outcome.files[0].resumed_bytes, text.size());
    EXPECT_TRUE(content("served/a") == text);
}

TEST_F(CopyBed, AnExistingFileIsComparedAndNeverReplacedSilently) {
    serve();
    put("source/same", "content");
    put("source/other", "content");
    put("source/next", "next");
    put("served/same", "content");
    put("served/other", "CONTENT");
    const Outcome outcome = copy(options({"same", "other", "next"}));
    ASSERT_EQ(outcome.files.size(), 3U);
    EXPECT_EQ(outcome.files[0].outcome, CopiedFile::Outcome::present);
    EXPECT_EQ(outcome.files[1].outcome, CopiedFile::Outcome::failed);
    EXPECT_THAT(outcome.files[1].detail, HasSubstr("--overwrite"));
    EXPECT_EQ(outcome.files[2].outcome, CopiedFile::Outcome::copied);
    EXPECT_EQ(content("served/other"), "CONTENT");
    Sender::Options what = options({"other"});
    what.overwrite = true;
    EXPECT_EQ(copy(what).files.at(0).outcome, CopiedFile::Outcome::copied);
    EXPECT_EQ(content("served/other"), "content");
}

TEST_F(CopyBed, WhatHasNoSizeIsNotPresentWhereAnEmptyFileIs) {
    serve();
    put("served/cpuinfo", "");
    Sender::Options what = options({});
    what.files.push_back({.path = "/proc/cpuinfo", .name = "cpuinfo"});
    const Outcome outcome = copy(what);
    ASSERT_EQ(outcome.files.size(), 1U);
    EXPECT_EQ(outcome.files[0].outcome, CopiedFile::Outcome::failed);
    EXPECT_THAT(outcome.files[0].detail, HasSubstr("has more bytes than its size of 0"));
}

// A disk that changes the file after it was looked for and opened, which are the first two tasks.
class ChangingDisk final : public Disk {
  public:
    ChangingDisk(netio::EventLoop& loop, std::function<void()> change)
        : disk_{loop}, change_{std::move(change)} {}
    void start() override { disk_.start(); }
    bool is_started() const noexcept override { return disk_.is_started(); }
    void run(Task task, Then then) override {
        if (++tasks_ != 3) return disk_.run(std::move(task), std::move(then));
        disk_.run(
            [this, task = std::move(task)](const std::stop_token& stop) {
                change_();
                task(stop);
            },
            std::move(then));
    }
    void drop() override { disk_.drop(); }

  private:
    DiskThread disk_;
    std::function<void()> change_;
    int tasks_ = 0;
};

TEST_F(CopyBed, WhatChangesWhileItIsComparedIsNeitherPresentNorAnother) {
    serve();
    for (const std::ios::openmode where : {std::ios::app, std::ios::in | std::ios::out}) {
        const std::string path = put("source/a", "content");
        fs::last_write_time(path, fs::file_time_type{} + std::chrono::hours{1});
        put("served/a", "content");
        put("source/next", "next");
        Sender::Options what = options({"a", "next"});
        what.disk = [&](netio::EventLoop& loop) {
            return std::make_unique<ChangingDisk>(loop, [&] {
                std::ofstream{path, std::ios::binary | where} << "X";
            });
        };
        const Outcome outcome = copy(what);
        ASSERT_EQ(outcome.files.size(), 2U);
        EXPECT_EQ(outcome.files[0].outcome, CopiedFile::Outcome::failed);
        EXPECT_THAT(outcome.files[0].detail, HasSubstr("was changed while it was copied"));
        EXPECT_NE(outcome.files[1].outcome, CopiedFile::Outcome::failed);
        EXPECT_EQ(content("served/a"), "content");
    }
}

TEST_F(CopyBed, AFileThatCannotBeReadDoesNotKeepTheNextFromBeingSent) {
    serve();
    put("source/b", "b");
    const Outcome outcome = copy(options({"missing", "b"}));
    ASSERT_EQ(outcome.files.size(), 2U);
    EXPECT_THAT(outcome.files[0].detail, HasSubstr("missing"));
    EXPECT_EQ(outcome.files[1].outcome, CopiedFile::Outcome::copied);
}

TEST_F(CopyBed, AServerErrorIsReportedAndTheNextFileFollows) {
    serve();
    put("source/taken", "a");
    fs::create_directories(root + "/served/taken/by_a_folder");
    put("source/b", "b");
    const Outcome outcome = copy(options({"taken", "b"}));
    ASSERT_EQ(outcome.files.size(), 2U);
    EXPECT_EQ(outcome.files[0].outcome, CopiedFile::Outcome::failed);
    EXPECT_THAT(outcome.files[0].detail, HasSubstr("taken"));
    EXPECT_EQ(outcome.files[1].outcome, CopiedFile::Outcome::copied);
    EXPECT_TRUE(fs::is_directory(root + "/served/taken/by_a_folder"));
}

TEST_F(CopyBed, SeveralSendersAtOnce) {
    serve();
    constexpr std::size_t count = 5;
    std::deque<Outcome> outcomes(count);
    std::deque<Sender> senders;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = std::to_string(i);
        put("source/" + name, pattern(i * 1'500'000));
        senders.emplace_back(bed.loop(), bed.transport(), options({name}), outcomes[i]).start();
    }
    ASSERT_TRUE(bed.run_until([&] {
        return std::ranges::all_of(outcomes,
                                   [](const Outcome& o) { return o.problem.has_value(); });
    }));
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_TRUE(content("served/" + std::to_string(i)) == pattern(i * 1'500'000)) << i;
}

TEST_F(CopyBed, TwoSendersOfOneNameDoNotMixTheirBytes) {
    serve();
    put("source/a", pattern(8 * chunk_bytes));
    fs::create_directory(root + "/source/other");
    put("source/other/a", std::string(8 * chunk_bytes, 'x'));
    Outcome one;
    Outcome two;
    Sender first{bed.loop(), bed.transport(), options({"a"}), one};
    Sender::Options what = options({"a"});
    what.files[0].path = root + "/source/other/a";
    Sender second{bed.loop(), bed.transport(), what, two};
    first.start();
    second.start();
    ASSERT_TRUE(bed.run_until([&] { return one.problem && two.problem; }));
    const auto copied = [](const Outcome& o) {
        return o.files.at(0).outcome == CopiedFile::Outcome::copied;
    };
    EXPECT_NE(copied(one), copied(two)) << "the other sender is refused";
    EXPECT_TRUE(content("served/a") ==
                (copied(one) ? pattern(8 * chunk_bytes) : std::string(8 * chunk_bytes, 'x')));
}

TEST_F(CopyBed, MoreSendersThanAllowedAreRejectedWithTheRemedy) {
    serve(1);
    put("source/a", "a");
    RawPeer stays;
    connect(stays);
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 1; }));
    Sender::Options what = options({"a"});
    what.full_timeout = std::chrono::milliseconds{300};
    const Outcome full = copy(what);
    EXPECT_THAT(*full.problem, HasSubstr("it has no free slot for another peer"));
    EXPECT_THAT(*full.problem, HasSubstr("raise --senders or --senders-per-host there"));
    EXPECT_EQ(full.waited, 1);
    stays.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    EXPECT_EQ(*copy(options({"a"})).problem, "");
}

TEST_F(CopyBed, ASenderWaitsForASlotAtAFullServer) {
    serve(1);
    put("source/a", "a");
    RawPeer stays;
    connect(stays);
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 1; }));
    Outcome outcome;
    Sender sender{bed.loop(), bed.transport(), options({"a"}), outcome};
    sender.start();
    ASSERT_TRUE(bed.run_until([&] { return outcome.waited == 1; }));
    EXPECT_FALSE(outcome.problem);
    stays.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return outcome.problem.has_value(); }));
    EXPECT_EQ(*outcome.problem, "");
    EXPECT_EQ(outcome.files.at(0).outcome, CopiedFile::Outcome::copied);
}

TEST_F(CopyBed, ASenderThatWaitsForASlotCanBeStopped) {
    serve(1);
    put("source/a", "a");
    RawPeer stays;
    connect(stays);
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 1; }));
    Outcome outcome;
    Sender sender{bed.loop(), bed.transport(), options({"a"}), outcome};
    sender.start();
    ASSERT_TRUE(bed.run_until([&] { return outcome.waited == 1; }));
    sender.stop();
    EXPECT_FALSE(outcome.problem) << "the outcome is not set within the call";
    ASSERT_TRUE(bed.run_until([&] { return outcome.problem.has_value(); }));
    EXPECT_EQ(*outcome.problem, "interrupted");
}

TEST_F(CopyBed, TwentySendersAtOnceAreServedByAServerOfFour) {
    serve(4);
    std::deque<Outcome> outcomes;
    std::deque<Sender> senders;
    for (int i = 0; i < 20; ++i) {
        const std::string name = std::to_string(i);
        put("source/" + name, pattern(chunk_bytes));
        senders.emplace_back(bed.loop(), bed.transport(), options({name}), outcomes.emplace_back());
    }
    for (Sender& each : senders)
        each.start();
    ASSERT_TRUE(bed.run_until([&] {
        return std::ranges::all_of(outcomes,
                                   [](const Outcome& each) { return each.problem.has_value(); });
    }));
    for (const Outcome& each : outcomes)
        EXPECT_EQ(*each.problem, "");
}

TEST_F(CopyBed, ASilentPeerLosesItsSlotAndItsFileName) {
    serve(16, {.buffer_count = 3, .idle_limit = std::chrono::milliseconds{50}});
    RawPeer silent;
    connect(silent);
    RawPeer begun;
    connect(begun);
    begun.send(encode(Open{.name = "a", .size_bytes = 4, .mode = 0600}));
    ASSERT_TRUE(bed.run_until([&] { return silent.closed && begun.closed; }));
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    server.reset();
    serve();
    put("source/a", "a");
    EXPECT_EQ(*copy(options({"a"})).problem, "");
}

// One byte per millisecond: no chunk is complete within the time limit, although bytes arrive.
TEST_F(CopyBed, ASlowPeerIsServedUnlessAMinimumRateIsSet) {
    using std::chrono::milliseconds;
    for (const std::uint64_t least_bytes_per_s : {0U, 1'000'000U}) {
        serve(16, {.buffer_count = 3,
                   .idle_limit = milliseconds{50},
                   .least_bytes_per_s = least_bytes_per_s});
        RawPeer slow;
        connect(slow);
        slow.send(encode(Open{.name = "a", .size_bytes = chunk_bytes, .mode = 0600}));
        EXPECT_EQ(wait_for<Answer>(slow).outcome, Answer::Outcome::accepted);
        slow.send(encode(Start{0}));
        netio::TimePoint last = netio::Clock::now();
        const netio::TimePoint end = last + milliseconds{400};
        ASSERT_TRUE(bed.run_until([&] {
            const netio::TimePoint now = netio::Clock::now();
            if (now - last >= milliseconds{1}) {
                slow.send(std::array{std::byte{0}});
                last = now;
            }
            return slow.closed || now >= end;
        }));
        EXPECT_EQ(slow.closed, least_bytes_per_s > 0);
        server.reset();
    }
}

TEST_F(CopyBed, OneHostDoesNotUseEverySlot) {
    serve(4);
    RawPeer first;
    connect(first);
    RawPeer second;
    connect(second);
    RawPeer third;
    connect(third);
    EXPECT_FALSE(first.closed || second.closed);
    EXPECT_TRUE(third.closed);
    EXPECT_EQ(server->sender_count(), 2U);
}

TEST_F(CopyBed, AMissingOrStoppedServerIsReported) {
    serve();
    put("source/a", pattern(1 << 20));
    const Sender::Options what = options({"a"});
    server.reset();
    const Outcome nobody = copy(what);
    EXPECT_NE(*nobody.problem, "");

    serve();
    Outcome outcome;
    Sender sender{bed.loop(), bed.transport(), options({"a"}), outcome};
    sender.start();
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 1; }));
    server.reset();
    ASSERT_TRUE(bed.run_until([&] { return outcome.problem.has_value(); }));
    EXPECT_NE(*outcome.problem, "");
    EXPECT_FALSE(fs::exists(root + "/served/a"));
}

TEST_F(CopyBed, StoppingLeavesWhatTheServerHasForTheNextAttempt) {
    serve();
    put("source/a", pattern(64 * chunk_bytes));
    Outcome outcome;
    Sender sender{bed.loop(), bed.transport(), options({"a"}), outcome};
    sender.start();
    ASSERT_TRUE(bed.run_until([&] { return sender.progress().done_bytes > 5 * chunk_bytes; }));
    sender.stop();
    ASSERT_TRUE(bed.run_until([&] { return outcome.problem && server->sender_count() == 0; }));
    EXPECT_EQ(*outcome.problem, "interrupted");
    EXPECT_FALSE(fs::exists(root + "/served/a"));
    const Outcome again = copy(options({"a"}));
    EXPECT_EQ(again.files.at(0).outcome, CopiedFile::Outcome::copied);
    EXPECT_GT(again.files.at(0).resumed_bytes, 0U);
    EXPECT_EQ(fs::file_size(root + "/served/a"), 64 * chunk_bytes);
}

} // namespace
} // namespace apps::copy::test::copy_test
