"""What a proxy tree on a budget of calls promises: 600 rows are nearly as good as all of them.

Run with `--measure -s`, which prints the figures; tables come from the folder FABINTERP_DATA. The way
of filling in and of choosing rows was settled on kin8nm and magic04, while abalone and cpusmall were
looked at, too; puma8NH and svmguide1 were not.
"""

from functools import cache

import numpy as np
import pytest
from shared.needs import need_data
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from fabinterp import Budgeted, ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.bench.datasets import load

pytestmark = pytest.mark.measure
NUMBERS = ("kin8nm", "abalone", "cpusmall", "puma8NH")
CLASSES = ("magic04", "svmguide1")
CALLS = (300, 600, 1000, 1500, 2000)
SPLITS = 3
LEAVES = 8


@cache
def asked_model(name):
    """At most 5000 rows of a table, and what boosting answers for them."""
    data = load(name)
    X = np.asarray(data.X, float)
    at = np.random.default_rng(0).permutation(len(X))[:5000]
    X = X[at]
    y = np.asarray(data.y)[at]
    if name in NUMBERS:
        model = HistGradientBoostingRegressor(random_state=0).fit(X, y)
        return X, model.predict(X), model
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    return X, model.predict_proba(X), model


def loss_of(answer, target):
    """Root mean squared error, or expected log loss, against the answers of the reference."""
    if target.ndim == 1:
        return np.sqrt(np.mean((target - answer) ** 2))
    return -np.mean((target * np.log(np.maximum(answer, 1e-6))).sum(axis=1))


def tree_loss(name, n_calls=None, **options):
    """The loss on all rows of a proxy tree of eight leaves, and its fidelity and interval."""
    X, target, model = asked_model(name)
    make = ProxyTreeRegressor if target.ndim == 1 else ProxyTreeClassifier
    model = model if n_calls is None else Budgeted(model, n_calls)
    tree = make(model, size=LEAVES, n_synthetic=0, **options).fit(X)
    answer = tree.predict(X) if target.ndim == 1 else tree.predict_proba(X)
    found = loss_of(answer, target)
    if target.ndim == 1:
        truth = 1 - found**2 / target.var()
    else:
        truth = np.mean(answer.argmax(axis=1) == target.argmax(axis=1))
    held = None
    if n_calls is not None:
        low, high = tree.fidelity_interval_
        held = low <= truth <= high
        assert tree.n_calls_ <= n_calls
    return found, held


def even_loss(name, n, seed):
    """The loss on all rows of the same tree, grown on n rows drawn evenly and nothing else."""
    X, target, model = asked_model(name)
    at = np.random.default_rng([seed, n]).permutation(len(X))[:n]
    make = ProxyTreeRegressor if target.ndim == 1 else ProxyTreeClassifier
    tree = make(model, size=LEAVES, n_synthetic=0, random_state=seed).fit(X[at])
    return loss_of(tree.predict(X) if target.ndim == 1 else tree.predict_proba(X), target)


@cache
def figures(name):
    """Losses at 600 calls and at all rows, of even rows at several numbers, intervals that held."""
    whole, _ = tree_loss(name, random_state=0)
    ours = [tree_loss(name, n_calls=600, random_state=seed) for seed in range(SPLITS)]
    even = [np.mean([even_loss(name, n, seed) for seed in range(SPLITS)]) for n in CALLS]
    loss = np.mean([found for found, _ in ours])
    # where even rows reach the same loss, on the line between the numbers tried
    falling = np.minimum.accumulate(even)
    equal = np.interp(-loss, -falling, CALLS)
    held = [held for _, held in ours]
    told = ", ".join(f"{n}: {one / whole:.3f}" for n, one in zip(CALLS, even, strict=True))
    print(
        f"\n{name:>10}: all rows {whole:.4g}, 600 calls {loss / whole:.3f} of it; even rows {told}; "
        f"as good as {equal:.0f} even ones ({CALLS[-1]}: or more); intervals held {held}"
    )
    return loss / whole, equal, held


def test_600_calls_are_within_three_percent_of_all_rows():
    names = ("kin8nm", "magic04", "abalone", "cpusmall")
    for name in NUMBERS + CLASSES:
        need_data(name)
        figures(name)
    assert sum(figures(name)[0] <= 1.03 for name in names) >= 3
    assert all(figures(name)[1] > 600 for name in names)


def test_intervals_hold():
    held = [ok for name in NUMBERS + CLASSES for ok in figures(name)[2]]
    assert np.mean(held) >= 0.9
