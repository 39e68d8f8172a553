# SPDX-License-Identifier: Apache-2.0
"""Plots the rate of each fid while messages arrive: rate_plot.py HOST:PORT FIRST LAST [FRAMES].

Without a display: MPLBACKEND=Agg, and plt.savefig("rates.png") at the end of the program.
"""

import sys
import time

import matplotlib.pyplot as plt
import netio_daq as netio
import numpy

address, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
frames = int(sys.argv[4]) if len(sys.argv) > 4 else 1_000_000
rates = []
with netio.Subscriber(address) as subscriber:
    subscriber.subscribe((first, last))
    begin = time.monotonic()  # of the window, which includes the time that the previous plot took
    while len(rates) < frames and not subscriber.ended:
        counts, end = numpy.zeros(last - first + 1), time.monotonic() + 0.5
        while not subscriber.ended and (left := end - time.monotonic()) > 0:
            if (batch := subscriber.receive_batch(timeout=left)) is not None:
                counts += numpy.bincount(batch.records["fid"].astype(int) - first, minlength=len(counts))
        begin, passed = time.monotonic(), time.monotonic() - begin
        rates.append(counts / passed)
        plt.clf()
        plt.plot(rates, label=[f"fid {fid}" for fid in range(first, last + 1)])
        plt.ylabel("messages/s")
        plt.legend()
        plt.pause(0.01)
