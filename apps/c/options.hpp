// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of the C interface: those of the C++ interface, set by name.

#include "apps/c/call.hpp"
#include "netio/base/address_list.hpp"
#include "netio/context.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "netio/messages/sender.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/pubsub.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace netiodaq {

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
