"""Three tiers of tests, each run by itself; every test runs on one thread per library, so that timings compare.

- quick: neither marked `slow` nor `measure`; properties have few examples. `make test`.
- `slow` (`--slow`): what is marked so, and every property again with all its examples. `make slow`.
- `measure` (`--measure`): what needs the data folder, the peers of the `bench` extra, or hours.
  `make measure`.

With both options both tiers run. The last line says what did not run, and which command runs it.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from shared.effort import FULL, QUICK  # noqa: E402

TIERS = {"quick": "make test", "slow": "make slow", "measure": "make measure"}
LEFT_OUT = pytest.StashKey[dict]()


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true",
                     help="run the slow tier: long tests, and all examples of the properties")  # fmt: skip
    parser.addoption("--measure", action="store_true",
                     help="run the measured tier: what needs the data folder, the peers, or hours")  # fmt: skip


def pytest_configure(config):
    # Before a test file is read: it asks for its number of examples then
    hypothesis.settings.load_profile(FULL if asked_for(config) else QUICK)
    config.stash[LEFT_OUT] = {}


def asked_for(config):
    """Return the tiers that options name."""
    return [tier for tier in ("slow", "measure") if config.getoption(f"--{tier}")]


def tier_of(item):
    """Return the tier of a test: its own mark wins over that of its file."""
    marks = (marker.name for marker in item.iter_markers() if marker.name in TIERS)
    return next(marks, "quick")


def belongs(item, tiers):
    """Say whether a test runs when these tiers do; properties of the quick tier run in the slow one, too."""
    tier = tier_of(item)
    is_property = hypothesis.is_hypothesis_test(getattr(item, "obj", None))
    return tier in tiers or (tier == "quick" and is_property and "slow" in tiers)


def pytest_collection_modifyitems(config, items):
    tiers = asked_for(config) or ["quick"]
    kept = [item for item in items if belongs(item, tiers)]
    gone = [item for item in items if not belongs(item, tiers)]
    for item in gone:
        tier = tier_of(item)
        config.stash[LEFT_OUT][tier] = config.stash[LEFT_OUT].get(tier, 0) + 1
    if gone:
        items[:] = kept
        config.hook.pytest_deselected(items=gone)


# What a worker of xdist leaves out it tells the controller, which writes the last line


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    told = getattr(node, "workeroutput", {}).get("left_out", {})  # each worker collects everything
    node.config.stash[LEFT_OUT].update(told)


def pytest_terminal_summary(terminalreporter, config):
    left_out = config.stash[LEFT_OUT]
    if left_out:
        counts = [
            f"{left_out[tier]} tests of the {tier} tier" for tier in TIERS if tier in left_out
        ]
        commands = [TIERS[tier] for tier in TIERS if tier in left_out]
        terminalreporter.write_line(f"{' and '.join(counts)} did not run: {', '.join(commands)}")
