# SPDX-License-Identifier: Apache-2.0
"""netio request and netio respond: replies, failures, limits, and their ends.

request_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

PIPE = subprocess.PIPE


class RequestCase(Case):
    def respond(self, *command, options=()):
        """(process, address)"""
        process = self.start("respond", "--listen", f"{HOST}:0", *options, "--", *command,
                             json_report=False)
        return process, process.address()

    def request(self, address, *options, data=b""):
        """(exit status, standard output, standard error)"""
        run = subprocess.run([PROGRAM, "request", address, *options], input=data,
                             capture_output=True, timeout=2 * DEADLINE)
        return run.returncode, run.stdout, run.stderr.decode()

    def asking(self, address, *options):
        process = subprocess.Popen([PROGRAM, "request", address, "--data", "a", *options],
                                   stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition):
        end = time.monotonic() + DEADLINE
        pause = threading.Event()
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            pause.wait(0.01)

    @staticmethod
    def is_alive(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False


class Requesting(RequestCase):
    def test_the_output_of_the_command_is_the_reply(self):
        _, address = self.respond("cat")
        self.assertEqual(self.request(address, data=b"one\ntwo")[:2], (0, b"one\ntwo"))
        self.assertEqual(self.request(address, "--data", "text")[:2], (0, b"text"))
        self.assertEqual(self.request(address)[:2], (0, b""))
        large = os.urandom(5_000_000)
        self.assertEqual(self.request(address, data=large)[:2], (0, large))

    def test_no_shell_sees_the_words_of_the_command(self):
        _, address = self.respond("printf", "%s|", "$HOME; true", "-n", "*")
        self.assertEqual(self.request(address)[:2], (0, b"$HOME; true|-n|*|"))

    def test_a_command_that_fails_is_named_with_its_status(self):
        _, address = self.respond("sh", "-c", "cat >&2; echo part; exit 7")
        status, out, error = self.request(address, data=b"x")
        self.assertEqual((status, out), (1, b""))
        self.assertIn("sh has failed with exit status 7", error)
        _, address = self.respond("sh", "-c", "kill -SEGV $$")
        self.assertIn("signal 11 (SIGSEGV)", self.request(address)[2])
        _, address = self.respond("/no/such/command")
        status, _, error = self.request(address)
        self.assertEqual(status, 1)
        self.assertIn("cannot start /no/such/command: No such file", error)

    def test_a_command_need_not_read_its_input(self):
        _, address = self.respond("echo", "done")
        self.assertEqual(self.request(address, data=bytes(1_000_000))[:2], (0, b"done\n"))

    def test_ignored_ends_of_children_are_not_inherited(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            _, address = self.respond("cat", options=("--time-limit", "5s"))
        finally:
            signal.signal(signal.SIGCHLD, before)
        self.assertEqual(self.request(address, data=b"a")[:2], (0, b"a"))

    def test_lines_of_the_library_go_to_the_log_of_the_program(self):
        log = self.path("log")
        status, _, error = self.request(f"{HOST}:1", "--timeout", "300ms", "--log-file", log)
        self.assertEqual((status, error), (3, ""))
        with open(log, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^\d{4}-.* warning responder .*; trying again$")

    def test_a_responder_that_is_silent_is_said_to_be_so(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            status, _, error = self.request(address, "--timeout", "500ms", "--provider", "tcp")
        self.assertEqual(status, 3, error)
        self.assertIn("there is no answer yet to the attempt to connect", error)

    def test_without_a_responder_or_a_reply_the_time_out_ends_it(self):
        status, _, error = self.request(f"{HOST}:1", "--timeout", "300ms")
        self.assertEqual(status, 3, error)
        self.assertIn("not connected", error)
        _, address = self.respond("sleep", "1000")
        status, _, error = self.request(address, "--timeout", "1s")
        self.assertEqual(status, 4, error)

    def test_a_terminal_or_pipe_without_input_blocks_no_signal(self):
        _, address = self.respond("cat")
        process = subprocess.Popen([PROGRAM, "request", address], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        process.stdin.write(b"the beginning of a request")
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)  # before its handler or after
        self.assertIn(process.wait(timeout=DEADLINE), (1, -signal.SIGTERM))

    def test_wrong_words_are_refused(self):
        for words in (["request"], ["request", HOST], ["respond"], ["respond", "--concurrency", "0", "--", "x"]):
            run = subprocess.run([PROGRAM, *words], capture_output=True, stdin=subprocess.DEVNULL,
                                 timeout=DEADLINE)
            self.assertEqual(run.returncode, 2, (words, run.stderr))

    def test_addresses_of_other_machines_need_keys(self):
        run = subprocess.run([PROGRAM, "respond", "--listen", "0.0.0.0:0", "--", "cat"],
                             capture_output=True, timeout=DEADLINE)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"--keys FILE", run.stderr)
        keys = self.path("keys", "netio-keys 1\n0 anyone - services=all\nend\n")
        os.chmod(keys, 0o600)
        run = subprocess.run([PROGRAM, "respond", "--listen", "0.0.0.0:0", "--keys", keys, "--", "cat"],
                             capture_output=True, timeout=DEADLINE)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"remove the line `0 anyone`", run.stderr)


class Limiting(RequestCase):
    def test_the_time_limit_kills_the_process_group(self):
        pids = self.path("pids")
        script = f"sleep 1000 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
        _, address = self.respond("sh", "-c", script, options=("--time-limit", "1s"))
        status, _, error = self.request(address)
        self.assertEqual(status, 1)
        self.assertIn("(--time-limit)", error)
        with open(pids, encoding="ascii") as file:
            for pid in file.read().split():
                self.wait_until(lambda pid=pid: not self.is_alive(pid))

    def test_a_process_that_keeps_the_output_open_is_named_as_the_reason(self):
        _, address = self.respond("sh", "-c", "sleep 1000 & echo done", options=("--time-limit", "1s"))
        status, _, error = self.request(address)
        self.assertEqual(status, 1)
        self.assertRegex(error, r"sh has ended, but within 1000 ms \(--time-limit\) a process that it started")

    def test_a_reply_beyond_its_limit_is_refused(self):
        _, address = self.respond("yes", options=("--reply-limit", "100000"))
        status, out, error = self.request(address)
        self.assertEqual((status, out), (1, b""))
        self.assertIn("exceeds 100000 bytes (--reply-limit)", error)

    def test_few_commands_run_at_once_and_the_others_wait(self):
        folder, counts, go = self.path("running"), self.path("counts"), self.path("go")
        os.mkdir(folder)
        script = (f"mkdir {folder}/$$; ls {folder} | wc -l >> {counts}; while test ! -e {go}; do sleep 0.05; done; "
                  f"rmdir {folder}/$$; echo done")
        _, address = self.respond("sh", "-c", script, options=("--concurrency", "2"))
        asking = [self.asking(address) for _ in range(5)]
        self.wait_until(lambda: len(os.listdir(folder)) == 2)
        self.path("go", "")
        for process in asking:
            self.assertEqual(process.stdout.read(), b"done\n")
            self.assertEqual(process.wait(timeout=DEADLINE), 0)
        with open(counts, encoding="ascii") as file:
            self.assertLessEqual(max(map(int, file.read().split())), 2)

    def test_a_requester_that_is_gone_has_its_command_killed(self):
        pid_file = self.path("pid")
        _, address = self.respond("sh", "-c", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 1000")
        process = self.asking(address)
        self.wait_until(lambda: os.path.exists(pid_file))
        process.kill()
        with open(pid_file, encoding="ascii") as file:
            pid = file.read().strip()
        self.wait_until(lambda: not self.is_alive(pid))


class KillingResponders(RequestCase):
    @staticmethod
    def kill_commands(folder):
        for pid in os.listdir(folder):
            os.kill(int(pid), signal.SIGKILL)

    def test_each_request_ends_once_when_the_responder_is_killed(self):
        started = self.path("started")
        os.mkdir(started)
        responder, address = self.respond("sh", "-c", f"touch {started}/$$; exec sleep 1000",
                                          options=("--concurrency", "6"))
        asking = [self.asking(address, "--timeout", "1h") for _ in range(6)]
        self.wait_until(lambda: len(os.listdir(started)) == 6)
        responder.process.send_signal(signal.SIGKILL)
        self.addCleanup(self.kill_commands, started)
        for process in asking:
            error = process.stderr.read().decode()
            self.assertEqual(process.wait(timeout=DEADLINE), 1, error)
            self.assertEqual(len(re.findall("disconnected", error)), 1, error)

    def test_a_signal_ends_the_responder_in_order(self):
        pid_file = self.path("pid")
        responder, address = self.respond("sh", "-c", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 1000")
        process = self.asking(address, "--timeout", "1h")
        self.wait_until(lambda: os.path.exists(pid_file))
        responder.process.send_signal(signal.SIGTERM)
        self.assertIn("the responder has ended", process.stderr.read().decode())
        self.assertEqual(process.wait(timeout=DEADLINE), 1)
        status, _, _ = responder.end()
        self.assertEqual(status, 0)
        with open(pid_file, encoding="ascii") as file:
            pid = file.read().strip()
        self.wait_until(lambda: not self.is_alive(pid))


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
