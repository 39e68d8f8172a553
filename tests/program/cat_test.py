# SPDX-License-Identifier: Apache-2.0
"""netio cat: both directions at once while one is paused, the two ends of a conversation, and a
blocked standard output.

cat_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import pty
import random
import re
import signal
import subprocess
import threading
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
SIZES = (0, 100_000, 4_000_000)


class CatCase(Case):
    def cat(self, *arguments, stdin=PIPE, stdout=PIPE):
        process = subprocess.Popen([PROGRAM, "cat", *arguments], stdin=stdin, stdout=stdout, stderr=PIPE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                self.addCleanup(self.close, stream)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    @staticmethod
    def close(stream):
        try:
            stream.close()
        except BrokenPipeError:
            pass

    def listener(self, *arguments, **streams):
        """(process, address)"""
        process = self.cat("--listen", f"{HOST}:0", "--allow-remote-anonymous", *arguments, **streams)
        return process, re.search(r"listening at (\S+)", process.stderr.readline().decode()).group(1)

    def pair(self):
        """(the listening side, the connecting side), with pipes on all sides."""
        listening, address = self.listener()
        return listening, self.cat(address)

    def in_thread(self, call):
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        return thread

    def write(self, process, data):
        def all_of_it():
            process.stdin.write(data)
            process.stdin.close()

        return self.in_thread(all_of_it)

    def assert_ends(self, status, *processes):
        for process in processes:
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.fail(f"{process.args} does not end")
            self.assertEqual(process.returncode, status, process.args)

    def assert_is(self, found, wanted):
        self.assertTrue(found == wanted, f"{len(found)} bytes instead of {len(wanted)}, or others")

    def data(self, size):
        return random.Random(size).randbytes(size)


class Coupled(CatCase):
    def test_each_direction_moves_while_the_other_is_paused(self):
        """The program at one side writes everything before it reads, like a filter with a small
        buffer."""
        for size in SIZES:
            for pausing, other in (self.pair(), reversed(self.pair())):
                with self.subTest(size=size, pausing=pausing.args):
                    there, back = self.data(size), self.data(size + 1)
                    answers = []
                    reading = self.in_thread(lambda other=other, answers=answers: answers.append(other.stdout.read()))
                    writing = self.write(other, there)
                    pausing.stdin.write(back)  # its output is not read during this time
                    pausing.stdin.close()
                    self.assert_is(pausing.stdout.read(), there)
                    for thread in (reading, writing):
                        thread.join(DEADLINE)
                    self.assert_is(answers[0], back)
                    self.assert_ends(0, pausing, other)

    def test_an_echo_loop_brings_back_all_that_was_sent(self):
        for size in SIZES:
            with self.subTest(size=size):
                there, back = os.pipe()
                listening, address = self.listener(stdin=there, stdout=back)
                os.close(there)
                os.close(back)
                asking = self.cat(address)
                self.write(asking, self.data(size))
                self.assert_is(asking.stdout.read(), self.data(size))
                self.assert_ends(0, asking, listening)

    def test_a_filter_that_answers_after_its_input_ends_is_received(self):
        lines = b"".join(b"%06d\n" % (n * 7919 % 100_003) for n in range(100_000))
        for filter_listens in (True, False):
            with self.subTest(filter_listens=filter_listens):
                sort = subprocess.Popen(["sort"], stdin=PIPE, stdout=PIPE)
                sides = {"stdin": sort.stdout, "stdout": sort.stdin}
                if filter_listens:
                    serving, address = self.listener(**sides)
                    asking = self.cat(address)
                else:
                    asking, address = self.listener()
                    serving = self.cat(address, **sides)
                sort.stdin.close()
                sort.stdout.close()
                self.write(asking, lines)
                self.assert_is(asking.stdout.read(), b"".join(sorted(lines.splitlines(True))))
                self.assert_ends(0, asking, serving, sort)


class HalfClosing(CatCase):
    """`netio cat --listen A > file` and `netio cat A < file`, in either direction."""

    def silent_inputs(self):
        """A user's terminal, and a pipe without a writer that writes: (name, descriptor)."""
        leader, terminal = pty.openpty()
        reader, writer = os.pipe()
        for end in (leader, terminal, reader, writer):
            self.addCleanup(os.close, end)
        return ("terminal", terminal), ("pipe", reader)

    def test_a_transfer_ends_with_any_standard_input_of_the_receiver(self):
        for name, silent in self.silent_inputs():
            for size in SIZES[1:]:
                for receiver_listens in (True, False):
                    with self.subTest(input=name, size=size, receiver_listens=receiver_listens):
                        content = self.path("content", self.data(size))
                        with open(content, "rb") as source, open(self.path("copy"), "wb") as target:
                            receiver = {"stdin": silent, "stdout": target}
                            sender = {"stdin": source, "stdout": DEVNULL}
                            one, address = self.listener(**(receiver if receiver_listens else sender))
                            two = self.cat(address, **(sender if receiver_listens else receiver))
                            self.assert_ends(0, one, two)
                        with open(self.path("copy"), "rb") as copy:
                            self.assert_is(copy.read(), self.data(size))

    def test_an_empty_file_ends_a_listener_at_a_terminal(self):
        (_, terminal), _ = self.silent_inputs()
        one, address = self.listener(stdin=terminal)
        self.assert_ends(0, self.cat(address, stdin=DEVNULL), one)

    def test_a_late_producer_loses_nothing_to_a_receiving_peer(self):
        one, address = self.listener(stdout=DEVNULL)
        two = self.cat(address, stdin=DEVNULL)
        while "has ended its data" not in one.stderr.readline().decode():
            self.assertIsNone(one.poll())
        one.stdin.write(b"late\n")
        one.stdin.close()
        self.assertEqual(two.stdout.read(), b"late\n")
        self.assert_ends(0, one, two)

    def test_a_person_may_type_to_a_peer_that_only_receives(self):
        leader, terminal = pty.openpty()
        for end in (leader, terminal):
            self.addCleanup(os.close, end)
        one, address = self.listener(stdin=DEVNULL)
        two = self.cat(address, stdin=terminal)
        while "has ended its data" not in two.stderr.readline().decode():
            self.assertIsNone(two.poll())
        os.write(leader, b"line\n\x04")
        self.assertEqual(one.stdout.read(), b"line\n")
        self.assert_ends(0, one, two)

    def test_until_says_when_it_ends(self):
        one, address = self.listener("--until", "peer")  # like under ssh, where input does not end
        self.assert_ends(0, self.cat(address, stdin=DEVNULL), one)
        (_, terminal), _ = self.silent_inputs()
        one, address = self.listener("--until", "both", stdin=terminal)
        two = self.cat(address, stdin=DEVNULL)
        while "has ended its data" not in one.stderr.readline().decode():
            self.assertIsNone(one.poll())
        one.send_signal(signal.SIGTERM)
        self.assert_ends(-signal.SIGTERM, one)
        self.assert_ends(1, two)


class Blocked(CatCase):
    """Standard output is not read."""

    def blocked(self, *arguments):
        """(the side whose output is not read, its peer): no byte moves any more."""
        blocked, address = self.listener(*arguments)
        peer = self.cat(address, *(() if arguments else ("--timeout", "1s")))
        self.in_thread(lambda: self.fill(peer))
        return blocked, peer

    @staticmethod
    def fill(peer):
        try:
            while True:
                peer.stdin.write(bytes(1 << 20))
        except (BrokenPipeError, ValueError):
            pass

    def test_a_timeout_ends_both_sides_and_says_what_was_waited_for(self):
        blocked, peer = self.blocked("--timeout", "5s")
        self.assert_ends(1, blocked, peer)
        log = blocked.stderr.read().decode()
        self.assertRegex(log, r"no byte was transferred for 5000 ms \(--timeout\); standard output is blocked with [1-9]")

    def test_a_dead_peer_is_reported_and_arrived_data_is_kept(self):
        blocked, peer = self.blocked()
        peer.wait(DEADLINE)  # it has stopped trying: no byte moves any more
        while "received bytes wait for standard output" not in (line := blocked.stderr.readline().decode()):
            self.assertTrue(line, "it ended")
        self.assertIsNone(blocked.poll())
        self.assertGreater(len(blocked.stdout.read()), 1 << 20)
        self.assert_ends(1, blocked)

    def test_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            blocked, peer = self.blocked()
            peer.wait(DEADLINE)
            blocked.send_signal(number)
            self.assert_ends(-number, blocked)

    def test_a_reader_paused_beyond_the_close_timeout_gets_all(self):
        data = self.data(4_000_000)
        one, address = self.listener(stdin=DEVNULL)
        two = self.cat(address)
        self.write(two, data)
        with self.assertRaises(subprocess.TimeoutExpired):
            two.wait(15)  # more than the 10 s of close_timeout
        self.assert_is(one.stdout.read(), data)
        self.assert_ends(0, one, two)

    def test_failed_output_is_reported_with_a_remedy_and_ends_both(self):
        reader, gone = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, gone)
        with open("/dev/full", "wb") as full:
            for where, words in ((full, "No space left on device; free space"),
                                 (gone, "Broken pipe; the program that reads it has ended")):
                with self.subTest(words=words):
                    one, address = self.listener(stdin=DEVNULL, stdout=where)
                    two = self.cat(address)
                    two.stdin.write(b"line\n")
                    two.stdin.flush()
                    self.assert_ends(1, one, two)
                    self.assertIn(f"cannot write to standard output: {words}", one.stderr.read().decode())

    def test_closed_standard_output_is_an_error_if_something_arrives(self):
        for data, status in ((b"", 0), (b"line\n", 1)):
            one, address = self.listener()
            two = subprocess.Popen(["sh", "-c", 'exec "$0" cat "$1" >&-', PROGRAM, address], stdin=DEVNULL,
                                   stderr=PIPE)
            self.write(one, data).join()
            log = two.communicate(timeout=DEADLINE)[1].decode()
            self.assertEqual(two.returncode, status, log)
            self.assertEqual("cannot write to standard output: Bad file" in log, status == 1, log)
            one.wait(DEADLINE)  # it may have ended in order before


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
