# SPDX-License-Identifier: Apache-2.0
"""Computes the mean of all values with Dask's threads: dask_mean.py HOST:PORT FIRST LAST.

Each message is a float64. The publisher must close at the end. All batches are held in memory, without
a copy, until the mean is computed: it is for as many messages as fit into memory.
"""

import sys

import dask
import dask.array
import netio_daq as netio

address, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with netio.Subscriber(address) as subscriber:
    subscriber.subscribe((first, last))
    parts = [dask.array.from_array(batch.as_array(float)) for batch in subscriber.batches() if len(batch)]
if not parts:
    sys.exit("no message has arrived")
values = dask.array.concatenate(parts)
mean, count = dask.compute(values.mean(), values.size, scheduler="threads")
print(f"{count} values, mean {mean:g}")
