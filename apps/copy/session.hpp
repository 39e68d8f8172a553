// SPDX-License-Identifier: Apache-2.0
#pragma once

// One sender at a copy server: takes its files one after another. Chunks arrive in several buffers,
// by remote writes where the fabric has them, while a thread of its own checks and writes the ones
// before. What goes wrong with a file is told to the sender and ends the connection; what goes
// wrong before its first byte (a name, a file that exists) is an answer, and the next file may
// follow. Owned by the Server; belongs to the loop's thread.

#include "apps/common/peer_log.hpp"
#include "apps/copy/channel.hpp"
#include "apps/copy/disk_thread.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/target_file.hpp"
#include "netio/access/rights.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace apps::copy {

class Session final : private Channel::Handler {
  public:
    class Handler {
      public:
        // A file is on the disk under its name; so many bytes of it have moved.
        virtual void on_file_kept(std::uint64_t moved_bytes) = 0;
        virtual void on_file_failed(std::uint64_t moved_bytes) = 0;
        // The last word; may destroy the session.
        virtual void on_session_ended(Session& session) = 0;
        // For what senders can bring about as often as they like.
        virtual PeerLog& log() = 0;

      protected:
        ~Handler() = default;
    };

    struct Options {
        std::size_t buffer_count = 8; // of a chunk each
        // A sender whose turn it is, and of whom in this time not a byte has come, or fewer than
        // the rate below asks for, is sent away. What it says to have compared of a file that is
        // there already counts as having come.
        std::chrono::milliseconds idle_limit{60'000};
        std::uint64_t least_bytes_per_s = 0;
        TargetFile::Access access = TargetFile::Access::full;
        std::optional<netio::access::Rights> rights; // of the sender's key; nothing: all
        netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
        MakeDisk disk = DiskThread::make; // what writes them
    };

    // The folder outlives it. Throws as IncomingStream::accept. Buffers and a thread come with the
    // connection: who does not finish the handshake costs none.
    Session(netio::EventLoop& loop, const ServedFolder& folder, const Options& options,
            netio::stream::IncomingStream& incoming, Handler& handler);

    const std::string& peer_address() const noexcept { return peer_; }
    // Sends the sender away; the end of the session follows.
    void abort() {
        if (state_ != State::closed) channel_.abort();
    }

    // Bytes of the file that is being received, now.
    std::uint64_t moved_bytes() const noexcept { return moved_bytes_; }

  private:
    enum class State : std::uint8_t {
        idle,      // an open is expected
        examining, // on the disk, or the answer is under way
        accepted,  // a start is expected
        receiving, // chunks, then an end
        finishing, // on the disk, or the verdict is under way
        repairing, // the attributes of a file that is present, on the disk
        failing,   // the sender has been told, and is to leave
        closed,
    };

    void on_open() override;
    void on_no_memory(const std::string& why) override;
    void on_message() override;
    void on_chunk(Channel::Buffer buffer, std::uint64_t bytes) override;
    void on_flaw(std::string_view what) override;
    void on_end() override;
    void on_closed(const netio::Closed& closed) override;

    // What the sender has done so far.
    struct Progress {
        std::uint64_t seen_bytes = 0;     // when the patience began
        std::uint64_t compared_bytes = 0; // of what is there already
    };

    // It is the sender's turn.
    void wait_for_peer();
    std::uint64_t done_bytes() const { return channel_.arrived_bytes() + progress_.compared_bytes; }
    void look_for_progress();
    bool may_compare() const noexcept;
    void take_comparing();
    void take_open();
    void examine();
    void answer(const Answer& answer);
    void say(const Message& message);
    void take_start();
    void take_sparse_start();
    void take_extents();
    void take_attributes();
    void begin(std::uint64_t offset, std::optional<std::uint64_t> data_bytes);
    void repair(const Attributes& attributes);
    void take_end();
    bool may_take_attributes() const noexcept;
    void receive_more();
    void post_receives();
    // Runs on the disk's thread; a problem fails the file, else `then` follows on this one.
    void on_disk(Disk::Task task, std::function<void()> then);
    void fail(const std::string& why);
    void refuse_peer(std::string_view what);
    bool is_in_a_file() const noexcept;
    std::string file() const;

    const ServedFolder& folder_;
    Handler& handler_;
    std::string peer_;
    const Options options_;
    State state_ = State::idle;
    Open open_;
    std::unique_ptr<TargetFile> target_; // the disk's thread's
    std::optional<Answer> answer_;       // the disk's thread's until it is sent
    End end_;
    // What follows on the stream: the chunks of these extents, then a message.
    struct Arrivals {
        std::deque<Extent> announced;  // no receives are posted for them yet
        std::deque<Extent> chunks;     // receives are posted for them
        bool message_expected = false; // or posted
        bool sparse = false;
        std::uint64_t announced_position = 0; // up to here the sender has said what there is
        std::uint64_t position = 0;           // up to here chunks have arrived
    } arrivals_;
    std::uint64_t moved_bytes_ = 0;
    Channel channel_;
    Progress progress_;
    netio::Timer patience_;
    std::unique_ptr<Disk> disk_; // the last: it is gone before what it uses
};

} // namespace apps::copy
