# SPDX-License-Identifier: Apache-2.0
"""netio top, /metrics and the reports agree, also while a process is stopped and after connections
have ended."""

import os
import signal
import subprocess
import unittest

from program_case import HOST, UNITTEST_ARGUMENTS
from showing import Asking, figures, metrics_of


class Watch:
    """The metrics of a program, whose counters must neither decrease nor disappear."""

    def __init__(self, test, process):
        self.test, self.address, self.last = test, metrics_of(process), {}

    def look(self):
        now = figures(self.address)
        for name, rows in self.last.items():
            if not name.endswith("_total"):
                continue
            for labels, value in rows.items():
                self.test.assertIn(labels, now[name], f"{name} has vanished")
                self.test.assertGreaterEqual(now[name][labels], value, f"{name}{{{labels}}} has fallen")
        self.last = now
        return now

    def sum(self, name):
        return sum(self.look().get(name, {}).values())


class Agreeing(Asking):
    def publish(self, config, *more, mode="buffered"):
        """A publisher that runs until its standard input ends."""
        publisher = self.start("publish", self.config("metrics: 127.0.0.1:0\n" + config +
                                                      "  - {fids: 99, source: pipe}\n", mode),
                               *more, stdin=subprocess.PIPE)
        self.addCleanup(publisher.process.stdin.close)
        publisher.address()  # the next configuration uses the same file
        return publisher

    def subscribe(self, *arguments):
        return self.start("subscribe", *arguments, "--metrics", "127.0.0.1:0")

    @staticmethod
    def stop(publisher):
        publisher.process.send_signal(signal.SIGINT)
        publisher.process.stdin.close()
        return publisher.end()[1]

    def shown_is_reported(self, shown, rows, report):
        """For a subscriber: its metrics, its rows of top, and its report agree."""
        self.assertEqual(sum(shown["netio_subscriber_messages_total"].values()), report["messages"])
        self.assertEqual(sum(shown["netio_subscriber_bytes_total"].values()), report["bytes"])
        self.assertEqual(sum(shown["netio_subscriber_missed_total"].values()), report["lost"])
        self.assertEqual(sum(shown["netio_subscriber_connections_total"].values()), report["connections"])
        self.assertEqual(sum(row["count"] for (kind, _), row in rows.items() if kind == "subscriber"),
                         report["messages"])
        self.assertEqual(sum(row["dropped"] for (kind, _), row in rows.items() if kind == "subscriber"),
                         report["lost"])
        self.assertEqual(shown["netio_fids"][""], len(report["fids"]))
        self.assertEqual(len(shown["netio_fid_messages_total"]), len(report["fids"]))
        for fid, row in report["fids"].items():
            for figure, key in (("messages", "messages"), ("bytes", "bytes"), ("missed", "lost")):
                self.assertEqual(shown[f"netio_fid_{figure}_total"][f'fid="{fid}"'], row[key], f"{figure} of {fid}")
            self.assertEqual(rows["fid", fid]["count"], row["messages"])
            self.assertEqual(rows["fid", fid]["dropped"], row["lost"])

    COUNT = 5000  # per fid, of four: more than the path to a stopped subscriber can hold

    def test_all_agree_on_a_stopped_one_under_each_policy(self):
        for policy in ("block", "drop", "disconnect", "newest"):
            with self.subTest(policy):
                self.one_is_stopped(policy, "buffered")

    def test_all_agree_on_a_stopped_unbuffered_one_under_each_policy(self):
        for policy in ("block", "drop", "disconnect"):
            with self.subTest(policy):
                self.one_is_stopped(policy, "unbuffered")

    def one_is_stopped(self, policy, mode):
        """Two subscribers want the same. One is stopped before publishing begins and continues when
        this is visible. At the end it has received each message or has had it reported as lost."""
        limits = "disconnect_after: 1s\n" if policy == "disconnect" else ""
        publisher = self.publish(f"wait_subscribers: 3\nslow_policy: {policy}\n{limits}streams:\n"
                                 f"  - {{fids: 0-3, source: pattern, size: 4k, rate: max, count: {self.COUNT}}}\n",
                                 mode=mode)
        there = metrics_of(publisher)
        other = self.subscribe(publisher.address(), "--fid", "0-3")
        other.wait_for("subscribed to")
        known = set(figures(there)["netio_peer_waiting"])
        stopped = self.subscribe(publisher.address(), "--fid", "0-3", "--reconnect")
        stopped.wait_for("subscribed to")
        (peer,) = set(figures(there)["netio_peer_waiting"]) - known
        watch = Watch(self, stopped)
        watch.look()
        stopped.process.send_signal(signal.SIGSTOP)
        self.start("subscribe", publisher.address(), "--fid", "99").wait_for("subscribed to")

        held_up = []

        def shown():
            now = figures(there)
            held_up.append(now["netio_publisher_held_up_seconds_total"][""])
            if now.get("netio_peer_idle_seconds", {}).get(peer, 0) < 0.1:
                return None
            sign = {"block": now["netio_peer_waited_for"][peer] == 1 and held_up[-1] > held_up[0],
                    "drop": now["netio_peer_dropped_total"][peer] > 0,
                    "newest": now["netio_peer_dropped_total"][peer] > 0,
                    "disconnect": now["netio_peer_waited_for"][peer] == 1}
            return now if sign[policy] else None

        while_stopped = self.until(shown, policy)
        (pool,), (free,) = (while_stopped[f"netio_publisher_{name}"].values() for name in ("pool", "free"))
        self.assertLess(free, pool)
        address = peer.split('"')[1]
        row = self.top(there).get(("peer", address))
        if policy != "disconnect" or row:  # it may have been disconnected between the two queries
            self.assertGreater(row["idle_s"], 0)
            self.assertGreaterEqual(row["dropped"], while_stopped["netio_peer_dropped_total"][peer])
        if policy == "disconnect":
            gone = self.until(lambda: (lambda now: now if now["netio_publisher_disconnected_total"][""] == 1
                                       else None)(figures(there)), "it is cut off")
            self.assertNotIn(peer, gone["netio_peer_waiting"])
            self.assertNotIn(("peer", address), self.top(there))
            # Only a subscriber that reconnects learns of these losses.
            self.until(lambda: sum(figures(there)["netio_fid_messages_total"].values()) == 4 * self.COUNT, "all")
        stopped.process.send_signal(signal.SIGCONT)

        def complete(look):
            return all(sum(look().get(f"netio_subscriber_{name}_total", {}).get(f'publisher="{publisher.address()}"', 0)
                           for name in ("messages", "missed")) == 4 * self.COUNT for _ in range(2))

        self.until(lambda: complete(watch.look), "it has got or missed everything")
        at_other = Watch(self, other)
        self.until(lambda: complete(at_other.look), "the other one has")
        seen = [(watch.look(), self.top(watch.address)), (at_other.look(), self.top(at_other.address))]
        there_at_last = figures(there)
        sent = self.stop(publisher)
        self.assertEqual(there_at_last["netio_publisher_dropped_total"][""], sent["dropped"])
        stopped.process.send_signal(signal.SIGINT)  # otherwise it would wait for another publisher
        reports = [process.end()[1] for process in (stopped, other)]
        for (shown, rows), report in zip(seen, reports):
            self.shown_is_reported(shown, rows, report)
        missed = reports[0]["lost"]
        self.assertEqual(reports[0]["connections"], 2 if policy == "disconnect" else 1)
        self.assertEqual(missed > 0, policy != "block")
        if policy != "disconnect":
            self.assertEqual(missed + reports[1]["lost"], sent["dropped"])

    def test_a_publisher_back_in_the_registry_keeps_its_counts(self):
        os.mkdir(self.path("bus"))
        begin = (f"bus: {{at: {self.path('bus')}, name: %s}}\nstreams:\n"
                 "  - {fids: %d, source: pattern, size: 40, rate: 50000, count: 500}\n")
        one = self.publish("wait_subscribers: 1\n" + begin % ("one", 0))
        self.publish("wait_subscribers: 1\n" + begin % ("two", 1))
        subscriber = self.subscribe("--bus", self.path("bus"), "--fid", "0-1")
        watch = Watch(self, subscriber)
        self.until(lambda: watch.sum("netio_subscriber_messages_total") == 1000, "all have arrived")
        self.stop(one)
        self.until(lambda: watch.look()["netio_subscriber_connected"]['publisher="one"'] == 0, "it is gone")
        self.publish("wait_subscribers: 1\n" + begin % ("one", 0))
        self.until(lambda: watch.sum("netio_subscriber_messages_total") == 1500, "all have arrived")
        shown, rows = watch.look(), self.top(watch.address)
        subscriber.process.send_signal(signal.SIGINT)
        report = subscriber.end()[1]
        self.assertEqual((report["messages"], report["connections"]), (1500, 3))
        self.assertEqual(report["fids"]["0x0"]["messages"], 1000)
        self.shown_is_reported(shown, rows, report)

    def test_a_restarted_publisher_of_a_shared_fid_keeps_counts(self):
        streams = "wait_subscribers: 1\nstreams:\n  - {fids: 0, source: pattern, size: 40, rate: 50000, count: 500}\n"
        one, other = self.publish(streams), self.publish(streams)
        subscriber = self.subscribe(one.address(), other.address(), "--fid", "0", "--reconnect")
        watch = Watch(self, subscriber)
        self.until(lambda: watch.sum("netio_fid_messages_total") == 1000, "all have arrived")
        self.stop(one)
        self.until(lambda: sum(watch.look()["netio_subscriber_connected"].values()) == 1, "one has ended")
        self.publish(streams, "--listen", one.address())
        self.until(lambda: watch.sum("netio_fid_messages_total") == 1500, "all have arrived")
        shown, rows = watch.look(), self.top(watch.address)
        subscriber.process.send_signal(signal.SIGINT)
        self.shown_is_reported(shown, rows, subscriber.end()[1])

    def test_a_million_fids_are_counted_and_shown_up_to_the_limit(self):
        publisher = self.start("publish", self.config(
            "wait_subscribers: 1\nmetrics: {listen: '127.0.0.1:0', fids: 60}\nstreams:\n"
            "  - {fids: 0-999999, source: pattern, size: 8, rate: max, count: 1}\n"
            "  - {fids: 1000000, source: pipe}\n"), stdin=subprocess.PIPE)
        self.addCleanup(publisher.process.stdin.close)
        subscriber = self.subscribe(publisher.address(), "--fid", "0-999999")
        here, there = Watch(self, subscriber), Watch(self, publisher)
        for watch, limit in ((here, 1000), (there, 60)):
            self.until(lambda watch=watch: watch.look()["netio_fids"][""] == 1000000, "all fids are counted")
            self.assertEqual(len(watch.look()["netio_fid_messages_total"]), limit)
        self.until(lambda: here.sum("netio_subscriber_messages_total") == 1000000, "all have arrived")

    def test_of_how_many_fids_is_said_on_the_command_line(self):
        publisher = self.publish("wait_subscribers: 1\nstreams:\n"
                                 "  - {fids: 0-9, source: pattern, size: 8, rate: 50000, count: 10}\n",
                                 "--metrics-fids", "3")
        subscriber = self.subscribe(publisher.address(), "--fid", "0-9", "--metrics-fids", "4")
        for process, limit in ((publisher, 3), (subscriber, 4)):
            watch = Watch(self, process)
            self.until(lambda watch=watch: watch.look()["netio_fids"][""] == 10, "all fids are counted")
            self.assertEqual(len(watch.look()["netio_fid_messages_total"]), limit)

    def test_a_dump_says_what_it_missed_while_it_was_not_connected(self):
        os.mkdir(self.path("bus"))
        publisher = self.start("publish", self.config(
            f"metrics: 127.0.0.1:0\nbus: {self.path('bus')}\nheartbeat: 100ms\ndead_after: 1s\n"
            "streams:\n  - {fids: 7, source: pipe, size: 4}\n"), stdin=subprocess.PIPE)
        self.addCleanup(publisher.process.stdin.close)
        there = metrics_of(publisher)

        def put(line, figure):
            count = figures(there)[figure][""]
            publisher.process.stdin.write(line)
            publisher.process.stdin.flush()
            self.until(lambda: figures(there)[figure][""] == count + 1, "it is published")

        dump = self.start("dump", "--bus", self.path("bus"), "--fid", "7", json_report=False)
        self.until(lambda: figures(there)["netio_publisher_subscribers"][""] == 1, "it is there")
        publisher.wait_for("subscribes to")
        put("one\n", "netio_publisher_messages_total")
        self.assertIn("0x7: ", dump.process.stdout.readline())
        dump.process.send_signal(signal.SIGSTOP)
        self.until(lambda: figures(there)["netio_publisher_subscribers"][""] == 0, "it is given up")
        put("two\n", "netio_publisher_unwanted_total")
        dump.process.send_signal(signal.SIGCONT)
        publisher.wait_for("subscribes to", which=2)
        put("thr\n", "netio_publisher_messages_total")
        lines = []
        while not lines or not lines[-1].startswith("0x7: 4 bytes"):
            lines.append(dump.process.stdout.readline())
        self.assertIn("0x7: 1 messages lost while not connected\n", lines)

    def test_a_publisher_is_given_once(self):
        for command in ("subscribe", "dump"):
            twice = self.start(command, f"{HOST}:5", f"{HOST}:5", "--fid", "0", json_report=command != "dump")
            status, _, log = twice.end()
            self.assertEqual(status, 2)
            self.assertIn(f"the publisher {HOST}:5 is given twice", log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
