// SPDX-License-Identifier: Apache-2.0
#pragma once

// A registry in a directory: each text is a file NAME.netio, which is replaced as a whole. Inotify
// reports changes by this machine. Changes by other machines on a shared file system are found when
// the whole directory is read, once per `poll`.

#include "pubsub/discovery/registry.hpp"
#include "pubsub/discovery/registry_thread.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace netio::pubsub::inline v0_3 {

class DirectoryRegistry final : public Registry {
  public:
    // A file that was not written for this time, by the clock of the file server, was left by a
    // crash.
    static constexpr std::chrono::hours leftover_age{1};
    static constexpr std::size_t file_limit = 65536; // further files are ignored

    enum class Notice : std::uint8_t { inotify, none };
    DirectoryRegistry(std::string path, std::chrono::milliseconds poll,
                      Notice notice = Notice::inotify);
    ~DirectoryRegistry() override;

    void put(const std::string& name, const std::string& text) override;
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string& name) override;
    void remove(const std::string& name) override;
    void look(Visitor& visitor) override;
    void wait(TimePoint until) override;
    void interrupt() noexcept override { wake_up_.call(); }

  private:
    // Equal stamps mean that a file has not changed.
    struct Stamp {
        std::uint64_t inode = 0;
        std::int64_t bytes = 0;
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;

        friend bool operator==(const Stamp&, const Stamp&) = default;
    };

    int open_directory() const;
    void write_whole(int directory, const std::string& file, const std::string& text) const;
    void sweep(int directory, const std::string& own_file) const;
    void look_at_all(int directory, Visitor& visitor);
    void look_at(int directory, const std::string& name, Visitor& visitor);
    void watch_directory();
    void take_inotify_events();

    std::string path_;
    std::chrono::milliseconds poll_;
    Notice notice_;
    std::string temporary_tag_; // of this object, unique on all machines
    bool swept_ = false;
    int inotify_ = -1;
    int watch_ = -1;
    std::set<std::string> touched_; // names that inotify reported
    std::map<std::string, Stamp> known_;
    bool all_next_ = true;                        // inotify may have missed changes
    TimePoint next_full_look_ = TimePoint::max(); // look() was not called
    WakeUp wake_up_;
};

} // namespace netio::pubsub::inline v0_3
