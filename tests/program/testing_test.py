# SPDX-License-Identifier: Apache-2.0
"""`netio publish` and `netio subscribe` as test tools for a readout: triggers, intended faults,
one-way latency, a slow reader, output that cannot be written.

testing_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import re
import signal
import socket
import subprocess
import unittest

from program_case import CONFIG, DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

# The publisher's name of a fault, and the subscriber's name of what it finds.
NAMES = {"missing": "missing", "duplicated": "duplicates", "corrupted": "corrupt", "late": "reordered",
         "truncated": "truncated"}


class TestPublishing(Case):
    def run_both(self, config, *arguments, listen=True):
        publisher = self.start("publish", config, *(["--listen", f"{HOST}:0"] if listen else []))
        subscriber = self.start("subscribe", publisher.address(), *arguments)
        status, found, log = subscriber.end()
        published_status, made, published_log = publisher.end()
        self.assertEqual(published_status, 0, published_log)
        return status, found, made, log

    def check_faults(self, config, *arguments):
        status, found, made, log = self.run_both(config, "--verify", *arguments)
        self.assertEqual((status, found["outcome"], found["lost"]), (6, "unsound", 0), log)
        for fault, name in NAMES.items():
            self.assertGreater(made["faults"][fault], 0, fault)
            self.assertEqual(found[name], made["faults"][fault], fault)

    def test_verify_finds_exactly_the_faults_that_were_made(self):
        self.check_faults(os.path.join(CONFIG, "faults.yaml"), "--fid", "1-4")
        for mode in ("buffered", "unbuffered"):
            self.check_faults(self.config(
                "wait_subscribers: 1\ntime_stamps: tai\nstreams:\n"
                "  - {fids: 1-9, source: pattern, size: {uniform: {min: 33, max: 20k}}, count: 300,\n"
                "     slices: 5, header: 0xcafe01, faults: {missing: 0.02,\n"
                "     duplicated: 0.02, corrupted: 0.02, late: 0.02, truncated: 0.02}}\n", mode),
                "--fid", "1-9", "--header-bytes", 3)

    def test_all_fids_of_a_trigger_have_each_event(self):
        publisher = self.start("publish", os.path.join(CONFIG, "bunch-train.yaml"), "--listen",
                               f"{HOST}:0", "--wait-subscribers", 1, "--messages", 20 * 50)
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-15", "--fid", "100-103",
                                "--verify", "--header-bytes", 8)
        status, found, log = subscriber.end()
        self.assertEqual(status, 0, log)
        self.assertEqual([row["messages"] for row in found["fids"].values()], [50] * 20)
        self.assertEqual(found["latency"]["messages"], 1000)
        times = [found["latency"][name] for name in ("p50_us", "p90_us", "p99_us", "p99_9_us", "longest_us")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        status, made, log = publisher.end()
        self.assertEqual((status, made["triggers"]["l1"]["events"]), (0, 50), log)

    def test_a_subscriber_sees_each_publisher_of_one_process(self):
        text = ("publishers:\n"
                f"  - {{listen: '{HOST}:0', mode: buffered, wait_subscribers: 1, name: small,\n"
                "     streams: [{fids: 0-9, source: pattern, size: 40, count: 50}]}\n"
                f"  - {{listen: '{HOST}:0', mode: unbuffered, wait_subscribers: 1, name: large,\n"
                "     streams: [{fids: 20-21, source: pattern, size: 100k, count: 20}]}\n")
        publisher = self.start("publish", self.path("several.yaml", text))
        small, large = publisher.address(), publisher.address(2)
        self.assertNotEqual(small, large)
        subscriber = self.start("subscribe", small, large, "--fid", "0-21", "--verify")
        status, found, log = subscriber.end()
        self.assertEqual((status, found["messages"]), (0, 540), log)
        status, made, log = publisher.end()
        self.assertEqual(status, 0, log)
        self.assertEqual([(each["name"], each["mode"], each["messages"]) for each in made["publishers"]],
                         [("small", "buffered", 500), ("large", "unbuffered", 40)])
        refused = self.start("publish", self.path("several.yaml"), "--listen", "127.0.0.1:0",
                             json_report=False)
        status, _, log = refused.end()
        self.assertEqual(status, 2)
        self.assertIn("--listen is for a single publisher", log)

    def test_an_interrupted_process_ends_all_its_publishers(self):
        text = "publishers:\n" + (f"  - {{listen: '{HOST}:0', mode: buffered,\n     streams: "
                                  "[{fids: 0-9, source: pattern, size: 40, rate: 100}]}\n") * 3
        publisher = self.start("publish", self.path("several.yaml", text))
        subscriber = self.start("subscribe", publisher.address(3), "--fid", "0", "--progress")
        subscriber.wait_for(r"progress [1-9]")
        publisher.process.send_signal(signal.SIGINT)
        status, made, log = publisher.end()
        self.assertEqual((status, [each["end"] for each in made["publishers"]]), (0, ["interrupted"] * 3),
                         log)
        self.assertEqual(subscriber.end()[1]["end"], "orderly")

    def test_eight_bytes_prove_themselves(self):
        for mode in ("buffered", "unbuffered"):
            status, found, _, log = self.run_both(self.config(
                "streams:\n  - {fids: 0-9, source: pattern, size: 8, count: 100}\n", mode), "--fid", "0-9",
                "--verify", listen=False)
            self.assertEqual((status, found["messages"], found["bytes"]), (0, 1000, 8000), log)

    def test_a_rate_of_each_fid_is_that_of_all_of_them_together(self):
        publisher = self.start("publish", self.config(
            "streams:\n  - {fids: 0-9, source: pattern, size: 40, rate: {per_fid: 100}}\n"),
            "--duration", "1s")
        status, report, log = publisher.end()
        self.assertEqual(status, 0, log)
        # A slow machine may be late, but none may be too early.
        self.assertLessEqual(report["without_subscribers"], 1000 * report["seconds"] + 1)
        self.assertGreater(report["without_subscribers"], 0)

    def test_a_prescaled_subscriber_counts_and_verifies_all(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0", "--verify", "--messages", 100,
                                "--prescale", 10)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"], report["passed_over"]), (0, 100, 90), log)

    def test_a_subscriber_is_as_slow_as_configured(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        thinking = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify", "--think",
                              "2ms", "--messages", 200)
        status, report, log = thinking.end()
        self.assertEqual(status, 0, log)
        self.assertGreaterEqual(report["seconds"], 0.002 * 199)
        pausing = self.start("subscribe", publisher.address(), "--fid", "0-63", "--pause", "99s@100s",
                             "--think", "1h", "--progress")
        pausing.wait_for("connected to")
        pausing.process.send_signal(signal.SIGINT)  # although each message takes an hour
        self.assertEqual(pausing.end()[1]["end"], "interrupted")
        for wrong in ("1s", "2s@1s", "@", "x@1s"):
            wrong = self.start("subscribe", "a:1", "--fid", "1", "--pause", wrong, json_report=False)
            status, _, log = wrong.end()
            self.assertEqual(status, 2)
            self.assertIn("allowed: TIME@TIME", log)


class BadPlaces(Case):
    """Output that cannot be written costs no message."""

    COUNTED = "wait_subscribers: 1\nstreams:\n  - {fids: 1, source: pattern, size: 40, count: 5000}\n"

    def test_a_full_disk_under_the_log_costs_no_message(self):
        config = self.config(self.COUNTED.replace("wait_subscribers: 1\n", ""))
        with socket.create_server((HOST, 0)) as probe:
            address = f"{HOST}:{probe.getsockname()[1]}"
        publisher = self.start("publish", config, "--listen", address, "--log-file", "/dev/full")
        subscriber = self.start("subscribe", address, "--fid", "1", "--verify", "--log-file", "/dev/full",
                                "--log-level", "debug")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, 5000), log)
        status, report, log = publisher.end()
        self.assertEqual((status, report["messages"]), (0, 5000), log)

    def test_a_terminal_that_disappears_costs_no_message(self):
        master, slave = os.openpty()
        publisher = subprocess.Popen([PROGRAM, "publish", self.config(self.COUNTED)], stdin=slave, stdout=slave,
                                     stderr=slave, env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        self.addCleanup(publisher.kill)
        os.close(slave)
        text = ""
        while not (found := re.search(r"listening at (\S+?:\d+)\D", text)):
            text += os.read(master, 65536).decode()
        os.close(master)
        subscriber = self.start("subscribe", found.group(1), "--fid", "1", "--verify")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"], report["end"]), (0, 5000, "orderly"), log)
        self.assertEqual(publisher.wait(DEADLINE), 1)  # its report was lost


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
