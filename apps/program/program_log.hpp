// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace apps {

// Writes the lines of a log in a thread of its own: whoever does not read them, a terminal that is
// held, a disk that is full, holds up nobody. So many lines may wait; beyond, the oldest are left
// out, and their number is told in their place. What cannot be written counts as left out, too.

class BackgroundLog final : public spdlog::sinks::base_sink<std::mutex> {
  public:
    static constexpr std::size_t waiting_limit = 8192;    // lines
    static constexpr std::chrono::seconds flush_limit{1}; // a flush waits no longer than this
    static constexpr std::size_t line_limit_bytes = 8192; // a longer one is cut

    enum class Style : std::uint8_t {
        plain,
        coloured,
        journal, // a priority before each line, as systemd reads it (sd-daemon(3))
    };
    // Told the errno, in the log's own thread, of the first line that cannot be written.
    using OnBroken = std::function<void(int error)>;

    // The descriptor stays open as long as there is anything to write.
    BackgroundLog(int descriptor, Style style, std::size_t limit = waiting_limit,
                  OnBroken on_broken = {});
    ~BackgroundLog() override;
    BackgroundLog(const BackgroundLog&) = delete;
    BackgroundLog& operator=(const BackgroundLog&) = delete;

    // Writes later lines to this descriptor, and closes the one before.
    void go_on_in(int descriptor);
    // Waits until all is written, but no longer than so. Whether it is.
    bool finish(std::chrono::milliseconds patience);
    std::uint64_t left_out() const;

  protected:
    // Escapes the text (apps/common/terminal.hpp).
    void sink_it_(const spdlog::details::log_msg& original) override;
    // Waits as finish() does, so that what the program prints next comes after its log.
    void flush_() override { finish(flush_limit); }

  private:
    struct Queue; // shared with the thread, which may outlive this
    Style style_;
    std::shared_ptr<Queue> queue_;
};

// Where the program's log goes: standard error, the journal behind it, or a file.

struct LogArguments {
    std::string level = "info";
    std::string file; // empty: standard error
};
// --log-level and --log-file.
void add_log(CLI::App& command, LogArguments& arguments);

class ProgramLog {
  public:
    // Before other threads begin. With a file, SIGHUP opens the file again and does not end the
    // program: the signal is blocked in this thread, and end_signals() leaves it out. Throws
    // std::system_error: the file cannot be written.
    explicit ProgramLog(const LogArguments& arguments);
    // Waits for a short time only for a reader who does not read. Says on standard error how many
    // lines a file lacks.
    ~ProgramLog();
    ProgramLog(const ProgramLog&) = delete;
    ProgramLog& operator=(const ProgramLog&) = delete;

  private:
    std::string file_;
    std::shared_ptr<BackgroundLog> log_;
};

} // namespace apps
