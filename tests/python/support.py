# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share."""

import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = 60  # seconds: longer than anything takes

import netio_daq as netio  # noqa: E402


def pair(fids=(0, 1000), publisher=None, **options):
    """A publisher, and a subscriber that it has accepted."""
    its = publisher or netio.Publisher("127.0.0.1:0")
    options.setdefault("socket", {"retry_interval": 0.001, "retry_limit": 0.01})
    subscriber = netio.Subscriber(its.address, **options)
    subscriber.subscribe(fids)
    assert its.wait_for_subscribers(1, LONG)
    return its, subscriber


def run(program, *arguments, **options):
    """Runs a text as a program, which has `netio` and `pair`."""
    head = "import os, signal, sys, threading, time\nimport netio_daq as netio\nfrom support import pair, LONG\n"
    environment = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{pathlib.Path(__file__).parent}"}
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", head + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        **options,
    )
