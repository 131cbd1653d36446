"""What a machine may lack: a test that needs it is skipped, and the reason names it."""

import shutil

import pytest

from fabinterp.bench.datasets import is_available

PROGRAMS = ("chromium", "pandoc", "soffice")  # no modules of Python
PATIENCE = 120  # seconds that a test waits for a process or a page


def need(*names):
    """Skip where one of these programs or modules is not installed."""
    for name in names:
        if name not in PROGRAMS:
            pytest.importorskip(name, reason=f"{name} is not installed")
        elif not shutil.which(name):
            pytest.skip(f"{name} is not installed")


def need_data(name):
    """Skip where a data set is not there; such tests are of the measured tier."""
    if not is_available(name):
        pytest.skip(f"{name}: FABINTERP_DATA names no folder with {name}.csv.gz")
