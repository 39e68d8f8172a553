# SPDX-License-Identifier: Apache-2.0
"""Messages from a send socket to a listen socket.

send_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import signal
import socket
import subprocess
import threading
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case


class Way:
    """A forwarding path to a listener that can hold back the sender's data."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.door = socket.create_server((host, 0))
        self.address = f"{host}:{self.door.getsockname()[1]}"
        self.there = (host, int(port))
        self.free = threading.Event()
        self.held = threading.Event()
        self.free.set()
        self.server = threading.Thread(target=self._serve)
        self.server.start()

    def _serve(self):
        sender, _ = self.door.accept()
        listener = socket.create_connection(self.there)
        back = threading.Thread(target=self._carry, args=(listener, sender))
        back.start()
        self._carry(sender, listener, self.free)
        back.join()
        sender.close()
        listener.close()

    def _carry(self, source, target, free=None):
        try:
            while data := source.recv(65536):
                if free and not free.is_set():
                    self.held.set()
                    free.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # one side has closed
            pass

    def hold(self):
        self.free.clear()

    def wait_for_answer(self):
        if not self.held.wait(DEADLINE):
            raise AssertionError("the sender has not answered")

    def release(self):
        self.free.set()

    def close(self):
        self.release()
        self.server.join()
        self.door.close()


class Sending(Case):
    def listener(self, *arguments):
        return self.start("listen", f"{HOST}:0", "--allow-remote-anonymous", *arguments)

    def send(self, listener, *arguments, text=None):
        done = subprocess.run([PROGRAM, "send", listener.address(), *arguments], input=text,
                              capture_output=True, text=True, timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr

    def end(self, listener):
        listener.process.send_signal(signal.SIGINT)
        return listener.end()

    def test_each_line_is_a_message(self):
        listener = subprocess.Popen([PROGRAM, "listen", f"{HOST}:0", "--allow-remote-anonymous", "--print"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(listener.stdout.close)
        self.addCleanup(listener.stderr.close)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        address = listener.stderr.readline().split("listening at ")[1].split()[0]
        done = subprocess.run([PROGRAM, "send", address], input="one\n\ntwo three\nlast", text=True,
                              capture_output=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sender: 4 messages, 16 bytes, all of them received", done.stdout)
        lines = [listener.stdout.readline() for _ in range(4)]
        self.assertEqual(lines, ["one\n", "\n", "two three\n", "last\n"])

    def test_made_up_messages_of_two_senders_all_arrive(self):
        listener = self.listener()
        address = listener.address()
        senders = [self.start("send", address, "--messages", 200000, "--size", 40) for _ in range(2)]
        for sender in senders:
            status, report, log = sender.end()
            self.assertEqual((status, report["messages"], report["end"]), (0, 200000, "closed in order"), log)
        status, report, log = self.end(listener)
        self.assertEqual((status, report["messages"], report["senders"]), (0, 400000, 2), log)

    def test_a_message_larger_than_a_frame_arrives_whole(self):
        listener = self.listener("--messages", 3)
        status, out, log = self.send(listener, "--messages", "3", "--size", "1M")
        self.assertEqual(status, 0, log)
        self.assertEqual(listener.end()[1]["bytes"], 3 << 20)

    def test_a_listener_reports_its_limits_of_size_and_senders(self):
        listener = self.listener("--largest-message", "20M", "--peer-limit", 1)
        status, _, log = self.send(listener, "--messages", "1", "--size", "20M", "--page-size", "32k", "--page-count", "1024")
        self.assertEqual(status, 0, log)
        status, _, log = self.send(listener, "--messages", "1", "--size", "21M", "--page-count", "1024")
        self.assertNotEqual(status, 0)
        self.assertRegex(log, "larger than the limit of 20971520")
        self.assertEqual(self.end(listener)[1]["bytes"], 20 << 20)

    def test_a_sender_beyond_the_limit_is_rejected(self):
        listener = self.listener("--peer-limit", 1)
        address = listener.address()
        first = subprocess.Popen([PROGRAM, "send", address], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        for stream in (first.stderr, first.wait, first.kill, first.stdin):
            self.addCleanup(stream if callable(stream) else stream.close)
        self.assertIn("connected to", first.stderr.readline())
        status, _, log = self.send(listener, "--messages", "1")
        self.assertNotEqual(status, 0, log)
        self.assertRegex(log, "rejected")
        self.end(listener)

    def test_a_file_is_sent_to_its_end(self):
        path = self.path("lines", "x" * 50 + "\n" + "y\n" * 10000)
        listener = self.listener()
        with open(path) as file:
            done = subprocess.run([PROGRAM, "send", listener.address()], stdin=file,
                                  capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.end(listener)[1]["messages"], 10001)

    def test_a_read_error_is_reported_and_earlier_data_arrives(self):
        long_line = self.path("long", "x\n" * 3 + "a" * (17 << 20))
        listener = self.listener()
        for place, flaw, messages in ((self.folder.name, "Is a directory", 0), (long_line, "more than 16 MiB", 3)):
            with self.subTest(flaw=flaw):
                descriptor = os.open(place, os.O_RDONLY)
                self.addCleanup(os.close, descriptor)
                status, report, log = self.start("send", listener.address(), stdin=descriptor).end()
                self.assertEqual((status, report["messages"], report["end"]), (1, messages, "closed in order"), log)
                self.assertRegex(log, f"standard input: .*{flaw}")
        self.assertEqual(self.end(listener)[1]["messages"], 3)

    def test_a_missing_listener_is_reported(self):
        done = subprocess.run([PROGRAM, "send", "127.0.0.1:1"], input="x\n", capture_output=True,
                              text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("refused", done.stderr)

    def test_it_waits_for_its_listener_and_comes_back_to_the_next(self):
        first = self.listener()
        address = first.address()
        self.end(first)
        sender = self.start("send", address, "--reconnect", stdin=subprocess.PIPE)
        lines = sender.process.stdin
        self.addCleanup(lines.close)
        sender.wait_for("waiting for " + address)
        for which in (1, 2):
            listener = self.start("listen", address, "--allow-remote-anonymous", "--messages", 1)
            sender.wait_for("connected to " + address, which)
            lines.write("x" * which + "\n")
            lines.flush()
            status, report, log = listener.end()
            self.assertEqual((status, report["messages"], report["bytes"]), (0, 1, which), log)
            sender.wait_for("waiting for " + address, which + 1)
        lines.close()  # nothing is left to wait for
        status, report, log = sender.end()
        self.assertEqual((report["messages"], report["bytes"]), (2, 3), log)
        self.assertEqual(status, 0 if report["unconfirmed_frames"] == 0 else 5, log)

    def test_it_ends_with_its_listener_if_it_is_not_to_come_back(self):
        listener = self.listener()
        sender = self.start("send", listener.address(), stdin=subprocess.PIPE)
        self.addCleanup(sender.process.stdin.close)
        sender.wait_for("connected to")
        listener.wait_for("is connected")  # only a known sender ends in order
        self.end(listener)
        self.assertEqual(sender.end()[1]["end"], "closed in order")

    def test_its_input_may_end_while_its_listener_does(self):
        listener = self.listener()
        way = Way(listener.address())
        self.addCleanup(way.close)
        sender = self.start("send", way.address, stdin=subprocess.PIPE)
        sender.wait_for("connected to")
        listener.wait_for("is connected")
        way.hold()
        listener.process.send_signal(signal.SIGINT)
        way.wait_for_answer()  # the sender knows that the listener is ending, not that it ended
        sender.process.stdin.close()
        with self.assertRaises(subprocess.TimeoutExpired):
            sender.process.wait(1)
        way.release()
        status, report, log = sender.end()
        self.assertEqual((status, report["end"]), (0, "closed in order"), log)
        self.assertEqual(listener.end()[0], 4)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
