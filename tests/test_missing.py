"""A gap at prediction in a column where training had none: answered alike by all exports, told once, or refused."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from shared.doors import by_python, by_sql
from shared.estimators import SETTINGS, each
from sklearn.base import clone
from sklearn.utils import get_tags

from fabinterp import (
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    ProxyLinearClassifier,
    ProxyLinearRegressor,
    Rule,
    RuleSet,
)
from fabinterp.fab.engine import EM
from fabinterp.rules.core import Columns, Curve, Leaf

pytestmark = [
    pytest.mark.filterwarnings("ignore:FIC still rises"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

NAMES = ["age", "income", "dose"]


def table(setting, n=120, n_classes=3):
    """Draw a frame without gaps, of two pieces, and its target: numbers, or words."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=NAMES)
    t = np.where(frame["age"] > 0.3, 2 + frame["income"], -frame["income"])
    t = t + 0.3 * rng.normal(size=n)
    if setting.is_classifier:
        cuts = np.quantile(t, np.arange(1, n_classes) / n_classes)
        return frame, np.array(["few", "many", "no"])[np.digitize(t, cuts)]
    return frame, t


def with_gaps(frame):
    """Take forty rows with gaps in each column, and everywhere in the last."""
    gaps = frame[:40].copy()
    for j in range(3):
        gaps.iloc[j::5, j] = np.nan
    gaps.iloc[39] = np.nan
    return gaps


def quietly(function, *args):
    """Call a function, and return its answer and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = function(*args)
    return answer, [str(w.message) for w in caught]


def answers(model, X):
    """Return what a model says of rows as numbers: class probabilities, or predictions."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def refuses_gaps(setting):
    """Whether predict refuses all gaps: its reference does, or it averages over lines of meta-trees."""
    return not get_tags(setting.estimator).input_tags.allow_nan or (
        getattr(setting.estimator, "leaf", None) == "linear"
    )


ANSWERING = [setting for setting in SETTINGS if not refuses_gaps(setting)]
ASKED = [setting for setting in SETTINGS if "missing" in setting.estimator.get_params()]
IN_LINES = [setting for setting in ASKED if "Oblique" not in type(setting.estimator).__name__]


# ------------------------------------------------------------------ all estimators


@each(ANSWERING)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gap_sinks_no_batch_and_all_exports_agree(setting, n_classes):
    frame, y = table(setting, n_classes=n_classes)
    model = setting.fresh().fit(frame, y)
    gaps = with_gaps(frame)
    said, told = quietly(model.predict, gaps)
    assert len(told) == (setting in ASKED) and pd.notna(said).all()
    assert np.array_equal(said[3:5], model.predict(frame[3:5]))  # rows without gaps
    rules = getattr(model, "rules_", None)
    if rules is None:
        return
    assert np.array_equal(quietly(rules.predict, gaps)[0], said)
    for other in (by_python(rules, gaps), by_sql(rules, gaps)[0]):
        if setting.is_classifier:
            assert other == said.tolist()
        else:
            assert np.allclose(np.array(other, float), said, rtol=1e-9, atol=1e-12)
    if setting.is_classifier:
        proba, told = quietly(model.predict_proba, gaps)
        assert len(told) == (setting in ASKED)
        by_label = [list(row.values()) for row in by_python(rules, gaps, proba=True)]
        by_column = [row[1:] for row in by_sql(rules, gaps, proba=True)[0]]
        assert np.allclose(by_label, proba) and np.allclose(np.array(by_column, float), proba)


@each([setting for setting in SETTINGS if refuses_gaps(setting)])
def test_who_takes_no_gaps_says_so(setting):
    frame, y = table(setting)
    model = setting.fresh().fit(frame, y)
    with pytest.raises(
        ValueError, match="contains NaN|no missing values in the columns of the leaves' equations"
    ):
        model.predict(with_gaps(frame))


@each(ASKED)
def test_the_policy_travels_with_the_model(setting):
    frame, y = table(setting)
    model = setting.fresh().fit(frame, y)
    gaps = with_gaps(frame)
    said, _ = quietly(model.predict, gaps)
    assert np.array_equal(quietly(pickle.loads(pickle.dumps(model)).predict, gaps)[0], said)
    rules = type(model.rules_).from_json(model.rules_.to_json())
    assert rules == model.rules_ and rules.to_json() == model.rules_.to_json()
    assert np.array_equal(quietly(rules.predict, gaps)[0], said)


@each(ASKED)
def test_an_error_names_column_and_rows(setting):
    frame, y = table(setting)
    model = setting.fresh(missing="error").fit(frame, y)
    assert clone(model).missing == "error"
    whole = setting.fresh().fit(frame, y)
    assert np.array_equal(model.predict(frame), whole.predict(frame))
    gaps = with_gaps(frame)
    said = "X must hold numbers in .*'income'.* for an equation, got a missing value in .* rows"
    with pytest.raises(ValueError, match=said):
        model.predict(gaps)
    rules = type(model.rules_).from_json(model.rules_.to_json())
    with pytest.raises(ValueError, match=said):
        rules.predict(gaps)
    refused = np.array([answer is None for answer in by_python(rules, gaps)])
    assert refused.any() and not refused.all()
    assert [answer is None for answer in by_sql(rules, gaps)[0]] == refused.tolist()
    kept = gaps[~refused]
    assert np.array_equal(model.predict(kept), quietly(whole.predict, kept)[0])


@each(ASKED)
def test_the_policy_is_one_of_two_words(setting):
    frame, y = table(setting)
    with pytest.raises(ValueError, match="missing must be one of 'answer', 'error', got 'drop'"):
        setting.fresh(missing="drop").fit(frame, y)


# ------------------------------------------------------------------ what is answered


@each(IN_LINES)
def test_the_answer_is_the_weighted_mean_of_the_leaf(setting):
    frame, y = table(setting)
    w = np.random.default_rng(1).integers(1, 4, len(y))
    model = setting.fresh().fit(frame, y, w)
    target = (y[:, None] == model.classes_) + 0.0 if setting.is_classifier else y
    if "reference" in model.get_params() and model.reference is not None:
        reference = clone(model.reference).fit(frame, y, w)
        target = answers(reference, frame)
    at = model.rules_.apply(frame)
    means = {k: leaf.mean for k, leaf in enumerate(model.rules_.leaves) if leaf.mean is not None}
    assert means
    for k, mean in means.items():
        assert np.allclose(mean, np.average(target[at == k], axis=0, weights=w[at == k]))


def test_the_warning_counts_rows_and_names_columns():
    frame, _ = table(SETTINGS[1])
    model = ProxyLinearRegressor().fit(frame, 3 * frame["income"] + frame["dose"])
    gaps = frame[:6].copy()
    gaps.loc[[0, 2, 3], "income"] = np.nan
    assert quietly(model.predict, gaps)[1] == [
        "the equations of 3 rows have missing values in 'income', which had none in training: predicted by "
        "the mean of their leaves"
    ]
    gaps.loc[2, "dose"] = np.nan
    gaps.loc[[0, 3], "income"] = 0.0
    assert quietly(model.predict, gaps)[1] == [
        "the equation of 1 row has a missing value in 'income', 'dose', which had none in training: "
        "predicted by the mean of its leaf"
    ]
    gaps["age"] = np.nan  # of no concern to the equation
    assert quietly(model.predict, gaps[:2])[1] == []


@pytest.mark.parametrize("gap", [None, pd.NA, np.nan])
def test_a_gap_has_many_spellings(gap):
    frame, _ = table(SETTINGS[1])
    y = 3 * frame["income"]
    model = ProxyLinearRegressor().fit(frame, y)
    gaps = frame[:3].astype(object)
    gaps.loc[1, "income"] = gap
    said, told = quietly(model.predict, gaps)
    assert len(told) == 1 and np.isclose(said[1], y.mean())
    numbers = gaps.astype({"income": "Float64"})
    assert np.array_equal(quietly(model.predict, numbers)[0], said)


def test_a_question_sends_a_new_gap_to_the_heavier_side():
    rng = np.random.default_rng(2)
    x = rng.random((400, 2))
    for share in (0.3, 0.7):
        y = np.where(x[:, 0] > share, 5 + x[:, 1], -3 * x[:, 1])
        for make in (PiecewiseLinearRegressor, ObliqueAdditiveRegressor):
            model = make(random_state=0, max_depth=1).fit(x, y)
            sides = model.tree_.apply(x)
            heavier = np.bincount(sides).argmax()
            assert np.isclose((sides == heavier).mean(), max(share, 1 - share), atol=0.05)
            assert model.tree_.apply([[np.nan, 0.5]])[0] == heavier


def test_a_curve_adds_nothing_for_a_new_gap():
    rng = np.random.default_rng(3)
    x = rng.random((300, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1]
    model = ObliqueAdditiveRegressor(random_state=0, max_depth=0).fit(x, y)
    said, told = quietly(model.predict, [[np.nan, 0.5]])
    assert told == [
        "the equation of 1 row has a missing value in 'x0', which had none in training: its curve adds 0 there"
    ]
    assert abs(said[0] - y[abs(x[:, 1] - 0.5) < 0.1].mean()) < 0.2
    assert "NULL THEN 0E0" in model.rules_.to_sql("t")


def test_intervals_and_distributions_are_as_wide_as_y():
    rng = np.random.default_rng(4)
    x = rng.random((400, 1))
    y = 10 * x[:, 0] + 0.1 * rng.normal(size=400)
    model = PiecewiseLinearRegressor(random_state=0, max_depth=0).fit(x, y)
    (low, high), narrow = quietly(model.predict_interval, [[np.nan], [0.5]])[0]
    assert (low < 1.0 and high > 9.0) and np.ptp(narrow) < 0.5
    assert len(quietly(model.predict_interval, [[np.nan]])[1]) == 1
    equation = ProxyLinearRegressor().fit(x, y)
    dist, told = quietly(equation.predict_dist, [[np.nan], [0.5]])
    assert len(told) == 1
    assert np.allclose(dist.mean()[0], y.mean()) and np.allclose(dist.variance()[0], y.var())
    assert dist.variance()[1] < 0.1
    assert np.allclose(quietly(equation.predict_draws, [[np.nan]])[0], y.mean())


def test_draws_of_classes_are_the_shares():
    frame, y = table(SETTINGS[0])
    model = ProxyLinearClassifier().fit(frame, y)
    draws = quietly(model.predict_draws, with_gaps(frame)[-1:])[0]
    assert np.allclose(draws[:, 0], [np.mean(y == label) for label in model.classes_])


# ------------------------------------------------------------------ rows in chunks


@pytest.mark.parametrize("make", [PiecewiseLinearRegressor, PiecewiseLinearClassifier])
def test_means_come_from_all_chunks(make):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 2)).round(2)
    y = X[:, 1] + 0.5 * rng.normal(size=3000)
    if make is PiecewiseLinearClassifier:
        y = (y > 0.3).astype(int)
    settings = {"search": EM(max_iter=10), "max_depth": 1, "random_state": 0}
    parts = [(X[k : k + 500], y[k : k + 500]) for k in range(0, 3000, 500)]
    model = make(**settings).fit_chunks(lambda: iter(parts))
    at = model.rules_.apply(X)
    for k, leaf in enumerate(model.rules_.leaves):
        if leaf.mean is not None:
            mean = np.atleast_1d(leaf.mean)[-1]
            assert np.isclose(mean, y[at == k].mean(), rtol=1e-9)
    gaps = X[:5].copy()
    gaps[1] = np.nan
    said, told = quietly(model.predict, gaps)
    assert len(told) == 1 and np.isfinite(said).all()
    strict = make(missing="error", **settings).fit_chunks(lambda: iter(parts))
    with pytest.raises(ValueError, match="for an equation, got a missing value"):
        strict.predict(gaps)


# ------------------------------------------------------------------ leaves and JSON


def test_json_from_before_there_were_means_is_read_and_refuses():
    line = Leaf(1.0, [0], [2.0], mean=0.0)
    rules = RuleSet([Rule([], line)], Columns(["a"], [None], [False]))
    d = json.loads(rules.to_json())
    assert d["rules"][0]["leaf"]["mean"] == 0.0
    assert RuleSet.from_dict(d) == rules
    del d["rules"][0]["leaf"]["mean"]
    before = RuleSet.from_dict(d)
    assert before.rules[0].leaf.mean is None and before.predict([[1.0]]) == [3.0]
    with pytest.raises(ValueError, match="in 'a' for an equation, got a missing value in 1 of 2"):
        before.predict([[1.0], [np.nan]])
    assert quietly(rules.predict, [[1.0], [np.nan]])[0].tolist() == [3.0, 0.0]


def test_a_curve_may_have_no_value_for_gaps():
    bare = Curve(0, [0, 1], [[0.0, 1.0]], missing=None)
    steps = Curve(1, [-0.5, 0.5, 1.5], [[1.0], [2.0]], missing=None)
    columns = Columns(["a", "home"], [None, ["north", "south"]], [False, False])
    rules = RuleSet([Rule([], Leaf(1.0, curves=[bare, steps], mean=9.0))], columns)
    assert RuleSet.from_json(rules.to_json()) == rules
    frame = pd.DataFrame({"a": [0.5, np.nan, 0.5, 0.5], "home": ["south", "north", None, "mars"]})
    said, told = quietly(rules.predict, frame)
    assert (
        said.tolist() == [3.5, 9.0, 9.0, 9.0]
        and "the equations of 3 rows have missing values in 'a', 'home'" in told[0]
    )
    assert by_python(rules, frame) == by_sql(rules, frame)[0] == said.tolist()


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (lambda: Leaf(1.0, [0], [2.0], mean=np.nan), "mean must be None or a finite number"),
        (lambda: Leaf(1.0, [0], [2.0], mean=(0.5, 0.5)), "mean must be None or a finite number"),
        (lambda: Leaf(1.0, [0], [2.0], link="logit", mean=0.5), "2 shares, one per class"),
    ],
)
def test_a_mean_that_cannot_be_right_is_refused(leaf, said):
    with pytest.raises(ValueError, match=said):
        leaf()


def test_a_mean_is_kept_where_a_value_can_lack():
    assert Leaf(1.0, mean=2.0).mean is None
    assert Leaf(0.0, curves=[Curve(0, [0, 1], [[0.0, 1.0]])], mean=2.0).mean is None
    assert Leaf(0.0, [0], [1.0], mean=2).mean == 2.0


def test_html_tells_what_answers_a_gap():
    rules = RuleSet([Rule([], Leaf(1.0, [0], [2.0], mean=7.25))], Columns(["a"], [None], [False]))
    assert "7.25" in rules.to_html() and "7.25" not in str(rules)
