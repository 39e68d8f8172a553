# SPDX-License-Identifier: Apache-2.0
"""netio top on a terminal.

top_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import unittest

from program_case import DEADLINE, PROGRAM, UNITTEST_ARGUMENTS, Case

MANY = "streams:\n  - {fids: 0-99, source: pattern, size: 40, rate: 1000}\n"
FEW = "streams:\n  - {fids: 500-501, source: pattern, size: 40, rate: 100}\n"


# The leader of the terminal's session, which outlives the program, like a shell: the end of a
# leader would hang up the terminal. Prints PID, and then "stopped" or "ended STATUS" each time.
LEADER = """
import fcntl, os, signal, subprocess, sys, termios
fcntl.ioctl(1, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
    signal.signal(number, lambda *_: None)
said = int(sys.argv[1])
program = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL if sys.argv[2] == "none" else None)
os.write(said, b"%d\\n" % program.pid)
while True:
    status = os.waitpid(program.pid, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        break
    os.write(said, b"stopped\\n")
os.write(said, b"ended %d\\n" % os.waitstatus_to_exitcode(status))
while True:
    signal.pause()
"""


class OnATerminal(Case):
    def metrics(self, streams):
        publisher = self.start("publish", self.config(streams), "--metrics", "127.0.0.1:0")
        return publisher.wait_for(r"metrics at http://([^/]+)/metrics").group(1)

    def top(self, stdin="terminal"):
        """Its process id. It shows two programs; the first one has 100 fids."""
        self.leader, self.follower = pty.openpty()
        said, saying = os.pipe()
        for end in (self.leader, self.follower, said):
            self.addCleanup(os.close, end)
        fcntl.ioctl(self.follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.follower)
        sources = self.metrics(MANY), self.metrics(FEW)
        session = subprocess.Popen([sys.executable, "-c", LEADER, str(saying), stdin, PROGRAM, "top", *sources,
                                    "--interval", "10ms"], stdin=self.follower, stdout=self.follower,
                                   stderr=subprocess.DEVNULL, pass_fds=[saying], start_new_session=True)
        os.close(saying)
        self.addCleanup(session.wait)
        self.addCleanup(session.kill)
        self.said = said
        return int(self.heard())

    def heard(self):
        """The next line of the session's leader. Screen output before it is read and dropped."""
        line = b""
        while not line.endswith(b"\n"):
            ready = select.select([self.said, self.leader], [], [], DEADLINE)[0]
            self.assertTrue(ready, line)
            if self.leader in ready:
                os.read(self.leader, 65536)
            if self.said in ready:
                line += os.read(self.said, 1)
        return line.decode().strip()

    def screen(self, pattern):
        """The first complete screen that shows this."""
        shown = ""
        while True:
            self.assertTrue(select.select([self.leader], [], [], DEADLINE)[0], shown)
            shown += os.read(self.leader, 65536).decode()
            *_, last, _ = ["", "", *shown.split("\x1b[H\x1b[2J")]
            if re.search(pattern, last):
                return last.replace("\r", "").split("\n")

    def press(self, keys):
        os.write(self.leader, keys.encode())

    def assert_ended(self):
        self.assertEqual(self.heard(), "ended 0")
        self.assertEqual(termios.tcgetattr(self.follower), self.before)

    def test_shows_both_programs_scrolls_and_ends_by_a_key(self):
        self.top()
        lines = self.screen("(?s)0x1f4 .* rows hidden")
        self.assertLessEqual(len(lines), 24)
        self.assertRegex(lines[-1], r"[1-9]\d* of \d+ rows hidden; .*q: quit")
        self.assertNotRegex("\n".join(lines), "0x63 ")
        for down, up in (("G", "g"), ("\x1b[6~" * 9, "\x1b[5~" * 9), ("j" * 120, "k" * 120),
                         ("\x1b[B" * 120, "\x1b[A" * 120)):
            self.press(down)
            self.screen("(?s)0x63 .*0x1f4 ")
            self.press(up)
            self.screen("(?s)1-.*0x0 .*0x1f4 ")
        self.press("q")
        self.assert_ended()

    def test_leaves_the_terminal_as_it_was_at_each_end(self):
        for end in (lambda _: self.press("\x03"), lambda _: self.press("\x1c"),
                    lambda top: os.kill(top, signal.SIGTERM), lambda top: os.kill(top, signal.SIGHUP)):
            top = self.top()
            self.screen("q: quit")
            self.assertFalse(termios.tcgetattr(self.follower)[3] & termios.ICANON)
            end(top)
            self.assert_ended()

    def test_gives_the_terminal_back_while_it_is_suspended(self):
        top = self.top()
        self.screen("q: quit")
        self.press("\x1a")
        self.assertEqual(self.heard(), "stopped")
        self.assertTrue(termios.tcgetattr(self.follower)[3] & termios.ICANON)
        os.kill(top, signal.SIGCONT)
        self.screen("q: quit")
        self.press("q")
        self.assert_ended()

    def test_works_without_a_terminal_on_standard_input(self):
        top = self.top(stdin="none")
        self.screen("(?s)0x1f4 .* rows hidden; enlarge the window")
        os.kill(top, signal.SIGINT)
        self.assert_ended()


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
