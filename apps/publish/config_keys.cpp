// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/config_keys.hpp"

#include "apps/metrics/metrics.hpp"
#include "netio/base/check.hpp"
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

using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::Publisher;
using netio::pubsub::PublishSocket;

constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t hour_ms = 3'600'000;
constexpr std::uint64_t year_ms = 24 * 365 * hour_ms;
constexpr std::uint64_t largest_message = netio::pubsub::largest_message_limit;
constexpr std::uint64_t terabyte = std::uint64_t{1} << 40;

// --- shapes ---------------------------------------------------------------------------------

Shape text(std::string what) {
    return {.kind = Shape::Kind::text, .name = std::move(what), .words = {}, .of = {}};
}
Shape whole(std::uint64_t min, std::uint64_t max) {
    return {.kind = Shape::Kind::whole, .min = min, .max = max, .name = {}, .words = {}, .of = {}};
}
Shape real(double above, double most) {
    return {
        .kind = Shape::Kind::real, .above = above, .most = most, .name = {}, .words = {}, .of = {}};
}
Shape bytes(std::uint64_t min, std::uint64_t max) {
    return {.kind = Shape::Kind::bytes, .min = min, .max = max, .name = {}, .words = {}, .of = {}};
}
Shape flag() {
    return {.kind = Shape::Kind::flag, .name = {}, .words = {}, .of = {}};
}
Shape word(std::vector<std::string> words) {
    return {.kind = Shape::Kind::word, .name = {}, .words = std::move(words), .of = {}};
}
Shape fids() {
    return {.kind = Shape::Kind::fids, .name = {}, .words = {}, .of = {}};
}
Shape section(std::string name) {
    return {.kind = Shape::Kind::section, .name = std::move(name), .words = {}, .of = {}};
}
Shape list(Shape of) {
    return {.kind = Shape::Kind::list, .name = {}, .words = {}, .of = {std::move(of)}};
}

// --- defaults, as the sockets have them -----------------------------------------------------

std::string shown(std::uint64_t number) {
    return std::to_string(number);
}
template <class Rep, class Period>
std::string shown(std::chrono::duration<Rep, Period> time) {
    return std::to_string(time.count());
}
std::string shown(bool value) {
    return value ? "true" : "false";
}
std::string shown_bytes(std::uint64_t number) {
    for (const auto& [unit, name] : {std::pair{1U << 30, "G"}, {1U << 20, "M"}, {1U << 10, "k"}}) {
        if (number > 0 && number % unit == 0) return fmt::format("{}{}", number / unit, name);
    }
    return std::to_string(number);
}

// --- the table ------------------------------------------------------------------------------

class Table {
  public:
    Table() {
        process();
        publisher();
        sockets();
        streams();
        sizes();
    }
    std::vector<ConfigKey> keys;

  private:
    void begin(std::string section) { section_ = std::move(section); }
    void required(std::string name, std::vector<Shape> shapes, std::string meaning) {
        add(std::move(name), std::move(shapes), "", std::move(meaning));
        keys.back().required = true;
    }
    void add(std::string name, std::vector<Shape> shapes, std::string fallback,
             std::string meaning) {
        keys.push_back({.section = section_,
                        .name = std::move(name),
                        .shapes = std::move(shapes),
                        .fallback = std::move(fallback),
                        .meaning = std::move(meaning)});
    }

    void process();
    void publisher();
    void sockets();
    void streams();
    void sizes();

    std::string section_;
};

void Table::process() {
    const netio::EventLoop::Options loop;
    const netio::FabricOptions fabric;
    begin("process");
    add("provider", {word({"auto", "tcp", "verbs"})}, "auto",
        "`auto`: verbs where the address belongs to an RDMA device, else tcp");
    add("fabric", {section("fabric")}, "", "limits of the connections");
    add("loop", {word({"blocking", "busy", "adaptive"}), section("loop")}, "blocking",
        "sleep when there is nothing to do, never sleep, or look for work for a while first");
    add("metrics", {text("HOST:PORT"), section("metrics")}, "nowhere",
        "where [figures](monitoring.md) are shown while it runs");
    add("seed", {whole(0, any_number)}, "1",
        "of everything that is drawn: the same seed, the same messages");
    begin("loop");
    required("mode", {word({"blocking", "busy", "adaptive"})}, "as above");
    add("spin_us", {whole(0, 1'000'000)}, shown(loop.spin),
        "`adaptive`: how long to look for work after the last");
    add("drain_limit", {whole(1, 1 << 20)}, shown(loop.drain_limit),
        "pieces of work for each source in a turn");
    add("turn_limit_us", {whole(1, 1'000'000)}, shown(loop.turn_limit),
        "how long a turn may spend on tasks, on sources and on timers each");
    begin("fabric");
    add("half_handshake_timeout_ms", {whole(1, hour_ms)}, shown(fabric.half_handshake_timeout),
        "tcp: how long to wait for the rest of a request that a kernel told of too early");
    add("stranger_timeout_ms", {whole(1, hour_ms)}, shown(fabric.stranger_timeout),
        "a tcp client that does not finish its handshake is cut off after one to two times this");
    add("strangers_per_host_limit", {whole(1, 1 << 20)}, shown(fabric.strangers_per_host_limit),
        "such clients of one machine at a time");
    add("queue_endpoint_limit", {whole(1, 1 << 20)}, shown(fabric.queue_endpoint_limit),
        "endpoints that share a completion queue");
    add("queue_entry_limit", {whole(1, 1 << 24)}, shown(fabric.queue_entry_limit),
        "entries of a completion queue");
    begin("metrics");
    required("listen", {text("HOST:PORT")}, "where; port 0: any free one");
    add("open", {flag()}, "false", "also where other machines reach it: whoever does may read");
    add("fids", {whole(0, 1'000'000)}, shown(MetricsArguments{}.fids), "of so many at most");
}

void Table::publisher() {
    const Publisher::Options options;
    begin("publisher");
    required("listen", {text("HOST:PORT"), list(text("HOST:PORT"))},
             "where it listens; port 0: any free one, and the program says which");
    add("open", {flag()}, shown(options.open),
        "listen also where other machines reach it: without keys whoever does may subscribe");
    add("bus", {text("DIR"), section("bus")}, "nowhere",
        "where others [find](discovery.md) it by its fids: a directory, or etcd://HOST:PORT");
    add("keys", {text("FILE"), section("keys")}, "none",
        "who may subscribe ([security](security.md)); nobody else is let in");
    add("protection", {word({"none", "peers", "integrity", "privacy"})}, "none",
        "with `keys`: what subscribers have to ask for at least");
    required("mode", {word({"unbuffered", "buffered"})},
             "zero-copy from registered memory, or copied into pages with others");
    add("buffered", {section("buffered")}, "", "with `mode: buffered`");
    add("unbuffered", {section("unbuffered")}, "", "with `mode: unbuffered`");
    add("session", {section("session")}, "", "of the connections to subscribers");
    add("heartbeat_ms", {whole(0, 65535)}, shown(options.session.heartbeat),
        "an idle connection shows a sign of life so often; 0: never");
    add("dead_after_ms", {whole(0, hour_ms)}, shown(options.session.dead_after),
        "and is given up after so long without; 0: never, else at least two heartbeats");
    add("slow_subscribers", {word({"block", "drop", "disconnect"})}, "block",
        "what becomes of a subscriber that has its share "
        "([slow subscribers](operations.md#slow-subscribers))");
    add("disconnect_after_ms", {whole(1, hour_ms)}, shown(options.disconnect_after),
        "`disconnect`: after so long without progress");
    add("largest_message", {bytes(1, largest_message)}, shown_bytes(options.largest_message_bytes),
        "subscribers that cannot take it are rejected");
    add("subscriber_limit", {whole(1, 1 << 20)}, shown(options.subscriber_limit),
        "one more is rejected, and tries again");
    add("ranges_per_subscriber_limit", {whole(1, 1 << 24)},
        shown(options.ranges_per_subscriber_limit), "beyond, a subscription is refused");
    add("answer_limit", {whole(1, 1 << 24)}, shown(options.answer_limit),
        "answers that may wait for a subscriber that asks and does not read");
    add("close_timeout_ms", {whole(1, year_ms)}, shown(options.close_timeout),
        "at the end: how long a subscriber may take nothing before it is cut off");
    add("close_limit_ms", {whole(1, year_ms)}, shown(options.close_limit),
        "at the end: how long it may take in all; not less than `close_timeout_ms`");
    add("wait_subscribers", {whole(0, 1'000'000)}, "1 if a stream has no rate, else 0",
        "begin when so many have subscribed");
    required("streams", {list(section("stream"))}, "what it publishes");
    begin("bus");
    required("at", {text("DIR")}, "the directory, relative to this file, or etcd://HOST:PORT");
    add("name", {text("NAME")}, "HOST-PID-0", "under which it is found");
    add("advertise", {text("HOST")}, "the name of this host",
        "in place of an address that stands for all");
    add("lease_ms", {whole(100, hour_ms)}, shown(netio::pubsub::BusOptions{}.lease),
        "who has shown no sign of life for so long is gone; the same for all on a bus");
    begin("keys");
    required("file", {text("FILE")}, "made by `netio key`; read again when it changes");
    add("links_per_host", {whole(1, 1 << 20)},
        shown(std::uint64_t{netio::ServerKeys::Options{}.links_per_host}),
        "connections of a host at once; one more is rejected, and may try again");
    add("look_interval_ms", {whole(1, hour_ms)}, shown(netio::ServerKeys::Options{}.look_interval),
        "between two looks at the file");
}

void Table::sockets() {
    const BufferedPublishSocket::Options paged;
    const PublishSocket::Options lent;
    const netio::SessionOptions session = Publisher::Options{}.session;
    begin("buffered");
    add("page_size", {bytes(256, largest_message)}, shown_bytes(paged.page_bytes),
        "a page, and the largest frame; messages and fids share it");
    add("pages", {whole(2, 1 << 20)}, shown(paged.page_count),
        "times `page_size`: the memory of all that waits or is being sent");
    add("share", {bytes(1, terabyte)}, "1M, with `drop` 4M",
        "what one subscriber may hold before it is slow: at most half of the memory");
    add("watermark", {bytes(1, largest_message)}, "a full page",
        "a page leaves when it holds so much; at most `page_size`");
    add("flush_us", {whole(0, hour_ms * 1000)}, shown(paged.flush_time),
        "the longest that a message waits for its page; 0: no timer");
    add("flush_when_idle", {flag()}, shown(paged.flush_when_idle),
        "a page leaves as soon as its connections have nothing to send");
    begin("unbuffered");
    add("outstanding", {whole(1, 1 << 20)}, shown(lent.outstanding_limit),
        "messages whose memory is lent to the network at once");
    add("remainder", {whole(1, 1 << 20)}, "a quarter of `outstanding`, and 64 at most",
        "of which so many may wait for one subscriber: at most half of `outstanding`");
    add("memory", {bytes(1, terabyte)}, "256M", "of all messages that are lent; it is registered");
    begin("session");
    add("receive_bytes", {bytes(256, std::numeric_limits<std::uint32_t>::max())},
        shown_bytes(session.receive_bytes), "of a buffer for a subscriber's requests");
    add("receive_count", {whole(4, 16384)}, shown(session.receive_count), "such buffers");
    add("send_count", {whole(2, 1024)}, shown(session.send_count),
        "frames in the fabric's hands at once");
    add("handshake_timeout_ms", {whole(1, year_ms)}, shown(session.handshake_timeout),
        "of a peer that has connected and says nothing");
    add("key_bytes", {bytes(1, std::uint64_t{1} << 34)}, shown_bytes(session.key_bytes),
        "with `integrity` and `privacy`: the key of what is sent changes so often");
    add("close_timeout_ms", {whole(1, year_ms)}, shown(session.close_timeout),
        "the end of one connection: how long the peer may take nothing");
    add("close_limit_ms", {whole(1, year_ms)}, shown(session.close_limit),
        "the same in all; not less than `close_timeout_ms`");
}

void Table::streams() {
    begin("stream");
    required("fids", {fids()},
             "`7`, `0x1f`, `0-63`, `0-63/2`, `{detector: 3, link: 0-23, elink: 0-39}`, `mask:M=V`, "
             "or a list; each in one stream only, a million at most "
             "([fids by their fields](discovery.md#fids-by-their-fields))");
    add("meaning", {text("TEXT")}, "none", "for those who find the fids on a bus");
    required("source", {word({"pattern", "pipe"}), section("source")},
             "messages that prove themselves to `netio subscribe --verify`; standard input, for a "
             "single fid; or files");
    add("size", {bytes(1, largest_message), section("size")}, "64k; of a pattern required",
        "of a message; at most `largest_message`");
    add("rate", {word({"max"}), real(0, 1e9), section("rate")}, "max",
        "messages a second of all its fids together, or as fast as they are taken");
    add("count", {whole(1, any_number)}, "until the source ends", "messages of each fid");
    add("status", {whole(0, 255)}, "0", "the status byte of each message");
    add("seed", {whole(0, any_number)}, "the process's, and the place of the stream",
        "of what is drawn for this stream");
    begin("source");
    add("file", {text("PATH")}, "", "one for all fids, relative to this file; or");
    add("files", {list(text("PATH"))}, "", "one for each fid");
    add("repeat", {flag()}, "false", "from the start again at the end");
    begin("rate");
    required("per_second", {real(0, 1e9)}, "messages a second, on average");
    add("burst", {whole(1, 1'000'000)}, "1", "so many at a time");
}

void Table::sizes() {
    const Shape size = bytes(1, largest_message);
    begin("size");
    add("fixed", {size}, "", "always the same");
    add("uniform", {section("uniform")}, "", "each size as often as any other");
    add("normal", {section("normal")}, "", "around a mean");
    add("exponential", {section("exponential")}, "", "most are small, a few are large");
    add("list", {list(size)}, "", "these, in turn");
    begin("uniform");
    add("min", {size}, "the smallest that the source allows", "the smallest");
    required("max", {size}, "the largest");
    begin("normal");
    required("mean", {real(0, 1e9)}, "in bytes");
    required("stddev", {real(0, 1e9)}, "in bytes");
    add("min", {size}, "the smallest that the source allows", "smaller ones become this");
    required("max", {size}, "larger ones become this");
    begin("exponential");
    required("mean", {real(0, 1e9)}, "in bytes");
    add("min", {size}, "the smallest that the source allows", "smaller ones become this");
    required("max", {size}, "larger ones become this");
}

} // namespace

const std::vector<ConfigKey>& config_keys() {
    static const Table table;
    return table.keys;
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
    static const std::vector<ConfigSection> sections = {
        {"process", "The process", "At the top of the file."},
        {"loop", "`loop`", "`loop: MODE` is short for `loop: {mode: MODE}`."},
        {"fabric", "`fabric`", ""},
        {"metrics", "`metrics`",
         "`metrics: HOST:PORT` is short for `metrics: {listen: HOST:PORT}`."},
        {"publisher", "The publisher", "Also at the top of the file."},
        {"bus", "`bus`", "`bus: DIR` is short for `bus: {at: DIR}`."},
        {"keys", "`keys`", "`keys: FILE` is short for `keys: {file: FILE}`."},
        {"buffered", "`buffered`", ""},
        {"unbuffered", "`unbuffered`", ""},
        {"session", "`session`", ""},
        {"stream", "`streams`", "Each entry of the list."},
        {"source", "`source`", "A map is one of `file` and `files`."},
        {"rate", "`rate`", ""},
        {"size", "`size`",
         "A number of bytes is short for `{fixed: BYTES}`; a map has one of these. 24 bytes at "
         "least of a pattern."},
        {"uniform", "`size: {uniform: ...}`", ""},
        {"normal", "`size: {normal: ...}`", ""},
        {"exponential", "`size: {exponential: ...}`", ""},
    };
    return sections;
}

} // namespace apps
