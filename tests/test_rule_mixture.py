"""What is shown is what predicts, whatever the table, the ensemble and the units; what cannot be is refused by name."""

import pickle
import re
import warnings
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from scipy.stats import t as student
from shared.effort import case, examples
from shared.estimators import QUICK_RULES
from shared.tables import mixed_frame
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.fab.engine import EM, Structure
from fabinterp.forests.reading import ensemble_thresholds, read_ensemble
from fabinterp.models.ensemble_lists import FoundList, assign_folds, round_cuts, well_scaled
from fabinterp.models.rule_lists import code_length_of_boxes, jitter
from fabinterp.models.rule_mixture import (
    RuleMixtureClassifier,
    RuleMixtureRegressor,
    coverage,
    list_entries,
)
from fabinterp.models.soft_regions import random_mixture
from fabinterp.rows import chunks
from fabinterp.rows.bins import bin_codes, incidence, merge_identical
from fabinterp.rows.blocks import in_memory
from fabinterp.rules.size_path import choose_size

pytestmark = pytest.mark.filterwarnings("ignore:FIC still rises")


def small(kind, n_trees=6):
    return (RandomForestClassifier if kind == "classes" else RandomForestRegressor)(
        n_trees, random_state=0
    )


def quick(kind, estimator=None, **changed):
    cls = RuleMixtureClassifier if kind == "classes" else RuleMixtureRegressor
    return cls(estimator, **QUICK_RULES | changed)


def table(seed=0, n=120, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    t = np.where(X[:, 0] > 0.3, 2.0, 0.0) + X[:, 1] + 0.2 * rng.normal(size=n)
    return X, (t > 0.6).astype(int), t


# ------------------------------------------------------------------ what is shown is what predicts


@pytest.mark.parametrize("seed", [case(seed, quick=seed < 60) for seed in range(200)])
def test_rules_predict_what_predict_says(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 90))
    kind = "classes" if seed % 2 else "numbers"
    framed = seed % 4 < 2
    X = (
        mixed_frame(rng, n)
        if framed
        else rng.normal(size=(n, int(rng.integers(1, 5)))).round(int(rng.integers(0, 3)))
    )
    if not framed:
        X[rng.random(X.shape) < 0.15] = np.nan
    labels = np.array(
        [["no", "yes", "perhaps"], [3, 1, 7]][seed % 3 % 2], dtype=object if seed % 3 == 0 else None
    )
    y = rng.normal(size=n) * 10.0 ** (seed % 7)
    if kind == "classes":
        y = labels[rng.integers(0, int(rng.integers(1, 4)), n)]
    w = rng.integers(0, 3, n).astype(float) if seed % 5 == 0 and n > 9 else None
    model = quick(
        kind, small(kind, 3), n_init=1, n_perturbations=2, max_rules=int(rng.integers(1, 6))
    ).fit(X, y, w)
    new = mixed_frame(rng, 50) if framed else rng.normal(size=(50, X.shape[1])) * 3
    for rows in (X, new):
        assert np.array_equal(model.predict(rows), model.rules_.predict(rows))
        if kind == "classes":
            proba = model.predict_proba(rows)
            assert np.array_equal(proba, model.rules_.predict_proba(rows))
            assert np.array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
    assert len(model.rules_.rules) <= model.max_rules
    again = type(model.rules_).from_json(model.rules_.to_json())
    assert again == model.rules_ and np.array_equal(again.predict(new), model.predict(new))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_measures_are_those_of_the_training_rows(kind):
    X, c, t = table()
    y = c if kind == "classes" else t
    forest = small(kind).fit(X, y)
    model = quick(kind, forest).fit(X, y)
    said = model.predict(X)
    told = forest.predict(X)
    if kind == "classes":
        assert model.error_ == pytest.approx(np.mean(said != y))
        assert model.fidelity_ == pytest.approx(np.mean(said == told))
    else:
        assert model.error_ == pytest.approx(np.mean((said - y) ** 2))
        assert model.fidelity_ == pytest.approx(1 - np.mean((said - told) ** 2) / told.var())
    assert (
        model.overlap_
        == pytest.approx(model.rules_.overlap(X))
        == pytest.approx(coverage(model.rules_, X).mean())
    )
    assert sum(rule.support for rule in model.rules_.rules) == pytest.approx(len(X))
    assert model.n_conditions_ == model.rules_.n_conditions


# ------------------------------------------------------------------ the mixture


def test_log_joint_against_every_bit_written_out():
    rng = np.random.default_rng(0)
    Z = rng.random((30, 3)).round(1)
    y = rng.normal(size=30)
    w = np.ones(30)
    Z[rng.random(Z.shape) < 0.2] = np.nan
    bins = merge_identical(Z, [np.sort(rng.random(5)) for _ in range(3)])
    model = random_mixture(bins, y, w, 3, 0, rng)
    S = incidence(bin_codes(Z, bins), bins)
    log = np.log(model.weights) + model.expert.log_lik(y)
    for j, cuts in enumerate(bins.thresholds):
        eta = model.eta[:, bins.bit_slice(j)]
        gap = np.isnan(Z[:, j])
        bits = (Z[:, [j]] > cuts)[:, None]
        told = (bins.counts[j] * np.log(np.where(bits, eta, 1 - eta))).sum(axis=2)
        lacking = model.eta[:, bins.bit_slice(j).stop]
        log = log + np.where(gap[:, None], np.log(lacking), told + np.log(1 - lacking))
    assert np.allclose(model.log_joint(S, y), log, rtol=1e-12)


@pytest.mark.parametrize("n_cuts", [5, 300])
def test_all_drawn_questions_together_say_a_tenth_of_a_nat(n_cuts):
    rng = np.random.default_rng(0)
    Z = rng.random((20, 3))
    bins = merge_identical(Z, [np.sort(rng.random(n_cuts)) for _ in range(3)])
    model = random_mixture(bins, np.zeros(20, int), np.ones(20), 2000, 2, rng)
    told = model.log_path(incidence(bin_codes(Z, bins), bins))
    np.testing.assert_allclose(told.std(axis=1), 0.1, rtol=0.1)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_fic_never_falls_between_shrinks(kind):
    X, c, t = table()
    model = quick(kind, small(kind), n_init=1, search=EM(max_iter=60)).fit(
        X, c if kind == "classes" else t
    )
    assert model.fic_ == model.trace_[-1] and model.n_iter_ == len(model.trace_)
    assert 1 <= model.n_components_ <= 10


def test_penalty_zero_keeps_more_components_and_more_starts_err_less():
    X, y, _ = table(n=300)
    fab, em = (
        quick("classes", small("classes"), penalty=p, search="structure").fit(X, y)
        for p in (4.0, 0.0)
    )
    assert em.n_components_ > fab.n_components_
    runs = [quick("classes", small("classes"), n_init=n).fit(X, y) for n in (6, 1)]
    errors = [np.mean(run.predict_posterior(X) != y) for run in runs]
    assert errors[0] <= errors[1]


def test_posterior_answers_with_components_only():
    X, c, t = table()
    reg = quick("numbers", small("numbers")).fit(X, t)
    assert np.isin(reg.predict_posterior(X), reg.model_.expert.mean).all()
    words = np.array(["low", "high"])[c]
    clf = quick("classes", small("classes")).fit(X, words)
    assert set(clf.predict_posterior(X)) <= {"low", "high"}


# ------------------------------------------------------------------ the same answer, always


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("given", [True, False])
def test_n_jobs_and_repetition_change_nothing(kind, given):
    X, c, t = table()
    y = c if kind == "classes" else t
    runs = [
        quick(kind, small(kind) if given else None, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 1)
    ]
    assert runs[0].rules_ == runs[1].rules_ == runs[2].rules_
    assert np.array_equal(runs[0].trace_, runs[1].trace_) and np.array_equal(
        runs[0].model_.eta, runs[2].model_.eta
    )


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("given", [True, False])
def test_weights_are_repetitions_and_order_does_not_matter(kind, given):
    X, c, t = table(n=60)
    y = c if kind == "classes" else t
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, 60)
    at = rng.permutation(np.repeat(np.arange(60), w))
    model = small(kind) if given else None
    weighted = quick(kind, model).fit(X, y, w)
    repeated = quick(kind, model).fit(X[at], y[at])
    assert weighted.rules_ == repeated.rules_
    assert weighted.fic_ == repeated.fic_
    junk = np.vstack([X, np.full((3, 3), 1e6)])
    zero = quick(kind, model).fit(junk, np.append(y, [y[0]] * 3), np.append(w, [0, 0, 0]))
    assert zero.rules_ == weighted.rules_


def test_row_order_of_a_frame_with_categories_does_not_matter():
    rng = np.random.default_rng(0)
    X = mixed_frame(rng, 150)
    y = np.where(X["colour"].isin(["red", "black"]) ^ X["yes"], "in", "out")
    at = rng.permutation(150)
    one = quick("classes", small("classes")).fit(X, y)
    two = quick("classes", small("classes")).fit(X.iloc[at], y[at])
    assert one.rules_ == two.rules_


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_fitted_ensemble_is_used_as_it_is_and_never_changed(kind):
    X, c, t = table()
    y = c if kind == "classes" else t
    forest = small(kind).fit(X, y)
    before = pickle.dumps(forest)
    model = quick(kind, forest).fit(X, y)
    assert model.estimator_ is forest and pickle.dumps(forest) == before
    unfitted = small(kind)
    cloned = quick(kind, unfitted).fit(X, y)
    assert not hasattr(unfitted, "estimators_") and hasattr(cloned.estimator_, "estimators_")
    assert isinstance(quick(kind).fit(X, y).estimator_, type(unfitted))


# ------------------------------------------------------------------ units

UNITS = [
    (1e-12, 0.0),
    case(1e-6, 0.0, quick=False),
    case(1e6, 0.0, quick=False),
    (1e12, 0.0),
    (1.0, 1e9),
]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("scale,offset", UNITS)
def test_rules_do_not_depend_on_the_units_of_X(kind, scale, offset):
    X, c, t = table()
    y = c if kind == "classes" else t
    plain = quick(kind).fit(X, y)
    moved = quick(kind).fit(X * scale + offset, y)
    assert np.array_equal(plain.rules_.apply(X), moved.rules_.apply(X * scale + offset))
    assert np.array_equal(plain.predict(X), moved.predict(X * scale + offset))
    assert len(plain.rules_.rules) > 1
    assert moved.estimator_.score(X * scale + offset, y) > 0.8


@pytest.mark.parametrize("scale,offset", UNITS)
def test_rules_do_not_depend_on_the_units_of_y(scale, offset):
    X, _, t = table()
    t = np.round(t * 1024) / 1024  # so that the offset loses no digits
    plain = quick("numbers").fit(X, t)
    moved = quick("numbers").fit(X, t * scale + offset)
    assert len(plain.rules_.rules) > 1
    assert np.array_equal(plain.rules_.apply(X), moved.rules_.apply(X))
    assert np.allclose(
        moved.predict(X), plain.predict(X) * scale + offset, rtol=1e-9, atol=1e-9 * abs(scale)
    )
    assert moved.estimator_.score(X, t * scale + offset) > 0.8


def test_one_column_of_many_may_be_ill_scaled():
    X, y, _ = table()
    X = X * [1e-12, 1.0, 1e12] + [0, 1e9, 0]
    model = quick("classes").fit(X, y)
    assert model.score(X, y) > 0.85
    assert pickle.loads(pickle.dumps(model)).estimator_.score(X, y) > 0.9


def test_well_scaled():
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert (
        well_scaled(X)
        and well_scaled(X * 1e6)
        and well_scaled(np.full((3, 1), np.nan))
        and well_scaled(X * 0)
    )
    for bad in (X * 1e-6, X + 1e9, X * [1, 1e-12], X * 1e35):
        assert not well_scaled(bad)


# ------------------------------------------------------------------ every library


def libraries():
    found = [
        ("classes", DecisionTreeClassifier(random_state=0)),
        ("numbers", DecisionTreeRegressor(random_state=0)),
        ("classes", RandomForestClassifier(5, random_state=0)),
        ("numbers", RandomForestRegressor(5, random_state=0)),
        ("classes", ExtraTreesClassifier(5, random_state=0)),
        ("numbers", ExtraTreesRegressor(5, random_state=0)),
        ("classes", BaggingClassifier(n_estimators=5, random_state=0)),
        ("numbers", BaggingRegressor(n_estimators=5, random_state=0)),
        ("classes", AdaBoostClassifier(n_estimators=5, random_state=0)),
        ("numbers", AdaBoostRegressor(n_estimators=5, random_state=0)),
        ("classes", GradientBoostingClassifier(n_estimators=5, random_state=0)),
        ("numbers", GradientBoostingRegressor(n_estimators=5, random_state=0)),
        ("classes", HistGradientBoostingClassifier(max_iter=5)),
        ("numbers", HistGradientBoostingRegressor(max_iter=5)),
    ]
    return [pytest.param(kind, model, id=type(model).__name__) for kind, model in found]


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("kind,model", libraries())
def test_every_ensemble_of_scikit_learn(kind, model, fitted):
    X, c, t = table()
    y = np.array(["no", "yes"])[c] if kind == "classes" else t
    said = quick(kind, clone(model).fit(X, y) if fitted else model).fit(X, y)
    assert said.score(X, y) > (0.75 if kind == "classes" else 0.4)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_every_boosting_library(library, kind):
    module = pytest.importorskip(library)
    name = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}[library]
    silent = {
        "xgboost": {},
        "lightgbm": {"verbose": -1},
        "catboost": {"verbose": 0, "allow_writing_files": False},
    }
    name += "Classifier" if kind == "classes" else "Regressor"
    model = getattr(module, name)(n_estimators=8, **silent[library])
    X, c, t = table()
    y = c if kind == "classes" else t
    fitted = quick(kind, clone(model).fit(X, y)).fit(X, y)
    unfitted = quick(kind, model).fit(X, y)
    for said in (fitted, unfitted):
        assert said.score(X, y) > (0.75 if kind == "classes" else 0.2)
        assert np.array_equal(said.predict(X), said.rules_.predict(X))


def test_a_native_booster():
    xgboost = pytest.importorskip("xgboost")
    X, y, _ = table()
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, y), 5)
    assert quick("classes", booster).fit(X, y).score(X, y) > 0.75


# ------------------------------------------------------------------ ordinary tables


def test_categories_gaps_and_words():
    rng = np.random.default_rng(0)
    X = mixed_frame(rng, 300)
    y = np.where(X["colour"].isin(["red", "black"]) | X["colour"].isna(), "in", "out")
    for model in (None, small("classes"), HistGradientBoostingClassifier(max_iter=5)):
        given = (
            X.astype({"word": "category"})
            if isinstance(model, HistGradientBoostingClassifier)
            else X
        )
        said = quick("classes", model).fit(given, y)
        assert said.score(given, y) == 1.0
        assert "colour" in str(said.rules_) and "∈" in str(said.rules_)
        unseen = given.head(2).assign(colour=["purple", None])
        assert said.predict(unseen).tolist() == ["in", "in"]


def test_a_forest_fitted_on_category_codes_is_read_in_the_order_of_the_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"colour": pd.Categorical(rng.choice(list("abcdef"), 300)), "x": rng.random(300)}
    )
    y = X["colour"].isin(["a", "d", "e"]).to_numpy().astype(int)
    codes_only = np.column_stack([X["colour"].cat.codes, X["x"]])
    forest = small("classes").fit(codes_only, y)
    model = quick("classes", forest).fit(X, y)
    assert model.fidelity_ > 0.99 and model.score(X, y) > 0.99


def test_categories_that_are_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"b": pd.Categorical(rng.choice([10, 20, 30, 40], 200)), "x": rng.random(200)})
    y = X["b"].isin([10, 40]).to_numpy()
    for model in (None, small("classes"), HistGradientBoostingClassifier(max_iter=10).fit(X, y)):
        said = quick("classes", model).fit(X, y)
        assert said.score(X, y) == 1.0
        asked = [
            split
            for rule in said.rules_.rules
            for split, _ in rule.conditions
            if split.features == (0,)
        ]
        assert asked and all(
            split.categories is not None for split in asked
        )  # sets of labels, never codes


def test_multiclass_and_string_labels():
    iris = load_iris()
    y = iris.target_names[iris.target]
    model = quick("classes", small("classes")).fit(iris.data, y)
    assert model.score(iris.data, y) > 0.9
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert np.allclose(model.predict_proba(iris.data).sum(axis=1), 1)


@pytest.mark.parametrize("given", [True, False])
def test_trivial_models(given):
    X, y, t = table()
    clf, reg = (small("classes"), small("numbers")) if given else (None, None)
    one = quick("classes", clf).fit(X, np.full(120, "a"))
    assert set(one.predict(X)) == {"a"} and len(one.rules_.rules) == 1
    for constant in (0.0, 3.0, 1e12):
        flat = quick("numbers", reg).fit(X, np.full(120, constant))
        assert (
            np.array_equal(flat.predict(X), np.full(120, constant)) and len(flat.rules_.rules) == 1
        )
    assert quick("classes", clf).fit(X[:, :1], y).score(X[:, :1], y) > 0.7
    assert quick("numbers", reg).fit(X[:2], t[:2]).predict(X[:2]).shape == (2,)
    same = quick("classes", clf).fit(np.ones((20, 2)), [0, 1] * 10)
    assert same.predict_proba(np.ones((1, 2))).tolist() == [[0.5, 0.5]]
    alone = quick("numbers", reg, max_rules=1).fit(X, t)
    assert len(alone.rules_.rules) == 1 and alone.predict(X)[0] == pytest.approx(t.mean())


def test_useless_columns():
    X, y, _ = table()
    lacking = np.column_stack([X, np.full(120, np.nan), np.zeros(120), X[:, 0]])
    for model in (None, small("classes")):
        assert quick("classes", model).fit(lacking, y).score(lacking, y) > 0.85


@given(st.integers(0, 10**6), st.integers(1, 3))
@examples(15)
def test_max_conditions_holds(seed, most):
    X, y, _ = table(seed, 80, 5)
    model = quick("classes", small("classes", 3), max_conditions=most, max_rules=6, n_init=1).fit(
        X, y
    )
    assert all(
        len({split.features for split, _ in rule.conditions}) <= most for rule in model.rules_.rules
    )
    assert len(model.rules_.rules) <= 6


def test_target_ensemble_answers_what_the_ensemble_says():
    X, _, t = table()
    stump = DecisionTreeRegressor(max_depth=1).fit(X, t + 100)  # an ensemble that is wrong by 100
    observed, told = (
        quick("numbers", stump, target=target).fit(X, t) for target in ("observed", "ensemble")
    )
    assert abs(observed.predict(X).mean() - t.mean()) < 1e-9
    assert abs(told.predict(X).mean() - stump.predict(X).mean()) < 1e-9
    _, y, _ = table()
    assert quick("classes", small("classes"), target="ensemble").fit(X, y).score(X, y) > 0.85


def test_verbose_tells(capsys, monkeypatch):
    X, y, _ = table()
    monkeypatch.setattr(chunks, "time", SimpleNamespace(monotonic=count().__next__))
    quick("classes", small("classes"), verbose=2, n_perturbations=100).fit(X, y)
    said = capsys.readouterr().out
    assert "restart 1/2" in said and "components" in said
    assert re.search(r"list search: perturbation \d+ of 100, \d rules, .*about \d+ s left", said)
    quick("classes", small("classes")).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_forest_that_tells_how_it_grows_is_the_same(capsys, monkeypatch, kind):
    X, y, t = table()
    y = y if kind == "classes" else t
    silent = quick(kind, max_rules=3).fit(X, y)
    monkeypatch.setattr(chunks, "time", SimpleNamespace(monotonic=count(0, 5).__next__))
    told = quick(kind, max_rules=3, verbose=1).fit(X, y)
    assert re.search("forest: ten trees 3 of 10, .*about .* left", capsys.readouterr().out)
    assert told.rules_ == silent.rules_ and not told.estimator_.warm_start
    assert np.array_equal(told.estimator_.predict(X), silent.estimator_.predict(X))


# ------------------------------------------------------------------ scikit-learn's tools


def test_clone_pickle_pipeline_and_search():
    X, y, t = table()
    model = quick("classes", small("classes")).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.rules_ == model.rules_ and np.array_equal(
        again.predict_posterior(X), model.predict_posterior(X)
    )
    fresh = clone(model).set_params(max_rules=2, estimator__n_estimators=3)
    assert fresh.get_params()["max_rules"] == 2 and not hasattr(fresh, "rules_")
    assert len(fresh.fit(X, y).rules_.rules) <= 2 and len(fresh.estimator_.estimators_) == 3
    assert make_pipeline(StandardScaler(), quick("classes")).fit(X, y).score(X, y) > 0.85
    found = GridSearchCV(quick("numbers", small("numbers")), {"max_rules": [1, 4]}, cv=3).fit(X, t)
    assert found.best_params_ == {"max_rules": 4}
    assert cross_val_score(quick("classes", small("classes")), X, y, cv=3).mean() > 0.75


def test_a_forest_without_names_is_explained_on_a_frame_without_a_warning():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(20, random_state=0).fit(X.to_numpy(), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RuleMixtureClassifier(forest, n_init=1, n_perturbations=0, random_state=0).fit(X, y)
    assert model.out_of_bag_  # its bags were found


def test_names_of_a_frame_reach_rules_and_ensemble():
    X, y, _ = table()
    model = quick("classes", small("classes")).fit(pd.DataFrame(X, columns=["a", "b", "c d"]), y)
    assert (
        model.rules_.columns.names == ("a", "b", "c d") == tuple(model.estimator_.feature_names_in_)
    )


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "name,value",
    [
        ("max_rules", 0),
        ("max_rules", 2.5),
        ("max_rules", True),
        ("max_conditions", 0),
        ("n_init", 0),
        ("n_perturbations", -1),
        ("penalty", -0.1),
        ("penalty", np.nan),
        ("penalty", np.inf),
        ("search", "trees"),
        ("search", Structure()),
        ("target", "y"),
        ("refit", "always"),
        ("verbose", "loud"),
        ("n_jobs", 0),
        ("n_jobs", "all"),
        ("random_state", "seed"),
        ("random_state", -1),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(name, value):
    X, y, _ = table()
    with pytest.raises(ValueError) as refused:
        quick("classes", **{name: value}).fit(X, y)
    said = str(refused.value)
    assert (
        said.startswith(f"{name} must be ") and said.endswith(f"got {value!r}") and "\n" not in said
    )


@pytest.mark.parametrize(
    "search, name",
    [
        (EM(n_components=0), "n_components"),
        (EM(max_iter=0), "max_iter"),
        (EM(tol=-1), "tol"),
        (EM(init="random"), "init"),
        (EM(hard_gates=False), "hard_gates"),
    ],
)
def test_wrong_and_unused_options_are_rejected_in_one_line(search, name):
    X, y, _ = table()
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got [^\n]*$"):
        quick("classes", search=search).fit(X, y)


def wrong_estimators():
    X, c, t = table()
    return [
        ("classes", small("numbers"), "classification ensemble, got RandomForestRegressor"),
        (
            "classes",
            small("numbers").fit(X, t),
            "classification ensemble, got RandomForestRegressor",
        ),
        ("numbers", small("classes"), "regression ensemble, got RandomForestClassifier"),
        ("numbers", small("classes").fit(X, c), "regression ensemble, got RandomForestClassifier"),
        ("classes", RandomForestClassifier, "got RandomForestClassifier, a class"),
        ("classes", LogisticRegression(), "LogisticRegression: supported are"),
        ("classes", make_pipeline(PCA(2), small("classes")), "PCA: this step cannot be undone"),
        ("classes", 5, "int: supported are"),
        ("classes", "no-such-file.json", "no such file"),
        ("classes", small("classes").fit(X[:, :2], c), "fitted on 2 columns, got 3"),
        ("classes", small("classes").fit(X, c + 5), "classes of y, 0, 1, got 5, 6"),
    ]


@pytest.mark.parametrize("kind,model,said", wrong_estimators())
def test_wrong_estimators_are_refused_in_one_line(kind, model, said):
    X, c, t = table()
    with pytest.raises(ValueError, match="estimator") as refused:
        quick(kind, model).fit(X, c if kind == "classes" else t)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_what_cannot_be_fitted_again_is_refused_in_one_line():
    X, y, _ = table()
    xgboost = pytest.importorskip("xgboost")
    made = xgboost.XGBClassifier(n_estimators=3, early_stopping_rounds=2)
    made.fit(X, y, eval_set=[(X, y)], verbose=False)
    for model, name in ((made.get_booster(), "Booster"), (made, "XGBClassifier")):
        with pytest.raises(ValueError, match="refit=True needs an estimator that can") as refused:
            quick("classes", model, refit=True).fit(X, y)
        said = str(refused.value)
        assert f"got {name}" in said and said.endswith("set refit=False") and "\n" not in said


# ------------------------------------------------------------------ the parts


@given(st.integers(0, 10**6))
@examples(30)
def test_short_cuts_keep_every_row(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(40, 2)) * 10.0 ** rng.integers(-8, 9), int(rng.integers(0, 5)))
    if (X == X[0]).all():
        return
    bins = merge_identical(
        X, ensemble_thresholds(RandomForestRegressor(2, random_state=0).fit(X, rng.normal(size=40)))
    )
    for x, cuts, said in zip(
        X.T, bins.thresholds, round_cuts(in_memory((X,)), range(X.shape[1]), bins)
    ):
        assert np.array_equal(x[:, None] > cuts, x[:, None] > np.array(said).reshape(-1))


def test_jittered_rows_lie_between_rows():
    rng = np.random.default_rng(0)
    Z = np.column_stack(
        [rng.random(50), rng.integers(0, 4, 50), np.where(rng.random(50) < 0.3, np.nan, 1.0)]
    )
    new = jitter(Z, np.ones(50), np.array([False, True, False]), 500, rng)
    assert new.shape == (500, 3)
    assert Z[:, 0].min() <= new[:, 0].min() and new[:, 0].max() <= Z[:, 0].max()
    assert (
        set(new[:, 1]) <= set(Z[:, 1])
        and set(new[~np.isnan(new[:, 2]), 2]) == {1.0}
        and np.isnan(new[:, 2]).any()
    )
    only = jitter(Z[:2], np.array([1.0, 1e-12]), np.zeros(3, bool), 10, rng)
    assert only.shape == (10, 3)


def test_the_forest_of_a_badly_scaled_table_can_be_read_again():
    """It stands behind a scaler, which is undone: reports ask for it."""
    rng = np.random.default_rng(0)
    rows = np.stack([1e9 + rng.random(200), rng.random(200)], axis=1)
    model = RuleMixtureRegressor(n_init=1, n_perturbations=1, random_state=0)
    model.fit(rows, (rows[:, 0] > 1e9 + 0.5) + rows[:, 1])
    read = read_ensemble(model.estimator_, model.columns_)
    assert np.array_equal(read.predict(rows), model.estimator_.predict(rows))


# ------------------------------------------------------------------ sizes


def noisy_boxes(seed, n=400):
    """Rows of two informative columns and two others, exclusive or with one label in ten wrong."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5) ^ (rng.random(n) < 0.1)
    return X, y.astype(int)


def fit_sized(X, y, **settings):
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    quick = dict(n_init=1, n_perturbations=20, random_state=0)
    return RuleMixtureClassifier(forest, **(quick | settings)).fit(X, y)


@pytest.mark.parametrize("size", ["small", "balanced"])
def test_the_size_of_a_truth_is_found(size):
    X, y = noisy_boxes(0)
    model = fit_sized(X, y, size=size)
    assert len(model.rules_) == 3
    used = {j for rule in model.rules_ for split, _ in rule.conditions for j in split.features}
    assert used == {0, 1}


@pytest.mark.parametrize("numbers", [False, True])
def test_noise_is_answered_by_one_rule(numbers):
    rng = np.random.default_rng(3)
    X = rng.random((300, 4))
    y = rng.normal(size=300) if numbers else rng.integers(0, 2, 300)
    kind = RuleMixtureRegressor if numbers else RuleMixtureClassifier
    model = kind(size="small", n_init=1, n_perturbations=20, random_state=0).fit(X, y)
    assert len(model.rules_) == 1 and len(model.path_) > 1
    with pytest.warns(UserWarning, match="the path has no size 100"):
        assert len(model.at(100).rules_) > 1  # the search found lists, they did not pay


def test_the_path_holds_every_size_and_at_shows_one():
    X, y = noisy_boxes(1)
    model = fit_sized(X, y)
    path = model.path_
    assert list(path.columns) == "size n_numbers criterion train_error train_se chosen".split()
    assert path["size"].is_monotonic_increasing and path["size"].is_unique
    assert path["chosen"].sum() == 1
    assert path.loc[path["chosen"], "size"].item() == len(model.rules_)
    assert path["criterion"].idxmin() == path["chosen"].idxmax()
    before = model.rules_
    for size in path["size"]:
        other = model.at(int(size))
        assert len(other.rules_) == size and other.rules_.target == model.rules_.target
        assert np.array_equal(other.predict(X), other.rules_.predict(X))
        assert other.error_ == np.mean(other.predict(X) != y)
        entry = path[path["size"] == size]
        assert entry["train_error"].item() == other.error_  # of the rows of the fit, and named so
        spread = np.std(other.predict(X) != y) / np.sqrt(len(y))
        assert entry["train_se"].item() == pytest.approx(spread)
        asked = fit_sized(X, y, size=int(size))
        assert asked.rules_ == other.rules_
    assert model.rules_ is before
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got 0"):
        model.at(0)
    with pytest.raises(NotFittedError, match="call fit first"):
        RuleMixtureClassifier().at(3)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "tiny", None])
def test_a_wrong_size_is_refused_by_name(wrong):
    with pytest.raises(
        ValueError, match='size must be "balanced", "small", "accurate" or an integer'
    ):
        RuleMixtureClassifier(size=wrong).fit(*noisy_boxes(0, 50))


def test_a_support_that_all_rows_do_not_reach_is_refused():
    X = np.arange(40.0)[:, None]
    told = "min_support must be at most 40, the number of training rows, got 41"
    with pytest.raises(ValueError, match=told):
        RuleMixtureRegressor(min_support=41).fit(X, X[:, 0])
    assert len(RuleMixtureRegressor(min_support=40).fit(X, X[:, 0]).rules_.rules) == 1


def test_budgets_of_conditions_and_support_hold():
    X, y = noisy_boxes(2)
    model = fit_sized(X, y, size="accurate", max_conditions_total=3)
    assert all(model.at(int(k)).n_conditions_ <= 3 for k in model.path_["size"])
    model = fit_sized(X, y, size="accurate", min_support=60)
    for k in model.path_["size"]:
        assert all(rule.support >= 60 for rule in model.at(int(k)).rules_[:-1])


def test_a_bag_is_trusted_only_on_the_rows_of_the_forest():
    X, y = noisy_boxes(4, 300)
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    quick = dict(n_init=1, n_perturbations=5, random_state=0)

    def has_bag(rows, labels, model=forest, **more):
        fitted = RuleMixtureClassifier(model, **quick, **more).fit(rows, labels)
        return fitted.out_of_bag_

    order = np.random.default_rng(0).permutation(300)
    assert has_bag(X, y)
    assert not has_bag(X[order], y[order])  # permuted
    assert not has_bag(X[:200], y[:200])  # a part
    assert not has_bag(X, y, target="ensemble")  # what the forest says, not what it should
    assert has_bag(X[order], y[order], model=RandomForestClassifier(40, random_state=0))
    assert has_bag(X[order], y[order], model=None)
    twice = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    again = RandomForestClassifier(40, random_state=0).fit(*twice)
    assert has_bag(*twice, model=again)
    single = RandomForestClassifier(1, random_state=0).fit(X, y)
    assert not has_bag(X, y, model=single)  # most rows have no tree that has not seen them
    boosted = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    assert not has_bag(X, y, model=boosted)


def test_a_bag_is_found_behind_a_search_a_pipeline_and_in_bagged_trees():
    X, y = noisy_boxes(4, 300)
    forest = RandomForestClassifier(40, random_state=0)
    path = fit_sized(X, y).path_
    piped = make_pipeline(StandardScaler(), forest)
    cases = {
        "search": GridSearchCV(forest, {"max_depth": [None]}, cv=2),
        "pipeline": piped,
        "search of a pipeline": GridSearchCV(
            piped, {"randomforestclassifier__max_depth": [5]}, cv=2
        ),
        "bagged": BaggingClassifier(n_estimators=20, random_state=0),
        "bagged, a part": BaggingClassifier(
            n_estimators=20, bootstrap=False, max_samples=0.6, max_features=0.5, random_state=0
        ),
    }
    quick = dict(n_init=1, n_perturbations=20, random_state=0)
    for name, model in cases.items():
        assert RuleMixtureClassifier(model.fit(X, y), **quick).fit(X, y).out_of_bag_, name
    found = RuleMixtureClassifier(cases["search"], **quick).fit(X, y).path_
    assert found.equals(path)  # the best of one is the forest
    whole = BaggingClassifier(n_estimators=5, bootstrap=False, random_state=0).fit(X, y)
    assert not RuleMixtureClassifier(whole, **quick).fit(X, y).out_of_bag_
    t = X[:, 0] + y
    bagged = BaggingRegressor(n_estimators=20, random_state=0).fit(X, t)
    assert RuleMixtureRegressor(bagged, **quick).fit(X, t).out_of_bag_


def test_clones_answer_out_of_fold_where_there_is_no_bag():
    X, y = noisy_boxes(6, 300)
    boosted = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    kept = pickle.dumps(boosted)
    quick = dict(n_init=1, n_perturbations=20, random_state=0)
    model = RuleMixtureClassifier(boosted, refit=True, **quick).fit(X, y)
    assert model.estimator_ is boosted and pickle.dumps(boosted) == kept
    assert len(model.rules_) == 3 and model.out_of_bag_
    order = np.random.default_rng(0).permutation(len(y))
    again = RuleMixtureClassifier(boosted, refit=True, **quick).fit(X[order], y[order])
    assert again.rules_ == model.rules_  # folds do not depend on the order of the rows
    # a forest's own bag goes first, and what the ensemble says needs none
    bagged = fit_sized(X, y, refit=True)
    assert bagged.path_.equals(fit_sized(X, y).path_)
    told = RuleMixtureClassifier(boosted, refit=True, target="ensemble", **quick).fit(X, y)
    assert not told.out_of_bag_
    rare = np.where(np.arange(300) < 1, "rare", np.where(y, "yes", "no"))
    frame = pd.DataFrame(X).set_axis(list("abcd"), axis=1)
    search = GridSearchCV(HistGradientBoostingClassifier(max_iter=5), {"max_depth": [3]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(frame, rare)
    model = RuleMixtureClassifier(search, refit=True, **quick).fit(frame, rare)
    assert model.out_of_bag_ and model.predict_proba(frame).shape == (300, 3)
    numbers = HistGradientBoostingRegressor(max_iter=20).fit(X, X[:, 0])
    model = RuleMixtureRegressor(numbers, refit=True, **quick).fit(X, X[:, 0])
    assert model.out_of_bag_ and model.path_["train_error"].is_monotonic_decreasing


@given(st.integers(0, 10**6))
@examples(20)
def test_folds_keep_equal_rows_together_and_deal_classes_evenly(seed):
    rng = np.random.default_rng(seed)
    Z = np.sort(rng.integers(0, 12, (60, 1)), axis=0).astype(float)
    Z[rng.random(60) < 0.1] = np.nan
    Z = np.sort(Z, axis=0)
    y = rng.integers(0, 3, 60)
    fold = assign_folds(Z, y, rng)
    for z in np.unique(Z):
        same = np.isnan(Z[:, 0]) if np.isnan(z) else Z[:, 0] == z
        assert len(set(fold[same])) == 1
    apart = assign_folds(np.arange(60.0)[:, None], y, rng)
    for c in np.unique(y):
        counts = np.bincount(apart[(y == c) & (apart >= 0)], minlength=5)
        assert np.ptp(counts) <= 1


def test_shares_are_shrunk_by_one_row_and_carry_an_interval():
    X, y = noisy_boxes(7)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    model = RuleMixtureClassifier(forest, n_init=1, n_perturbations=20, random_state=0)
    rules = model.fit(X, y, sample_weight=weight).rules_
    assert len(rules) > 1
    at = rules.apply(X)
    centre = np.average(np.eye(2)[y], axis=0, weights=weight)
    for k, rule in enumerate(rules):
        counts = np.bincount(y[at == k], weight[at == k], 2)
        assert np.allclose(rule.leaf.value, (counts + centre) / (counts.sum() + 1))
        c = int(np.argmax(counts))
        after = beta(counts[c] + centre[c], counts.sum() - counts[c] + 1 - centre[c])
        assert np.allclose(rule.interval, after.ppf([0.025, 0.975]))
        assert rule.interval[0] < max(rule.leaf.value) < rule.interval[1]
    assert np.allclose(model.predict_proba(X), np.array([r.leaf.value for r in rules])[at])
    shown = rules.to_frame()
    assert np.allclose(shown[["low", "high"]], [rule.interval for rule in rules])
    back = type(rules).from_json(rules.to_json())
    assert back == rules and back[0].interval == rules[0].interval
    ends = " to ".join(f"{end:.3g}" for end in rules[0].interval)
    assert ends in rules.to_html()
    assert f"95 %: {ends})" in rules.to_text(intervals=True) and "95 %" not in str(rules)
    told = fit_sized(X, y, target="ensemble").rules_
    assert all(rule.interval is None for rule in told) and "low" not in told.to_frame()


def test_means_carry_an_interval_of_student():
    X, y = noisy_boxes(8)
    t = y + 0.3 * np.random.default_rng(0).normal(size=len(y)) + 1e6
    rules = RuleMixtureRegressor(n_init=1, n_perturbations=20, random_state=0).fit(X, t).rules_
    at = rules.apply(X)
    assert len(rules) > 1
    for k, rule in enumerate(rules):
        mine = t[at == k]
        assert np.isclose(rule.leaf.value, mine.mean(), rtol=1e-12)
        after = student(len(mine) - 1, mine.mean(), mine.std(ddof=1) / np.sqrt(len(mine)))
        assert np.allclose(rule.interval, after.ppf([0.025, 0.975]), rtol=1e-9)
    same = RuleMixtureClassifier(n_init=1, n_perturbations=1, random_state=0)
    same.fit(X[:20], np.zeros(20, int))
    assert same.rules_[0].interval is None and same.rules_[0].leaf.value == (1.0,)


def test_code_lengths_of_boxes_are_those_of_a_code():
    # Σ exp(-C) over all lists of one or two boxes with one cut on one of three columns
    nats = np.log([4.0, 2.0, 1.0])
    boxes = [np.eye(3)[[j]] for j in range(3) for _ in range(2 * round(np.exp(nats[j])))]
    one = sum(np.exp(-code_length_of_boxes(box, nats)) for box in boxes)
    two = sum(np.exp(-code_length_of_boxes(np.vstack([a, b]), nats)) for a in boxes for b in boxes)
    assert one + two <= 1 and np.isclose(two, one**2)
    # a wider choice of columns or cuts costs more, and so does a gap
    assert code_length_of_boxes(boxes[0], nats) > code_length_of_boxes(boxes[-1], nats)
    assert code_length_of_boxes(boxes[0], nats, True) > code_length_of_boxes(boxes[0], nats)
    assert code_length_of_boxes(np.zeros((0, 3)), nats) == 0


class Rules(list):
    """A list of rules for numbers."""

    classes = None
    fidelity = 1.0
    n_conditions = 0


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 9)), min_size=1, max_size=8))
@examples(50)
def test_small_is_never_longer_than_balanced_nor_balanced_than_accurate(lists):
    found = [FoundList((), 0, 0.0)] + [FoundList((), 1, length) for length, _ in lists]
    errors = [10.0] + [error for _, error in lists]
    sums = [(20.0, 20 * error, 20 * error**2, 20.0, None) for error in errors]
    rule_sets = [Rules(range(k + 1)) for k in range(len(found))]
    sizes = []
    for size in ("small", "balanced", "accurate"):
        settings = SimpleNamespace(size=size)
        entries = list_entries(found, rule_sets, sums, False, settings)
        sizes.append(entries[choose_size(entries, size)].size)
    assert sizes == sorted(sizes)


def test_ensembles_that_say_little_give_sensible_lists():
    X, y = noisy_boxes(5, 200)
    quick = dict(n_init=1, n_perturbations=5, random_state=0)
    constant = RandomForestClassifier(5, random_state=0).fit(np.zeros_like(X), y)
    model = RuleMixtureClassifier(constant, **quick).fit(X, y)
    assert len(model.rules_) == 1 and len(model.path_) == 1
    lone = RandomForestClassifier(1, max_depth=2, random_state=0).fit(X, y)
    assert len(RuleMixtureClassifier(lone, **quick).fit(X, y).rules_) >= 1
    fewer = RandomForestClassifier(20, random_state=0).fit(X, y)
    third = y.copy()
    third[:20] = 2  # a class that the forest never saw
    model = RuleMixtureClassifier(fewer, **quick).fit(X, third)
    assert model.predict_proba(X).shape == (200, 3)
    stranger = RandomForestClassifier(20, random_state=0).fit(X, third)
    with pytest.raises(ValueError, match="estimator must predict the classes of y, 0, 1, got"):
        RuleMixtureClassifier(stranger, **quick).fit(X, y)
    weight = np.ones(200)
    weight[:50] = 0.0  # rows of the bags that do not count: the bags cannot be checked
    model = RuleMixtureClassifier(fewer, **quick).fit(X, y, sample_weight=weight)
    assert not model.out_of_bag_
    assert sum(rule.support for rule in model.rules_) == 150
