"""The printed text is the model: a reader with a pencil finds what `predict` answers."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from shared.effort import case
from shared.estimators import SETTINGS, each
from shared.reader import read_classes, read_numbers
from sklearn.datasets import load_diabetes, load_iris

from fabinterp import ObliqueAdditiveRegressor, PiecewiseLinearRegressor, load_rules
from fabinterp.rules.core import SCORE_TOLERANCE, TEXT_TOLERANCE, Columns, Curve, Leaf, Rule
from fabinterp.rules.digits import MAX_POINTS, round_equation
from fabinterp.rules.ruleset import RuleSet
from fabinterp.rules.text import curve_pairs, pairs_text

NUMBERS = [setting for setting in SETTINGS if not setting.is_classifier]
CLASSES = [setting for setting in SETTINGS if setting.is_classifier]


def table(numbers_only, n=300, seed=0):
    """Draw a frame without gaps, and a number that depends on each kind of column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "year": rng.integers(2005, 2021, n).astype(float),
            "dose": rng.normal(size=n),
            "size": np.exp(rng.normal(size=n)).round(3),
        }
    )
    t = 0.2 * (frame["year"] - 2012) + frame["dose"] - np.minimum(frame["size"], 2.0)
    if not numbers_only:
        frame["owns"] = rng.random(n) < 0.4
        frame["home"] = rng.choice(["north", "east", "south"], n)
        t = t + frame["owns"] + 2.0 * (frame["home"] == "east")
    return frame, t + 0.3 * rng.normal(size=n)


def texts(model):
    """Return what is printed of a model, without the models that are averages over many trees."""
    found = [getattr(model, name, None) for name in ("rules_", "tree_")]
    return [str(one) for one in found if one is not None]


def assert_numbers_are_read(model, frame, y):
    """Each text gives `predict`, to within half a percent of the standard deviation of y."""
    for text in texts(model):
        told, stated = read_numbers(text, frame)
        assert np.abs(told - model.predict(frame)).max() <= 0.005 * np.std(y) + stated, text


def assert_classes_are_read(model, frame):
    """Each text gives the class of `predict`, but where the scores are nearer than the text is true."""
    for text in texts(model):
        told, margins, stated = read_classes(text, frame)
        differs = told != model.predict(frame).astype(str)
        assert (margins[differs] <= 2 * (SCORE_TOLERANCE + stated)).all(), text


@pytest.mark.parametrize(
    "scale", [case("1e-9", quick=False), "1", "1e6 ± 1", case("1e12", quick=False)]
)
@each(NUMBERS)
def test_a_reader_finds_the_numbers(setting, scale):
    frame, t = table(setting.numbers_only)
    y = 1e6 + t / t.abs().max() if "±" in scale else float(scale) * t
    assert_numbers_are_read(setting.fresh().fit(frame, y), frame, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@each(CLASSES)
def test_a_reader_finds_the_classes(setting, n_classes):
    frame, t = table(setting.numbers_only)
    y = np.array(["low", "mid", "high"])[pd.qcut(t, n_classes, labels=False)]
    assert_classes_are_read(setting.fresh().fit(frame, y), frame)


@each(NUMBERS)
def test_a_reader_finds_the_numbers_of_a_real_table(setting):
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    assert_numbers_are_read(setting.fresh().fit(frame, y), frame, y)


@pytest.mark.slow
@each(CLASSES)
def test_a_reader_finds_the_classes_of_a_real_table(setting):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    frame.columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    assert_classes_are_read(setting.fresh().fit(frame, y), frame)


@pytest.mark.parametrize("kind", [PiecewiseLinearRegressor, ObliqueAdditiveRegressor])
def test_intervals_come_from_the_text_and_from_sql(kind):
    """± a standard deviation: twice that from the answer is the interval, to within twice the tolerance."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)})
    apart = (X.a > 0).to_numpy()
    y = np.where(apart, 30 * X.b, 4 - 9 * X.b) + rng.normal(0, 1 + 3 * apart, 300)
    model = kind(penalty=1.0, random_state=0).fit(X, pd.Series(y, name="p"))
    assert len(model.rules_) > 1
    level = 2 * norm.cdf(2.0) - 1
    low, high = model.predict_interval(X, level).T
    again = load_rules(model.to_json())
    tolerance = TEXT_TOLERANCE * np.std(y)
    for said in (model.rules_, model.tree_, again, again.rules()):
        text = said.to_text(spread=True)
        assert text.endswith("±: the standard deviation of p around the prediction")
        assert "±" not in said.to_text() == str(said)
        told = text.rsplit("\n", 1)[0]
        assert "\n".join(re.sub(r", ± \S+", "", told).split()) == "\n".join(said.to_text().split())
        lines = [line for line in told.splitlines() if "±" in line]
        spread = np.array([float(re.search(r"± (\S+)", line)[1]) for line in lines])
        at = model.rules_.apply(X)
        answers = said.predict(X)  # which the text gives: the test above
        assert len(lines) == len(model.rules_)
        assert np.abs(answers - 2 * spread[at] - low).max() <= 1.01 * tolerance
        assert np.abs(answers + 2 * spread[at] - high).max() <= 1.01 * tolerance
        with sqlite3.connect(":memory:") as base:
            X.to_sql("t", base, index=False)
            rows = np.array(base.execute(said.to_sql("t", level=level)).fetchall())
        assert np.allclose(rows, np.column_stack([model.predict(X), low, high]), rtol=1e-12)


def test_gaps_have_the_interval_of_the_mean_in_sql():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)})
    y = 30 * X.a + rng.normal(0, 1, 300)
    model = PiecewiseLinearRegressor(max_depth=0, random_state=0).fit(X, y.rename("p"))
    with_gap = X.assign(a=X.a.where(X.index % 7 > 0))
    low, high = model.predict_interval(with_gap, 0.9).T
    assert (high - low)[0] > 5 * (high - low)[1]
    with sqlite3.connect(":memory:") as base:
        with_gap.to_sql("t", base, index=False)
        rows = np.array(base.execute(model.rules_.to_sql("t", level=0.9)).fetchall(), dtype=float)
    assert np.allclose(rows[:, 1:], np.column_stack([low, high]), rtol=1e-12)


def test_intervals_of_amounts_hold_their_share_and_are_never_negative():
    rng = np.random.default_rng(0)

    def draw(n):
        X = pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.uniform(0, 1, n)})
        return X, np.where(X.a > 0.5, 2.0, 0.2 + X.b) * rng.exponential(1.0, n)

    X, y = draw(1000)
    model = PiecewiseLinearRegressor(random_state=0).fit(X, y)
    again = load_rules(model.to_json())
    X, y = draw(4000)
    for level in (0.5, 0.8, 0.95):
        ends = model.predict_interval(X, level)
        assert abs(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) - level) < 0.04
        assert ends.min() == 0.0
        with sqlite3.connect(":memory:") as base:
            X.to_sql("t", base, index=False)
            rows = np.array(base.execute(again.to_sql("t", level=level)).fetchall())
        assert np.allclose(rows[:, 1:], ends, rtol=1e-12)


def test_levels_that_are_refused():
    rules = RuleSet((Rule((), Leaf(1.0)),), Columns(("a",), (None,)))
    with pytest.raises(
        ValueError, match="level must be None for a model without a standard deviation"
    ):
        rules.to_sql("t", level=0.9)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 1"):
        rules.to_sql("t", level=1)
    assert rules.to_text(spread=True) == rules.to_text()


@pytest.mark.parametrize("numbers", [True, False])
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.sampled_from([0.01, 1.0, 50.0]))
def test_every_label_of_a_curve_is_told_to_within_the_tolerance(numbers, values, tolerance):
    names = [f"{k}" if numbers else f"town {k}" for k in range(len(values))][::-1]
    curve = Curve(0, np.arange(len(values) + 1) - 0.5, tuple((value,) for value in values))
    columns = Columns(("town",), (tuple(names),), (False,))
    pairs, between, off = curve_pairs(curve, columns, tolerance)
    told = dict(pairs)
    assert len(told) == len(pairs) and not between
    for name, value in zip(names, values):
        said = float(told.get(name, told.get("others")))
        assert abs(said - value) <= tolerance * (1 + 1e-9)
    assert off <= tolerance and "within" not in pairs_text(pairs, between, off, tolerance)
    listed = [name for name, _ in pairs if name != "others"]
    assert ("others" in told) == (len(listed) < len(names)) and len(names) - len(listed) != 1
    if numbers:
        assert listed == sorted(listed, key=int)
    if len(names) <= MAX_POINTS:
        assert sorted(listed) == sorted(names)


@pytest.mark.parametrize(("coef", "is_centred"), [(1.0, False), (1.01, True)])
def test_terms_beyond_three_standard_deviations_are_centred(coef, is_centred):
    _, [(_, _, centre)] = round_equation(0.0, [0], [coef], [(2.5, 3.5)], 0.01, scale=1.0)
    assert (centre != 0) == is_centred


@pytest.mark.parametrize("low", [-0.9, 0.8])
def test_centres_between_minus_one_and_one_are_read(low):
    x = np.linspace(low, low + 0.1, 60)
    frame = pd.DataFrame({"dose": x})
    model = PiecewiseLinearRegressor(penalty=1.0, random_state=0).fit(frame, 100 * x)
    assert "(dose " in str(model.rules_)
    assert_numbers_are_read(model, frame, 100 * x)


@given(st.integers(0, 10_000))
def test_terms_are_centred_where_the_equation_answers_with_the_mean(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    low = rng.uniform(50, 100, d)
    ranges = np.column_stack([low, low + rng.uniform(1, 30, d)])
    coef = rng.normal(0, 30, d)
    corners = [coef @ np.where(coef * side > 0, *ranges.T[::-1]) for side in (1, -1)]
    value = float(rng.normal(0, 1000))
    mean = value + float(rng.uniform(min(corners), max(corners)))
    scale = float(rng.uniform(5, 50))
    tolerance = 0.004 * scale
    constant, terms = round_equation(value, range(d), coef, ranges, tolerance, scale, mean)
    X = rng.uniform(*ranges.T, size=(50, d))
    told = constant + sum(c * (X[:, f] - centre) for f, c, centre in terms)
    assert np.abs(told - value - X @ coef).max() <= tolerance * (1 + 1e-9)
    for f, _, centre in terms:
        assert centre == 0.0 or ranges[f, 0] <= centre <= ranges[f, 1]
    if len(terms) == d and all(centre != 0.0 for _, _, centre in terms):
        assert abs(constant - mean) <= (d / 2 + 0.01) * scale
