// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publisher_config.hpp"

#include "apps/common/parse.hpp"
#include "apps/publish/config_table.hpp"
#include "apps/publish/stream_config.hpp"
#include "netio/base/never_destroyed.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

namespace apps {
namespace {

using namespace shapes;

using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::Publisher;
using netio::pubsub::PublishSocket;
using netio::pubsub::SlowPolicy;
using std::chrono::milliseconds;

constexpr std::size_t largest_file_bytes = 1 << 20;
constexpr std::uint64_t terabyte = std::uint64_t{1} << 40;
constexpr std::chrono::hours one_hour{1};
constexpr std::chrono::hours one_year{24 * 365};

netio::Address read_address(const YamlValue& value) {
    const std::string text = value.text("HOST:PORT");
    try {
        return netio::parse_address(text);
    } catch (const std::invalid_argument& error) {
        value.fail(error.what(), "HOST:PORT, [IPV6]:PORT, port 0 for any free one");
    }
}

// --- the process ----------------------------------------------------------------------------

void read_provider(const YamlValue& value, PublishConfig& config, ReadContext&) {
    const std::string allowed = "auto, tcp, verbs";
    config.fabric.provider = value.text(allowed);
    const std::string refusal =
        config.fabric.provider == "auto" ? "" : netio::provider_refusal(config.fabric.provider);
    if (!refusal.empty()) value.fail(refusal, allowed);
}

void add_process(Keys& keys) {
    const Shape modes = word({"blocking", "busy", "adaptive"});
    SectionRows<PublishConfig> process{keys, "process"};
    process.add_custom(
        yaml_key<&netio::FabricOptions::provider>(), {word({"auto", "tcp", "verbs"})}, "auto",
        "`auto`: verbs where the address belongs to an RDMA device, else tcp", read_provider);
    process.add_section("fabric", &PublishConfig::fabric, {section("fabric")}, "",
                        "limits for all connections of the process");
    process.add_section(
        "loop", &PublishConfig::loop, {modes, section("loop")}, "blocking",
        "how the loop waits: sleep when idle, never sleep, or poll for a while before it sleeps");
    process.add<&PublishConfig::loops>(
        whole(1, 256),
        "number of threads, each with a loop and a part of the fids of every publisher; the n-th "
        "thread [listens](operations.md#several-loops) at the n-th port from `listen` on");
    process.add_custom("seed", {whole(0, any_number)}, "1",
                       "seed of all random values: the same seed gives the same messages",
                       [](const YamlValue& value, PublishConfig&, ReadContext& context) {
                           context.next_seed = value.number(0, any_number);
                       });
    process.add_deferred("publishers", {list(section("publisher"))}, "one",
                         "several publishers in one process; the other keys of a publisher are "
                         "then not allowed at the top");

    using Loop = netio::EventLoop::Options;
    SectionRows<Loop> loop{keys, "loop"};
    loop.add<&Loop::mode>(modes, "as for the short form");
    loop.require();
    loop.add<&Loop::spin>(
        duration(milliseconds{0}, std::chrono::seconds{1}),
        "`adaptive`: how long to poll after the last work before the loop sleeps");
    loop.add<&Loop::drain_limit>(whole(1, 1 << 20),
                                 "events handled per event source in one turn of the loop");
    loop.add<&Loop::turn_limit>(duration(std::chrono::microseconds{1}, std::chrono::seconds{1}),
                                "time limit of one turn, for tasks, event sources and timers each");

    using Fabric = netio::FabricOptions;
    SectionRows<Fabric> fabric{keys, "fabric"};
    fabric.add<&Fabric::half_handshake_timeout>(
        duration(milliseconds{1}, one_hour),
        "tcp: how long to wait for the rest of a request if the kernel reports the request "
        "too early");
    fabric.add<&Fabric::handshake_timeout>(
        duration(milliseconds{1}, one_hour),
        "a tcp client that does not finish its handshake is disconnected after one to two "
        "times this");
    fabric.add<&Fabric::pending_handshakes_per_host>(whole(1, 1 << 20),
                                                     "limit of such clients of one host");
    fabric.add<&Fabric::windows_limit>(
        bytes(0, terabyte), "limit of all receive windows together (`session.window_limit`)");
    fabric.add<&Fabric::copies_limit>(
        bytes(0, terabyte),
        "limit of encrypted frames in flight; beyond it, one frame per subscriber");
    fabric.add<&Fabric::queue_endpoint_limit>(whole(1, 1 << 20),
                                              "limit of endpoints that share a completion queue");
    fabric.add<&Fabric::queue_entry_limit>(whole(1, 1 << 24),
                                           "limit of entries of a completion queue");

    SectionRows<MetricsArguments> metrics{keys, "metrics"};
    metrics.add_custom("listen", {text("HOST:PORT")}, "",
                       "address to listen at; port 0: any free port",
                       [](const YamlValue& value, MetricsArguments& arguments, ReadContext&) {
                           arguments.listen = to_string(read_address(value));
                       });
    metrics.require();
    metrics.add<&MetricsArguments::allow_remote_anonymous>(
        flag(), "allow an address that other machines can reach; anyone who reaches it may read "
                "the metrics");
    metrics.add<&MetricsArguments::fids>(whole(0, 1'000'000),
                                         "limit of fids with their own metrics",
                                         std::to_string(MetricsArguments::fids_by_default));
}

// --- the publisher --------------------------------------------------------------------------

// An option that buffered and unbuffered publishers have.
template <typename Member>
auto option(Member member) {
    return [member](PublisherConfig & config) -> auto& {
        return config.publisher.*member;
    };
}

void read_listen(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    for (const YamlValue& each : value.is_list() ? value.list() : std::vector<YamlValue>{value})
        config.listen.push_back(read_address(each));
}

void read_min_protection(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    if (config.keys.keys.empty()) value.fail("needs keys", "together with keys: FILE");
    static constexpr std::array<std::string_view, 4> levels{"none", "peers", "integrity",
                                                            "privacy"};
    config.keys.min_protection = levels.at(value.choice({levels.begin(), levels.end()}));
}

void read_buffered(const YamlValue& value, PublisherConfig& config, ReadContext& context) {
    if (!config.buffered) value.fail("the mode is unbuffered", "only with mode: buffered");
    read_section(value, "buffered", config.buffered_options, context);
}

void read_unbuffered(const YamlValue& value, PublisherConfig& config, ReadContext& context) {
    if (config.buffered) value.fail("the mode is buffered", "only with mode: unbuffered");
    read_section(value, "unbuffered", config, context);
}

constexpr milliseconds longest_heartbeat{65535};

milliseconds read_milliseconds(const YamlValue& value, netio::Duration min, netio::Duration max) {
    return std::chrono::duration_cast<milliseconds>(value.time(min, max, milliseconds{1}));
}

// A longer heartbeat also increases `dead_after`, unless the file sets `dead_after`, too.
void read_heartbeat(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    netio::SessionOptions& session = config.publisher.session;
    session.heartbeat = read_milliseconds(value, milliseconds{0}, longest_heartbeat);
    session.dead_after = std::max(session.dead_after, 2 * session.heartbeat);
}

void read_dead_after(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    netio::SessionOptions& session = config.publisher.session;
    session.dead_after = read_milliseconds(value, milliseconds{0}, one_hour);
    if (session.dead_after.count() > 0 && session.dead_after < 2 * session.heartbeat) {
        value.fail("less than two heartbeats",
                   fmt::format("0 (never), or at least twice heartbeat ({})",
                               shown_time(session.heartbeat)));
    }
}

constexpr std::array<std::string_view, 4> policies{"block", "drop", "disconnect", "newest"};

void read_policy(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    config.publisher.slow_policy =
        static_cast<SlowPolicy>(value.choice({policies.begin(), policies.end()}));
    if (!config.buffered && config.publisher.slow_policy == SlowPolicy::newest) {
        value.fail("an unbuffered publisher keeps no messages",
                   "newest with mode: buffered; else block, drop or disconnect");
    }
}

// A subscriber may request the policy disconnect if the publisher's policy is block, but not if it
// is drop or newest.
void read_disconnect_after(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    if (netio::pubsub::may_drop(config.publisher.slow_policy)) {
        value.fail("has no effect with slow_policy: drop or newest",
                   "together with slow_policy: block or disconnect");
    }
    config.publisher.disconnect_after = read_milliseconds(value, milliseconds{1}, one_hour);
}

void read_wait_subscribers(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    config.wait_subscribers = value.number(0, 1'000'000);
    if (*config.wait_subscribers > config.publisher.subscriber_limit) {
        value.fail("more than subscriber_limit, so publishing would never begin",
                   "at most " + std::to_string(config.publisher.subscriber_limit));
    }
}

void read_triggers(const YamlValue& value, PublisherConfig& config, ReadContext& context) {
    for (const auto& [name, trigger] : value.names()) {
        config.triggers.push_back({.name = name, .rate = {}, .seed = context.next_seed});
        read_section(trigger, "trigger", config.triggers.back(), context);
        context.triggers.push_back(name);
    }
}

void read_all_streams(const YamlValue& value, PublisherConfig& config, ReadContext& context) {
    context.largest_message = config.publisher.largest_message_bytes;
    context.sends_times = config.publisher.time_stamps != netio::StampClock::none;
    config.streams = read_streams(value, context);
}

// The two limits of a close. A longer timeout also increases the limit, unless the file sets the
// limit, too.
template <typename Object, typename Timeout, typename Limit>
void add_close(SectionRows<Object>& rows, Object defaults, Timeout timeout, Limit limit,
               std::string timeout_meaning, std::string limit_meaning) {
    rows.add_custom(yaml_key<&netio::SessionOptions::close_timeout>(),
                    {duration(milliseconds{1}, one_year)},
                    shown_time(std::invoke(timeout, defaults)), std::move(timeout_meaning),
                    [=](const YamlValue& value, Object& object, ReadContext&) {
                        milliseconds& time = std::invoke(timeout, object);
                        time = read_milliseconds(value, milliseconds{1}, one_year);
                        std::invoke(limit, object) = std::max(std::invoke(limit, object), time);
                    });
    rows.add_custom(
        yaml_key<&netio::SessionOptions::close_limit>(), {duration(milliseconds{1}, one_year)},
        shown_time(std::invoke(limit, defaults)), std::move(limit_meaning),
        [=](const YamlValue& value, Object& object, ReadContext&) {
            const milliseconds least = std::invoke(timeout, object);
            std::invoke(limit, object) = read_milliseconds(value, milliseconds{1}, one_year);
            if (std::invoke(limit, object) >= least) return;
            value.fail("less than close_timeout",
                       fmt::format("at least {} (close_timeout)", shown_time(least)));
        });
}

template <auto Member>
void add_option(SectionRows<PublisherConfig>& rows, const Shape& shape, std::string meaning) {
    rows.add(yaml_key<Member>(), option(Member), shape, std::move(meaning));
}

void add_limits(SectionRows<PublisherConfig>& rows) {
    using Options = Publisher::Options;
    rows.add_custom(yaml_key<&Options::time_stamps>(), {word({"none", "tai"})}, "none",
                    "`tai`: send the time with each message, so that `netio subscribe` reports the "
                    "[one-way latency](operations.md#one-way-latency)",
                    [](const YamlValue& value, PublisherConfig& config, ReadContext&) {
                        config.publisher.time_stamps =
                            static_cast<netio::StampClock>(value.choice({"none", "tai"}));
                    });
    rows.add_custom(yaml_key<&Options::slow_policy>(), {word({policies.begin(), policies.end()})},
                    "block",
                    "policy for a subscriber that reaches its queue limit ([slow "
                    "subscribers](operations.md#slow-subscribers))",
                    read_policy);
    rows.add_custom(
        yaml_key<&Options::disconnect_after>(), {duration(milliseconds{1}, one_hour)},
        shown_time(Options{}.disconnect_after),
        "`disconnect`: time without progress after which a slow subscriber is disconnected",
        read_disconnect_after);
    add_option<&Options::largest_message_bytes>(
        rows, bytes(1, largest_message),
        "size limit of a message; subscribers that cannot receive messages of this size are "
        "rejected");
    add_option<&Options::subscriber_limit>(
        rows, whole(1, 1 << 20),
        "limit of subscribers; further subscribers are rejected and retry");
    add_option<&Options::connections_per_host>(
        rows, whole(0, 1 << 20),
        "limit of subscribers per host (IPv6: per /64) without `keys`; 0: half of "
        "`subscriber_limit`");
    add_option<&Options::ranges_per_subscriber_limit>(
        rows, whole(1, 1 << 24),
        "limit of fid ranges per subscriber; beyond it, a subscription is refused");
    add_option<&Options::pending_reply_limit>(
        rows, whole(1, 1 << 24),
        "limit of queued requests and answers of one subscriber; beyond it, its session is closed");
}

void add_publisher(Keys& keys) {
    using Options = Publisher::Options;
    const Options options;
    SectionRows<PublisherConfig> rows{keys, "publisher"};
    rows.add_custom(yaml_key<&Options::listen>(), {text("HOST:PORT"), list(text("HOST:PORT"))}, "",
                    "address to listen at; port 0: any free port, which the log shows",
                    read_listen);
    rows.require();
    add_option<&Options::allow_remote_anonymous>(
        rows, flag(),
        "allow an address that other machines can reach; without `keys` any peer may then "
        "subscribe");
    rows.add_custom("name", {text("NAME")}, "its index in the list",
                    "name in the log and in reports, if there are several publishers",
                    [](const YamlValue& value, PublisherConfig& config, ReadContext&) {
                        config.name = value.text("a name");
                    });
    rows.add_section("bus", &PublisherConfig::bus, {text("DIR"), section("bus")}, "nowhere",
                     "bus on which subscribers [find](discovery.md) the publisher by its fids: a "
                     "directory, or etcd://HOST:PORT");
    rows.add_section("metrics", &PublisherConfig::metrics, {text("HOST:PORT"), section("metrics")},
                     "nowhere", "address of its [metrics](monitoring.md)");
    rows.add_section(
        "keys", &PublisherConfig::keys, {text("FILE"), section("keys")}, "none",
        "key file: only clients with a key in it may subscribe ([security](security.md))");
    rows.add_custom(yaml_key<&netio::ServerKeys::Options::min_protection>(),
                    {word({"none", "peers", "integrity", "privacy"})}, "none",
                    "with `keys`: minimum protection of a subscriber's connection",
                    read_min_protection);
    rows.add("mode", &PublisherConfig::buffered, word({"unbuffered", "buffered"}),
             "unbuffered: zero-copy; buffered: messages are copied into shared pages");
    rows.require();
    rows.add_custom("buffered", {section("buffered")}, "", "with `mode: buffered`", read_buffered);
    rows.add_custom("unbuffered", {section("unbuffered")}, "", "with `mode: unbuffered`",
                    read_unbuffered);
    rows.add_section("session", option(&Options::session), {section("session")}, "",
                     "options for the connections to subscribers");
    rows.add_custom(yaml_key<&netio::SessionOptions::heartbeat>(),
                    {duration(milliseconds{0}, longest_heartbeat)},
                    shown_time(options.session.heartbeat),
                    "interval of heartbeats on an idle connection; 0: none", read_heartbeat);
    rows.add_custom(yaml_key<&netio::SessionOptions::dead_after>(),
                    {duration(milliseconds{0}, one_hour)}, shown_time(options.session.dead_after),
                    "a connection that receives nothing for this time is closed; 0: never, else at "
                    "least twice `heartbeat`",
                    read_dead_after);
    add_limits(rows);
    add_close(rows, PublisherConfig{}, option(&Options::close_timeout),
              option(&Options::close_limit),
              "at the end: a subscriber that makes no progress for this long is aborted",
              "at the end: total time limit to close a subscriber; at least `close_timeout`");
    rows.add_custom("wait_subscribers", {whole(0, 1'000'000)}, "1 if a stream has no rate, else 0",
                    "begin to publish when this number of subscribers is connected",
                    read_wait_subscribers);
    rows.add_custom("triggers", {names(section("trigger"))}, "none",
                    "shared triggers, by name: several streams publish on the same event",
                    read_triggers);
    rows.add_custom("streams", {list(section("stream"))}, "", "what the publisher publishes",
                    read_all_streams);
    rows.require();
}

std::string read_where(const YamlValue& value, const std::string& folder) {
    std::string where = value.text("a directory");
    const std::filesystem::path path{where};
    if (where.find("://") != std::string::npos || path.is_absolute() || folder.empty())
        return where;
    return (std::filesystem::path{folder} / path).string();
}

std::string read_name(const YamlValue& value) {
    const std::string allowed =
        "up to 128 letters, digits, '.', '_' and '-', beginning with a letter or a digit";
    std::string name = value.text(allowed);
    if (!netio::pubsub::is_announced_name(name))
        value.fail("'" + name + "' is not a valid name", allowed);
    return name;
}

std::string read_host(const YamlValue& value) {
    const std::string allowed = "the name or the address of this host, without a port";
    std::string host = value.text(allowed);
    try {
        static_cast<void>(netio::parse_address(to_string(netio::Address{host, 1})));
    } catch (const std::invalid_argument&) {
        value.fail("'" + host + "' is not a valid host", allowed);
    }
    return host;
}

void add_bus_and_keys(Keys& keys) {
    SectionRows<BusConfig> bus{keys, "bus"};
    bus.add_custom("at", {text("DIR")}, "", "directory, relative to this file, or etcd://HOST:PORT",
                   [](const YamlValue& value, BusConfig& config, ReadContext& context) {
                       config.where = read_where(value, context.folder);
                   });
    bus.require();
    bus.add_custom("name", {text("NAME")}, "HOST-PID-N, N: index in the list",
                   "name of the publisher on the bus",
                   [](const YamlValue& value, BusConfig& config, ReadContext&) {
                       config.name = read_name(value);
                   });
    bus.add_custom("advertise", {text("HOST")}, "the name of this host",
                   "host to announce instead of a wildcard address",
                   [](const YamlValue& value, BusConfig& config, ReadContext&) {
                       config.advertise = read_host(value);
                   });
    bus.add<&BusConfig::lease>(
        duration(milliseconds{100}, one_hour),
        "a publisher that did not renew its announcement for this long is removed; use the "
        "same value for all publishers on a bus");

    SectionRows<KeyArguments> rows{keys, "keys"};
    rows.add_custom(yaml_key<&netio::ServerKeys::Options::file>(), {text("FILE")}, "",
                    "key file, made by `netio key`; it is read again when it changes",
                    [](const YamlValue& value, KeyArguments& arguments, ReadContext& context) {
                        arguments.keys =
                            path_in_folder(value.text("the path of a key file"), context.folder);
                    });
    rows.require();
    rows.add<&KeyArguments::connections_per_host>(
        whole(1, 1 << 20),
        "limit of connections per host; further connections are rejected and may retry",
        std::to_string(netio::ServerKeys::Options{}.connections_per_host));
    rows.add<&KeyArguments::look_interval>(duration(milliseconds{1}, one_hour),
                                           "interval of checks whether the file has changed");
}

void read_queue_limit(const YamlValue& value, PublisherConfig& config, ReadContext&) {
    const std::size_t outstanding = config.unbuffered_options.outstanding_limit;
    const std::size_t most = outstanding / 2;
    const std::size_t messages = value.number(1, 1 << 20);
    if (messages > most) {
        value.fail(
            fmt::format("{} is more than half of outstanding_limit, which is {}: one stopped "
                        "subscriber could block the others",
                        messages, outstanding),
            fmt::format("a whole number from 1 to {}", most));
    }
    config.unbuffered_options.queue_limit_messages = messages;
}

void add_sockets(Keys& keys) {
    using Buffered = BufferedPublishSocket::Options;
    SectionRows<Buffered> buffered{keys, "buffered"};
    buffered.add<&Buffered::page_size_bytes>(
        bytes(256, largest_message),
        "size of a page and of the largest frame; messages and fids share a page");
    buffered.add<&Buffered::page_count>(
        whole(2, 1 << 20),
        "number of pages of `page_size`: the memory for all messages that are queued or in flight");
    buffered.add_custom(yaml_key<&Buffered::queue_limit_bytes>(), {bytes(1, terabyte)},
                        "1MiB, with `drop` 4MiB",
                        "limit of queued bytes of one subscriber, beyond which it is slow: at most "
                        "half of the memory",
                        [](const YamlValue& value, Buffered& options, ReadContext&) {
                            options.queue_limit_bytes =
                                value.bytes(1, options.page_count * options.page_size_bytes / 2);
                        });
    buffered.add<&Buffered::newest_bytes>(
        bytes(1, terabyte),
        "`newest` (conflation): additional limit for one subscriber, for the last message "
        "of each fid");
    buffered.add<&Buffered::history_limit_bytes>(
        bytes(0, terabyte),
        "memory for the last messages, which are kept for subscribers that [ask for "
        "them](history.md) (`--history`), with 32 bytes each. 0: none are kept, or with "
        "`history_time` 64MiB");
    buffered.add<&Buffered::history_time>(
        duration(milliseconds{0}, one_year),
        "age at which such a message is not kept any more; 0: no limit of time");
    buffered.add_custom(
        yaml_key<&Buffered::watermark_bytes>(), {bytes(1, largest_message)}, "none",
        "a page is sent when it has this many bytes; at most `page_size`. Without it: at about 64 "
        "KiB if its subscribers are idle, and when the page is full if they are busy",
        [](const YamlValue& value, Buffered& options, ReadContext&) {
            options.watermark_bytes = value.bytes(1, options.page_size_bytes);
        });
    buffered.add<&Buffered::flush_time>(
        duration(milliseconds{0}, one_hour),
        "time limit for a message to wait for its page; 0: no timer");
    buffered.add<&Buffered::flush_when_idle>(flag(),
                                             "send a page as soon as its connections are idle");

    SectionRows<PublisherConfig> unbuffered{keys, "unbuffered"};
    unbuffered.add(
        yaml_key<&PublishSocket::Options::outstanding_limit>(),
        [](PublisherConfig & config) -> auto& {
            return config.unbuffered_options.outstanding_limit;
        },
        whole(2, 1 << 20), "limit of messages in flight (zero-copy)");
    unbuffered.add_custom(
        yaml_key<&PublishSocket::Options::queue_limit_messages>(), {whole(1, 1 << 20)},
        "a quarter of `outstanding_limit`, and 64 at most",
        "limit of messages queued for one subscriber: at most half of `outstanding_limit`",
        read_queue_limit);
    unbuffered.add("memory", &PublisherConfig::memory_bytes, bytes(1, terabyte),
                   "registered memory for the messages in flight", "256MiB");

    using Session = netio::SessionOptions;
    const Session defaults = Publisher::Options{}.session;
    SectionRows<Session> session{keys, "session", defaults};
    session.add<&Session::receive_buffer_bytes>(
        bytes(256, std::numeric_limits<std::uint32_t>::max()),
        "size of a receive buffer for a subscriber's requests");
    session.add<&Session::receive_count>(whole(4, 16384), "number of these receive buffers");
    session.add<&Session::window_limit>(
        bytes(0, terabyte),
        "the receive buffers grow together up to this limit if round trips are long; 0: "
        "they do not grow");
    session.add<&Session::send_count>(whole(2, 1024), "limit of frames in flight");
    session.add<&Session::handshake_timeout>(duration(milliseconds{1}, one_year),
                                             "time limit for a peer's handshake");
    session.add<&Session::rekey_after_bytes>(
        bytes(1, std::uint64_t{1} << 34),
        "with `integrity` and `privacy`: the key for sent data changes after this many bytes");
    add_close(session, defaults, &Session::close_timeout, &Session::close_limit,
              "close of one connection: a peer that makes no progress for this long is aborted",
              "close of one connection: total time limit; at least `close_timeout`");
}

// --- the document ---------------------------------------------------------------------------

// An unused trigger usually means that its name is misspelt, there or in a stream.
void refuse_unused_triggers(const YamlValue& publisher, const PublisherConfig& config) {
    for (std::size_t i = 0; i < config.triggers.size(); ++i) {
        const auto uses = [i](const StreamConfig& stream) { return stream.trigger == i; };
        if (std::ranges::any_of(config.streams, uses)) continue;
        publisher.find("triggers")
            ->names()
            .at(i)
            .second.fail("no stream has this trigger",
                         "trigger: " + config.triggers[i].name + " in a stream");
    }
}

void keep_places(const YamlValue& publisher, PublisherConfig& config) {
    for (const char* const key : {"listen", "metrics", "bus", "keys", "streams"}) {
        const auto value = publisher.find(key);
        if (!value) continue;
        config.places.emplace(key, value->where());
        if (std::string_view{key} != "listen" || !value->is_list()) continue;
        const std::vector<YamlValue> all = value->list();
        for (std::size_t i = 0; i < all.size(); ++i)
            config.places.emplace("listen[" + std::to_string(i) + "]", all[i].where());
    }
}

PublisherConfig read_publisher(const YamlValue& value, ReadContext& context) {
    PublisherConfig config;
    config.file = context.file;
    context.triggers.clear();
    keep_places(value, config);
    read_rows(value, "publisher", config, context);
    refuse_unused_triggers(value, config);
    return config;
}

// Refuses keys at the top that belong into the entries of `publishers`.
void refuse_publisher_keys(const YamlValue& document) {
    for (const ConfigKey& key : config_keys()) {
        if (key.section != "publisher") continue;
        if (const auto v = document.find(key.name)) {
            v->fail(
                "belongs to a single publisher, but there are several",
                "in each entry of `publishers`, or in a map that the entries merge (<<: *NAME)");
        }
    }
}

std::vector<PublisherConfig> read_publishers(const YamlValue& list, ReadContext& context) {
    std::vector<PublisherConfig> publishers;
    for (const YamlValue& each : list.list()) {
        expect_keys(each, {"publisher"});
        PublisherConfig config = read_publisher(each, context);
        config.position = publishers.size();
        if (config.name.empty()) config.name = std::to_string(config.position);
        if (std::ranges::find(publishers, config.name, &PublisherConfig::name) != publishers.end())
            each.fail("the name '" + config.name + "' is taken", "each name once");
        const auto announced_as = [&](const PublisherConfig& other) {
            return !config.bus.name.empty() && other.bus.name == config.bus.name &&
                   other.bus.where == config.bus.where;
        };
        if (std::ranges::any_of(publishers, announced_as))
            refuse_at(config, "bus",
                      "the name '" + config.bus.name +
                          "' is taken on this bus; allowed: each name once");
        publishers.push_back(std::move(config));
    }
    return publishers;
}

} // namespace

const std::vector<ConfigKey>& config_keys() {
    static netio::NeverDestroyed<Keys> all{[] {
        Keys keys;
        add_process(keys);
        add_publisher(keys);
        add_bus_and_keys(keys);
        add_sockets(keys);
        add_streams(keys);
        return keys;
    }()};
    return *all;
}

const std::vector<ConfigSection>& config_sections() {
    using Sections = std::vector<ConfigSection>;
    static netio::NeverDestroyed<Sections> sections{Sections{
        {"process", "The process", "At the top of the file."},
        {"loop", "`loop`", "`loop: MODE` is short for `loop: {mode: MODE}`."},
        {"fabric", "`fabric`", ""},
        {"metrics", "`metrics`",
         "`metrics: HOST:PORT` is short for `metrics: {listen: HOST:PORT}`."},
        {"publisher", "The publisher", "At the top of the file, or in each entry of `publishers`."},
        {"bus", "`bus`", "`bus: DIR` is short for `bus: {at: DIR}`."},
        {"keys", "`keys`", "`keys: FILE` is short for `keys: {file: FILE}`."},
        {"buffered", "`buffered`", ""},
        {"unbuffered", "`unbuffered`", ""},
        {"session", "`session`", ""},
        {"stream", "`streams`", "Each entry of the list."},
        {"source", "`source`", "A map has `file`, `files` or `recording`."},
        {"recording", "`recording`",
         "A path is short for `{file: PATH}`. The keys are those of "
         "[netio replay](recording.md#replay). The recorded order is kept, except among several "
         "loops, and between fids of different streams."},
        {"rate", "`rate`",
         "A number is short for `{per_second: NUMBER}`. A delayed stream catches up at most one "
         "second; a longer delay postpones the following messages."},
        {"trigger", "`triggers`",
         "The value of each name. All fids of its streams publish the same event before any of "
         "them begins the next event, except fids blocked by a slow subscriber, which catch up "
         "later."},
        {"faults", "`faults`",
         "Each value is a fraction from 0 to 1, and their sum is at most 1. The first message of a "
         "fid is correct. A subscriber that receives all messages must count the same numbers as "
         "the report (`faults`); `netio subscribe --verify` calls them `missing`, `duplicates`, "
         "`corrupt`, `reordered` and `truncated`."},
        {"size", "`size`",
         "A number of bytes is short for `{fixed: BYTES}`; a map has one of these keys. A pattern "
         "has at least 8 bytes, and at least 25 if messages are "
         "corrupted or truncated."},
        {"uniform", "`size: {uniform: ...}`", ""},
        {"normal", "`size: {normal: ...}`", ""},
        {"exponential", "`size: {exponential: ...}`", ""},
    }};
    return *sections;
}

std::string PublisherConfig::place_of(std::string_view key) const {
    const auto found = places.find(key);
    if (found != places.end()) return found->second;
    return file + ": " + std::string{key};
}

void refuse_at(const PublisherConfig& config, std::string_view key, const std::string& problem) {
    std::vector<netio::Address> addresses = config.listen;
    if (!config.metrics.listen.empty())
        addresses.push_back(netio::parse_address(config.metrics.listen));
    std::string text = problem;
    for (const netio::Address& each : addresses) {
        const std::string free_port = to_string(netio::Address{each.host, 0});
        const std::string shown = to_string(each);
        for (std::size_t at = 0; (at = text.find(free_port, at)) != std::string::npos;) {
            text.replace(at, free_port.size(), shown);
            at += shown.size();
        }
    }
    throw ConfigError{config.place_of(key) + ": " + text};
}

PublishConfig parse_publish_config(const std::string& text, const std::string& file,
                                   const std::string& folder) {
    const YamlValue document = YamlValue::document(text, file);
    const auto several = document.find("publishers");
    if (several) {
        refuse_publisher_keys(document);
        expect_keys(document, {"process"});
    } else {
        expect_keys(document, {"publisher", "process"});
    }
    PublishConfig config;
    ReadContext context{.file = file, .folder = folder};
    read_rows(document, "process", config, context);
    if (several) {
        config.publishers = read_publishers(*several, context);
    } else {
        config.publishers.push_back(read_publisher(document, context));
    }
    return config;
}

PublishConfig load_publish_config(const std::string& path) {
    std::ifstream in{path};
    if (!in || std::filesystem::is_directory(path)) {
        throw ConfigError{path + ": cannot be read (" +
                          (in ? "it is a folder" : std::strerror(errno)) +
                          "); allowed: the path of a YAML file"};
    }
    std::string text(largest_file_bytes + 1, ' ');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > largest_file_bytes) {
        throw ConfigError{
            path + ": larger than a megabyte; allowed: the path of a YAML file, not of data; a "
                   "million fids are one short line, 0-999999"};
    }
    return parse_publish_config(text, path, std::filesystem::path{path}.parent_path().string());
}

} // namespace apps
