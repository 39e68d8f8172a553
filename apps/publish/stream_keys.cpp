// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/key_table.hpp"

namespace apps::keys {
namespace {

constexpr std::uint64_t hour_ns = hour_ms * 1'000'000;

// When there is something, of rates and triggers.
void add_occasions(Table& table, const std::string& what) {
    table.add("burst", {whole(1, 1'000'000)}, "1",
              "so many " + what + " at once, and so much less often");
    table.add("timing", {word({"periodic", "poisson"})}, "periodic",
              "at equal distances, or each independent of the others");
    table.add(
        "train_ns", {whole(1, hour_ns)}, "no trains",
        "so long there are some, and the rate holds there; then none for `gap_ns`, as of trains of "
        "bunches in a collider");
    table.add("gap_ns", {whole(1, hour_ns)}, "none", "with `train_ns`");
}

void add_stream(Table& table) {
    table.begin("stream");
    table.required(
        "fids", {fids()},
        "`7`, `0x1f`, `0-63`, `0-63/2`, `{detector: 3, link: 0-23, elink: 0-39}`, `mask:M=V`, "
        "or a list; each in one stream only, a million at most "
        "([fids by their fields](discovery.md#fids-by-their-fields))");
    table.add("meaning", {text("TEXT")}, "none", "for those who find the fids on a bus");
    table.required(
        "source", {word({"pattern", "pipe"}), section("source")},
        "messages that prove themselves to `netio subscribe --verify`; standard input, for a "
        "single fid; or files");
    table.add("size", {bytes(1, largest_message), section("size")}, "64k; of a pattern required",
              "of a message; at most `largest_message`");
    table.add("rate", {word({"max"}), real(0, 1e9), section("rate")}, "max",
              "messages a second of all its fids together, or as fast as they are taken");
    table.add("trigger", {text("NAME")}, "none",
              "in place of a rate: with each of its events every fid has a message, with the same "
              "number");
    table.add("count", {whole(1, any_number)}, "until the source ends", "messages of each fid");
    table.add(
        "header", {text("HEX"), word({"event"})}, "none",
        "in front of each message: up to 8 bytes as `0xcafe01`, or the number of the event (of the "
        "message, where there is no trigger) in 8 bytes, little-endian; with "
        "`netio subscribe --verify` also `--header-bytes`");
    table.add("slices", {whole(1, 16)}, "1",
              "gathered from so many pieces of memory, which nobody sees but the network");
    table.add(
        "time_stamps", {flag()}, "false",
        "of a pattern: each message says when it was published, and `netio subscribe --verify` how "
        "long it took ([one-way latency](operations.md#one-way-latency))");
    table.add("faults", {section("faults")}, "none",
              "of a pattern: on purpose, to check who checks; the report says how many there were");
    table.add("status", {whole(0, 255)}, "0", "the status byte of each message");
    table.add("seed", {whole(0, any_number)}, "the process's, and the place of the stream",
              "of what is drawn for this stream");
    table.begin("source");
    table.add("file", {text("PATH")}, "", "one for all fids, relative to this file; or");
    table.add("files", {list(text("PATH"))}, "", "one for each fid");
    table.add("repeat", {flag()}, "false", "from the start again at the end");
    table.begin("rate");
    table.add("per_second", {real(0, 1e9)}, "`per_fid`",
              "messages of all fids together, on average; or");
    table.add("per_fid", {real(0, 1e9)}, "`per_second`", "of each fid");
    add_occasions(table, "messages");
    table.begin("trigger");
    table.required("per_second", {real(0, 1e9)}, "events, on average");
    add_occasions(table, "events");
    table.add("seed", {whole(0, any_number)}, "the process's", "of what is drawn for this trigger");
    table.begin("faults");
    const Shape part = real(0, 1);
    table.add("missing", {part}, "none", "which part of the messages is left out");
    table.add("duplicated", {part}, "none", "comes twice");
    table.add("corrupted", {part}, "none", "has a wrong bit behind its head");
    table.add("late", {part}, "none", "comes behind the next one of its fid");
    table.add("truncated", {part}, "none", "lacks its end");
}

void add_sizes(Table& table) {
    const Shape size = bytes(1, largest_message);
    table.begin("size");
    table.add("fixed", {size}, "", "always the same");
    table.add("uniform", {section("uniform")}, "", "each size as often as any other");
    table.add("normal", {section("normal")}, "", "around a mean");
    table.add("exponential", {section("exponential")}, "", "most are small, a few are large");
    table.add("list", {list(size)}, "", "these, in turn");
    table.begin("uniform");
    table.add("min", {size}, "the smallest that the source allows", "the smallest");
    table.required("max", {size}, "the largest");
    table.begin("normal");
    table.required("mean", {real(0, 1e9)}, "in bytes");
    table.required("stddev", {real(0, 1e9)}, "in bytes");
    table.add("min", {size}, "the smallest that the source allows", "smaller ones become this");
    table.required("max", {size}, "larger ones become this");
    table.begin("exponential");
    table.required("mean", {real(0, 1e9)}, "in bytes");
    table.add("min", {size}, "the smallest that the source allows", "smaller ones become this");
    table.required("max", {size}, "larger ones become this");
}

} // namespace

void add_streams(Table& table) {
    add_stream(table);
    add_sizes(table);
}

} // namespace apps::keys
