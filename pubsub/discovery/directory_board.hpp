// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board that is a directory: each text a file NAME.netio, replaced as a whole. Inotify tells what
// changes on this machine; what others change on a shared file system is seen when all is looked
// at, once each `poll`.

#include "pubsub/discovery/board.hpp"
#include "pubsub/discovery/wake_up.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace netio::pubsub::inline v0_2 {

class DirectoryBoard final : public Board {
  public:
    // What nobody has written for so long was left by a crash, by the file server's clock alone.
    static constexpr std::chrono::hours leftover_age{1};
    static constexpr std::size_t file_limit = 65536; // of others are passed over

    enum class Notice : std::uint8_t { inotify, none };
    DirectoryBoard(std::string path, std::chrono::milliseconds poll,
                   Notice notice = Notice::inotify);
    ~DirectoryBoard() override;

    void put(const std::string& name, const std::string& text) override;
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string& name) override;
    void remove(const std::string& name) override;
    void look(Visitor& visitor) override;
    void wait(TimePoint until) override;
    void interrupt() noexcept override { wake_up_.call(); }

  private:
    // By which a file is known not to have changed.
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
    std::string temporary_tag_; // of this board, on all machines
    bool swept_ = false;
    int inotify_ = -1;
    int watch_ = -1;
    std::set<std::string> touched_; // names, by inotify
    std::map<std::string, Stamp> known_;
    bool all_next_ = true;                        // inotify has not seen everything
    TimePoint next_full_look_ = TimePoint::max(); // nobody looks
    WakeUp wake_up_;
};

} // namespace netio::pubsub::inline v0_2
