# SPDX-License-Identifier: Apache-2.0
"""Every field of a JSON report is documented in docs/reports.md.

reports_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import json
import os
import re
import signal
import subprocess
import unittest

from program_case import CONFIG, DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

PAGE = os.path.join(CONFIG, "..", "docs", "reports.md")
EVERYWHERE = {"role", "report_version"}
MAPS = {"triggers", "fids", "parameters", "events", "properties"}  # with user-defined names


def documented():
    """The fields of each role."""
    with open(PAGE) as file:
        parts = re.split(r"^## (.*)$", file.read(), flags=re.M)
    fields = {}
    for title, text in zip(parts[1::2], parts[2::2]):
        for role in re.findall(r"`([^`]*)`", title):
            fields[role] = {field for row in re.findall(r"^\| (`.*?) \|", text, re.M)
                            for field in re.findall(r"`([^`]*)`", row)}
    return fields


def flat(value, path=""):
    if isinstance(value, list) and value:
        for each in value:
            yield from flat(each, path + "[]")
    elif isinstance(value, dict) and (value or not path):
        for key, each in value.items():
            name = "*" if path.split(".")[-1] in MAPS else key
            yield from flat(each, f"{path}.{name}" if path else name)
    elif path:
        yield path


def is_known(name, known):
    return (name in EVERYWHERE | known
            or any(each.startswith((name + "[", name + ".")) for each in known)  # empty
            or any(each.endswith((".*", "[]")) and name.startswith(each.rstrip("*")) for each in known))


class Reports(Case):
    def check(self, report, role):
        self.assertEqual((report["role"], report["report_version"]), (role, 1))
        known = documented()[role]
        for name in flat(report):
            self.assertTrue(is_known(name, known), f"{role}: {name} is not in docs/reports.md")

    def run_json(self, *arguments, **options):
        ended = subprocess.run([PROGRAM, *arguments, "--json"], capture_output=True, text=True,
                               timeout=DEADLINE, check=False, **options)
        return json.loads(ended.stdout.splitlines()[-1])

    def test_of_publishers_and_subscribers(self):
        text = ("wait_subscribers: 1\ntime_stamps: tai\ntriggers: {l1: {per_second: 10k}}\nstreams:\n"
                "  - {fids: 1-2, source: pattern, size: 64, trigger: l1, count: 50,\n"
                "     faults: {late: 0.1}}\n")
        publisher = self.start("publish", self.config(text))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "1-2", "--verify",
                                "--prescale", 3)
        found = subscriber.end()[1]
        for sometimes in ("latency", "passed_over"):
            self.assertIn(sometimes, found)
        self.check(found, "subscriber")
        self.check(publisher.end()[1], "publisher")
        one = f"{{listen: '{HOST}:0', mode: buffered, streams: [{{fids: 1, source: pattern, size: 64, rate: 9}}]}}"
        both = self.start("publish", self.path("both.yaml", f"publishers: [{one}, {one}]"), "--duration", "100ms")
        self.check(both.end()[1], "publishers")

    def test_of_streams_and_copies(self):
        server = self.start("pump", "--serve", "--listen", f"{HOST}:0", "--allow-remote-anonymous", "--once")
        self.check(self.run_json("pump", server.address(), "--bytes", "1M"), "pump")
        self.check(server.end()[1], "pump-server")
        os.mkdir(self.path("served"))
        server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0", "--allow-remote-anonymous")
        self.check(self.run_json("copy", self.path("file", "content"), server.address()), "copy")
        server.process.send_signal(signal.SIGINT)
        self.check(server.end()[1], "copy server")

    def test_of_messages_without_fids(self):
        listener = self.start("listen", f"{HOST}:0", "--allow-remote-anonymous")
        self.check(self.run_json("send", listener.address(), input="a\nb\n"), "send")
        listener.process.send_signal(signal.SIGINT)
        self.check(listener.end()[1], "listen")

    def test_of_what_is_looked_at(self):
        self.check(self.run_json("info"), "info")
        self.check(self.run_json("doctor"), "doctor")
        subprocess.run([PROGRAM, "key", "new", self.path("keys"), "--name", "one", "--rights", "services=all"],
                       timeout=DEADLINE, capture_output=True, check=True)
        self.check(self.run_json("key", "list", self.path("keys")), "key")
        os.mkdir(self.path("bus"))
        publisher = self.start("publish", self.config(self.PATTERN), "--bus", self.path("bus"),
                               "--metrics", f"{HOST}:0", "--allow-remote-anonymous", "--metrics-allow-remote-anonymous")
        publisher.wait_for("announced as")
        self.check(self.run_json("list", "--bus", self.path("bus")), "list")
        figures = publisher.wait_for(r"(\S+:\d+)/metrics").group(1).replace("http://", "")
        self.check(self.run_json("top", figures, "--once"), "top")


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
