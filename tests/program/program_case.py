# SPDX-License-Identifier: Apache-2.0
"""Common parts of the program's tests: processes and time limits.

A script of tests is run as SCRIPT PROGRAM CONFIG_FOLDER [unittest arguments].
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM, CONFIG = sys.argv[1:3]
UNITTEST_ARGUMENTS = sys.argv[:1] + sys.argv[3:]
# Whether there is an RDMA device, and the time limits there (tests/softrdma/checks).
PROVIDER = os.environ.get("NETIO_TEST_FABRIC", "tcp")
HOST = os.environ["NETIO_TEST_ADDRESS"] if PROVIDER != "tcp" else "127.0.0.1"
FACTOR = int(os.environ.get("NETIO_TEST_DEADLINE_FACTOR", "1"))
DEADLINE = 60 * FACTOR  # seconds; far longer than any operation here takes
SHARE = int(os.environ.get("NETIO_TEST_SHARE", "1"))


def share_of(count, step):
    """The part that a slow machine has to do: at least one step, in whole steps."""
    return max(count // SHARE // step, 1) * step


class Process:
    """A running netio whose log is read continuously; also its report, unless it goes elsewhere."""

    def __init__(self, *arguments, stdin=None, stdout=subprocess.PIPE, json_report=True):
        command = [PROGRAM, *map(str, arguments)] + (["--json"] if json_report else [])
        self.process = subprocess.Popen(command, stdin=stdin, stdout=stdout,
                                        stderr=subprocess.PIPE, text=True)
        self.process.stdout = self.process.stdout or io.StringIO()
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def wait_for(self, pattern, which=1):
        """The first match of the pattern in the log, or a later one."""
        seen = 0
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    if line is None:
                        raise AssertionError(f"ended without saying {pattern}: {self.lines}")
                    match = re.search(pattern, line)
                    if match:
                        which -= 1
                    if match and which == 0:
                        return match
                seen = len(self.lines)
                if not self.changed.wait(DEADLINE):
                    raise AssertionError(f"did not say {pattern}: {self.lines}")

    def address(self, which=1):
        return self.wait_for(r"listening at (\S+)", which).group(1)

    def end(self):
        """(exit status, report, log); the report is the last line of standard output."""
        too_late = threading.Timer(4 * DEADLINE, self.process.kill)  # then the test fails
        too_late.start()
        out = self.process.stdout.read()
        too_late.cancel()
        status = self.process.wait(timeout=DEADLINE)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        lines = out.splitlines()
        report = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
        return status, report, "".join(line for line in self.lines if line)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.processes = []
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.processes:
            process.process.kill()
            if not process.process.stdout.closed:
                process.end()

    def start(self, *arguments, **options):
        process = Process(*arguments, **options)
        self.processes.append(process)
        return process

    def path(self, name, content=None):
        path = os.path.join(self.folder.name, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def config(self, text, mode="buffered"):
        return self.path("publisher.yaml", f"listen: {HOST}:0\nallow_remote_anonymous: true\nmode: {mode}\n{text}")

    PATTERN = "streams:\n  - {fids: 0-63, source: pattern, size: 40, rate: max}\n"
    LARGE = "streams:\n  - {fids: 0-7, source: pattern, size: 64k, rate: max}\n"
