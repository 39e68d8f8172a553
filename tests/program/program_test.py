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

from program_case import (DEADLINE, FACTOR, HOST, PROGRAM, PROVIDER, UNITTEST_ARGUMENTS, Case,
                          share_of)


class Publishing(Case):
    def check_verified(self, config, messages, fids, mode):
        publisher = self.start("publish", config, "--messages", messages, "--wait-subscribers", 2)
        address = publisher.address()
        all_of_it = self.start("subscribe", address, "--fid", f"0-{fids - 1}", "--verify")
        half = self.start("subscribe", address, "--fid", f"0-{fids // 2 - 1}", "--verify")
        arrived = {}  # of each fid: which fid has how many of all depends on who waits
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
        # Both sides say the same of each fid.
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
            self.check_verified(self.config(text, mode), share_of(60, 18), 2, mode)  # small ones of each fid, too

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
        subscriber = self.start("subscribe", publisher.address(), "--fid", "1-9", "--output",
                                self.path("recorded"))
        status, _, log = subscriber.end()
        feeder.join()
        self.assertEqual(status, 0, log)
        self.assertEqual(publisher.end()[0], 0)
        self.assertEqual(sorted(os.listdir(self.path("recorded"))),
                         [f"{fid:016x}" for fid in contents])
        for fid, content in contents.items():
            with open(self.path(f"recorded/{fid:016x}"), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).digest(),
                                 hashlib.sha256(content).digest(), fid)

    def test_a_rate_is_kept(self):
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 2000}\n")
        publisher = self.start("publish", config, "--duration", 1)
        status, report, log = publisher.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["end"], "duration")
        self.assertEqual(report["messages"], 0)
        # Nobody listened; a slow machine may fall far behind, but none may run ahead.
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
    def test_a_machine_is_told_what_to_change_and_what_is_used(self):
        status, report, log = self.start("doctor").end()
        kinds = {finding["kind"] for finding in report["findings"]}
        self.assertEqual(report["well"], "change" not in kinds, log)
        self.assertEqual(status, 0 if report["well"] else 1)
        for finding in report["findings"]:
            self.assertTrue(finding["remedy"] or finding["kind"] != "change", finding)
        told = "\n".join(finding["what"] for finding in report["findings"])
        self.assertIn(f"at {HOST} is used: {PROVIDER}", told)
        self.assertEqual("there is no RDMA device" in told,
                         not os.path.isdir("/sys/class/infiniband")
                         or not os.listdir("/sys/class/infiniband"))

    def test_the_path_to_another_machine_is_tried(self):
        server = self.start("doctor", "--serve", f"{HOST}:0", "--open", json_report=False)
        _, report, log = self.start("doctor", server.address()).end()
        path = report["path"]
        self.assertEqual(path.get("provider"), PROVIDER, path)
        self.assertGreater(path["round_trips"], 0)
        self.assertGreater(path["round_trip_us"]["median"], 0)
        self.assertGreater(path["gbit_per_s"], 0)
        self.assertGreater(path["frame_bytes"], 1000000)
        server.wait_for("has left: closed in order")
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.end()[0], 0)

    def test_a_path_without_an_answer_is_a_failure_with_a_hint(self):
        process = self.start("doctor", "--provider", "tcp", "127.0.0.1:1")
        status, report, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertFalse(report["well"])
        self.assertIn("127.0.0.1:1", report["path"]["failure"])


class Ending(Case):
    def test_a_subscriber_leaves_after_its_messages(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--messages", 12345)
        status, report, log = subscriber.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["messages"], 12345)
        self.assertEqual(report["end"], "messages")
        publisher.wait_for("has left")

    def test_interrupted_programs_report_and_succeed(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            publisher = self.start("publish", self.config(self.PATTERN))
            subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                    "--progress")
            subscriber.wait_for(r"progress [1-9]")
            subscriber.process.send_signal(number)
            status, report, log = subscriber.end()
            self.assertEqual((status, report["end"]), (0, "interrupted"), log)
            publisher.process.send_signal(number)
            status, report, log = publisher.end()
            self.assertEqual((status, report["end"]), (0, "interrupted"), log)

    def test_an_interrupted_publisher_is_an_orderly_end_for_its_subscribers(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--progress")
        subscriber.wait_for(r"progress [1-9]")  # else nothing has come, which is told
        publisher.process.send_signal(signal.SIGINT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["end"], report["lost"]), (0, "orderly", 0), log)

    def test_a_subscriber_waits_for_its_publisher(self):
        free = self.start("publish", self.config(self.PATTERN))
        address = free.address()
        free.process.send_signal(signal.SIGINT)
        free.end()
        subscriber = self.start("subscribe", address, "--fid", "1", "--verify")
        subscriber.wait_for("waiting for the publisher")
        publisher = self.start("publish", self.config(self.PATTERN), "--listen", address,
                               "--messages", 6400)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, 100), log)
        self.assertEqual(publisher.end()[0], 0)

    def test_a_subscriber_comes_back_and_says_what_it_does_not_know(self):
        first = self.start("publish", self.config(self.PATTERN))
        address = first.address()
        subscriber = self.start("subscribe", address, "--fid", "0-63", "--verify", "--progress",
                                "--reconnect")
        subscriber.wait_for(r"progress [1-9]")
        first.process.kill()
        first.end()
        subscriber.wait_for("waiting for the publisher")
        second = self.start("publish", self.config(self.PATTERN), "--listen", address)
        subscriber.wait_for("another publisher than before")
        second.wait_for("subscribes to")
        second.process.send_signal(signal.SIGINT)
        second.end()
        third = self.start("publish", self.config(self.PATTERN), "--listen", address)
        third.wait_for("subscribes to")
        subscriber.wait_for("subscribed to", which=3)  # the publisher knows of it first
        subscriber.process.send_signal(signal.SIGINT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["end"]), (5, "interrupted"), log)
        self.assertEqual((report["connections"], report["restarts"]), (3, 2), log)
        self.assertEqual((report["unknown_tails"], report["lost"]), (1, None), "the killed one")
        self.assertEqual((report["reordered"], report["duplicates"], report["corrupt"]), (0, 0, 0))

    def test_a_subscriber_takes_from_several_publishers(self):
        publishers = []
        for fid in (1, 2):
            publishers.append(self.start("publish", self.config(
                "streams:\n  - {fids: %d, source: pattern, size: 40, rate: 1000}\n" % fid)))
            publishers[-1].address()  # it has read its configuration
        subscriber = self.start("subscribe", *(each.address() for each in publishers),
                                "--fid", "0-9", "--verify", "--progress")
        for publisher in publishers:
            publisher.wait_for("subscribes to")
        subscriber.wait_for(r"progress [1-9]")
        for publisher in publishers:
            publisher.process.send_signal(signal.SIGINT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["end"], report["lost"]), (0, "orderly", 0), log)
        self.assertEqual(sorted(report["fids"]), ["0x1", "0x2"], log)

    def test_a_subscriber_waits_for_a_name_that_may_be_given_one_day(self):
        subscriber = self.start("subscribe", "no.such.host.invalid:1", "--fid", "1")
        subscriber.wait_for(r"waiting for the publisher: .*no\.such\.host\.invalid")
        subscriber.process.send_signal(signal.SIGINT)
        self.assertNotEqual(subscriber.end()[0], 0)

    def test_a_publisher_that_nobody_wants_lets_the_next_subscriber_in(self):
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 8M, rate: max}\n",
                             "unbuffered")
        publisher = self.start("publish", config)
        for _ in range(3):
            subscriber = self.start("subscribe", publisher.address(), "--fid", "0", "--verify",
                                    "--messages", 2)
            status, report, log = subscriber.end()
            self.assertEqual((status, report["messages"]), (0, 2), log)
            if FACTOR == 1:
                self.assertNotIn("no answer", log)

    def test_what_is_lost_by_policy_is_counted(self):
        config = self.config("slow_subscribers: drop\nbuffered: {pages: 4, page_size: 4k}\n"
                             + self.PATTERN)
        publisher = self.start("publish", config, "--messages", share_of(2000000, 64))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify")
        status, report, log = subscriber.end()
        _, published, _ = publisher.end()
        self.assertEqual(report["messages"] + report["lost"], published["messages"])
        self.assertEqual(report["lost"], published["dropped"])
        self.assertEqual(report["corrupt"] + report["reordered"] + report["duplicates"], 0)
        self.assertEqual(status != 0, report["lost"] > 0, log)

    def test_a_stopped_subscriber_of_one_fid_holds_up_no_other(self):
        # As many messages of its fid are on offer as of all others, and far more bytes than may
        # wait for it anywhere.
        text = ("streams:\n  - {fids: 0-7, source: pattern, size: 40, rate: max}\n"
                "  - {fids: 9, source: pattern, size: 128k, rate: max}\n")
        for mode in ("buffered", "unbuffered"):
            publisher = self.start("publish", self.config(text, mode))
            address = publisher.address()
            stopped = self.start("subscribe", address, "--fid", "9")
            stopped.wait_for("subscribed to")
            stopped.process.send_signal(signal.SIGSTOP)
            stays = self.start("subscribe", address, "--fid", "0-7", "--verify", "--messages",
                               2000)
            status, report, log = stays.end()
            self.assertEqual((status, report["messages"], report["lost"]), (0, 2000, 0), log)
            stopped.process.kill()
            stopped.process.send_signal(signal.SIGCONT)
            stopped.end()
            publisher.wait_for("warning .*: connection lost")  # and not in the end
            publisher.process.send_signal(signal.SIGINT)
            self.assertEqual(publisher.end()[0], 0)

    def test_a_slow_guest_that_asks_to_drop_holds_up_nobody(self):
        # Little may wait for a subscriber, so that it is soon slow: by what is configured, or where
        # no more than sixteen messages fit into the memory.
        short = self.LARGE.replace("64k", "512k")
        for mode, text, count in (
                ("buffered", "buffered: {pages: 16, page_size: 4k}\n" + self.PATTERN,
                 share_of(640000, 64)),
                ("unbuffered", "unbuffered: {remainder: 4}\n" + self.LARGE, share_of(8000, 8)),
                ("unbuffered", "unbuffered: {memory: 8M}\n" + short, share_of(400, 8))):
            publisher = self.start("publish", self.config(text, mode))
            address = publisher.address()
            guest = self.start("subscribe", address, "--fid", "0-63", "--policy", "drop")
            guest.wait_for("subscribed to")
            guest.process.send_signal(signal.SIGSTOP)
            stays = self.start("subscribe", address, "--fid", "0-63", "--verify", "--messages",
                               count)
            status, report, log = stays.end()
            self.assertEqual((status, report["messages"], report["lost"]), (0, count, 0), log)
            publisher.wait_for("has left")
            guest.process.send_signal(signal.SIGCONT)
            publisher.process.send_signal(signal.SIGINT)
            status, report, log = guest.end()
            self.assertEqual((status, report["outcome"], report["end"]),
                             (5, "incomplete", "orderly"), log)
            self.assertGreater(report["lost"], 0)
            self.assertEqual(report["lost"], publisher.end()[1]["dropped"])


class Killing(Case):
    def test_a_killed_publisher_is_a_failure_that_is_told(self):
        for mode, text in (("buffered", self.PATTERN), ("unbuffered", self.LARGE)):
            publisher = self.start("publish", self.config(text, mode))
            subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                    "--output", self.path(mode), "--progress")
            subscriber.wait_for(r"progress [1-9]")
            publisher.process.kill()
            publisher.end()
            status, report, log = subscriber.end()
            self.assertEqual((status, report["outcome"]), (5, "incomplete"), log)
            self.assertEqual(report["end"], "lost", log)
            self.assertIsNone(report["lost"])  # nobody knows
            self.assertTrue(report["detail"])
            self.assertEqual(report["corrupt"], 0)
            # No recording has its final name.
            for name in os.listdir(self.path(mode)):
                self.assertTrue(name.endswith(".part"), name)

    def test_a_killed_subscriber_costs_the_others_nothing(self):
        for mode, text in (("buffered", self.PATTERN), ("unbuffered", self.LARGE)):
            count = share_of(1000000, 64) if mode == "buffered" else share_of(8000, 8)
            publisher = self.start("publish", self.config(text, mode), "--messages", count,
                                   "--wait-subscribers", 2)
            address = publisher.address()
            stays = self.start("subscribe", address, "--fid", "0-63", "--verify")
            dies = self.start("subscribe", address, "--fid", "0-63", "--progress")
            dies.wait_for(r"connected to")
            dies.process.kill()
            dies.end()
            # The publisher may still have waited for two.
            third = self.start("subscribe", address, "--fid", "0")
            status, report, log = stays.end()
            self.assertEqual(status, 0, log)
            self.assertEqual((report["messages"], report["lost"]), (count, 0), log)
            self.assertEqual(publisher.end()[0], 0)
            third.process.kill()

    @unittest.skipIf(os.environ.get("NETIO_TEST_DEVICE", "").startswith("siw"),
                     "iWARP does not tell a stopped process from a host that vanished")
    def test_a_stopped_subscriber_is_not_a_dead_one(self):
        count = share_of(5000000, 64)
        config = self.config("heartbeat_ms: 500\ndead_after_ms: 3000\n" + self.PATTERN)
        publisher = self.start("publish", config, "--progress")
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--messages", count)
        subscriber.wait_for("subscribed to")
        subscriber.process.send_signal(signal.SIGSTOP)
        # Each line of progress is a second of the publisher's time: it passes dead_after_ms.
        seen = 0
        with publisher.changed:
            while seen < 6:
                seen = sum("progress" in line for line in publisher.lines if line)
                self.assertTrue(publisher.changed.wait(DEADLINE))
        subscriber.process.send_signal(signal.SIGCONT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, count), log)
        self.assertNotIn("silent", "".join(line for line in publisher.lines if line))


class Refusing(Case):
    def check_refused(self, *arguments, saying):
        process = self.start(*arguments, json_report=False)
        status, _, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertRegex(log, saying)

    def test_what_cannot_work_is_refused_with_the_place_and_the_reason(self):
        self.check_refused("publish", "/no/where.yaml", saying=r"/no/where\.yaml: cannot be read")
        self.check_refused("publish", self.config("streamz: 1\n"),
                           saying=r"publisher\.yaml:4:1: streamz: unknown key .*did you mean 'streams'")
        config = self.config(self.PATTERN)
        self.check_refused("publish", config, "--listen", "192.0.2.77:1", "--open",
                           saying=r"192\.0\.2\.77")
        self.check_refused("publish", config, "--listen", "nonsense", saying="HOST:PORT")
        self.check_refused("publish", config, "--provider", "sockets", saying="sockets")
        self.check_refused("publish", config, "--provider", "udp;ofi_rxm", saying="udp;ofi_rxm")
        self.check_refused("subscribe", "127.0.0.1:1", "--fid", "9-1", saying="ends before it begins")
        self.check_refused("subscribe", "127.0.0.1:1", "--fid", "1", "--policy", "wait",
                           saying="--policy: 'wait' is unknown; allowed: block, drop, disconnect")

    def test_where_other_machines_reach_it_has_to_be_meant(self):
        everywhere = self.path("everywhere.yaml", "listen: 0.0.0.0:0\nmode: buffered\n" + self.PATTERN)
        for words in (("publish", everywhere), ("pump", "--serve", "--listen", "0.0.0.0:0"),
                      ("cat", "--listen", "0.0.0.0:0"), ("doctor", "--serve", "0.0.0.0:0"),
                      ("copy", "--serve", self.path("served"), "--listen", "0.0.0.0:0")):
            with self.subTest(words[0]):
                os.makedirs(self.path("served"), exist_ok=True)
                self.check_refused(*words, saying=r"0\.0\.0\.0:0 can be reached .*--open")
                server = self.start(*words, "--open", json_report=False)
                server.wait_for(r"listening at 0\.0\.0\.0:\d+")

    def test_a_policy_that_holds_the_publisher_up_more_is_refused(self):
        publisher = self.start("publish", self.config("slow_subscribers: drop\n" + self.PATTERN))
        self.check_refused("subscribe", publisher.address(), "--fid", "0-63", "--policy", "block",
                           saying="'block', which would hold it up more .*leave out --policy")

    def test_an_address_in_use_is_named(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        self.check_refused("publish", self.config(self.PATTERN), "--listen", publisher.address(),
                           saying=re.escape(publisher.address()) + ".*in use")

    def test_a_recording_that_cannot_be_written_ends_the_subscriber_only(self):
        publisher = self.start("publish", self.config(self.PATTERN), "--messages", 64000,
                               "--wait-subscribers", 2)
        os.mkdir(self.path("full"))  # what is there is gone on with, and has no room
        os.symlink("/dev/full", self.path("full/0000000000000000"))
        failing = self.start("subscribe", publisher.address(), "--fid", "0", "--output",
                             self.path("full"), "--append")
        sound = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify")
        status, report, log = failing.end()
        self.assertNotEqual(status, 0)
        self.assertIn("0000000000000000.part", log)
        self.assertEqual(report["end"], "failed")
        status, report, log = sound.end()
        self.assertEqual((status, report["messages"]), (0, 64000), log)
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

    def test_a_full_ring_stops_the_card_and_nothing_unsent_is_overwritten(self):
        readout = self.run_example("example_readout", "127.0.0.1:0")
        address = readout.stdout.readline().split()[-1]
        checker = self.run_example("example_readout_check", address)
        self.assertEqual(readout.stdout.readline(), "the card runs\n")
        checker.send_signal(signal.SIGSTOP)
        self.assertEqual(readout.stdout.readline(), "the ring was full\n")
        checkers = [checker, self.run_example("example_readout_check", address)]
        checker.send_signal(signal.SIGCONT)
        for checker in checkers:  # each has seen some of it
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
        # Another process's heartbeat is the clock: the loop of a subscriber with progress lines.
        clock = self.start("subscribe", address, "--fid", "2", "--progress")
        for count in range(1, 7):
            with clock.changed:
                while sum("progress" in line for line in clock.lines if line) < count:
                    self.assertTrue(clock.changed.wait(DEADLINE))
        # 51 links in 6 seconds: two heartbeats each way, a few for coming, and the sends of them.
        self.assertLess(switches() - before, 51 * 2 * 6 + 100)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    unittest.main(argv=UNITTEST_ARGUMENTS)
