// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file to be copied, read from beginning to end while its checksum is calculated. All functions
// block; every failure throws std::system_error or std::runtime_error that names the file.

#include "apps/common/io.hpp"
#include "apps/copy/channel.hpp"
#include "apps/copy/checksum.hpp"
#include "apps/copy/disk.hpp"
#include "apps/copy/protocol.hpp"
#include "netio/base/back_off.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace apps::copy {

class SourceFile {
  public:
    // Opens it. Only a regular file can be copied.
    SourceFile(std::string path, ChecksumKind kind);

    std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    // Returns true if the file has fewer blocks on the disk than its size needs, so it has holes.
    bool is_sparse() const noexcept { return data_bytes_ < size_bytes_; }
    // The approximate number of bytes of data.
    std::uint64_t data_bytes() const noexcept { return data_bytes_; }
    // Returns the current attributes, which may change during the copy. Set-user-id, set-group-id
    // and sticky bits are never copied.
    Attributes attributes() const;

    // Returns the next extents of data from a position on, at most `limit`, with no hole of more
    // than hole_step_bytes between them. An empty extent means that a hole continues up to there.
    // No extents: no data follows.
    std::vector<Extent> extents(std::uint64_t from, std::size_t limit) const;
    // Skips a hole that ends at the position.
    void pass_hole(std::uint64_t position, const std::stop_token& stop);
    // Returns the checksum up to and including the next `bytes` bytes; reading continues after
    // them.
    Digest skip(std::uint64_t bytes, const std::stop_token& stop);
    void rewind();
    // Fills the memory with the next bytes, which must exist.
    void read(std::span<std::byte> memory);
    // Returns the checksum of the whole file. Throws if the file was changed since it was opened,
    // or if its size was not its length. A file that was only renamed, linked or given another
    // owner also looks changed, and is read once more to find out.
    Digest finish(const std::stop_token& stop);

  private:
    struct Time {
        std::int64_t seconds = 0;
        std::int64_t nanoseconds = 0;

        friend bool operator==(const Time&, const Time&) = default;
    };
    struct Times {
        Time modified;
        Time changed; // unlike the modification time, it cannot be set back

        friend bool operator==(const Times&, const Times&) = default;
    };

    static Time time_of(const timespec& time) noexcept;
    // Throws if the size or the date differs from that at the time of opening.
    Times times_now() const;

    std::string path_;
    Descriptor file_;
    std::uint64_t size_bytes_ = 0;
    Times times_; // when it was opened
    std::uint64_t data_bytes_ = 0;
    std::uint64_t position_ = 0;
    Checksum checksum_;
};

// Sends files to a copy server, one after another over one connection. A separate thread reads
// chunks into several buffers while earlier ones are in flight. A file that fails alone (it cannot
// be read, the server refuses it or cannot write it) does not prevent the others; the loss of the
// connection does. Belongs to the loop's thread.

// The result for one file.
struct CopiedFile {
    enum class Outcome : std::uint8_t {
        copied,
        present, // the same file already exists at the server
        failed,
    };
    std::string path;
    Outcome outcome = Outcome::failed;
    std::uint64_t size_bytes = 0;
    std::uint64_t resumed_bytes = 0; // already there from an earlier attempt
    std::uint64_t moved_bytes = 0;   // without the holes
    std::string checksum;            // of the whole file, in hex
    std::string detail; // failed: the reason; otherwise attributes that could not be set
};

class Sender final : private Channel::Handler {
  public:
    struct File {
        std::string path; // here
        std::string name; // there
        std::string flaw; // not empty: why it cannot be copied
    };
    struct Options {
        netio::Address server;
        std::string local_host; // local host to connect from; empty: any
        std::shared_ptr<const netio::ClientKey> key = nullptr;
        std::vector<File> files;
        ChecksumKind checksum = ChecksumKind::xxh3_128;
        bool overwrite = false;
        std::size_t buffer_count = 8; // of one chunk each
        // Time for retries while the server is full or lacks memory or descriptors.
        std::chrono::milliseconds full_timeout{60'000};
        std::uint64_t pause_seed = 1; // for the pauses in between; different for each sender
        netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
        MakeDisk disk = DiskThread::make; // reads the files
    };
    struct Progress {
        std::string path; // of the current file; empty: none
        std::uint64_t size_bytes = 0;
        std::uint64_t done_bytes = 0;  // of it, including bytes already at the server
        std::uint64_t moved_bytes = 0; // of all files
    };

    // Bytes compared between two progress messages to the server: so few that a slow disk does not
    // count as a silent sender.
    static constexpr std::uint64_t compare_step_bytes = std::uint64_t{16} << 20;

    class Handler {
      public:
        virtual void on_file(const CopiedFile& file) = 0;
        // The server is full and will be retried. Called once each time that this happens.
        virtual void on_waiting(const std::string& /*why*/) {}
        // Final callback: all files were processed, or the connection ended, or stop() was called;
        // in the last two cases the problem is not empty.
        virtual void on_finished(const std::string& problem) = 0;

      protected:
        ~Handler() = default;
    };

    Sender(netio::EventLoop& loop, netio::Transport& transport, Options options, Handler& handler);

    // Throws netio::FabricError if no thread is available for the disk.
    void start();
    // Ends the copy. The server keeps its part of the current file for the next attempt.
    void stop();

    Progress progress() const;
    const std::string& provider() const noexcept { return provider_; } // empty: not connected yet
    // The files that on_file has not reported, because their turn has not come.
    std::span<const File> left() const;

  private:
    enum class State : std::uint8_t {
        looking, // for the files on the disk, before the connection
        connecting,
        opening,   // opening the file on the disk
        asking,    // an answer is expected
        comparing, // comparing the server's bytes on the disk
        repairing, // the server has the file and sets its attributes; a verdict is expected
        sending,   // chunks; then the end, and a verdict is expected
        leaving,   // closing the connection, finally or before the next file
        finished,
    };

    // The current file.
    struct Current {
        CopiedFile file;
        Offer offer;                    // of the server
        std::deque<Extent> extents;     // announced to the server, not read yet
        std::uint64_t announced = 0;    // position up to which extents are announced
        bool looks_for_extents = false; // a search on the disk is running
        std::uint64_t done_bytes = 0;
        bool end_sent = false;
    };
    // State that the disk's thread uses.
    struct OnDisk {
        std::unique_ptr<SourceFile> source;
        Open open;       // until the open message is sent
        Digest digest{}; // until the open message is sent
        Attributes attributes;
        std::vector<Extent> extents;
        std::vector<std::string> flaws; // of the files; empty: they can be read
    };

    void on_open() override;
    void on_no_memory(const std::string& why) override;
    void on_message() override;
    void on_sent(Channel::Buffer buffer) override;
    void on_message_sent() override;
    void on_flaw(std::string_view what) override;
    void on_end() override;
    void on_closed(const netio::Closed& closed) override;

    void look_for_files();
    void connect();
    void pass_flawed_files();
    void next_file();
    void take_answer();
    void compare(const Answer& answer, std::uint64_t position);
    void take_comparison(const Answer& answer);
    void repair();
    void begin(std::uint64_t offset);
    void go_on();
    void read_chunks();
    void look_for_extents();
    void announce(std::vector<Extent> extents);
    void send_chunk(Channel::Buffer buffer, const Extent& chunk);
    void send_end();
    void take_verdict();
    void send(const Message& message);
    // Runs a task on the disk's thread. A problem fails the file; otherwise `then` runs on the
    // loop's thread, unless the file was cancelled.
    void run_on_disk(Disk::Task task, std::function<void()> then);
    void settle(CopiedFile::Outcome outcome, const std::string& detail = {});
    // The current file has failed, and the connection has to end.
    void give_up_file(const std::string& why);
    void end(const std::string& problem);
    bool wait_for_place(const netio::Closed& closed);
    void try_again();
    void finish();
    const File& file() const { return options_.files[position_]; }

    Options options_;
    netio::Transport& transport_;
    Handler& handler_;
    State state_ = State::looking;
    std::string provider_;
    std::string problem_;
    std::size_t position_ = 0;  // of the current file
    std::uint64_t attempt_ = 0; // distinguishes the current file from earlier ones
    Current current_;
    std::uint64_t moved_bytes_ = 0;
    OnDisk on_disk_;
    netio::EventLoop& loop_;
    netio::Timer again_;                         // timer to reconnect, or to finish
    netio::BackOff pause_;                       // pause before reconnecting
    std::optional<netio::TimePoint> full_until_; // deadline for retries while the server is full
    Channel channel_;
    std::unique_ptr<Disk> disk_; // last: destroyed before the members that it uses
};

} // namespace apps::copy
