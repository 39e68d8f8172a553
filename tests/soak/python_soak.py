#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python package for long: PYTHONPATH=build/python python_soak.py SECONDS [--seed S]

Publishers in processes of their own are killed, closed and restarted. Threads of this process receive
messages and batches, keep views of them for a while and drop them in other threads. At the end the
messages of each publisher must have arrived or be counted as lost, except for the tail of a killed one,
and the memory of this process must not have grown.
"""

import argparse
import queue
import random
import signal
import subprocess
import sys
import threading
import time

import netio_daq as netio
import numpy

PUBLISHERS = 3
FIDS = 4  # of each publisher
GROWTH_LIMIT = 24 << 20  # bytes, from a third of the time to the end
PUBLISHER = """
import signal, sys, netio_daq as netio, numpy
first, number, ended = int(sys.argv[2]), 0, []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
with netio.Publisher(sys.argv[1], close_limit=20) as publisher:
    small = numpy.zeros((200, 40), "u1")
    while not ended:
        try:
            publisher.publish_batch(first + numpy.arange(200) % 4, small, timeout=5)
            publisher.publish(first, bytes(65536), timeout=5)
        except netio.TimeoutError:
            pass
"""


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def free_address():
    with netio.Publisher("127.0.0.1:0") as publisher:
        return publisher.address


class Soak:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.addresses = [free_address() for _ in range(PUBLISHERS)]
        self.programs = [self.start(index) for index in range(PUBLISHERS)]
        self.kept = queue.Queue(maxsize=64)
        self.counts = {"messages": 0, "lost": 0}
        self.lock = threading.Lock()
        self.failures = []

    def start(self, index):
        return subprocess.Popen([sys.executable, "-c", PUBLISHER, self.addresses[index], str(FIDS * index)])

    def restart(self):
        index = self.random.randrange(PUBLISHERS)
        program = self.programs[index]
        program.send_signal(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        if program.wait(60) not in (0, -signal.SIGKILL, -signal.SIGTERM):  # also before its handler is set
            raise SystemExit(f"a publisher ended with {program.returncode}")
        self.programs[index] = self.start(index)

    def guarded(self, work, *arguments):
        def call():
            try:
                work(*arguments)
            except BaseException as error:
                self.failures.append(error)
                raise

        thread = threading.Thread(target=call)
        thread.start()
        return thread

    def add(self, messages, lost):
        with self.lock:
            self.counts["messages"] += messages
            self.counts["lost"] += lost

    def keep(self, view):
        try:
            self.kept.put_nowait(view)
        except queue.Full:
            pass

    def read_batches(self, subscriber, seed):
        choose = random.Random(seed)
        for batch in subscriber.batches(max=choose.choice([None, 10, 1000])):
            self.add(len(batch), int(batch.records["lost_before"].sum()) + sum(count for _, count in batch.gaps))
            if len(batch) and choose.random() < 0.05:
                self.keep(batch.view(choose.randrange(len(batch))))

    def read_messages(self, subscriber, seed):
        choose = random.Random(seed)
        for message in subscriber:
            self.add(1, message.lost_before)
            if choose.random() < 0.05:
                self.keep(numpy.frombuffer(message, "u1"))

    def drop(self):
        while (view := self.kept.get()) is not None:
            assert view.size in (40, 65536) and not view.any()
            del view

    def run(self, seconds):
        subscriber = netio.Subscriber(self.addresses, reconnect="always", socket={"retry_interval": 0.05})
        subscriber.subscribe(range(FIDS * PUBLISHERS))
        readers = [self.guarded(self.read_batches, subscriber, 1), self.guarded(self.read_messages, subscriber, 2)]
        droppers = [self.guarded(self.drop) for _ in range(2)]
        begin, restarts, base = time.monotonic(), 0, None
        while (passed := time.monotonic() - begin) < seconds and not self.failures:
            threading.Event().wait(self.random.uniform(0.2, 1.5))
            self.restart()
            restarts += 1
            if base is None and passed > seconds / 3:
                base = resident_bytes()
        grown = resident_bytes() - (base or resident_bytes())
        for program in self.programs:
            program.terminate()
        for program in self.programs:
            program.wait(60)
        subscriber.close()
        for thread in readers:
            thread.join(60)
        for _ in droppers:
            self.kept.put(None)
        for thread in droppers:
            thread.join(60)
        return subscriber.stats(), restarts, grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    netio.set_log(None)
    soak = Soak(arguments.seed)
    stats, restarts, grown = soak.run(arguments.seconds)
    print(f"{restarts} restarts, {soak.counts}, {stats}, grown by {grown >> 10} KiB")
    if soak.failures:
        raise SystemExit(f"a thread has failed: {soak.failures[0]!r}")
    known = range(stats.lost - stats.lost_at_end, stats.lost + 1)  # the iteration reports none at the end
    if soak.counts["messages"] != stats.messages or soak.counts["lost"] not in known:
        raise SystemExit("what the readers have counted differs from stats()")
    if grown > GROWTH_LIMIT:
        raise SystemExit(f"the memory has grown by more than {GROWTH_LIMIT >> 20} MiB")


main()
