#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs as processes over tcp, with faults like those of real machines and networks.

    soak.py NETIO SECONDS [--seed S] [--keep]

Publishers, buffered and unbuffered, subscribers with every policy, copies and pumps are stopped,
continued, killed and restarted; links are slowed down and cut if network namespaces are permitted;
some publishers are at a long distance. The printed seed decides the faults, their targets and
times; the results also depend on the machine. At the end all counters must agree: what a publisher
reports as sent, what each subscriber reports as received and lost, the bytes of every file. No
long-lived process may have grown.
"""

import argparse
import hashlib
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fleet import Program, wait_for_line  # noqa: E402
from long_way import LongWay  # noqa: E402
from machines import make_machines  # noqa: E402

MACHINES = 3
FIDS = 4
ENDING_S = 120  # longest permitted time for any end
# (name, mode, policy for slow subscribers, loops)
PUBLISHERS = (
    ("buffered-block", "buffered", "block", 1),
    ("buffered-drop", "buffered", "drop", 1),
    ("buffered-disconnect", "buffered", "disconnect", 1),
    ("unbuffered-block", "unbuffered", "block", 1),
    ("unbuffered-drop", "unbuffered", "drop", 1),
    ("looped-block", "buffered", "block", 2),
    # Over a long path, with small messages.
    ("far-pages-block", "buffered", "block", 1),
    ("far-lent-block", "unbuffered", "block", 1),
)
CONFIG = """listen: {host}:{port}
allow_remote_anonymous: true
metrics: 127.0.0.1:{figures}
mode: {mode}
slow_policy: {policy}
loops: {loops}
streams:
  - {{fids: 0-{last}, source: pattern, size: {{uniform: {{min: 24, max: {largest}}}}}, rate: {rate}}}
"""


class Soak:
    def __init__(self, netio, seconds, seed, folder):
        self.netio = netio
        self.seconds = seconds
        self.chance = random.Random(seed)
        self.folder = folder
        self.machines = make_machines(MACHINES)
        self.count = 0
        self.publishers, self.servers, self.clients, self.ended, self.ways = {}, [], {}, [], {}
        self.waiting = []  # (time, action), for what has been stopped or cut
        self.pause = threading.Event()
        self.complaints = []
        self.deeds = {}

    # --- programs ---

    def start(self, machine, name, *words):
        self.count += 1
        command = [str(self.netio), *map(str, words), "--json"]
        return Program(self.machines, machine, self.folder, f"{self.count:04}-{name}", command)

    def serve(self, name, *words):
        program = self.start(0, name, *words)
        self.servers.append(program)
        if not wait_for_line(program, "listening at", 30) and program.running():
            wait_for_line(program, "serving", 5)
        return program

    def begin(self):
        host = self.machines.address(0)
        for number, (name, mode, policy, loops) in enumerate(PUBLISHERS):
            port = 21000 + 2 * number  # and the next one for a second loop
            far = name.startswith("far-")
            largest, rate = (2000, 5000) if far else (600, 4000) if mode == "buffered" else (40000, 200)
            text = CONFIG.format(host=host, port=port, figures=port + 200, mode=mode, policy=policy,
                                 last=FIDS - 1, loops=loops, largest=largest, rate=rate)  # fmt: skip
            config = self.folder / f"{name}.yaml"
            config.write_text(text, "utf-8")
            self.publishers[name] = self.serve(name, "publish", config, "--duration", f"{self.seconds}s")
            addresses = [f"{host}:{port + loop}" for loop in range(loops)]
            if far:
                delay = self.netio.with_name("soak_delay")
                self.ways[name] = LongWay(self.machines, delay, host, port + 1, port, port + 200)
                addresses = [f"{host}:{port + 1}"]
            for guest in range(2):
                self.client(f"subscribe-{name}-{guest}", self.subscribe, addresses, policy)
        served = self.folder / "served"
        served.mkdir()
        self.serve("copies", "copy", "--serve", served, "--listen", f"{host}:21100", "--allow-remote-anonymous")
        self.serve("pumps", "pump", "--serve", "--listen", f"{host}:21101", "--allow-remote-anonymous")
        for number in range(2):
            self.client(f"copy-{number}", self.copy, f"{host}:21100", number)
            self.client(f"pump-{number}", self.pump, f"{host}:21101")

    def client(self, name, make, *arguments):
        machine = self.chance.randrange(1, MACHINES)
        self.clients[name] = (make(machine, name, *arguments), make, arguments)

    def subscribe(self, machine, name, addresses, policy):
        words = ["subscribe", *addresses, "--fid", f"0-{FIDS - 1}", "--verify"]
        if "-far-" in name:
            # One with few receives, so that messages wait and share frames.
            words += ["--window-limit", 0] if name.endswith("-0") else []
        elif policy == "block" and self.chance.random() < 0.3:
            words += ["--policy", self.chance.choice(["drop", "disconnect"])]
        return self.start(machine, name, *words)

    def copy(self, machine, name, address, number):
        source = self.folder / f"file-{number}"
        if not source.exists():
            source.write_bytes(random.Random(number).randbytes(self.chance.randrange(1, 24 << 20)))
        words = ["copy", source, address, "--overwrite"]
        return self.start(machine, name, *words)

    def pump(self, machine, name, address):
        words = ["pump", address, "--bytes", f"{self.chance.randrange(1, 30)}m", "--verify", "--size-min", 1]
        words += ["--size", self.chance.choice(["1k", "64k", "300k"]), "--seed", self.count]
        return self.start(machine, name, *words)

    # --- faults ---

    def later(self, seconds, deed):
        self.waiting.append((time.monotonic() + seconds, deed))

    def stop(self, program):
        if program.stopped or not program.running():
            return
        # Mostly short; sometimes longer than every time-out.
        span = self.chance.choice([0.05, 0.3, 1, 3, 3, 12])
        program.stop()
        self.later(span, lambda: program.go_on(span))

    def kill(self, program):
        program.kill()

    def link(self):
        if not self.machines.links:
            return
        machine = self.chance.choice(self.machines.links)
        if self.chance.random() < 0.5:
            self.machines.slow_down(machine, self.chance.choice([1, 10, 100]))
            self.later(self.chance.uniform(1, 8), lambda: self.machines.full_speed(machine))
        else:
            self.machines.cut(machine)
            self.later(self.chance.choice([0.2, 1, 3]), lambda: self.machines.mend(machine))

    def disturb(self):
        deed = self.chance.choices(["stop a client", "kill a client", "stop a server", "link"], [6, 3, 1, 3])[0]
        self.deeds[deed] = self.deeds.get(deed, 0) + 1
        if deed == "link":
            return self.link()
        if deed == "stop a server":
            return self.stop(self.chance.choice(self.servers))
        program = self.clients[self.chance.choice(sorted(self.clients))][0]
        return self.stop(program) if deed == "stop a client" else self.kill(program)

    def do_what_is_due(self):
        now = time.monotonic()
        due = [deed for when, deed in self.waiting if when <= now]
        self.waiting = [(when, deed) for when, deed in self.waiting if when > now]
        for deed in due:
            deed()

    def replace_the_ended(self):
        for name, (program, make, arguments) in sorted(self.clients.items()):
            if not program.running():
                self.ended.append((name, program))
                self.client(name, make, *arguments)

    def run(self):
        end = time.monotonic() + self.seconds
        next_weighing = next_deed = 0.0
        while (now := time.monotonic()) < end:
            self.do_what_is_due()
            self.replace_the_ended()
            if now >= next_deed:
                self.disturb()
                next_deed = now + self.chance.uniform(0.1, 1.2)
            if now >= next_weighing:
                for server in self.servers:
                    server.weigh()
                next_weighing = now + 0.5
            self.pause.wait(0.05)

    def end(self):
        for _, deed in self.waiting:
            deed()
        self.waiting = []
        for machine in self.machines.links:
            self.machines.full_speed(machine)
            self.machines.mend(machine)
        programs = [program for program, _, _ in self.clients.values()]
        for program in [*self.servers, *programs]:
            program.go_on()
        deadline = time.monotonic() + ENDING_S
        names = set(self.publishers.values())
        for server in self.servers:  # programs that run until stopped, after their clients
            if server in names and server.wait(max(1.0, deadline - time.monotonic())) is None:
                self.complain(f"{server.name} does not end")
        for program in programs:
            while program.wait(1) is None and time.monotonic() < deadline:
                if self.waits_in_vain(program) and not program.interrupted:
                    program.interrupt()
            if program.running():
                self.complain(f"{program.name} does not end: {program.last_words()}")
        for server in self.servers:
            if server not in names:
                server.interrupt()
                if server.wait(30) is None:
                    self.complain(f"{server.name} does not end when it is interrupted")
        self.ended += [(name, program) for name, (program, _, _) in self.clients.items()]

    @staticmethod
    def waits_in_vain(program):
        """Waits for a publisher that never started, or ended before it had accepted anything."""
        words = program.last_words().splitlines()
        is_connected = any("connected to" in line for line in words)
        return "subscribe" in program.name and (not is_connected or "waiting for the publisher" in words[-1])

    def close(self):
        for program in [*self.servers, *(each[0] for each in self.clients.values())]:
            program.kill()
            program.wait(10)
        for way in self.ways.values():
            way.close()
        self.machines.close()

    # --- checks of the counters ---

    def complain(self, text):
        self.complaints.append(text)

    def check(self):
        for name, way in self.ways.items():
            for words in way.complaints(gathers="lent" in name):
                self.complain(f"{name}: {words}")
        for server in self.servers:
            if words := server.growth():
                self.complain(f"it grows: {words}")
            fine = (0, 130)
            if server.process.returncode not in fine:
                self.complain(f"{server.name} ended with {server.process.returncode}: {server.last_words()}")
        checks = {"subscribe": self.check_subscriber, "copy": self.check_copy, "pump": self.check_pump}
        for name, program in self.ended:
            if program.killed or program.running():
                continue
            if program.interrupted and program.process.returncode == -signal.SIGINT:
                continue  # before it listened for that signal
            if program.process.returncode < 0:
                self.complain(f"{program.name} died of signal {-program.process.returncode}: {program.last_words()}")
                continue
            report = program.report()
            if report is None:
                # Where there was no listener any more, or the path to it was cut.
                if program.process.returncode == 0:
                    self.complain(f"{program.name} says nothing and ends with 0")
                continue
            checks[name.split("-")[0]](program, report)

    def check_subscriber(self, program, report):
        for key in ("corrupt", "duplicates", "reordered"):
            if report[key] != 0:
                self.complain(f"{program.name}: {report[key]} {key}: {program.last_words()}")
        per_fid = sum(fid["messages"] for fid in report["fids"].values())
        if report["end"] == "orderly" and per_fid != report["messages"]:
            self.complain(f"{program.name}: {per_fid} messages by fid, {report['messages']} in all")
        if report.get("surplus", 0) != 0:
            self.complain(f"{program.name}: {report['surplus']} more than were sent")
        may_lose = "drop" in program.name or "drop" in program.words
        if report["end"] == "orderly" and report["lost"] != 0 and not may_lose:
            self.complain(f"{program.name}: an orderly end, and {report['lost']} lost: {program.last_words()}")
        publisher = next((p for name, p in self.publishers.items() if f"-{name}-" in program.name), None)
        total = publisher.report() if publisher else None
        if total is None or report["end"] != "orderly":
            return
        # For each fid: the messages published since its first message. Earlier losses are reported
        # too.
        for fid, row in report["fids"].items():
            published = total["fids"][fid]["messages"]
            account = row["messages"] + row["lost"]
            since = published - row.get("first", published)
            if account > published or account < since or (account > since and not may_lose):
                self.complain(f"{program.name}: fid {fid}: {row} of {published} that were published")

    def check_copy(self, program, report):
        # A sender without an error was notified that the file is complete.
        if program.process.returncode != 0:
            return
        source = pathlib.Path(program.words[2])
        served = self.folder / "served" / source.name
        if not served.exists():
            self.complain(f"{program.name} ended with 0, and there is no {served.name}")
        elif self.digest(served) != self.digest(source):
            self.complain(f"{program.name}: {served.name} is not what was sent")

    def check_pump(self, program, report):
        if program.process.returncode == 0 and not report["server"]["verified"]:
            self.complain(f"{program.name} ended with 0, and its bytes were wrong: {report}")

    @staticmethod
    def digest(path):
        return hashlib.sha256(path.read_bytes()).digest()

    def summary(self):
        ends = {}
        for name, program in self.ended:
            report = program.report() or {}
            kind = name.split("-")[0]
            outcome = "killed" if program.killed else report.get("end") or f"status {program.process.returncode}"
            ends[kind, outcome] = ends.get((kind, outcome), 0) + 1
        for (kind, outcome), count in sorted(ends.items()):
            print(f"soak: {kind:10} {outcome:20} {count}")
        for name, way in sorted(self.ways.items()):
            frames = "?" if way.fewest_frames is None else f"{way.fewest_frames:.3f}"
            print(f"soak: {name}: {way.most_credits} credits at most, {frames} frames a message at least")
        print("soak: " + ", ".join(f"{deed}: {count}" for deed, count in sorted(self.deeds.items())))
        for complaint in self.complaints:
            print(f"soak: COMPLAINT: {complaint}")
        print(f"soak: {self.count} programs, {len(self.complaints)} complaints")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netio", type=pathlib.Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the logs and reports, also of a good run")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    print(f"soak: {options.seconds} s, seed {seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="netio-soak-"))
    soak = Soak(options.netio.resolve(), options.seconds, seed, folder)
    try:
        soak.begin()
        soak.run()
        soak.end()
        soak.check()
    finally:
        soak.close()
    soak.summary()
    if soak.complaints or options.keep:
        print(f"soak: logs and reports are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if soak.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
