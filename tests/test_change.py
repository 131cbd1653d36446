"""The nearest change is held against a grid of every row there is; what it says, against the rules."""

import json
import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.estimators import SETTINGS, each
from shared.random_rules import COLUMNS, random_rules
from shared.tables import mixed_frame
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split

from fabinterp import Budgeted, explain
from fabinterp.change import (
    Change,
    Changes,
    LocalSearch,
    amount_text,
    cuts_of,
    distance,
    feature_space,
    make_goal,
    moved_further,
    nearest_change,
    rule_with_answer,
)
from fabinterp.proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split, match_conditions
from fabinterp.rules.digits import short_numbers
from fabinterp.rules.ruleset import RuleSet

KINDS = ("labels", "numbers", "lines", "logit", "softmax")
FINE = np.linspace(-1, 1, 41)
ROUGH = np.linspace(-1, 1, 11).round(1)
ANY_NUMBER = np.array([[-1.0, -1, 0], [1, 1, 2], [0.123456789, 0.123456789, 1]])
FEW_VALUES = np.array(list(product(ROUGH, ROUGH, [0.0, 1, 2])))
ROUNDING = 0.01  # what a shorter number may cost, in scales


def step(threshold, low, high):
    """Return rules that answer `low` up to a threshold of one column, and `high` above it."""
    warm = Rule(((Split((0,), threshold), True),), Leaf(high))
    return RuleSet((warm, Rule((), Leaf(low))), Columns(("u",), (None,)))


def random_question(rng, kind):
    """Draw what is asked for, and what may change, as arguments."""
    asked = {}
    if kind in ("numbers", "lines"):
        low = float(rng.integers(-1, 5))
        asked = dict(target=[(low, None), (None, low), (low, low + 1)][rng.integers(3)])
    elif kind == "labels" and rng.random() < 0.5:
        asked = dict(target="b")
    return asked, dict(
        fixed=["u"] if rng.random() < 0.2 else [],
        directions={"v": "up"} if rng.random() < 0.3 else None,
        ranges={"c": ["red", "blue"]} if rng.random() < 0.3 else None,
        weights={"v": 0.5, 2: 3} if rng.random() < 0.3 else None,
    )


@examples(200)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.booleans(), st.booleans())
def test_no_row_of_a_grid_is_nearer_and_none_is_left(seed, kind, slanted, few):
    """Each change is the nearest of those different from the changes before; then none is left."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, kind, slanted)
    line, X = (ROUGH, FEW_VALUES) if few else (FINE, ANY_NUMBER)
    x = np.array([*rng.choice(line, 2), rng.integers(3)])
    x[rng.integers(3) if rng.random() < 0.3 else []] = np.nan
    wanted, limits = random_question(rng, kind)
    found = nearest_change(rules, x, X, n_changes=3, **wanted, **limits)
    goal = make_goal(rules, x, **wanted)
    space = feature_space(rules, X, **limits)
    labels = [0.0, 2.0] if limits["ranges"] else [0.0, 1.0, 2.0]
    grid = np.array(list(product([*line, x[0]], [*line, x[1]], [*labels, x[2]])))
    grid = np.where(np.isnan(x) | ~space.free, x, grid)
    cost = np.where(goal.is_met(grid), distance(x, grid, space), np.inf)
    for change in found:
        lost = 0 if few else ROUNDING * 3 * (2 if limits["weights"] is None else 3)
        assert change.distance <= cost.min() + lost + 1e-9
        assert not few or change.distance >= cost.min() - 1e-9
        assert np.isfinite(change.distance) and goal.is_met(change.after[None])[0]
        assert change.distance == distance(x, change.after[None], space)[0]
        assert change.prediction == rules.predict(change.after[None])[0]
        assert np.isnan(change.after).tolist() == np.isnan(x).tolist()
        cost[match_conditions(moved_further(x, change.after, space), grid)] = np.inf
    if found.proven and len(found) < 3:
        assert cost.min() == np.inf
    assert found.proven or slanted or kind in ("lines", "logit", "softmax")


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_without_an_order_another_number_or_equation_is_found(seed):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, "lines", False)
    x = np.array([*rng.uniform(-1, 1, 2), rng.integers(3)])
    found = nearest_change(rules, x, ANY_NUMBER)
    goal = make_goal(rules, x)
    grid = np.array(list(product(FINE, FINE, [0.0, 1, 2])))
    met = goal.is_met(grid)
    assert found.proven and bool(found) >= met.any()
    if met.any():
        best = distance(x, grid[met], feature_space(rules, ANY_NUMBER)).min()
        assert found.distance <= best + 3 * ROUNDING
        assert found.rule != rule_with_answer(rules, x[None])[0]


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["labels", "numbers"]))
def test_at_least_is_said_of_every_number_beyond(seed, kind):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, kind, False)
    x = np.array([*rng.uniform(-1, 1, 2), rng.integers(3)])
    goal = make_goal(rules, x)
    for change in nearest_change(rules, x, ANY_NUMBER, n_changes=4):
        for j, (_, _, to) in zip(change.features, change.steps(), strict=True):
            if j == 2:
                continue
            sign = 1 if change.after[j] > x[j] else -1
            beyond = np.tile(change.after, (200, 1))
            beyond[:, j] += sign * np.geomspace(1e-6, 5, 200)
            said = to.startswith("at least " if sign > 0 else "at most ")
            assert said == goal.is_met(beyond).all()


@examples(100)
@given(st.floats(-1e15, 1e15), st.floats(-1e15, 1e15))
def test_short_numbers_lie_between_and_get_longer(near, far):
    numbers = list(short_numbers(near, far))
    assert all(min(near, far) <= number <= max(near, far) for number in numbers)
    assert numbers[-1] == near or near in numbers
    digits = [len(f"{number!r}".replace(".0", "").strip("-0.")) for number in numbers[:3]]
    assert len(numbers) < 3 or digits[0] <= digits[-1] + 1


def test_a_flag_becomes_one_and_not_the_next_number_after_zero():
    X = pd.DataFrame({"flag": [0, 1] * 100})
    y = np.array(["no", "yes"] * 100)
    model = ProxyTreeClassifier(size=2).fit(X, y)
    for row in (X.iloc[[0]], X.iloc[0], [0]):
        assert nearest_change(model, row, X).words() == "flag from 0 to 1"
    assert nearest_change(model, X.iloc[[0]]).words() == "flag from 0 to at least 1"


@pytest.mark.parametrize(
    ("threshold", "x", "X", "words"),
    [
        (19.0, 12, np.arange(40.0), "u from 12 to at least 20"),
        (19.3, 12, np.arange(40.0), "u from 12 to at least 20"),
        (19.3, 30, np.arange(40.0), "u from 30 to at most 19"),
        (2643.5, 2300, 1000 + np.arange(4000.0), "u from 2 300 to at least 2 650"),
        (5.1, 4.6, np.arange(100) / 10, "u from 4.6 to at least 5.2"),
        (5.1, 6.0, np.arange(100) / 10, "u from 6 to at most 5.1"),
        (0.123456, 0, np.linspace(0, 1, 99) ** 2, "u from 0 to at least 0.124"),
        (0.0, -1.5, np.linspace(-2, 2, 99) ** 3, "u from -1.5 to at least 0.01"),
        (0.1, 0, np.repeat([0, 0.5, 3], 9), "u from 0 to 0.5"),
        (2.0, 0.5, None, "u from 0.5 to at least 2.01"),
    ],
)
def test_numbers_are_such_as_exist_and_as_one_would_type(threshold, x, X, words):
    found = nearest_change(step(threshold, 0, 5), [x], None if X is None else X[:, None])
    assert found.words() == words and found.proven
    assert found.prediction == (5 if found.after[0] > x else 0)


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1.0, 1e9, 1e100])
def test_units_do_not_matter(unit):
    X = np.linspace(0, 1, 101)[:, None] ** 2
    plain = nearest_change(step(0.5, 0, 1), [0.25], X)
    found = nearest_change(step(0.5 * unit, 0, 1), [0.25 * unit], X * unit)
    assert found.after[0] > 0.5 * unit and found.after[0] <= 0.52 * unit
    assert abs(found.distance - plain.distance) <= 0.02


def test_a_range_between_two_whole_numbers_is_proven_empty():
    between = ((Split((0,), 2.2), True), (Split((0,), 2.8), False))
    rules = RuleSet((Rule(between, Leaf(1.0)), Rule((), Leaf(0.0))), Columns(("n",), (None,)))
    found = nearest_change(rules, [1], np.arange(30.0)[:, None])
    assert not found and found.proven and "proven" in str(found)
    assert nearest_change(rules, [1], np.arange(30.0)[:, None] / 4).after[0] == 2.21
    # a row that has a fraction is a proof that fractions exist
    assert 2.2 < nearest_change(rules, [1.5], np.arange(30.0)[:, None]).after[0] <= 2.8


def test_distance_counts_scales_labels_and_weights_and_forbids_the_rest():
    rules = random_rules(np.random.default_rng(0), "labels", False)
    space = feature_space(rules, ANY_NUMBER, ["v"], {"u": "up"}, weights={"u": 2, "c": 3})
    one = 2 * space.scales[0]
    x = np.array([0.0, 0.0, 1.0])
    rows = np.array([[one, 0, 0], [0, 0.1, 1], [np.nan, 0, 1], [0, 0, 1], [-one, 0, 1]])
    assert distance(x, rows, space).tolist() == [5.0, np.inf, np.inf, 0.0, np.inf]
    outlier = np.append(np.linspace(0, 1, 100), 1e9)[:, None]
    assert feature_space(step(0, 0, 1), outlier).scales[0] < 1
    assert feature_space(step(0, 0, 1), np.repeat([0.0, 4.0], [90, 10])[:, None]).scales[0] == (
        pytest.approx(4 * np.sqrt(0.1))
    )


def test_the_first_match_counts():
    """The second rule's own border is nearest, but the first rule, with the old answer, covers it."""
    rules = RuleSet((Rule(((Split((0,), 1.0), True), (Split((0,), 2.0), False)), Leaf(0.0)),
                     Rule(((Split((0,), 1.0), True),), Leaf(5.0)), Rule((), Leaf(0.0))),
                    Columns(("u",), (None,)))  # fmt: skip
    change = nearest_change(rules, [0.5])
    assert change.after[0] == 2.01 and change.rule == 1 and change.prediction == 5.0


def test_an_equation_is_crossed_at_a_round_number():
    rules = RuleSet((Rule((), Leaf(0.0, (0,), (3.0,))),), Columns(("u",), (None,)))
    change = nearest_change(rules, [0.1], target=1.3)
    assert change.prediction >= 1.3 and change.after[0] == 0.44 and change.exact
    assert nearest_change(rules, [0.1], target=-0.7).after[0] == -0.24
    assert nearest_change(rules, [0.1], target=(6, 9)).after[0] == 2.0
    assert nearest_change(rules, [0.1], np.arange(5)[:, None] + 0.5, target=6).after[0] == 2.0
    assert nearest_change(rules, [0], np.arange(5)[:, None], target=(3, 3)).after[0] == 1.0
    assert nearest_change(rules, [0], np.arange(5)[:, None], target=(4, 5)).proven
    assert not nearest_change(rules, [0], np.arange(5)[:, None], target=(4, 5))
    same = nearest_change(rules, [2], target=(None, 7))
    assert same.distance == 0 and same.proven and "no change is needed" in str(same)


@pytest.mark.parametrize("other", [[0.9], [-0.4]])
def test_the_prediction_of_another_row_is_a_target(other):
    rules = step(0.5, 0, 5)
    found = nearest_change(rules, [0.2], target=rules.predict([other])[0])
    assert rules.predict(found.after[None])[0] == rules.predict([other])[0]


def test_a_gap_stays_a_gap():
    known = Split((0,), 2.0, missing=True)
    columns = Columns(("u", "c"), (None, ("a", "b")))
    rules = RuleSet(
        (
            Rule(((known, False),), Leaf(1.0)),
            Rule(((Split((1,), categories=(1,), missing=True), True),), Leaf(1.0)),
            Rule((), Leaf(0.0)),
        ),
        columns,
    )
    found = nearest_change(rules, [np.nan, 0], n_changes=5)
    assert [one.words() for one in found] == ["c from a to b"] and found.proven
    assert not nearest_change(rules, [np.nan, 0], fixed=["c"])
    assert [one.words() for one in nearest_change(rules, [3, 0], n_changes=5)] == [
        "u from 3 to at most 2",
        "c from a to b",
    ]


def test_a_range_may_be_one_label():
    columns = Columns(("colour",), (("blue", "green", "red"),))
    first = Split((0,), categories=(0,))
    rules = RuleSet((Rule(((first, True),), Leaf(0.0)), Rule((), Leaf(1.0))), columns)
    (found,) = nearest_change(rules, [0], ranges={"colour": "red"})
    assert found.words() == "colour from blue to red"
    (found,) = nearest_change(rules, [0], ranges={"colour": ["green"]})
    assert found.words() == "colour from blue to green"


def test_a_wanted_label_and_what_is_refused():
    flowers = load_iris(as_frame=True)
    conditions = [((Split((2,), 2.45), False),), ((Split((3,), 1.75), False),), ()]
    names = tuple(flowers.target_names)
    rules = RuleSet(tuple(Rule(c, Leaf(tuple(np.eye(3)[k]))) for k, c in enumerate(conditions)),
                    Columns(tuple(flowers.data.columns), (None,) * 4), names)  # fmt: skip
    first = flowers.data.iloc[[0]]
    near = nearest_change(rules, first, flowers.data)
    far = nearest_change(rules, first, flowers.data, target="virginica")
    assert far.prediction == "virginica" and far.features == (2, 3)
    assert far.distance > near.distance
    assert near.prediction == "versicolor" and near.features == (2,) and near.exact
    length = "petal length (cm)"
    for limit in (
        dict(fixed=[length]),
        dict(ranges={length: (0, 2)}),
        dict(directions={2: "down"}),
    ):
        found = nearest_change(rules, first, flowers.data, **limit)
        assert not found and found.proven
        with pytest.raises(ValueError, match="there is no change: no allowed change"):
            _ = found.after
        with pytest.raises(IndexError, match="there is no change: no allowed change"):
            found[0]
        assert found.words() == "no change was found" and len(found.after_frame()) == 0
    for wrong, message in (
        ({"target": "rose"}, "target must be one of the classes"),
        ({"target": (1, 2)}, "target must be one of the classes"),
        ({"target": 2}, "target must be one of the classes"),
        ({"fixed": ["x"]}, "fixed must"),
        ({"directions": {length: "left"}}, "directions must be 'up' or 'down'"),
        ({"directions": {"x": "up"}}, "directions must name columns"),
        ({"directions": [length]}, "directions must be a dict"),
        ({"ranges": {length: (3, 1)}}, r"ranges must hold a pair \(low, high\)"),
        ({"ranges": {length: 3}}, r"ranges must hold a pair \(low, high\)"),
        ({"weights": {length: 0}}, "weights must be positive numbers"),
        ({"weights": {length: "2"}}, "weights must be positive numbers"),
        ({"n_changes": 0}, "n_changes must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            nearest_change(rules, first, flowers.data, **wrong)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="x must be one row"):
        nearest_change(rules, flowers.data)
    with pytest.raises(ValueError, match="x must hold finite numbers or missing values"):
        nearest_change(rules, [np.inf, 0, 0, 0])
    with pytest.raises(TypeError, match="model must have predict or be a function"):
        nearest_change(rules, first, flowers.data, model="forest")
    colours = RuleSet((Rule((), Leaf(1.0)),), COLUMNS)
    with pytest.raises(ValueError, match="ranges must list allowed labels of column 'c'"):
        nearest_change(colours, [0, 0, 1], ranges={"c": ["pink"]})
    with pytest.raises(ValueError, match="directions must be 'up' or 'down' for columns of num"):
        nearest_change(colours, [0, 0, 1], directions={"c": "up"})
    with pytest.raises(ValueError, match="target must be a pair"):
        nearest_change(colours, [0, 0, 1], target="3")
    with pytest.raises(ValueError, match="target must be given if model is given"):
        nearest_change(colours, [0, 0, 1], model=lambda Z: Z[:, 0])


def bent(value, breaks=(0.0, 1.0), slope=1.0):
    """A score that falls from value + slope/2 and rises again: two crossings of zero."""
    curve = Curve(0, breaks, ((slope, -4 * slope, 4 * slope),))
    return RuleSet(
        (Rule((), Leaf(value, curves=(curve,), link="logit")),),
        Columns(("u",), (None,)),
        ("no", "yes"),
    )


@pytest.mark.parametrize("X", [np.linspace(0, 1, 11)[:, None], None])
def test_a_curve_is_crossed_where_it_crosses(X):
    rules = bent(-0.5)
    # 0.5 − 4u + 4u² = 0 at u = (1 ± √½) / 2
    change = nearest_change(rules, [0.6], X)
    assert not change.exact and change.prediction == "yes" and not change.proven
    assert 0 <= change.after[0] - (1 + np.sqrt(0.5)) / 2 <= 0.1
    assert nearest_change(rules, [0.4], X).after[0] <= (1 - np.sqrt(0.5)) / 2
    assert len(nearest_change(rules, [0.4], X, n_changes=3)) == 2
    assert not nearest_change(bent(-9), [0.4], X)


def test_cuts_of_a_curve_are_spread_over_its_whole_range():
    assert cuts_of(bent(0.0), 0) == np.linspace(0, 1, 17).tolist()


def test_what_is_said_can_be_read_and_read_back():
    columns = Columns(("<b>pay\n</b>", "job"), (None, ('"x"', "<i>")), (False, False))
    rules = RuleSet(
        (
            Rule(((Split((0,), 2643.5), True),), Leaf((0.1, 0.9))),
            Rule(((Split((1,), categories=(1,)), True),), Leaf((0.2, 0.8))),
            Rule((), Leaf((0.7, 0.3))),
        ),
        columns,
        ("no", "<yes>"),
    )
    X = np.column_stack([1000.0 + 7 * np.arange(600), np.zeros(600)])
    found = nearest_change(rules, [2300, 0], X, n_changes=4)
    assert str(found).splitlines() == [
        "y is no (0.7)",
        r"1. <b>pay\n</b> from 2 300 to at least 2 650: y is <yes> (0.9) (distance 0.225: "
        "sum of steps in robust scales)",
        '2. job from "\\"x\\"" to <i>: y is <yes> (0.8) (distance 1)',
        "no change of other columns alters the prediction: proven",
    ]
    page = found._repr_html_()
    assert "<b>" not in page and "<i>" not in page and "&lt;b&gt;pay" in page and "<table" in page
    frame = found.to_frame()
    assert frame["to"].tolist() == ["at least 2 650", "<i>"] and frame.change.tolist() == [1, 2]
    said = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert said["proven"] and said["changes"][0]["columns"] == {
        "<b>pay\n</b>": {"from": 2300.0, "to": 2650.0, "open_ended": True}
    }
    assert said["changes"][1]["columns"]["job"] == {"from": '"x"', "to": "<i>", "open_ended": False}
    assert isinstance(found, Changes) and isinstance(found[0], Change) and len(found[:2]) == 2
    assert repr(found[0]).startswith("<Change: <b>pay")
    assert str(found[0]) == found[0].to_text()
    assert found.to_html() == page and "model_prediction" not in frame
    assert said["distance_unit"] == "robust scales" and said["model_change"] is None
    whole = found.after_frame()
    assert whole.columns.tolist() == ["<b>pay\n</b>", "job"] and whole.job.tolist() == [
        '"x"',
        "<i>",
    ]
    none = nearest_change(rules, [2300, 0], X, fixed=[0, 1])
    assert none.to_frame().empty and "<table" not in none._repr_html_()
    assert json.loads(none.to_json())["changes"] == []


@pytest.mark.parametrize(
    ("number", "beside", "text"),
    [
        (2300, None, "2 300"),
        (1234567.25, None, "1 234 567.25"),
        (-1500, None, "-1 500"),
        (1e-7, None, "1e-07"),
        (7266.950102837844, 7300, "7 267"),
        (7266.950102837844, 7267, "7 266.950102837844"),
        (0.000123456, 0.2, "0.0001235"),
        (5, 5, "5"),
    ],
)
def test_numbers_are_short_but_differ(number, beside, text):
    assert amount_text(number, beside) == text


class Judge:
    """A model that counts what it is asked, and checks the form of its rows."""

    def __init__(self, answer, like=None):
        self.answer = answer
        self.like = like
        self.sizes = []

    def predict(self, X):
        if self.like is not None:
            assert isinstance(X, pd.DataFrame) and (X.columns == self.like.columns).all()
            assert (X.dtypes == self.like.dtypes).all()
        self.sizes.append(len(X))
        return self.answer(X)


def test_a_model_is_asked_nearest_first_until_it_agrees():
    rules = step(0.5, 0, 1)
    X = np.linspace(0, 1, 101)[:, None]
    judge = Judge(lambda Z: (Z[:, 0] > 0.7).astype(float))
    found = nearest_change(rules, [0.2], X, target=(1, None), model=judge)
    assert found.after[0] == 0.71 and found[0].model_prediction == 1.0 and not found.exact
    assert "the model agrees (" in str(found)
    never = Judge(lambda Z: np.zeros(len(Z)))
    none = nearest_change(rules, [0.2], X, target=(1, None), model=never)
    assert not none and "the model agrees with no change" in none.status
    assert not none.proven and sum(never.sizes) <= 20_000
    absent = nearest_change(rules, [0.2], X, target=(1, None), model=judge, ranges={"u": (0, 0.4)})
    assert not absent and absent.proven and absent.model_change is None
    assert absent.status.startswith(
        "no allowed change alters the prediction of the rules: proven; "
        "the model predicts the target at no row that was tried ("
    )
    by_function = nearest_change(rules, [0.2], X, target=0.5, model=lambda Z: (Z[:, 0] > 0.7) * 1.0)
    assert by_function.after[0] == 0.71
    with pytest.raises(ValueError, match=r"model must predict one label or number per row"):
        nearest_change(rules, [0.2], X, target=(1, None), model=lambda Z: Z.sum())


def two_columns():
    """Rules of the first column alone; the model goes by the second as well."""
    rules = RuleSet(
        (Rule(((Split((0,), 0.5), True),), Leaf((0.0, 1.0))), Rule((), Leaf((1.0, 0.0)))),
        Columns(("u", "v"), (None, None)),
        ("no", "yes"),
    )
    return rules, pd.DataFrame(
        np.random.default_rng(0).random((300, 2)).round(2), columns=["u", "v"]
    )


def test_where_the_rules_have_no_change_the_model_is_tried_alone():
    rules, X = two_columns()
    judge = Judge(lambda F: np.where(F.u + F.v > 1, "yes", "no"), X)
    found = nearest_change(rules, {"u": 0.25, "v": 0.25}, X, model=judge, fixed=["u"])
    assert not found and found.proven and sum(judge.sizes) <= 20_000
    alone = found.model_change
    assert alone.model_prediction == "yes" and alone.prediction == "no" and not alone.exact
    assert alone.features == (1,) and 0.75 < alone.after[1] <= 0.78
    assert "the model alone predicts yes after v from 0.25 to" in str(found)
    assert "not proven" in found.status
    said = json.loads(found.to_json())
    assert said["model_change"]["model_prediction"] == "yes" and said["changes"] == []
    assert found.words() == f"none by the rules; by the model alone, {alone.words()}"
    assert found.after_frame().shape == (0, 2) and list(found.after_frame()) == ["u", "v"]
    lack = "there is no change of the rules; model_change has one of the model alone: v from 0.25"
    with pytest.raises(IndexError, match=lack):
        found[0]
    with pytest.raises(ValueError, match=lack):
        _ = found.after
    assert list(found) == [] and found[:1] == ()
    already = nearest_change(rules, [0.25, 0.9], X, target="yes", model=judge, fixed=["u"])
    assert "the model alone predicts yes already" in already.status


def test_the_model_alone_is_tried_nearer_than_what_the_rules_find():
    rules, X = two_columns()
    judge = Judge(lambda F: np.where((F.u > 0.5) | (F.v > 0.3), "yes", "no"), X)
    found = nearest_change(rules, {"u": 0.05, "v": 0.25}, X, target="yes", model=judge)
    assert [one.features for one in found] == [(0,)]
    alone = found.model_change
    assert alone.features == (1,) and alone.after[1] == 0.31 and alone.distance < found.distance
    assert (alone.prediction, alone.model_prediction) == ("no", "yes") and not alone.exact
    _, first, second, verdict = str(found).splitlines()
    assert first.startswith("the model alone: v from 0.25 to 0.31: y is yes by the model")
    assert "sum of steps" in first and second.startswith(
        "1. u from 0.05 to 0.51: y is yes by the model"
    )
    assert verdict.endswith("at the nearer row of the first line: searched, not proven")
    assert not found.proven
    words = f"{found[0].words()}; the model alone would change after v from 0.25 to 0.31"
    assert found.words() == words and found[0].words() == "u from 0.05 to 0.51"
    html = found.to_html()
    assert 0 < html.index(">the model alone<") < html.index(">1<")
    assert json.loads(found.to_json())["model_change"]["columns"]["v"]["to"] == 0.31
    held = nearest_change(rules, {"u": 0.05, "v": 0.25}, X, model=judge, fixed=["v"])
    assert len(held) == 1 and held.model_change is None and held.words() == held[0].words()
    assert "it alone predicts the target at no nearer row" in held.status


@pytest.mark.parametrize("n_calls", [60, 120])
def test_a_third_of_a_budget_is_kept_for_the_model_alone(n_calls):
    rules, X = two_columns()
    judge = Judge(lambda F: np.where((F.u > 0.5) | (F.v > 0.26), "yes", "no"), X)
    row = {"u": 0.45, "v": 0.25}
    found = nearest_change(rules, row, X, target="yes", model=Budgeted(judge, n_calls))
    assert sum(judge.sizes) <= n_calls and found[0].features == (0,)
    assert found.model_change.after[1] == 0.27


@pytest.mark.parametrize("form", [dict, pd.Series])
def test_a_row_with_names_gives_the_model_names(form):
    rules, X = two_columns()
    judge = Judge(lambda F: np.where(F.u + F.v > 1, "yes", "no"), X)
    found = nearest_change(rules, form({"v": 0.25, "u": 0.25}), model=judge, n_changes=2)
    assert found and set(found.to_frame().model_prediction) == {"yes"}
    assert (judge.predict(found.after_frame()) == "yes").all()
    assert "sum of steps in units of the columns" in str(found)


def test_the_model_is_given_the_order_of_its_columns():
    rules, X = two_columns()
    X = X[["v", "u"]]
    judge = Judge(lambda F: np.where(F.u > 0.7, "yes", "no"), X)
    found = nearest_change(rules, {"u": 0.25, "v": 0.9}, X, model=judge, n_changes=3)
    assert [one.features for one in found] == [(0,)] and found.after[0] > 0.7


def test_what_the_model_says_now_is_what_has_to_change():
    """The rules say yes already, the model no."""
    rules = RuleSet(
        (Rule(((Split((0,), 0.5), True),), Leaf((0.0, 1.0))), Rule((), Leaf((1.0, 0.0)))),
        Columns(("u",), (None,)),
        ("no", "yes"),
    )
    X = np.linspace(0, 1, 101)[:, None]
    model = Judge(lambda Z: np.where(Z[:, 0] > 0.7, "yes", "no"))
    found = nearest_change(rules, [0.6], X, model=model)
    assert found.after[0] == 0.71 and found.current == "y is no by the model"


def test_the_model_gets_frames_such_as_it_was_trained_on():
    rng = np.random.default_rng(3)
    X = mixed_frame(rng, 300).assign(count=rng.integers(0, 9, 300))
    y = np.where((X["size"].fillna(0) > 0.3) ^ X.yes, "no", "yes")
    model = ProxyTreeClassifier(size=6, random_state=0).fit(X, y)
    judge = Judge(lambda F: np.where((F["size"].fillna(0) > 0.5) ^ F.yes, "no", "yes"), X)
    n_found = 0
    for i in range(12):
        found = nearest_change(model, X.iloc[[i]], X, model=judge, n_changes=2)
        now = judge.predict(X.iloc[[i]])[0]
        assert all(change.model_prediction != now for change in found)
        n_found += bool(found)
    assert n_found == 12


@each([setting for setting in SETTINGS if not setting.name.startswith("meta-trees")])  # no rules_
def test_every_estimator_and_gaps(setting):
    rng = np.random.default_rng(5)
    X = mixed_frame(rng, 120)
    if setting.numbers_only:
        X = pd.DataFrame(rng.normal(size=(120, 3)).round(2), columns=["size", "b", "c"])
    t = X["size"].fillna(0) + (0 if setting.numbers_only else X.yes * 1.0)
    y = np.where(t > t.median(), "high", "low") if setting.is_classifier else 3.0 * t + 10
    model = setting.fresh(random_state=0).fit(X, y)
    wanted = {} if setting.is_classifier else dict(target=(float(np.quantile(y, 0.6)), None))
    rules = model.rules_
    n_changes = 0
    for i in range(6):
        row = X.iloc[[i]]
        try:
            before = rules.predict(row)[0]
        except ValueError:  # its equation meets a gap
            continue
        found = nearest_change(model, row, X, **wanted, n_changes=2)
        for change in found:
            after = rules.predict(change.after[None])[0]
            assert after != before if setting.is_classifier else after >= wanted["target"][0]
            assert np.isnan(change.after).tolist() == np.isnan(change.before).tolist()
            assert change.words() in str(found)
        n_changes += len(found)
    assert n_changes


def test_an_explanation_and_its_forest():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((300, 3)).round(3), columns=list("abc"))
    y = 10 * X.a + 5 * (X.b > 0.5)
    forest = RandomForestRegressor(30, random_state=0).fit(X, y)
    told = explain(forest, X, max_rules=5, method="tree", random_state=0)
    tree = ProxyTreeRegressor(size=5).fit(X, y).tree_
    low = X.iloc[[int(y.argmin())]]
    assert nearest_change(tree, low, X, target=(8, None)).proven
    found = nearest_change(told, low, X, target=(8, None), model=forest, n_changes=2)
    assert found and all(forest.predict(low * 0 + change.after)[0] >= 8 for change in found)


@pytest.mark.slow
def test_rules_always_flip_and_the_model_mostly():
    """As the measured tier does on australian and pima, on a table that is always there."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, [0, 1, 4, 6, 7, 20, 21, 27]]
    train, test, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(train, y_train)
    rules = ProxyTreeClassifier(model, size=6, random_state=0).fit(train).rules_
    rows = test.iloc[:10]
    flipped = agreed = 0
    for i in range(len(rows)):
        row = rows.iloc[[i]]
        found = nearest_change(rules, row, train)
        flipped += rules.predict(found.after[None])[0] != rules.predict(row)[0]
        told = nearest_change(rules, row, train, model=model)
        assert int(re.search(r"(\d+) rows queried", told.status)[1]) <= 20_000
        after = pd.DataFrame(told.after[None], columns=X.columns) if told else row
        agreed += model.predict(after)[0] != model.predict(row)[0]
    assert flipped == len(rows) and agreed >= 0.9 * len(rows)


@pytest.mark.slow
def test_a_change_that_the_model_joins_is_not_beaten_by_holding_one_of_its_columns():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.3).astype(int)
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    rules = explain(forest, X, y, random_state=0)
    missed = []
    for row in X[:12]:
        found = nearest_change(rules, row, X, model=forest)
        if not found:
            continue
        others = [nearest_change(rules, row, X, model=forest, fixed=[j]) for j in found.features]
        nearer = min((other.distance for other in others if other), default=np.inf)
        missed.append(nearer < 0.99 * found.distance)
        assert " by the model" in found.to_html()
    assert len(missed) >= 9 and np.mean(missed) <= 0.1


def _counting_model(asked):
    def model(rows):
        asked.append(len(rows))
        return np.where(rows[:, 0] + 0.3 * rows[:, 1] > 0.9, "yes", "no")

    return model


@pytest.mark.parametrize("n_calls", [2, 10, 60])
def test_a_budget_of_calls_is_never_exceeded_and_answers_come_out_of_the_file(tmp_path, n_calls):
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 3))
    y = np.where(X[:, 0] > 0.2, "yes", "no")
    rules = ProxyTreeClassifier(size=2).fit(X, y)
    x = np.array([-0.5, 0.0, 0.0])
    first, again, free = [], [], []
    cache = tmp_path / "answers"
    changes = nearest_change(rules, x, X, model=Budgeted(_counting_model(first), n_calls, cache))
    assert sum(first) <= n_calls
    same = nearest_change(rules, x, X, model=Budgeted(_counting_model(again), n_calls, cache))
    assert str(same) == str(changes) and sum(again) <= 2
    for change in changes:
        assert _counting_model([])(change.after[None])[0] == "yes" == str(change.model_prediction)
    unlimited = nearest_change(rules, x, X, model=_counting_model(free))
    wide = nearest_change(rules, x, X, model=Budgeted(_counting_model([]), 10**6))
    assert np.array_equal(wide.after, unlimited.after) and unlimited.changes


@pytest.mark.parametrize(
    ("cuts", "x", "how"),
    [
        # rounding 31.0000004 to six digits would leave the range, below
        ((30.0,), 25.0, {"ranges": {"u": (31.0000004, 60)}}),
        # and here above
        ((30.0,), 40.0, {"ranges": {"u": (0, 29.9999996)}}),
        # and here the other way than it may
        ((1.0, 1.0000005), 1.0000004, {"directions": {"u": "up"}}),
    ],
)
def test_rounding_keeps_to_ranges_and_directions(cuts, x, how):
    rules = RuleSet(
        tuple(
            Rule(((Split((0,), cut), False),) if np.isfinite(cut) else (), Leaf(shares))
            for cut, shares in zip([*cuts, np.inf], 2 * [(1.0, 0.0), (0.0, 1.0)], strict=False)
        ),
        Columns(("u",), (None,)),
        ("no", "yes"),
    )
    now = rules.predict([[x]])[0]
    judge = Judge(lambda Z: rules.predict(Z))
    for model in (None, judge):
        found = nearest_change(rules, [x], model=model, **how)
        assert found and rules.predict(found.after[None])[0] != now
        low, high = how.get("ranges", {"u": (-np.inf, np.inf)})["u"]
        assert low <= found.after[0] <= high
        assert "directions" not in how or found.after[0] > x


class Shares(Judge):
    """A model with probabilities of its own, of which it makes its answers."""

    def __init__(self, share, like=None, classes=("no", "yes")):
        super().__init__(lambda Z: np.where(share(Z) > 0.5, *classes[::-1]), like)
        self.classes_ = np.array(classes)
        self.share = share

    def predict_proba(self, X):
        self.sizes.append(len(X))
        return np.column_stack([1 - self.share(X), self.share(X)])


def test_how_narrowly_the_models_answer_holds_is_said_before_and_after():
    rules, X = two_columns()
    judge = Shares(lambda F: 1 / (1 + np.exp(-4 * (F.u + 2 * F.v - 1.4001))), X)
    now = {"u": 0.4, "v": 0.4}
    found = nearest_change(rules, now, X, model=judge)
    share = judge.predict_proba(pd.DataFrame([now]))[0]
    assert found.current == f"y is no by the model (probability {share[0]:.3g})"
    every = [found[0], found.model_change]
    frame = found.after_frame()
    for change in every:
        after = judge.predict_proba(pd.DataFrame([change.after], columns=["u", "v"]))[0, 1]
        assert np.isclose(change.model_probability, after) and after > 0.5
        assert np.isclose(change.model_probability_before, share[1])
        assert f"yes by the model (probability of yes {after:.3g}, before {share[1]:.3g})" in str(
            change
        )
        assert (change.model_prediction_before, change.model_prediction) == ("no", "yes")
    assert np.isclose(found.to_frame().model_probability[0], judge.predict_proba(frame)[0, 1])
    said = json.loads(found.to_json())["changes"][0]
    assert np.isclose(said["model_probability"], every[0].model_probability)
    assert np.isclose(said["model_probability_before"], share[1])
    assert "(probability " in found.to_html()


def test_probabilities_that_hardly_differ_are_distinguished():
    rules, X = two_columns()
    judge = Shares(lambda F: 0.5 + 1e-5 * (F.u + 0.01 * F.v - 0.6), X)
    found = nearest_change(rules, {"u": 0.55, "v": 0.5}, X, model=judge)
    after, before = found[0].model_probability, found[0].model_probability_before
    assert f"{after:.3g}" == f"{before:.3g}" and after > 0.5 > before
    told = re.search(r"\(probability of \w+ ([\d.]+), before ([\d.]+)\)", str(found[0]))
    assert float(told[1]) > float(told[2])


def test_each_row_is_queried_once_and_counted():
    rules, X = two_columns()
    judge = Judge(lambda F: np.where(F.u + F.v > 1, "yes", "no"), X)
    found = nearest_change(rules, {"u": 0.25, "v": 0.25}, X, model=judge)
    assert f"({sum(judge.sizes)} rows queried)" in found.status


@pytest.mark.parametrize("n_calls", [None, 60])
def test_a_model_without_probabilities_or_on_a_budget_has_none(n_calls):
    rules, X = two_columns()
    share = lambda F: 1.0 * (F.u > 0.6)  # noqa: E731
    judge = Judge(lambda F: np.where(share(F) > 0.5, "yes", "no"), X)
    judge = judge if n_calls is None else Shares(share, X)
    model = judge if n_calls is None else Budgeted(judge, n_calls)
    found = nearest_change(rules, {"u": 0.25, "v": 0.25}, X, model=model)
    assert found and found[0].model_probability is None and "probability" not in str(found)
    assert "model_probability" not in found.to_frame() and "model_prediction" in found.to_frame()
    assert n_calls is None or sum(judge.sizes) <= n_calls


def test_of_numbers_the_models_answer_before_is_said():
    rules = step(0.5, 0, 1)
    X = np.linspace(0, 1, 101)[:, None]
    found = nearest_change(rules, [0.2], X, target=(0.6, None), model=lambda Z: Z[:, 0])
    assert str(found[0]).endswith("u from 0.2 to 0.6: y is 0.6 by the model (before 0.2)")


def test_whole_numbers_stay_whole_by_name_and_as_an_explanation_knows_them():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"share": rng.random(300), "age": rng.integers(18, 80, 300)})
    model = RandomForestClassifier(20, random_state=0).fit(X, X.age + 20 * X.share > 50)
    told = explain(model, X, random_state=0)
    row = X[X.age == 40].iloc[[0]]
    changes = [
        nearest_change(rules, x, fixed=["share"])
        for rules in (told, told.rules)
        for x in (row, row[["age", "share"]])
    ]
    changes += [nearest_change(told, x, fixed=["share"]) for x in (row.iloc[0], dict(row.iloc[0]))]
    assert len({change.after[1] for change in changes}) == 1 and changes[0].after[1] % 1 == 0
    free = nearest_change(told.rules, row[["age", "share"]], fixed=["age"])
    assert not free or 0 < free.after[0] < 1  # the share is not taken for a whole number


def plain_search(d, accepts, **limits):
    """Return a `LocalSearch` from 0 over columns from 0 to 4 without a table."""
    columns = Columns(tuple("abcd"[:d]), (None,) * d, ranges=((0.0, 4.0),) * d)
    rules = RuleSet((Rule((), Leaf(0.0)),), columns)
    x = np.zeros(d)
    return LocalSearch(make_goal(rules, x), x, feature_space(rules, **limits), None, accepts)


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_a_feature_that_stays_may_replace_one_that_moves(seed, d):
    """The nearest point of a half-space moves the feature of the largest slope alone."""
    rng = np.random.default_rng(seed)
    slope = rng.uniform(0.3, 3, d)
    search = plain_search(d, lambda Z: Z @ slope >= 1, fixed=["d"] if d == 4 else [])
    j = int(rng.integers(min(d, 3)))
    row = np.where(np.arange(d) == j, 1 / slope[j] * (1 + 1e-9), 0.0)
    found = search.improve(row)
    assert found @ slope >= 1 and (d < 4 or found[3] == 0)
    before, after = distance(search.x, np.array([row, found]), search.space)
    best = 1 / slope[:3].max()
    assert after <= before
    assert before < 1.3 * best or after < 0.95 * before


@pytest.mark.slow
def test_changes_that_the_model_joins_are_written_as_the_table_is():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"mass": rng.uniform(20, 50, 500).round(1), "age": rng.integers(20, 80, 500)})
    y = np.where(X.mass + X.age / 2 + rng.normal(size=500) > 60, "yes", "no")
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    rules = explain(forest, X, y, random_state=0)
    for i in range(10):
        found = nearest_change(rules, X.iloc[i], X, model=forest)
        for change in [*found, found.model_change]:
            if change is not None:
                mass, age = change.after
                assert np.isclose(mass, round(mass, 1), atol=1e-12) and age == round(age)


def test_moves_continue_until_none_is_nearer():
    """The nearest point of a sphere lies on an axis; two exchanges lead there."""
    search = plain_search(3, lambda Z: (Z**2).sum(axis=1) >= 4)
    found = search.improve(np.array([1.5, 1.5, 1.5]))
    assert search.accepts(found[None])[0]
    assert distance(search.x, found[None], search.space)[0] < 2.05


def test_numbers_beside_the_changed_one_are_tried():
    search = plain_search(1, lambda Z: Z[:, 0] >= 999, whole=[0])
    assert search.improve(np.array([1000.0])).tolist() == [999.0]


def test_every_value_of_a_column_is_tried():
    """The model turns at one value in four hundred, which no spread of steps would meet."""
    X = np.random.default_rng(0).permuted(np.tile(np.arange(400.0), (2, 1)), axis=1).T
    rules = RuleSet(
        (Rule(((Split((0,), 329.5), False),), Leaf((1.0, 0.0))), Rule((), Leaf((0.0, 1.0)))),
        Columns(("u", "v"), (None, None)),
        classes=("no", "yes"),
    )
    model = Judge(lambda F: np.where((F.u >= 330) | (F.v == 237), "yes", "no"), None)
    frame = pd.DataFrame(X, columns=["u", "v"])
    assert (rules.predict(frame) == np.where(frame.u >= 330, "yes", "no")).all()
    found = nearest_change(rules, {"u": 20.0, "v": 200.0}, frame, model=model)
    assert found[0].after.tolist() == [330.0, 200.0]
    assert found.model_change.after.tolist() == [20.0, 237.0]


@pytest.mark.slow
def test_other_changes_are_those_that_holding_columns_finds():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, [0, 1, 4, 6, 7, 20]]
    forest = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    rules = explain(forest, X, y, max_rules=6, random_state=0)
    fewer = missed = 0
    for i in range(10, 200, 20):
        found = nearest_change(rules, X.iloc[[i]], X, model=forest, n_changes=3)
        alone = found.model_change
        assert alone is None or alone.prediction == forest.predict(X.iloc[[i]])[0]
        assert list(found) == sorted(found, key=lambda change: change.distance)
        if not 0 < len(found) < 3:
            continue
        fewer += 1
        for held in product(*(one.features for one in found)):
            if nearest_change(rules, X.iloc[[i]], X, model=forest, fixed=sorted(set(held))):
                missed += 1
                break
    assert fewer >= 4 and missed == 0


@pytest.mark.slow
def test_a_change_that_the_model_is_sure_of():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:, [0, 1, 4, 6, 7, 20]], np.where(y, "benign", "malignant")
    forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0).fit(X, y)
    rules = explain(forest, X, y, max_rules=5, random_state=0)
    further = []
    for i in range(0, 300, 50):
        close = nearest_change(rules, X.iloc[i], X, model=forest)
        sure = nearest_change(rules, X.iloc[i], X, model=forest, min_probability=0.75)
        alone = sure.model_change
        assert alone is None or alone.prediction == forest.predict(X.iloc[[i]])[0]
        for change in [*sure, alone]:
            if change is not None:
                after = pd.DataFrame(change.after[None], columns=X.columns)
                assert forest.predict_proba(after).max() >= 0.75
                assert forest.predict(after)[0] != forest.predict(X.iloc[[i]])[0]
        if close and sure:
            assert "for a probability of at least 0.75" in sure.status
            further.append(sure.distance - close.distance)
    assert len(further) >= 4 and np.mean(np.array(further) > 0) > 0.5
    assert np.min(further) > -0.1  # both are found by trying


@pytest.mark.parametrize(
    "options",
    [
        {"min_probability": 1.2, "model": RandomForestClassifier()},
        {"min_probability": True, "model": RandomForestClassifier()},
        {"min_probability": 0.8},
        {"min_probability": 0.8, "model": lambda Z: np.full(len(Z), "yes")},
    ],
)
def test_a_least_probability_that_cannot_be_had_is_refused(options):
    X = np.arange(40.0)[:, None]
    rules = ProxyTreeClassifier(size=2).fit(X, np.where(X[:, 0] < 20, "no", "yes"))
    with pytest.raises(ValueError, match="min_probability"):
        nearest_change(rules, [12.0], X, **options)


def boosted_cross(n=300):
    """A table, a boosting of it that turns at crossed signs, and rules that explain it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    y = np.where((X.a > 0) ^ (X.b > 0), "yes", "no")
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    return X, model, explain(model, X, y, max_rules=2, random_state=0)


def test_of_columns_that_may_not_move_the_model_is_asked_about_the_row_alone():
    X, model, rules = boosted_cross()
    asked = []

    def answers(Z):
        asked.append(Z.drop_duplicates())
        assert len(asked[-1]) == len(Z)
        return model.predict(Z)

    x = X.iloc[0]
    assert len(nearest_change(rules, x, X, model=answers, fixed=["a", "b"])) == 0
    assert all((Z == x).all(axis=None) for Z in asked)
    asked.clear()
    nearest_change(rules, x, X, model=answers)
    assert max(len(Z) for Z in asked) > 20


def test_a_model_that_gives_the_answer_already_is_told_so():
    X, model, rules = boosted_cross()
    said, by_rules = model.predict(X), rules.predict(X)
    both = int(np.flatnonzero(said == by_rules)[0])
    found = nearest_change(rules, X.iloc[both], X, model=model, target=said[both])
    assert found.words() == "no change is needed" and found.distance == 0
    assert "nearer" not in str(found)
    differ = int(np.flatnonzero(said != by_rules)[0])
    found = nearest_change(rules, X.iloc[differ], X, model=model, target=said[differ])
    assert found.words().endswith("the model already predicts the target")
    assert "would turn after" not in found.words()


def test_numbers_beyond_the_table_are_told():
    X = pd.DataFrame({"age": np.arange(20.0, 60.0), "dose": np.arange(40.0) % 7})
    model = ProxyTreeClassifier(size=2).fit(X, np.where(X["age"] < 40, "no", "yes"))
    row = X.iloc[[0]].assign(age=150.0)
    with pytest.warns(UserWarning, match=r"beyond the rows of X in 'age' \(150, there 20 to 59\)"):
        changes = nearest_change(model, row, X)
    assert str(changes.prediction) == "no"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nearest_change(model, X.iloc[[0]], X)
        nearest_change(model, X.iloc[[0]].assign(dose=np.nan), X)


def test_single_numbers_come_back_by_the_decimals_of_their_column():
    X = pd.DataFrame(
        np.random.default_rng(0).normal(20, 5, size=(300, 2)).round(1), columns=["a", "b"]
    )

    y = np.where(X["a"] + X["b"] > 42.3, "yes", "no")
    model = RandomForestClassifier(30, random_state=0).fit(X, y)
    rules = explain(model, X, random_state=0, max_rules=4, n_init=1, n_perturbations=2)
    for i in np.flatnonzero(y == "no")[:12]:
        x = X.iloc[[i]]
        found = nearest_change(rules, x, X, model=model)
        for one in [*found, *filter(None, [found.model_change])]:
            for name, _, _ in one.steps():
                j = list(X.columns).index(name)
                back = pd.DataFrame([one.after], columns=X.columns)
                back[name] -= np.sign(one.after[j] - one.before[j]) * 0.1
                back = back.round(1)
                agree = model.predict(back)[0] == "yes" and (
                    one is found.model_change or rules.predict(back)[0] == "yes"
                )
                assert not agree or back[name][0] == x[name].iloc[0]


def test_rules_of_an_explanation_say_that_the_model_was_not_asked():
    X, y = load_breast_cancer(return_X_y=True)
    rules = explain(RandomForestClassifier(20, random_state=0).fit(X, y), X, y, random_state=0)
    said = nearest_change(rules, X[0], X).current
    assert said.endswith(" by the rules; RandomForestClassifier itself was not queried (model=)")
    assert "asked" not in nearest_change(rules.rules, X[0], X, model=rules.predict).current
