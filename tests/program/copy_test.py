# SPDX-License-Identifier: Apache-2.0
"""netio copy as its users see it: processes, exit status, JSON, files.

copy_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import re
import resource
import signal
import socket
import unittest

from program_case import HOST, PROVIDER, UNITTEST_ARGUMENTS, Case

MIB = 1 << 20


class CopyCase(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("served"))

    def serve(self, *arguments):
        server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous",
                            *arguments)
        return server, server.address()

    def copy(self, address, *arguments):
        return self.start("copy", *arguments, address).end()

    def content(self, path):
        with open(path, "rb") as file:
            return file.read()

    def check_same(self, *names):
        for name in names:
            self.assertTrue(self.content(self.path(name)) == self.content(
                self.path("served/" + os.path.basename(name))), name)

    def large_file(self, mib):
        piece = os.urandom(MIB)
        with open(self.path("large"), "wb") as file:
            for i in range(mib):
                file.write(piece[i:] + piece[:i])
        return self.path("large")

    PART = "served/.large.netio-part"

    def wait_for_part(self, process):
        """Waits until a part of it exists; returns False if the copy was complete first."""
        while process.process.poll() is None and not os.path.exists(self.path("served/large")):
            try:
                if os.stat(self.path(self.PART)).st_size > 8 * MIB:
                    return True
            except FileNotFoundError:
                pass
        return False


class Copying(CopyCase):
    def test_files_arrive_as_they_are(self):
        server, address = self.serve()
        names = {"empty": 0, "one": 1, "chunk": MIB, "some": 3 * MIB + 17, "more": 40 * MIB}
        paths = [self.path(name, os.urandom(size)) for name, size in names.items()]
        os.chmod(paths[1], 0o640)
        os.utime(paths[1], (1, 1234567890))
        status, report, log = self.copy(address, *paths)
        self.assertEqual(status, 0, log)
        self.assertEqual((report["role"], report["end"], report["provider"]),
                         ("copy", "finished", PROVIDER))
        self.assertEqual(report["bytes"], sum(names.values()))
        self.assertEqual([file["outcome"] for file in report["files"]], ["copied"] * len(names))
        self.check_same(*names)
        found = os.stat(self.path("served/one"))
        self.assertEqual((found.st_mode & 0o777, found.st_mtime), (0o640, 1234567890))
        self.assertEqual(sorted(os.listdir(self.path("served"))), sorted(names))
        # Copied again: all files exist, so nothing is transferred and there is no error.
        status, report, log = self.copy(address, *paths)
        self.assertEqual((status, report["bytes"]), (0, 0), log)
        self.assertEqual([file["outcome"] for file in report["files"]], ["present"] * len(names))
        server.process.send_signal(signal.SIGINT)
        status, report, log = server.end()
        self.assertEqual((status, report["files"], report["failures"]), (0, len(names), 0), log)

    def test_the_checksum_is_that_of_other_tools(self):
        import hashlib
        _, address = self.serve()
        content = os.urandom(2 * MIB + 1)
        status, report, log = self.copy(address, "--sha256", self.path("a", content))
        self.assertEqual(status, 0, log)
        self.assertEqual(report["checksum"], "sha256")
        self.assertEqual(report["files"][0]["checksum"], hashlib.sha256(content).hexdigest())

    def test_into_a_folder_beneath(self):
        _, address = self.serve()
        os.mkdir(self.path("served/inner"))
        path = self.path("a", "content")
        self.assertEqual(self.copy(address + "/inner/", path)[0], 0)
        self.assertEqual(self.content(self.path("served/inner/a")), b"content")
        status, report, log = self.copy(address + "/nowhere", path)
        self.assertEqual(status, 1, log)
        self.assertIn("cannot open the folder nowhere", report["files"][0]["detail"])

    def test_several_clients_at_once(self):
        server, address = self.serve()
        paths = [self.path(f"file{i}", os.urandom(12 * MIB + i)) for i in range(4)]
        clients = [self.start("copy", path, address) for path in paths]
        for client in clients:
            status, _, log = client.end()
            self.assertEqual(status, 0, log)
        self.check_same(*(f"file{i}" for i in range(4)))

    def test_a_sparse_terabyte_takes_neither_network_nor_disk(self):
        _, address = self.serve()
        path = self.path("sparse", b"begin")
        os.truncate(path, 1 << 40)
        status, report, log = self.copy(address, path)
        self.assertEqual(status, 0, log)
        self.assertLess(report["bytes"], MIB)
        copied = os.stat(self.path("served/sparse"))
        self.assertEqual(copied.st_size, 1 << 40)
        self.assertLess(copied.st_blocks * 512, MIB)

    def test_dates_beyond_2262_and_before_1901_are_kept(self):
        _, address = self.serve()
        for date in (9223372037, 10413792000, -2208988800):
            path = self.path(f"dated{date}", b"x")
            os.utime(path, (date, date))
            if os.stat(path).st_mtime != date:
                continue  # the file system does not support this date
            status, _, log = self.copy(address, path)
            self.assertEqual(status, 0, log)
            self.assertEqual(os.stat(self.path(f"served/dated{date}")).st_mtime, date)

    def test_more_senders_than_places_are_served_one_after_the_other(self):
        _, address = self.serve("--senders", 4)
        paths = [self.path(f"file{i}", os.urandom(MIB)) for i in range(20)]
        for sender in [self.start("copy", path, address) for path in paths]:
            status, _, log = sender.end()
            self.assertEqual(status, 0, log)
        self.check_same(*(f"file{i}" for i in range(20)))

    def test_progress_is_shown(self):
        _, address = self.serve()
        status, _, log = self.copy(address, "--progress", self.large_file(64))
        self.assertEqual(status, 0, log)
        self.assertRegex(log, r"large: 67108864 bytes, xxh3-128 [0-9a-f]{32}")


class Interrupting(CopyCase):
    SIZE = 192

    def interrupt(self, stop):
        """Runs copies until stop(server, client) interrupts one in the middle."""
        path = self.large_file(self.SIZE)
        for _ in range(10):
            server, address = self.serve()
            client = self.start("copy", path, address)
            caught = self.wait_for_part(client)
            stop(server, client)
            outcome = client.end()
            if caught and not os.path.exists(self.path("served/large")):
                return path, server, address, outcome
            os.remove(self.path("served/large"))
        self.fail("every copy was done before it could be interrupted")

    def check_goes_on(self, path, address):
        self.assertEqual(os.listdir(self.path("served")), [os.path.basename(self.PART)])
        status, report, log = self.copy(address, path)
        self.assertEqual(status, 0, log)
        self.assertGreater(report["files"][0]["resumed_bytes"], 0)
        self.assertEqual(report["bytes"] + report["files"][0]["resumed_bytes"], self.SIZE * MIB)
        self.check_same("large")
        self.assertEqual(os.listdir(self.path("served")), ["large"])

    def test_a_killed_client_goes_on_where_it_was(self):
        path, server, address, _ = self.interrupt(lambda _, client: client.process.kill())
        server.wait_for(r"large: the sender (disconnected|was lost); \d+ of \d+ bytes")
        self.check_goes_on(path, address)

    def test_a_killed_server_is_reported_and_another_continues(self):
        path, _, _, (status, report, log) = self.interrupt(
            lambda server, _: server.process.kill())
        self.assertEqual((status, report["end"]), (1, "failed"), log)
        self.assertTrue(report["detail"], log)
        self.check_goes_on(path, self.serve()[1])

    def test_ctrl_c_at_the_client(self):
        path, _, address, (status, report, log) = self.interrupt(
            lambda _, client: client.process.send_signal(signal.SIGINT))
        self.assertEqual((status, report["end"]), (1, "interrupted"), log)
        self.check_goes_on(path, address)

    def test_ctrl_c_at_the_server(self):
        path, server, _, (status, report, log) = self.interrupt(
            lambda server, _: server.process.send_signal(signal.SIGTERM))
        self.assertEqual((status, report["end"]), (1, "failed"), log)
        status, report, log = server.end()
        self.assertEqual((status, report["end"], report["failures"]), (0, "interrupted", 1), log)
        self.assertRegex(log, r"large: the sender was aborted; \d+ of \d+ bytes were received and are kept")
        self.check_goes_on(path, self.serve()[1])

    def test_a_full_disk_is_reported_on_both_sides(self):
        server, address = self.serve()
        limit = 20 * MIB  # per file; only the error's text differs from a full disk
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        path = self.large_file(40)
        small = self.path("small", "content")
        status, report, log = self.copy(address, path, small)
        self.assertEqual(status, 1, log)
        self.assertRegex(log, "failed at the server: .*large: File too large")
        self.assertRegex(server.wait_for(r"large: .*File too large").string, "cannot write large")
        self.assertEqual([file["outcome"] for file in report["files"]], ["failed", "copied"])
        self.assertEqual(sorted(os.listdir(self.path("served"))),
                         [os.path.basename(self.PART), "small"])
        # There is space again.
        status, report, log = self.copy(self.serve()[1], path)
        self.assertEqual(status, 0, log)
        self.assertEqual(report["files"][0]["resumed_bytes"], limit)
        self.check_same("large")


class RefusingCopies(CopyCase):
    def refused(self, *arguments, saying):
        process = self.start("copy", *arguments)
        status, report, log = process.end()
        self.assertNotEqual(status, 0)
        self.assertRegex(log, saying)
        return report

    def test_a_file_is_replaced_only_on_request(self):
        _, address = self.serve()
        path = self.path("a", "new content")
        self.path("served/a", "old")
        report = self.refused(path, address, saying="a already exists there.*--overwrite")
        self.assertEqual(report["files"][0]["outcome"], "failed")
        self.assertEqual(self.content(self.path("served/a")), b"old")
        self.path("served/a", "NEW CONTENT")
        self.refused(path, address, saying="a already exists there.*--overwrite")
        self.assertEqual(self.copy(address, "--overwrite", path)[0], 0)
        self.check_same("a")

    def test_errors_are_refused_with_the_place_and_the_reason(self):
        _, address = self.serve()
        path = self.path("a", "content")
        self.refused(path, saying=r"netio copy FILE\.\.\. HOST:PORT")
        self.refused(path, "nonsense", saying="HOST:PORT")
        self.refused(path, address + "/../up", saying=r"'\.\./up/a', has a component")
        self.refused(path, path, address, saying="another of these files is also called a")
        self.refused("--serve", self.path("nowhere"), saying=re.escape(self.path("nowhere")))
        self.refused("--serve", self.path("served"), path, saying="--serve takes no files")
        self.refused(path, "127.0.0.1:1", saying=r"127\.0\.0\.1:1")
        self.refused(path, "no.such.host.invalid:1", saying=r"no\.such\.host\.invalid")
        self.refused(self.folder.name, address, saying="not a regular file")

    def test_an_impossible_name_does_not_keep_the_others(self):
        _, address = self.serve()
        report = self.refused(self.path("a\tb", "content"), self.path("a", "content"), address,
                              saying="its name at the server, 'a..b', has a control character")
        self.assertEqual([file["outcome"] for file in report["files"]], ["failed", "copied"])

    def test_a_file_whose_size_is_not_its_length_is_not_copied(self):
        server, address = self.serve()
        report = self.refused("/proc/self/status", address, saying="more bytes than its size of 0")
        self.assertEqual(report["files"][0]["outcome"], "failed")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.end()[0], 0)
        self.assertEqual(os.listdir(self.path("served")), [])

    def test_a_file_that_is_not_there_does_not_keep_the_others(self):
        _, address = self.serve()
        report = self.refused(self.path("missing"), self.path("a", "content"), address,
                              saying="cannot read .*missing: No such file")
        self.assertEqual([file["outcome"] for file in report["files"]], ["failed", "copied"])

    def test_a_file_that_is_not_there_is_reported_before_the_server(self):
        with socket.create_server((HOST, 0)) as silent:
            address = f"{HOST}:{silent.getsockname()[1]}"
            report = self.refused(self.path("missing"), self.folder.name, address,
                                  saying="cannot read .*missing: No such file")
        self.assertEqual([file["outcome"] for file in report["files"]], ["failed", "failed"])
        self.assertIn("is not a regular file", report["files"][1]["detail"])
        self.assertEqual((report["end"], report["detail"], report["provider"]), ("failed", "", ""))

    def test_files_whose_turn_never_came_are_counted(self):
        server, address = self.serve()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.end()[0], 0)
        paths = [self.path(name, "content") for name in ("a", "b", "c")]
        status, report, log = self.copy(address, *paths)
        self.assertEqual((status, report["end"]), (1, "failed"), log)
        self.assertEqual([(file["path"], file["outcome"]) for file in report["files"]],
                         [(path, "failed") for path in paths])
        text = self.start("copy", *paths, address, json_report=False).process.stdout.read()
        self.assertIn(": failed, 0 of 3 files copied, 3 failed,", text)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
