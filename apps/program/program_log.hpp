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

// Writes the lines of a log in a thread of its own, so that a slow reader, a stopped terminal or a
// full disk never blocks the program. At most `waiting_limit` lines are queued; beyond, the oldest
// lines are lost, and a line with their number takes their place. Lines that cannot be written
// count as lost, too.

class BackgroundLog final : public spdlog::sinks::base_sink<std::mutex> {
  public:
    static constexpr std::size_t waiting_limit = 8192;    // lines
    static constexpr std::chrono::seconds flush_limit{1}; // a flush waits no longer than this
    static constexpr std::size_t line_limit_bytes = 8192; // a longer line is cut

    enum class Style : std::uint8_t {
        plain,
        coloured,
        journal, // a priority before each line, as systemd reads it (sd-daemon(3))
    };
    // Called with the errno in the log's own thread for the first line that cannot be written.
    using OnBroken = std::function<void(int error)>;

    // The descriptor must stay open until everything is written.
    BackgroundLog(int descriptor, Style style, std::size_t limit = waiting_limit,
                  OnBroken on_broken = {});
    ~BackgroundLog() override;
    BackgroundLog(const BackgroundLog&) = delete;
    BackgroundLog& operator=(const BackgroundLog&) = delete;

    // Writes later lines to this descriptor, and closes the previous one.
    void go_on_in(int descriptor);
    // Waits until everything is written, at most for `patience`. Returns whether it is.
    bool finish(std::chrono::milliseconds patience);
    std::uint64_t left_out() const;

  protected:
    // Escapes the text (apps/common/terminal.hpp).
    void sink_it_(const spdlog::details::log_msg& original) override;
    // Waits as finish(), so that the program's next output comes after its log.
    void flush_() override { finish(flush_limit); }

  private:
    struct Queue; // shared with the thread, which may outlive this
    Style style_;
    std::shared_ptr<Queue> queue_;
};

// Where the program's log goes: standard error, the systemd journal, or a file.

struct LogArguments {
    std::string level = "info";
    std::string file; // empty: standard error
};
// --log-level and --log-file.
void add_log(CLI::App& command, LogArguments& arguments);

class ProgramLog {
  public:
    // Construct before other threads start. With a file, SIGHUP reopens the file and does not end
    // the program: the signal is blocked in this thread, and end_signals() leaves it out. Throws
    // std::system_error if the file cannot be written.
    explicit ProgramLog(const LogArguments& arguments);
    // Waits up to `flush_limit` for a slow reader. Reports on standard error how many lines the
    // file lacks.
    ~ProgramLog();
    ProgramLog(const ProgramLog&) = delete;
    ProgramLog& operator=(const ProgramLog&) = delete;

  private:
    std::string file_;
    std::shared_ptr<BackgroundLog> log_;
};

} // namespace apps
