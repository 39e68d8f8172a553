# SPDX-License-Identifier: Apache-2.0
"""Draws docs/top.svg and docs/dashboard.svg: pictures.py PROGRAM FOLDER

Programs run for a minute, with a subscriber that is stopped for ten seconds of it. The first picture is
what `netio top` shows in a terminal meanwhile, to the letter; the second what the queries of the
dashboard answer, asked of a prometheus that scraped them. It needs prometheus and python3-matplotlib.
"""

import contextlib
import fcntl
import html
import os
import pathlib
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

try:
    import matplotlib
except ImportError:
    sys.exit("docs/pictures.py needs matplotlib: apt install python3-matplotlib (`./dev bench` installs it too)")

matplotlib.use("svg")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "program"))
import matplotlib.pyplot as plt  # noqa: E402
from dashboard import Prometheus, needs_device, panels  # noqa: E402
from program_case import CONFIG as FOLDER, DEADLINE, HOST, PROGRAM, Process  # noqa: E402

COLUMNS, ROWS = 92, 24
SECONDS = 60
STOPPED = (22, 32)
UNITS = {"Bps": "bytes a second", "ops": "a second", "s": "seconds", "percentunit": "part", "short": "",
         "bytes": "bytes"}


def screen(addresses, seconds):
    """The lines that `netio top` has on a terminal behind so many seconds."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    top = subprocess.Popen([PROGRAM, "top", *addresses, "--sort", "waiting"], stdout=follower, stdin=follower,
                           stderr=follower)
    os.close(follower)
    shown = b""
    end = time.monotonic() + seconds
    os.set_blocking(leader, False)
    while time.monotonic() < end:
        with contextlib.suppress(BlockingIOError):
            shown += os.read(leader, 65536)
        time.sleep(0.05)
    top.kill()
    top.wait()
    os.close(leader)
    last = shown.decode().split("\x1b[H\x1b[2J")[-1]
    return [line.rstrip() for line in last.replace("\r", "").split("\n")][:ROWS]


def draw_screen(lines, path):
    width, height = 8.4 * COLUMNS + 24, 17 * len(lines) + 24
    text = "\n".join(
        f'<text x="12" y="{26 + 17 * at}" xml:space="preserve">{html.escape(line)}</text>'
        for at, line in enumerate(lines) if line)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}">\n'
                   f'<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>\n'
                   f'<g font-family="monospace" font-size="14" fill="#e0e0e0">\n{text}\n</g>\n</svg>\n')


def legend_of(template, labels):
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), template)


def draw_panels(server, begin, end, path):
    plt.rcParams.update({"svg.hashsalt": "netio", "svg.fonttype": "none", "font.size": 8})
    all_panels = list(panels("5s"))
    figure, places = plt.subplots(-(-len(all_panels) // 3), 3, figsize=(15, 2.6 * -(-len(all_panels) // 3)))
    for place, (title, unit, targets) in zip(places.flat, all_panels):
        place.set_title(title, loc="left", fontweight="bold")
        place.set_ylabel(UNITS.get(unit, unit))
        for query, legend in targets:
            for row in server.ask("query_range", query=query, start=begin, end=end, step=1) or []:
                points = [(float(when) - begin, float(value)) for when, value in row["values"]]
                place.plot(*zip(*points), label=legend_of(legend, row["metric"]), linewidth=1)
        place.set_xlim(0, end - begin)
        place.set_ylim(0, place.get_ylim()[1] * 1.35)  # below the legend
        if place.lines:
            place.legend(loc="upper left", fontsize=6, ncols=2)
        elif any(needs_device(query) for query, _ in targets):
            place.text(0.5, 0.5, "no RDMA device here", ha="center", transform=place.transAxes)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def config(folder, name, mode, more):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"listen: {HOST}:0\nmode: {mode}\nslow_policy: drop\nmetrics: 127.0.0.1:0\n{more}")
    return path


def main(folder, stack):
    def start(*arguments, **options):
        process = Process(*arguments, **options)
        stack.callback(process.process.kill)
        return process

    small = start("publish", config(folder, "a", "buffered", "streams:\n  - {fids: 0-3, source: pattern, "
                                    "size: 1000, rate: 8000}\n"))
    large = start("publish", config(folder, "b", "unbuffered", "streams:\n  - {fids: 100-101, source: pattern, "
                                    "size: 64k, rate: 300}\n"))
    receiver = start("listen", f"{HOST}:0", "--metrics", "127.0.0.1:0")
    server = start("pump", "--serve", "--listen", f"{HOST}:0")
    shown = ("--metrics", "127.0.0.1:0")
    quick = start("subscribe", small.address(), large.address(), "--fid", "0-200", *shown)
    stopped = start("subscribe", small.address(), "--fid", "0-1")
    sender = start("send", receiver.address(), *shown, stdin=subprocess.PIPE)
    addresses = [process.wait_for(r"metrics at http://(\S+)/metrics").group(1)
                 for process in (small, large, receiver, quick, sender)]
    with socket.create_server((HOST, 0)) as free:  # of who comes later
        later = f"{HOST}:{free.getsockname()[1]}"
    prometheus = Prometheus(folder, [*addresses, later], "1s", DEADLINE)
    stack.callback(prometheus.kill)
    begin = time.time()

    def wait_until(second):
        while time.time() < begin + second:
            sender.process.stdin.write("a line of text\n" * 100)
            sender.process.stdin.flush()
            time.sleep(0.1)

    wait_until(STOPPED[0])
    stopped.process.send_signal(signal.SIGSTOP)
    wait_until(STOPPED[1] - 5)
    lines = screen(addresses[:1] + addresses[3:4], 4.5)
    wait_until(STOPPED[1])
    stopped.process.send_signal(signal.SIGCONT)
    start("pump", server.address(), "--bytes", "100g", "--metrics", later)
    wait_until(STOPPED[1] + 10)
    server.process.kill()
    wait_until(SECONDS)
    draw_screen(lines, os.path.join(FOLDER, "top.svg"))
    draw_panels(prometheus, begin, begin + SECONDS, os.path.join(FOLDER, "dashboard.svg"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as ends:
        main(work, ends)
