// SPDX-License-Identifier: Apache-2.0
#pragma once

// One sender at a copy server: takes its files one after another. Chunks arrive in several buffers,
// by remote writes where the fabric has them, while a thread of its own checks and writes the ones
// before. What goes wrong with a file is told to the sender and ends the connection; what goes
// wrong before its first byte (a name, a file that exists) is an answer, and the next file may
// follow. Owned by the CopyServer; belongs to the loop's thread.

#include "apps/copy/copy_channel.hpp"
#include "apps/copy/disk_thread.hpp"
#include "apps/copy/served_folder.hpp"
#include "apps/copy/target_file.hpp"
#include "stream/socket/stream_listener.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace apps {

class CopySession final : private netio::stream::StreamSocket::Handler {
  public:
    class Handler {
      public:
        // A file is on the disk under its name; so many bytes of it have moved.
        virtual void on_file_kept(std::uint64_t moved_bytes) = 0;
        virtual void on_file_failed(std::uint64_t moved_bytes) = 0;
        // The last word; may destroy the session.
        virtual void on_session_ended(CopySession& session) = 0;

      protected:
        ~Handler() = default;
    };

    // The folder outlives it. Throws as IncomingStream::accept, and FabricError if there is no
    // memory for its buffers or no thread left.
    // A sender that is to say something and does not for `idle_limit` is sent away.
    CopySession(netio::EventLoop& loop, const ServedFolder& folder, std::size_t buffer_count,
                std::chrono::milliseconds idle_limit, netio::stream::IncomingStream& incoming,
                Handler& handler);

    const std::string& peer_address() const noexcept { return peer_; }

    // Bytes of the file that is being received, now.
    std::uint64_t moved_bytes() const noexcept { return moved_bytes_; }

  private:
    enum class State : std::uint8_t {
        idle,      // an open is expected
        examining, // on the disk, or the answer is under way
        accepted,  // a start is expected
        receiving, // chunks, then an end
        finishing, // on the disk, or the verdict is under way
        failing,   // the sender has been told, and is to leave
        closed,
    };

    void on_connected(netio::stream::StreamSocket& socket) override;
    void on_send_completed(netio::stream::StreamSocket& socket, netio::Cookie key,
                           netio::Completion::Outcome outcome) override;
    void on_received(netio::stream::StreamSocket& socket,
                     const netio::stream::Received& received) override;
    void on_end_of_stream(netio::stream::StreamSocket& socket) override;
    void on_closed(netio::stream::StreamSocket& socket, const netio::Closed& closed) override;

    void wait_for_peer();
    void lose_patience();
    void take_message();
    void take_open();
    void answer(const CopyAnswer& answer);
    void say(const CopyMessage& message);
    void take_start();
    void take_end();
    void post_receives();
    void take_chunk(CopyChannel::Buffer buffer, std::uint64_t bytes);
    // Runs on the disk's thread; a problem fails the file, else `then` follows on this one.
    void on_disk(DiskThread::Task task, std::function<void()> then);
    void fail(const std::string& why);
    void refuse_peer(std::string_view what);
    bool is_in_a_file() const noexcept;
    std::string file() const;

    const ServedFolder& folder_;
    Handler& handler_;
    std::string peer_;
    std::chrono::milliseconds idle_limit_;
    State state_ = State::idle;
    CopyOpen open_;
    std::unique_ptr<TargetFile> target_; // the disk's thread's
    CopyAnswer answer_;                  // the disk's thread's until it is sent
    CopyEnd end_;
    std::uint64_t asked_position_ = 0;   // behind the chunks that receives are posted for
    std::uint64_t arrived_position_ = 0; // behind those that have arrived
    std::uint64_t moved_bytes_ = 0;
    CopyChannel channel_;
    std::unique_ptr<netio::stream::StreamSocket> socket_;
    netio::Timer patience_;
    DiskThread disk_; // the last: it is gone before what it uses
};

} // namespace apps
