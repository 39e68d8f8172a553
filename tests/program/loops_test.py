# SPDX-License-Identifier: Apache-2.0
"""A publisher with several loops: several publishers for a subscriber, one for its user.

loops_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import json
import os
import signal
import subprocess
import unittest
import urllib.request

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

STREAMS = "loops: %d\nstreams:\n  - {fids: 0-9, source: pattern, size: 40, %s}\n"


class Loops(Case):
    def publish(self, streams, *arguments, loops=2, mode="buffered"):
        publisher = self.start("publish", self.config(streams, mode), *arguments)
        return publisher, [publisher.address(which) for which in range(1, loops + 1)]

    def end(self, *programs):
        """The reports of programs that have ended without error."""
        reports = []
        for program in programs:
            status, report, log = program.end()
            self.assertEqual(status, 0, log)
            reports.append(report)
        return reports

    def test_a_subscriber_of_all_addresses_gets_each_fid_once(self):
        for mode in ("buffered", "unbuffered"):
            publisher, addresses = self.publish(STREAMS % (3, "count: 500"), "--wait-subscribers", 1,
                                                loops=3, mode=mode)
            self.assertEqual(len(set(addresses)), 3)
            subscriber = self.start("subscribe", *addresses, "--fid", "0-9", "--verify")
            found, made = self.end(subscriber, publisher)
            self.assertEqual((found["messages"], found["lost"], found["surplus"]), (5000, 0, 0))
            self.assertEqual({row["messages"] for row in found["fids"].values()}, {500})
            self.assertEqual((made["role"], made["loops"], made["messages"]), ("publisher", 3, 5000))
            self.assertEqual(len(made["fids"]), 10)
            self.assertNotIn("name", made)

    def test_a_subscriber_of_one_address_gets_the_fids_of_its_loop(self):
        publisher, addresses = self.publish(STREAMS % (2, "count: 100"), "--wait-subscribers", 1)
        first = self.start("subscribe", addresses[0], "--fid", "0-9", "--verify")
        second = self.start("subscribe", addresses[1], "--fid", "5", "--fid", "7", "--verify")
        found, some, made = self.end(first, second, publisher)
        self.assertEqual([int(fid, 16) for fid in found["fids"]], [0, 1, 2, 3, 4])
        self.assertEqual((found["messages"], some["messages"]), (500, 200))
        self.assertEqual((made["messages"], made["without_subscribers"]), (700, 300))

    def test_all_loops_are_found_on_a_bus_and_end_together(self):
        bus = self.path("bus")
        publisher, _ = self.publish(STREAMS % (2, "rate: 1000"), "--bus", bus)
        publisher.wait_for("announced as", 2)
        subscriber = self.start("subscribe", "--bus", bus, "--fid", "3-6", "--verify", "--progress")
        # Each loop has its own line; the subscriber reports simultaneous events in one line.
        publisher.wait_for("subscribes to", 2)
        subscriber.wait_for(r"progress [1-9]", 2)
        listed = json.loads(subprocess.run([PROGRAM, "list", "--bus", bus, "--json"], timeout=DEADLINE,
                                           capture_output=True, text=True).stdout)["publishers"]
        self.assertEqual([[(int(row["first"], 16), int(row["last"], 16)) for row in each["fids"]]
                          for each in listed], [[(0, 4)], [(5, 9)]])
        publisher.process.send_signal(signal.SIGINT)
        made, = self.end(publisher)
        self.assertEqual((made["end"], made["loops"]), ("interrupted", 2))
        self.assertEqual(os.listdir(bus), [])
        subscriber.process.send_signal(signal.SIGINT)
        found, = self.end(subscriber)
        self.assertEqual((found["lost"], found["unknown_tails"]), (0, 0))
        self.assertEqual(sorted(int(fid, 16) for fid in found["fids"]), [3, 4, 5, 6])

    def test_each_loop_shows_its_figures(self):
        text = f"metrics: {HOST}:0\n" + STREAMS % (2, "rate: 1000")
        publisher, _ = self.publish(text, "--progress")
        pages = []
        for which in (1, 2):
            where = publisher.wait_for(r"metrics at (\S+)", which).group(1)
            with urllib.request.urlopen(where, timeout=DEADLINE) as page:
                pages.append(page.read().decode())
        for page in pages:
            self.assertIn("netio_publisher_unwanted_total", page)
        publisher.wait_for("progress")
        publisher.process.send_signal(signal.SIGTERM)
        self.end(publisher)

    def test_each_loop_requires_keys_and_disconnects_revoked_ones(self):
        site, key = self.path("site.keys"), self.path("monitor.key")
        made = subprocess.run([PROGRAM, "key", "new", site, "--name", "monitor", "--rights",
                               "services=pubsub fids=0-9 connections=1", "--client", key],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(made.returncode, 0, made.stderr)
        publisher, addresses = self.publish("keys: site.keys\n" + STREAMS % (2, "rate: 1000"),
                                            "--min-protection", "privacy")
        stranger = self.start("subscribe", addresses[1], "--fid", "5")
        self.assertNotEqual(stranger.end()[0], 0)
        # One connection to each: connections= counts for each loop.
        subscriber = self.start("subscribe", *addresses, "--fid", "0-9", "--key", key, "--protection",
                                "privacy", "--verify", "--progress")
        publisher.wait_for("subscribes to", 2)
        subscriber.wait_for(r"progress [1-9]", 2)
        with open(self.path("next.keys"), "w", encoding="ascii",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("netio-keys 1\nend\n")
        os.rename(self.path("next.keys"), site)
        publisher.wait_for("key 1 was removed or changed: 1 connections are closed", 2)
        self.assertNotEqual(subscriber.end()[0], 0)
        publisher.process.send_signal(signal.SIGINT)
        self.end(publisher)

    def test_messages_and_time_are_limits_of_all_loops_together(self):
        publisher, _ = self.publish(STREAMS % (3, "rate: 100000"), "--messages", 1000, loops=3)
        made, = self.end(publisher)
        self.assertEqual((made["end"], made["without_subscribers"]), ("finished", 1000))
        publisher, _ = self.publish(STREAMS % (2, "rate: 10"), "--duration", "200ms")
        self.assertEqual(self.end(publisher)[0]["end"], "duration")

    def test_unconfirmed_subscribers_are_counted_in_each_loop(self):
        publisher, addresses = self.publish(STREAMS % (2, "rate: 100"))
        stopped = self.start("subscribe", *addresses, "--fid", "0-9")
        publisher.wait_for("subscribes to", 2)
        stopped.process.send_signal(signal.SIGSTOP)
        publisher.process.send_signal(signal.SIGINT)
        publisher.process.send_signal(signal.SIGTERM)  # equal signals may be merged
        status, made, log = publisher.end()
        self.assertEqual((status, made["loops"], made["unconfirmed"]), (5, 2, 2), log)
        stopped.process.kill()

    def test_if_one_loop_fails_the_others_end_with_a_report(self):
        file = self.path("goes-away", bytes(64))
        publisher, addresses = self.publish(
            "loops: 2\nwait_subscribers: 1\nstreams:\n"
            "  - {fids: 1, source: pattern, size: 40, rate: 100}\n"
            "  - {fids: 2, source: {file: goes-away}}\n")
        os.unlink(file)
        subscriber = self.start("subscribe", addresses[1], "--fid", "1-2")
        status, made, log = publisher.end()
        self.assertEqual((status, made["end"]), (1, "failed"), log)
        self.assertIn("goes-away", log)
        self.assertIn("a loop has failed; the others end as well", log)
        self.assertEqual(subscriber.end()[1]["end"], "orderly")

    def test_ports_that_are_taken_end_the_start_in_one_line(self):
        one, addresses = self.publish(STREAMS % (2, "rate: 10"))
        port = int(addresses[0].rsplit(":", 1)[1])
        if port == 65535 or addresses[1] == f"{HOST}:{port - 1}":
            self.skipTest("no port in front of it")
        other = self.start("publish", self.path("publisher.yaml"), "--listen", f"{HOST}:{port - 1}",
                           json_report=False)
        status, _, log = other.end()
        self.assertEqual(status, 1, log)
        self.assertRegex(log, f"{HOST}:({port - 1}|{port})")
        one.process.send_signal(signal.SIGINT)
        self.end(one)

    def test_an_indivisible_configuration_is_refused_at_the_start(self):
        text = "loops: 3\nstreams:\n  - {fids: 0-1, source: pattern, size: 40}\n"
        for arguments in ([], ["--check"]):
            status, _, log = self.start("publish", self.config(text), *arguments, json_report=False).end()
            self.assertEqual(status, 1)
            self.assertIn("loops: 3, but there are fids for 2 only", log)
            self.assertNotIn("listening", log)

    def test_a_check_tells_of_each_loop(self):
        done = subprocess.run([PROGRAM, "publish", self.config(STREAMS % (2, "rate: 10")), "--check"],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("would publish 5 fid(s)"), 2)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
