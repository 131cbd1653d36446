"""What is shown is what predicts, in any units, of any table; the same tree for the same rows; refusals by name."""

import itertools
import pickle
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from shared.doors import by_python
from shared.effort import case, examples
from shared.options import nested
from shared.tables import any_table, wide_frame
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from fabinterp import load_rules
from fabinterp.fab.engine import EM, Structure
from fabinterp.models import equation_paths
from fabinterp.models.equation_trees import (
    GaussianLikelihood,
    MultinomialLikelihood,
    column_mask,
    perturbations_at_price,
)
from fabinterp.models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.rows import chunks
from fabinterp.rows.tables import location_scale
from fabinterp.rules.core import Columns
from fabinterp.rules.ruleset import RuleSet, Tree

QUICK = {"penalty": 1.0, "max_depth": 2, "max_iter": 20, "random_state": 0}
KINDS = ["numbers", "two", "three"]
SEARCHES = ["structure", "em"]
pytestmark = pytest.mark.filterwarnings("ignore:FIC still rises")
kinds = pytest.mark.parametrize("kind", [case(kind, quick=kind != "three") for kind in KINDS])
searches = pytest.mark.parametrize("search", SEARCHES)


def quick(kind, **changed):
    cls = PiecewiseLinearRegressor if kind == "numbers" else PiecewiseLinearClassifier
    return cls(**nested(**QUICK | {"n_perturbations": 5 if kind == "numbers" else 2} | changed))


def target(kind, t):
    return t if kind == "numbers" else np.digitize(t, [0.6] if kind == "two" else [-0.3, 0.8])


def table(kind="numbers", seed=0, n=120, d=3):
    """Two lines that meet at a jump: y = 2 + x1 above x0 = 0.3, -x1 below."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    t = np.where(X[:, 0] > 0.3, 2 + X[:, 1], -X[:, 1])
    noise = 0.2 if kind == "numbers" else 0.5  # no class is told for certain
    return X, target(kind, t + noise * rng.normal(size=n))


# ------------------------------------------------------------------ what is shown is what predicts


def some_table(rng, framed, kind):
    """Draw a table, weights or None, and rows never seen, which lack no number that an equation may hold."""
    X, y, w, new = any_table(rng, kind, target, wide_frame if framed else None)
    w = w if rng.random() < 0.3 else None
    told = X if w is None else X[w > 0]
    whole = ~pd.DataFrame(told).isna().any().to_numpy()
    if framed:
        new["size"] = new["size"].fillna(0.0) if whole[2] else new["size"]
    else:
        new[:, whole] = np.nan_to_num(new[:, whole])
    return X, y, w, new


@kinds
@searches
@given(st.integers(0, 10**6), st.booleans())
@examples(8)
def test_tree_rules_and_exports_predict_what_predict_says(kind, search, seed, framed):
    rng = np.random.default_rng(seed)
    X, y, w, new = some_table(rng, framed, kind)
    model = quick(
        kind,
        search=search,
        n_perturbations=2,
        max_iter=8,
        min_weight_fraction=rng.choice([0.0, 0.05]),
        max_bins=[None, 4][seed % 2],
        init=["grow", "random"][seed // 2 % 2],
    ).fit(X, y, w)
    rules = model.rules_
    tree = model.tree_
    again = RuleSet.from_json(rules.to_json()), Tree.from_json(tree.to_json())
    assert again == (rules, tree)
    assert len(rules.rules) == tree.n_leaves and tree.depth <= model.max_depth
    for rows in (X if w is None else X[w > 0], new):
        said = model.predict(rows)
        assert all(np.array_equal(other.predict(rows), said) for other in (rules, tree, *again))
        if kind == "numbers":
            assert np.isfinite(said).all() and y.min() <= said.min() and said.max() <= y.max()
            assert np.allclose(
                by_python(rules, rows), said, rtol=1e-12, atol=1e-12 * np.abs(y).max()
            )
            continue
        proba = model.predict_proba(rows)
        assert all(
            np.array_equal(other.predict_proba(rows), proba) for other in (rules, tree, *again)
        )
        assert np.allclose(proba.sum(axis=1), 1, rtol=1e-12) and proba.min() >= 0
        assert (
            proba[np.arange(len(rows)), np.searchsorted(model.classes_, said)] == proba.max(axis=1)
        ).all()
        assert by_python(rules, rows) == said.tolist()
        told = [list(row.values()) for row in by_python(rules, rows, proba=True)]
        assert np.allclose(told, proba, rtol=1e-9, atol=1e-12)


@kinds
def test_predict_and_predict_proba_agree(kind):
    X, y = table(kind)
    model = quick(kind).fit(X, y)
    if kind == "numbers":
        assert not hasattr(model, "predict_proba") and not hasattr(quick("two"), "predict_interval")
        return
    proba = model.predict_proba(X)
    assert proba.shape == (120, len(model.classes_)) and np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


def sums_by_hand(model, X):
    """(n, E) what the equations of `coef_frame` say of each row, added up here; E = 1, or one per class."""
    frame = model.coef_frame()
    at = model.rules_.apply(X)
    names = list(frame.columns[1:])
    columns = X[:, [int(name[1:]) for name in names]]
    if not model.rules_.classes or len(model.rules_.classes) == 2:
        assert frame.index.tolist() == list(range(1, model.n_components_ + 1))
        coef = frame.to_numpy(float)[at]
        return coef[:, :1] + (coef[:, 1:] * columns).sum(axis=1, keepdims=True)
    parts = []
    for label in model.classes_:
        coef = np.array(
            [frame.loc[[(k, label)]].to_numpy(float)[0] for k in range(1, model.n_components_ + 1)]
        )[at]
        parts.append(coef[:, 0] + (coef[:, 1:] * columns).sum(axis=1))
    return np.stack(parts, axis=1)


@kinds
@searches
def test_coef_frame_is_what_predicts(kind, search):
    X, y = table(kind, n=200)
    model = quick(kind, search=search).fit(X, y)
    assert model.n_components_ > 1 and model.coef_frame().columns[0] == "intercept"
    sums = sums_by_hand(model, X)
    leaves = [rule.leaf for rule in model.rules_.rules]
    at = model.rules_.apply(X)
    low, high = np.array([[leaf.lower, leaf.upper] for leaf in leaves])[at].T[:, :, None]
    kept = np.clip(sums, low, high)
    if kind == "numbers":
        assert np.allclose(kept[:, 0], model.predict(X), rtol=1e-9)
        assert np.mean(kept == sums) > 0.9  # few rows meet the bounds
    elif kind == "two":
        assert np.allclose(expit(kept[:, 0]), model.predict_proba(X)[:, 1], rtol=1e-9)
    else:
        assert np.allclose(softmax(kept, axis=1), model.predict_proba(X), rtol=1e-9, atol=1e-12)


@kinds
def test_coef_frame_of_leaves_without_equations_holds_numbers(kind):
    X, y = table(kind)
    model = quick(kind, leaf_features=[], penalty=0.5).fit(X, y)
    assert model.n_components_ > 1
    frame = model.coef_frame()
    assert list(frame.columns) == ["intercept"] and np.isfinite(frame.to_numpy(float)).all()
    sums = sums_by_hand(model, X)
    if kind == "numbers":
        assert np.allclose(sums[:, 0], model.predict(X))
    else:
        proba = expit(np.hstack([-sums, sums])) if kind == "two" else softmax(sums, axis=1)
        assert np.allclose(proba, model.predict_proba(X), atol=1e-9)


# ------------------------------------------------------------------ the models


def test_depth_zero_is_one_sparse_linear_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * [1, 10, 1e-3, 1, 5, 1] + [0, 3, 0, -7, 0, 1]
    y = 4 + 2 * X[:, 0] - 300 * X[:, 2] + 0.1 * rng.normal(size=300)
    for search in SEARCHES:
        model = quick("numbers", search=search, max_depth=0).fit(X, y)
        (rule,) = model.rules_.rules
        assert rule.conditions == () and rule.leaf.features == (0, 2) and model.n_components_ == 1
        design = np.column_stack([np.ones(300), X[:, [0, 2]]])
        assert np.allclose(
            [rule.leaf.value, *rule.leaf.coef], np.linalg.lstsq(design, y, rcond=None)[0], rtol=1e-6
        )


@searches
def test_depth_zero_of_classes_solves_the_score_equations(search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (rng.random(400) < expit(1 + 2 * X[:, 1] - X[:, 3])).astype(int)
    model = quick("two", search=search, max_depth=0).fit(X, y)
    (rule,) = model.rules_.rules
    assert rule.leaf.features == (1, 3) and rule.leaf.link == "logit"
    rest = y - expit(rule.leaf.value + X[:, [1, 3]] @ rule.leaf.coef)
    assert np.abs(np.column_stack([np.ones(400), X[:, [1, 3]]]).T @ rest).max() < 0.01 * 400**0.5


@pytest.mark.slow
@kinds
def test_a_larger_penalty_never_gives_more_experts(kind):
    X, y = table(kind, n=200)
    penalties = [0.3, 2.5, 8.0, 1e4]
    models = [quick(kind, penalty=penalty).fit(X, y) for penalty in penalties]
    experts = [model.n_components_ for model in models]
    assert experts == sorted(experts, reverse=True) and experts[0] > experts[-1] == 1
    assert models[-1].rules_.rules[0].leaf.features == ()


@pytest.mark.slow
@kinds
def test_fic_never_falls_during_the_search(kind):
    X, y = table(kind)
    model = quick(kind, n_perturbations=15, max_iter=200).fit(X, y)
    assert model.fic_ == model.trace_[-1]
    assert (np.diff(model.trace_[:-1]) > 0).all() and len(model.trace_) > 2
    more = quick(kind, n_init=2, n_perturbations=15, max_iter=200).fit(X, y)
    assert more.fic_ >= model.fic_ - 1e-9 * abs(model.fic_)


@kinds
def test_fic_of_em_is_the_last_of_its_trace(kind):
    X, y = table(kind)
    model = quick(kind, search="em", projection=False, hard_gates=False).fit(X, y)
    assert model.fic_ == model.trace_[-1] and len(model.trace_) > 2


def test_restarts_of_em_are_compared_with_the_gates_that_predict():
    X, y = table(n=200)
    rises = 0
    for seed in range(4):
        options = {"search": "em", "init": "random", "max_depth": 3, "random_state": seed}
        found = [quick("numbers", n_init=n, **options).fit(X, y).fic_ for n in (1, 2, 4)]
        assert found == sorted(found)  # more starts are the same ones and others
        rises += found[-1] > found[0]
    assert rises


@pytest.mark.parametrize("max_bins", [2, 8, 256, None])
def test_the_threshold_is_the_best_midpoint_whatever_the_bins(max_bins):
    rng = np.random.default_rng(0)
    x = rng.permutation(400) / 400.0
    X = np.column_stack([x, rng.normal(size=400)])
    y = np.where(x > 0.37, 10 + X[:, 1], -X[:, 1]) + 0.1 * rng.normal(size=400)
    model = quick("numbers", max_bins=max_bins).fit(X, y)
    if (
        max_bins == 2
    ):  # the halves of a feature: what the search sees need not hold the true question
        assert np.isfinite(model.predict(X)).all()
        return
    assert model.n_components_ == 2
    assert set(zip(model.rules_.apply(X).tolist(), (x > 0.37).tolist(), strict=True)) == {
        (0, False),
        (1, True),
    }
    (split,) = [split for split in model.tree_.splits if split is not None]
    assert split.features == (0,) and 0.37 <= split.threshold < 0.3725


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"projection": False},
        {"hard_gates": False},
        {"projection": False, "hard_gates": False},
        {"init": "random"},
        {"init": "random", "hard_gates": False},
        {"penalty": 0.0},
        {"penalty": 0.0, "init": "random", "projection": False},
        {"min_weight_fraction": 0.0},
        {"min_weight_fraction": 0.3},
        {"max_depth": 0, "init": "random"},
        {"max_iter": 1},
        {"n_init": 3},
    ],
)
@kinds
def test_em_with_every_switch(kind, switches):
    X, y = table(kind)
    model = quick(kind, search="em", **switches).fit(X, y)
    assert 1 <= len(model.rules_.rules) <= model.n_components_ <= 4
    assert model.score(X, y) > (
        -0.1 if switches.get("max_depth") == 0 or "min_weight_fraction" in switches else 0.25
    )
    if switches.get("hard_gates", True):  # soft gates may leave an expert no row
        assert model.n_components_ == len(model.rules_.rules)
        assert np.array_equal(model.predict_path(X), model.predict(X))
    if kind != "numbers":
        assert set(model.predict_path(X)) <= set(model.classes_)


def test_soft_gates_answer_by_the_likeliest_path():
    X, y = table(n=200)
    model = quick("numbers", search="em", hard_gates=False, init="random", max_depth=3).fit(X, y)
    assert any(0 < gate.prob < 1 for gate in model.model_.gates.gates)
    told = model.design_.table(X)
    paths = model.model_.gates.log_path(told.codes)
    expert = model.model_.expert
    k = paths.argmax(axis=1)
    centre, spread = location_scale(y, np.ones(200))
    raw = centre + spread * np.einsum("np,np->n", told.Z, expert.coef[k])
    at = model.model_.gates.route(told.codes)
    seen = [y[at == i] if (at == i).any() else y for i in range(len(expert.coef))]
    low, high = np.array([(rows.min(), rows.max()) for rows in seen])[k].T
    assert np.allclose(model.predict_path(X), np.clip(raw, low, high))
    assert np.any(k != at) == np.any(model.predict_path(X) != model.predict(X))


def test_hard_gates_are_refitted_and_soft_gates_are_not():
    X, y = table()
    hard, soft = (
        quick("numbers", search="em", hard_gates=gates).fit(X, y) for gates in (True, False)
    )
    assert {gate.prob for gate in hard.model_.gates.gates} == {1.0}
    assert all(0 < gate.prob < 1 for gate in soft.model_.gates.gates)
    assert hard.fic_ > soft.fic_  # clear data: the gates of Bernoulli only cost


@searches
def test_predict_interval_holds_as_many_as_it_says(search):
    rng = np.random.default_rng(1)

    def draw(n):
        X = rng.normal(size=(n, 4))
        right = X[:, 0] > 0.3
        return X, np.where(right, 5 + X[:, 1], -2 * X[:, 2]) + np.where(
            right, 0.3, 1.0
        ) * rng.normal(size=n)

    X, y = draw(400)
    model = quick("numbers", search=search).fit(X, y)
    X, y = draw(4000)
    for level in (0.5, 0.9):
        low, high = model.predict_interval(X, level).T
        assert abs(np.mean((low <= y) & (y <= high)) - level) < 0.04
        assert np.allclose((low + high) / 2, model.predict(X))
    assert model.std_.shape == (model.n_components_,)
    assert model.std_.min() == pytest.approx(0.3, rel=0.2) and model.std_.max() == pytest.approx(
        1, rel=0.2
    )
    for level in (0, 1, 1.5, -0.1, np.nan):
        with pytest.raises(ValueError, match="^level must lie between 0 and 1, got"):
            model.predict_interval(X, level)


def test_std_by_hand():
    X, y = table()
    w = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    model = quick("numbers").fit(X, y, w)
    at = model.rules_.apply(X)
    left = y - model.predict(X)
    for k, rule in enumerate(model.rules_.rules):
        here = at == k
        free = w[here].sum() - 1 - len(rule.leaf.features)
        assert model.std_[k] == pytest.approx(np.sqrt(w[here] @ left[here] ** 2 / free))


# ------------------------------------------------------------------ the same answer, always


@pytest.mark.slow
@kinds
@searches
def test_n_jobs_and_repetition_change_nothing(kind, search):
    X, y = table(kind, n=80)
    runs = [
        quick(kind, search=search, init="random", n_init=3, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2, 1)
    ]
    assert runs[0].rules_ == runs[1].rules_ == runs[2].rules_
    assert runs[0].tree_ == runs[1].tree_ == runs[2].tree_
    assert np.array_equal(runs[0].trace_, runs[1].trace_) and np.array_equal(
        runs[0].trace_, runs[2].trace_
    )


@kinds
@searches
def test_weights_are_repetitions_and_order_does_not_matter(kind, search):
    X, y = table(kind, n=80)
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, 80)
    at = rng.permutation(np.repeat(np.arange(80), w))
    weighted, repeated = (
        quick(kind, search=search, penalty=0.5).fit(*rows) for rows in ((X, y, w), (X[at], y[at]))
    )
    assert weighted.rules_ == repeated.rules_ and weighted.fic_ == repeated.fic_
    junk = np.vstack([X, np.full((3, 3), 1e6)])
    more = junk, np.append(y, [y[0]] * 3), np.append(w, [0, 0, 0])
    zero = quick(kind, search=search, penalty=0.5).fit(*more)
    assert zero.rules_ == weighted.rules_
    assert len(weighted.rules_.rules) > 1


@pytest.mark.slow
@kinds
def test_row_order_of_a_frame_does_not_matter(kind):
    rng = np.random.default_rng(0)
    X = wide_frame(rng, 150)
    y = target(kind, np.where(X["colour"].isin(["red", "black"]), 1 + X["height"], -X["height"]))
    at = rng.permutation(150)
    one = quick(kind).fit(X, y)
    two = quick(kind).fit(X.iloc[at], y[at])
    assert one.rules_ == two.rules_


# ------------------------------------------------------------------ units


def same_tree(plain, moved, X, there):
    """Whether two models ask the same of the same rows, and speak of the same features in the same leaves."""
    assert len(plain.rules_.rules) > 1
    assert np.array_equal(plain.rules_.apply(X), moved.rules_.apply(there))
    for ours, theirs in zip(plain.rules_.rules, moved.rules_.rules, strict=True):
        assert ours.leaf.features == theirs.leaf.features
        assert [c[0].features for c in ours.conditions] == [
            c[0].features for c in theirs.conditions
        ]


@kinds
@searches
@pytest.mark.parametrize("scale,offset", [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e9)])
def test_the_tree_does_not_depend_on_the_units_of_X(kind, search, scale, offset):
    X, y = table(kind)
    X = np.round(X * 1024) / 1024  # so that the offset loses no digits
    there = X * scale + offset
    plain = quick(kind, search=search).fit(X, y)
    moved = quick(kind, search=search).fit(there, y)
    same_tree(plain, moved, X, there)
    answer = "predict" if kind == "numbers" else "predict_proba"
    assert np.allclose(
        getattr(moved, answer)(there), getattr(plain, answer)(X), atol=1e-4 if offset else 1e-6
    )
    assert moved.fic_ == pytest.approx(plain.fic_, rel=1e-6)


@searches
@pytest.mark.parametrize("scale,offset", [(1e-100, 0.0), (1e100, 0.0), (-1e-6, 0.0), (1.0, 1e9)])
def test_the_tree_does_not_depend_on_the_units_of_y(search, scale, offset):
    X, y = table()
    y = np.round(y * 1024) / 1024
    there = y * scale + offset
    plain = quick("numbers", search=search).fit(X, y)
    moved = quick("numbers", search=search).fit(X, there)
    same_tree(plain, moved, X, X)
    assert np.allclose(
        moved.predict(X),
        plain.predict(X) * scale + offset,
        rtol=1e-6 if not offset else 1e-14,
        atol=1e-9 * abs(scale),
    )
    assert np.allclose(moved.std_, plain.std_ * abs(scale), rtol=1e-6)
    assert moved.fic_ == pytest.approx(
        plain.fic_ - 120 * np.log(abs(scale)), rel=1e-6
    )  # a density of y


@kinds
@searches
def test_one_column_of_many_may_be_ill_scaled(kind, search):
    X, y = table(kind)
    X = np.round(X * 1024) / 1024
    there = X * [1e-150, 1, 1e150] + [0, 1e9, 0]
    plain = quick(kind, search=search).fit(X, y)
    moved = quick(kind, search=search).fit(there, y)
    same_tree(plain, moved, X, there)


@pytest.mark.slow
@searches
def test_a_huge_outlier(search):
    X, y = table()
    far = X.copy()
    far[0, 0] = 1e12
    for kind in KINDS:
        model = quick(kind, search=search).fit(far, table(kind)[1])
        assert model.score(far[1:], table(kind)[1][1:]) > (0.9 if kind == "numbers" else 0.7)
    wild = y.copy()
    wild[0] = 1e12
    model = quick("numbers", search=search).fit(X, wild)
    said = model.predict(X)
    assert (
        np.isfinite(said).all()
        and np.isfinite(model.fic_)
        and said.min() >= wild.min()
        and said.max() <= 1e12
    )


def test_answers_stay_within_the_numbers_seen():
    X, y = table()
    model = quick("numbers").fit(X, y)
    said = model.predict(X * 1e6)
    at = model.rules_.apply(X)
    for k, rule in enumerate(model.rules_.rules):
        assert (rule.leaf.lower, rule.leaf.upper) == (y[at == k].min(), y[at == k].max())
    assert said.min() == y.min() and said.max() == y.max()


def test_no_leaf_is_surer_than_its_rows_can_tell():
    X, _ = table()
    y = (X[:, 1] > 0).astype(int)  # separable
    model = quick("two").fit(X, y)
    assert model.score(X, y) > 0.98
    n_rows = np.bincount(model.rules_.apply(X))
    n_numbers = np.array([1 + len(leaf.features) for leaf in model.rules_.leaves])
    most = 1 / (1 + 1 / (1 + 2 * n_rows / n_numbers))
    prob = model.predict_proba(X * 1e6).max(axis=1)
    assert (prob <= most[model.rules_.apply(X * 1e6)] + 1e-12).all()


# ------------------------------------------------------------------ ordinary tables


def told_of(model):
    """Names of the features that questions ask about, and of those that equations hold."""
    names = model.columns_.names
    asked = {
        names[f]
        for rule in model.rules_.rules
        for split, _ in rule.conditions
        for f in split.features
    }
    return asked, {names[f] for rule in model.rules_.rules for f in rule.leaf.used_features}


@kinds
@searches
def test_labels_are_asked_about_and_gaps_are_asked_about_or_a_term(kind, search):
    rng = np.random.default_rng(0)
    X = wide_frame(rng, 400)
    inside = X["colour"].isin(["red", "black"]).to_numpy()
    t = np.where(inside, 3, 0) + np.where(X["size"].isna(), -4, 0) + 0.5 * X["height"]
    y = target(kind, (t + 0.1 * rng.normal(size=400)).to_numpy())
    model = quick(kind, search=search, max_depth=3).fit(X, y)
    asked, summed = told_of(model)
    assert {"colour", "size"} <= asked | summed and "word" not in summed
    assert search == "structure" or "colour ∈ {" in str(
        model.rules_
    )  # EM asks, as the paper has it
    assert model.score(X, y) > 0.9
    unseen = X.head(4).assign(colour=["purple", None, "purple", None])
    assert np.array_equal(model.predict(unseen), model.predict(unseen.assign(colour=[None] * 4)))


@searches
def test_what_is_missing_may_be_the_question(search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    gap = rng.random(200) < 0.3
    y = X[:, 0] + 5 * gap + 0.1 * rng.normal(size=200)
    X[gap, 1] = np.nan
    model = quick("numbers", search=search, leaf_features=[0]).fit(X, y)
    said = str(model.rules_)
    assert "if x1 is missing " in said and "if x1 is not missing " in said
    assert np.array_equal(model.rules_.apply(X) == model.rules_.apply(X)[gap.argmax()], gap)
    assert told_of(model) == ({"x1"}, {"x0"})


def test_categories_that_are_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"b": pd.Categorical(rng.choice([10, 20, 30, 40], 200)), "x": rng.random(200)})
    y = np.where(X["b"].isin([10, 40]), 5.0, 0.0) + X["x"]
    model = quick("numbers").fit(X, y)
    assert model.score(X, y) > 0.999
    assert told_of(model) == (set(), {"b", "x"})
    assert "10 → " in str(model.rules_)  # labels, never codes
    model = quick("numbers", leaf_features=["x"]).fit(X, y)
    assert model.n_components_ == 2 and model.score(X, y) > 0.999
    said = str(model.rules_)
    assert "b ∈ {10, 40}" in said and "b ∈ {20, 30}" in said
    assert told_of(model) == ({"b"}, {"x"})


def test_a_gap_where_there_was_none_is_refused_by_an_equation_and_answered_by_a_question():
    X, y = table()
    model = quick("numbers", missing="error").fit(X, y)
    assert told_of(model) == ({"x0"}, {"x1"})
    gap = X[:3].copy()
    gap[:, 0] = np.nan
    assert np.isfinite(model.predict(gap)).all()
    gap = X[:3].copy()
    gap[1, 1] = np.nan
    with pytest.raises(
        ValueError, match="numbers in 'x1' for an equation, got a missing value in 1 of [12] rows"
    ):
        model.predict(gap)


@pytest.mark.slow
@kinds
@searches
def test_string_labels_and_small_or_useless_tables(kind, search):
    X, y = table(kind)
    names = np.array(["low", "middle", "high"])
    if kind != "numbers":
        model = quick(kind, search=search).fit(X, names[y])
        assert set(model.predict(X)) <= set(names) and model.classes_.tolist() == sorted(
            set(names[y])
        )
        assert model.score(X, names[y]) > 0.7
    tables = {
        "one feature": (X[:, :1], y),
        "two rows": (X[[0, 3]], y[[0, 3]]),
        "two equal rows": (X[[0, 0]], y[[0, 3]]),
        "wide": (np.random.default_rng(0).normal(size=(15, 40)), y[:15]),
        "collinear": (np.column_stack([X, 2 * X[:, 0] + 1, X[:, 1] + X[:, 2], X[:, 1]]), y),
        "constant": (np.column_stack([X, np.zeros(120), np.full(120, 1e9)]), y),
        "empty": (np.column_stack([X, np.full(120, np.nan)]), y),
        "nothing varies": (np.ones((120, 2)), y),
        "all gaps": (np.full((120, 2), np.nan), y),
        "whole numbers": (X.round(), y),
    }
    for name, (rows, told) in tables.items():
        model = quick(kind, search=search).fit(rows, told)
        said = model.predict(rows)
        assert said.shape == told.shape and np.array_equal(said, model.rules_.predict(rows)), name
        assert np.isfinite(model.fic_), name
        if name in ("nothing varies", "all gaps", "two equal rows"):
            assert model.n_components_ == 1 and len(np.unique(said)) == 1, name
    assert told_of(quick(kind, search=search).fit(*tables["constant"]))[1] <= {"x0", "x1", "x2"}


@searches
@pytest.mark.parametrize("constant", [0.0, 3.0, -1e12, 1e-200])
def test_constant_y(search, constant):
    X, _ = table()
    model = quick("numbers", search=search).fit(X, np.full(120, constant))
    assert np.array_equal(model.predict(X), np.full(120, constant)) and model.n_components_ == 1
    assert np.array_equal(model.predict_interval(X[:2]), np.full((2, 2), constant))
    assert np.isfinite(model.fic_)


@searches
def test_a_single_class(search):
    X, _ = table()
    model = quick("two", search=search).fit(X, np.full(120, "a"))
    assert set(model.predict(X)) == {"a"} and model.predict_proba(X).tolist() == [[1.0]] * 120
    assert set(model.predict_path(X)) == {"a"}
    assert model.n_components_ == 1 and model.fic_ == model.trace_[-1]


@kinds
def test_max_depth_and_min_weight_fraction_hold(kind):
    X, y = table(kind, n=300)
    for depth in (1, 2):
        model = quick(kind, max_depth=depth, penalty=0.1, min_weight_fraction=0.1).fit(X, y)
        assert model.tree_.depth == depth
        assert min(rule.support for rule in model.rules_.rules) >= 30 - 1e-9


# ------------------------------------------------------------------ which columns


@pytest.mark.slow
@kinds
@searches
def test_split_features_and_leaf_features(kind, search):
    X, y = table(kind, n=200, d=4)
    frame = pd.DataFrame(X, columns=["a", "b", "c d", "e"])
    by = [
        quick(kind, search=search, split_features=asked, leaf_features=summed).fit(rows, y)
        for rows, asked, summed in (
            (frame, ["a", "e"], ["b"]),
            (frame, [0, 3], np.array([1])),
            (frame, ("e", 0), ["b", 1]),
            (X, ["x0", "x3"], ["x1"]),
            (X, [3, 0], [1]),
        )
    ]
    for model in by:
        asked, summed = told_of(model)
        assert asked <= {"a", "e", "x0", "x3"} and summed <= {"b", "x1"}
        assert asked and np.array_equal(
            model.predict(frame if model._framed else X), by[0].predict(frame)
        )
    assert by[0].rules_ == by[1].rules_ == by[2].rules_ and by[3].rules_ == by[4].rules_
    alone = quick(kind, search=search, split_features=[]).fit(X, y)
    assert alone.n_components_ == 1
    plain = quick(kind, search=search, leaf_features=[]).fit(X, y)
    assert plain.n_components_ > 1 and told_of(plain)[1] == set()
    nothing = quick(kind, search=search, split_features=(), leaf_features=[])
    with pytest.raises(ValueError) as refused:
        nothing.fit(X, y)
    said = str(refused.value)
    assert said == "leaf_features must name a column where split_features names none, got []"


@pytest.mark.parametrize("name", ["split_features", "leaf_features"])
@pytest.mark.parametrize(
    "value,got",
    [(["z"], "'z'"), ([0, 3], "'3'"), ([-1], "'-1'"), (["a", "b", "q"], "'q'"), ([None], "'None'")],
)
def test_unknown_columns_are_refused_by_name(name, value, got):
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c d"])
    with pytest.raises(ValueError) as refused:
        quick("numbers", **{name: value}).fit(frame, y)
    said = f"{name} must name columns of X, 'a', 'b', 'c d', or give their positions, got {got}"
    assert str(refused.value) == said


@pytest.mark.parametrize("name", ["split_features", "leaf_features"])
@pytest.mark.parametrize("value", ["abc", "a", 5, 0, [[0]], True])
def test_what_is_no_list_of_columns_is_refused_by_name(name, value):
    X, y = table()
    with pytest.raises(ValueError, match=f"^{name} must .*got"):
        quick("numbers", **{name: value}).fit(pd.DataFrame(X, columns=list("abc")), y)


def test_chosen():
    columns = Columns(("a", "b", "c"), (None,) * 3)
    assert (
        column_mask(None, columns, "f").tolist() == [True] * 3
        and column_mask([], columns, "f").tolist() == [False] * 3
    )
    assert column_mask(["c", 0], columns, "f").tolist() == [True, False, True]


def test_names_of_a_frame_reach_the_coefficients():
    X, y = table("two")
    model = quick("two").fit(pd.DataFrame(X, columns=["a", "b", "c d"]), y)
    assert set(model.coef_frame().columns) <= {"intercept", "a", "b", "c d"}


# ------------------------------------------------------------------ scikit-learn's tools


@pytest.mark.slow
@searches
def test_clone_pickle_pipeline_and_search(search):
    X, y = table()
    model = quick("numbers", search=search).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.rules_.to_json() == model.rules_.to_json() and again.tree_ == model.tree_
    assert np.array_equal(again.predict_path(X), model.predict_path(X))
    assert np.array_equal(again.predict_interval(X), model.predict_interval(X))
    fresh = clone(model).set_params(max_depth=0)
    assert fresh.get_params()["max_depth"] == 0 and not hasattr(fresh, "rules_")
    assert fresh.fit(X, y).n_components_ == 1
    assert (
        make_pipeline(StandardScaler(), quick("numbers", search=search)).fit(X, y).score(X, y) > 0.9
    )
    found = GridSearchCV(quick("numbers", search=search), {"max_depth": [0, 2]}, cv=3).fit(X, y)
    assert found.best_params_ == {"max_depth": 2}
    X, y = table("three")
    assert cross_val_score(quick("three", search=search), X, y, cv=3).mean() > 0.6


def test_verbose_tells(capsys):
    X, y = table()
    quick("numbers", n_init=2, verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert "restart 1/2: 1 experts, FIC" in said and "restart 2/2: 2 experts, FIC" in said
    quick("numbers", search="em", verbose=2).fit(X, y)
    assert "components, FIC" in capsys.readouterr().out
    for search in SEARCHES:
        quick("numbers", search=search).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("settings", [{"penalty": None}, {"penalty": 1.0}, {"search": "em"}])
def test_the_fic_that_is_printed_is_that_of_the_path(settings, capsys):
    """In units of y: the criterion of `path_` is minus FIC, `trace_` the FIC of each step."""
    X, y = table()
    model = quick("numbers", **{"n_init": 1, "verbose": 1} | settings).fit(X, 1000 * y)
    said = capsys.readouterr().out
    printed = [float(text) for text in re.findall(r", FIC (\S+?)(?:,|$)", said, re.M)]
    end = model.trace_[-2]  # the last one is of the finished tree
    assert printed[-1] == pytest.approx(end, rel=1e-5)
    shift = len(y) * np.log(np.std(1000 * y))
    assert abs(shift) > 100 * abs(end - model.trace_[-1])  # standard units would be far off
    if settings.get("search") != "em":
        assert printed == pytest.approx(list(model.trace_[:-1]), rel=1e-5)


def test_stopping_early_warns():
    X, y = table()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model = quick("numbers", search="em", max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick("numbers", search="em", max_iter=200).fit(X, y)


def test_likelihoods_have_the_same_members():
    """A third one can replace either of them."""
    numbers, classes = (
        {name for name in dir(kind) if not name.startswith("_")}
        for kind in (GaussianLikelihood(), MultinomialLikelihood(3))
    )
    assert numbers == classes


@pytest.mark.parametrize(
    "n_rows,n_free,count", [(1, 1, 5), (2000, 1, 5), (2000, 2, 2), (10**5, 1, 1)]
)
def test_large_tables_are_perturbed_less(n_rows, n_free, count):
    experts = SimpleNamespace(n_free=n_free)
    problem = SimpleNamespace(codes=np.zeros((n_rows, 1)), experts=experts)
    settings = SimpleNamespace(n_perturbations=None)
    assert perturbations_at_price(settings, problem, times=20) == 20 * count
    assert perturbations_at_price(SimpleNamespace(n_perturbations=0), problem) == 0


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "name,value",
    [
        ("max_depth", -1),
        ("max_depth", 2.5),
        ("max_depth", True),
        ("search", "grid"),
        ("search", None),
        ("penalty", -0.1),
        ("penalty", np.nan),
        ("penalty", np.inf),
        ("penalty", "large"),
        ("n_init", 0),
        ("max_leaves", 0),
        ("max_terms", 0),
        ("min_weight_fraction", -1e-9),
        ("min_weight_fraction", 1.0),
        ("n_jobs", 0),
        ("n_jobs", "all"),
        ("verbose", "loud"),
        ("verbose", -1),
        ("random_state", "seed"),
        ("random_state", -1),
    ],
)
@kinds
def test_wrong_parameters_are_refused_in_one_line(kind, name, value):
    X, y = table(kind)
    with pytest.raises(ValueError) as refused:
        quick(kind, **{name: value}).fit(X, y)
    said = str(refused.value)
    assert (
        said.startswith(f"{name} must be ") and said.endswith(f"got {value!r}") and "\n" not in said
    )


OPTIONS = (
    (EM(init="tree"), "init"),
    (EM(max_iter=0), "max_iter"),
    (EM(tol=-1), "tol"),
    (EM(tol=np.nan), "tol"),
    (EM(projection="no"), "projection"),
    (EM(hard_gates=None), "hard_gates"),
    (EM(n_components=3), "n_components"),
    (EM(fisher_factors=True), "fisher_factors"),
    (Structure(n_perturbations=-1), "n_perturbations"),
    (Structure(n_perturbations=1.5), "n_perturbations"),
    (Structure(max_bins=1), "max_bins"),
    (Structure(max_bins=2.5), "max_bins"),
    (EM, "search"),
)


@pytest.mark.parametrize("search, name", OPTIONS)
def test_wrong_and_unused_options_are_rejected_in_one_line(search, name):
    X, y = table()
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got [^\n]*$"):
        PiecewiseLinearRegressor(search=search).fit(X, y)


@pytest.mark.parametrize("search", ["structure", "em", EM(init="random", max_iter=9), Structure(0)])
def test_options_are_stored_as_given_and_cloned(search):
    X, y = table(n=60)
    model = clone(quick("numbers").set_params(search=search))
    assert model.get_params()["search"] == search and eval(repr(search)) == search
    fitted = model.fit(X, y)
    assert fitted.search == search
    stored = load_rules(fitted.to_json()).source["parameters"]["search"]
    assert stored == (search if isinstance(search, str) else repr(search))


def test_em_by_name_is_em_with_its_defaults():
    X, y = table(n=60)
    by_name, by_object = (quick("numbers").set_params(search=s).fit(X, y) for s in ("em", EM()))
    assert by_name.tree_ == by_object.tree_


def test_a_fit_uses_one_thread_of_blas_and_gives_the_others_back(monkeypatch):
    """Products are small here: more threads take twice the processor's time and no less of the clock's."""

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    seen = []
    original = equation_paths._fit_equation_tree
    monkeypatch.setattr(
        equation_paths, "_fit_equation_tree", lambda *a: seen.append(threads()) or original(*a)
    )
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        PiecewiseLinearRegressor(random_state=0).fit(X, X[:, 0])
        assert threads() == before
    assert seen == [{1}]


def test_folds_that_choose_a_size_say_how_far_they_are(monkeypatch, capsys):
    clock = itertools.count(0, 3)
    monkeypatch.setattr(chunks.time, "monotonic", lambda: float(next(clock)))
    X = np.random.default_rng(0).uniform(size=(80, 2))
    PiecewiseLinearRegressor(search=Structure(1), max_depth=1, random_state=0, verbose=1).fit(
        X, X[:, 0] + np.where(X[:, 1] > 0.5, 1.0, 0.0)
    )
    said = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("choice of a size")
    ]
    assert re.fullmatch(
        r"choice of a size: fold 1 of 5, \d+ s, about \d+ min left of this stage", said[0]
    )
