// SPDX-License-Identifier: Apache-2.0
#include "apps/common/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace apps {

ChildProcess::ChildProcess(std::string_view name, const std::vector<std::string>& arguments,
                           Listen listen) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error{errno, std::system_category(), "pipe"};
    }
    const int heard = listen == Listen::standard_output ? STDOUT_FILENO : STDERR_FILENO;
    const int other = listen == Listen::standard_output ? STDERR_FILENO : STDOUT_FILENO;
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], heard);
    ::posix_spawn_file_actions_addopen(&actions, other, "/dev/null", O_WRONLY, 0);

    std::string program = name.empty() ? "/proc/self/exe" : std::string{name};
    std::vector<std::string> words = arguments;
    std::vector<char*> argv{program.data()};
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error =
        ::posix_spawnp(&process_, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ends[0];
    if (error == 0) return;
    ::close(output_);
    throw std::system_error{error, std::system_category(), "cannot start " + program};
}

ChildProcess::~ChildProcess() {
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        wait();
    }
    ::close(output_);
}

bool ChildProcess::fill() {
    std::array<char, 4096> piece{};
    while (true) {
        const ssize_t got = ::read(output_, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        buffer_.append(piece.data(), static_cast<std::size_t>(got));
        return true;
    }
}

std::optional<std::string> ChildProcess::read_line() {
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) == std::string::npos) {
        if (!fill()) return std::nullopt;
    }
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return line;
}

std::string ChildProcess::read_all() {
    while (fill()) {
    }
    return std::exchange(buffer_, {});
}

int ChildProcess::wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace apps
