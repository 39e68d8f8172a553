// SPDX-License-Identifier: Apache-2.0

// Sparse files, and file attributes.

#include "tests/scenario/copy/copy_bed.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <random>

namespace apps::copy::test::copy_sparse_test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class CopySparse : public CopyBed {
  protected:
    // Random bytes at these positions; the rest of the file is holes.
    void put_sparse(const std::string& name, std::uint64_t size,
                    const std::vector<Extent>& pieces) const {
        std::mt19937_64 random{size};
        std::ofstream out{root + "/" + name, std::ios::binary};
        for (const Extent& each : pieces) {
            out.seekp(static_cast<std::streamoff>(each.position));
            for (std::uint64_t i = 0; i < each.bytes; ++i)
                out.put(static_cast<char>(random()));
        }
        out.close();
        fs::resize_file(root + "/" + name, size);
    }
    std::uint64_t room_of(const std::string& name) const {
        struct stat status {};
        EXPECT_EQ(::stat((root + "/" + name).c_str(), &status), 0);
        return static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
    mode_t mode_of(const std::string& name) const {
        struct stat status {};
        EXPECT_EQ(::stat((root + "/" + name).c_str(), &status), 0);
        return status.st_mode & 07777U;
    }
    CopiedFile copy_one(const std::string& name) {
        const Outcome outcome = copy(options({name}));
        EXPECT_EQ(*outcome.problem, "");
        return outcome.files.at(0);
    }
};

TEST_F(CopySparse, HolesDoNotTravelWhereverTheyAre) {
    serve();
    std::vector<Extent> comb;
    for (std::uint64_t i = 0; i < 300; ++i)
        comb.push_back({.position = i * 65536, .bytes = 4096});
    const std::vector<std::pair<std::string, std::vector<Extent>>> files{
        {"start", {{.position = 30 * mib, .bytes = 2 * mib}}},
        {"middle", {{.position = 0, .bytes = mib}, {.position = 31 * mib, .bytes = mib}}},
        {"end", {{.position = 0, .bytes = 3 * mib + 1}}},
        {"all", {}},
        {"comb", comb},
        {"last byte", {{.position = 32 * mib - 1, .bytes = 1}}}};
    for (const auto& [name, pieces] : files) {
        SCOPED_TRACE(name);
        put_sparse("source/" + name, 32 * mib, pieces);
        const CopiedFile file = copy_one(name);
        EXPECT_EQ(file.outcome, CopiedFile::Outcome::copied) << file.detail;
        EXPECT_LE(file.moved_bytes, room_of("source/" + name));
        EXPECT_LE(room_of("served/" + name), room_of("source/" + name) + 64 * 1024);
        EXPECT_TRUE(content("served/" + name) == content("source/" + name));
        EXPECT_EQ(copy_one(name).outcome, CopiedFile::Outcome::present);
    }
}

TEST_F(CopySparse, ALongHoleIsCopiedComparedAndContinued) {
    serve();
    constexpr std::uint64_t size = 16 * hole_step_bytes;
    put_sparse("source/a", size, {{.position = size / 2, .bytes = 5}});
    const CopiedFile file = copy_one("a");
    EXPECT_EQ(file.outcome, CopiedFile::Outcome::copied) << file.detail;
    EXPECT_LE(file.moved_bytes, mib);
    EXPECT_EQ(fs::file_size(root + "/served/a"), size);
    EXPECT_LE(room_of("served/a"), mib);
    EXPECT_EQ(copy_one("a").outcome, CopiedFile::Outcome::present);
    fs::rename(root + "/served/a", root + "/served/.a.netio-part");
    fs::resize_file(root + "/served/.a.netio-part", size - mib);
    const CopiedFile again = copy_one("a");
    EXPECT_EQ(again.outcome, CopiedFile::Outcome::copied) << again.detail;
    EXPECT_EQ(again.resumed_bytes, size - mib);
}

TEST_F(CopySparse, AHoleThatIsInterruptedIsContinued) {
    serve();
    const std::uint64_t size = 20 * hole_step_bytes;
    put_sparse("source/a", size, {{.position = size - mib, .bytes = mib}});
    Outcome outcome;
    Sender sender{bed.loop(), bed.transport(), options({"a"}), outcome};
    sender.start();
    ASSERT_TRUE(bed.run_until([&] { return sender.progress().done_bytes >= 2 * hole_step_bytes; }));
    sender.stop();
    ASSERT_TRUE(bed.run_until([&] { return outcome.problem && server->sender_count() == 0; }));
    const CopiedFile again = copy_one("a");
    EXPECT_EQ(again.outcome, CopiedFile::Outcome::copied) << again.detail;
    EXPECT_GT(again.resumed_bytes, 0U);
    EXPECT_EQ(fs::file_size(root + "/served/a"), size);
}

TEST_F(CopySparse, AServerThatTakesNoExtentsIsSentAllBytes) {
    serve();
    put_sparse("source/a", 2 * mib, {});
    RawPeer peer;
    connect(peer);
    peer.send(encode(Open{.name = "a", .size_bytes = 2 * mib, .mode = 0600}));
    EXPECT_EQ(wait_for<Answer>(peer).text, offer_text);
    // Like a sender of an earlier version.
    peer.send(encode(Start{}));
    const std::string zeros(mib, '\0');
    for (const std::uint64_t position : {std::uint64_t{0}, mib}) {
        peer.send({.position = position,
                   .bytes = mib,
                   .digest = chunk_digest(std::as_bytes(std::span{zeros}))},
                  zeros);
    }
    Checksum checksum{ChecksumKind::xxh3_128};
    checksum.add_zeros(2 * mib, {});
    peer.send(encode(End{.digest = checksum.digest()}));
    EXPECT_TRUE(wait_for<Verdict>(peer).kept);
}

TEST_F(CopySparse, ExtentsThatCannotBeEndTheConnection) {
    serve();
    const std::vector<std::vector<Extent>> wrong{
        {{.position = 0, .bytes = 9 * mib}},             // beyond the end
        {{.position = 0, .bytes = 0}},                   // contains nothing
        {{.position = hole_step_bytes + 1, .bytes = 1}}, // the hole is too long
        {{.position = hole_step_bytes + 1, .bytes = 0}},
    };
    for (const std::vector<Extent>& extents : wrong) {
        RawPeer peer;
        connect(peer);
        const bool small = extents.front().position == 0;
        peer.send(encode(
            Open{.name = "a", .size_bytes = small ? 8 * mib : 4 * hole_step_bytes, .mode = 0600}));
        EXPECT_EQ(wait_for<Answer>(peer).outcome, Answer::Outcome::accepted);
        peer.send(encode(SparseStart{}));
        peer.send(encode(Extents{extents}));
        EXPECT_TRUE(bed.run_until([&] { return peer.closed; }));
        EXPECT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    }
    // Extents of a file that was not started as sparse, and an end far before its size.
    for (const bool sparse : {false, true}) {
        RawPeer peer;
        connect(peer);
        peer.send(encode(
            Open{.name = "a", .size_bytes = sparse ? 4 * hole_step_bytes : 0, .mode = 0600}));
        EXPECT_EQ(wait_for<Answer>(peer).outcome, Answer::Outcome::accepted);
        peer.send(sparse ? encode(SparseStart{}) : encode(Start{}));
        peer.send(sparse ? encode(End{}) : encode(Extents{{{.position = 0, .bytes = 1}}}));
        EXPECT_TRUE(bed.run_until([&] { return peer.closed; }));
        EXPECT_TRUE(bed.run_until([&] { return server->sender_count() == 0; }));
    }
    EXPECT_FALSE(fs::exists(root + "/served/a"));
}

// A disk that changes the file after part of it has been read.
class MeddlingDisk final : public Disk {
  public:
    MeddlingDisk(netio::EventLoop& loop, std::function<void()> meddle)
        : disk_{loop}, meddle_{std::move(meddle)} {}
    void start() override { disk_.start(); }
    bool is_started() const noexcept override { return disk_.is_started(); }
    void run(Task task, Then then) override {
        if (++tasks_ == 4) meddle_();
        disk_.run(std::move(task), std::move(then));
    }
    void drop() override { disk_.drop(); }

  private:
    DiskThread disk_;
    std::function<void()> meddle_;
    int tasks_ = 0;
};

TEST_F(CopySparse, PermissionsChangedDuringTheCopyArriveToo) {
    serve();
    const std::string path = put("source/a", std::string(4 * mib, 'x'));
    ::chmod(path.c_str(), 0644);
    Sender::Options what = options({"a"});
    what.disk = [&](netio::EventLoop& loop) {
        return std::make_unique<MeddlingDisk>(loop, [&] { ::chmod(path.c_str(), 0600); });
    };
    const Outcome outcome = copy(std::move(what));
    EXPECT_EQ(outcome.files.at(0).outcome, CopiedFile::Outcome::copied);
    EXPECT_EQ(mode_of("served/a"), 0600U);
}

TEST_F(CopySparse, AFileThatIsThereIsGivenDateAndPermissions) {
    serve();
    const std::string path = put("source/a", "content");
    put("served/a", "content");
    ::chmod(path.c_str(), 0600);
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW},
                               {.tv_sec = 978'307'200, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    const CopiedFile file = copy_one("a");
    EXPECT_EQ(file.outcome, CopiedFile::Outcome::present);
    EXPECT_EQ(file.detail, "");
    struct stat status {};
    ASSERT_EQ(::stat((root + "/served/a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(status.st_mtim.tv_sec, 978'307'200);
}

TEST_F(CopySparse, WhereNothingIsReplacedAttributesStay) {
    serve(16, {.buffer_count = 3, .access = TargetFile::Access::no_overwrite});
    ::chmod(put("source/a", "content").c_str(), 0600);
    ::chmod(put("served/a", "content").c_str(), 0644);
    const CopiedFile file = copy_one("a");
    EXPECT_EQ(file.outcome, CopiedFile::Outcome::present);
    EXPECT_THAT(file.detail, HasSubstr("this server does not replace files"));
    EXPECT_EQ(mode_of("served/a"), 0644U);
}

TEST_F(CopySparse, SetUserIdBitsAreNotCopied) {
    serve();
    ::chmod(put("source/a", "content").c_str(), 06755);
    EXPECT_EQ(copy_one("a").outcome, CopiedFile::Outcome::copied);
    EXPECT_EQ(mode_of("served/a") & 07000U, 0U);
}

} // namespace
} // namespace apps::copy::test::copy_sparse_test
