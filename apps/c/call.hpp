// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each function of the C interface does around its work: it turns exceptions into results,
// stores the text of the last error of this thread, and checks its arguments.

#include "apps/c/netio_daq.h"
#include "netio/base/address_list.hpp"
#include "netio/base/status.hpp"
#include "netio/context.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "netio/messages/sender.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/pubsub.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace netiodaq {

inline constexpr netiodaq_result ok = NETIODAQ_OK;

// An error of a call, found before the C++ interface is called.
class Failure : public std::runtime_error {
  public:
    Failure(netiodaq_result code, const std::string& what)
        : std::runtime_error{what}, code_{code} {}
    netiodaq_result code() const noexcept { return code_; }

  private:
    netiodaq_result code_;
};

// The result of the exception that is being handled; stores its text. `call` begins the text of a
// Failure.
netiodaq_result result_of_exception(const char* call) noexcept;
// The same of a status; an error has a constant text.
netiodaq_result result_of(netio::Status status) noexcept;
// An error with a constant text.
netiodaq_result failed(netiodaq_result result) noexcept;

// Runs the work of a function and returns its result; no exception leaves it.
template <typename Work>
netiodaq_result guarded(Work work, const char* call = __builtin_FUNCTION()) noexcept {
    try {
        return work();
    } catch (...) {
        return result_of_exception(call);
    }
}
// Runs work that returns nothing; returns NETIODAQ_OK, or the result of its exception.
template <typename Work>
netiodaq_result done(Work work, const char* call = __builtin_FUNCTION()) noexcept {
    return guarded(
        [&]() -> netiodaq_result {
            work();
            return ok;
        },
        call);
}

template <typename Type>
Type& required(Type* argument, const char* name) {
    if (argument == nullptr)
        throw Failure{NETIODAQ_INVALID_ARGUMENT, std::string{name} + " is NULL"};
    return *argument;
}

inline std::string_view text_of(const char* argument, const char* name) {
    return &required(argument, name);
}

// Sets the result of a function to NULL before its work: a call that fails leaves NULL.
template <typename Type>
void store_null(Type** out) {
    required(out, "out") = nullptr;
}

// Runs work that returns a new object, and stores the object in `out`.
template <typename Type, typename Work>
netiodaq_result new_object(Type** out, Work work,
                           const char* call = __builtin_FUNCTION()) noexcept {
    return done(
        [&] {
            store_null(out);
            *out = work();
        },
        call);
}

// Refuses sizes above PTRDIFF_MAX, because the library adds to sizes without a check for overflow.
inline void check_size(std::uint64_t size_bytes, const char* name) {
    if (size_bytes <= static_cast<std::uint64_t>(PTRDIFF_MAX)) return;
    throw Failure{NETIODAQ_INVALID_ARGUMENT, std::string{name} + " cannot have " +
                                                 std::to_string(size_bytes) +
                                                 " bytes: no memory is so large"};
}

inline std::span<const std::byte> bytes_of(const void* data, std::uint64_t size_bytes,
                                           const char* name = "data") {
    if (size_bytes > 0) required(static_cast<const char*>(data), name);
    check_size(size_bytes, name);
    return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size_bytes)};
}

inline std::span<std::byte> memory_of(void* memory, std::uint64_t size_bytes) {
    if (size_bytes > 0) required(static_cast<char*>(memory), "memory");
    check_size(size_bytes, "memory");
    return {static_cast<std::byte*>(memory), static_cast<std::size_t>(size_bytes)};
}

inline std::chrono::milliseconds timeout_of(std::int64_t timeout_ms) noexcept {
    return timeout_ms < 0 ? std::chrono::milliseconds::max()
                          : std::chrono::milliseconds{timeout_ms};
}

// Fills the part of a structure that the caller knows.
template <typename Structure>
void fill(Structure* out, const char* name, Structure values) {
    const std::uint64_t size = required(out, name).size_bytes;
    if (size < sizeof(std::uint64_t)) {
        throw Failure{NETIODAQ_INVALID_ARGUMENT, std::string{name} + "->size_bytes is " +
                                                     std::to_string(size) +
                                                     "; set it to the size of the structure"};
    }
    values.size_bytes = size;
    std::memcpy(out, &values, std::min<std::size_t>(size, sizeof values));
}

// The structure of callbacks, with NULL for what the caller does not know.
template <typename Callbacks>
Callbacks copy_of(const Callbacks* callbacks) {
    Callbacks copy{};
    const std::uint64_t size = required(callbacks, "callbacks").size_bytes;
    if (size < offsetof(Callbacks, user) + sizeof(void*) || size > 4096) {
        throw Failure{NETIODAQ_INVALID_ARGUMENT, "callbacks->size_bytes is " +
                                                     std::to_string(size) +
                                                     "; set it to the size of the structure"};
    }
    std::memcpy(&copy, callbacks, std::min<std::size_t>(size, sizeof copy));
    return copy;
}

} // namespace netiodaq

struct netiodaq_message {
    netio::KeptMessage message;
};

namespace netiodaq {

// The options of the C interface: those of the C++ interface, set by name.

// The C++ options of one kind, and the files of its keys, from which objects are made later.
template <std::int32_t Kind, typename Options>
struct Settings {
    static constexpr std::int32_t kind = Kind;
    Options options{};
    std::optional<netio::ServerKeys::Options> keys{}; // of a side that listens
    std::optional<netio::ClientKey::Options> key{};   // of a side that connects
};

using LoopSettings = Settings<NETIODAQ_LOOP_OPTIONS, netio::Context::Options>;
using PublisherSettings = Settings<NETIODAQ_PUBLISHER_OPTIONS, netio::Publisher::Options>;
// With the bus, which is a parameter of the C++ constructor.
struct SubscriberSettings : Settings<NETIODAQ_SUBSCRIBER_OPTIONS, netio::Subscriber::Options> {
    std::optional<netio::Bus> bus{};
};
using SenderSettings = Settings<NETIODAQ_SENDER_OPTIONS, netio::Sender::Options>;
using StreamSettings = Settings<NETIODAQ_STREAM_OPTIONS, netio::stream::BlockingStream::Options>;
using PublishSettings =
    Settings<NETIODAQ_PUBLISH_SOCKET_OPTIONS, netio::pubsub::PublishSocket::Options>;
using BufferedPublishSettings = Settings<NETIODAQ_BUFFERED_PUBLISH_SOCKET_OPTIONS,
                                         netio::pubsub::BufferedPublishSocket::Options>;
using SubscribeSettings =
    Settings<NETIODAQ_SUBSCRIBE_SOCKET_OPTIONS, netio::pubsub::SubscribeSocket::Options>;
using SendSettings = Settings<NETIODAQ_SEND_SOCKET_OPTIONS, netio::SendSocket::Options>;
using BufferedSendSettings =
    Settings<NETIODAQ_BUFFERED_SEND_SOCKET_OPTIONS, netio::BufferedSendSocket::Options>;
using ListenSettings = Settings<NETIODAQ_LISTEN_SOCKET_OPTIONS, netio::ListenSocket::Options>;
using RequesterSettings = Settings<NETIODAQ_REQUESTER_OPTIONS, netio::Requester::Options>;
using ResponderSettings = Settings<NETIODAQ_RESPONDER_OPTIONS, netio::Responder::Options>;

} // namespace netiodaq

struct netiodaq_context {
    netio::Context context;
};

struct netiodaq_options {
    std::variant<netiodaq::LoopSettings, netiodaq::PublisherSettings, netiodaq::SubscriberSettings,
                 netiodaq::SenderSettings, netiodaq::StreamSettings, netiodaq::PublishSettings,
                 netiodaq::BufferedPublishSettings, netiodaq::SubscribeSettings,
                 netiodaq::SendSettings, netiodaq::BufferedSendSettings, netiodaq::ListenSettings,
                 netiodaq::RequesterSettings, netiodaq::ResponderSettings>
        settings;
};

namespace netiodaq {

// "options of a publisher".
std::string name_of_kind(std::int32_t kind);

// A copy of the settings; the defaults for NULL. Throws Failure if they are of another kind.
template <typename Of>
Of settings_of(const netiodaq_options* options) {
    if (options == nullptr) return {};
    if (const Of* const settings = std::get_if<Of>(&options->settings)) return *settings;
    const std::int32_t kind =
        std::visit([](const auto& each) { return each.kind; }, options->settings);
    throw Failure{NETIODAQ_INVALID_ARGUMENT,
                  "these are " + name_of_kind(kind) + ", not " + name_of_kind(Of::kind)};
}

// The key of settings; null: none. Throws as ClientKey does.
inline std::shared_ptr<const netio::ClientKey>
key_of(const std::optional<netio::ClientKey::Options>& key) {
    return key ? std::make_shared<const netio::ClientKey>(*key) : nullptr;
}

// The keys of settings, created on the loop of the context; null: none.
inline std::shared_ptr<netio::ServerKeys>
keys_of(const std::optional<netio::ServerKeys::Options>& keys, const netio::Context& context) {
    std::shared_ptr<netio::ServerKeys> made;
    if (keys)
        context.run([&] { made = std::make_shared<netio::ServerKeys>(context.loop(), *keys); });
    return made;
}

// Addresses separated by commas. Throws as parse_address() does.
netio::AddressList addresses_of(const char* text);
// One of NETIODAQ_POLICY_...; throws Failure for another number.
std::optional<netio::SlowPolicy> policy_of(std::int32_t policy);

} // namespace netiodaq
