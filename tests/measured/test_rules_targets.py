"""What rule lists promise (issue: rules that pay): noise, known truths, other tables, peers, seconds.

Run with `--measure -s`. The tables, splits, peers and words for judging are those of
`python -m fabinterp.bench rules`; settings were chosen on its tables of `CHOICE`. The real data are read
from the folder FABINTERP_DATA; a peer that is not installed is left out.
"""

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fabinterp import RuleMixtureClassifier, RuleMixtureRegressor
from fabinterp.bench.rules import compare_methods, regrets, table_means
from fabinterp.bench.runner import (
    figures_of,
    find_table,
    latest,
    lines_file,
    read_lines,
    run_table,
)

pytestmark = pytest.mark.measure

COMPARED = (
    "balanced",
    "five rules",
    "CART(5)",
    "FIGS(10)",
    "forest's CART(5)",
    "forest's CART, as many leaves",
    "forest's CART, as many conditions",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The figures of the report tables, measured anew; what is not there is left out."""
    table = find_table("rules")
    jobs = [
        key for key in table.jobs(False) if key["part"] == "split" and key["method"] in COMPARED
    ]
    table = replace(table, jobs=lambda quick: jobs)
    folder = tmp_path_factory.mktemp("rules")
    print(run_table(table, folder))
    lines = latest(read_lines(lines_file(table, folder))).values()
    figures = figures_of([line for line in lines if "missing" not in line])
    if figures.empty:
        pytest.skip("FABINTERP_DATA names no folder with the report tables")
    return figures


@pytest.mark.xfail(reason="3.4 %: 26 % on digits, 1.5 % on the other twelve", strict=True)
def test_regret(report):
    found = regrets(report)
    print("\nregret", found.round(4).to_dict(), "mean", round(found.mean(), 4))
    assert found.mean() <= 0.03


@pytest.mark.xfail(reason="13.8 conditions in the median of the means", strict=True)
def test_conditions(report):
    conditions = table_means(report, "conditions")["balanced"]
    print("\nconditions, median of the means:", conditions.median())
    assert conditions.median() <= 12


def test_report_tables(report):
    tables = report["data"].nunique()
    for other in ("CART(5)", "FIGS(10)"):
        beside = compare_methods(report, "balanced", other)
        if len(beside):  # FIGS may be missing
            print(other, "worse on", beside["worse"].sum(), "better on", beside["better"].sum())
            assert beside["worse"].sum() <= 1
    fidelity = table_means(report, "fidelity")
    for other, ours, most_lost in (
        ("forest's CART, as many leaves", "balanced", 1),
        ("forest's CART, as many conditions", "balanced", 3),
    ):
        above = (fidelity[ours] > fidelity[other]).sum()
        print("fidelity of", ours, "above", other, "on", above, "of", tables)
        assert above >= tables - most_lost


@pytest.mark.parametrize(("size", "most"), [("small", 1.5), ("balanced", 3.0)])
def test_lists_of_pure_noise_are_short(size, most):
    counts = {}
    for numbers in (False, True):
        for n in (500, 1000, 2000):
            for seed in range(20):
                rng = np.random.default_rng([n, seed])
                X = rng.random((n, 6))
                y = rng.normal(size=n) if numbers else rng.integers(0, 2, n)
                forest = (RandomForestRegressor if numbers else RandomForestClassifier)(
                    random_state=seed
                ).fit(X, y)
                kind = RuleMixtureRegressor if numbers else RuleMixtureClassifier
                model = kind(forest, size=size, n_init=1, random_state=seed).fit(X, y)
                counts.setdefault((numbers, n), []).append(len(model.rules_))
    means = {key: float(np.mean(found)) for key, found in counts.items()}
    print("\nrules on noise,", size, means)
    assert max(means.values()) <= most


def boxes_of_truth(K, d, rng):
    """K disjoint boxes of [0, 1]^d by K - 1 cuts, each of a part with at least 0.2 to either side."""
    boxes = [np.tile([0.0, 1.0], (d, 1))]
    while len(boxes) < K:
        i = max(range(len(boxes)), key=lambda k: np.prod(boxes[k][:, 1] - boxes[k][:, 0]))
        box = boxes.pop(i)
        j = rng.integers(d)
        low, high = box[j]
        cut = low + (high - low) * rng.uniform(0.35, 0.65)
        left, right = box.copy(), box.copy()
        left[j, 1] = cut
        right[j, 0] = cut
        boxes += [left, right]
    return boxes


def truth(seed):
    """X, y of K boxes whose neighbours have other labels, one label in ten wrong; and the K."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    d = int(rng.integers(2, 11))
    while True:
        boxes = boxes_of_truth(K, d, rng)
        n = int(rng.integers(80, 200)) * K
        X = rng.random((n, d))
        at = np.argmax([((X >= b[:, 0]) & (X < b[:, 1])).all(axis=1) for b in boxes], axis=0)
        if np.bincount(at, minlength=K).min() >= 60:
            break
    y = at.copy()  # every box has a label of its own
    wrong = rng.random(n) < 0.1
    y[wrong] = rng.integers(0, K, wrong.sum())
    return X, y, K


def test_truths_of_boxes_are_found():
    sizes = []
    for seed in range(50):
        X, y, K = truth(seed)
        forest = RandomForestClassifier(random_state=seed).fit(X, y)
        model = RuleMixtureClassifier(forest, size="small", n_init=1, random_state=seed).fit(X, y)
        sizes.append((K, len(model.rules_)))
    over = np.array([found - K for K, found in sizes])
    print("\nboxes: found less true", dict(zip(*np.unique(over, return_counts=True), strict=True)))
    assert np.mean(over == 0) >= 0.8
    assert np.mean(over <= 1) >= 0.95


def test_seconds():
    for n, d, search in ((1000, 10, 2.5), (3000, 57, 6.0), (20_000, 10, 12.0)):
        rng = np.random.default_rng(0)
        X = rng.random((n, d))
        y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(n) < 0.1)).astype(int)
        forest = RandomForestClassifier(random_state=0).fit(X, y)
        start = time.process_time()
        RuleMixtureClassifier(forest, random_state=0).fit(X, y)
        used = time.process_time() - start
        print(f"{n} x {d}: {used:.2f} s")
        assert used <= search
