// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace apps::respond {

struct CommandLimits {
    std::chrono::milliseconds time{60000};
    std::size_t output_bytes = std::size_t{16} << 20;
};

// One run of a command, without a shell, in a process group of its own: it gets `input` as its
// standard input, and its standard output is collected. Its standard error is that of this process.
// It has ended when its process has, and its standard output is closed. The destructor kills the
// process group. Belongs to the loop's thread.
class CommandRun {
  public:
    // `on_end` is called once, from the loop; it may destroy this object. Throws std::system_error
    // if the command cannot be started.
    CommandRun(netio::EventLoop& loop, const std::vector<std::string>& command,
               std::span<const std::byte> input, const CommandLimits& limits,
               std::function<void()> on_end);
    ~CommandRun();
    CommandRun(const CommandRun&) = delete;
    CommandRun& operator=(const CommandRun&) = delete;

    std::span<const std::byte> output() const noexcept { return output_; }
    // Why there is no output; empty if the command has succeeded.
    const std::string& failure() const noexcept { return failure_; }

  private:
    void write_input();
    void read_output();
    void reap();
    void fail(std::string why);
    void kill_group() noexcept;
    void end_if_done();
    void end();

    const std::string name_;
    const CommandLimits limits_;
    std::function<void()> on_end_;
    std::vector<std::byte> input_;
    std::size_t written_ = 0;
    std::vector<std::byte> output_;
    std::string failure_;
    pid_t pid_ = -1;
    bool has_exited_ = false;
    Descriptor in_;
    Descriptor out_;
    Descriptor process_;
    std::optional<netio::DescriptorWatch> in_watch_;
    std::optional<netio::DescriptorWatch> out_watch_;
    std::optional<netio::DescriptorWatch> process_watch_;
    netio::Timer time_is_up_;
    netio::Timer end_timer_;
};

} // namespace apps::respond
