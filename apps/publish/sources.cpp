// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/sources.hpp"

#include "apps/common/pattern.hpp"
#include "netio/base/check.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace apps {
namespace {

void fill(std::span<std::byte> memory, netio::pubsub::Fid fid, std::uint64_t sequence, bool timed) {
    if (timed) {
        fill_timed_pattern(memory, fid, sequence);
    } else {
        fill_pattern(memory, fid, sequence);
    }
}

class PatternSource final : public Source {
  public:
    PatternSource(netio::pubsub::Fid fid, bool timed) : fid_{fid}, timed_{timed} {}

    Result fill(std::span<std::byte> memory) override {
        apps::fill(memory, fid_, sequence_, timed_);
        return {.outcome = Outcome::message, .bytes = memory.size()};
    }
    void accept() override { ++sequence_; }
    std::uint64_t number() const noexcept override { return sequence_; }

  private:
    netio::pubsub::Fid fid_;
    std::uint64_t sequence_ = 0;
    bool timed_;
};

class FaultySource final : public Source {
  public:
    FaultySource(netio::pubsub::Fid fid, bool timed, const FaultConfig& faults, std::uint64_t seed)
        : fid_{fid}, timed_{timed}, plan_{faults, seed} {}

    Result fill(std::span<std::byte> memory) override {
        const FaultPlan::Step& step = plan_.step();
        apps::fill(memory, fid_, step.sequence, timed_);
        const std::size_t head = timed_ ? timed_pattern_bytes : whole_pattern_bytes;
        std::size_t bytes = memory.size();
        if (step.damage != FaultPlan::Step::Damage::none) {
            NETIO_CHECK(bytes > head);
            const std::size_t place = head + step.place % (bytes - head);
            if (step.damage == FaultPlan::Step::Damage::truncated) {
                bytes = place;
            } else {
                memory[place] ^= std::byte{0x10};
            }
        }
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override { plan_.accept(); }
    std::uint64_t number() const noexcept override { return plan_.step().sequence; }
    FaultCounts faults() const override { return plan_.counts(); }

  private:
    netio::pubsub::Fid fid_;
    bool timed_;
    FaultPlan plan_;
};

class FileSource final : public Source {
  public:
    FileSource(std::string path, bool repeat) : path_{std::move(path)}, repeat_{repeat} {}

    Result fill(std::span<std::byte> memory) override {
        if (ended_) return {};
        if (!file_) open();
        if (std::exchange(filled_, 0) > 0) seek(); // what was read last was not published
        std::size_t bytes = read(memory);
        if (bytes == 0 && repeat_ && any_) {
            offset_ = 0;
            seek();
            bytes = read(memory);
        }
        if (bytes == 0) {
            ended_ = true;
            file_.reset();
            return {};
        }
        any_ = true;
        filled_ = bytes;
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override {
        offset_ += static_cast<off_t>(std::exchange(filled_, 0));
        ++accepted_;
    }
    std::uint64_t number() const noexcept override { return accepted_; }

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };

    void open() {
        // Opening a pipe would stop the loop until another program opens it for writing.
        const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0) throw std::system_error{errno, std::generic_category(), path_};
        struct stat status {};
        if (::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode)) {
            ::close(descriptor);
            throw std::system_error{ESPIPE, std::generic_category(),
                                    path_ + " is a pipe: redirect it to standard input and use "
                                            "'source: pipe'"};
        }
        file_.reset(::fdopen(descriptor, "rb"));
        if (!file_) {
            const int error = errno;
            ::close(descriptor);
            throw std::system_error{error, std::generic_category(), path_};
        }
    }
    void seek() {
        if (::fseeko(file_.get(), offset_, SEEK_SET) != 0)
            throw std::system_error{errno, std::generic_category(), path_};
    }
    std::size_t read(std::span<std::byte> memory) {
        const std::size_t bytes = std::fread(memory.data(), 1, memory.size(), file_.get());
        if (bytes < memory.size() && std::ferror(file_.get()) != 0) {
            throw std::system_error{errno, std::generic_category(), path_};
        }
        return bytes;
    }

    std::string path_;
    off_t offset_ = 0;       // of what has been published
    std::size_t filled_ = 0; // behind it, and not published yet
    std::uint64_t accepted_ = 0;
    bool repeat_;
    bool any_ = false;
    bool ended_ = false;
    std::unique_ptr<std::FILE, Close> file_;
};

class PipeSource final : public Source {
  public:
    explicit PipeSource(int fd) : fd_{fd} {}

    Result fill(std::span<std::byte> memory) override {
        // What came too early for a whole message waits here; the memory differs from call to call.
        if (collected_.size() < memory.size()) collected_.resize(memory.size());
        while (!ended_ && filled_ < memory.size()) {
            pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
            if (::poll(&readable, 1, 0) == 0) return {.outcome = Outcome::not_ready};
            const ssize_t got = ::read(fd_, collected_.data() + filled_, memory.size() - filled_);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw std::system_error{errno, std::generic_category(), "standard input"};
            ended_ = got == 0;
            filled_ += static_cast<std::size_t>(got);
        }
        const std::size_t bytes = std::min(filled_, memory.size());
        if (bytes == 0) return {};
        std::copy_n(collected_.begin(), bytes, memory.begin());
        given_ = bytes;
        return {.outcome = Outcome::message, .bytes = bytes};
    }
    void accept() override {
        std::copy(collected_.begin() + static_cast<std::ptrdiff_t>(given_),
                  collected_.begin() + static_cast<std::ptrdiff_t>(filled_), collected_.begin());
        filled_ -= std::exchange(given_, 0);
        ++accepted_;
    }
    std::uint64_t number() const noexcept override { return accepted_; }
    int wait_fd() const noexcept override { return fd_; }

  private:
    int fd_;
    bool ended_ = false;
    std::vector<std::byte> collected_;
    std::size_t filled_ = 0;
    std::size_t given_ = 0; // the first of them, and not published yet
    std::uint64_t accepted_ = 0;
};

} // namespace

std::unique_ptr<Source> make_pattern_source(netio::pubsub::Fid fid, bool timed) {
    return std::make_unique<PatternSource>(fid, timed);
}
std::unique_ptr<Source> make_faulty_source(netio::pubsub::Fid fid, bool timed,
                                           const FaultConfig& faults, std::uint64_t seed) {
    return std::make_unique<FaultySource>(fid, timed, faults, seed);
}
std::unique_ptr<Source> make_file_source(std::string path, bool repeat) {
    return std::make_unique<FileSource>(std::move(path), repeat);
}
std::unique_ptr<Source> make_pipe_source(int fd) {
    return std::make_unique<PipeSource>(fd);
}

} // namespace apps
