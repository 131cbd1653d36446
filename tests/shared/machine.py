"""How slow this machine is just now, beside the one the limits were set on."""

import time

import numpy as np

# s that the work below takes on an idle core of the machine the limits were set on
REFERENCE = 0.011


def _work():
    """Do a bit of what the package does: Python, calls for small arrays, a walk through memory."""
    total = 0.0
    for k in range(60_000):
        total += k % 7
    small = np.arange(40.0)
    for _ in range(1_500):
        total += np.searchsorted(small, small).sum()
    many = np.random.default_rng(0).random(200_000)
    return total + (many[np.argsort(many)] * many).sum()


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
