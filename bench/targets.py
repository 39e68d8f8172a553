# SPDX-License-Identifier: Apache-2.0
"""The important ratios from the rows of one run: the targets, and the measured values."""

import math

PEERS = ("zeromq", "nng", "cyclonedds", "ucx")
RAW = ("raw-coalesced", "raw-unbatched")


NOT_MEASURED = math.nan  # chosen, but no run counted; None: not chosen


class Results:
    def __init__(self, rows):
        self.rows = rows

    def medians(self, workload, subjects, metric, **parameters):
        subjects = (subjects,) if isinstance(subjects, str) else subjects
        rows = [
            row
            for row in self.rows
            if row["workload"] == workload
            and row["subject"] in subjects
            and all(row["parameters"].get(name) == value for name, value in parameters.items())
        ]
        found = [row["median"] for row in rows if row["metric"] == metric and row["runs"] > 0]
        return found or [NOT_MEASURED for row in rows if row["runs"] == 0][:1]

    def best(self, *arguments, **parameters):
        return max(self.medians(*arguments, **parameters), default=None)

    def least(self, *arguments, **parameters):
        return min(self.medians(*arguments, **parameters), default=None)

    def values(self, workload, parameter):
        found = {row["parameters"].get(parameter) for row in self.rows if row["workload"] == workload}
        return sorted(value for value in found if value is not None)


def ratio(ours, theirs):
    return None if ours is None or not theirs else ours / theirs


def throughput(results):
    def fraction(workload, theirs, metric="messages_per_s", **parameters):
        ours = results.best(workload, "netio", metric, **parameters)
        return ratio(ours, results.best(workload, theirs, metric, **parameters))

    yield "W1", "of raw TCP, coalesced", "at least", 0.6, fraction("W1", "raw-coalesced")
    yield "W1", "of ZeroMQ", "at least", 6, fraction("W1", "zeromq")
    cost = results.least("W1", "netio", "cpu_s_per_million")
    yield "W1", "CPU seconds per million messages", "at most", 0.15, cost
    yield from sizes(results, fraction)
    for subscribers in results.values("W4", "subscribers"):
        for size, least in ((1024, 0.7), (65536, 0.85)):
            found = fraction("W4", RAW, size=size, subscribers=subscribers)
            yield "W4", f"1 to {subscribers}, {size} B, of raw TCP", "at least", least, found
    for size in results.values("W16", "size"):
        for fids in results.values("W16", "fids"):
            found = fraction("W16", "raw-coalesced", size=size, fids=fids)
            yield "W16", f"{size} B, buffered, {fids} fids: of raw TCP, coalesced", "at least", 0.95, found
    for size in results.values("W7", "size"):
        least = 0.95 if size >= 65536 else None
        yield "W7", f"{size} B, of plain fi_writedata", "at least", least, fraction("W7", "plain-libfabric", size=size)
        yield "W7", f"{size} B, of remote writes", "at least", 0.95, fraction("W7", "netio-writes", size=size)
        yield "W7", f"{size} B, of raw TCP", "at least", None, fraction("W7", RAW, size=size)
    aes = results.best("W9", "openssl", "gbit_per_s")
    for size in results.values("W9", "size"):
        plain = results.best("W9", "netio", "gbit_per_s", size=size, protection="no keys")
        # The time that one core needs for both, one after the other.
        in_turn = plain * aes / (plain + aes) if plain and aes else None
        for level in ("integrity", "privacy"):
            sealed = results.best("W9", "netio", "gbit_per_s", size=size, protection=level)
            yield "W9", f"{size} B, {level}, of U A / (U + A)", "at least", 0.85, ratio(sealed, in_turn)
        peers = results.best("W9", "netio", "gbit_per_s", size=size, protection="peers")
        yield "W9", f"{size} B, peers, of no keys", "at least", None, ratio(peers, plain)
    many = results.best("W5", "netio", "messages_per_s", fids=1000)
    one = results.best("W5", "netio", "messages_per_s", fids=1)
    yield "W5", "1000 fids: rate, of one fid's", "at least", 0.85, ratio(many, one)
    raw = results.best("W5", "raw-coalesced", "messages_per_s", fids=1000)
    yield "W5", "1000 fids: rate, of raw TCP with as many", "at least", 0.9, ratio(many, raw)
    for pieces in results.values("W10", "pieces"):
        yield "W10", f"{pieces} pieces, of raw TCP", "at least", None, fraction("W10", RAW, pieces=pieces)
    few = results.best("W10", "netio", "messages_per_s", pieces=3)
    yield "W10", "28 pieces, of 3", "at least", 0.8, ratio(results.best("W10", "netio", "messages_per_s", pieces=28), few)
    few = results.best("W11", "netio", "messages_per_s", groups=64)
    found = ratio(results.best("W11", "netio", "messages_per_s", groups=1280), few)
    yield "W11", "1280 groups, of 64", "at least", 0.5, found
    for subject, name, size in (("netio", "publish/subscribe", 1024), ("netio-stream", "the stream", 65536)):
        ours = results.best("W13", subject, "gbit_per_s", size=size)
        found = ratio(ours, results.best("W13", RAW, "gbit_per_s", size=size))
        yield "W13", f"20 ms there and back, {name}: of raw TCP", "at least", 0.9, found
    for size in results.values("W14", "size"):
        one, two = (results.least("W14", "netio", "publisher_cpu_s_per_million", size=size, loops=loops)
                    for loops in (1, 2))
        yield "W14", f"{size} B, two loops: CPU per message, of one", "at most", 1.05, ratio(two, one)
    for size in results.values("W15", "size"):
        socket = results.best("W15", "netio", "messages_per_s", size=size, form="buffered")
        for form, least in (("callback", 0.9 if size == 40 else None), ("batches", 0.5 if size == 40 else 0.8),
                            ("messages", None)):
            found = ratio(results.best("W15", "netio", "messages_per_s", size=size, form=form), socket)
            yield "W15", f"{size} B, a client, {form}: of the socket of one thread", "at least", least, found
        if size >= 65536:  # kept where they arrived and read by another thread
            ours, read = (results.best("W15", "netio", "messages_per_s", size=size, form=form)
                          for form in ("messages", "callback"))
            yield "W15", f"{size} B, read by another thread: of read in the function", "at least", 0.95, ratio(ours, read)


def sizes(results, fraction):
    for size in results.values("W2", "size"):
        of_raw = 0.9 if size == 256 else 0.85 if size <= 256 * 1024 else None
        yield "W2", f"{size} B, of the better raw form", "at least", of_raw, fraction("W2", RAW, size=size)
        yield "W2", f"{size} B, of plain libfabric", "at least", 0.95, fraction("W2", "plain-libfabric", size=size)
        yield "W2", f"{size} B, of the best peer", "more than", 1, fraction("W2", PEERS, size=size)
    for size in (256 * 1024, 1024 * 1024):
        ours = results.best("W2", "netio", "messages_per_s", size=size, form="buffered")
        raw = results.best("W2", "raw-coalesced", "messages_per_s", size=size)
        yield "W2", f"{size} B, buffered: of raw TCP, coalesced", "at least", 0.95, ratio(ours, raw)
    # Small zero-copy messages, each sent alone.
    for size, least in ((64, 3e6), (1024, 15e9 / 8 / 1024), (4096, 20e9 / 8 / 4096), (16384, 30e9 / 8 / 16384)):
        ours = results.best("W2", "netio", "messages_per_s", size=size, form="unbuffered")
        yield "W2", f"{size} B, unbuffered: messages per second", "at least", round(least), ours
        for name, theirs in (("raw TCP, unbatched", "raw-unbatched"), ("UCX", "ucx"), ("the best peer", PEERS)):
            found = ratio(ours, results.best("W2", theirs, "messages_per_s", size=size))
            yield "W2", f"{size} B, unbuffered: of {name}", "more than", 1, found


def latency(results):
    for size in results.values("W3", "size"):
        for mode in ("blocking", "adaptive", "busy"):
            for metric in ("p50_us", "p99_us"):
                for form in ("session", "unbuffered"):
                    ours = results.least("W3", "netio", metric, size=size, mode=mode, form=form)
                    theirs = results.least("W3", "plain-libfabric", metric, size=size, mode=mode)
                    what = f"{size} B, {mode}, {ROUND_TRIPS[form]}: {metric[:3]} of plain libfabric"
                    yield "W3", what, "at most", 1.15, ratio(ours, theirs)
        for form in ("session", "unbuffered"):
            ours = results.least("W3", "netio", "p50_us", size=size, mode="adaptive", form=form)
            raw = results.least("W3", "raw-unbatched", "p50_us", size=size, mode="blocking")
            yield "W3", f"{size} B, adaptive, {ROUND_TRIPS[form]}: p50 of raw TCP blocking", "at most", 1.25, ratio(ours, raw)
        for mode in ("blocking", "busy"):
            ours = results.least("W3", "netio", "p50_us", size=size, mode=mode, form="session")
            raw = results.least("W3", "raw-unbatched", "p50_us", size=size, mode=mode)
            yield "W3", f"{size} B, {mode}, a bare session: p50 of raw TCP", "at most", None, ratio(ours, raw)
        for form, what in (("message-socket", "a message socket"), ("request-loop", "requests on a loop")):
            ours = results.least("W3", "netio", "p50_us", size=size, mode="blocking", form=form)
            bare = results.least("W3", "netio", "p50_us", size=size, mode="blocking", form="session")
            yield "W3", f"{size} B, blocking, {what}: p50 of a bare session", "at most", 1.1, ratio(ours, bare)
        parts = [results.least("W3", "netio", "p50_us", size=size, mode="blocking", form=form)
                 for form in ("request-loop", "hand-over", "hand-over")]  # both programs hand over, there and back
        ours = results.least("W3", "netio", "p50_us", size=size, mode="blocking", form="request")
        yield ("W3", f"{size} B, blocking, requests from any thread: p50 of those on a loop and four hand-overs", "at most",
               1.1, ratio(ours, None if None in parts else sum(parts)))
        ours = results.least("W3", "netio", "p50_us", size=size, mode="busy")
        peer = results.least("W3", "cyclonedds", "p50_us", size=size)
        yield "W3", f"{size} B, busy, the better of both: p50 of Cyclone DDS", "less than", 1, ratio(ours, peer)

    def cpu(subject, **parameters):
        sides = ("publisher_cpu_percent", "subscriber_cpu_percent")
        found = [results.least("W6", subject, side, **parameters) for side in sides]
        return None if None in found else sum(found)

    ours = cpu("netio", form="buffered")
    yield "W6", "CPU of both sides, of ZeroMQ", "at most", 0.5, ratio(ours, cpu("zeromq"))
    ours = results.least("W6", "netio", "p99_us", form="buffered")
    zeromq = results.least("W6", "zeromq", "p99_us")
    yield "W6", "p99, of ZeroMQ", "less than", 1, ratio(ours, zeromq)
    yield "W6", "p99, us", "at most", 60, ours
    ticks = results.least("W6", "ticks", "cpu_us_per_tick")

    def of_sending(subject, **parameters):
        found = results.least("W6", subject, "cpu_us_per_tick", **parameters)
        return None if None in (found, ticks) else found - ticks

    ours = of_sending("netio", form="buffered")
    yield "W6", "CPU us of both sides a tick, beyond the tick", "at most", None, ours
    yield "W6", "the same, of raw TCP coalesced", "at most", 1.5, ratio(ours, of_sending("raw-coalesced"))


def scale(results):
    def cost(**parameters):
        return results.least("W8", "netio", "cpu_s_per_million", **parameters)

    for connections in results.values("W8", "connections"):
        found = ratio(cost(connections=connections, fids=1), cost(connections=1, fids=1))
        if connections > 1:
            aim = 1.2 if connections == 1000 else None
            yield "W8", f"{connections} connections: cost per message, of one", "at most", aim, found
    for fids in results.values("W8", "fids"):
        one = cost(connections=1, fids=1, each_fid=True)
        if fids > 1:
            aim = 1.3 if fids == 10000 else None
            found = ratio(cost(connections=1, fids=fids, each_fid=True), one)
            yield "W8", f"{fids} fids: cost per message, of one", "at most", aim, found


def starting(results):
    for command in results.values("W12", "command"):
        yield "W12", f"{command}: ms", "at most", 20, results.least("W12", "netio", "wall_ms", command=command)


# The message sizes of the round trips in W3.
ROUND_TRIPS = {"session": "a bare session", "unbuffered": "publish/subscribe over two connections"}


def holds(relation, aim, found):
    outcomes = {"at least": found >= aim, "more than": found > aim, "at most": found <= aim, "less than": found < aim}
    return outcomes[relation]


def aims(rows):
    """(workload, what, relation, aim or None, measured) of all targets. Measured: None if no case
    for it was chosen, NOT_MEASURED if one was chosen but no run of it counted."""
    results = Results(rows)
    for part in (throughput, latency, scale, starting):
        yield from part(results)


def ratios(rows):
    """The measured targets in these rows, and the targets that should have been measured."""
    for each in aims(rows):
        aim, found = each[-2:]
        if found is not None and (aim is not None or not math.isnan(found)):
            yield each


def markdown(rows):
    lines = ["| workload | ratio | aim | measured | |", "|---|---|---|---:|---|"]
    for workload, what, relation, aim, found in ratios(rows):
        measured = not math.isnan(found)
        word = "" if aim is None or not measured else "yes" if holds(relation, aim, found) else "**no**"
        text = "" if aim is None else f"{relation} {aim}"
        number = f"{found:.3g}" if measured else "**not measured**"
        lines.append(f"| {workload} | {what} | {text} | {number} | {word} |")
    return lines
