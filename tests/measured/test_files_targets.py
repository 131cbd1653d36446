"""Processor time of reading a table, compared with pandas."""

import time

import numpy as np
import pandas as pd

from fabinterp.files import read_table


def processor_time(read, path):
    """Return the shortest of three times of a function of a path."""
    times = []
    for _ in range(3):
        start = time.process_time()
        read(path)
        times.append(time.process_time() - start)
    return min(times)


def test_time_of_reading_a_million_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 1_000_000
    columns = [rng.normal(size=n) if j % 2 else rng.integers(0, 1000, n) for j in range(10)]
    path = str(tmp_path / "t.csv")
    pd.DataFrame({f"c{j}": column for j, column in enumerate(columns)}).to_csv(path, index=False)
    seconds = processor_time(read_table, path)
    reference = processor_time(pd.read_csv, path)
    print(
        f"read_table {seconds:.2f} s, read_csv {reference:.2f} s: {seconds / reference:.2f}, target 2"
    )
    assert len(read_table(path)) == n
