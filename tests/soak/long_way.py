# SPDX-License-Identifier: Apache-2.0
"""A long path to a publisher, and its metrics: the windows of its subscribers grow, and queued
small messages share frames."""

import re
import subprocess
import sys
import threading

DELAY_MS = 10  # in each direction
WINDOW = 8  # initial receives of a subscriber
FRAMES = 0.5  # of a message: with so few credits, frames are shared
ENOUGH = 200  # messages needed for a verdict
SCRAPE = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=2).read().decode())"
MESSAGES = re.compile(r"^netio_publisher_messages_total (\d+)", re.M)
CREDITS = re.compile(r'^netio_peer_credits\{.*id="(\d+)"\} (\d+)', re.M)
FRAMES_SENT = re.compile(r'^netio_peer_frames_total\{.*id="(\d+)"\} (\d+)', re.M)


class LongWay:
    def __init__(self, machines, program, host, here, there, figures):
        """Forwards a port to the publisher's; `figures`: the port of its metrics."""
        words = [program, "--host", host, "--listen", here, "--to", there, "--delay-ms", DELAY_MS, "--room-mib", 8]
        self.machines = machines
        self.figures = f"http://127.0.0.1:{figures}/metrics"
        self.most_credits = 0
        self.fewest_frames = None
        self.before = None
        self.over = threading.Event()
        self.process = subprocess.Popen(
            machines.command(0, [str(word) for word in words]), stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.process.stdout.readline()  # it listens
        self.looking = threading.Thread(target=self.look_on, daemon=True)
        self.looking.start()

    def look_on(self):
        while not self.over.wait(1):
            words = self.machines.command(0, [sys.executable, "-c", SCRAPE, self.figures])
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode == 0:  # otherwise it is stopped or not yet started
                self.look(done.stdout)

    def look(self, text):
        credits = [int(count) for _, count in CREDITS.findall(text)]
        self.most_credits = max([self.most_credits, *credits])
        messages = MESSAGES.search(text)
        now = int(messages[1]) if messages else 0, {peer: int(count) for peer, count in FRAMES_SENT.findall(text)}
        if self.before is None:
            self.before = now
        published = now[0] - self.before[0]
        if published < ENOUGH:
            return
        sent = [now[1][peer] - self.before[1][peer] for peer in now[1] if peer in self.before[1]]
        shares = [frames / published for frames in sent if frames > 0]  # of subscribers
        self.fewest_frames = min([share for share in [self.fewest_frames, *shares] if share is not None], default=None)
        self.before = now

    def complaints(self, gathers):
        if self.most_credits <= WINDOW:
            yield f"over a long way no subscriber had more than {self.most_credits} receives"
        if gathers and (self.fewest_frames is None or self.fewest_frames > FRAMES):
            yield f"small messages that waited took {self.fewest_frames} frames each"

    def close(self):
        self.over.set()
        self.looking.join()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
