# SPDX-License-Identifier: Apache-2.0
"""How publishers and subscribers end: closed, interrupted, stopped, killed.

ending_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import signal
import unittest

from program_case import DEADLINE, FACTOR, UNITTEST_ARGUMENTS, Case, share_of


class Ending(Case):
    def test_a_subscriber_leaves_after_its_messages(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--messages", 12345)
        status, report, log = subscriber.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["messages"], 12345)
        self.assertEqual(report["end"], "messages")
        publisher.wait_for("has disconnected")

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

    def test_an_interrupted_publisher_ends_its_subscribers_in_order(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--progress")
        subscriber.wait_for(r"progress [1-9]")  # otherwise none has arrived: an error
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

    def test_a_subscriber_reconnects_and_reports_unknown_losses(self):
        first = self.start("publish", self.config(self.PATTERN))
        address = first.address()
        subscriber = self.start("subscribe", address, "--fid", "0-63", "--verify", "--progress",
                                "--reconnect")
        subscriber.wait_for(r"progress [1-9]")
        first.process.kill()
        first.end()
        subscriber.wait_for("waiting for the publisher")
        second = self.start("publish", self.config(self.PATTERN), "--listen", address)
        subscriber.wait_for("has restarted")
        second.wait_for("subscribes to")
        second.process.send_signal(signal.SIGINT)
        second.end()
        third = self.start("publish", self.config(self.PATTERN), "--listen", address)
        third.wait_for("subscribes to")
        subscriber.wait_for("subscribed to", which=3)  # the publisher notices it first
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

    def test_a_duration_that_passes_while_connecting_is_extended(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        address = publisher.address()
        publisher.process.send_signal(signal.SIGSTOP)  # as if the machine had no time for it
        subscriber = self.start("subscribe", address, "--fid", "0-63", "--duration", "100ms")
        subscriber.wait_for("no publisher has answered within --duration")
        publisher.process.send_signal(signal.SIGCONT)
        status, report, log = subscriber.end()
        self.assertIn("subscribed to", log)
        # A slow machine may send no message in the 100 ms that follow.
        self.assertIn((status, report["end"], report["outcome"]),
                      ((0, "duration", "done"), (4, "duration", "nothing")), log)

    def test_a_subscriber_waits_for_a_name_that_may_be_given_one_day(self):
        subscriber = self.start("subscribe", "no.such.host.invalid:1", "--fid", "1")
        subscriber.wait_for(r"waiting for the publisher: .*no\.such\.host\.invalid")
        subscriber.process.send_signal(signal.SIGINT)
        self.assertNotEqual(subscriber.end()[0], 0)

    def test_an_unused_publisher_admits_the_next_subscriber(self):
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
        config = self.config("slow_policy: drop\nbuffered: {page_count: 4, page_size: 4k}\n"
                             + self.PATTERN)
        publisher = self.start("publish", config, "--messages", share_of(2000000, 64))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify")
        status, report, log = subscriber.end()
        _, published, _ = publisher.end()
        self.assertEqual(report["messages"] + report["lost"], published["messages"])
        self.assertEqual(report["lost"], published["dropped"])
        self.assertEqual(report["corrupt"] + report["reordered"] + report["duplicates"], 0)
        self.assertEqual(status != 0, report["lost"] > 0, log)

    def test_a_stopped_subscriber_of_one_fid_blocks_no_other(self):
        # Its fid has as many messages as all others together, and far more bytes than can be queued
        # for it anywhere.
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
            publisher.wait_for("warning .*: connection lost")  # and not only at the end
            publisher.process.send_signal(signal.SIGINT)
            self.assertEqual(publisher.end()[0], 0)

    def test_a_slow_subscriber_with_policy_drop_blocks_no_other(self):
        # The queue of a subscriber is short, so that it is soon slow: because of the configuration,
        # or because the memory holds no more than sixteen messages.
        short = self.LARGE.replace("64k", "512k")
        for mode, text, count in (
                ("buffered", "buffered: {page_count: 16, page_size: 4k}\n" + self.PATTERN,
                 share_of(640000, 64)),
                ("unbuffered", "unbuffered: {queue_limit: 4}\n" + self.LARGE, share_of(8000, 8)),
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
            publisher.wait_for("has disconnected")
            guest.process.send_signal(signal.SIGCONT)
            publisher.process.send_signal(signal.SIGINT)
            status, report, log = guest.end()
            self.assertEqual((status, report["outcome"], report["end"]),
                             (5, "incomplete", "orderly"), log)
            self.assertGreater(report["lost"], 0)
            self.assertEqual(report["lost"], publisher.end()[1]["dropped"])


class Killing(Case):
    def test_a_killed_publisher_is_a_reported_error(self):
        for mode, text in (("buffered", self.PATTERN), ("unbuffered", self.LARGE)):
            publisher = self.start("publish", self.config(text, mode))
            subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                    "--progress")
            subscriber.wait_for(r"progress [1-9]")
            publisher.process.kill()
            publisher.end()
            status, report, log = subscriber.end()
            self.assertEqual((status, report["outcome"]), (5, "incomplete"), log)
            self.assertEqual(report["end"], "lost", log)
            self.assertIsNone(report["lost"])  # the loss is unknown
            self.assertTrue(report["detail"])
            self.assertEqual(report["corrupt"], 0)

    def test_a_killed_subscriber_costs_the_others_nothing(self):
        for mode, text in (("buffered", self.PATTERN), ("unbuffered", self.LARGE)):
            count = share_of(1000000, 64) if mode == "buffered" else share_of(8000, 8)
            publisher = self.start("publish", self.config(text, mode), "--wait-subscribers", 2)
            address = publisher.address()
            stays = self.start("subscribe", address, "--fid", "0-63", "--verify", "--messages",
                               count)
            dies = self.start("subscribe", address, "--fid", "0-63")
            dies.wait_for("subscribed to")
            dies.process.kill()
            dies.end()
            # The publisher may still have waited for two.
            third = self.start("subscribe", address, "--fid", "0")
            status, report, log = stays.end()
            self.assertEqual((status, report["messages"], report["lost"]), (0, count, 0), log)
            third.wait_for("subscribed to")
            # A subscriber that dies during the end has not confirmed it, which gives another exit
            # status.
            publisher.wait_for(": connection lost")
            publisher.process.send_signal(signal.SIGINT)
            self.assertEqual(third.end()[0], 0)
            status, report, log = publisher.end()
            self.assertEqual((status, report["unconfirmed"], report["disconnected"]), (0, 0, 1),
                             log)

    @unittest.skipIf(os.environ.get("NETIO_TEST_DEVICE", "").startswith("siw"),
                     "iWARP does not tell a stopped process from a host that vanished")
    def test_a_stopped_subscriber_is_not_a_dead_one(self):
        count = share_of(5000000, 64)
        config = self.config("heartbeat: 500ms\ndead_after: 3s\n" + self.PATTERN)
        publisher = self.start("publish", config, "--progress")
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--messages", count)
        subscriber.wait_for("subscribed to")
        subscriber.process.send_signal(signal.SIGSTOP)
        # A progress line is printed each second of the publisher's time: together longer than
        # dead_after.
        seen = 0
        with publisher.changed:
            while seen < 6:
                seen = sum("progress" in line for line in publisher.lines if line)
                self.assertTrue(publisher.changed.wait(DEADLINE))
        subscriber.process.send_signal(signal.SIGCONT)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, count), log)
        self.assertNotIn("silent", "".join(line for line in publisher.lines if line))


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
