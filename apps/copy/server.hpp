// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/logging.hpp"
#include "apps/copy/channel.hpp"
#include "apps/copy/disk_thread.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/target_file.hpp"
#include "netio/access/peer_limiter.hpp"
#include "netio/access/rights.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace apps::copy {

// One sender at a copy server: takes its files one after another. Chunks arrive in several buffers,
// by remote writes where the fabric has them, while a thread of its own checks and writes the ones
// before. What goes wrong with a file is told to the sender and ends the connection; what goes
// wrong before its first byte (a name, a file that exists) is an answer, and the next file may
// follow. Owned by the Server; belongs to the loop's thread.

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

// Receives files from several senders at once into one folder (apps/copy/server.hpp). Belongs
// to the loop's thread.

class Server final : private netio::stream::StreamListener::Handler, private Session::Handler {
  public:
    struct Options {
        std::string folder;
        std::vector<netio::Address> addresses;
        bool open = false;                                 // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: everybody is served
        std::size_t sender_limit_count = 16;               // at once; others are rejected
        std::size_t host_limit_count = 0;                  // of them from one host; 0: half
        Session::Options session;
    };
    struct Counters {
        std::uint64_t files = 0; // that are on the disk under their names
        std::uint64_t bytes = 0; // that have moved, of those and of unfinished ones
        std::uint64_t failures = 0;
    };

    // Throws std::system_error (the folder) and netio::FabricError (the addresses).
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    Counters counters() const;
    std::size_t sender_count() const noexcept { return sessions_.size(); }
    // Sends all senders away; then, when what each has begun is counted and lies on the disk, calls
    // `then`, within a handler or at once. Nobody else is let in.
    void end(std::function<void()> then);

  private:
    void on_incoming(netio::stream::IncomingStream& incoming) override;
    void on_file_kept(std::uint64_t moved_bytes) override;
    void on_file_failed(std::uint64_t moved_bytes) override;
    void on_session_ended(Session& session) override;
    PeerLog& log() override { return log_; }

    PeerLog log_;
    netio::EventLoop& loop_;
    Options options_;
    netio::access::PeerLimiter places_;
    ServedFolder folder_;
    Counters counters_;
    std::vector<std::unique_ptr<Session>> sessions_;
    std::function<void()> when_ended_; // empty: serves
    netio::stream::StreamListener listener_;
};

} // namespace apps::copy
