"""Three tiers of tests, each run by its own command, on one thread per numerical library.

- quick: everything else, with few examples of each property. `make test`.
- slow (`--slow`): `tests/slow`, what is marked `slow`, and every property with all its examples.
  `make slow`.
- measure (`--measure`): `tests/measured`, and what is marked `measure`: it needs the data folder,
  the peers of the `bench` extra, hours or a clock. `make measure`.
"""

import os
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis  # noqa: E402
from shared.databases import database, postgres_socket  # noqa: E402, F401
from shared.effort import FULL, NEW, QUICK  # noqa: E402
from shared.snapshots import snapshot  # noqa: E402, F401

COMMANDS = {"quick": "make test", "slow": "make slow", "measure": "make measure"}
# Which tier the tests of a folder are of
FOLDERS = {"slow": "slow", "measured": "measure"}


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true",
                     help="run the slow tier: long tests, and all examples of the properties")  # fmt: skip
    parser.addoption("--measure", action="store_true",
                     help="run the measured tier: what needs the data folder, the peers, or hours")  # fmt: skip
    parser.addoption("--new-examples", action="store_true",
                     help="draw other examples of the properties than all other runs")  # fmt: skip
    parser.addoption("--update-snapshots", action="store_true",
                     help="store the texts of this run in tests/snapshots")  # fmt: skip


def pytest_configure(config):
    # Test files read their number of examples from the profile when they are imported
    full = NEW if config.getoption("--new-examples") else FULL
    hypothesis.settings.load_profile(QUICK if tiers_of(config) == ["quick"] else full)


def tiers_of(config):
    """Return the tiers that this run consists of."""
    chosen = [tier for tier in ("slow", "measure") if config.getoption(f"--{tier}")]
    return chosen or ["quick"]


def folder_of(path):
    """Return the name of the folder within `tests` that a file is in, or that of the file itself."""
    return path.relative_to(Path(__file__).parent).parts[0]


def pytest_ignore_collect(collection_path, config):
    """Leave out a folder of another tier; tests of any folder may be marked `measure`."""
    tier = FOLDERS.get(collection_path.parent.name)
    return True if tier and not {tier, "measure"} & set(tiers_of(config)) else None


def tier_of(item):
    """Return the tier of a test: that of its own mark, else that of its folder."""
    marks = [marker.name for marker in item.iter_markers() if marker.name in COMMANDS]
    return marks[0] if marks else FOLDERS.get(folder_of(item.path), "quick")


def is_chosen(item, tiers):
    """Return whether a test runs: properties of the quick tier run in the slow one, too."""
    tier = tier_of(item)
    is_property = hypothesis.is_hypothesis_test(getattr(item, "obj", None))
    return tier in tiers or (tier == "quick" and is_property and "slow" in tiers)


def pytest_collection_modifyitems(config, items):
    tiers = tiers_of(config)
    chosen = [item for item in items if is_chosen(item, tiers)]
    left_out = [item for item in items if not is_chosen(item, tiers)]
    if left_out:
        items[:] = chosen
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter, config):
    others = [command for tier, command in COMMANDS.items() if tier not in tiers_of(config)]
    terminalreporter.write_line(f"The other tiers: {', '.join(others)}")
