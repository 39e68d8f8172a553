# SPDX-License-Identifier: Apache-2.0
"""netio pump and netio cat as their users see them.

pump_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import contextlib
import csv
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

from program_case import (DEADLINE, HOST, PROGRAM, PROVIDER, UNITTEST_ARGUMENTS, Case, share_of)

STUDY = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "study.py")


class Pumping(Case):
    def pump(self, client=(), server=()):
        """(status, the client's report, which contains the server's)."""
        serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once", *server)
        pump = self.start("pump", serving.address(), *client)
        status, report, log = pump.end()
        server_status, server_report, server_log = serving.end()
        self.assertEqual((status, server_status), (0, 0), log + server_log)
        self.assertEqual((report["provider"], server_report["error"]), (PROVIDER, ""))
        return report

    def test_every_byte_is_checked_in_every_mode(self):
        sizes = ("--bytes", "40m", "--size-min", "1", "--size", "200k", "--verify")
        for mode in ("dynamic", "direct", "indirect"):
            report = self.pump((*sizes, "--mode", mode), ("--mode", mode))
            self.assertEqual(report["server"]["bytes"], 40 << 20)
            self.assertTrue(report["server"]["verified"])
            if mode != "dynamic":
                self.assertEqual(report["direct_share_sent"] > 0.99, mode == "direct")
        report = self.pump((*sizes, "--policy", "published", "--notify", "frames"),
                           ("--policy", "published", "--ring", "33333", "--wait-all",
                            "--receive-size-min", "1", "--receive-size", "70k"))
        self.assertEqual(report["server"]["bytes"], 40 << 20)

    def test_a_ring_grows_only_as_far_as_it_may(self):
        sizes = ("--bytes", "40m", "--size", "100k", "--mode", "indirect", "--verify")
        server = ("--mode", "indirect", "--ring", "10000")
        report = self.pump(sizes, server)
        self.assertEqual(report["sent"]["ring_bytes"], 10000)
        self.assertEqual(report["server"]["received"]["ring_growths"], 0)
        report = self.pump(sizes, (*server, "--ring-limit", "300k"))
        self.assertGreaterEqual(report["sent"]["ring_bytes"], 10000)
        self.assertLessEqual(report["sent"]["ring_bytes"], 300 << 10)
        status, _, log = self.start("pump", "127.0.0.1:1", "--policy", "published",
                                    "--ring-limit", "300k").end()
        self.assertNotEqual(status, 0)
        self.assertIn("--ring-limit", log)

    def test_a_server_without_memory_says_so_to_its_client(self):
        for both_ways in ((), ("--bidirectional",)):
            serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once",
                                 "--receive-size", "8t")  # 32 of them exceed the address space
            status, _, log = self.start("pump", serving.address(), "--bytes", "100m", *both_ways).end()
            self.assertEqual(status, 1, log)
            if not both_ways:  # otherwise the client expects bytes, and no report before them
                self.assertIn("the server reports no memory for", log)
            status, report, log = serving.end()
            self.assertEqual(status, 1, log)
            self.assertIn("no memory for", report["error"])

    def test_both_directions_at_once(self):
        report = self.pump(("--bytes", "30m", "--size", "50k", "--verify", "--bidirectional"))
        self.assertEqual(report["bytes"], 30 << 20)
        self.assertEqual(report["server"]["bytes"], 30 << 20)

    def test_nothing_is_pumped_as_well(self):
        for way in ((), ("--bidirectional",)):
            self.assertEqual(self.pump(("--bytes", "0", *way))["server"]["bytes"], 0)

    def test_a_receiver_that_is_stopped_and_continued_loses_nothing(self):
        serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once")
        mib = share_of(300, 20)
        pump = self.start("pump", serving.address(), "--bytes", f"{mib}m", "--verify",
                          "--size-min", "1", "--size", "100k")
        done = threading.Event()

        def stop_and_go():
            chance = random.Random(1)
            while not done.wait(chance.uniform(0.0, 0.02)):
                serving.process.send_signal(signal.SIGSTOP)
                done.wait(chance.uniform(0.0, 0.02))
                serving.process.send_signal(signal.SIGCONT)

        stopper = threading.Thread(target=stop_and_go)
        stopper.start()
        status, report, log = pump.end()
        done.set()
        stopper.join()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["server"]["bytes"], mib << 20)
        self.assertEqual(serving.end()[0], 0)

    def test_the_death_of_either_side_is_reported_by_the_other(self):
        for victim in ("client", "server"):
            serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once")
            pump = self.start("pump", serving.address(), "--bytes", "1000g", "--progress")
            pump.wait_for("Gb/s")
            (pump if victim == "client" else serving).process.kill()
            status, report, log = (serving if victim == "client" else pump).end()
            self.assertEqual(status, 1, log)
            self.assertRegex(log, re.escape(HOST))
            self.assertNotEqual(report["error"], "")

    def test_a_report_names_the_interrupted_side(self):
        for once, interrupted in ((True, "client"), (True, "server"), (False, "server")):
            with self.subTest(once=once, interrupted=interrupted):
                serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", *(["--once"] if once else []))
                pump = self.start("pump", serving.address(), "--bytes", "1000g", "--progress")
                pump.wait_for("Gb/s")
                (pump if interrupted == "client" else serving).process.send_signal(signal.SIGHUP)
                ends = {"client": pump.end(), "server": serving.end()}
                self.assertEqual((ends["client"][0], ends["server"][0]), (1, 1 if once else 0), ends)
                for name, (_, report, log) in ends.items():
                    self.assertGreater(report["seconds"], 0, log)
                    self.assertGreater(report["bytes"], 0, log)
                    self.assertEqual(report["error"] == "interrupted", name == interrupted, log)
        serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once")
        serving.address()
        serving.process.send_signal(signal.SIGTERM)
        status, _, log = serving.end()
        self.assertEqual(status, 1, log)
        self.assertIn("interrupted before a client has connected", log)

    def test_a_server_serves_several_peers_also_after_a_bad_one(self):
        serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        host, port = serving.address().split(":")
        with contextlib.ExitStack() as strangers:
            if PROVIDER == "tcp":
                stranger = strangers.enter_context(socket.create_connection((host, int(port))))
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            pumps = [self.start("pump", f"{host}:{port}", "--bytes", "20m", "--verify")
                     for _ in range(3)]
            for pump in pumps:
                status, _, log = pump.end()
                self.assertEqual(status, 0, log)
        serving.process.send_signal(signal.SIGTERM)
        self.assertEqual(serving.end()[0], 0)

    def test_a_client_that_fails_does_not_decide_how_its_server_ends(self):
        serving = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        client = self.start("pump", serving.address(), "--bytes", "1000g", "--progress")
        client.wait_for("Gb/s")
        client.process.kill()
        client.process.wait(DEADLINE)
        status, _, log = self.start("pump", serving.address(), "--bytes", "1m").end()
        self.assertEqual(status, 0, log)
        serving.process.send_signal(signal.SIGTERM)
        self.assertEqual(serving.end()[0], 0)

    def test_what_cannot_work_is_refused(self):
        for expected, arguments, said in ((2, (), "needs the server"),
                                          (1, ("127.0.0.1:1",), "refused"),
                                          (2, ("127.0.0.1",), "HOST:PORT"),
                                          (2, ("127.0.0.1:0",), "port 0"),
                                          (2, ("127.0.0.1:1", "--size-min", "100k"),
                                           "--size-min is 102400; it must not exceed --size, which is 65536"),
                                          (2, ("127.0.0.1:1", "--receive-size", "1", "--receive-size-min", "2"),
                                           "--receive-size-min is 2; it must not exceed --receive-size, which is 1"),
                                          (1, ("--serve", "--listen", "192.0.2.1:1", "--allow-remote-anonymous"), "192.0.2.1")):
            status, _, log = self.start("pump", *arguments).end()
            self.assertEqual(status, expected, arguments)
            self.assertIn(said, log)


class Studying(Case):
    def test_the_study_writes_its_table_and_its_plots(self):
        folder = self.path("study")
        process = subprocess.run([sys.executable, "-B", STUDY, PROGRAM, folder, "--bytes", "1000000",
                                  "--experiments", "fixed", "--sends", "8,32",
                                  "--repetitions", "1"],
                                 capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        with open(os.path.join(folder, "study.csv")) as file:
            rows = list(csv.DictReader(file))
        measured = [row for row in rows if row["link"] == "measured"]
        self.assertEqual(len(measured), 4 * 2)
        self.assertIn("as promised", process.stdout)
        for row in measured:
            self.assertGreater(float(row["gbit_per_s"]), 0)
            if row["subject"] in ("direct", "indirect"):
                self.assertEqual(float(row["direct_share"]) > 0.5, row["subject"] == "direct")
        if shutil.which("gnuplot"):
            self.assertTrue(os.path.exists(os.path.join(folder, "measured.svg")))
        else:
            self.assertIn("install gnuplot", process.stderr)


class Chatting(Case):
    def cat(self, *arguments, stdin):
        command = [PROGRAM, "cat", *arguments]
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def test_what_goes_in_comes_out_both_ways_at_once(self):
        """From files and from pipes, with more data than all the buffers between hold."""
        there, back = (random.Random(seed).randbytes(6_000_000) for seed in (1, 2))
        for through_pipes in (False, True):
            with open(self.path("there", there), "rb") as one, \
                    open(self.path("back", back), "rb") as two:
                listening = self.cat("--listen", f"{HOST}:0", "--allow-remote-anonymous",
                                     stdin=subprocess.PIPE if through_pipes else one)
                address = re.search(r"listening at (\S+)",
                                    listening.stderr.readline().decode()).group(1)
                connecting = self.cat(address, stdin=subprocess.PIPE if through_pipes else two)
                outputs = {}
                threads = [threading.Thread(target=lambda p=process, i=data: outputs.update(
                    {p: p.communicate(i if through_pipes else None, timeout=DEADLINE)[0]}))
                    for process, data in ((listening, there), (connecting, back))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(outputs[connecting], there)
                self.assertEqual(outputs[listening], back)
                self.assertEqual((listening.returncode, connecting.returncode), (0, 0))

    def test_without_standard_input_an_end_is_sent_at_once(self):
        """The connection would get its free descriptor and would be read as standard input."""
        listening, address = self.listening(stdin=subprocess.DEVNULL)
        connecting = subprocess.run(["sh", "-c", 'exec "$0" cat "$1" <&-', PROGRAM, address],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    timeout=DEADLINE)
        self.assertEqual((connecting.returncode, connecting.stdout), (0, b""), connecting.stderr)
        out, log = listening.communicate(timeout=DEADLINE)
        self.assertEqual((listening.returncode, out), (0, b""), log)

    def listening(self, **options):
        process = self.cat("--listen", f"{HOST}:0", "--allow-remote-anonymous", **options)
        line = process.stderr.readline().decode()
        return process, re.search(r"listening at (\S+)", line).group(1)

    def test_nothing_is_held_back_while_the_producer_is_silent(self):
        data = random.Random(3).randbytes(3_000_000)
        reader, address = self.listening(stdin=subprocess.DEVNULL)
        writer = self.cat(address, stdin=subprocess.PIPE)
        writing = threading.Thread(target=lambda: (writer.stdin.write(data), writer.stdin.flush()))
        writing.start()
        self.assertEqual(reader.stdout.read(len(data)), data)  # while the input stays open
        writing.join()
        writer.stdin.close()
        self.assertEqual((writer.wait(DEADLINE), reader.wait(DEADLINE)), (0, 0))

    def test_a_silent_producer_notices_that_its_peer_has_died(self):
        reader, address = self.listening(stdin=subprocess.DEVNULL)
        writer = self.cat(address, stdin=subprocess.PIPE)
        writer.stdin.write(b"line\n")
        writer.stdin.flush()
        self.assertEqual(reader.stdout.readline(), b"line\n")
        reader.kill()
        self.assertEqual(writer.wait(DEADLINE), 1)

    def test_a_silence_longer_than_the_timeout_is_an_error(self):
        _, address = self.listening(stdin=subprocess.DEVNULL)
        writer = self.cat("--timeout", "200ms", address, stdin=subprocess.PIPE)
        self.assertEqual(writer.wait(DEADLINE), 1)
        self.assertIn(b"no byte was transferred for 200 ms", writer.stderr.read())

    def test_an_input_that_does_not_block_is_read_as_any_other(self):
        reader, address = self.listening(stdin=subprocess.DEVNULL)
        out, into = os.pipe()
        os.set_blocking(out, False)
        writer = self.cat(address, stdin=out)
        os.close(out)
        for line in (b"one\n", b"two\n"):
            os.write(into, line)
            self.assertEqual(reader.stdout.readline(), line)
        os.close(into)
        self.assertEqual((writer.wait(DEADLINE), reader.wait(DEADLINE)), (0, 0))

    def test_a_listener_for_one_peer_refuses_the_next(self):
        reader, address = self.listening(stdin=subprocess.DEVNULL)
        first = self.cat(address, stdin=subprocess.PIPE)
        first.stdin.write(b"line\n")
        first.stdin.flush()
        self.assertEqual(reader.stdout.readline(), b"line\n")
        second = self.cat(address, stdin=subprocess.PIPE)
        self.assertEqual(second.wait(DEADLINE), 1)
        first.stdin.close()
        self.assertEqual((first.wait(DEADLINE), reader.wait(DEADLINE)), (0, 0))

    def test_a_missing_listener_is_an_error(self):
        process = self.cat("127.0.0.1:1", stdin=subprocess.DEVNULL)
        _, log = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"127.0.0.1:1", log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
