// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"
#include "apps/copy/disk.hpp"
#include "netio/memory/buffer.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <system_error>
#include <vector>

namespace apps::copy::file_data_test {
namespace {

constexpr std::size_t memory_bytes = std::size_t{3} << 20;

class BulkWriterTest : public testing::Test {
  protected:
    BulkWriterTest() {
        for (std::size_t i = 0; i < memory_bytes; ++i)
            memory.data()[i] = static_cast<std::byte>(i * 11 + i / 4096);
    }
    ~BulkWriterTest() override { ::unlink(path.c_str()); }

    Descriptor create() const {
        return Descriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    }
    // Reads with a separate descriptor.
    static std::vector<std::byte> content(const std::string& name) {
        const Descriptor file{::open(name.c_str(), O_RDONLY | O_CLOEXEC)};
        std::vector<std::byte> bytes(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)));
        EXPECT_EQ(::pread(file.get(), bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
        return bytes;
    }
    void expect_content(const std::vector<std::byte>& found, std::size_t size) const {
        ASSERT_EQ(found.size(), size);
        EXPECT_TRUE(std::ranges::equal(found, memory.memory().first(size)));
    }

    netio::RegisteredBuffer memory{memory_bytes}; // page-aligned
    std::string path = testing::TempDir() + "netio_bulk_" + std::to_string(::getpid());
};

TEST_F(BulkWriterTest, AlignedBytesBypassTheCacheAndTheEndDoesNot) {
    const Descriptor file = create();
    BulkWriter writer{file.get(), 0, true};
    writer.write(memory.memory().first(1 << 20));
    writer.write(memory.memory().subspan(1 << 20, (1 << 20) + 777));
    EXPECT_EQ(writer.position_bytes(), (2U << 20) + 777);
    // All or nothing: some file systems do not support it.
    EXPECT_TRUE(writer.bypassed_bytes() == 2U << 20 || writer.bypassed_bytes() == 0)
        << writer.bypassed_bytes();
    expect_content(content(path), (2U << 20) + 777);
}

TEST_F(BulkWriterTest, WhateverTheSizesTheBytesAreRight) {
    std::mt19937 random{17};
    for (int round = 0; round < 20; ++round) {
        const Descriptor file = create();
        BulkWriter writer{file.get(), 0, true};
        std::size_t done = 0;
        while (done < memory_bytes) {
            const std::size_t blocks = random() % 64 * BulkWriter::alignment_bytes;
            const std::size_t odd = random() % 4 == 0 ? random() % 9000 : 0;
            const std::size_t size = std::min(blocks + odd, memory_bytes - done);
            writer.write(memory.memory().subspan(done, size));
            done += size;
        }
        expect_content(content(path), memory_bytes);
    }
}

TEST_F(BulkWriterTest, GoesOnAtAPosition) {
    const Descriptor file = create();
    BulkWriter{file.get(), 0, true}.write(memory.memory().first(1 << 20));
    BulkWriter{file.get(), 1 << 20, true}.write(memory.memory().subspan(1 << 20));
    expect_content(content(path), memory_bytes);
}

TEST_F(BulkWriterTest, MemoryThatIsNotAlignedGoesThroughTheCache) {
    const Descriptor file = create();
    BulkWriter writer{file.get(), 0, true};
    writer.write(memory.memory().subspan(1, 8192));
    EXPECT_EQ(writer.bypassed_bytes(), 0U);
    const auto found = content(path);
    EXPECT_TRUE(std::ranges::equal(found, memory.memory().subspan(1, 8192)));
}

TEST_F(BulkWriterTest, WithoutDirectWritesAllGoesThroughTheCache) {
    int ends[2];
    // Pipes have no positions: the caller gets the error.
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor in{ends[0]};
    const Descriptor out{ends[1]};
    BulkWriter writer{out.get(), 0, true};
    EXPECT_THROW(writer.write(memory.memory().first(4096)), std::system_error);

    const Descriptor unnamed{::memfd_create("netio bulk", MFD_CLOEXEC)};
    BulkWriter to_memory{unnamed.get(), 0, true};
    to_memory.write(memory.memory());
    expect_content(content("/proc/self/fd/" + std::to_string(unnamed.get())), memory_bytes);
}

TEST_F(BulkWriterTest, WhatWasWrittenBeforeAFailureCounts) {
    const Descriptor file = create();
    BulkWriter writer{file.get(), 0, true};
    writer.write(memory.memory().first(8192));
    const Descriptor read_only{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    BulkWriter refused{read_only.get(), 8192, true};
    EXPECT_THROW(refused.write(memory.memory().first(4096)), std::system_error);
    EXPECT_EQ(refused.position_bytes(), 8192U);
    expect_content(content(path), 8192);
}

} // namespace
} // namespace apps::copy::file_data_test
