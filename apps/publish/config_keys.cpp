// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/config_keys.hpp"

#include "apps/metrics/metrics.hpp"
#include "apps/publish/key_table.hpp"
#include "netio/base/check.hpp"
#include "netio/base/never_destroyed.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace apps {
namespace {

using namespace keys;

using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::Publisher;
using netio::pubsub::PublishSocket;

constexpr std::uint64_t terabyte = std::uint64_t{1} << 40;

// --- defaults, as the sockets have them -----------------------------------------------------

std::string default_text(std::uint64_t number) {
    return std::to_string(number);
}
template <class Rep, class Period>
std::string default_text(std::chrono::duration<Rep, Period> time) {
    return std::to_string(time.count());
}
std::string default_text(bool value) {
    return value ? "true" : "false";
}
std::string shown_bytes(std::uint64_t number) {
    for (const auto& [unit, name] : {std::pair{1U << 30, "G"}, {1U << 20, "M"}, {1U << 10, "k"}}) {
        if (number > 0 && number % unit == 0) return fmt::format("{}{}", number / unit, name);
    }
    return std::to_string(number);
}

// --- the table ---------------------------------------------------------------------------------

void add_process(Table& table) {
    const netio::EventLoop::Options loop;
    const netio::FabricOptions fabric;
    table.begin("process");
    table.add("provider", {word({"auto", "tcp", "verbs"})}, "auto",
              "`auto`: verbs where the address belongs to an RDMA device, else tcp");
    table.add("fabric", {section("fabric")}, "", "limits of the connections");
    table.add("loop", {word({"blocking", "busy", "adaptive"}), section("loop")}, "blocking",
              "sleep when there is nothing to do, never sleep, or look for work for a while first");
    table.add("loops", {whole(1, 256)}, "1",
              "threads, each with a loop and a part of the fids of every publisher; the next one "
              "[listens](operations.md#several-loops) at the next port");
    table.add("seed", {whole(0, any_number)}, "1",
              "of everything that is drawn: the same seed, the same messages");
    table.add("publishers", {list(section("publisher"))}, "one",
              "several in one process: a list, and nothing else of the publisher's at the top");
    table.begin("loop");
    table.required("mode", {word({"blocking", "busy", "adaptive"})}, "as above");
    table.add("spin_us", {whole(0, 1'000'000)}, default_text(loop.spin),
              "`adaptive`: how long to look for work after the last");
    table.add("drain_limit", {whole(1, 1 << 20)}, default_text(loop.drain_limit),
              "pieces of work for each source in a turn");
    table.add("turn_limit_us", {whole(1, 1'000'000)}, default_text(loop.turn_limit),
              "how long a turn may spend on tasks, on sources and on timers each");
    table.begin("fabric");
    table.add("half_handshake_timeout_ms", {whole(1, hour_ms)},
              default_text(fabric.half_handshake_timeout),
              "tcp: how long to wait for the rest of a request that a kernel told of too early");
    table.add(
        "stranger_timeout_ms", {whole(1, hour_ms)}, default_text(fabric.stranger_timeout),
        "a tcp client that does not finish its handshake is cut off after one to two times this");
    table.add("strangers_per_host_limit", {whole(1, 1 << 20)},
              default_text(fabric.strangers_per_host_limit),
              "such clients of one machine at a time");
    table.add("windows_limit", {bytes(0, terabyte)}, shown_bytes(fabric.windows_limit),
              "bytes to which all windows together may grow (`session.window_limit`)");
    table.add("copies_limit", {bytes(0, terabyte)}, shown_bytes(fabric.copies_limit),
              "bytes of encrypted frames that may be under way together; beyond, one for each "
              "subscriber");
    table.add("queue_endpoint_limit", {whole(1, 1 << 20)},
              default_text(fabric.queue_endpoint_limit), "endpoints that share a completion queue");
    table.add("queue_entry_limit", {whole(1, 1 << 24)}, default_text(fabric.queue_entry_limit),
              "entries of a completion queue");
    table.begin("metrics");
    table.required("listen", {text("HOST:PORT")}, "where; port 0: any free one");
    table.add("open", {flag()}, "false",
              "also where other machines reach it: whoever does may read");
    table.add("fids", {whole(0, 1'000'000)}, default_text(MetricsArguments::fids_by_default),
              "of so many at most");
}

void add_publisher(Table& table) {
    const Publisher::Options options;
    table.begin("publisher");
    table.required("listen", {text("HOST:PORT"), list(text("HOST:PORT"))},
                   "where it listens; port 0: any free one, and the program says which");
    table.add("open", {flag()}, default_text(options.open),
              "listen also where other machines reach it: without keys whoever does may subscribe");
    table.add("name", {text("NAME")}, "its place in the list", "of one of several, for people");
    table.add("bus", {text("DIR"), section("bus")}, "nowhere",
              "where others [find](discovery.md) it by its fids: a directory, or etcd://HOST:PORT");
    table.add("metrics", {text("HOST:PORT"), section("metrics")}, "nowhere",
              "where [figures](monitoring.md) are shown while it runs");
    table.add("keys", {text("FILE"), section("keys")}, "none",
              "who may subscribe ([security](security.md)); nobody else is let in");
    table.add("protection", {word({"none", "peers", "integrity", "privacy"})}, "none",
              "with `keys`: what subscribers have to ask for at least");
    table.required("mode", {word({"unbuffered", "buffered"})},
                   "zero-copy from registered memory, or copied into pages with others");
    table.add("buffered", {section("buffered")}, "", "with `mode: buffered`");
    table.add("unbuffered", {section("unbuffered")}, "", "with `mode: unbuffered`");
    table.add("session", {section("session")}, "", "of the connections to subscribers");
    table.add("heartbeat_ms", {whole(0, 65535)}, default_text(options.session.heartbeat),
              "an idle connection shows a sign of life so often; 0: never");
    table.add("dead_after_ms", {whole(0, hour_ms)}, default_text(options.session.dead_after),
              "and is given up after so long without; 0: never, else at least two heartbeats");
    table.add("slow_subscribers", {word({"block", "drop", "disconnect", "newest"})}, "block",
              "what becomes of a subscriber that has its share "
              "([slow subscribers](operations.md#slow-subscribers))");
    table.add("disconnect_after_ms", {whole(1, hour_ms)}, default_text(options.disconnect_after),
              "`disconnect`: after so long without progress");
    table.add("largest_message", {bytes(1, largest_message)},
              shown_bytes(options.largest_message_bytes),
              "subscribers that cannot take it are rejected");
    table.add("subscriber_limit", {whole(1, 1 << 20)}, default_text(options.subscriber_limit),
              "one more is rejected, and tries again");
    table.add(
        "links_per_host", {whole(0, 1 << 20)}, "0",
        "so many of them of one host (IPv6: of one /64), where there are no `keys`; 0: half of "
        "`subscriber_limit`");
    table.add("ranges_per_subscriber_limit", {whole(1, 1 << 24)},
              default_text(options.ranges_per_subscriber_limit),
              "beyond, a subscription is refused");
    table.add(
        "answer_limit", {whole(1, 1 << 24)}, default_text(options.answer_limit),
        "requests and answers that may wait for one subscriber; one more request ends its session");
    table.add("close_timeout_ms", {whole(1, year_ms)}, default_text(options.close_timeout),
              "at the end: how long a subscriber may take nothing before it is cut off");
    table.add("close_limit_ms", {whole(1, year_ms)}, default_text(options.close_limit),
              "at the end: how long it may take in all; not less than `close_timeout_ms`");
    table.add("wait_subscribers", {whole(0, 1'000'000)}, "1 if a stream has no rate, else 0",
              "begin when so many have subscribed");
    table.add("triggers", {names(section("trigger"))}, "none",
              "events that streams have in common, by their names");
    table.required("streams", {list(section("stream"))}, "what it publishes");
    table.begin("bus");
    table.required("at", {text("DIR")},
                   "the directory, relative to this file, or etcd://HOST:PORT");
    table.add("name", {text("NAME")}, "HOST-PID-0, the place in the list",
              "under which it is found");
    table.add("advertise", {text("HOST")}, "the name of this host",
              "in place of an address that stands for all");
    table.add("lease_ms", {whole(100, hour_ms)}, default_text(netio::pubsub::BusOptions{}.lease),
              "who has shown no sign of life for so long is gone; the same for all on a bus");
    table.begin("keys");
    table.required("file", {text("FILE")}, "made by `netio key`; read again when it changes");
    table.add("links_per_host", {whole(1, 1 << 20)},
              default_text(std::uint64_t{netio::ServerKeys::Options{}.links_per_host}),
              "connections of a host at once; one more is rejected, and may try again");
    table.add("look_interval_ms", {whole(1, hour_ms)},
              default_text(netio::ServerKeys::Options{}.look_interval),
              "between two looks at the file");
}

void add_sockets(Table& table) {
    const BufferedPublishSocket::Options paged;
    const PublishSocket::Options lent;
    const netio::SessionOptions session = Publisher::Options{}.session;
    table.begin("buffered");
    table.add("page_size", {bytes(256, largest_message)}, shown_bytes(paged.page_bytes),
              "a page, and the largest frame; messages and fids share it");
    table.add("pages", {whole(2, 1 << 20)}, default_text(paged.page_count),
              "times `page_size`: the memory of all that waits or is being sent");
    table.add("share", {bytes(1, terabyte)}, "1M, with `drop` 4M",
              "what one subscriber may hold before it is slow: at most half of the memory");
    table.add("newest", {bytes(1, terabyte)}, shown_bytes(paged.newest_bytes),
              "`newest`: what is kept for one subscriber besides, the last message of each fid");
    table.add(
        "watermark", {bytes(1, largest_message)}, "none",
        "a page leaves when it holds this many bytes; at most `page_size`. Without it, at about "
        "64 KiB if its subscribers are idle, and when it is full if they are busy");
    table.add("flush_us", {whole(0, hour_ms * 1000)}, default_text(paged.flush_time),
              "the longest that a message waits for its page; 0: no timer");
    table.add("flush_when_idle", {flag()}, default_text(paged.flush_when_idle),
              "a page leaves as soon as its connections have nothing to send");
    table.begin("unbuffered");
    table.add("outstanding", {whole(2, 1 << 20)}, default_text(lent.outstanding_limit),
              "messages whose memory is lent to the network at once");
    table.add("remainder", {whole(1, 1 << 20)}, "a quarter of `outstanding`, and 64 at most",
              "of which so many may wait for one subscriber: at most half of `outstanding`");
    table.add("memory", {bytes(1, terabyte)}, "256M",
              "of all messages that are lent; it is registered");
    table.begin("session");
    table.add("receive_bytes", {bytes(256, std::numeric_limits<std::uint32_t>::max())},
              shown_bytes(session.receive_bytes), "of a buffer for a subscriber's requests");
    table.add("receive_count", {whole(4, 16384)}, default_text(session.receive_count),
              "such buffers");
    table.add("window_limit", {bytes(0, terabyte)}, shown_bytes(session.window_limit),
              "bytes to which these may grow where the way to a subscriber is long; 0: not at all");
    table.add("send_count", {whole(2, 1024)}, default_text(session.send_count),
              "frames in the fabric's hands at once");
    table.add("handshake_timeout_ms", {whole(1, year_ms)}, default_text(session.handshake_timeout),
              "of a peer that has connected and says nothing");
    table.add("key_bytes", {bytes(1, std::uint64_t{1} << 34)}, shown_bytes(session.key_bytes),
              "with `integrity` and `privacy`: the key of what is sent changes so often");
    table.add("close_timeout_ms", {whole(1, year_ms)}, default_text(session.close_timeout),
              "the end of one connection: how long the peer may take nothing");
    table.add("close_limit_ms", {whole(1, year_ms)}, default_text(session.close_limit),
              "the same in all; not less than `close_timeout_ms`");
}

} // namespace

const std::vector<ConfigKey>& config_keys() {
    static netio::NeverDestroyed<Table> all{[] {
        Table table;
        add_process(table);
        add_publisher(table);
        add_sockets(table);
        add_streams(table);
        return table;
    }()};
    return all->keys;
}

const ConfigKey& config_key(std::string_view section_name, std::string_view name) {
    const auto& keys = config_keys();
    const auto found = std::ranges::find_if(keys, [&](const ConfigKey& key) {
        return key.section == section_name && key.name == name;
    });
    NETIO_CHECK(found != keys.end());
    return *found;
}

const Shape& shape_of(const ConfigKey& key, Shape::Kind kind) {
    const auto found = std::ranges::find(key.shapes, kind, &Shape::kind);
    NETIO_CHECK(found != key.shapes.end());
    return *found;
}

const std::vector<ConfigSection>& config_sections() {
    using Sections = std::vector<ConfigSection>;
    static netio::NeverDestroyed<Sections> sections{Sections{
        {"process", "The process", "At the top of the file."},
        {"loop", "`loop`", "`loop: MODE` is short for `loop: {mode: MODE}`."},
        {"fabric", "`fabric`", ""},
        {"metrics", "`metrics`",
         "`metrics: HOST:PORT` is short for `metrics: {listen: HOST:PORT}`."},
        {"publisher", "The publisher",
         "Also at the top of the file; or each of `publishers`, where there are several."},
        {"bus", "`bus`", "`bus: DIR` is short for `bus: {at: DIR}`."},
        {"keys", "`keys`", "`keys: FILE` is short for `keys: {file: FILE}`."},
        {"buffered", "`buffered`", ""},
        {"unbuffered", "`unbuffered`", ""},
        {"session", "`session`", ""},
        {"stream", "`streams`", "Each entry of the list."},
        {"source", "`source`", "A map is one of `file` and `files`."},
        {"rate", "`rate`",
         "A number is short for `{per_second: NUMBER}`. What nobody takes in time is made up for "
         "by one second at most; what follows comes later then."},
        {"trigger", "`triggers`",
         "Behind each name. All fids of its streams publish the same event before one of them "
         "begins the next, but for those that a slow subscriber holds up: these catch up."},
        {"faults", "`faults`",
         "Each a number from 0 to 1, all together 1 at most. The first message of a fid is sound. "
         "Who has seen all messages must find just as many as the report says (`faults`); "
         "`netio subscribe --verify` calls them `missing`, `duplicates`, `corrupt`, `reordered` "
         "and `truncated`."},
        {"size", "`size`",
         "A number of bytes is short for `{fixed: BYTES}`; a map has one of these. A pattern has 8 "
         "bytes at least, 32 with time stamps, and one more to be corrupted or truncated (25, "
         "33)."},
        {"uniform", "`size: {uniform: ...}`", ""},
        {"normal", "`size: {normal: ...}`", ""},
        {"exponential", "`size: {exponential: ...}`", ""},
    }};
    return *sections;
}

} // namespace apps
