// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <filesystem>
#include <system_error>
#include <utility>

namespace apps {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

void sync_folder(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail(folder);
    const int result = ::fsync(fd);
    ::close(fd);
    if (result != 0) fail(folder);
}

} // namespace

Recorder::Recorder(std::string folder, std::size_t open_limit)
    : folder_{std::move(folder)}, open_limit_{open_limit} {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw std::system_error{error, "cannot make the folder " + folder_};
    if (::access(folder_.c_str(), W_OK | X_OK) != 0) fail("cannot write to the folder " + folder_);
}

std::string Recorder::path_of(netio::pubsub::Fid fid) const {
    char name[17];
    std::snprintf(name, sizeof name, "%016" PRIx64, netio::pubsub::to_integer(fid));
    return folder_ + "/" + name;
}

void Recorder::open(netio::pubsub::Fid fid, File& file) {
    if (open_.size() >= open_limit_) close_oldest();
    const std::string path = path_of(fid) + ".part";
    file.file.reset(std::fopen(path.c_str(), file.begun ? "abe" : "wbe"));
    if (!file.file) fail("cannot write " + path);
    file.begun = true;
    open_.push_back(fid);
}

void Recorder::close_oldest() {
    const netio::pubsub::Fid fid = open_.front();
    open_.pop_front();
    File& file = **files_.find(fid);
    // Closing writes what is buffered, so it may fail for want of space.
    if (std::fclose(file.file.release()) != 0) fail("cannot write " + path_of(fid) + ".part");
}

void Recorder::write(netio::pubsub::Fid fid, std::span<const std::byte> message) {
    std::unique_ptr<File>& file = files_[fid];
    if (!file) file = std::make_unique<File>();
    if (!file->file) open(fid, *file);
    if (std::fwrite(message.data(), 1, message.size(), file->file.get()) != message.size()) {
        fail("cannot write " + path_of(fid) + ".part");
    }
}

void Recorder::finish() {
    files_.for_each([&](netio::pubsub::Fid fid, std::unique_ptr<File>& file) {
        if (!file->file) open(fid, *file);
        const std::string path = path_of(fid);
        if (std::fflush(file->file.get()) != 0 || ::fsync(::fileno(file->file.get())) != 0) {
            fail("cannot write " + path + ".part");
        }
        file->file.reset();
        std::erase(open_, fid);
        if (std::rename((path + ".part").c_str(), path.c_str()) != 0) {
            fail("cannot give " + path + " its name");
        }
    });
    files_.clear();
    sync_folder(folder_);
}

} // namespace apps
