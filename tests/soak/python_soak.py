#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python package for long: PYTHONPATH=build/python python_soak.py SECONDS [--seed S]

Publishers in processes of their own are killed, closed and restarted. Threads of this process receive
messages and batches, keep views of them for a while and drop them in other threads. Another thread
publishes arrays of netio.buffer() without a copy, with a new context, socket and subscriber each time,
and each of them must arrive with its contents. At the end the messages of each publisher must have
arrived or be counted as lost, except for the tail of a killed one, and the memory of this process must
not have grown.
"""

import argparse
import collections
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
ARRAYS = 1000  # of each socket that publishes without a copy
# Bytes, from the least in the second third of the time to the least in the last third. What is alive
# changes by tens of MiB: 64 kept views, of which each may hold a batch of 256 KiB, the queue, and the
# receive windows of restarted publishers.
GROWTH_LIMIT = 48 << 20
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
        self.arrays = 0
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

    def publish_arrays(self, end):
        while not end.is_set():
            context = netio.Context()
            frames = netio.buffer((8, 8192), "u8", context=context)
            with netio.PublishSocket("127.0.0.1:0", context=context) as socket:
                subscriber = netio.Subscriber(socket.address)
                subscriber.subscribe(1)
                assert socket.wait_for_subscribers(1, 60)
                reader = self.guarded(self.read_arrays, subscriber)
                publications = collections.deque()
                for number in range(ARRAYS):
                    if len(publications) == len(frames):
                        oldest = publications.popleft()
                        assert oldest.wait(60) and oldest.outcome["sent"] == 1
                    frames[number % len(frames)] = number
                    publications.append(socket.publish(1, frames[number % len(frames)], timeout=60))
            reader.join(60)
            assert not reader.is_alive()

    def read_arrays(self, subscriber):
        count, kept = 0, collections.deque()
        with subscriber:
            for message in subscriber:
                assert message.lost_before == 0
                kept.append((count, numpy.frombuffer(message, "u8")))
                count += 1
                if len(kept) > 16:  # the publisher has written to its memory again since
                    number, array = kept.popleft()
                    assert array.size == 8192 and (array == number).all()
        assert count == ARRAYS and all((array == number).all() for number, array in kept)
        self.arrays += count

    def run(self, seconds):
        # The queue, and the memory that it keeps for reuse, reach their limits well within GROWTH_LIMIT.
        subscriber = netio.Subscriber(
            self.addresses, reconnect="always", queue_limit_bytes=8 << 20, socket={"retry_interval": 0.05}
        )
        subscriber.subscribe(range(FIDS * PUBLISHERS))
        readers = [self.guarded(self.read_batches, subscriber, 1), self.guarded(self.read_messages, subscriber, 2)]
        droppers = [self.guarded(self.drop) for _ in range(2)]
        end = threading.Event()
        without_copy = self.guarded(self.publish_arrays, end)
        begin, restarts, resident = time.monotonic(), 0, ([], [], [])  # in each third
        while (passed := time.monotonic() - begin) < seconds and not self.failures:
            threading.Event().wait(self.random.uniform(0.2, 1.5))
            self.restart()
            restarts += 1
            resident[int(3 * passed / seconds)].append(resident_bytes())
        grown = min(resident[2]) - min(resident[1]) if resident[1] and resident[2] else 0
        end.set()
        without_copy.join(60)
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
    print(f"{restarts} restarts, {soak.counts}, {soak.arrays} arrays, {stats}, grown by {grown >> 10} KiB")
    if soak.failures:
        raise SystemExit(f"a thread has failed: {soak.failures[0]!r}")
    if soak.arrays == 0:
        raise SystemExit("no array was published without a copy")
    known = range(stats.lost - stats.lost_at_end, stats.lost + 1)  # the iteration reports none at the end
    if soak.counts["messages"] != stats.messages or soak.counts["lost"] not in known:
        raise SystemExit("what the readers have counted differs from stats()")
    if grown > GROWTH_LIMIT:
        raise SystemExit(f"the memory has grown by more than {GROWTH_LIMIT >> 20} MiB")


main()
