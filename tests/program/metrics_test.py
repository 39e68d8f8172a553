# SPDX-License-Identifier: Apache-2.0
"""Metrics and logs of running programs."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import unittest

from dashboard import PROMETHEUS, Prometheus, needs_device, panels
from program_case import CONFIG, DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case
from showing import Asking, figures, metrics_of, scrape

PROMTOOL = shutil.which("promtool")


class Showing(Asking):
    def pair(self, streams, *more):
        """A publisher that runs until its standard input ends, and a subscriber."""
        streams += "  - {fids: 99, source: pipe}\n"
        publisher = self.start("publish", self.config("metrics: 127.0.0.1:0\n" + streams), *more,
                               stdin=subprocess.PIPE)
        self.addCleanup(publisher.process.stdin.close)
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-99", "--metrics", "127.0.0.1:0")
        return publisher, subscriber

    FEW = "wait_subscribers: 1\nstreams:\n  - {fids: 0-3, source: pattern, size: 40, rate: 50000, count: 500}\n"

    def test_figures_and_the_report_agree_at_the_end(self):
        publisher, subscriber = self.pair(self.FEW)
        there, here = metrics_of(publisher), metrics_of(subscriber)
        name = "netio_subscriber_messages_total"
        of = f'publisher="{publisher.address()}"'
        self.until(lambda: figures(here).get(name, {}).get(of) == 2000, "all have arrived")
        arrived = figures(here)
        shown = self.until(lambda: (lambda now: now if now["netio_publisher_free"] == now["netio_publisher_pool"]
                                    else None)(figures(there)), "all pages are free")
        top = subprocess.run([PROGRAM, "top", there, here, "--once", "--json", "--interval", "1ms"],
                             capture_output=True, text=True, check=True)
        seen, heard = [{(row["kind"], row["name"]): row for row in each["rows"]}
                       for each in json.loads(top.stdout)["programs"]]
        publisher.process.stdin.close()
        _, sent, _ = publisher.end()
        _, received, _ = subscriber.end()
        self.assertEqual(shown["netio_publisher_messages_total"][""], sent["messages"])
        self.assertEqual(shown["netio_publisher_bytes_total"][""], sent["bytes"])
        self.assertEqual(shown["netio_publisher_dropped_total"][""], sent["dropped"])
        self.assertEqual(shown["netio_publisher_subscribers"][""], 1)
        self.assertEqual(arrived[name][of], received["messages"])
        self.assertEqual(seen["publisher", ""]["count"], sent["messages"])
        self.assertEqual(seen["publisher", ""]["dropped"], sent["dropped"])
        self.assertEqual(heard["subscriber", publisher.address()]["count"], received["messages"])
        for fid in range(4):
            label = f'fid="{hex(fid)}"'
            self.assertEqual(seen["fid", hex(fid)]["count"], sent["fids"][hex(fid)]["messages"])
            self.assertEqual(shown["netio_fid_messages_total"][label], sent["fids"][hex(fid)]["messages"])
            self.assertEqual(arrived["netio_fid_bytes_total"][label], received["fids"][hex(fid)]["bytes"])

    def test_top_shows_the_one_way_latency_of_a_publisher(self):
        publisher, subscriber = self.pair("time_stamps: tai\n" + self.FEW)
        here, name = metrics_of(subscriber), "netio_subscriber_messages_total"
        self.until(lambda: figures(here).get(name, {}).get(f'publisher="{publisher.address()}"') == 2000, "all")
        row = self.top(here)["subscriber", publisher.address()]
        self.assertGreaterEqual(row["one_way_p99_us"], row["one_way_p50_us"])
        # It is the same clock: the offset is none, or what the machine's load made of it.
        self.assertGreater(row["clock_offset_error_us"], 0)
        self.assertGreaterEqual(row["clock_offset_us"], -row["clock_offset_error_us"])

    def test_top_finds_the_publishers_of_a_bus(self):
        os.mkdir(self.path("bus"))
        publisher, subscriber = self.pair(self.FEW, "--bus", self.path("bus"))
        here = metrics_of(subscriber)
        name = "netio_subscriber_messages_total"
        self.until(lambda: figures(here).get(name, {}).get(f'publisher="{publisher.address()}"') == 2000, "all")
        self.assertEqual(self.top("--bus", self.path("bus"))["publisher", ""]["count"], 2000)
        both = subprocess.run([PROGRAM, "top", here, "--bus", self.path("bus"), "--once", "--json", "--interval",
                               "1ms"], capture_output=True, text=True, check=True)
        self.assertEqual([each["source"] for each in json.loads(both.stdout)["programs"]],
                         [here, metrics_of(publisher)])

    def test_top_reports_that_no_program_is_found(self):
        os.mkdir(self.path("empty"))
        for arguments, status, what in ((["--bus", self.path("empty"), "--once", "--interval", "1ms"], 4,
                                         "has metrics"), ([], 2, "add the HOST:PORT")):
            done = subprocess.run([PROGRAM, "top", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(what, done.stderr)

    def test_top_ends_when_its_terminal_is_gone(self):
        leader, follower = pty.openpty()
        top = subprocess.Popen([PROGRAM, "top", "127.0.0.1:1", "--interval", "10ms"], stdout=follower,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        os.close(follower)
        self.assertIn(b"127.0.0.1:1", os.read(leader, 4096))
        os.close(leader)
        self.assertEqual(top.wait(DEADLINE), 1)

    def test_a_sender_and_a_receiver_show_what_their_reports_say(self):
        receiver = self.start("listen", f"{HOST}:0", "--allow-remote-anonymous", "--metrics", "127.0.0.1:0")
        sender = self.start("send", receiver.address(), "--metrics", "127.0.0.1:0", stdin=subprocess.PIPE)
        there, here = metrics_of(receiver), metrics_of(sender)
        sender.process.stdin.write("twelve bytes\n" * 100)
        sender.process.stdin.flush()
        self.until(lambda: figures(there)["netio_receiver_messages_total"][""] == 100, "all have arrived")
        shown, arrived = figures(here), figures(there)
        peer = f'peer="{receiver.address()}"'
        self.assertEqual(shown["netio_sender_messages_total"][peer], 100)
        self.assertEqual(shown["netio_sender_bytes_total"][peer], 1200)
        self.assertGreaterEqual(shown["netio_sender_frames_total"][peer], 1)
        self.assertEqual(shown["netio_sender_connected"][peer], 1)
        self.assertEqual(shown["netio_sender_connections_total"][peer], 1)
        self.until(lambda: figures(here)["netio_sender_latency_seconds_count"][""] ==
                   shown["netio_sender_frames_total"][peer], "the time of each frame is counted")
        self.assertEqual(list(arrived["netio_source_messages_total"].values()), [100])
        self.assertEqual(self.top(here)["sender", receiver.address()]["count"], 100)
        self.assertEqual(self.top(there)["receiver", ""]["count"], 100)
        sender.process.stdin.close()
        self.assertEqual(sender.end()[1]["messages"], 100)
        receiver.process.send_signal(signal.SIGINT)
        self.assertEqual(receiver.end()[1]["bytes"], 1200)

    def test_a_sender_whose_receiver_is_stopped_shows_what_waits(self):
        receiver = self.start("listen", f"{HOST}:0", "--allow-remote-anonymous")
        sender = self.start("send", receiver.address(), "--metrics", "127.0.0.1:0", "--messages", "100000000",
                            "--size", "1000")
        here = metrics_of(sender)
        peer = f'peer="{receiver.address()}"'
        self.until(lambda: figures(here)["netio_sender_messages_total"][peer] > 1000, "it sends")
        receiver.process.send_signal(signal.SIGSTOP)

        def waits():
            now = figures(here)
            held = now["netio_sender_waiting"][peer] > 0 and now["netio_sender_again_total"][peer] > 0
            return now if held and now["netio_sender_credits"][peer] <= 1 else None

        shown = self.until(waits, "it waits")
        self.assertGreater(shown["netio_sender_unconfirmed"][peer], 0)
        receiver.process.send_signal(signal.SIGCONT)
        self.until(lambda: figures(here)["netio_sender_messages_total"][peer] >
                   shown["netio_sender_messages_total"][peer], "it goes on")

    def test_a_server_with_keys_shows_its_authentication_counters(self):
        site, client = self.path("site.keys"), self.path("client.key")
        subprocess.run([PROGRAM, "key", "new", site, "--name", "client", "--rights", "services=all fids=0-99",
                        "--client", client], capture_output=True, check=True)
        os.mkdir(self.path("served"))
        show = ("--keys", site, "--metrics", "127.0.0.1:0")
        publisher = self.start("publish", self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 9}\n"),
                               *show)
        there = metrics_of(publisher)
        self.start("subscribe", publisher.address(), "--fid", "0", "--key", client, "--messages", "1").end()
        self.start("subscribe", publisher.address(), "--fid", "0").end()
        shown = figures(there)
        self.assertEqual([shown[f"netio_gate_{name}_total"][""] for name in
                          ("admitted", "challenged", "busy", "refused")], [1, 2, 0, 0])
        for arguments in (("listen", f"{HOST}:0"), ("pump", "--serve", "--listen", "127.0.0.1:0"),
                          ("copy", "--serve", self.path("served"), "--listen", "127.0.0.1:0")):
            server = self.start(*arguments, *show)
            self.assertEqual(figures(metrics_of(server))["netio_gate_admitted_total"][""], 0)

    def test_both_ends_of_a_pump_show_the_same_bytes(self):
        server = self.start("pump", "--serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
        client = self.start("pump", server.address(), "--bytes", "100g", "--metrics", "127.0.0.1:0")
        there, here = metrics_of(server), metrics_of(client)
        name = "netio_stream_%s_%s_bytes_total"

        def total(address, direction):
            now = figures(address)
            return sum(sum(now.get(name % (direction, way), {}).values()) for way in ("direct", "indirect"))

        sent = self.until(lambda: total(here, "sent"), "something is sent")
        self.until(lambda: total(there, "received") >= sent, "it has arrived")
        self.assertGreater(self.top(here)["stream", server.address()]["count"], sent - 1)
        self.assertEqual([kind for kind, _ in self.top(there)].count("stream"), 1)

    def test_a_port_in_use_is_said(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            refused = self.start("publish", self.config(self.FEW), "--metrics", address)
            status, _, log = refused.end()
        self.assertNotEqual(status, 0)
        self.assertIn(f"cannot show metrics at {address}: Address already in use", log)

    def test_copy_and_pump_show_theirs(self):
        os.mkdir(self.path("served"))
        for arguments, name in ((("copy", "--serve", self.path("served")), "netio_copy_files_total"),
                                (("pump", "--serve"), "netio_pump_bytes_total")):
            server = self.start(*arguments, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
            self.assertEqual(figures(metrics_of(server))[name][""], 0)

    @unittest.skipUnless(PROMTOOL, "promtool is not installed")
    def test_promtool_finds_nothing_to_say(self):
        for process in self.pair(self.FEW):
            text = scrape(metrics_of(process))
            check = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((check.returncode, check.stderr), (0, ""))

    @unittest.skipUnless(PROMETHEUS, "prometheus is not installed")
    def test_prometheus_scrapes_it(self):
        publisher, subscriber = self.pair(self.FEW)
        there, here = metrics_of(publisher), metrics_of(subscriber)
        server = self.prometheus(there, here)

        def asked(query):
            return [float(row["value"][1]) for row in server.ask("query", query=query) or []]

        self.until(lambda: asked("netio_publisher_messages_total") == [2000], "what was published")
        self.until(lambda: asked("netio_subscriber_messages_total") == [2000], "what has arrived")
        self.assertEqual(asked("sum(netio_fid_messages_total)"), [4000])
        self.assertEqual(asked("count(up==1)"), [2])

    @unittest.skipUnless(PROMETHEUS, "prometheus is not installed")
    def test_every_panel_of_the_dashboard_has_data(self):
        publisher, subscriber = self.pair(self.FEW)
        receiver = self.start("listen", f"{HOST}:0", "--allow-remote-anonymous", "--metrics", "127.0.0.1:0")
        sender = self.start("send", receiver.address(), "--metrics", "127.0.0.1:0", stdin=subprocess.PIPE)
        self.addCleanup(sender.process.stdin.close)
        pumped = self.start("pump", "--serve", "--listen", "127.0.0.1:0")
        pump = self.start("pump", pumped.address(), "--bytes", "10t", "--metrics", "127.0.0.1:0")
        server = self.prometheus(*map(metrics_of, (publisher, subscriber, receiver, sender, pump)))
        devices = os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband")
        for title, _, targets in panels("10m"):
            for query, _ in targets:
                if devices or not needs_device(query):
                    self.until(lambda query=query: server.ask("query", query=query), f"{title}: {query}")

    def prometheus(self, *addresses):
        server = Prometheus(self.folder.name, addresses, "100ms", DEADLINE)
        self.addCleanup(server.kill)
        return server

    def test_the_pictures_say_which_package_they_need(self):
        script = os.path.join(os.path.dirname(CONFIG), "docs", "pictures.py")
        done = subprocess.run([sys.executable, "-I", "-S", script], capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("apt install python3-matplotlib", done.stderr)


class Logging(Case):
    """The log need not be read."""

    def with_a_stalled_reader(self, config, *more):
        """A publisher whose standard error is full, and its address."""
        with socket.create_server((HOST, 0)) as free:
            address = f"{HOST}:{free.getsockname()[1]}"
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        publisher = subprocess.Popen([PROGRAM, "publish", config, "--listen", address, "--progress", *more],
                                     stderr=writer, stdout=subprocess.DEVNULL)
        self.addCleanup(publisher.wait)
        self.addCleanup(publisher.kill)
        os.close(writer)
        return publisher, address

    def wait_for_lines(self, process, enough):
        with process.changed:
            while not enough([line for line in process.lines if line]):
                self.assertTrue(process.changed.wait(DEADLINE), process.lines)

    def test_an_unread_log_and_a_request_of_many_fids_lose_nothing(self):
        # With policy drop the queue holds several seconds: a message is lost only if the publisher
        # stops, and then it would not answer requests either.
        config = self.config("wait_subscribers: 1\nslow_policy: drop\nstreams:\n"
                             "  - {fids: 0-9, source: pattern, size: 100, rate: 2000}\n")
        publisher, address = self.with_a_stalled_reader(config)
        other = self.start("subscribe", address, "--fid", "0-9", "--verify", "--progress")
        other.wait_for(r"progress [1-9]")
        greedy = self.start("subscribe", address, *(word for fid in range(0, 2000, 2)
                                                    for word in ("--fid", f"{1000 + 100 * fid}-{1099 + 100 * fid}")))
        # One line lists many ranges, and how many more there are.
        self.wait_for_lines(greedy, lambda lines: 1000 == sum(
            line.count("-0x") + int((re.findall(r"and (\d+) more", line) or [0])[0])
            for line in lines if "subscribed to" in line))
        seen = len(other.lines)
        self.wait_for_lines(other, lambda lines: any(re.search(r"progress [1-9]", line) for line in lines[seen:]))
        greedy.process.send_signal(signal.SIGINT)
        greedy.end()
        publisher.send_signal(signal.SIGINT)
        status, report, log = other.end()
        self.assertEqual((status, report["lost"]), (0, 0), log)
        self.assertEqual(publisher.wait(DEADLINE), 0)

    def test_a_reader_that_stalls_stops_no_data(self):
        config = self.config("wait_subscribers: 1\nstreams:\n  - {fids: 0-99999, source: pattern, size: 40, "
                             "rate: max, count: 2}\n")
        publisher, address = self.with_a_stalled_reader(config)
        subscriber = self.start("subscribe", address, "--fid", "0-99999", "--verify")
        status, report, _ = subscriber.end()
        self.assertEqual((status, report["messages"], report["lost"]), (0, 200000, 0))
        self.assertEqual(publisher.wait(DEADLINE), 0)

    def test_goes_to_a_file_with_date_and_zone_from_a_level_on(self):
        file = self.path("log")
        process = self.start("publish", self.config(Showing.FEW), "--duration", "1ms", "--log-file", file)
        self.assertEqual(process.end()[2], "")
        with open(file, encoding="utf-8") as log:
            self.assertRegex(log.readline(), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info ")
        process = self.start("publish", self.config(Showing.FEW), "--duration", "1ms", "--log-level", "error")
        self.assertEqual(process.end()[2], "")

    def follow(self, file):
        """What is written to the file of this name, whichever file that is at the time."""
        tail = subprocess.Popen(["tail", "-n", "+1", "-F", file], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        return tail

    def wait_for(self, tail, text):
        too_late = threading.Timer(DEADLINE, tail.kill)
        too_late.start()
        for line in tail.stdout:
            if text in line:
                too_late.cancel()
                return
        self.fail(f"the log does not get the line: {text}")

    def test_a_file_that_was_renamed_is_opened_again_at_hang_up(self):
        os.mkdir(self.path("served"))
        serving = {"publish": ("publish", self.config(Showing.FEW)),
                   "copy": ("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous"),
                   "pump": ("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous"),
                   "listen": ("listen", f"{HOST}:0", "--allow-remote-anonymous")}
        for name, words in serving.items():
            with self.subTest(name):
                file = self.path(f"log of {name}")
                process = self.start(*words, "--log-file", file)
                log = self.follow(file)
                self.wait_for(log, "listening at")
                for turn in range(3):
                    os.rename(file, f"{file}.{turn}")
                    process.process.send_signal(signal.SIGHUP)
                    self.wait_for(log, "reopened the log")
                # A name that cannot be opened does not end the program either.
                os.rename(file, f"{file}.3")
                os.mkdir(file)
                process.process.send_signal(signal.SIGHUP)
                self.wait_for(self.follow(f"{file}.3"), "the log continues in the old file")
                process.process.send_signal(signal.SIGTERM)
                self.assertEqual(process.end()[0], 4 if name == "listen" else 0)  # 4: no message

    def test_a_full_disk_is_said_once_and_counted_and_data_goes_on(self):
        publisher = self.start("publish", self.config("wait_subscribers: 1\nstreams:\n  - {fids: 0-9, source: "
                               "pattern, size: 40, rate: max, count: 1000}\n"))
        _, report, log = self.start("subscribe", publisher.address(), "--fid", "0-9", "--verify",
                                    "--log-file", "/dev/full").end()
        self.assertEqual((report["messages"], report["lost"]), (10000, 0))
        self.assertRegex(log, r"\Anetio: cannot write the log /dev/full: No space left on device; .*\n"
                              r"netio: [1-9]\d* lines of the log /dev/full were lost\n\Z")

    def test_a_line_that_is_drawn_again_and_again_fits_its_terminal(self):
        publisher = self.start("publish", self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 100}\n"))
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
        reader = subprocess.Popen([PROGRAM, "subscribe", publisher.address(), "--fid", "0"],
                                  stdout=follower, stderr=subprocess.DEVNULL)
        os.close(follower)
        shown = b""
        while shown.count(b"\x1b[K") < 1:
            shown += os.read(leader, 4096)
        reader.kill()
        reader.wait()
        os.close(leader)
        line = re.search(rb"\r([^\r]*)\x1b\[K", shown).group(1)
        self.assertEqual(len(line), 19, shown)

    def test_a_file_that_cannot_be_written_is_said(self):
        status, _, log = self.start("info", "--log-file", "/nowhere/log", json_report=False).end()
        self.assertEqual(status, 1)
        self.assertIn("cannot write the log /nowhere/log: No such file or directory", log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
