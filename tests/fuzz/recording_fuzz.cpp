// SPDX-License-Identifier: Apache-2.0

// Recordings with arbitrary content.

#include "pubsub/recording/recording_reader.hpp"
#include "tests/fuzz/target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace netio::fuzz::recording_fuzz {
namespace {

void read_all(const std::string& path, RecordingReader::OnDamage on_damage) {
    try {
        RecordingReader reader{
            path, {.chunk_memory_limit_bytes = std::size_t{1} << 20, .on_damage = on_damage}};
        static_cast<void>(reader.begin_time());
        while (reader.next())
            if (reader.event() == nullptr) look_at(reader.message().bytes);
        NETIO_CHECK(reader.passed_bytes() == reader.total_bytes());
    } catch (const RecordingError& error) {
        const std::string_view what = error.what();
        NETIO_CHECK(what.starts_with(path));
    }
}

const Target recording{"recording", [](Bytes bytes) {
                           const int fd = ::memfd_create("recording", MFD_CLOEXEC);
                           NETIO_CHECK(fd >= 0);
                           NETIO_CHECK(bytes.empty() || ::write(fd, bytes.data(), bytes.size()) ==
                                                            static_cast<ssize_t>(bytes.size()));
                           const std::string path = "/proc/self/fd/" + std::to_string(fd);
                           read_all(path, RecordingReader::OnDamage::refuse);
                           read_all(path, RecordingReader::OnDamage::skip);
                           ::close(fd);
                       }};

} // namespace
} // namespace netio::fuzz::recording_fuzz
