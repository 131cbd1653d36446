"""The nearest change is held against a grid of every row there is."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.random_rules import random_rules
from sklearn.datasets import load_iris

from fabinterp.change import (
    distance,
    feature_space,
    make_goal,
    nearest_change,
    rule_with_answer,
)
from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split
from fabinterp.rules.ruleset import RuleSet

CORNERS = np.array([[-1.0, -1, 0], [1, 1, 2]])
UNIT = np.array([0.7, 1.3, 1.0])
LINE = np.linspace(-1, 1, 41)
GRID = np.array(list(product(LINE, LINE, [0.0, 1, 2])))


@examples(150)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["labels", "numbers", "lines", "logit", "softmax"]), st.booleans(),
       st.booleans(), st.booleans())  # fmt: skip
def test_no_row_of_a_grid_is_nearer(seed, kind, slanted, gap, held):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, kind, slanted)
    x = np.array([*rng.uniform(-1, 1, 2), rng.integers(3)])
    x[rng.integers(3) if gap else []] = np.nan
    by = (
        None
        if kind in ("labels", "logit", "softmax")
        else rng.choice([0.5, 1.5])
        if kind == "lines"
        else None
    )
    fixed = ["u"] if held else []
    if by is not None and rule_with_answer(rules, x[None])[0] < 0:
        return
    change = nearest_change(rules, x, CORNERS, scales=UNIT, by=by, fixed=fixed)
    goal = make_goal(rules, x, None, by)
    space = feature_space(rules, CORNERS, UNIT, fixed)
    rows = np.where(np.isnan(x) | ~space.free, x, GRID)
    met = goal.is_met(rows)
    best = distance(x, rows[met], space).min() if met.any() else np.inf
    if change is None:
        assert best == np.inf
        return
    straight = not slanted and kind in ("labels", "numbers")
    assert change.exact and change.distance <= best + (
        1e-12 if straight else 0.021
    )  # rounding costs 0.01 a feature
    assert goal.is_met(change.after[None])[0] and np.isfinite(change.distance)
    assert change.distance == distance(x, change.after[None], space)[0]
    assert (
        change.prediction == rules.predict(change.after[None])[0]
        and change.rule == rules.apply(change.after[None])[0]
    )
    assert np.isnan(change.after).tolist() == np.isnan(x).tolist() and (
        not held or 0 not in change.features
    )


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_a_straight_change_is_tight(seed):
    """Half a millionth of the way back, the answer is the old one."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, "labels", False)
    x = np.array([*rng.uniform(-1, 1, 2), rng.integers(3)])
    change = nearest_change(rules, x, CORNERS, scales=UNIT)
    goal = make_goal(rules, x)
    for j in change.features if change else ():
        back = change.after.copy()
        back[j] += 5e-7 * (x[j] - back[j]) if j < 2 else x[j] - back[j]
        assert not goal.is_met(back[None])[0]


def test_distance_counts_units_and_labels_and_forbids_the_rest():
    rules = random_rules(np.random.default_rng(0), "labels", False)
    space = feature_space(rules, CORNERS, UNIT, ["v"])
    x = np.array([0.0, 0.0, 1.0])
    rows = np.array([[0.7, 0, 0], [0, 0.1, 1], [np.nan, 0, 1], [0, 0, 1], [-0.35, 0, 1]])
    assert distance(x, rows, space).tolist() == [2.0, np.inf, np.inf, 0.0, 0.5]


def test_the_first_match_counts():
    """The second rule's own border is nearest, but the first rule, with the old answer, covers it."""
    rules = RuleSet((Rule(((Split((0,), 1.0), True), (Split((0,), 2.0), False)), Leaf(0.0)),
                     Rule(((Split((0,), 1.0), True),), Leaf(5.0)), Rule((), Leaf(0.0))),
                    Columns(("u",), (None,)))  # fmt: skip
    change = nearest_change(rules, [0.5])
    assert change.after[0] == np.nextafter(2.0, 3) and change.rule == 1 and change.prediction == 5.0


def test_an_equation_is_crossed_at_a_round_number():
    rules = RuleSet((Rule((), Leaf(0.0, (0,), (3.0,))),), Columns(("u",), (None,)))
    change = nearest_change(rules, [0.1], by=1)
    assert abs(change.prediction - 0.3) >= 1 and change.after[0] in (0.44, -0.24) and change.exact


def test_a_wanted_label_and_what_is_refused():
    flowers = load_iris(as_frame=True)
    conditions = [((Split((2,), 2.45), False),), ((Split((3,), 1.75), False),), ()]
    names = tuple(flowers.target_names)
    rules = RuleSet(tuple(Rule(c, Leaf(tuple(np.eye(3)[k]))) for k, c in enumerate(conditions)),
                    Columns(tuple(flowers.data.columns), (None,) * 4), names)  # fmt: skip
    first = flowers.data.iloc[[0]]
    near = nearest_change(rules, first, flowers.data)
    far = nearest_change(rules, first, flowers.data, to="virginica")
    assert near.prediction == "versicolor" and near.features == (2,) and near.exact
    assert far.prediction == "virginica" and far.features == (2, 3) and far.distance > near.distance
    assert nearest_change(rules, first, flowers.data, fixed=["petal length (cm)"]) is None
    for wrong, word in (({"to": "rose"}, "to must"), ({"by": 2}, "by must"), ({"fixed": ["x"]}, "fixed must"),
                        ({"scales": [0, 1, 1, 1]}, "scales must")):  # fmt: skip
        with pytest.raises(ValueError, match=word):
            nearest_change(rules, first, flowers.data, **wrong)
    with pytest.raises(ValueError, match="x must be one row"):
        nearest_change(rules, flowers.data)


def bent(value, breaks=(0.0, 1.0), slope=1.0):
    """A score that falls from value + slope/2 and rises again: two crossings of zero."""
    curve = Curve(0, breaks, ((slope, -4 * slope, 4 * slope),))
    return RuleSet(
        (Rule((), Leaf(value, curves=(curve,), link="logit")),),
        Columns(("u",), (None,)),
        ("no", "yes"),
    )


def test_a_curve_is_crossed_where_it_crosses():
    rules = bent(-0.5)
    X = np.linspace(0, 1, 11)[:, None]
    # 0.5 − 4u + 4u² = 0 at u = (1 ± √½) / 2
    change = nearest_change(rules, [0.6], X)
    assert not change.exact and change.prediction == "yes"
    assert 0 <= change.after[0] - (1 + np.sqrt(0.5)) / 2 < 0.01 * feature_space(rules, X).scales[0]
    assert nearest_change(rules, [0.4], X).after[0] <= (1 - np.sqrt(0.5)) / 2
