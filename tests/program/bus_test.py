# SPDX-License-Identifier: Apache-2.0
"""Publishers that are found by their fids.

bus_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import json
import os
import re
import signal
import subprocess
import unittest

from program_case import DEADLINE, PROGRAM, UNITTEST_ARGUMENTS, Case

STREAMS = "streams:\n  - {fids: %s, source: pattern, size: 40, rate: 100, meaning: hits}\n"


class Finding(Case):
    def publish(self, fids, *arguments):
        publisher = self.start("publish", self.config(STREAMS % fids), "--bus", self.path("bus"),
                               *arguments)
        publisher.wait_for("announced as")
        return publisher

    def list(self, *arguments):
        done = subprocess.run([PROGRAM, "list", "--bus", self.path("bus"), *arguments],
                              capture_output=True, text=True, timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr

    def listed(self, *arguments):
        return [each["name"] for each in json.loads(self.list("--json", *arguments)[1])["publishers"]]

    def wait_until_listed(self, count):
        while not os.path.isdir(self.path("bus")) or len(self.listed()) < count:
            pass

    def test_a_subscriber_without_an_address_finds_later_publishers(self):
        some = r"progress [1-9]"
        os.mkdir(self.path("bus"))
        subscriber = self.start("subscribe", "--bus", self.path("bus"), "--fid", "32-95", "--verify",
                                "--progress")
        first = self.publish("0-63")
        subscriber.wait_for("subscribed to 0x20-0x3f")
        subscriber.wait_for(some)
        second = self.publish("64-127")
        subscriber.wait_for("subscribed to 0x40-0x5f")
        for publisher in (first, second):
            publisher.wait_for("subscribes to")
        for publisher in (first, second):
            publisher.process.send_signal(signal.SIGINT)
            publisher.end()
        third = self.publish("0-63") # its numbers do not continue those of the first one
        subscriber.wait_for("connected to .*-%d-" % third.process.pid)
        told = sum(re.search(some, line) is not None for line in subscriber.lines)
        subscriber.wait_for(some, told + 2)
        third.process.send_signal(signal.SIGINT)
        third.end()
        subscriber.process.send_signal(signal.SIGINT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["end"], report["lost"]), (0, "interrupted", 0), log)
        self.assertEqual((report["connections"], report["unknown_tails"]), (3, 0), log)

    def test_neither_an_address_nor_a_bus_is_wrong_usage(self):
        done = subprocess.run([PROGRAM, "subscribe", "--fid", "1"], capture_output=True, text=True,
                              timeout=DEADLINE)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_publisher_is_found_by_its_fids_and_cleans_up(self):
        first, second = self.publish("0-63"), self.publish("64-127")
        self.wait_until_listed(2)
        self.assertEqual(len(self.listed()), 2)
        status, out, log = self.list("--fid", "100")
        self.assertEqual(status, 0, log)
        self.assertIn(f"process {second.process.pid}", out)
        self.assertIn(f"at tcp:{second.address()}", out)
        self.assertIn("fids 0x40-0x7f: hits", out)
        self.assertNotIn(f"process {first.process.pid}", out)
        for publisher in (first, second):
            publisher.process.send_signal(signal.SIGINT)
            publisher.end()
        self.assertEqual(os.listdir(self.path("bus")), [])
        self.assertEqual(self.list()[0], 4)

    def test_a_watcher_is_notified_of_new_and_killed_publishers(self):
        os.mkdir(self.path("bus"))
        watcher = subprocess.Popen([PROGRAM, "list", "--bus", self.path("bus"), "--watch", "--json"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        publisher = self.publish("0-63")
        found = json.loads(watcher.stdout.readline())
        self.assertEqual((found["event"], found["pid"]), ("found", publisher.process.pid))
        publisher.process.kill()
        self.assertEqual(json.loads(watcher.stdout.readline()),
                         {"role": "list", "report_version": 1, "event": "gone", "name": found["name"]})

    def test_the_wait_for_live_publishers_ends_after_the_duration(self):
        bus = self.path("bus")
        os.mkdir(bus)
        self.path("bus/x.netio", json.dumps({"netio": 1, "name": "x", "instance": "0x1", "counter": 1, "host": "h",
                                             "pid": 1, "started": "", "mode": "buffered", "lease_ms": 3600000,
                                             "addresses": ["tcp:127.0.0.1:1"], "fids": [], "metrics": "",
                                             "parameters": {}}))
        self.assertEqual(self.listed("--alive", "--duration", "1s"), ["x"])

    def test_two_publishers_of_the_same_fid_are_reported(self):
        self.publish("0-63")
        self.publish("63-70")
        self.wait_until_listed(2)
        self.assertRegex(self.list()[2], "0x3f is announced by .* and by ")

    def test_a_subscriber_finds_many_ranges_and_logs_few_lines(self):
        subscriber = self.start("subscribe", "--bus", self.path("bus"), "--fid",
                                "{detector: 3, link: 0-23, elink: 0-39}", "--decode-fids", "felix",
                                "--messages", "200", "--verify")
        self.publish("{detector: 3, link: 0-23, elink: 0-39}")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"], report["lost"]), (0, 200, 0), log)
        self.assertIn("subscribed to {detector: 3}, {detector: 3, elink: 1}, ", log)
        self.assertLess(log.count("subscribed to"), 10)

    def test_a_publisher_whose_bus_cannot_be_written_publishes(self):
        publisher = self.start("publish", self.config(STREAMS % "0"), "--bus", "/proc/none")
        publisher.wait_for("cannot announce in '/proc/none'")
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0", "--messages", "10")
        self.assertEqual(subscriber.end()[0], 0)

    def test_a_bus_that_is_not_there_is_an_error_with_its_reason(self):
        status, out, log = self.list()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("No such file or directory", log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
