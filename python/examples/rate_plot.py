# SPDX-License-Identifier: Apache-2.0
"""Plots the rate of each fid while messages arrive: rate_plot.py HOST:PORT FIRST LAST [FRAMES]."""

import sys
import time

import matplotlib.pyplot as plt
import netio_daq as netio
import numpy

address, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rates = []
with netio.Subscriber(address) as subscriber:
    subscriber.subscribe((first, last))
    while len(rates) < (int(sys.argv[4]) if len(sys.argv) > 4 else 1_000_000):
        counts, end = numpy.zeros(last - first + 1), time.monotonic() + 0.5
        while (left := end - time.monotonic()) > 0 and (batch := subscriber.receive_batch(timeout=left)):
            counts += numpy.bincount(batch.records["fid"].astype(int) - first, minlength=len(counts))
        rates.append(counts / 0.5)
        plt.clf()
        plt.plot(rates, label=[f"fid {fid}" for fid in range(first, last + 1)])
        plt.ylabel("messages/s")
        plt.legend()
        plt.pause(0.01)
