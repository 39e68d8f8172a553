// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sends files to a copy server, one after another over one connection. Chunks are read into several
// buffers by a thread of its own while those before are on their way. A file that fails by itself
// (it cannot be read, the server refuses it or cannot write it) does not keep the others from being
// sent; the loss of the connection does. Belongs to the loop's thread.

#include "apps/copy/channel.hpp"
#include "apps/copy/disk_thread.hpp"
#include "apps/copy/source_file.hpp"
#include "netio/base/back_off.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace apps::copy {

// What became of a file.
struct CopiedFile {
    enum class Outcome : std::uint8_t {
        copied,
        present, // the same was there already
        failed,
    };
    std::string path;
    Outcome outcome = Outcome::failed;
    std::uint64_t size_bytes = 0;
    std::uint64_t resumed_bytes = 0; // that were there from an earlier attempt
    std::uint64_t moved_bytes = 0;   // less than the rest of it: holes do not move
    std::string checksum;            // of the whole, in hex
    std::string detail;              // failed: why; else what of its attributes is not there
};

class Sender final : private Channel::Handler {
  public:
    struct File {
        std::string path; // here
        std::string name; // there
        std::string flaw; // not empty: why it cannot have that name
    };
    struct Options {
        netio::Address server;
        std::string local_host; // to connect from; empty: any
        std::shared_ptr<const netio::ClientKey> key = nullptr;
        std::vector<File> files;
        ChecksumKind checksum = ChecksumKind::xxh3_128;
        bool overwrite = false;
        std::size_t buffer_count = 8; // of a chunk each
        // A server that is full, or short of memory or descriptors, is asked again for so long.
        std::chrono::milliseconds full_timeout{60'000};
        std::uint64_t pause_seed = 1; // of the pauses between; another one for each sender
        netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
        MakeDisk disk = DiskThread::make; // what reads the files
    };
    struct Progress {
        std::string path; // of the file that is being sent; empty: none
        std::uint64_t size_bytes = 0;
        std::uint64_t done_bytes = 0;  // of it, what was there before included
        std::uint64_t moved_bytes = 0; // of all files
    };

    // Between two words to the server while what it has is compared: short enough that a slow disk
    // is no silence.
    static constexpr std::uint64_t compare_step_bytes = std::uint64_t{16} << 20;

    class Handler {
      public:
        virtual void on_file(const CopiedFile& file) = 0;
        // The server is full; it is asked again. Once for each time that it is.
        virtual void on_waiting(const std::string& /*why*/) {}
        // All files were looked after, or the connection ended, or stop() was called; the problem
        // is then not empty. The last word.
        virtual void on_finished(const std::string& problem) = 0;

      protected:
        ~Handler() = default;
    };

    Sender(netio::EventLoop& loop, netio::Transport& transport, Options options, Handler& handler);

    // Throws netio::FabricError: no thread is left for the disk.
    void start();
    // What the server has of the current file stays there for the next attempt.
    void stop();

    Progress progress() const;
    const std::string& provider() const noexcept { return provider_; } // empty: not connected yet
    // Of the files, those that on_file has not told: their turn has not come.
    std::span<const File> left() const;

  private:
    enum class State : std::uint8_t {
        connecting,
        opening,   // the file, on the disk
        asking,    // an answer is expected
        comparing, // what the server has, on the disk
        repairing, // the server has the file and gives it the attributes; a verdict is expected
        sending,   // chunks; then the end, and a verdict is expected
        leaving,   // the connection is being closed, for good or before the next file
        finished,
    };

    // The file that is being sent.
    struct Current {
        CopiedFile file;
        Offer offer;                    // of the server
        std::deque<Extent> extents;     // announced to the server, and not read yet
        std::uint64_t announced = 0;    // up to here the server knows what there is
        bool looks_for_extents = false; // on the disk
        std::uint64_t done_bytes = 0;
        bool end_sent = false;
    };
    // What the disk's thread works on.
    struct OnDisk {
        std::unique_ptr<SourceFile> source;
        Open open;       // until it is sent
        Digest digest{}; // the same
        Attributes attributes;
        std::vector<Extent> extents;
    };

    void on_open() override;
    void on_no_memory(const std::string& why) override;
    void on_message() override;
    void on_sent(Channel::Buffer buffer) override;
    void on_message_sent() override;
    void on_flaw(std::string_view what) override;
    void on_end() override;
    void on_closed(const netio::Closed& closed) override;

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
    // Runs on the disk's thread; a problem fails the file, else `then` follows on this one, unless
    // the file was given up.
    void run_on_disk(Disk::Task task, std::function<void()> then);
    void settle(CopiedFile::Outcome outcome, const std::string& detail = {});
    // The current file has failed in a way that the connection does not survive.
    void give_up_file(const std::string& why);
    void end(const std::string& problem);
    bool wait_for_place(const netio::Closed& closed);
    void try_again();
    void finish();
    const File& file() const { return options_.files[position_]; }

    Options options_;
    netio::Transport& transport_;
    Handler& handler_;
    State state_ = State::connecting;
    std::string provider_;
    std::string problem_;
    std::size_t position_ = 0;  // of the current file
    std::uint64_t attempt_ = 0; // tells what belongs to the current file from what came before
    Current current_;
    std::uint64_t moved_bytes_ = 0;
    OnDisk on_disk_;
    netio::EventLoop& loop_;
    netio::Timer again_;                         // to connect, or to finish
    netio::BackOff pause_;                       // before it
    std::optional<netio::TimePoint> full_until_; // the server is full; then that is a problem
    Channel channel_;
    std::unique_ptr<Disk> disk_; // the last: it is gone before what it uses
};

} // namespace apps::copy
