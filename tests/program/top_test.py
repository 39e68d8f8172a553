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
import termios
import unittest

from program_case import DEADLINE, PROGRAM, UNITTEST_ARGUMENTS, Case

MANY = "streams:\n  - {fids: 0-99, source: pattern, size: 40, rate: 1}\n"
FEW = "streams:\n  - {fids: 500-501, source: pattern, size: 40, rate: 1}\n"


class OnATerminal(Case):
    def metrics(self, streams):
        publisher = self.start("publish", self.config(streams), "--metrics", "127.0.0.1:0")
        return publisher.wait_for(r"metrics at http://([^/]+)/metrics").group(1)

    def top(self, stdin=None):
        """With two programs, of which the first has 100 fids."""
        self.leader, self.follower = pty.openpty()
        for end in (self.leader, self.follower):
            self.addCleanup(os.close, end)
        fcntl.ioctl(self.follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.follower)
        sources = self.metrics(MANY), self.metrics(FEW)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)

        top = subprocess.Popen([PROGRAM, "top", *sources, "--interval", "10ms"], stdin=stdin or self.follower,
                               stdout=self.follower, stderr=subprocess.DEVNULL, preexec_fn=own_terminal)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        return top

    def screen(self, pattern):
        """The first whole screen that shows this."""
        shown = ""
        while True:
            self.assertTrue(select.select([self.leader], [], [], DEADLINE)[0], shown)
            shown += os.read(self.leader, 65536).decode()
            *_, last, _ = ["", "", *shown.split("\x1b[H\x1b[2J")]
            if re.search(pattern, last):
                return last.replace("\r", "").split("\n")

    def press(self, keys):
        os.write(self.leader, keys.encode())

    def assert_ended(self, top, status=0):
        while top.poll() is None:  # it may have something to write
            if select.select([self.leader], [], [], 0.1)[0]:
                os.read(self.leader, 65536)
        self.assertEqual(top.returncode, status)
        self.assertEqual(termios.tcgetattr(self.follower), self.before)

    def test_shows_both_programs_scrolls_and_ends_by_a_key(self):
        top = self.top()
        lines = self.screen("0x1f4 ")
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
        self.assert_ended(top)

    def test_leaves_the_terminal_as_it_was_at_each_end(self):
        for end in (lambda top: self.press("\x03"), lambda top: self.press("\x1c"),
                    lambda top: top.send_signal(signal.SIGTERM), lambda top: top.send_signal(signal.SIGHUP)):
            top = self.top()
            self.screen("q: quit")
            self.assertFalse(termios.tcgetattr(self.follower)[3] & termios.ICANON)
            end(top)
            self.assert_ended(top)

    def test_gives_the_terminal_back_while_it_is_suspended(self):
        top = self.top()
        self.screen("q: quit")
        self.press("\x1a")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(top.pid, os.WUNTRACED)[1]))
        self.assertTrue(termios.tcgetattr(self.follower)[3] & termios.ICANON)
        top.send_signal(signal.SIGCONT)
        self.screen("q: quit")
        self.press("q")
        self.assert_ended(top)

    def test_works_without_a_terminal_on_standard_input(self):
        top = self.top(stdin=subprocess.DEVNULL)
        self.assertRegex(self.screen("0x1f4 ")[-1], "rows hidden; enlarge the window")
        top.send_signal(signal.SIGINT)
        self.assert_ended(top)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
