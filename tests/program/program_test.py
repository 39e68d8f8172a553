# SPDX-License-Identifier: Apache-2.0
"""The program netio as its users see it: processes, exit status, JSON, files.

program_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import hashlib
import os
import re
import resource
import signal
import subprocess
import threading
import unittest

from program_case import DEADLINE, HOST, PROGRAM, PROVIDER, UNITTEST_ARGUMENTS, Case, share_of


class Publishing(Case):
    def check_verified(self, config, messages, fids, mode):
        publisher = self.start("publish", config, "--messages", messages, "--wait-subscribers", 2)
        address = publisher.address()
        all_of_it = self.start("subscribe", address, "--fid", f"0-{fids - 1}", "--verify")
        half = self.start("subscribe", address, "--fid", f"0-{fids // 2 - 1}", "--verify")
        arrived = {}  # for each fid: the share of each fid depends on which one is blocked
        for process, share in ((all_of_it, 1), (half, 2)):
            status, report, log = process.end()
            self.assertEqual(status, 0, log)
            self.assertEqual(report["role"], "subscriber")
            self.assertEqual(report["mode"], mode)
            self.assertEqual(report["provider"], PROVIDER)
            self.assertEqual(report["end"], "orderly")
            for key in ("lost", "surplus", "reordered", "corrupt", "duplicates"):
                self.assertEqual(report[key], 0, key)
            self.assertEqual(len(report["fids"]), fids // share)
            for fid, row in report["fids"].items():
                self.assertEqual(arrived.setdefault(fid, row["messages"]), row["messages"], fid)
        self.assertEqual(sum(arrived.values()), messages)
        status, report, log = publisher.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["messages"], messages)
        # Both sides report the same for each fid.
        self.assertEqual({fid: row["messages"] for fid, row in report["fids"].items()}, arrived)
        for key in ("role", "provider", "mode", "bytes", "seconds", "messages_per_s",
                    "gbit_per_s"):
            self.assertIn(key, report)

    def test_small_messages_buffered(self):
        self.check_verified(self.config(self.PATTERN), share_of(640000, 64), 64, "buffered")

    def test_large_messages_unbuffered(self):
        self.check_verified(self.config(self.LARGE, "unbuffered"), share_of(8000, 8), 8,
                            "unbuffered")

    def test_messages_larger_than_any_buffer(self):
        text = "streams:\n  - {fids: 0-1, source: pattern, size: {list: [3M, 24, 500k]}}\n"
        for mode in ("buffered", "unbuffered"):
            self.check_verified(self.config(text, mode), share_of(60, 18), 2, mode)  # also small

    def test_files_and_standard_input_arrive_as_they_are(self):
        contents = {i: os.urandom(100000 * i + i) for i in range(1, 4)}
        names = [self.path(f"source{i}", content) for i, content in contents.items()]
        config = self.config("streams:\n  - fids: 1-3\n    size: {uniform: {min: 1, max: 9000}}\n"
                             f"    source: {{files: [{', '.join(names)}]}}\n"
                             "  - {fids: 9, source: pipe, size: 7k}\n", "unbuffered")
        contents[9] = os.urandom(300001)
        publisher = self.start("publish", config, stdin=subprocess.PIPE)
        feeder = threading.Thread(target=lambda: (
            publisher.process.stdin.buffer.write(contents[9]), publisher.process.stdin.close()))
        feeder.start()
        recorder = self.start("record", publisher.address(), "--fid", "1-9", "--output", self.path("run.mcap"))
        status, report, log = recorder.end()
        feeder.join()
        self.assertEqual(status, 0, log)
        self.assertEqual(publisher.end()[0], 0)
        self.assertEqual(report["bytes"], sum(map(len, contents.values())))
        for fid, content in contents.items():
            exported = subprocess.run([PROGRAM, "file", "export", self.path("run.mcap"), "--as", "raw", "--fid",
                                       str(fid), "--output", "-"], stdout=subprocess.PIPE, check=True)
            self.assertEqual(hashlib.sha256(exported.stdout).digest(), hashlib.sha256(content).digest(), fid)

    def test_a_rate_is_kept(self):
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 2000}\n")
        publisher = self.start("publish", config, "--duration", "1s")
        status, report, log = publisher.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["end"], "duration")
        self.assertEqual(report["messages"], 0)
        # There was no subscriber; a slow machine may be far behind, but none may be too early.
        self.assertLessEqual(report["without_subscribers"], 2000 * report["seconds"] + 1)
        self.assertGreater(report["without_subscribers"], 0)


class Enduring(Case):
    """A million messages, on a slow machine as well."""

    def check_a_million(self, mode):
        publisher = self.start("publish", self.config(self.PATTERN, mode), "--messages", 1000000,
                               "--wait-subscribers", 1)
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["provider"], report["messages"]), (0, PROVIDER, 1000000),
                         log)
        for key in ("lost", "reordered", "corrupt", "duplicates"):
            self.assertEqual(report[key], 0, key)
        status, report, log = publisher.end()
        self.assertEqual((status, report["messages"], report["mode"]), (0, 1000000, mode), log)

    def test_buffered(self):
        self.check_a_million("buffered")

    def test_unbuffered(self):
        self.check_a_million("unbuffered")


class Doctoring(Case):
    def test_the_doctor_reports_what_to_change_and_what_is_used(self):
        status, report, log = self.start("doctor").end()
        kinds = {finding["kind"] for finding in report["findings"]}
        self.assertEqual(report["well"], "change" not in kinds, log)
        self.assertEqual(status, 0 if report["well"] else 1)
        for finding in report["findings"]:
            self.assertTrue(finding["remedy"] or finding["kind"] != "change", finding)
        told = "\n".join(finding["what"] for finding in report["findings"])
        self.assertIn(f"provider for {HOST}: {PROVIDER}", told)
        self.assertEqual("there is no RDMA device" in told,
                         not os.path.isdir("/sys/class/infiniband")
                         or not os.listdir("/sys/class/infiniband"))

    def test_the_path_to_another_machine_is_tried(self):
        server = self.start("doctor", "--serve", f"{HOST}:0", "--allow-remote-anonymous", json_report=False)
        _, report, log = self.start("doctor", server.address()).end()
        path = report["path"]
        self.assertEqual(path.get("provider"), PROVIDER, path)
        self.assertGreater(path["round_trips"], 0)
        self.assertGreater(path["round_trip_us"]["median"], 0)
        self.assertGreater(path["gbit_per_s"], 0)
        self.assertGreater(path["frame_bytes"], 1000000)
        server.wait_for("has disconnected: closed in order")
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.end()[0], 0)

    def test_a_path_without_an_answer_is_a_failure_with_a_hint(self):
        process = self.start("doctor", "--provider", "tcp", "127.0.0.1:1")
        status, report, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertFalse(report["well"])
        self.assertIn("127.0.0.1:1", report["path"]["failure"])


class Refusing(Case):
    def check_refused(self, *arguments, saying):
        process = self.start(*arguments, json_report=False)
        status, _, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertRegex(log, saying)

    def test_errors_are_refused_with_the_place_and_the_reason(self):
        self.check_refused("publish", "/no/where.yaml", saying=r"/no/where\.yaml: cannot be read")
        self.check_refused("publish", self.config("streamz: 1\n"),
                           saying=r"publisher\.yaml:4:1: streamz: unknown key .*did you mean 'streams'")
        config = self.config(self.PATTERN)
        self.check_refused("publish", config, "--listen", "192.0.2.77:1", "--allow-remote-anonymous",
                           saying=r"192\.0\.2\.77")
        self.check_refused("publish", config, "--listen", "nonsense", saying="HOST:PORT")
        self.check_refused("publish", config, "--provider", "sockets", saying="sockets")
        self.check_refused("publish", config, "--provider", "udp;ofi_rxm", saying="udp;ofi_rxm")
        self.check_refused("subscribe", "127.0.0.1:1", "--fid", "9-1", saying="ends before it begins")
        self.check_refused("subscribe", "127.0.0.1:1", "--fid", "1", "--policy", "wait",
                           saying="--policy: 'wait' is unknown; allowed: block, drop, disconnect")

    def test_listening_for_other_machines_needs_an_option(self):
        everywhere = self.path("everywhere.yaml", "listen: 0.0.0.0:0\nmode: buffered\n" + self.PATTERN)
        for words in (("publish", everywhere), ("pump", "--serve", "--listen", "0.0.0.0:0"),
                      ("cat", "--listen", "0.0.0.0:0"), ("doctor", "--serve", "0.0.0.0:0"),
                      ("copy", "--serve", self.path("served"), "--listen", "0.0.0.0:0")):
            with self.subTest(words[0]):
                os.makedirs(self.path("served"), exist_ok=True)
                self.check_refused(*words, saying=r"0\.0\.0\.0:0 can be reached .*--allow-remote-anonymous")
                server = self.start(*words, "--allow-remote-anonymous", json_report=False)
                server.wait_for(r"listening at 0\.0\.0\.0:\d+")

    def test_a_stricter_policy_than_the_publishers_is_refused(self):
        publisher = self.start("publish", self.config("slow_policy: drop\n" + self.PATTERN))
        self.check_refused("subscribe", publisher.address(), "--fid", "0-63", "--policy", "block",
                           saying="policy 'block' for .*, because it would block publishing more .*leave out --policy")

    def test_an_address_in_use_is_named(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        self.check_refused("publish", self.config(self.PATTERN), "--listen", publisher.address(),
                           saying=re.escape(publisher.address()) + ".*in use")

    def test_an_unwritable_recording_ends_only_the_subscriber(self):
        publisher = self.start("publish", self.config(self.PATTERN), "--wait-subscribers", 2)
        failing = self.start("record", publisher.address(), "--fid", "0", "--output", self.path("run.mcap"),
                             "--min-free", "100000TiB")
        sound = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify", "--messages",
                           64000)
        status, report, log = failing.end()
        self.assertNotEqual(status, 0)
        self.assertIn("min_free_bytes", log)
        self.assertEqual(report["end"], "failed")
        status, report, log = sound.end()
        self.assertEqual((status, report["messages"]), (0, 64000), log)
        # A subscriber that leaves during the end has not confirmed it, which gives another exit
        # status.
        publisher.wait_for("has disconnected|: connection lost", which=2)
        publisher.process.send_signal(signal.SIGINT)
        self.assertEqual(publisher.end()[0], 0)


class Reading(Case):
    """The examples that read out a card."""

    EXAMPLES = os.path.dirname(PROGRAM)

    def run_example(self, name, address):
        process = subprocess.Popen([os.path.join(self.EXAMPLES, name), address],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_full_ring_stops_the_card_and_keeps_unsent_data(self):
        readout = self.run_example("example_readout", "127.0.0.1:0")
        address = readout.stdout.readline().split()[-1]
        checker = self.run_example("example_readout_check", address)
        self.assertEqual(readout.stdout.readline(), "the card runs\n")
        checker.send_signal(signal.SIGSTOP)
        self.assertEqual(readout.stdout.readline(), "the ring was full\n")
        checkers = [checker, self.run_example("example_readout_check", address)]
        checker.send_signal(signal.SIGCONT)
        for checker in checkers:  # each has received some of it
            self.assertRegex(checker.stdout.readline(), r"first message is of event \d+")
        readout.send_signal(signal.SIGINT)
        for checker in checkers:
            self.assertRegex(checker.stdout.readline(), r"checked [1-9]\d* messages, 0 wrong")
            self.assertEqual(checker.wait(DEADLINE), 0)
        self.assertRegex(readout.stdout.readline(), r"sent [1-9]\d* events")
        self.assertEqual(readout.wait(DEADLINE), 0)


class Idling(Case):
    def test_fifty_idle_subscribers_cost_no_processor_time(self):
        """Counted in context switches: every wake-up of a blocking loop is one."""
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 0.001}\n"
                             "wait_subscribers: 50\n")
        publisher = self.start("publish", config)
        address = publisher.address()
        subscribers = [self.start("subscribe", address, "--fid", "1") for _ in range(50)]
        for subscriber in subscribers:
            subscriber.wait_for("subscribed to")

        def switches():
            with open(f"/proc/{publisher.process.pid}/status") as status:
                return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

        before = switches()
        # The clock is another process's heartbeat: the loop of a subscriber with progress lines.
        clock = self.start("subscribe", address, "--fid", "2", "--progress")
        for count in range(1, 7):
            with clock.changed:
                while sum("progress" in line for line in clock.lines if line) < count:
                    self.assertTrue(clock.changed.wait(DEADLINE))
        # 51 connections in 6 seconds: two heartbeats each way, a few for connecting, and their
        # sends.
        self.assertLess(switches() - before, 51 * 2 * 6 + 100)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    unittest.main(argv=UNITTEST_ARGUMENTS)
