// SPDX-License-Identifier: Apache-2.0

// Copies under several faults: a server restarts, sources change in between, a disk becomes full,
// with several senders at the same time.

#include "tests/scenario/copy/copy_bed.hpp"

#include <sys/resource.h>

#include <csignal>

namespace apps::copy::test::copy_combination_test {
namespace {

using testing::HasSubstr;

std::string bytes_of(std::size_t count, std::uint32_t seed) {
    std::string text(count, '\0');
    for (std::size_t i = 0; i < count; ++i)
        text[i] = static_cast<char>(((i + seed) * 2654435761U) >> 13U);
    return text;
}

// While this object exists, no file can grow beyond the limit, like on a full disk. (Only the name
// of the error differs.)
class FileLimit {
  public:
    explicit FileLimit(std::size_t bytes) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        handler_ = std::signal(SIGXFSZ, SIG_IGN); // as the program does
        const rlimit low{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
    }
    ~FileLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int) = nullptr;
};

class CopyCombination : public CopyBed {
  protected:
    static constexpr std::size_t count = 4;
    static constexpr std::size_t file_bytes = 24 * chunk_bytes + 4'321;

    static std::string name(std::size_t i) { return "file" + std::to_string(i); }
    void put_sources() {
        for (std::uint32_t i = 0; i < count; ++i)
            put("source/" + name(i), bytes_of(file_bytes, i));
    }
    // One sender for each file; waits until all have ended.
    void begin_all() {
        outcomes.assign(count, {});
        senders.clear();
        for (std::size_t i = 0; i < count; ++i) {
            senders.emplace_back(bed.loop(), bed.transport(), options({name(i)}), outcomes[i])
                .start();
        }
    }
    bool all_have_ended() const {
        return std::ranges::all_of(outcomes,
                                   [](const Outcome& one) { return one.problem.has_value(); });
    }
    bool all_are_under_way() const {
        return std::ranges::all_of(
            senders, [](const Sender& one) { return one.progress().done_bytes > 8 * chunk_bytes; });
    }
    void end_all() {
        ASSERT_TRUE(bed.run_until([&] { return all_have_ended(); }));
        senders.clear();
    }

    std::deque<Outcome> outcomes;
    std::deque<Sender> senders;
};

// The server stops in the middle of four files. Before it is back, the first bytes of one source
// change, one is shortened, one is extended, and one stays the same.
TEST_F(CopyCombination, ARestartedServerContinuesUnchangedFiles) {
    put_sources();
    serve();
    begin_all();
    ASSERT_TRUE(bed.run_until([&] { return all_are_under_way(); }));
    server.reset();
    end_all();
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(outcomes[i].files.at(0).outcome, CopiedFile::Outcome::failed);
        EXPECT_FALSE(fs::exists(root + "/served/" + name(i)));
        EXPECT_GT(fs::file_size(root + "/served/." + name(i) + ".netio-part"), 0U);
    }

    const std::array sources{"x" + bytes_of(file_bytes - 1, 7), bytes_of(chunk_bytes / 2, 1),
                             bytes_of(file_bytes + 999, 2), bytes_of(file_bytes, 3)};
    for (std::size_t i = 0; i < count; ++i)
        put("source/" + name(i), sources[i]);
    serve();
    begin_all();
    end_all();
    for (std::size_t i = 0; i < count; ++i) {
        const CopiedFile& file = outcomes[i].files.at(0);
        EXPECT_EQ(file.outcome, CopiedFile::Outcome::copied) << file.detail;
        EXPECT_TRUE(content("served/" + name(i)) == sources[i]) << name(i);
        EXPECT_EQ(file.resumed_bytes > 0, i >= 2) << name(i);
    }
}

TEST_F(CopyCombination, SendersStoppedAndRestartedRepeatedlyFinish) {
    put_sources();
    serve();
    for (int round = 0; round < 3; ++round) {
        begin_all();
        ASSERT_TRUE(bed.run_until([&] { return all_are_under_way() || all_have_ended(); }));
        for (Sender& sender : senders)
            sender.stop();
        end_all();
        // The partial file is unlocked once the server has noticed that its sender is gone.
        ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    }
    begin_all();
    end_all();
    for (std::uint32_t i = 0; i < count; ++i)
        EXPECT_TRUE(content("served/" + name(i)) == bytes_of(file_bytes, i)) << name(i);
}

TEST_F(CopyCombination, AFullDiskFailsOnlyTheLargeFilesAndTheyContinueLater) {
    put_sources();
    const std::string small = bytes_of(2 * chunk_bytes, 9);
    put("source/" + name(0), small);
    serve();
    {
        const FileLimit full{8 * chunk_bytes};
        begin_all();
        end_all();
    }
    EXPECT_EQ(outcomes[0].files.at(0).outcome, CopiedFile::Outcome::copied)
        << outcomes[0].files.at(0).detail;
    for (std::size_t i = 1; i < count; ++i) {
        const CopiedFile& file = outcomes[i].files.at(0);
        EXPECT_EQ(file.outcome, CopiedFile::Outcome::failed);
        EXPECT_THAT(file.detail, HasSubstr("cannot write")) << "the server's reason";
        EXPECT_FALSE(fs::exists(root + "/served/" + name(i)));
    }
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    begin_all();
    end_all();
    EXPECT_EQ(outcomes[0].files.at(0).outcome, CopiedFile::Outcome::present);
    for (std::uint32_t i = 1; i < count; ++i) {
        const CopiedFile& file = outcomes[i].files.at(0);
        EXPECT_EQ(file.outcome, CopiedFile::Outcome::copied) << file.detail;
        EXPECT_GT(file.resumed_bytes, 0U) << "the part that fitted is still there";
        EXPECT_TRUE(content("served/" + name(i)) == bytes_of(file_bytes, i)) << name(i);
    }
}

// Three of four senders leave in the middle; the fourth is not delayed, and each partial file is
// unlocked.
TEST_F(CopyCombination, OneSenderFinishesWhileOthersAreDisconnected) {
    put_sources();
    serve();
    begin_all();
    ASSERT_TRUE(bed.run_until([&] { return all_are_under_way() || all_have_ended(); }));
    while (senders.size() > 1)
        senders.pop_back(); // as if killed, without a message
    ASSERT_TRUE(bed.run_until([&] { return outcomes[0].problem.has_value(); }));
    EXPECT_EQ(outcomes[0].files.at(0).outcome, CopiedFile::Outcome::copied);
    EXPECT_TRUE(content("served/" + name(0)) == bytes_of(file_bytes, 0));
    senders.clear();
    ASSERT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    begin_all();
    end_all();
    for (std::uint32_t i = 0; i < count; ++i)
        EXPECT_TRUE(content("served/" + name(i)) == bytes_of(file_bytes, i)) << name(i);
}

} // namespace
} // namespace apps::copy::test::copy_combination_test
