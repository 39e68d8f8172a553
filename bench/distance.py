# SPDX-License-Identifier: Apache-2.0
"""Whether the processors of this machine are as near to each other as they can be."""

import subprocess
import time


def measured_by(program):
    """A function that returns the round trip of a cache line in ns, or None if there is no such program."""
    if not program.exists():
        return None
    return lambda: float(subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout)


class CoreDistance:
    """Repeats runs that were measured while the processors were far apart.

    The host of a virtual machine moves its processors between caches and sockets. A cache line then
    takes several times as long from one to the other, and every subject that hands data from core to
    core is up to three times slower. Values of both states cannot be compared, not even as medians.
    """

    FAR = 2  # of the smallest distance
    PATIENCE_S = 20  # of one measurement, for the processors to come near again
    PATIENCE_IN_ALL_S = 300
    FIRST_LOOKS = 20

    def __init__(self, now, clock=time.monotonic, wait=time.sleep):
        """now: as measured_by() returns it."""
        self.now = now
        self.clock = clock
        self.wait = wait
        self.nearest = min(now() for _ in range(self.FIRST_LOOKS)) if now else 0  # 0: one processor
        self.patience_s = self.PATIENCE_IN_ALL_S  # what is left of it
        self.far_runs = 0  # that count nevertheless, because patience ended

    def is_near(self):
        if not self.nearest:
            return True
        distance = self.now()
        self.nearest = min(self.nearest, distance)
        return distance <= self.FAR * self.nearest

    def measure(self, run):
        """The result of a run() that begins and ends near, if there is one in time."""
        deadline = self.clock() + min(self.PATIENCE_S, self.patience_s)
        while self.clock() < deadline:
            began = self.clock()
            if self.is_near():
                result = run()
                if self.is_near():
                    return result
            self.wait(0.1)
            self.patience_s -= self.clock() - began
        self.far_runs += 1
        return run()
