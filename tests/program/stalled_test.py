# SPDX-License-Identifier: Apache-2.0
"""The programs when their output is not read or cannot be written: a full disk, a reader that
stalls or has gone, a stopped terminal.

stalled_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import pty
import re
import select
import signal
import subprocess
import unittest
import urllib.request

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

SHORT = "streams:\n  - {fids: 0, source: pattern, size: 40, rate: 1}\n"


class Unwritable(Case):
    """Only the exit status can still be reported."""

    def full_pipe(self):
        """A full pipe without a reader that reads."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        return writer

    def ended(self, words):
        """(exit status, standard output) of a shell command line."""
        done = subprocess.run(words, shell=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
        return done.returncode, done.stdout

    def test_a_full_disk_for_the_log_changes_no_exit_status(self):
        config = self.config(SHORT)
        for where in ("2>/dev/full", "2>&-"):
            for words, status in (
                    (f"publish {config} --duration 10ms --log-file /dev/full", 0),
                    ("publish /no/where.yaml --log-file /dev/full", 1),
                    ("info --log-file /no/where", 1),
                    ("bogus", 2), ("subscribe a:1 --fids 1", 2), ("subscribe a:1", 2)):
                with self.subTest(words=words, where=where):
                    self.assertEqual(self.ended(f"'{PROGRAM}' {words} {where}")[0], status)

    def test_a_stalled_reader_of_standard_error_delays_no_end(self):
        config = self.config(SHORT)
        reader, gone = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, gone)
        for where in (self.full_pipe(), gone):
            for words, status in ((["publish", config, "--duration", "10ms", "--log-file", "/dev/full"], 0),
                                  (["bogus"], 2)):
                with self.subTest(words=words):
                    done = subprocess.run([PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=where,
                                          timeout=DEADLINE, check=False)
                    self.assertEqual(done.returncode, status)

    def test_a_second_signal_ends_the_wait_for_a_stalled_report(self):
        server = self.start("copy", "--serve", self.folder.name, "--listen", f"{HOST}:0", "--allow-remote-anonymous",
                            stdout=self.full_pipe())
        server.address()
        for number in (signal.SIGINT, signal.SIGTERM):  # two equal signals might count as one
            server.process.send_signal(number)
        status, _, log = server.end()
        self.assertEqual(status, 1, log)
        self.assertIn("cannot write the report to standard output: its reader is blocked", log)

    def test_a_report_follows_the_log_lines_that_explain_it(self):
        for words in ("send 127.0.0.1:1 --messages 1", "subscribe 127.0.0.1:1 --fid 0 --duration 1s"):
            out = self.ended(f"'{PROGRAM}' {words} 2>&1")[1].splitlines()
            logged = [at for at, line in enumerate(out) if re.match(r"\d{4}-\d\d-\d\d ", line)]
            self.assertTrue(logged, out)
            self.assertRegex(out[logged[-1] + 1], "^(sender|subscriber)")

    def test_a_report_without_a_reader_is_an_error_and_no_signal(self):
        reader, gone = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, gone)
        for words in (["info"], ["send", "127.0.0.1:1", "--messages", "1"], ["--help"]):
            with self.subTest(words=words):
                done = subprocess.run([PROGRAM, *words], stdout=gone, stderr=subprocess.PIPE, text=True,
                                      timeout=DEADLINE, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("cannot write the report to standard output: Broken pipe", done.stderr)

    def refuses(self, *arguments):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cannot write the report to standard output: No space", done.stderr)

    def test_each_report_that_cannot_be_written_is_a_failure(self):
        for arguments in (["--help"], ["--version"], ["info"], ["info", "--json"], ["doctor"], ["doctor", "--json"]):
            with self.subTest(arguments=arguments):
                self.refuses(*arguments)

    def test_an_unwritable_report_of_a_pump_or_copy_is_an_error(self):
        pumped = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        os.mkdir(self.path("served"))
        served = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        file = self.path("file", "content")
        for more in ([], ["--json"]):
            with self.subTest(more=more):
                self.refuses("pump", pumped.address(), "--bytes", "1k", *more)
                self.refuses("copy", file, served.address(), *more)

    def test_a_server_whose_report_cannot_be_written_fails(self):
        os.mkdir(self.path("served"))
        for arguments in (("pump", "--serve", "--once"), ("copy", "--serve", self.path("served"))):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="utf-8") as full:
                server = self.start(*arguments, "--listen", f"{HOST}:0", "--allow-remote-anonymous", stdout=full)
                if arguments[0] == "pump":
                    self.assertEqual(self.start("pump", server.address(), "--bytes", "1k").end()[0], 0)
                else:
                    server.address()
                    server.process.send_signal(signal.SIGINT)
                status, _, log = server.end()
                self.assertEqual(status, 1, log)
                self.assertRegex(log, "cannot write (the report )?to standard output: No space")


class Stopped(Case):
    """A terminal that is stopped (Ctrl-S), as if its other end did not answer any more."""

    def terminal(self):
        """(the user's end, the programs' end)"""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, follower)
        return leader, follower

    def read_until(self, leader, what):
        shown = b""
        while what not in shown:
            self.assertTrue(select.select([leader], [], [], DEADLINE)[0], shown)
            shown += os.read(leader, 65536)
        return shown

    def stop(self, leader, follower):
        os.write(leader, b"\x13")
        asked = select.poll()
        asked.register(follower, select.POLLOUT)
        while asked.poll(0):  # another kernel thread does it
            pass

    def wait_for_another(self, process, pattern, times):
        """Waits for this many more lines of its log."""
        seen = sum(1 for line in process.lines if line and re.search(pattern, line))
        process.wait_for(pattern, seen + times)

    def messages(self, url):
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            text = answer.read().decode()
        return int(re.search(r"^netio_publisher_messages_total (\d+)", text, re.M).group(1))

    def test_stops_no_data(self):
        leader, follower = self.terminal()
        publisher = self.start("publish", self.config(self.PACED), "--metrics", "127.0.0.1:0", json_report=False,
                               stdout=follower)
        url = publisher.wait_for(r"metrics at (http://\S+/metrics)").group(1)
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0", "--progress")
        self.read_until(leader, b"\x1b[K")
        self.stop(leader, follower)
        before = self.messages(url)
        self.wait_for_another(subscriber, "progress ", 3)  # each of a second, as are the lines of the terminal
        self.assertGreater(self.messages(url), before)
        os.write(leader, b"\x11")
        self.read_until(leader, b"\x1b[K")  # it is drawn again
        publisher.process.send_signal(signal.SIGINT)
        self.read_until(leader, b"interrupted")
        self.assertEqual(publisher.end()[0], 0)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["lost"]), (0, 0), log)

    PACED = "streams:\n  - {fids: 0, source: pattern, size: 40, rate: 100}\n"

    def test_blocks_no_copy(self):
        os.mkdir(self.path("served"))
        server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        leader, follower = self.terminal()
        for name in ("shown", "logged"):  # more than arrives before the server is stopped
            with open(self.path(name), "wb") as file:
                for _ in range(512):
                    file.write(bytes(1 << 20))  # written, since a hole is not sent
        copy = self.start("copy", self.path("shown"), server.address(), json_report=False, stdout=follower)
        clock = self.start("copy", self.path("logged"), server.address(), "--progress")
        for name in ("shown", "logged"):
            while not os.path.exists(self.path(f"served/.{name}.netio-part")):
                self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGSTOP)
        self.read_until(leader, b"\x1b[K")
        self.stop(leader, follower)
        self.wait_for_another(clock, "progress ", 3)  # each of a second, as are the lines of the terminal
        server.process.kill()
        copy.wait_for("error.*shown")  # it has learned it, before anybody looks at the terminal
        os.write(leader, b"\x11")
        self.read_until(leader, b"failed")
        self.assertEqual((copy.end()[0], clock.end()[0]), (1, 1))


class Priorities(Case):
    def log_of(self, **stream):
        """What a publisher without a configuration says, where systemd says that it reads this stream."""
        reader, writer = os.pipe()
        found = os.fstat(writer)
        names = {"device": found.st_dev, "inode": found.st_ino, **stream}
        environment = {**os.environ, "JOURNAL_STREAM": "{device}:{inode}".format(**names)}
        subprocess.run([PROGRAM, "publish", "/no/where.yaml"], stderr=writer, env=environment, timeout=DEADLINE,
                       check=False)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as log:
            return log.read()

    def test_are_only_for_the_journal(self):
        self.assertRegex(self.log_of(), r"\A<3>[^0-9].*no/where")
        for other in ({"inode": 1}, {"device": 1}):  # standard error was led elsewhere since
            self.assertRegex(self.log_of(**other), r"\A\d{4}-\d\d-\d\d .* error .*no/where")


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
