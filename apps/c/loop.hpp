// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event loop of level 2 of the C interface, and what its objects have in common.

#include "apps/c/call.hpp"
#include "netio/base/observer.hpp"
#include "netio/context.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/messages/send_socket.hpp"
#include "netio/session/server_keys.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>

struct netiodaq_loop {
    explicit netiodaq_loop(netio::Context::Options options);

    // Throws Failure if another thread runs the loop now.
    void check_thread() const {
        const std::thread::id id = runner.load(std::memory_order_relaxed);
        if (id != std::thread::id{} && id != std::this_thread::get_id()) throw_wrong_thread();
    }
    [[noreturn]] static void throw_wrong_thread();

    std::shared_ptr<netio::Observer> log; // outlives the loop's objects
    netio::EventLoop loop;
    std::unique_ptr<netio::Transport> transport;
    std::atomic<std::thread::id> runner{}; // none: no thread runs it now
};

struct netiodaq_buffer {
    netiodaq_loop& loop;
    netio::RegisteredBuffer buffer;
};

namespace netiodaq {

// An object of a loop: not NULL, and called from the right thread.
template <typename Type>
Type& on_loop(Type* object, const char* name) {
    Type& found = required(object, name);
    found.loop.check_thread();
    return found;
}
inline netiodaq_loop& on_loop(netiodaq_loop* loop) {
    netiodaq_loop& found = required(loop, "loop");
    found.check_thread();
    return found;
}

// Calls a callback, if there is one. The object may be gone afterwards.
template <typename... Parameters, typename... Arguments>
void call(void (*callback)(Parameters...), Arguments... arguments) {
    if (callback != nullptr) callback(arguments...);
}

inline std::int32_t number_of(netio::CloseReason reason) noexcept {
    return static_cast<std::int32_t>(reason); // the same numbers: netiodaq_close_reason_text()
}

// Slices of one message, checked.
class Slices {
  public:
    // Throws Failure for a slice that is not within its buffer, and for a buffer of another loop.
    Slices(const netiodaq_loop& loop, const netiodaq_slice* slices, std::uint64_t count);
    // Whether there are more slices than any socket sends as one message.
    bool are_too_many() const noexcept { return count_ > slices_.size(); }
    std::span<const netio::Slice> all() const noexcept { return {slices_.data(), count_}; }

  private:
    std::array<netio::Slice, netio::SendSocket::slice_limit> slices_;
    std::size_t count_;
};

// The keys of a socket; null: none. Throws as ServerKeys does.
std::shared_ptr<netio::ServerKeys>
keys_of(netiodaq_loop& loop, const std::optional<netio::ServerKeys::Options>& options);

// The first of the addresses where a socket listens.
template <typename Socket>
std::string first_address(const Socket& socket) {
    const auto endpoints = socket.endpoints();
    return endpoints.empty() ? std::string{} : netio::to_string(endpoints.front().address);
}

// The message whose on_message is running. The callback may free the object that has this member.
class Delivery {
  public:
    Delivery() = default;
    ~Delivery() {
        if (freed_ != nullptr) *freed_ = true;
    }
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

    // Runs the callback.
    template <typename Callback>
    void run(const netio::Message& message, Callback callback) {
        bool freed = false;
        message_ = &message;
        freed_ = &freed;
        callback();
        if (freed) return;
        message_ = nullptr;
        freed_ = nullptr;
    }
    // Keeps bytes of the message, which the socket has delivered. Throws Failure.
    template <typename Socket>
    netiodaq_message* keep(Socket& socket, std::span<const std::byte> bytes) const {
        if (message_ == nullptr) {
            throw Failure{NETIODAQ_INVALID_ARGUMENT,
                          "a message can be kept within its on_message only"};
        }
        const std::less_equal<> before;
        const auto whole = message_->bytes();
        const std::byte* const end = whole.data() + whole.size();
        if (!before(whole.data(), bytes.data()) || !before(bytes.data(), end) ||
            bytes.size() > static_cast<std::size_t>(end - bytes.data())) {
            throw Failure{NETIODAQ_INVALID_ARGUMENT, "these bytes are not within the message"};
        }
        auto message = std::make_unique<netiodaq_message>();
        message->message = {netio::Message{message_->fid(), bytes, message_->status(), 0},
                            socket.keep(bytes)};
        return message.release();
    }

  private:
    const netio::Message* message_ = nullptr;
    bool* freed_ = nullptr; // both null: no callback is running
};

} // namespace netiodaq
