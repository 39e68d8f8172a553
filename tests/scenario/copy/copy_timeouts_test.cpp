// SPDX-License-Identifier: Apache-2.0

// How long a copy server waits for a sender, in virtual time.

#include "tests/scenario/copy/copy_bed.hpp"
#include "tests/scenario/stream/impostor.hpp"
#include "tests/world/actors/sim_disk.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace apps::copy::test::copy_timeouts_test {
namespace {

using netio::world::DiskState;
using netio::world::SimDisk;
using std::chrono::seconds;

class CopyTimeouts : public CopyBed {
  protected:
    static constexpr seconds idle_limit{10};
    static constexpr std::uint64_t large_bytes = 6 * Sender::compare_step_bytes + 1;

    CopyTimeouts() : CopyBed{netio::test::Bed::sim_tcp} {
        serve(16, {.buffer_count = 3,
                   .idle_limit = idle_limit,
                   .least_bytes_per_s = 1000,
                   .disk = disk_of(std::make_shared<DiskState>())});
    }
    static MakeDisk disk_of(std::shared_ptr<DiskState> state) {
        return [state = std::move(state)](netio::EventLoop& loop) {
            return std::make_unique<SimDisk>(loop, state);
        };
    }
    // A sparse file of zeroes, which uses no disk space.
    void put_large(const std::string& name) const {
        put(name, "");
        fs::resize_file(root + "/" + name, large_bytes);
    }
    Message open_large() const {
        return encode(Open{.name = "large", .size_bytes = large_bytes, .mode = 0600});
    }
    // Requests the file and then sends nothing more.
    void expect_silence_ends_it(Answer::Outcome outcome) {
        RawPeer peer;
        connect(peer);
        peer.send(open_large());
        const Answer answer = wait_for<Answer>(peer);
        EXPECT_EQ(answer.outcome, outcome);
        EXPECT_EQ(answer.offset_bytes, large_bytes);
        const netio::TimePoint answered = bed.loop().now();
        ASSERT_TRUE(bed.run_until([&] { return peer.closed; }));
        EXPECT_LT(bed.loop().now() - answered, idle_limit + seconds{1});
        ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    }
    // Its disk needs longer for the whole file than the server waits, but not for one step.
    CopiedFile copy_slowly() {
        auto slow = std::make_shared<DiskState>();
        slow->per_task = idle_limit / 3;
        Sender::Options what = options({"large"});
        what.disk = disk_of(std::move(slow));
        const Outcome outcome = copy(std::move(what));
        EXPECT_EQ(*outcome.problem, "");
        return outcome.files.at(0);
    }
};

TEST_F(CopyTimeouts, ComparingALargeFileExtendsNoSilentSendersSlot) {
    put_large("served/large");
    expect_silence_ends_it(Answer::Outcome::present);
}

TEST_F(CopyTimeouts, ComparingALargePartExtendsNoSilentSendersSlot) {
    put_large("served/.large.netio-part");
    expect_silence_ends_it(Answer::Outcome::accepted);
}

TEST_F(CopyTimeouts, ASenderComparingALargeFileOnASlowDiskKeepsItsSlot) {
    put_large("source/large");
    put_large("served/large");
    const CopiedFile file = copy_slowly();
    EXPECT_EQ(file.outcome, CopiedFile::Outcome::present) << file.detail;
}

TEST_F(CopyTimeouts, ASenderComparingALargePartOnASlowDiskKeepsItsSlot) {
    put_large("source/large");
    put_large("served/.large.netio-part");
    const CopiedFile file = copy_slowly();
    EXPECT_EQ(file.outcome, CopiedFile::Outcome::copied) << file.detail;
    EXPECT_EQ(file.resumed_bytes, large_bytes);
}

TEST_F(CopyTimeouts, RepeatedOrExcessiveComparisonProgressDoesNotCount) {
    put_large("served/large");
    for (const std::uint64_t second : {std::uint64_t{5}, large_bytes + 1}) {
        RawPeer early;
        connect(early);
        early.send(encode(Comparing{5}));
        ASSERT_TRUE(bed.run_until([&] { return early.closed; })) << "before any file was offered";
        RawPeer peer;
        connect(peer);
        peer.send(open_large());
        EXPECT_EQ(wait_for<Answer>(peer).text, offer_text);
        peer.send(encode(Comparing{5}));
        const netio::TimePoint said = bed.loop().now();
        peer.send(encode(Comparing{second}));
        ASSERT_TRUE(bed.run_until([&] { return peer.closed; }));
        EXPECT_LT(bed.loop().now() - said, seconds{1});
    }
}

// Counts the disks that were ever used.
class CountedDisk final : public Disk {
  public:
    CountedDisk(netio::EventLoop& loop, std::size_t& started)
        : started_{started}, disk_{loop, std::make_shared<DiskState>()} {}
    void start() override {
        ++started_;
        disk_.start();
    }
    bool is_started() const noexcept override { return disk_.is_started(); }
    void run(Task task, Then then) override { disk_.run(std::move(task), std::move(then)); }
    void drop() override { disk_.drop(); }

  private:
    std::size_t& started_;
    SimDisk disk_;
};

// Address space of this process, used or not.
std::size_t mapped_bytes() {
    std::size_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// The peer finishes the handshake of its session but announces no ring, so there is no stream yet.
TEST_F(CopyTimeouts, APeerStoppedInTheHandshakeCostsNoMemoryAndASlotOnlyBriefly) {
    constexpr std::size_t buffers = 512;
    std::size_t started = 0;
    server.reset();
    serve(1, {.buffer_count = buffers, .disk = [&started](netio::EventLoop& loop) {
                  return std::make_unique<CountedDisk>(loop, started);
              }});
    const std::size_t before = mapped_bytes();
    netio::stream::test::Impostor half{bed.transport(), address()};
    ASSERT_TRUE(bed.run_until([&] { return half.has_ring(); }));
    EXPECT_EQ(server->sender_count(), 1U);
    EXPECT_LT(mapped_bytes() - before, buffers * chunk_bytes / 4);
    const netio::TimePoint then = bed.loop().now();
    ASSERT_TRUE(bed.run_until([&] { return half.closed && server->sender_count() == 0; }));
    EXPECT_LT(bed.loop().now() - then, seconds{6}) << "by handshake_timeout, not by idle_limit";
    EXPECT_EQ(started, 0U);
    put("source/honest", "content");
    Sender::Options what = options({"honest"});
    what.disk = disk_of(std::make_shared<DiskState>());
    EXPECT_EQ(copy(std::move(what)).files.at(0).outcome, CopiedFile::Outcome::copied);
    EXPECT_EQ(started, 1U);
}

// Collects the log lines while it exists.
class Logged {
  public:
    Logged() {
        spdlog::set_default_logger(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)));
    }
    ~Logged() { spdlog::set_default_logger(before_); }
    Logged(const Logged&) = delete;
    Logged& operator=(const Logged&) = delete;

    std::vector<std::string> lines() const {
        std::vector<std::string> lines;
        std::istringstream in{text_.str()};
        for (std::string line; std::getline(in, line);)
            lines.push_back(line);
        return lines;
    }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(CopyTimeouts, FilesBeyondTheLogLimitAreCountedInTheLog) {
    constexpr std::size_t limit = LimitedLog::lines_per_interval;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < limit + 30; ++i) {
        names.push_back("file" + std::to_string(i));
        put("source/" + names.back(), "");
    }
    const Logged log;
    const netio::TimePoint begin = bed.loop().now();
    Sender::Options what = options(names);
    what.disk = disk_of(std::make_shared<DiskState>());
    EXPECT_EQ(*copy(std::move(what)).problem, "");
    ASSERT_LT(bed.loop().now() - begin, LimitedLog::interval);
    EXPECT_EQ(log.lines().size(), limit); // one line reports the connection
    server.reset();
    ASSERT_EQ(log.lines().size(), limit + 1);
    EXPECT_THAT(log.lines().back(), testing::HasSubstr("kept, "));
    EXPECT_THAT(log.lines().back(), testing::EndsWith("(and 30 before it)"));
}

} // namespace
} // namespace apps::copy::test::copy_timeouts_test
