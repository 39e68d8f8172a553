# SPDX-License-Identifier: Apache-2.0
"""Outcomes of the program netio: exit status, wrong command lines.

telling_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import signal
import socket
import subprocess
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case


class Telling(Case):
    """Exit statuses: docs/operations.md."""

    def test_a_publisher_that_was_never_there_is_no_success(self):
        process = self.start("subscribe", "127.0.0.1:1", "--fid", "1", "--duration", "300ms")
        status, report, log = process.end()
        self.assertEqual((status, report["outcome"], report["end"]), (3, "unreached", "duration"),
                         log)
        self.assertIsNone(report["lost"])

    def test_an_unpublished_fid_is_no_success(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        process = self.start("subscribe", publisher.address(), "--fid", "999")
        process.wait_for("subscribed to 0x3e7")
        publisher.process.send_signal(signal.SIGINT)
        status, report, log = process.end()
        self.assertEqual((status, report["outcome"], report["end"], report["lost"]),
                         (4, "nothing", "orderly", 0), log)

    def test_an_interruption_before_all_has_arrived_is_incomplete(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        process = self.start("subscribe", publisher.address(), "--fid", "0", "--messages", "1G",
                             "--progress")
        process.wait_for(r"progress [1-9]")
        process.process.send_signal(signal.SIGINT)
        status, report, log = process.end()
        self.assertEqual((status, report["outcome"], report["end"]),
                         (5, "incomplete", "interrupted"), log)

    def test_an_interruption_with_known_losses_is_incomplete(self):
        config = self.config("slow_policy: drop\nbuffered: {page_count: 4, page_size: 4k}\n"
                             + self.PATTERN)
        publisher = self.start("publish", config)
        process = self.start("subscribe", publisher.address(), "--fid", "0-63", "--progress")
        process.wait_for("subscribed to")
        process.process.send_signal(signal.SIGSTOP)
        other = self.start("subscribe", publisher.address(), "--fid", "0-63", "--messages", 64000)
        self.assertIn(other.end()[0], (0, 5))
        process.process.send_signal(signal.SIGCONT)
        process.wait_for(r"[1-9]\d* lost")
        process.process.send_signal(signal.SIGINT)
        status, report, log = process.end()
        self.assertEqual((status, report["outcome"], report["end"]),
                         (5, "incomplete", "interrupted"), log)

    def test_a_publisher_reports_an_unconfirmed_end(self):
        config = self.config("wait_subscribers: 2\nstreams:\n  - {fids: 0, source: pattern, size: 40, count: 100}\n")
        for number in (signal.SIGKILL, signal.SIGINT):  # it dies, or the wait is interrupted
            publisher = self.start("publish", config)
            stopped = self.start("subscribe", publisher.address(), "--fid", "0")
            stopped.wait_for("subscribed to")
            stopped.process.send_signal(signal.SIGSTOP)
            other = self.start("subscribe", publisher.address(), "--fid", "0", "--verify")
            status, report, log = other.end()  # so the publisher's end has begun
            self.assertEqual((status, report["messages"], report["end"]), (0, 100, "orderly"), log)
            if number == signal.SIGKILL:
                stopped.process.kill()
            else:
                publisher.process.send_signal(signal.SIGINT)
                publisher.process.send_signal(signal.SIGTERM)  # equal signals may be merged
            status, report, log = publisher.end()
            self.assertEqual((status, report["end"], report["unconfirmed"]), (5, "finished", 1), log)
            stopped.process.kill()

    def test_a_dead_subscriber_is_counted_without_a_publisher_error(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        dies = self.start("subscribe", publisher.address(), "--fid", "0")
        publisher.wait_for("subscribes to")
        dies.process.kill()
        publisher.wait_for("warning .*: connection lost")
        publisher.process.send_signal(signal.SIGINT)
        status, report, log = publisher.end()
        self.assertEqual((status, report["disconnected"], report["unconfirmed"]), (0, 1, 0), log)

    def test_colours_are_left_out_where_they_are_not_wanted(self):
        """On a terminal, where colours are used by default."""
        for value, coloured in (("1", False), ("", True)):
            master, slave = os.openpty()
            ended = subprocess.run([PROGRAM, "publish", "/no/where.yaml"], stderr=slave,
                                   env={**os.environ, "NO_COLOR": value, "TERM": "xterm"},
                                   timeout=DEADLINE)
            os.close(slave)
            text = os.read(master, 65536).decode()
            os.close(master)
            self.assertEqual(ended.returncode, 1)
            self.assertEqual("\x1b[" in text, coloured, text)


class Dumping(Case):
    def test_messages_are_shown_byte_by_byte(self):
        publisher = self.start("publish", self.config("streams:\n  - {fids: 7, source: pattern, size: 40, rate: 100}\n"))
        dump = subprocess.run([PROGRAM, "dump", publisher.address(), "--fid", "7", "--messages", "2", "--bytes", "20"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        lines = dump.stdout.splitlines()
        self.assertEqual(len(lines), 8, dump.stdout)
        for message in (lines[:4], lines[4:]):
            self.assertEqual(message[0], "0x7: 40 bytes")
            self.assertRegex(message[1], r"^  000000  ([0-9a-f]{2} ){8} ([0-9a-f]{2} ){8} \|.{16}\|$")
            self.assertRegex(message[2], r"^  000010  ([0-9a-f]{2} ){4} +\|.{4}\|$")
            self.assertEqual(message[3], "  and 20 bytes more")

    def test_only_what_passes_the_filter_is_shown_and_counted(self):
        """A pattern's sequence number is at byte 8."""
        publisher = self.start("publish", self.config(
            "streams:\n  - {fids: 7, source: pattern, size: 24, rate: 5000}\n"))
        dump = subprocess.run([PROGRAM, "dump", publisher.address(), "--fid", "7", "--count", "2",
                               "--filter", "8:5a", "--filter", "18000000"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        shown = [line for line in dump.stdout.splitlines() if line.startswith("  000000")]
        self.assertEqual(len(shown), 2, dump.stdout)
        for line in shown:
            self.assertRegex(line, r"^  000000  18 00 00 00 ..( ..){3}  5a ")

    def test_waiting_is_reported_once_however_often_it_retries(self):
        with socket.socket() as nobody:  # its port is reserved, without a listener
            nobody.bind(("127.0.0.1", 0))
            where = f"127.0.0.1:{nobody.getsockname()[1]}"
            dump = subprocess.run([PROGRAM, "dump", where, "--fid", "7", "--duration", "2s"],
                                  capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(dump.returncode, 3, dump.stderr)
        self.assertEqual(dump.stderr.count("refused"), 1, dump.stderr)
        self.assertRegex(dump.stderr, f"info {where}: waiting for it: .*refused")


class Usage(Case):
    def check_usage(self, *arguments, saying):
        process = self.start(*arguments, json_report=False)
        status, _, log = process.end()
        self.assertEqual(status, 2, log)
        self.assertRegex(log, saying)
        self.assertLess(len(log), 300, log)

    def test_a_wrong_word_is_reported_with_the_nearest_right_one(self):
        for arguments, saying in (
                (("subcribe",), "unknown command 'subcribe'.*did you mean 'subscribe'"),
                (("version",), "unknown command 'version'.*did you mean '--version'"),
                ((), "a command is missing"),
                (("subscribe", "a:1", "--fids", "1"), "unknown option '--fids'.*mean '--fid'"),
                (("publish", "--bogus"), "unknown option '--bogus'"),
                (("publish", "x.yaml", "--messages", "-1"), "--messages: '-1'; allowed"),
                (("publish", "x.yaml", "--wait-subscribers", "-1"), "--wait-subscribers: '-1'"),
                (("subscribe", "a:1", "--fid", "1", "--receive-buffer", "64q"), "--receive-buffer: '64q'"),
                (("subscribe", "a:1", "--fid", "1", "--provider", "sockets"), "--provider: 'sockets'"),
                (("cat", "a:1", "--provider", "tpc"), "'tpc' .did you mean 'tcp'.*use auto, verbs or tcp"),
                (("subscribe", "a:1", "--fid", "1", "--policy", "blok"), "'blok' is unknown .*mean 'block'.*allowed"),
                (("subscribe", "a:1", "--fid", "1", "--loop", "bussy"), "'bussy' is unknown .*mean 'busy'.*allowed"),
                (("listen", "a:1", "--min-protection", "privcy"), "'privcy' is unknown .*mean 'privacy'.*allowed"),
                (("list", "--log-level", "warn"), "--log-level: 'warn' is unknown .*mean 'warning'.*allowed"),
                (("top", "a:1", "--sort", "rates"), "--sort: 'rates' is unknown .*mean 'rate'.*allowed"),
                (("dump", "a:1", "--fid", "7", "--filter", "status:256"), "--filter: 'status:256'; allowed: cafe"),
                (("key", "lst", "x"), "'lst' is unknown .*mean 'list'.*allowed"),
                (("pump", "a:1", "--remote-writes", "trust"), "'trust' is unknown .*mean 'trusted'.*allowed"),
                (("subscribe", "a:1", "--fid", "1", "--output", "d"), "--output: .*netio record --output .*file export"),
                (("subscribe", "a:1", "--fid", "1", "--append"), "--append: .*netio record"),
                (("subscribe", "a:1"), "--fid is required")):
            self.check_usage(*arguments, saying=saying)
        for *arguments, name in (
                ("listen", "127.0.0.1:1", "--keys", "", "--keys"), ("copy", "--serve", ".", "--keys", "", "--keys"),
                ("subscribe", "a:1", "--fid", "1", "--local-host", "", "--local-host"), ("doctor", "", "peer"),
                ("doctor", "--serve", "", "--serve"), ("subscribe", "a:1", "", "--fid", "1", "publisher"),
                ("cat", "a:1", "--key", "", "--key"), ("info", "--log-file", "", "--log-file")):
            self.check_usage(*arguments, saying=f"{name}: the value is empty")
        for word in ("-1", "1e30", "x", "99999999999999999999"):
            for command, option in (
                    *((("pump", "a:1"), option) for option in (
                        "--bytes", "--size", "--size-min", "--receive-size", "--receive-size-min",
                        "--ring", "--ring-limit", "--sends", "--receives", "--seed")),
                    *((("pump", "--serve"), option) for option in (
                        "--clients", "--clients-per-host", "--memory", "--idle-limit", "--metrics-fids")),
                    *((("copy", "--serve", "."), option) for option in (
                        "--senders", "--senders-per-host", "--idle-limit", "--least-rate", "--buffers")),
                    (("cat", "a:1"), "--timeout"), (("send", "a:1"), "--size"),
                    *((("subscribe", "a:1", "--fid", "1"), option) for option in (
                        "--largest-message", "--receive-buffer-limit", "--retry-interval", "--retry-limit")),
                    *((("dump", "a:1", "--fid", "1"), option) for option in (
                        "--largest-message", "--receive-buffer-limit")),
                    *((("listen", "a:1"), option) for option in ("--peer-limit", "--largest-message")),
                    *((("send", "a:1"), option) for option in (
                        "--page-size", "--page-count", "--retry-interval", "--retry-limit")),
                    (("key", "new", "x"), "--id"), (("subscribe", "a:1", "--fid", "1"), "--receive-count")):
                with self.subTest(command=command, option=option, word=word):
                    self.check_usage(*command, option, word, saying=f"{option}: .*{word}")
        for word, problem in (("nan", "is not a time"), ("inf", "is not a time"), ("30", "has no unit"),
                              ("86401s", "is out of range")):
            self.check_usage("cat", "a:1", "--timeout", word, saying=f"--timeout: '{word}' {problem}; allowed: 0, or")
        for option in (("--listen", "127.0.0.1:0"), ("--once",), ("--allow-remote-anonymous",), ("--clients", "1")):
            self.check_usage("pump", "127.0.0.1:1", *option, saying=f"{option[0]} requires --serve")
        for word in ("0", "nan", "inf", "1e10s", "1e300s", "10x", "10", "-1s"):
            for command in (("subscribe", "a:1", "--fid", "1"), ("publish", "x.yaml")):
                self.check_usage(*command, "--duration", word,
                                 saying=f"--duration: '{word}' .*; allowed: a time with its unit, such as 40us")

    def test_larger_messages_need_an_option_of_the_subscriber(self):
        publisher = self.start("publish", self.config("largest_message: 100M\n" + self.LARGE, "unbuffered"))
        for command in (("subscribe",), ("dump",)):
            arguments = (*command, publisher.address(), "--fid", "0", "--messages", 1)
            has_report = command == ("subscribe",)
            rejected = self.start(*arguments, "--duration", "30s", json_report=has_report)
            status, _, log = rejected.end()
            self.assertNotEqual(status, 0, log)
            self.assertRegex(log, "104857600")
            taken = self.start(*arguments, "--largest-message", "100M", "--receive-buffer-limit", "32M",
                               json_report=has_report)
            status, _, log = taken.end()
            self.assertEqual(status, 0, log)

    def test_conflation_unbuffered_is_refused_with_a_remedy(self):
        publisher = self.start("publish", self.config(self.LARGE, "unbuffered"))
        process = self.start("subscribe", publisher.address(), "--fid", "0", "--policy", "newest")
        status, report, log = process.end()
        self.assertEqual((status, report["end"]), (1, "refused"), log)
        self.assertRegex(log, "'newest' for .*, because it is not buffered; use --policy drop")
        self.check_not_started(self.config("slow_policy: newest\n" + self.LARGE, "unbuffered"),
                               "slow_policy.*keeps no messages.*mode: buffered")

    def check_not_started(self, config, saying):
        process = self.start("publish", config, "--check", json_report=False)
        status, _, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertRegex(log, saying)

    def test_a_check_refuses_what_a_start_would_and_starts_nothing(self):
        fine = self.start("publish", self.config(self.PATTERN), "--check", json_report=False)
        status, _, log = fine.end()
        self.assertEqual(status, 0, log)
        for refused, saying in (
                ("streams:\n  - {fids: 0, source: pattern, sise: 40}\n", "did you mean 'size'"),
                ("streams:\n  - {fids: 0, source: {file: /no/where}}\n", "/no/where"),
                ("buffered: {page_count: 2, page_size: 64}\n" + self.PATTERN, "page_size"),
                ("outstanding_limit: 1\nslow_policy: wait\n" + self.PATTERN, "slow_policy")):
            self.check_not_started(self.config(refused), saying)
        everywhere = self.path("all.yaml", "listen: 0.0.0.0:1\nmode: buffered\n" + self.PATTERN)
        self.check_not_started(everywhere, "allow_remote_anonymous")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            beside = self.start("publish", self.config(self.PATTERN), "--check", "--listen", f"127.0.0.1:{port}",
                                json_report=False)
            self.assertEqual(beside.end()[0], 0, "another publisher may run there")

    def test_a_word_checked_later_is_a_wrong_command_line_too(self):
        config = self.config(self.PATTERN)
        for arguments, saying in (
                (("subscribe", "127.0.0.1:1", "--fid", "x"), "'x' is not a fid; allowed"),
                (("subscribe", "127.0.0.1:1", "--fid", "9-1"), "ends before it begins"),
                (("subscribe", "127.0.0.1", "--fid", "1"), "the port is missing"),
                (("subscribe", "tcp://127.0.0.1:1", "--fid", "1"), "there is no scheme"),
                (("publish", config, "--listen", "*:1"), r"any address is 0\.0\.0\.0:PORT"),
                (("pump", "nonsense"), "the port is missing"),
                (("cat",), "needs the peer's HOST:PORT"), (("cat", "nonsense"), "the port is missing"),
                (("copy", "a"), "FILE... HOST:PORT"), (("copy", "a", "nonsense"), "port is missing"),
                (("doctor", "--serve", "nonsense"), "the port is missing")):
            self.check_usage(*arguments, saying=saying)

    def test_an_unreadable_report_is_an_error(self):
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 1}\n")
        for command in (f"'{PROGRAM}' publish {config} --duration 10ms >/dev/full",
                        f"'{PROGRAM}' publish {config} --duration 10ms >&-",
                        f"'{PROGRAM}' subscribe 127.0.0.1:1 --fid 1 --duration 10ms >/dev/full"):
            ended = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True,
                                   timeout=DEADLINE)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn("cannot write the report to standard output", ended.stderr)


    def test_unreadable_lines_end_a_program_and_not_by_a_signal(self):
        config = self.config("streams:\n  - {fids: 0, source: pattern, size: 40, rate: 1000}\n")
        bus = self.path("bus")
        os.mkdir(bus)
        publisher = self.start("publish", config, "--bus", bus)
        address = publisher.address()
        publisher.wait_for("announced")
        for arguments in (("dump", address, "--fid", "0"), ("list", "--bus", bus, "--watch")):
            with open("/dev/full", "w") as full:
                ended = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                                       text=True, timeout=DEADLINE)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn("cannot write to standard output: No space", ended.stderr)
        with open("/dev/full", "w") as full:
            listener = subprocess.Popen([PROGRAM, "listen", f"{HOST}:0", "--print"], stdout=full,
                                        stderr=subprocess.PIPE, text=True)
            address = listener.stderr.readline().split("listening at ")[1].split()[0]
            subprocess.run([PROGRAM, "send", address], input="one\n", text=True,
                           capture_output=True, timeout=DEADLINE)
            self.assertIn("No space", listener.communicate(timeout=DEADLINE)[1])
        self.assertEqual(listener.returncode, 1)


class FirstPrograms(Case):
    """The programs of the guide that have their own loop."""

    FOLDER = os.path.dirname(PROGRAM)

    def run_example(self, name, address):
        process = subprocess.Popen([os.path.join(self.FOLDER, name), address],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_they_end_in_order_and_tell_an_error_in_one_line(self):
        with socket.socket() as probe:  # free now, used later
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        publisher = self.run_example("example_publisher_on_a_loop", address)
        reader = self.run_example("example_subscriber_on_a_loop", address)
        ours = self.start("subscribe", address, "--fid", "1", "--progress")
        ours.wait_for(r"progress [1-9]")
        second = self.run_example("example_publisher_on_a_loop", address)
        _, error = second.communicate(timeout=DEADLINE)
        self.assertEqual((second.returncode, error.count("\n")), (1, 1), error)
        self.assertIn(address, error)
        publisher.send_signal(signal.SIGINT)
        out, error = publisher.communicate(timeout=DEADLINE)
        self.assertEqual(publisher.returncode, 0, error)
        self.assertRegex(out, "published [1-9]")
        status, report, log = ours.end()
        self.assertEqual((status, report["end"], report["lost"]), (0, "orderly", 0), log)
        reader.send_signal(signal.SIGINT)
        out, error = reader.communicate(timeout=DEADLINE)
        self.assertEqual(reader.returncode, 0, error)
        self.assertRegex(out, "[1-9][0-9]* messages, ")

    def test_a_second_signal_ends_the_wait_and_reports_the_subscriber(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        publisher = self.run_example("example_publisher_on_a_loop", address)
        stopped = self.start("subscribe", address, "--fid", "1", "--progress")
        stopped.wait_for(r"progress [1-9]")
        stopped.process.send_signal(signal.SIGSTOP)
        publisher.send_signal(signal.SIGINT)
        publisher.send_signal(signal.SIGTERM)  # equal signals may be merged
        _, error = publisher.communicate(timeout=DEADLINE)
        self.assertEqual((publisher.returncode, error.count("\n")), (1, 1), error)
        stopped.process.send_signal(signal.SIGCONT)
        status, report, log = stopped.end()
        self.assertEqual((status, report["end"]), (5, "lost"), log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
