// SPDX-License-Identifier: Apache-2.0
#include "apps/program/program_log.hpp"

#include "apps/common/option_values.hpp"
#include "apps/common/standard_error.hpp"
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>

namespace apps {
namespace {

std::string_view environment(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : std::string_view{};
}

// systemd says which stream it reads as JOURNAL_STREAM; it may have been led elsewhere since.
bool is_journal(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) == 0 &&
           environment("JOURNAL_STREAM") == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

BackgroundLog::Style style_of(int descriptor) {
    if (is_journal(descriptor)) return BackgroundLog::Style::journal;
    // https://no-color.org: whatever its value, unless it is empty.
    const bool plain = !environment("NO_COLOR").empty() || ::isatty(descriptor) != 1 ||
                       environment("TERM") == "dumb";
    return plain ? BackgroundLog::Style::plain : BackgroundLog::Style::coloured;
}

int opened(const std::string& file) {
    if (file.empty()) return STDERR_FILENO;
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
        throw std::system_error{errno, std::generic_category(), "cannot write the log " + file};
    return descriptor;
}

// Waits for SIGHUP in a thread of its own: whoever rotates logs renames the file and sends the
// signal, and later lines go to a new file of the old name. No other thread receives the signal.
void reopen_at_hang_up(const std::string& file, const std::shared_ptr<BackgroundLog>& log) {
    sigset_t hang_up;
    ::sigemptyset(&hang_up);
    ::sigaddset(&hang_up, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &hang_up, nullptr);
    // The thread takes no other signal: one that ends the program is for the loop that waits for
    // it.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    std::thread{[hang_up, file, log] {
        for (int number = 0; ::sigwait(&hang_up, &number) == 0;) {
            try {
                log->go_on_in(opened(file));
                spdlog::info("the log {} is opened again (SIGHUP)", file);
            } catch (const std::system_error& error) {
                spdlog::error("{}; the log goes on in the file that was open (SIGHUP)",
                              error.what());
            }
        }
    }}.detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Elsewhere than in the log, which cannot be written; once.
BackgroundLog::OnBroken teller_of(const std::string& file) {
    if (file.empty()) return {};
    return [file](int error) {
        tell_standard_error(fmt::format(
            "netio: the log {} cannot be written: {}; its lines are left out and counted\n", file,
            std::generic_category().message(error)));
    };
}

} // namespace

void add_log(CLI::App& command, LogArguments& arguments) {
    command.add_option("--log-level", arguments.level, "debug, info, warning or error")
        ->capture_default_str()
        ->check(one_of({"debug", "info", "warning", "error"}));
    command.add_option("--log-file", arguments.file,
                       "Append the log to this file instead of standard error; SIGHUP opens it "
                       "again, for logrotate");
}

ProgramLog::ProgramLog(const LogArguments& arguments) : file_{arguments.file} {
    const int descriptor = opened(arguments.file);
    const BackgroundLog::Style style = style_of(descriptor);
    log_ = std::make_shared<BackgroundLog>(descriptor, style, BackgroundLog::waiting_limit,
                                           teller_of(file_));
    auto logger = std::make_shared<spdlog::logger>("netio", log_);
    logger->set_level(spdlog::level::from_str(arguments.level));
    // The journal has the time itself.
    logger->set_pattern(
        style == BackgroundLog::Style::journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e%z %^%l%$ %v");
    spdlog::set_default_logger(std::move(logger));
    if (!file_.empty()) reopen_at_hang_up(file_, log_);
}

ProgramLog::~ProgramLog() {
    log_->finish(BackgroundLog::flush_limit);
    if (const auto count = log_->left_out(); count > 0 && !file_.empty())
        tell_standard_error(
            fmt::format("netio: {} lines are left out of the log {}\n", count, file_));
}

} // namespace apps
