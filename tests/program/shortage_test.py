# SPDX-License-Identifier: Apache-2.0
"""The messages and the behaviour of netio when resources for another peer are missing.

shortage_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import resource
import unittest

from program_case import UNITTEST_ARGUMENTS, Case, HOST

REASON = "it lacks the memory or the descriptors for another peer"


class Shortage(Case):
    def limit(self, process, more):
        """From now on the program may open this many more descriptors; None: the former limit."""
        pid = process.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        lowest_free = min(set(range(len(taken) + 1)) - taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE,
                         (hard if more is None else lowest_free + more, hard))

    def test_a_publisher_warns_and_its_subscriber_waits(self):
        publisher = self.start("publish", self.config(self.PATTERN), "--messages", 6400)
        address = publisher.address()
        self.limit(publisher, 20)
        subscriber = self.start("subscribe", address, "--fid", "1", "--verify")
        subscriber.wait_for(f"waiting for the publisher: .*{REASON}")
        publisher.wait_for(rf"warn\w* {HOST}:\d+ is rejected: no descriptors .*ulimit -n")
        self.limit(publisher, None)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"], report["lost"]), (0, 100, 0), log)
        self.assertEqual(publisher.end()[0], 0)

    def check_turned_away(self, server, *client):
        address = server.address()
        self.limit(server, 20)
        status, _, log = self.start(*client, address).end()
        self.assertEqual(status, 1, log)
        self.assertIn(REASON, log)
        server.wait_for(rf"warn\w* {HOST}:\d+ is rejected: no descriptors .*ulimit -n")
        self.limit(server, None)
        status, _, log = self.start(*client, address).end()
        self.assertEqual(status, 0, log)

    def test_a_copy_server_warns_and_its_sender_reports_the_reason(self):
        os.mkdir(self.path("served"))
        self.check_turned_away(
            self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous"),
            "copy", "--retry-for", "0", self.path("file", "content"))

    def test_a_pump_warns_and_its_client_fails_with_the_reason(self):
        self.check_turned_away(self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous"),
                               "pump", "--bytes", "1m")

    def test_a_doctor_server_warns_and_its_client_reports_the_reason(self):
        server = self.start("doctor", "--serve", f"{HOST}:0", "--allow-remote-anonymous")
        address = server.address()
        self.limit(server, 20)
        _, report, log = self.start("doctor", address).end()
        self.assertIn(REASON, report["path"]["failure"], log)
        server.wait_for(rf"warn\w* {HOST}:\d+ is rejected: no descriptors .*ulimit -n")


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
