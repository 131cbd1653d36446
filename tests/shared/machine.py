"""How slow this machine is just now, beside the one the limits were set on."""

import time

import numpy as np

REFERENCE = (
    0.02  # s that the work below takes on an idle core of the machine the limits were set on
)


def _work():
    """Do a bit of Python and a bit of arithmetic."""
    total = 0
    for k in range(100_000):
        total += k % 7
    return total + np.sort(np.random.default_rng(0).random(150_000)).sum()


def slowness(clock=time.perf_counter, repeats=5):
    """Return how many times longer work takes here than on the reference; at least 1.

    By the wall's clock it counts what other programs take, by `time.process_time` the machine
    alone.
    """
    seconds = []
    for _ in range(repeats):
        start = clock()
        _work()
        seconds.append(clock() - start)
    return max(1.0, float(np.median(seconds)) / REFERENCE)
