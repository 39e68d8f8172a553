// SPDX-License-Identifier: Apache-2.0
#include "apps/c/call.hpp"

#include "apps/common/parse.hpp"
#include "netio/base/control_characters.hpp"
#include "netio/base/version.hpp"
#include "netio/context.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace netiodaq {
namespace {

constexpr std::pair<netiodaq_result, const char*> result_texts[] = {
    {NETIODAQ_OK, "ok"},
    {NETIODAQ_NO_SUBSCRIBERS, "no subscribers"},
    {NETIODAQ_PARTIAL, "partial"},
    {NETIODAQ_AGAIN, "again"},
    {NETIODAQ_TIMED_OUT, "timed out"},
    {NETIODAQ_END, "end"},
    {NETIODAQ_CLOSED, "closed"},
    {NETIODAQ_TOO_LARGE, "too large"},
    {NETIODAQ_TOO_MANY_SEGMENTS, "too many segments"},
    {NETIODAQ_NOT_OWNED, "not owned"},
    {NETIODAQ_STALE_TICKET, "stale ticket"},
    {NETIODAQ_INVALID_ARGUMENT, "invalid argument"},
    {NETIODAQ_NETWORK_ERROR, "network error"},
    {NETIODAQ_OUT_OF_MEMORY, "out of memory"},
    {NETIODAQ_WRONG_THREAD, "wrong thread"},
    {NETIODAQ_ENDED_EARLY, "ended early"},
    {NETIODAQ_FAILED, "failed"}};

// Constant texts need no memory, so that they can be reported when there is none.
struct LastError {
    const char* constant = "";
    std::string text; // if constant is null
};

LastError& last_error() noexcept {
    thread_local LastError error;
    return error;
}

// A text may have bytes of a peer, such as those of netiodaq_request_fail(): they stay one line of
// UTF-8.
void append_line(std::string& line, std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        if (length == 0 || netio::is_control(text.front())) {
            line += '?';
        } else {
            line += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

netiodaq_result failed(netiodaq_result result, std::string_view prefix, std::string_view text) {
    LastError& error = last_error();
    try {
        error.text.assign(prefix).append(prefix.empty() ? "" : ": ");
        append_line(error.text, text);
        error.constant = nullptr;
    } catch (const std::bad_alloc&) {
        error.constant = netiodaq_error_text(result);
    }
    return result;
}

netiodaq_result code_of(netio::Status status) noexcept {
    switch (status) {
    case netio::Status::ok:
        return NETIODAQ_OK;
    case netio::Status::no_subscribers:
        return NETIODAQ_NO_SUBSCRIBERS;
    case netio::Status::again:
        return NETIODAQ_AGAIN;
    case netio::Status::partial:
        return NETIODAQ_PARTIAL;
    case netio::Status::too_many_segments:
        return NETIODAQ_TOO_MANY_SEGMENTS;
    case netio::Status::too_large:
        return NETIODAQ_TOO_LARGE;
    case netio::Status::closed:
        return NETIODAQ_CLOSED;
    case netio::Status::stale_ticket:
        return NETIODAQ_STALE_TICKET;
    case netio::Status::not_owned:
        return NETIODAQ_NOT_OWNED;
    }
    return NETIODAQ_FAILED;
}

netiodaq_result code_of(netio::stream::StreamError::Kind kind) noexcept {
    switch (kind) {
    case netio::stream::StreamError::Kind::timed_out:
        return NETIODAQ_TIMED_OUT;
    case netio::stream::StreamError::Kind::ended:
        return NETIODAQ_ENDED_EARLY;
    case netio::stream::StreamError::Kind::closed:
        return NETIODAQ_CLOSED;
    }
    return NETIODAQ_FAILED;
}

} // namespace

netiodaq_result failed(netiodaq_result result) noexcept {
    last_error().constant = netiodaq_error_text(result);
    return result;
}

netiodaq_result result_of(netio::Status status) noexcept {
    const netiodaq_result result = code_of(status);
    return result < 0 ? failed(result) : result;
}

netiodaq_result result_of_exception(const char* call) noexcept {
    try {
        throw;
    } catch (const Failure& failure) {
        return failed(failure.code(), call, failure.what());
    } catch (const netio::Error& error) {
        const netiodaq_result code = code_of(error.status());
        return failed(code < 0 ? code : NETIODAQ_FAILED, "", error.what());
    } catch (const netio::stream::StreamError& error) {
        return failed(code_of(error.kind()), "", error.what());
    } catch (const std::invalid_argument& error) {
        return failed(NETIODAQ_INVALID_ARGUMENT, "", error.what());
    } catch (const std::system_error& error) { // FabricError is one
        return failed(NETIODAQ_NETWORK_ERROR, "", error.what());
    } catch (const std::bad_alloc&) {
        return failed(NETIODAQ_OUT_OF_MEMORY);
    } catch (const std::length_error&) {
        return failed(NETIODAQ_OUT_OF_MEMORY);
    } catch (const std::exception& error) {
        return failed(NETIODAQ_FAILED, "", error.what());
    } catch (...) {
        return failed(NETIODAQ_FAILED);
    }
}

} // namespace netiodaq

const char* netiodaq_error_text(netiodaq_result result) {
    for (const auto& [code, text] : netiodaq::result_texts)
        if (code == result) return text;
    return "unknown result";
}

const char* netiodaq_last_error() {
    const netiodaq::LastError& error = netiodaq::last_error();
    return error.constant != nullptr ? error.constant : error.text.c_str();
}

const char* netiodaq_version() {
    return netio::version();
}

netiodaq_result netiodaq_set_log(netiodaq_log_function function, void* user) {
    return netiodaq::done([&] {
        if (function == nullptr) return netio::set_log({});
        netio::set_log(
            [function, user](std::string_view line) { function(std::string{line}.c_str(), user); });
    });
}

const char* netiodaq_close_reason_text(std::int32_t reason) {
    using netio::CloseReason;
    static_assert(static_cast<int>(CloseReason::local) == NETIODAQ_CLOSE_LOCAL);
    static_assert(static_cast<int>(CloseReason::orderly) == NETIODAQ_CLOSE_ORDERLY);
    static_assert(static_cast<int>(CloseReason::unconfirmed) == NETIODAQ_CLOSE_UNCONFIRMED);
    static_assert(static_cast<int>(CloseReason::lost) == NETIODAQ_CLOSE_LOST);
    static_assert(static_cast<int>(CloseReason::refused) == NETIODAQ_CLOSE_REFUSED);
    static_assert(static_cast<int>(CloseReason::unreachable) == NETIODAQ_CLOSE_UNREACHABLE);
    static_assert(static_cast<int>(CloseReason::rejected) == NETIODAQ_CLOSE_REJECTED);
    static_assert(static_cast<int>(CloseReason::connect_timeout) == NETIODAQ_CLOSE_CONNECT_TIMEOUT);
    static_assert(static_cast<int>(CloseReason::handshake_timeout) ==
                  NETIODAQ_CLOSE_HANDSHAKE_TIMEOUT);
    static_assert(static_cast<int>(CloseReason::silent) == NETIODAQ_CLOSE_SILENT);
    static_assert(static_cast<int>(CloseReason::too_slow) == NETIODAQ_CLOSE_TOO_SLOW);
    static_assert(static_cast<int>(CloseReason::protocol_error) == NETIODAQ_CLOSE_PROTOCOL_ERROR);
    static_assert(static_cast<int>(CloseReason::not_admitted) == NETIODAQ_CLOSE_NOT_ADMITTED);
    static_assert(static_cast<int>(CloseReason::failed) == NETIODAQ_CLOSE_FAILED);
    if (reason < NETIODAQ_CLOSE_LOCAL || reason > NETIODAQ_CLOSE_FAILED) return "unknown reason";
    return netio::to_string(static_cast<CloseReason>(reason)).data(); // a constant
}

namespace netiodaq {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view text, std::string_view expected) {
    throw Failure{NETIODAQ_INVALID_ARGUMENT, std::string{name} + " is '" + std::string{text} +
                                                 "'; it must be " + std::string{expected}};
}

// The parts between commas, without spaces around them.
std::vector<std::string_view> parts_of(std::string_view text) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t comma = text.find(',');
        std::string_view part = text.substr(0, comma);
        while (part.starts_with(' '))
            part.remove_prefix(1);
        while (part.ends_with(' '))
            part.remove_suffix(1);
        parts.push_back(part);
        if (comma == std::string_view::npos) return parts;
        text.remove_prefix(comma + 1);
    }
}

// --- values ----------------------------------------------------------------------------------

void assign(bool& value, std::string_view name, std::string_view text) {
    if (text != "true" && text != "false") refuse(name, text, "true or false");
    value = text == "true";
}

void assign(std::string& value, std::string_view /*name*/, std::string_view text) {
    value = text;
}

template <typename Word>
void assign_word(Word& value, std::string_view name, std::string_view text,
                 std::span<const std::pair<std::string_view, Word>> words) {
    std::string expected;
    for (const auto& [word, meaning] : words) {
        if (word == text) {
            value = meaning;
            return;
        }
        expected += (expected.empty() ? "" : ", ") + std::string{word};
    }
    refuse(name, text, "one of " + expected);
}

using netio::SlowPolicy;
constexpr std::pair<std::string_view, SlowPolicy> policy_words[] = {
    {"block", SlowPolicy::block},
    {"drop", SlowPolicy::drop},
    {"disconnect", SlowPolicy::disconnect},
    {"newest", SlowPolicy::newest}};
void assign(SlowPolicy& value, std::string_view name, std::string_view text) {
    assign_word<SlowPolicy>(value, name, text, policy_words);
}

constexpr std::pair<std::string_view, netio::LoopMode> mode_words[] = {
    {"blocking", netio::LoopMode::blocking},
    {"busy", netio::LoopMode::busy},
    {"adaptive", netio::LoopMode::adaptive}};
void assign(netio::LoopMode& value, std::string_view name, std::string_view text) {
    assign_word<netio::LoopMode>(value, name, text, mode_words);
}

constexpr std::pair<std::string_view, netio::Reconnect> reconnect_words[] = {
    {"on_loss", netio::Reconnect::on_loss},
    {"always", netio::Reconnect::always},
    {"never", netio::Reconnect::never}};
void assign(netio::Reconnect& value, std::string_view name, std::string_view text) {
    assign_word<netio::Reconnect>(value, name, text, reconnect_words);
}

using netio::stream::RemoteWrites;
constexpr std::pair<std::string_view, RemoteWrites> write_words[] = {
    {"guarded", RemoteWrites::guarded},
    {"trusted", RemoteWrites::trusted},
    {"never", RemoteWrites::never}};
void assign(RemoteWrites& value, std::string_view name, std::string_view text) {
    assign_word<RemoteWrites>(value, name, text, write_words);
}

using netio::access::Protection;
constexpr std::pair<std::string_view, Protection> protection_words[] = {
    {"none", Protection::none},
    {"peers", Protection::peers},
    {"integrity", Protection::integrity},
    {"privacy", Protection::privacy}};
void assign(Protection& value, std::string_view name, std::string_view text) {
    assign_word<Protection>(value, name, text, protection_words);
}

// A number of bytes if the name says so, otherwise a count.
template <std::unsigned_integral Number>
void assign(Number& value, std::string_view name, std::string_view text) {
    const bool in_bytes = name.ends_with("_bytes") || name.ends_with("window_limit") ||
                          name.ends_with("windows_limit") || name.ends_with("copies_limit");
    const auto number = in_bytes ? apps::parse_bytes(text) : apps::parse_count(text);
    if (!number || *number > std::numeric_limits<Number>::max())
        refuse(name, text, in_bytes ? "a size, such as 65536 or 64KiB" : "a number");
    value = static_cast<Number>(*number);
}

template <typename Period>
void assign(std::chrono::duration<std::int64_t, Period>& value, std::string_view name,
            std::string_view text) {
    using Time = std::chrono::duration<std::int64_t, Period>;
    if (text == "0") {
        value = Time{0};
        return;
    }
    const auto time = apps::parse_duration(text);
    if (!time) refuse(name, text, "a time with its unit, such as 10s or 250ms");
    const Time whole = std::chrono::duration_cast<Time>(*time);
    if (whole != *time) {
        refuse(name, text,
               std::is_same_v<Time, std::chrono::milliseconds> ? "a whole number of milliseconds"
                                                               : "a whole number of microseconds");
    }
    value = whole;
}

void assign(std::vector<netio::Address>& value, std::string_view /*name*/, std::string_view text) {
    value = addresses_of(std::string{text}.c_str());
}

// Fids and ranges of them, such as 0-63,128.
std::vector<netio::FidRange> fids_of(std::string_view name, std::string_view text) {
    std::vector<netio::FidRange> fids;
    for (const std::string_view part : parts_of(text)) {
        const std::size_t dash = part.find('-');
        const auto first = apps::parse_count(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : apps::parse_count(part.substr(dash + 1));
        if (!first || !last || *last < *first) refuse(name, text, "fids, such as 0-63,128");
        fids.push_back({.first = *first, .last = *last});
    }
    return fids;
}
void assign(std::optional<std::vector<netio::FidRange>>& value, std::string_view name,
            std::string_view text) {
    const netio::FidSet set{fids_of(name, text)}; // in order, without overlaps
    value.emplace(set.ranges().begin(), set.ranges().end());
}
void assign(std::optional<netio::FidSet>& value, std::string_view name, std::string_view text) {
    value.emplace(fids_of(name, text));
}

// --- tables ----------------------------------------------------------------------------------

// A member of the C++ options, and its name.
template <typename Structure, typename Value>
struct Member {
    const char* name;
    Value Structure::*at;
};
template <typename Structure, typename Value>
Member<Structure, Value> named(const char* name, Value Structure::*at) {
    return {name, at};
}
#define OPTION(structure, member) named(#member, &structure::member)

// The options of one kind: a name, and how a text is assigned.
template <typename Of>
class Table {
  public:
    struct Row {
        std::string name;
        std::function<void(Of& settings, std::string_view text)> set;
    };

    // Adds options whose names begin with `path`. `of` returns the structure that has the members.
    template <typename Get, typename... Structure, typename... Value>
    void add(const std::string& path, Get of, Member<Structure, Value>... members) {
        (add_row(path + members.name, of, members.at), ...);
    }

    void set(Of& settings, std::string_view name, std::string_view text) const {
        std::vector<std::string_view> names;
        for (const Row& row : rows_) {
            if (row.name == name) return row.set(settings, text);
            names.emplace_back(row.name);
        }
        throw Failure{NETIODAQ_INVALID_ARGUMENT, "'" + std::string{name} + "' is not one of the " +
                                                     name_of_kind(Of::kind) +
                                                     apps::suggestion(name, names)};
    }
    const char* name(std::uint64_t index) const noexcept {
        return index < rows_.size() ? rows_[index].name.c_str() : nullptr;
    }

  private:
    template <typename Get, typename Structure, typename Value>
    void add_row(const std::string& name, Get of, Value Structure::*member) {
        rows_.push_back({name, [name, of, member](Of& settings, std::string_view text) {
                             Structure& structure = of(settings);
                             assign(structure.*member, name, text);
                         }});
    }

    std::vector<Row> rows_;
};

// Each function adds the options of a structure whose names begin with `path`. Within them, `o` is
// the type of that structure.
template <typename Of, typename Get>
void add_session(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::SessionOptions;
    const auto session = [get](Of& settings) -> o& { return get(settings).session; };
    table.add(path + "session.", session, OPTION(o, receive_buffer_bytes), OPTION(o, receive_count),
              OPTION(o, window_limit), OPTION(o, keep_limit_bytes), OPTION(o, send_count),
              OPTION(o, heartbeat), OPTION(o, dead_after), OPTION(o, connect_timeout),
              OPTION(o, handshake_timeout), OPTION(o, close_timeout), OPTION(o, close_limit),
              OPTION(o, rekey_after_bytes));
}

template <typename Of>
void add_keys(Table<Of>& table) {
    using o = netio::ServerKeys::Options;
    const auto get = [](Of& settings) -> o& {
        return settings.keys ? *settings.keys : settings.keys.emplace();
    };
    table.add("keys.", get, OPTION(o, file), OPTION(o, min_protection),
              OPTION(o, connections_per_host), OPTION(o, look_interval),
              OPTION(o, advertised_addresses));
}

template <typename Of>
void add_key(Table<Of>& table) {
    using o = netio::ClientKey::Options;
    const auto get = [](Of& settings) -> o& {
        return settings.key ? *settings.key : settings.key.emplace();
    };
    table.add("key.", get, OPTION(o, file), OPTION(o, protection));
}

template <typename Of, typename Get>
void add_bus(Table<Of>& table, Get get) {
    const auto options = [get](Of& settings) -> netio::pubsub::BusOptions& {
        return get(settings).options;
    };
    using o = netio::pubsub::BusOptions;
    table.add("bus.", get, OPTION(netio::Bus, where));
    table.add("bus.", options, OPTION(o, lease), OPTION(o, poll), OPTION(o, publisher_limit));
}

// The options that a publisher and both kinds of publish sockets have in common.
template <typename Of, typename Get>
void add_publish_base(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::pubsub::PublishSocketBase::Options;
    table.add(path, get, OPTION(o, disconnect_after), OPTION(o, subscriber_limit),
              OPTION(o, connections_per_host), OPTION(o, ranges_per_subscriber_limit),
              OPTION(o, pending_reply_limit), OPTION(o, largest_message_bytes));
    add_session(table, path, get);
}

// Those of the base that a netio::Publisher overrides.
template <typename Of, typename Get>
void add_publish_rest(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::pubsub::PublishSocketBase::Options;
    table.add(path, get, OPTION(o, allow_remote_anonymous), OPTION(o, fids), OPTION(o, slow_policy),
              OPTION(o, close_timeout), OPTION(o, close_limit));
}

template <typename Of, typename Get>
void add_pages(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::pubsub::BufferedPublishSocket::Options;
    table.add(path, get, OPTION(o, page_size_bytes), OPTION(o, page_count),
              OPTION(o, queue_limit_bytes), OPTION(o, newest_bytes), OPTION(o, watermark_bytes),
              OPTION(o, flush_time), OPTION(o, flush_when_idle), OPTION(o, history_limit_bytes),
              OPTION(o, history_time));
}

template <typename Of, typename Get>
void add_subscribe(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::pubsub::SubscribeSocket::Options;
    table.add(path, get, OPTION(o, local_host), OPTION(o, receive_buffer_limit_bytes),
              OPTION(o, largest_message_bytes), OPTION(o, fid_limit), OPTION(o, wait_for_publisher),
              OPTION(o, retry_interval), OPTION(o, retry_limit), OPTION(o, history));
    add_session(table, path, get);
}

template <typename Of, typename Get>
void add_send(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::SendSocket::Options;
    table.add(path, get, OPTION(o, local_host), OPTION(o, retry_interval), OPTION(o, retry_limit));
    add_session(table, path, get);
}

template <typename Of, typename Get>
void add_send_pages(Table<Of>& table, const std::string& path, Get get) {
    using o = netio::BufferedSendSocket::Options;
    table.add(path, get, OPTION(o, page_size_bytes), OPTION(o, page_count),
              OPTION(o, watermark_bytes), OPTION(o, flush_time));
}

// --- kinds -----------------------------------------------------------------------------------

constexpr auto options_in = [](auto& settings) -> auto& {
    return settings.options;
};

void add_all(Table<LoopSettings>& table) {
    using l = netio::EventLoop::Options;
    using f = netio::FabricOptions;
    const auto loop = [](LoopSettings& settings) -> l& { return settings.options.loop; };
    const auto fabric = [](LoopSettings& settings) -> f& { return settings.options.fabric; };
    table.add("loop.", loop, OPTION(l, mode), OPTION(l, spin), OPTION(l, drain_limit),
              OPTION(l, turn_limit), OPTION(l, post_limit));
    table.add("fabric.", fabric, OPTION(f, provider), OPTION(f, half_handshake_timeout),
              OPTION(f, handshake_timeout), OPTION(f, pending_handshakes_per_host),
              OPTION(f, attempts_per_address_limit), OPTION(f, windows_limit),
              OPTION(f, copies_limit), OPTION(f, queue_endpoint_limit),
              OPTION(f, queue_entry_limit));
}

void add_all(Table<PublisherSettings>& table) {
    using o = netio::Publisher::Options;
    table.add("", options_in, OPTION(o, publish_timeout), OPTION(o, queue_limit_bytes),
              OPTION(o, slow_policy), OPTION(o, close_timeout), OPTION(o, close_limit),
              OPTION(o, allow_remote_anonymous), OPTION(o, name), OPTION(o, fids));
    add_bus(table, [](PublisherSettings& settings) -> netio::Bus& {
        auto& bus = settings.options.bus;
        return bus ? *bus : bus.emplace();
    });
    add_keys(table);
    const auto socket = [](PublisherSettings & settings) -> auto& {
        return settings.options.socket;
    };
    add_pages(table, "socket.", socket);
    add_publish_base(table, "socket.publisher.",
                     [](PublisherSettings& settings) -> netio::pubsub::PublishSocketBase::Options& {
                         return settings.options.socket.publisher;
                     });
}

void add_all(Table<SubscriberSettings>& table) {
    using o = netio::Subscriber::Options;
    const auto get = [](SubscriberSettings& settings) -> o& { return settings.options; };
    table.add("", get, OPTION(o, reconnect), OPTION(o, queue_limit_messages),
              OPTION(o, queue_limit_bytes), OPTION(o, when_full), OPTION(o, disconnect_after),
              OPTION(o, silence_hint));
    add_bus(table, [](SubscriberSettings& settings) -> netio::Bus& {
        return settings.bus ? *settings.bus : settings.bus.emplace();
    });
    add_key(table);
    add_subscribe(table, "socket.",
                  [](SubscriberSettings& settings) -> netio::pubsub::SubscribeSocket::Options& {
                      return settings.options.socket;
                  });
}

void add_all(Table<SenderSettings>& table) {
    using o = netio::Sender::Options;
    table.add("", options_in, OPTION(o, send_timeout), OPTION(o, queue_limit_bytes),
              OPTION(o, close_timeout), OPTION(o, close_limit));
    add_key(table);
    const auto pages = [](SenderSettings& settings) -> netio::BufferedSendSocket::Options& {
        return settings.options.socket;
    };
    add_send_pages(table, "socket.", pages);
    add_send(table, "socket.socket.", [](SenderSettings& settings) -> netio::SendSocket::Options& {
        return settings.options.socket.socket;
    });
}

void add_all(Table<StreamSettings>& table) {
    using o = netio::stream::BlockingStream::Options;
    table.add("", options_in, OPTION(o, provider), OPTION(o, allow_remote_anonymous),
              OPTION(o, call_timeout), OPTION(o, progress_timeout), OPTION(o, farewell_timeout));
    add_keys(table);
    add_key(table);
    using s = netio::stream::StreamSocket::Options;
    const auto stream = [](StreamSettings& settings) -> s& { return settings.options.stream; };
    table.add("stream.", stream, OPTION(s, remote_writes), OPTION(s, frame_bytes),
              OPTION(s, frame_count), OPTION(s, local_host));
    using r = netio::stream::ReceiverOptions;
    const auto receiver = [](StreamSettings& settings) -> r& {
        return settings.options.stream.receiver;
    };
    table.add("stream.receiver.", receiver, OPTION(r, ring_bytes), OPTION(r, ring_limit_bytes));
    add_session(table, "stream.", stream);
}

template <typename Of>
void add_publish_socket(Table<Of>& table) {
    const auto base = [](Of& settings) -> netio::pubsub::PublishSocketBase::Options& {
        return settings.options.publisher;
    };
    add_publish_rest(table, "publisher.", base);
    add_publish_base(table, "publisher.", base);
    add_keys(table);
}

void add_all(Table<PublishSettings>& table) {
    using o = netio::pubsub::PublishSocket::Options;
    table.add("", options_in, OPTION(o, outstanding_limit), OPTION(o, queue_limit_messages));
    add_publish_socket(table);
}

void add_all(Table<BufferedPublishSettings>& table) {
    add_pages(table, "", options_in);
    add_publish_socket(table);
}

void add_all(Table<SubscribeSettings>& table) {
    using o = netio::pubsub::SubscribeSocket::Options;
    table.add("", options_in, OPTION(o, reconnect), OPTION(o, reconnect_after_end));
    add_subscribe(table, "", options_in);
    add_key(table);
}

void add_all(Table<SendSettings>& table) {
    table.add("", options_in, OPTION(netio::SendSocket::Options, reconnect));
    add_send(table, "", options_in);
    add_key(table);
}

void add_all(Table<BufferedSendSettings>& table) {
    const auto socket = [](BufferedSendSettings& settings) -> netio::SendSocket::Options& {
        return settings.options.socket;
    };
    add_send_pages(table, "", options_in);
    table.add("socket.", socket, OPTION(netio::SendSocket::Options, reconnect));
    add_send(table, "socket.", socket);
    add_key(table);
}

void add_all(Table<ListenSettings>& table) {
    using o = netio::ListenSocket::Options;
    table.add("", options_in, OPTION(o, allow_remote_anonymous), OPTION(o, peer_limit),
              OPTION(o, connections_per_host), OPTION(o, largest_message_bytes));
    add_session(table, "", options_in);
    add_keys(table);
}

// The connection of a requester, or each one of a responder.
template <typename Of>
void add_message_socket(Table<Of>& table) {
    using o = netio::MessageSocket::Options;
    const auto socket = [](Of& settings) -> o& { return settings.options.socket; };
    table.add("socket.", socket, OPTION(o, largest_message_bytes), OPTION(o, page_size_bytes),
              OPTION(o, page_count));
    add_session(table, "socket.", socket);
}

void add_all(Table<RequesterSettings>& table) {
    using o = netio::Requester::Options;
    table.add("", options_in, OPTION(o, outstanding_limit), OPTION(o, queue_limit_bytes),
              OPTION(o, reply_limit_bytes));
    using s = netio::MessageSocket::Options;
    table.add(
        "socket.", [](RequesterSettings& settings) -> s& { return settings.options.socket; },
        OPTION(s, local_host), OPTION(s, retry_interval), OPTION(s, retry_limit));
    add_message_socket(table);
    add_key(table);
}

void add_all(Table<ResponderSettings>& table) {
    using o = netio::Responder::Options;
    table.add("", options_in, OPTION(o, request_limit), OPTION(o, request_limit_bytes),
              OPTION(o, reply_queue_limit_bytes), OPTION(o, send_timeout),
              OPTION(o, allow_remote_anonymous), OPTION(o, peer_limit),
              OPTION(o, connections_per_host));
    add_message_socket(table);
    add_keys(table);
}

#undef OPTION

template <typename Of>
const Table<Of>& table_of() {
    // Not destroyed: global objects may create options while the program ends.
    static const Table<Of>& table = *[] {
        auto* const made = new Table<Of>;
        add_all(*made);
        return made;
    }();
    return table;
}

// Creates the settings of the kind with their defaults.
template <std::size_t Index = 0>
void create(netiodaq_options& options, std::int32_t kind) {
    if constexpr (Index < std::variant_size_v<decltype(options.settings)>) {
        using Of = std::variant_alternative_t<Index, decltype(options.settings)>;
        if (Of::kind != kind) return create<Index + 1>(options, kind);
        options.settings.template emplace<Index>();
    } else {
        throw Failure{NETIODAQ_INVALID_ARGUMENT,
                      "there is no kind " + std::to_string(kind) +
                          " of options; use one of NETIODAQ_..._OPTIONS"};
    }
}

} // namespace

std::string name_of_kind(std::int32_t kind) {
    constexpr std::array names{"",
                               "a loop",
                               "a publisher",
                               "a subscriber",
                               "a sender",
                               "a stream",
                               "an unbuffered publish socket",
                               "a buffered publish socket",
                               "a subscribe socket",
                               "an unbuffered send socket",
                               "a buffered send socket",
                               "a listen socket",
                               "a requester",
                               "a responder"};
    return std::string{"options of "} + names.at(static_cast<std::size_t>(kind));
}

netio::AddressList addresses_of(const char* text) {
    netio::AddressList addresses;
    for (const std::string_view part : parts_of(text_of(text, "addresses")))
        addresses.push_back(netio::parse_address(part));
    return addresses;
}

std::optional<netio::SlowPolicy> policy_of(std::int32_t policy) {
    switch (policy) {
    case NETIODAQ_POLICY_DEFAULT:
        return std::nullopt;
    case NETIODAQ_POLICY_BLOCK:
        return SlowPolicy::block;
    case NETIODAQ_POLICY_DROP:
        return SlowPolicy::drop;
    case NETIODAQ_POLICY_DISCONNECT:
        return SlowPolicy::disconnect;
    case NETIODAQ_POLICY_NEWEST:
        return SlowPolicy::newest;
    default:
        throw Failure{NETIODAQ_INVALID_ARGUMENT, "there is no policy " + std::to_string(policy) +
                                                     "; use one of NETIODAQ_POLICY_..."};
    }
}

} // namespace netiodaq

netiodaq_result netiodaq_options_new(std::int32_t kind, netiodaq_options** out) {
    return netiodaq::new_object(out, [&] {
        auto options = std::make_unique<netiodaq_options>();
        netiodaq::create(*options, kind);
        return options.release();
    });
}

netiodaq_result netiodaq_options_set(netiodaq_options* options, const char* name,
                                     const char* value) {
    return netiodaq::done([&] {
        auto& settings = netiodaq::required(options, "options").settings;
        const std::string_view option = netiodaq::text_of(name, "name");
        const std::string_view text = netiodaq::text_of(value, "value");
        std::visit(
            [&]<typename Of>(Of& each) {
                Of changed = each; // a value that is refused changes nothing
                netiodaq::table_of<Of>().set(changed, option, text);
                each = std::move(changed);
            },
            settings);
    });
}

const char* netiodaq_options_name(std::int32_t kind, std::uint64_t index) {
    const char* name = nullptr;
    static_cast<void>(netiodaq::done([&] {
        netiodaq_options options;
        netiodaq::create(options, kind);
        name =
            std::visit([&]<typename Of>(const Of&) { return netiodaq::table_of<Of>().name(index); },
                       options.settings);
    }));
    return name;
}

void netiodaq_options_free(netiodaq_options* options) {
    delete options;
}
