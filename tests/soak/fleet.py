# SPDX-License-Identifier: Apache-2.0
"""The programs of the soak test: each object has the process, its report, and its faults."""

import json
import os
import signal
import subprocess
import threading


class Program:
    """One run of netio. Its faults are recorded, because they explain later errors."""

    def __init__(self, machines, machine, folder, name, words):
        self.name = name
        self.machine = machine
        self.words = words
        self.killed = False
        self.interrupted = False
        self.stopped = False
        self.longest_stop = 0.0
        self.out = folder / f"{name}.out"
        self.log = folder / f"{name}.log"
        with self.out.open("wb") as out, self.log.open("wb") as log:
            self.process = subprocess.Popen(machines.command(machine, words), stdout=out, stderr=log)
        self.resources = []  # (resident KiB, descriptors)

    def running(self):
        return self.process.poll() is None

    def send(self, number):
        if self.running():
            self.process.send_signal(number)

    def stop(self):
        self.stopped = True
        self.send(signal.SIGSTOP)

    def go_on(self, after=0.0):
        self.longest_stop = max(self.longest_stop, after)
        self.stopped = False
        self.send(signal.SIGCONT)

    def kill(self):
        self.killed = True
        self.send(signal.SIGKILL)

    def interrupt(self):
        self.interrupted = True
        self.send(signal.SIGINT)

    def wait(self, seconds):
        """The exit status, or None if it has not ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def reports(self):
        text = self.out.read_text("utf-8", "replace")
        return [json.loads(line) for line in text.split("\n") if line.startswith("{") and line.endswith("}")]

    def report(self):
        reports = self.reports()
        return reports[-1] if reports else None

    def last_words(self):
        return self.log.read_text("utf-8", "replace")[-600:]

    def weigh(self):
        """Records its memory and its number of descriptors."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as status:
                resident = next((int(line.split()[1]) for line in status if line.startswith("VmRSS")), 0)
            descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return
        if resident:
            self.resources.append((resident, descriptors))

    def growth(self):
        """What has grown between the second and the last quarter of its life; empty if nothing has.
        """
        if len(self.resources) < 40:
            return ""
        quarter = len(self.resources) // 4
        early, late = self.resources[quarter : 2 * quarter], self.resources[-quarter:]
        for index, what, slack in ((0, "KiB resident", 16 * 1024), (1, "descriptors", 16)):
            before = max(each[index] for each in early)
            after = min(each[index] for each in late)
            if after > before * 1.25 + slack:
                return f"{self.name}: from {before} to {after} {what}"
        return ""


def wait_for_line(program, text, seconds):
    """Whether the log has the line by then."""
    pause = threading.Event()
    for _ in range(int(seconds * 20)):
        if text in program.log.read_text("utf-8", "replace"):
            return True
        if not program.running():
            return False
        pause.wait(0.05)
    return False
