# SPDX-License-Identifier: Apache-2.0
"""netio record as its users see it: processes, exit status, files. The files are read by @mcap/core, a
reader that is not netio's (./dev test installs it; tests that need it are skipped without it).

record_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import unittest

from program_case import CONFIG, DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcap_reader", "read.mjs")
MODULES = os.path.join(CONFIG, "..", "build", "mcap_reader")
KILLS = int(os.environ.get("NETIO_TEST_KILLS", "3"))


def missing_reader():
    if not shutil.which("node"):
        return "node is not installed"
    if not os.path.isdir(os.path.join(MODULES, "node_modules", "@mcap", "support")):
        return f"@mcap/core is not installed in {MODULES}; ./dev test installs it where npm reaches its registry"
    return None


def read(*paths):
    """What @mcap/core finds in each file."""
    ended = subprocess.run(["node", READER, MODULES, *paths], capture_output=True, text=True, check=False,
                           timeout=4 * DEADLINE)
    if ended.returncode != 0:
        raise AssertionError(ended.stderr)
    return [json.loads(line) for line in ended.stdout.splitlines()]


class RecordCase(Case):
    COUNTED = "  - {fids: %s, source: pattern, size: %s, count: %d}\n"

    def publish(self, streams, options="wait_subscribers: 1\n", name="publisher.yaml"):
        text = f"listen: {HOST}:0\nallow_remote_anonymous: true\nmode: buffered\n{options}streams:\n{streams}"
        process = self.start("publish", self.path(name, text))
        return process, process.address()

    def record(self, *arguments, output="run.mcap", fid="0-63", **options):
        return self.start("record", *arguments, "--fid", fid, "--output", self.path(output), **options)

    def names(self, events):
        return [event["event"] for event in events]


@unittest.skipIf(missing_reader(), missing_reader())
class McapRecording(RecordCase):
    def test_every_message_is_in_the_file(self):
        publisher, address = self.publish(self.COUNTED % ("0-7", "40", 1000) + self.COUNTED % ("8-9", "64k", 100))
        status, report, log = self.record(address).end()
        published = publisher.end()[1]
        self.assertEqual((status, report["end"], report["lost"]), (0, "orderly", 0), log)
        self.assertEqual(report["messages"], published["messages"])
        self.assertEqual(report["files"], [self.path("run.mcap")])
        found, = read(*report["files"])
        self.assertEqual((found["closed"], found["index_agrees"], found["in_order"]), (True, True, True))
        self.assertEqual(found["profile"], "netio")
        self.assertRegex(found["library"], r"^netio-daq \d+\.\d+")
        self.assertEqual(found["metadata"]["part"], "1")
        self.assertEqual(found["messages"], published["messages"])
        for fid, row in published["fids"].items():
            got = found["fids"][fid]
            self.assertEqual((got["messages"], got["first"], got["last"], got["skipped"]),
                             (row["messages"], 0, row["messages"] - 1, 0), fid)
        self.assertEqual(found["fids"]["0x8"]["bytes"], 100 * 65536)
        self.assertEqual(self.names(found["events"]), ["connected", "publisher_ended"])
        self.assertEqual(found["events"][0]["publisher"], address)

    def test_ways_of_writing_have_the_same_contents(self):
        hashes = set()
        for number, arguments in enumerate((
                (), ("--compress", "lz4"), ("--compress", "zstd", "--fsync"), ("--direct-io", "--fsync"),
                ("--rotate-size", "1MiB", "--chunk-size", "64KiB"),
                ("--rotate-size", "500KiB", "--chunk-size", "64KiB", "--compress", "zstd", "--loop", "busy"))):
            with self.subTest(arguments):
                _, address = self.publish(self.COUNTED % ("0-3", "5000", 400))
                status, report, log = self.record(address, *arguments, output=f"run{number}.mcap").end()
                self.assertEqual(status, 0, log)
                if "--rotate-size" in arguments:
                    self.assertGreater(len(report["files"]), 1)
                    self.assertEqual(report["files"][1], self.path(f"run{number}-000002.mcap"))
                fids = {}
                for i, found in enumerate(read(*report["files"])):
                    self.assertTrue(found["closed"] and found["index_agrees"])
                    self.assertEqual(found["metadata"]["part"], str(i + 1))
                    for fid, row in found["fids"].items():
                        self.assertEqual((row["first"], row["skipped"]), (fids.get(fid, 0), 0))
                        fids[fid] = row["last"] + 1
                        if len(report["files"]) == 1:
                            hashes.add((fid, row["hash"]))
                self.assertEqual(fids, {hex(fid): 400 for fid in range(4)})
        self.assertEqual(len(hashes), 4)  # one for each fid

    def test_several_publishers_are_one_recording(self):
        publishers = [self.publish(self.COUNTED % (fids, "100", 500), name=f"{fids}.yaml") for fids in ("0-3", "4-9")]
        status, report, log = self.record(*(address for _, address in publishers)).end()
        self.assertEqual((status, report["messages"], report["connections"]), (0, 10 * 500, 2), log)
        found, = read(*report["files"])
        self.assertEqual({row["messages"] for row in found["fids"].values()}, {500})
        self.assertEqual(sorted(self.names(found["events"])), 2 * ["connected"] + 2 * ["publisher_ended"])

    def test_what_a_slow_recorder_loses_is_in_the_file(self):
        options = "wait_subscribers: 1\nslow_policy: drop\nbuffered: {page_count: 4, page_size: 4k}\n"
        publisher, address = self.publish(self.PATTERN.partition("\n")[2], options)
        recorder = self.record(address)
        recorder.wait_for("connected to")
        recorder.process.send_signal(signal.SIGSTOP)
        other = self.start("subscribe", address, "--fid", "0-63", "--messages", 64000)
        self.assertIn(other.end()[0], (0, 5))  # it may have lost some as well
        recorder.process.send_signal(signal.SIGCONT)
        publisher.process.send_signal(signal.SIGINT)
        status, report, log = recorder.end()
        self.assertEqual((status, report["outcome"]), (6, "unsound"), log)
        self.assertGreater(report["lost"], 0)
        found, = read(*report["files"])
        lost = {}
        for event in found["events"]:
            if event["event"] == "lost":
                self.assertEqual(event["reason"], "dropped")
                lost[hex(int(event["fids"]))] = lost.get(hex(int(event["fids"])), 0) + event["count"]
        for fid, row in found["fids"].items():
            self.assertLessEqual(row["skipped"], lost.get(fid, 0))  # the last ones have no message after them
        self.assertGreaterEqual(report["lost"], sum(lost.values()))
        self.assertEqual(found["messages"], report["messages"])

    def test_a_limit_of_the_file_ends_a_file_that_can_be_read(self):
        _, address = self.publish(self.PATTERN.partition("\n")[2])
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, before[1]))
        try:
            recorder = self.record(address)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        status, report, log = recorder.end()
        self.assertEqual((status, report["end"]), (1, "failed"), log)
        self.assertRegex(report["detail"], r"/run\.mcap; raise the limit of file sizes \(ulimit -f\).*: File too large")
        found, = read(*report["files"])
        self.assertTrue(found["closed"] and found["index_agrees"])
        self.assertEqual(found["messages"], report["written"])
        self.assertEqual(report["written"] + report["discarded"], report["messages"])


class McapRefusing(RecordCase):
    def test_nothing_is_overwritten(self):
        self.path("run.mcap", "precious")
        status, _, log = self.record(f"{HOST}:1").end()
        self.assertEqual(status, 1)
        self.assertRegex(log, "a recording overwrites nothing; use another name than .*/run.mcap: File exists")
        with open(self.path("run.mcap")) as file:
            self.assertEqual(file.read(), "precious")

    def test_wrong_places_and_values_are_named(self):
        for output, arguments, status, pattern in (
                ("none/there/run.mcap", (), 1, "cannot create .*/none/there/run.mcap; create its folder first: No such file"),
                ("none/there", (), 1, "cannot create the folder .*/none/there: No such file"),
                ("run.mcap", ("--compress", "gzip"), 2, "--compress.*gzip"),
                ("run.mcap", ("--queue-limit", "8KiB"), 2, "queue_limit_bytes is 8192; it must be from 8388608"),
                ("run.mcap", ("--min-free", "2000000TiB"), 2, "--min-free")):
            with self.subTest(output=output, arguments=arguments):
                ended = self.record(f"{HOST}:1", *arguments, output=output).end()
                self.assertEqual(ended[0], status, ended[2])
                self.assertRegex(ended[2], pattern)
        self.assertFalse(os.path.exists(self.path("run.mcap")))

    def test_reserved_space_is_not_used(self):
        _, address = self.publish(self.COUNTED % ("0", "40", 10))
        status, report, log = self.record(address, "--min-free", "100000TiB").end()
        self.assertEqual((status, report["end"], report["discarded"]), (1, "failed", 10), log)
        self.assertIn("min_free_bytes", log)

    def test_the_name_of_another_set_is_refused_at_once(self):
        self.path("run-000003.mcap", "precious")
        status, _, log = self.record(f"{HOST}:1", "--rotate-size", "1MiB").end()
        self.assertEqual(status, 1)
        self.assertRegex(log, "a recording overwrites nothing; use another name than that of .*/run-000003.mcap")

    # A disk that does not answer as long as the file NETIO_TEST_STUCK exists.
    STUCK_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off_t at) {
    while (access(getenv("NETIO_TEST_STUCK"), F_OK) == 0) poll(NULL, 0, 1);
    ssize_t (*next)(int, const struct iovec*, int, off_t) = dlsym(RTLD_NEXT, "pwritev64");
    return next(fd, parts, count, at);
}
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) { return pwritev64(fd, parts, count, at); }
"""

    def test_a_second_signal_does_not_wait_for_the_disk(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", self.path("stuck.so"), self.path("stuck.c", self.STUCK_DISK),
                        "-ldl"], check=True)
        _, address = self.publish("  - {fids: 0, source: pattern, size: 40, rate: 10k}\n")
        settings = {"LD_PRELOAD": self.path("stuck.so"), "NETIO_TEST_STUCK": self.path("stuck"),
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            recorder = self.record(address, "--progress", "--chunk-size", "4KiB", "--flush-interval", "10ms")
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
        recorder.wait_for(r"progress [1-9]")
        self.path("stuck", "")
        recorder.process.send_signal(signal.SIGINT)
        recorder.wait_for("MiB wait for the disk; a further signal ends without them")
        recorder.process.send_signal(signal.SIGINT)
        status, report, log = recorder.end()
        self.assertEqual((status, report["end"]), (1, "failed"), log)
        self.assertIn("a second signal ended the recording", report["detail"])
        self.assertEqual(report["written"] + report["discarded"], report["messages"])
        info = subprocess.run([PROGRAM, "file", "info", report["files"][0], "--json"], capture_output=True, check=True,
                              timeout=DEADLINE)
        self.assertEqual(json.loads(info.stdout)["messages"], report["written"])

    def test_a_signal_ends_a_recording_in_order(self):
        publisher, address = self.publish("  - {fids: 0, source: pattern, size: 40, rate: 10k}\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            recorder = self.record(address, "--progress", output="folder")
            recorder.wait_for(r"progress [1-9]")
            recorder.process.send_signal(number)
            status, report, log = recorder.end()
            self.assertEqual((status, report["end"], report["lost"]), (0, "interrupted", 0), log)
            self.assertEqual(report["written"], report["messages"])
            self.assertEqual(os.path.dirname(report["files"][0]), self.path("folder"))
        self.assertEqual(len(os.listdir(self.path("folder"))), 2)
        publisher.process.send_signal(signal.SIGINT)
        publisher.end()


@unittest.skipIf(missing_reader(), missing_reader())
class McapKilling(RecordCase):
    def check_replay(self, folder, expected):
        """A replay publishes the number of messages of each fid that the files have."""
        replay = self.start("replay", folder, "--rate", "max", "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        status, report, log = self.start("subscribe", replay.address(), "--fid", "0-67").end()
        self.assertEqual((status, replay.end()[0]), (0, 0), log)
        self.assertEqual({int(fid, 16): row["messages"] for fid, row in report["fids"].items()},
                         {int(fid, 16): count for fid, count in expected.items()})

    def test_a_killed_recording_has_every_whole_chunk(self):
        seed = int(os.environ.get("NETIO_SEED", random.randrange(1 << 32)))
        dice = random.Random(seed)
        publisher, address = self.publish(
            self.PATTERN.partition("\n")[2] + "  - {fids: 64-67, source: pattern, size: 64k, rate: 500}\n")
        for number in range(KILLS):
            with self.subTest(number=number, seed=seed):
                arguments = ("--compress", dice.choice(("none", "lz4", "zstd")), "--chunk-size", "256KiB",
                             *dice.choice(((), ("--direct-io",), ("--rotate-size", "2MiB"))))
                output = f"run{number}"
                recorder = self.record(address, *arguments, output=output, fid="0-67")
                recorder.wait_for("recording to")
                wanted = dice.randrange(100, 8 << 20)
                folder = self.path(output)
                while sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) < wanted:
                    self.assertIsNone(recorder.process.poll())
                recorder.process.kill()
                recorder.end()
                paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
                following = {}
                found_files = read(*paths)
                for found in found_files[:-1]:
                    self.assertTrue(found["closed"] and found["index_agrees"])
                for found in found_files:
                    self.assertTrue(found["in_order"])
                    for fid, row in found["fids"].items():
                        self.assertEqual((row["first"], row["skipped"]), (following.get(fid, 0), 0))
                        following[fid] = row["last"] + 1
                # All but the open chunk: what follows the last whole one is less than a chunk and its index.
                ended = subprocess.run([PROGRAM, "file", "info", *paths, "--json"], capture_output=True, text=True,
                                       check=True, timeout=DEADLINE)
                info = json.loads(ended.stdout.splitlines()[-1])
                self.assertEqual(info["messages"], sum(following.values()))
                self.assertLess(sum(torn["bytes"] for torn in info["torn"]), 1 << 20)
                if sum(map(os.path.getsize, paths)) > 3 << 20:
                    self.assertGreater(sum(following.values()), 0)
                if following:
                    self.check_replay(folder, following)
                shutil.rmtree(folder)
        publisher.process.send_signal(signal.SIGINT)
        publisher.end()


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
