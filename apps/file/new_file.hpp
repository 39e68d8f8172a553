// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "pubsub/recording/recording_error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace apps::file {

// Throws RecordingError: the file exists.
[[noreturn]] inline void refuse_existing(const std::string& path) {
    throw netio::RecordingError{path +
                                ": exists; nothing is overwritten: give the name of a new file"};
}

// A new file, removed by the destructor unless it was finished; "-" is standard output. Functions
// throw std::system_error that names the file, the constructor also RecordingError.
class NewFile {
  public:
    explicit NewFile(std::string path) : path_{std::move(path)} {
        if (path_ == "-") {
            file_ = stdout;
            return;
        }
        file_ = std::fopen(path_.c_str(), "wxbe");
        if (file_ == nullptr && errno == EEXIST) refuse_existing(path_);
        if (file_ == nullptr) throw_errno(path_);
    }
    ~NewFile() {
        if (file_ == nullptr || file_ == stdout) return;
        std::fclose(file_);
        ::unlink(path_.c_str());
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void write(std::span<const std::byte> bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) throw_errno(path_);
        size_ += bytes.size();
    }
    void write(std::string_view text) { write(std::as_bytes(std::span{text})); }
    std::uint64_t size() const noexcept { return size_; } // bytes written

    // Waits until a file is on the disk.
    void finish() {
        if (std::fflush(file_) != 0) throw_errno(path_);
        if (file_ == stdout) return;
        if (!sync_file(::fileno(file_))) throw_errno(path_);
        std::FILE* const closed = std::exchange(file_, nullptr);
        if (std::fclose(closed) == 0) return;
        const int error = errno;
        ::unlink(path_.c_str());
        errno = error;
        throw_errno(path_);
    }

  private:
    std::string path_;
    std::FILE* file_ = nullptr; // null: finished
    std::uint64_t size_ = 0;
};

} // namespace apps::file
