"""Contributions add up to the prediction, whatever predicts; their squares are scikit-learn's importances."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.estimators import ONE_OF_EACH, SETTINGS, each
from shared.random_rules import random_rules
from shared.tables import mixed_frame
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from fabinterp import (
    MetaTreeRegressor,
    ObliqueAdditiveClassifier,
    PiecewiseLinearRegressor,
    ProxyLinearClassifier,
    ProxyLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    explain,
    explain_row,
    load_rules,
    plot_row,
)
from fabinterp.forests.reading import read_ensemble
from fabinterp.rules.contributions import (
    Contribution,
    MeasuredModel,
    RowExplanation,
    feature_importances,
    measure_by_supports,
    measure_on_rows,
)
from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split, encode, read_columns
from fabinterp.rules.ruleset import RuleSet, Tree

pytestmark = [
    pytest.mark.filterwarnings("ignore:FIC still rises"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
named = {"ids": lambda setting: setting.name}


def table(setting, n=120, n_classes=2):
    """Draw X (n, 4), of which the last column is noise, and the target y (n,)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).round(2)
    t = np.where(X[:, 0] > 0.3, 2 + X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=n)
    if setting.is_classifier:
        return X, np.digitize(t, np.quantile(t, np.arange(1, n_classes) / n_classes))
    return X, t


def sum_of_steps(steps):
    """Return the outputs (K,) that `RowSteps` add up to."""
    return steps.base + steps.contributions.sum(axis=0)


def total(found):
    """Return what the parts of a `RowExplanation` add up to."""
    parts = sum(part.contribution for part in found.contributions)
    return found.base + parts


def assert_adds_up(found, model, rows):
    """The parts give the prediction for `rows`, one of them, as the model says it."""
    assert np.isclose(total(found), found.prediction, rtol=1e-9, atol=1e-12)
    answer = model.predict(rows)[0]
    if found.label is None:
        assert np.isclose(found.prediction, answer, rtol=1e-9, atol=1e-9)
        return
    shares = model.predict_proba(rows)[0]
    told = found.prediction if np.isnan(found.probability) else found.probability
    at = list(model.classes_).index(found.label)
    assert np.isclose(told, shares[at], rtol=1e-9, atol=1e-9)
    assert not np.isnan(found.probability) or "probability" in found.scale


# ------------------------------------------------------------------ every estimator


@each()
@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_add_up(setting, n_classes):
    X, y = table(setting, n_classes=n_classes)
    model = setting.fresh(random_state=0).fit(X, y)
    for x in X[:12]:
        found = explain_row(model, x)
        assert isinstance(found, RowExplanation)
        assert_adds_up(found, model, x[None])
        predicted = model.predict(x[None])[0]
        if not setting.is_classifier:
            assert np.isclose(found.answer, predicted)
        else:
            assert found.label == found.answer == predicted
            for label in model.classes_:
                other = explain_row(model, x, label=label)
                assert other.label == label
                assert_adds_up(other, model, x[None])


@each([setting for setting in SETTINGS if not setting.numbers_only])
def test_parts_add_up_on_a_table_of_everything(setting):
    rng = np.random.default_rng(3)
    frame = mixed_frame(rng, 120)
    if not get_tags(setting.estimator).input_tags.allow_nan or "lines" in setting.name:
        frame["size"] = frame["size"].fillna(0.0)
    t = np.where(frame["colour"].isin(["red", "black"]), 2.0, 0.0) + frame["yes"]
    t = t + 0.3 * rng.normal(size=120)
    y = np.where(t > 1.5, "in", "out") if setting.is_classifier else t
    model = setting.fresh(random_state=0).fit(frame, y, rng.integers(0, 3, 120))
    for k in range(12):
        found = explain_row(model, frame.iloc[k])
        assert_adds_up(found, model, frame.iloc[[k]])
        for same in (frame.iloc[[k]], frame.iloc[k].to_dict()):
            assert explain_row(model, same).to_dict() == found.to_dict()
    assert np.isclose(model.feature_importances_.sum(), 1.0)


@each(ONE_OF_EACH)
def test_importances_are_shares(setting):
    X, y = table(setting)
    X[:, 2] = 1.0  # says nothing
    model = setting.fresh(random_state=0).fit(X, y)
    share = model.feature_importances_
    assert share.shape == (4,) and (share >= 0).all() and np.isclose(share.sum(), 1.0)
    assert share[2] == 0.0 and share[:2].sum() > 0.7
    assert np.array_equal(feature_importances(pickle.loads(pickle.dumps(model))), share)
    assert np.array_equal(
        setting.fresh(random_state=0, n_jobs=2).fit(X, y).feature_importances_, share
    )
    scaled = setting.fresh(random_state=0).fit(X * np.array([1024.0, 1.0, 1.0, 0.25]), y)
    assert np.allclose(scaled.feature_importances_, share, atol=1e-6)


@each([setting for setting in ONE_OF_EACH if not setting.is_classifier])
def test_a_constant_has_no_importances(setting):
    X, _ = table(setting)
    model = setting.fresh(random_state=0).fit(X, np.full(len(X), 0.1))
    assert not model.feature_importances_.any()
    assert explain_row(model, X[0]).lines()[0][2] == "0.1"


def test_importances_follow_their_columns():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(X.shape[1])
    for model in (ProxyTreeRegressor(size=6), ProxyLinearRegressor()):
        share = model.fit(X, y).feature_importances_
        again = model.fit(X.iloc[:, order], y).feature_importances_
        assert np.allclose(again, share[order], atol=1e-6)


def test_nothing_is_known_before_fit():
    for setting in ONE_OF_EACH:
        assert not hasattr(setting.fresh(), "feature_importances_")
        with pytest.raises(NotFittedError):
            explain_row(setting.fresh(), [1.0])


def test_scikit_learn_selects_by_them():
    X, y = load_iris(return_X_y=True, as_frame=True)
    chosen = SelectFromModel(ProxyTreeClassifier(size=3)).fit(X, y)
    assert set(chosen.get_feature_names_out()) <= {"petal length (cm)", "petal width (cm)"}
    ranked = RFE(ProxyLinearRegressor(), n_features_to_select=2).fit(X, y)
    assert ranked.support_.sum() == 2 and ranked.support_[2:].any()
    for setting in ONE_OF_EACH:
        X, y = table(setting)
        estimator = setting.fresh(random_state=0)
        if not setting.numbers_only:
            assert SelectFromModel(estimator, threshold=0.1).fit(X, y).get_support()[0], (
                setting.name
            )


# ------------------------------------------------------------------ against other ways


def plain_steps(tree, Z, w, x, outputs):
    """Base and contributions (d, K) of a tree of straight cuts, from rows that answered alike."""
    along = np.ones(len(Z), dtype=bool)
    found = np.zeros((Z.shape[1], outputs.shape[1]))
    node = 0
    while tree.splits[node] is not None:
        split = tree.splits[node]
        before = np.average(outputs[along], axis=0, weights=w[along])
        side = split(x[None])[0]
        along &= split(Z) == side
        found[split.features[0]] += np.average(outputs[along], axis=0, weights=w[along]) - before
        node = tree.yes[node] if side else tree.no[node]
    return np.average(outputs, axis=0, weights=w), found


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
@given(seed=st.integers(0, 10_000))
@examples(30)
def test_a_tree_is_the_plain_version_and_scikit_learns_importances(kind, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(80, 3)).round(1)
    y = rng.integers(0, 3, 80) + (Z[:, 0] > 0)
    w = rng.integers(1, 4, 80).astype(float)
    grown = kind(max_leaf_nodes=int(rng.integers(2, 12)), random_state=0).fit(Z, y, w)
    tree = read_ensemble(grown, read_columns(Z)).trees[0]
    measured = measure_on_rows(tree, Z, w)
    assert isinstance(measured, MeasuredModel)
    outputs = tree.predict(Z)[:, None] if tree.classes is None else tree.predict_proba(Z)
    for x in Z[:5]:
        base, found = plain_steps(tree, Z, w, x, outputs)
        steps = measured.explain(x)
        assert np.allclose(steps.base, base) and np.allclose(steps.contributions, found)
    squares = measured.importances()
    assert np.allclose(squares / squares.sum(), grown.feature_importances_, atol=1e-9)
    spread = np.average((outputs - np.average(outputs, axis=0, weights=w)) ** 2, axis=0, weights=w)
    assert np.isclose(squares.sum(), spread.sum())


def test_importances_of_a_forest_are_weighted_means_over_its_trees():
    X = np.random.default_rng(0).normal(size=(60, 3))
    measured = MetaTreeRegressor(n_trees=3, random_state=0).fit(X, X @ [2.0, 1.0, 0.0]).measured_
    each_tree = [replace(measured, tree_weights=one).importances() for one in np.eye(3)]
    weights = np.array([0.6, 0.3, 0.1])
    together = replace(measured, tree_weights=weights).importances()
    np.testing.assert_allclose(together, weights @ each_tree)


@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["labels", "numbers", "lines", "logit", "softmax"]),
    slanted=st.booleans(),
)
@examples(60)
def test_random_lists_add_up(seed, kind, slanted):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, kind, slanted)
    Z = np.column_stack([rng.normal(size=(60, 2)), rng.integers(0, 3, 60)]).astype(float)
    w = rng.integers(1, 3, 60).astype(float)
    measured = measure_on_rows(rules, Z, w)
    for z in Z[:6]:
        assert_adds_up(explain_row(rules, z, background=Z), rules, z[None])
    # each contribution has the mean 0 over the rows: base is the mean of what is predicted
    said = sum(n * sum_of_steps(measured.explain(z)) for n, z in zip(w, Z, strict=True)) / w.sum()
    assert np.allclose(measured.explain(Z[0]).base, said)
    everything = sum(n * measured.explain(z).contributions for n, z in zip(w, Z, strict=True))
    size = np.abs(measured.mean).max() * w.sum()
    assert np.abs(everything.sum(axis=0)).max() <= 1e-9 * size
    assert (measured.importances() >= 0).all()


def test_conditions_that_failed_are_credited_and_no_others():
    columns = Columns(("a", "b"), (None, None))
    first = ((Split((0,), 0.0), True), (Split((0,), 2.0), False), (Split((1,), 0.0), True))
    rules = RuleSet((Rule(first, Leaf(10.0)), Rule((), Leaf(0.0))), columns)
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    credit = [
        [part.contribution for part in explain_row(rules, z, background=Z).contributions] for z in Z
    ]
    assert np.allclose(credit, [[3.75, 3.75], [0, -2.5], [-2.5, 0], [-1.25, -1.25]])
    squares = np.array([7.5, 2.5, 2.5, 2.5]) ** 2
    share = measure_on_rows(rules, Z, np.ones(4)).importances()
    assert np.allclose(share, [squares @ [0.5, 0, 1, 0.5] / 4, squares @ [0.5, 1, 0, 0.5] / 4])


def test_a_tilted_cut_is_shared_by_how_far_each_column_could_move_it():
    tilted = Split((0, 1), 0.0, (1.0, -2.0))
    for ranges, shares in ((None, [0.5, 0.5]), (((0, 6), (0, 1)), [0.75, 0.25])):
        columns = Columns(("a", "b"), (None, None), ranges=ranges)
        tree = Tree([tilted, None, None], [1, -1, -1], [2, -1, -1],
                    [None, Leaf(5.0), Leaf(1.0)], columns)  # fmt: skip
        found = explain_row(tree, [3.0, 0.0], background=[[3.0, 0.0], [0.0, 3.0]])
        assert [part.contribution for part in found.contributions] == pytest.approx(
            [2 * share for share in shares]
        )


def test_an_equation_is_read_term_by_term():
    curve = Curve(1, [0, 1, 3], [[0, 4], [4, -2]], missing=7.0)
    leaf = Leaf(1.0, (0,), (2.0,), upper=6.0, curves=[curve])
    rules = RuleSet((Rule((), leaf),), Columns(("x", "u"), (None, None)), target_std=3.0)
    Z = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan], [3.0, 3.0]])
    found = explain_row(rules, Z[3], background=Z)
    # the sums are 1, 7, 12 and 9, at the mean terms 3 and 13/4 7.25: all but the first end at 6, and
    # of the way from 7.25 to 1 the part below 6 is left, four fifths
    assert found.base == pytest.approx((1 + 6 + 6 + 6) / 4) and found.prediction == 6.0
    shown = [
        0.8 * 3,
        0.8 * 13 / 4,
    ]  # taken off the first row, a fourth of it is added to the others
    assert [part.contribution for part in found.contributions] == pytest.approx(
        [each / 4 for each in shown]
    )
    first = explain_row(rules, Z[0], background=Z)
    assert [part.contribution for part in first.contributions] == pytest.approx(
        [-3 * each / 4 for each in shown]
    )
    assert found.contributions[0][0] == "x" and found.contributions[0][3] == "3"
    frame = found.to_frame()
    assert frame["column"].tolist() == ["on average", "x", "u"]
    assert np.isclose(frame["contribution"].sum(), found.prediction)
    assert explain_row(rules, Z[2], background=Z).contributions[1][1::2] == (None, "missing")
    spread = measure_on_rows(rules, Z, np.ones(4)).importances()
    assert np.allclose(spread, [3 / 16 * each**2 for each in shown])
    free = replace(rules, rules=(Rule((), replace(leaf, upper=np.inf)),))
    found = explain_row(free, Z[3], background=Z)
    assert found.base == 1 + 3 + (0 + 4 + 7 + 2) / 4 and found.prediction == 9.0
    parts = [Contribution("x", 3.0, 3.0, "3"), Contribution("u", 3.0, 2 - 13 / 4, "3")]
    assert list(found.contributions) == parts
    spread = measure_on_rows(free, Z, np.ones(4)).importances()
    assert np.allclose(spread, [4 * np.var([0, 1, 2, 3]), np.var([0, 4, 7, 2])])


@given(seed=st.integers(0, 10_000), n_classes=st.sampled_from([0, 2, 3]))
@examples(60)
def test_bounds_are_in_the_parts(seed, n_classes):
    """One term, cut off: its importance is the variance of what is predicted, and none beyond the bounds."""
    rng = np.random.default_rng(seed)
    n_scores = max(n_classes, 1) if n_classes != 2 else 1
    link = {0: None, 2: "logit", 3: "softmax"}[n_classes]
    value, coef = rng.normal(size=n_scores), 5 * rng.normal(size=n_scores)
    if link != "softmax":
        value, coef = value[0], coef[0]
    low, high = np.sort(rng.normal(size=2)) * 3
    leaf = Leaf(value, (0,), (coef,) if link != "softmax" else (tuple(coef),), low, high, link)
    columns = Columns(("a", "b"), (None, None))
    classes = tuple("xyz"[:n_classes]) or None
    rules = RuleSet((Rule((), leaf),), columns, classes)
    Z = rng.normal(size=(50, 2))
    raw = value + Z[:, :1] * np.atleast_1d(coef)
    kept = np.clip(raw, low, high)
    outputs = kept
    if link == "logit":
        outputs = kept * [-1, 1]
    elif link == "softmax":
        outputs = kept - kept.mean(axis=1, keepdims=True)
    measured = measure_on_rows(rules, Z, np.ones(50))
    for z, expected in zip(Z[:5], outputs):
        assert np.allclose(sum_of_steps(measured.explain(z)), expected)
        assert not measured.explain(z).contributions[1].any()
    assert np.allclose(measured.explain(Z[0]).base, outputs.mean(axis=0))
    assert np.allclose(measured.importances(), [outputs.var(axis=0).sum(), 0.0])


@pytest.mark.parametrize("leaf", ["normal", "linear"])
def test_meta_trees_in_arrays_are_their_trees_one_by_one(leaf):
    X, y = load_diabetes(return_X_y=True)
    w = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    model = MetaTreeRegressor(leaf=leaf, max_depth=3, random_state=0).fit(X, y, w)
    own = model.measured_
    other = measure_on_rows(model.to_tree(), X, w)
    assert np.allclose(own.importances(), other.importances())
    for x in X[:10]:
        steps, plain = own.explain(x), other.explain(x)
        assert np.allclose(steps.base, plain.base)
        assert np.allclose(steps.contributions, plain.contributions)
    tilted = Split((0, 1), 0.0, (1.0, -2.0))
    level = Split((2,), 0.01)
    nodes = [tilted, level, None, None, None], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1]
    given = Tree(*nodes, [None, None, *[Leaf(0.0)] * 3], read_columns(X))
    forest = MetaTreeRegressor([given, model.to_tree()], leaf=leaf).fit(X, y)
    trees = [measure_on_rows(forest.to_tree(t), X, np.ones(len(X))) for t in (0, 1)]
    again = forest.measured_.on_rows(X)
    assert np.allclose(again.importances(), forest.measured_.importances())
    assert np.allclose(again.importances(), sum(tree.importances() for tree in trees) / 2)
    parts = [tree.explain(X[0]).contributions for tree in trees]
    assert np.allclose(again.explain(X[0]).contributions, sum(parts) / 2)


@pytest.mark.parametrize(
    "setting", [s for s in ONE_OF_EACH if hasattr(s.estimator, "fit_chunks")], **named
)
def test_rows_in_chunks_give_the_same(setting):
    X, y = table(setting)
    whole = setting.fresh(random_state=0, search="em").fit(X, y)
    model = setting.fresh(random_state=0, search="em")
    model.fit_chunks([(X[:50], y[:50]), (X[50:], y[50:])])
    assert np.allclose(model.feature_importances_, whole.feature_importances_, atol=1e-9)
    assert np.isclose(explain_row(model, X[0]).base, explain_row(whole, X[0]).base)


# ------------------------------------------------------------------ rules by themselves


def test_rules_from_a_file_are_explained_as_before(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = ProxyTreeClassifier(size=5, random_state=0).fit(X, y)
    forest = RandomForestClassifier(6, random_state=0).fit(X, y)
    explained = explain(forest, X, max_rules=4, n_init=2, n_perturbations=4, random_state=0)
    for which in (model, explained):
        which.rules_.save(tmp_path / "rules.json")
        rules = load_rules(tmp_path / "rules.json")
        for k in range(0, 150, 10):
            told = explain_row(rules, X.iloc[k]).to_dict()
            assert told == explain_row(which.rules_, X.iloc[k]).to_dict()
            now = explain_row(which, X.iloc[k], label=told["label"])
            assert np.isclose(told["base"], now.base) and np.isclose(
                told["prediction"], now.prediction
            )
            amounts = [part["contribution"] for part in told["contributions"]]
            assert np.allclose(amounts, [part.contribution for part in now.contributions])


def test_disjoint_rules_are_parted_by_a_tree_again():
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    tree = ProxyTreeClassifier(size=8).fit(X[:, :5], y).tree_
    rules = RuleSet(tuple(tree.rules().rules), tree.columns, tree.classes, ordered=False)
    shuffled = RuleSet(tuple(rng.permutation(np.array(rules.rules, object)).tolist()), tree.columns,
                       tree.classes, ordered=False)  # fmt: skip
    for x in X[:20, :5]:
        one, other = (explain_row(which, x, background=X[:, :5]) for which in (tree, shuffled))
        assert np.isclose(total(other), one.prediction) and np.isclose(one.base, other.base)
    squares = measure_on_rows(shuffled, X[:, :5], np.ones(len(X))).importances().sum()
    assert np.isclose(squares, 2 * tree.predict_proba(X[:, :5])[:, 1].var())
    pinwheel = RuleSet(
        tuple(
            Rule([(Split((0,), a), True), (Split((0,), b), False), (Split((1,), c), True),
                  (Split((1,), d), False)], Leaf(1.0), 1.0)
            for a, b, c, d in ((0, 2, 0, 1), (2, 3, 0, 2), (1, 3, 2, 3), (0, 1, 1, 3))
        ),
        Columns(("a", "b"), (None, None)),
        ordered=False,
    )  # fmt: skip
    with pytest.raises(ValueError, match="got rules that no tree can represent"):
        explain_row(pinwheel, [0.5, 0.5])


def test_supports_are_enough_for_constants():
    X, y = load_diabetes(return_X_y=True)
    model = ProxyTreeRegressor(size=6).fit(X, y)
    by_supports = measure_by_supports(model.rules_)
    assert np.isclose(by_supports.mean[0], model.measured_.mean[0])
    assert np.allclose(by_supports.explain(X[0]).base, y.mean())
    assert np.isclose(by_supports.importances().sum(), model.predict(X).var())


def test_an_explanation_says_what_its_estimator_does():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(6, random_state=0).fit(X, y)
    quick = dict(max_rules=3, n_init=2, n_perturbations=4, random_state=0)
    found = explain(forest, X, pd.Series(y, name="species"), **quick)
    row = explain_row(found, X.iloc[0])
    assert row.scale == "probability of species = 0" and row.label == 0
    assert row.contributions == explain_row(found.model, X.iloc[0]).contributions
    assert np.isclose(found.feature_importances_.sum(), 1.0)


# ------------------------------------------------------------------ refusals


def test_refusals():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = ProxyTreeClassifier(size=3).fit(X, y)
    lines = PiecewiseLinearRegressor(max_depth=1, random_state=0).fit(X, y.astype(float))
    x = X.iloc[0]
    for model, row, options, said in (
        (tree.tree_, x, {}, "background must be given for a Tree"),
        (lines.rules_, x, {}, "background must be given for rules with equations"),
        (RuleSet((Rule((), Leaf(1.0)),), tree.columns_), x, {}, "rules without supports"),
        (
            RuleSet((), tree.columns_),
            x,
            {"background": X},
            "at least one rule|only rows that satisfy a rule",
        ),
        (tree, X.iloc[:2], {}, "x must be one row, got 2"),
        (tree, {"petal": 1.0}, {}, "unknown columns"),
        (tree, x, {"label": "rose"}, r"label must be one of \[0, 1, 2\], got 'rose'"),
        (lines, x, {"label": 1}, "label must be None for a model that predicts numbers, got 1"),
        (tree, x, {"background": X.iloc[:, :2]}, "no columns"),
    ):
        with pytest.raises(ValueError, match=said):
            explain_row(model, row, **options)
    for wrong in (RandomForestClassifier(2).fit(X, y), "rules", None):
        with pytest.raises(TypeError, match="model must be a fitted estimator of fabinterp"):
            explain_row(wrong, x)
    partial = RuleSet((Rule(((Split((0,), 5.0), True),), Leaf(1.0), 3.0),), tree.columns_)
    with pytest.raises(ValueError, match="must contain only rows that satisfy a rule"):
        explain_row(partial, np.zeros(4))


# ------------------------------------------------------------------ words and pictures


def read_amounts(text):
    """Return the numbers at the ends of the lines of a text."""
    lines = text.splitlines()[1:]
    return [float(line.rsplit("  ", 1)[1].replace(" ", "")) for line in lines]


@each(ONE_OF_EACH)
def test_what_is_printed_adds_up(setting):
    X, y = table(setting)
    factor = 1.0 if setting.is_classifier else 1e5
    model = setting.fresh(random_state=0).fit(X, y * int(factor))
    for x in X[:10]:
        found = explain_row(model, x)
        assert abs(sum(read_amounts(str(found))) - found.prediction) <= found.tolerance
        assert not any(line.rstrip().endswith(" 0") for line in str(found).splitlines()[2:])


def test_what_is_printed():
    frame = pd.DataFrame(
        {"income (€)": [1000.0, 2300.5, 54000.0, 61000.0] * 10, "<b>": [0.0, 1] * 20}
    )
    y = pd.Series(np.where(frame["income (€)"] > 10_000, 300.0, 100.0), name="limit")
    model = ProxyTreeRegressor(size=2).fit(frame, y)
    found = explain_row(model, {"income (€)": 61000, "<b>": 1})
    text = "limit is 300\n  on average            200\n  income (€) = 61 000  +100"
    assert str(found) == found.to_text() == repr(found) == text
    assert found.to_frame()["contribution"].tolist() == [200.0, 100.0, 0.0]
    assert found.to_frame()["value"].tolist()[1:] == [61000.0, 1.0]
    assert [part.words for part in found.contributions] == ["61 000", "1"]
    assert found.to_html() == found._repr_html_()
    again = json.loads(found.to_json())
    assert again["base"] == 200.0 and again["scale"] == "limit" and again["label"] is None
    assert sum(part["contribution"] for part in again["contributions"]) == 100.0
    with pytest.raises(AttributeError):
        found.base = 0.0
    html = explain_row(model, {"income (€)": 61000, "<b>": 1})._repr_html_()
    assert "income (€) = 61 000" in html and "+100" in html
    label = ProxyTreeClassifier(size=2).fit(frame, np.where(y > 200, "yes", "no"))
    assert str(explain_row(label, frame.iloc[0])).startswith("probability of y = no is 1\n")
    odds = ObliqueAdditiveClassifier(max_depth=0).fit(frame, np.where(y > 200, "yes", "no"))
    assert "log-odds of y = yes is" in str(explain_row(odds, frame.iloc[2]))


def test_a_column_with_a_hostile_name_is_escaped():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"<script>": rng.normal(size=80), "b": rng.normal(size=80)})
    model = ProxyLinearRegressor().fit(frame, 3 * frame["<script>"])
    html = explain_row(model, frame.iloc[0])._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def words_of(texts):
    """Return the texts of some artists."""
    return [text.get_text() for text in texts]


def test_a_waterfall_says_what_the_text_says():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = PiecewiseLinearRegressor(max_depth=2, random_state=0).fit(X, y.rename("progression"))
    found = explain_row(model, X.iloc[3])
    for ax in (
        plot_row(model, X.iloc[3]),
        plot_row(found),
        plot_row(found, ax=plt.figure().subplots()),
    ):
        names, amounts, numbers = zip(*found.lines(), strict=True)
        assert ax.get_title(loc="left").replace("\n", " ") == found.headline()
        assert words_of(ax.get_yticklabels()) == list(names)
        assert words_of(ax.texts) == list(numbers)
        _, *bars, last = ax.patches
        assert np.allclose([bar.get_width() for bar in bars], amounts[1:-1])
        assert np.isclose(bars[0].get_x(), amounts[0]) and np.isclose(last.get_x(), amounts[-1])
        plt.close(ax.figure)


def test_the_smallest_bars_are_pooled():
    plt = pytest.importorskip("matplotlib.pyplot")
    cancer = load_breast_cancer(as_frame=True)
    model = ProxyLinearClassifier(penalty=0.0, max_features=20).fit(cancer.data, cancer.target)
    found = explain_row(model, cancer.data.iloc[0])
    ax = plot_row(found, max_rows=5)
    told = words_of(ax.get_yticklabels())
    assert len(ax.patches) == 7 and told[-2].endswith(" others")
    amounts = [amount for _, amount, _ in found.lines(5)]
    assert abs(sum(amounts[:-1]) - found.prediction) <= found.tolerance
    assert len(plot_row(found, max_rows=1).patches) == 3
    with pytest.raises(ValueError, match="max_rows must be"):
        plot_row(found, max_rows=0)
    with pytest.raises(TypeError, match="model must be a result of explain_row if x is None"):
        plot_row(model)
    constant = RuleSet((Rule((), Leaf(0.0), 3.0),), read_columns(cancer.data))
    assert words_of(plot_row(constant, encode(cancer.data, constant.columns)[0]).texts) == [
        "0",
        "0",
    ]
    plt.close("all")


def test_a_row_in_words():
    """The lines between the mean and the prediction, as a sentence."""
    columns = Columns(("rooms", "floor", "km"), (None, None, None))
    leaf = Leaf(1.0, (0, 1, 2), (2.0, -3.0, 0.25))
    rules = RuleSet((Rule((), leaf),), columns, target_std=1.0)
    at_zero = np.zeros((2, 3))
    found = explain_row(rules, [10.0, 1.0, 4.0], background=at_zero)
    rows = found.lines()[1:-1]
    lead, said = found.words().split(": ")
    assert lead == found.headline() == "y is 19"
    said = said.split(" and ")
    assert len(said) == len(rows)
    for (words, amount, number), part in zip(rows, said):
        assert part.startswith(words) and part.endswith(f" {number[1:]}")
        assert ("raise" in part) == (amount > 0) and ("lower" in part) == (amount < 0)
    assert found.words(2) == "y is 19: rooms = 10 raises it by 20 and 2 others lower it by 2"
    nothing = explain_row(rules, [0.0, 0.0, 0.0], background=at_zero)
    assert nothing.words() == "y is 1: no column changes it from the mean"


def test_a_row_with_an_infinite_number_is_refused_in_one_line():
    rules = RuleSet((Rule((), Leaf(1.0, (0,), (2.0,))),), Columns(("rooms",), (None,)))
    message = "x must hold finite numbers or missing values, got infinity in 'rooms'"
    for x in ([np.inf], {"rooms": -np.inf}):
        with pytest.raises(ValueError, match=message):
            explain_row(rules, x, background=np.zeros((2, 1)))


def test_the_training_table_may_stand_third_as_of_a_nearest_change():
    from fabinterp import nearest_change

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    model = ProxyTreeRegressor(size=4).fit(X, X.a)
    few = X[X.a < 0]
    for of in (model, model.tree_, model.rules_):
        third = explain_row(of, X.iloc[0], few)
        assert third.to_dict() == explain_row(of, X.iloc[0], background=few).to_dict()
        assert np.isclose(third.base, model.predict(few).mean())
        assert "a = " in " ".join(words_of(plot_row(of, X.iloc[0], few).get_yticklabels()))
        nearest_change(of, X.iloc[0], few, target=(1.0, None))
