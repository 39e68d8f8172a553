// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/logging.hpp"
#include "apps/copy/channel.hpp"
#include "apps/copy/disk.hpp"
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

// One sender at a copy server: receives its files one after another. Chunks arrive in several
// buffers, by remote writes if the fabric supports them, while a separate thread checks and writes
// the earlier ones. A failure of a file is reported to the sender and ends the connection. A
// failure before its first byte (a name, an existing file) is an answer, and the next file may
// follow. Owned by the Server; belongs to the loop's thread.

class Session final : private Channel::Handler {
  public:
    class Handler {
      public:
        // A file is on the disk under its final name; `moved_bytes` were transferred for it.
        virtual void on_file_kept(std::uint64_t moved_bytes) = 0;
        virtual void on_file_failed(std::uint64_t moved_bytes) = 0;
        // Final callback; may destroy the session.
        virtual void on_session_ended(Session& session) = 0;
        // The log for events that senders can cause at any rate.
        virtual PeerLog& log() = 0;

      protected:
        ~Handler() = default;
    };

    struct Options {
        std::size_t buffer_count = 8; // of one chunk each
        // While the server waits for a sender, it aborts the sender if that has sent nothing in
        // this time, or less than least_bytes_per_s. Progress in comparing an existing file counts
        // as received bytes.
        std::chrono::milliseconds idle_limit{60'000};
        std::uint64_t least_bytes_per_s = 0;
        TargetFile::Access access = TargetFile::Access::full;
        std::optional<netio::access::Rights> rights; // of the sender's key; nullopt: all rights
        netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
        MakeDisk disk = DiskThread::make; // writes the files
    };

    // The folder must outlive it. Throws as IncomingStream::accept. Buffers and a thread are
    // allocated after the handshake, so an unauthenticated peer costs none.
    Session(netio::EventLoop& loop, const ServedFolder& folder, const Options& options,
            netio::stream::IncomingStream& incoming, Handler& handler);

    const std::string& peer_address() const noexcept { return peer_; }
    // Aborts the connection; the end of the session follows.
    void abort() {
        if (state_ != State::closed) channel_.abort();
    }

    // Bytes received so far of the current file.
    std::uint64_t moved_bytes() const noexcept { return moved_bytes_; }

  private:
    enum class State : std::uint8_t {
        idle,      // an open is expected
        examining, // examining on the disk, or sending the answer
        accepted,  // a start is expected
        receiving, // chunks, then an end
        finishing, // finishing on the disk, or sending the verdict
        repairing, // setting the attributes of a present file on the disk
        failing,   // the sender was notified, and has to disconnect
        closed,
    };

    void on_open() override;
    void on_no_memory(const std::string& why) override;
    void on_message() override;
    void on_chunk(Channel::Buffer buffer, std::uint64_t bytes) override;
    void on_flaw(std::string_view what) override;
    void on_end() override;
    void on_closed(const netio::Closed& closed) override;

    // The sender's progress.
    struct Progress {
        std::uint64_t seen_bytes = 0;     // at the start of the timer
        std::uint64_t compared_bytes = 0; // of the existing file
    };

    // Starts the timer for the sender's turn.
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
    // Runs a task on the disk's thread. A problem fails the file; otherwise `then` runs on the
    // loop's thread.
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
    std::unique_ptr<TargetFile> target_; // owned by the disk's thread
    std::optional<Answer> answer_;       // owned by the disk's thread until it is sent
    End end_;
    // The expected data on the stream: the chunks of these extents, then a message.
    struct Arrivals {
        std::deque<Extent> announced;  // no receives are posted for them yet
        std::deque<Extent> chunks;     // receives are posted for them
        bool message_expected = false; // expected or posted
        bool sparse = false;
        std::uint64_t announced_position = 0; // position up to which extents are announced
        std::uint64_t position = 0;           // position up to which chunks have arrived
    } arrivals_;
    std::uint64_t moved_bytes_ = 0;
    Channel channel_;
    Progress progress_;
    netio::Timer idle_timer_;
    std::unique_ptr<Disk> disk_; // last: destroyed before the members that it uses
};

// Receives files from several senders at once into one folder (apps/copy/server.hpp). Belongs
// to the loop's thread.

class Server final : private netio::stream::StreamListener::Handler, private Session::Handler {
  public:
    struct Options {
        std::string folder;
        std::vector<netio::Address> listen;
        bool allow_remote_anonymous = false;               // other machines may reach them
        std::shared_ptr<netio::ServerKeys> keys = nullptr; // null: no authentication
        std::size_t sender_limit_count = 16;               // further senders are rejected
        std::size_t host_limit_count = 0;                  // senders per host; 0: half
        Session::Options session;
    };
    struct Counters {
        std::uint64_t files = 0; // files on the disk under their final names
        std::uint64_t bytes = 0; // transferred, including unfinished files
        std::uint64_t failures = 0;
    };

    // Throws std::system_error (the folder) and netio::FabricError (the addresses).
    Server(netio::EventLoop& loop, netio::Transport& transport, Options options);

    std::vector<netio::Endpoint> endpoints() const { return listener_.endpoints(); }
    Counters counters() const;
    std::size_t sender_count() const noexcept { return sessions_.size(); }
    // Aborts all senders. Calls `then`, possibly within this call or within a handler, after all
    // begun files are counted and on the disk. Further senders are rejected.
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
    std::function<void()> when_ended_; // empty: still serving
    netio::stream::StreamListener listener_;
};

} // namespace apps::copy
