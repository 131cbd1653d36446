"""Seconds of single operations, on one thread of an otherwise idle machine."""

import time

import numpy as np
import pandas as pd
import pytest
from test_columns import EQUATIONS, five_terms, many_labels
from test_speed import assert_same, by_bits, by_look_up, case

from fabinterp import PiecewiseLinearRegressor, ProxyTreeRegressor
from fabinterp.fab.spline_basis import fit_basis
from fabinterp.rules.core import Curve, Leaf, Rule, Split, encode, read_columns
from fabinterp.rules.ruleset import RuleSet


def seconds_of(function):
    """Return the processor seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def least_seconds(function, repeats=7):
    """Return the least processor seconds of several calls."""
    return min(seconds_of(function) for _ in range(repeats))


@pytest.mark.parametrize("estimator", [*EQUATIONS, ProxyTreeRegressor])
def test_a_thousand_labels_take_less_than_twice_the_time_of_a_hundred(estimator):
    classes = estimator.__name__.endswith("Classifier")
    seconds = []
    for n_labels in (100, 1000):
        X, y = many_labels(n_labels, classes=classes)
        seconds.append(seconds_of(lambda X=X, y=y: estimator(random_state=0).fit(X, y)))
    assert seconds[1] < 2 * seconds[0] + 0.2


def test_a_fit_of_five_thousand_columns():
    X, y = five_terms(200, 5000, 0)
    assert seconds_of(lambda: PiecewiseLinearRegressor(random_state=0).fit(X, y)) < 10


def test_predictions_of_a_hundred_thousand_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50))
    frame = pd.DataFrame(X).astype({0: "float32", 1: "int64"})
    columns = read_columns(frame)

    def random_rule():
        splits = [Split((int(j),), float(rng.normal())) for j in rng.integers(50, size=3)]
        return Rule(tuple((split, bool(rng.integers(2))) for split in splits), Leaf(rng.normal()))

    rules = RuleSet((*(random_rule() for _ in range(9)), Rule((), Leaf(0.0))), columns)
    assert least_seconds(lambda: rules.predict(X)) < 0.1
    assert least_seconds(lambda: encode(frame, columns)) < 0.5


def test_curves_of_a_hundred_thousand_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 8))
    knots = np.linspace(-2, 2, 7)
    curves = tuple(Curve(j, knots, rng.normal(size=(6, 4))) for j in range(8))
    rules = RuleSet((Rule((), Leaf(0.0, curves=curves)),), read_columns(X))
    assert least_seconds(lambda: rules.predict(X)) < 0.5


def test_the_design_of_eight_splines():
    X = np.random.default_rng(0).normal(size=(20_000, 8))
    bases = [fit_basis(x) for x in X.T]
    designs = [(basis, x) for basis, x in zip(bases, X.T, strict=True)]
    assert least_seconds(lambda: np.hstack([basis.design(x) for basis, x in designs])) < 0.06


def test_twenty_restarts_against_dense_code():
    """Prefix sums against the same equations on all the raw bits."""
    bits, y, raw, statistics, starts = case(1000, 100)
    assert_same(by_look_up(statistics, y, starts), by_bits(bits, y, raw))
    dense = seconds_of(lambda: by_bits(bits, y, raw))
    ours = least_seconds(lambda: by_look_up(statistics, y, starts))
    print(
        f"dense {dense:.2f} s, prefix sums {ours:.3f} s, ratio {dense / ours:.0f} (the aim is 50)"
    )
    assert dense / ours > 25
