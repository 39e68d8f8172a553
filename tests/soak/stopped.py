#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stopped subscribers over tcp, as processes: what do they cost the others, and do all counters
agree after they continue?

    stopped.py NETIO [CASE...] [--stop SECONDS] [--subscribers N] [--stopped N] [--keep]

Cases `buffered`, `unbuffered`, and `posts` (unbuffered with little memory, so that messages sent to
stopped subscribers, which cannot be withdrawn, hold too much of it): a publisher with policy `drop`
and 50 subscribers, of which 40 are stopped for 60 s, one after another, one second apart. Half of
these have the same fids as the ten others, half have a fid of their own. Cases `short` and `long`:
default options, 16,000 messages of 256 bytes a second, and a subscriber that pauses for 500 ms or
for 4 s.
"""

import argparse
import itertools
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fleet import Program, wait_for_line  # noqa: E402
from machines import Loopback  # noqa: E402

BASELINE_S = 10
AFTER_S = 8
ENDING_S = 90
SHARED_FIDS = 16
FIRST_OWN_FID = 100
WINDOW_S = 5  # length of the intervals in which the rate of the others is measured
LEAST_SHARE = 0.9  # minimum of the earlier rate, on average
LEAST_EVER = 0.5  # in the worst interval: the machine may be busy, but no other may be blocked

# (mode, further lines of the configuration, bytes of a message, messages a second of the shared
# fids together, of an own fid, receive buffers of a subscriber)
BAD_DAYS = {
    "buffered": ("buffered", "", 1024, 4000, 400, 8),
    # As much memory as the buffered one, and as large a limit per subscriber.
    "unbuffered": ("unbuffered", "unbuffered: {outstanding_limit: 2048, queue_limit: 256}\n", 16384, 320, 25, 8),
    # More than the kernel stores for a process that does not read.
    "posts": ("unbuffered", "unbuffered: {outstanding_limit: 48}\n", 131072, 40, 3, 64),
}
PAUSES = {"short": 0.5, "long": 4.0}
PAUSE_RATE, PAUSE_BYTES, PAUSE_FIDS = 16000, 256, 4
STREAM = "  - {{fids: {fids}, source: pattern, size: {size}, rate: {rate}}}\n"
PROGRESS = re.compile(r"progress .* (\d+) messages(?:  (\d+) lost)?$", re.MULTILINE)


class Case:
    """A publisher with policy drop and its subscribers, from their start to their reports."""

    def __init__(self, netio, folder, name):
        self.netio = netio
        self.folder = folder / name
        self.folder.mkdir()
        self.name = name
        self.pause = threading.Event()
        self.complaints = []
        self.publisher = None
        self.subscribers = []  # (program, its fids)

    def start(self, name, *words):
        command = [str(self.netio), *map(str, words), "--json", "--progress"]
        return Program(Loopback(), 0, self.folder, name, command)

    def begin(self, text, wants, buffers=8):
        """Publishing starts after all have subscribed, so all counters begin with the first
        message."""
        config = self.folder / "publish.yaml"
        config.write_text("listen: 127.0.0.1:0\nslow_policy: drop\n" + text, "utf-8")
        self.publisher = self.start("publisher", "publish", config, "--wait-subscribers", len(wants))
        if not wait_for_line(self.publisher, "waiting for", 60):
            raise RuntimeError("the publisher did not start: " + self.publisher.last_words())
        address = re.search(r"listening at (\S+)", self.publisher.log.read_text("utf-8")).group(1)
        for number, fids in enumerate(wants):
            program = self.start(f"subscriber-{number:02}", "subscribe", address, "--fid", fids, "--verify",
                                 "--receive-count", buffers)  # fmt: skip
            self.subscribers.append((program, fids))
        for program, _ in self.subscribers:
            if not wait_for_line(program, "subscribed to", 60):
                raise RuntimeError(f"{program.name} did not subscribe: {program.last_words()}")

    def let_pass(self, seconds):
        self.pause.wait(seconds)

    def end(self):
        self.publisher.interrupt()
        for program in [self.publisher, *(each for each, _ in self.subscribers)]:
            if program.wait(ENDING_S) is None:
                self.complain(f"{program.name} does not end: {program.last_words()}")

    def close(self):
        for program in [*(each for each, _ in self.subscribers), self.publisher]:
            if program is not None:
                program.go_on()
                program.kill()
                program.wait(10)

    def complain(self, text):
        self.complaints.append(f"{self.name}: {text}")

    # --- checks of the counters ---

    def count_closed(self):
        """How many subscribers the publisher has disconnected because others need their memory."""
        return self.publisher.log.read_text("utf-8", "replace").count("the others need the memory")

    def check_counts(self, may_be_closed=False):
        """For every subscriber: received and reported lost messages together are all published
        ones."""
        published = {}
        told = closed = 0
        for program, _ in self.subscribers:
            report = program.report()
            if report is None:
                self.complain(f"{program.name} says nothing: {program.last_words()}")
                continue
            for key in ("corrupt", "duplicates", "reordered", "surplus"):
                if report[key] != 0:
                    self.complain(f"{program.name}: {report[key]} {key}")
            if report["end"] == "lost" and may_be_closed:
                closed += 1
                continue
            if report["end"] != "orderly" or program.process.returncode not in (0, 6):
                self.complain(f"{program.name} ended {report['end']}, {report['detail']}: {program.last_words()}")
                continue
            told += report["lost"]
            for fid, row in report["fids"].items():
                total = row["messages"] + row["lost"]
                if published.setdefault(fid, total) != total:
                    self.complain(f"{program.name}: {total} messages of fid {fid}, and others had {published[fid]}")
        if closed != self.count_closed():
            self.complain(f"{closed} subscribers lost their publisher, which closed {self.count_closed()}")
        report = self.publisher.report()
        if report is None:
            return self.complain(f"the publisher says nothing: {self.publisher.last_words()}")
        if sum(published.values()) != report["messages"] and closed == 0:
            self.complain(f"{report['messages']} published, and by fid {sum(published.values())}")
        if told != report["dropped"] and closed == 0:
            self.complain(f"{report['dropped']} dropped by the publisher, {told} missed by the subscribers")
        print(f"stopped: {self.name}: {report['messages']} published, {report['dropped']} dropped, {told} told to "
              f"those who went on, {closed} closed as too slow, {report['again']} times again")  # fmt: skip

    # --- what the others received during the stops ---

    @staticmethod
    def count(program):
        """The number of messages received according to its latest line."""
        found = PROGRESS.findall(program.log.read_text("utf-8", "replace"))
        return int(found[-1][0]) if found else 0


class RateWatch(threading.Thread):
    """Records twice a second how many messages each of some programs has received."""

    def __init__(self, programs):
        super().__init__(daemon=True)
        self.programs = programs
        self.samples = []  # (time, count of each)
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.5):
            self.samples.append((time.monotonic(), [Case.count(program) for program in self.programs]))

    def end(self):
        self.over.set()
        self.join()

    def rates(self, begin, end, window):
        """Rates of the slowest program, in each interval of that length."""
        inside = [sample for sample in self.samples if begin <= sample[0] <= end]
        rates = []
        for index, (when, counts) in enumerate(inside):
            later = next((each for each in inside[index:] if each[0] >= when + window), None)
            if later is not None:
                rates.append(min(b - a for a, b in zip(counts, later[1])) / (later[0] - when))
        return rates


def bad_day(case, options):
    mode, more, size, shared, own, buffers = BAD_DAYS[case.name]
    stopped, others = options.stopped, options.subscribers - options.stopped
    owners = stopped // 2
    text = f"mode: {mode}\n{more}streams:\n" + STREAM.format(fids=f"0-{SHARED_FIDS - 1}", size=size, rate=shared)
    text += STREAM.format(fids=f"{FIRST_OWN_FID}-{FIRST_OWN_FID + owners - 1}", size=size, rate=own * owners)
    all_shared = f"0-{SHARED_FIDS - 1}"
    own_fids = [str(FIRST_OWN_FID + number) for number in range(owners)]
    # Subscribers with own fids and with shared fids are stopped alternately.
    pairs = itertools.zip_longest([all_shared] * (stopped - owners), own_fids)
    wants = [fids for pair in pairs for fids in pair if fids]
    case.begin(text, [all_shared] * others + wants, buffers)
    healthy = [program for program, _ in case.subscribers[:others]]
    case.let_pass(2)
    watch = RateWatch(healthy)
    before = time.monotonic()
    case.let_pass(BASELINE_S)
    begin = time.monotonic()
    victims = [program for program, _ in case.subscribers[others:]]
    for second in range(stopped + options.stop):
        if second < stopped:
            victims[second].stop()
        if second >= options.stop:
            victims[second - options.stop].go_on()
        case.let_pass(max(0.0, begin + second + 1 - time.monotonic()))
    for program in victims:
        program.go_on()
    end = time.monotonic()
    case.let_pass(AFTER_S)
    watch.end()
    case.end()
    rates = watch.rates(before, begin, BASELINE_S - 2)
    baseline = sum(rates) / max(1, len(rates))
    mean = watch.rates(begin, end, end - begin - 2)
    worst = min(watch.rates(begin, end, WINDOW_S), default=0.0)
    mean_rate = sum(mean) / max(1, len(mean))
    print(f"stopped: {case.name}: the slowest of the {others} others got {baseline:.0f} messages/s before, "
          f"{mean_rate:.0f} ({100 * mean_rate / max(1.0, baseline):.1f} %) while {stopped} were stopped for "
          f"{options.stop} s, at worst {worst:.0f} in {WINDOW_S} s")  # fmt: skip
    if baseline < LEAST_SHARE * shared:
        case.complain(f"this machine is too slow for it: {baseline:.0f} of {shared} messages/s before anybody stopped")
    if mean_rate < LEAST_SHARE * baseline or worst < LEAST_EVER * baseline:
        case.complain(f"the others fell to {100 * mean_rate / max(1.0, baseline):.1f} % of their rate, at worst {worst:.0f}")
    for program in healthy:
        report = program.report() or {}
        # Few publications for many subscribers: two in flight at once are already too many.
        if (report.get("lost") or 0) > (5 if case.name == "posts" else 0):
            case.complain(f"{program.name}, which was never stopped, lost {report.get('lost')}")
    if case.name == "posts" and case.count_closed() == 0:
        case.complain("nobody was closed, so the rule for posts was not tried")
    missed = sum((program.report() or {}).get("lost") or 0 for program in victims)
    if missed == 0:
        case.complain("nobody missed anything, so nothing was tried: stop them for longer")
    case.check_counts(may_be_closed=case.name == "posts")


def pause(case, _options):
    last = PAUSE_FIDS - 1
    text = "mode: buffered\nstreams:\n" + STREAM.format(fids=f"0-{last}", size=PAUSE_BYTES, rate=PAUSE_RATE)
    case.begin(text, [f"0-{last}"] * 2)
    case.let_pass(2)
    victim = case.subscribers[0][0]
    victim.stop()
    case.let_pass(PAUSES[case.name])
    victim.go_on()
    case.let_pass(3)
    case.end()
    reports = [(program.report() or {}).get("lost") for program, _ in case.subscribers]
    print(f"stopped: {case.name}: paused for {PAUSES[case.name]} s, lost {reports[0]}; the other lost {reports[1]}")
    if reports[1] != 0:
        case.complain(f"the other lost {reports[1]}")
    if case.name == "short" and reports[0] != 0:
        case.complain(f"lost {reports[0]}")
    case.check_counts()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netio", type=pathlib.Path)
    parser.add_argument("case", nargs="*", default=[*PAUSES, *BAD_DAYS])
    parser.add_argument("--stop", type=int, default=60)
    parser.add_argument("--subscribers", type=int, default=50)
    parser.add_argument("--stopped", type=int, default=40)
    parser.add_argument("--keep", action="store_true", help="keep the logs and reports, also of a good run")
    options = parser.parse_args()
    if unknown := set(options.case) - {*PAUSES, *BAD_DAYS}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join([*PAUSES, *BAD_DAYS])}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="netio-stopped-"))
    complaints = []
    for name in options.case:
        case = Case(options.netio.resolve(), folder, name)
        try:
            (pause if name in PAUSES else bad_day)(case, options)
        finally:
            case.close()
        complaints += case.complaints
    for complaint in complaints:
        print(f"stopped: COMPLAINT: {complaint}")
    print(f"stopped: {len(complaints)} complaints")
    if complaints or options.keep:
        print(f"stopped: logs and reports are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
