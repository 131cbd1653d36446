"""A million rows of ten columns through the command line: rules within what a person waits.

Run with `--measure -s`.
"""

import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from frame import ROOT

pytestmark = pytest.mark.measure

CPU_SECONDS = 90  # on one core; two share the forest, and with it most of the work
MEMORY = 3e6  # kB


def test_a_million_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 1_000_000
    frame = pd.DataFrame(rng.normal(size=(n, 9)).round(3), columns=[f"x{j}" for j in range(9)])
    frame["kind"] = rng.choice(["red", "green", "blue"], n)
    signal = 2 * (frame.x0 > 0.3) + frame.x1 * (frame.kind == "red") + 0.5 * frame.x3
    frame["y"] = (signal + rng.normal(0, 0.5, n)).round(3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "fabinterp", "simplify", "rows.csv", "--target", "y"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{seconds:.0f} s of processor, {after.ru_maxrss / 1e6:.2f} GB")
    assert done.returncode == 0, done.stderr
    assert "note: 50000 of 1000000 rows are used" in done.stderr and "rules for y" in done.stdout
    assert seconds < CPU_SECONDS and after.ru_maxrss < MEMORY
