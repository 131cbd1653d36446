"""The front door: any model in, a few rules and an honest fidelity out."""

import json
import pickle
import warnings
from dataclasses import FrozenInstanceError

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.snapshots import leave_out_pictures
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fabinterp
from fabinterp.blackbox.wrapping import as_reference
from fabinterp.explanation import Explanation, ensure_every_class, explain, split_positions
from fabinterp.models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor
from fabinterp.proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.rules.ruleset import RuleSet

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1, 1, (200, 3)), columns=["a", "b", "c"])
Y = np.where(X.a > 0.2, 2.0, np.where(X.b > -0.3, 0.0, -1.5)) + rng.normal(0, 0.1, 200)
LABELS = np.where(X.a > 0.2, "yes", np.where(X.b > -0.3, "no", "maybe"))
QUICK = {"n_init": 2, "n_perturbations": 5}
FOREST = RandomForestClassifier(10, random_state=0).fit(X, LABELS)
BOOSTING = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, Y)


def fidelity(rules, said, X):
    """The definition, written once more."""
    answers = rules.predict(X)
    return (
        np.mean(answers == said)
        if rules.classes
        else 1 - np.mean((answers - said) ** 2) / np.var(said)
    )


MODELS = {
    "forest": (lambda: FOREST, RuleMixtureClassifier),
    "forest of numbers": (
        lambda: RandomForestRegressor(10, random_state=0).fit(X, Y),
        RuleMixtureRegressor,
    ),
    "boosting": (lambda: BOOSTING, RuleMixtureRegressor),
    "search": (
        lambda: GridSearchCV(FOREST, {"max_depth": [2, 3]}, cv=2).fit(X, LABELS),
        RuleMixtureClassifier,
    ),
    "single tree": (lambda: DecisionTreeRegressor(max_leaf_nodes=5).fit(X, Y), ProxyTreeRegressor),
    "support vectors": (lambda: SVC().fit(X, LABELS), ProxyTreeClassifier),
    "process": (
        lambda: GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None).fit(X, Y),
        ProxyTreeRegressor,
    ),
    "ridge": (lambda: BayesianRidge().fit(X, Y), ProxyTreeRegressor),
    "pipeline": (
        lambda: make_pipeline(StandardScaler(), clone(FOREST)).fit(X, LABELS),
        RuleMixtureClassifier,
    ),
    "pipeline with a step in the way": (
        lambda: make_pipeline(PCA(2), clone(FOREST)).fit(X, LABELS),
        ProxyTreeClassifier,
    ),
    "detector": (lambda: IsolationForest(random_state=0).fit(X), ProxyTreeClassifier),
    "function": (lambda: lambda X: X["a"] * 2.0, ProxyTreeRegressor),
    "draws": (lambda: Y + rng.normal(size=(4, 200)), ProxyTreeRegressor),
    "reference": (lambda: as_reference(LogisticRegression().fit(X, LABELS)), ProxyTreeClassifier),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gets_rules_that_are_measured_as_they_are_shown(name):
    make, kind = MODELS[name]
    model = make()
    options = QUICK if kind in (RuleMixtureClassifier, RuleMixtureRegressor) else {}
    found = explain(model, X, max_rules=5, random_state=0, **options)
    assert (
        isinstance(found, Explanation)
        and isinstance(found.rules, RuleSet)
        and type(found.model) is kind
    )
    assert found.method == ("rule mixture" if options else "proxy tree") and (
        found.tree is None
    ) == bool(options)
    assert 1 <= len(found.rules.rules) <= 5 and found.n_rows == (160, 40)
    assert np.array_equal(found.predict(X), found.rules.predict(X))
    said = found.reference.predictions(X)
    at, out = split_positions(
        200, 0.2, np.random.default_rng(np.random.RandomState(0).randint(2**31, size=4))
    )
    assert np.isclose(found.fidelity, fidelity(found.rules, said[at], X.iloc[at]), atol=1e-9)
    assert np.isclose(
        found.fidelity_held_out, fidelity(found.rules, said[out], X.iloc[out]), atol=1e-9
    )
    assert np.isclose(found.fidelity_on(X), fidelity(found.rules, said, X), atol=1e-9)
    assert all(0 <= rule.support <= 160 and rule.fidelity <= 1 for rule in found.rules.rules)
    assert np.isclose(sum(rule.support for rule in found.rules.rules), 160)
    for text in (str(found), repr(found), found._repr_html_()):
        assert (
            f"{found.fidelity:.3f}" in text
            and f"{found.fidelity_held_out:.3f}" in text
            and found.method in text
        )


@pytest.mark.parametrize("model", [FOREST, SVC().fit(X, LABELS)])
def test_a_seed_makes_it_the_same_and_threads_change_nothing(model):
    options = QUICK if model is FOREST else {}
    one = explain(model, X, LABELS, 4, random_state=3, **options)
    same = explain(model, X, LABELS, 4, random_state=3, n_jobs=2, **options)
    assert one.rules == same.rules and str(one) == str(same)
    assert pickle.loads(pickle.dumps(one)).rules == one.rules
    with pytest.raises(FrozenInstanceError):
        one.fidelity = 1.0


def test_what_the_models_say_is_what_is_explained():
    for model in (FOREST, SVC().fit(X, LABELS), BOOSTING, Ridge().fit(X, Y)):
        options = QUICK if model in (FOREST, BOOSTING) else {}
        said = explain(model, X, max_rules=2, random_state=0, **options).reference.predictions(X)
        assert (
            np.array_equal(said, model.predict(X))
            if said.dtype.kind == "U"
            else np.allclose(said, model.predict(X))
        )


def test_y_changes_the_scores_and_nothing_else():
    without, with_y = (explain(FOREST, X, y, 4, random_state=0, **QUICK) for y in (None, LABELS))
    assert (
        without.rules == with_y.rules
        and np.isnan(without.model_score)
        and np.isnan(without.rules_score)
    )
    _, out = split_positions(
        200, 0.2, np.random.default_rng(np.random.RandomState(0).randint(2**31, size=4))
    )
    assert np.isclose(with_y.model_score, np.mean(FOREST.predict(X)[out] == LABELS[out]))
    assert np.isclose(with_y.rules_score, np.mean(with_y.predict(X)[out] == LABELS[out]))
    assert "accuracy" in str(with_y) and "accuracy" not in str(without)
    ridge = Ridge().fit(X, Y)
    numbers = explain(ridge, X, pd.Series(Y, name="price"), 4, held_out=0, random_state=0)
    assert np.isclose(numbers.model_score, ridge.score(X, Y)) and "R²" in str(numbers)
    assert numbers.rules.target == "price"


def test_held_out_zero_uses_every_row():
    found = explain(BOOSTING, X, max_rules=4, held_out=0, random_state=0, **QUICK)
    assert (
        found.n_rows == (200, 0)
        and np.isnan(found.fidelity_held_out)
        and "held out" not in str(found)
    )


@given(st.integers(2, 300), st.floats(0, 1, exclude_max=True), st.integers(0, 100))
def test_rows_are_parted(n, share, seed):
    at, out = split_positions(n, share, np.random.default_rng(seed))
    assert sorted([*at, *out]) == list(range(n)) and len(out) == int(share * n) and len(at) > 0


def test_a_step_function_is_found_exactly():
    for model in (
        DecisionTreeClassifier().fit(X, LABELS),
        lambda X: np.where(X["a"] > 0.2, 2.0, 0.0),
    ):
        found = explain(model, X, max_rules=4, random_state=0)
        assert found.fidelity == 1 and found.fidelity_held_out == 1


def test_the_method_can_be_chosen():
    tree = explain(FOREST, X, max_rules=4, method="tree", random_state=0)
    assert tree.method == "proxy tree" and "members" in tree.why
    single = DecisionTreeClassifier().fit(X, LABELS)
    mixture = explain(single, X, max_rules=4, method="mixture", random_state=0, **QUICK)
    assert mixture.method == "rule mixture"
    with pytest.raises(
        ValueError, match="method must be 'auto' or 'tree' for a model without readable trees, got"
    ):
        explain(Ridge().fit(X, Y), X, method="mixture")


def test_options_reach_the_estimator():
    found = explain(FOREST, X, max_rules=6, max_conditions=1, random_state=0, **QUICK)
    assert found.model.max_conditions == 1
    assert all(
        len({split.features for split, _ in rule.conditions}) <= 1 for rule in found.rules.rules
    )
    assert explain(FOREST, X, max_rules=3, random_state=0, **QUICK).model.max_conditions == 3
    assert (
        explain(Ridge().fit(X, Y), X, max_rules=8, max_depth=1, random_state=0).tree.n_leaves == 2
    )
    line = Ridge().fit(X, Y)
    bounded = explain(line, X, max_conditions=2, min_support=30, max_rules=8, random_state=0)
    same = explain(line, X, max_depth=2, min_samples_leaf=30, max_rules=8, random_state=0)
    assert bounded.rules == same.rules and bounded.tree.depth == 2
    assert min(rule.support for rule in bounded.rules.rules) >= 30
    with pytest.raises(
        ValueError, match="options of ProxyTreeRegressor are alpha.*, got max_components"
    ):
        explain(line, X, max_components=2)
    with pytest.raises(ValueError, match="got reference"):
        explain(Ridge().fit(X, Y), X, reference=FOREST)
    with pytest.raises(ValueError, match="got max_dept"):
        explain(FOREST, X, max_dept=2)


def test_frames_with_categories_and_gaps():
    frame = X.assign(colour=pd.Categorical(rng.choice(["red", "green", "blue"], 200)))
    y = np.where(frame.colour == "red", 3.0, 0.0) + Y
    model = make_pipeline(OneHotEncoder(sparse_output=False), Ridge())  # sees labels only
    found = explain(model.fit(frame[["colour"]], y), frame[["colour"]], max_rules=3, random_state=0)
    assert found.fidelity > 0.99 and "red" in str(found)
    gaps = X.mask(rng.random(X.shape) < 0.1)
    forest = RandomForestRegressor(10, random_state=0).fit(gaps, Y)
    for method in ("auto", "tree"):
        options = QUICK if method == "auto" else {}
        assert np.isfinite(
            explain(forest, gaps, method=method, random_state=0, **options).fidelity_held_out
        )


def test_arrays_and_lists_are_tables():
    model = Ridge().fit(X.to_numpy(), Y)
    one = explain(model, X.to_numpy(), max_rules=4, random_state=0)
    assert one.rules == explain(model, X.to_numpy().tolist(), max_rules=4, random_state=0).rules


def test_classes_that_are_never_said():
    rare = np.where(np.arange(200) < 2, "rare", LABELS)
    forest = RandomForestClassifier(20, min_samples_leaf=15, random_state=0).fit(X, rare)
    assert "rare" not in forest.predict(X)
    for options in ({"method": "tree"}, QUICK):
        found = explain(forest, X, max_rules=4, random_state=0, **options)
        assert "rare" in found.rules.classes and found.predict_proba(X).shape == (200, 4)
        assert np.allclose(found.predict_proba(X).sum(axis=1), 1)
    said = forest.predict(X)
    named = ensure_every_class(explain(forest, X, max_rules=2, **QUICK).reference.model, X, said)
    assert np.count_nonzero(named != said) == 1 and set(named) == set(forest.classes_)
    assert (
        forest.predict_proba(X)[:, list(forest.classes_).index("rare")].argmax()
        == np.flatnonzero(named != said)[0]
    )


def test_a_model_that_always_says_the_same():
    constant = RandomForestRegressor(3).fit(X, np.full(200, 2.5))
    one_class = SVC().fit(X, np.where(np.arange(200) < 1, "b", "a"))
    for model, options in ((constant, QUICK), (one_class, {}), (lambda X: np.zeros(len(X)), {})):
        found = explain(model, X, random_state=0, **options)
        assert len(found.rules.rules) == 1


def test_functions_with_classes():
    model = LogisticRegression().fit(X, LABELS)
    found = explain(
        lambda X: model.predict_proba(X), X, classes=model.classes_, max_rules=6, random_state=0
    )
    assert set(found.predict(X)) <= set(LABELS) and found.rules.classes == tuple(model.classes_)
    assert explain(model.predict_proba, X, max_rules=6, random_state=0).rules == found.rules


def test_draws_know_their_rows_only():
    draws = Y + rng.normal(0, 0.1, (5, 200))
    found = explain(draws, X, Y, max_rules=4, random_state=0)
    assert found.fidelity_held_out > 0.8 and found.rules_score > 0.8
    with pytest.raises(ValueError, match="rows for which the draws were computed"):
        found.fidelity_on(X[:50])


def test_verbose_tells(capsys):
    explain(Ridge().fit(X, Y), X, max_rules=3, random_state=0)
    assert capsys.readouterr().out == ""
    explain(Ridge().fit(X, Y), X, max_rules=3, random_state=0, verbose=True)
    assert "Ridge: queried for its predictions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_rules": 0}, "max_rules must be an integer of at least 1, got 0"),
        ({"max_rules": 2.5}, "max_rules must be an integer of at least 1"),
        ({"method": "lime"}, "method must be one of 'auto', 'mixture', 'tree', got 'lime'"),
        ({"held_out": 1.0}, r"held_out must be a fraction in \[0, 1\), got 1.0"),
        ({"held_out": True}, "held_out must be a fraction"),
        ({"random_state": "x"}, "random_state must be"),
        ({"y": Y[:-1]}, r"y must have shape \(200,\)"),
        ({"y": np.where(Y > 0, "a", "b")}, "y must hold numbers, got '[ab]', '[ab]'"),
        ({"X": X[:0]}, "X must have at least one row"),
        ({"model": Ridge}, "model must be a fitted model, got the class Ridge"),
        ({"model": None}, "model must be a fitted estimator"),
        ({"model": "no such file.json"}, "no such file"),
        ({"model": np.full((3, 200), np.nan)}, "draws must be finite"),
        ({"model": FOREST, "X": X[["a", "b"]]}, "model must match X"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        explain(**{"model": Ridge().fit(X, Y), "X": X, **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "model", [Ridge(), RandomForestRegressor(), make_pipeline(StandardScaler(), SVC())]
)
def test_unfitted_models_are_refused(model):
    name = type(model).__name__
    with pytest.raises(
        NotFittedError, match=f"model must be fitted if y is None, got an unfitted {name}"
    ):
        explain(model, X)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(5, random_state=0),
        make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0)),
        GridSearchCV(RandomForestRegressor(5, random_state=0), {"max_depth": [2, 3]}, cv=2),
        SVR(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_unfitted_models_are_fitted_to_the_rows_that_are_not_held_out(model):
    options = {} if isinstance(model, SVR) else QUICK
    found = explain(model, X, Y, 4, random_state=0, **options)
    at, out = split_positions(
        200, 0.2, np.random.default_rng(np.random.RandomState(0).randint(2**31, size=4))
    )
    by_hand = clone(model).fit(X.iloc[at], Y[at])
    assert np.allclose(found.reference.predictions(X), by_hand.predict(X))
    assert np.isclose(found.model_score, by_hand.score(X.iloc[out], Y[out]))
    assert "fitted here, to 160 rows" in str(found)
    assert "R² on the 40 held out from both: model" in str(found)
    assert not hasattr(model, "n_features_in_")  # what was given stays as it was
    whole = explain(model, X, Y, 4, held_out=0, random_state=0, **options)
    assert "R² on the training rows: model" in str(whole)


def test_fidelity_is_set_beside_that_of_one_answer():
    found = explain(FOREST, X, LABELS, 8, random_state=0, **QUICK)
    most = max(np.mean(FOREST.predict(X) == label) for label in FOREST.classes_)
    assert found.constant_fidelity == pytest.approx(most)
    assert f"most frequent class for all rows has {most:.3f}" in str(found)
    numbers = explain(BOOSTING, X, Y, 4, random_state=0, **QUICK)
    assert numbers.constant_fidelity == 0 and "the mean for all rows has 0" in str(numbers)
    budgeted = explain(fabinterp.Budgeted(FOREST, 60), X, random_state=0)
    assert 1 / 3 <= budgeted.constant_fidelity < budgeted.fidelity


def test_fewer_rules_than_allowed_are_explained():
    found = explain(FOREST, X, LABELS, 8, random_state=0, **QUICK)
    assert found.path_["size"].max() == len(found.rules.rules) == 3
    assert "3 rules, as a longer list does not shorten the description" in str(found)
    assert "does not shorten" not in str(found.at(2))
    large = explain(FOREST, X, LABELS, 8, min_support=70, random_state=0, **QUICK)
    assert "as a longer list of rules for at least 70 rows does not shorten the description" in str(
        large
    )
    assert "does not shorten" not in str(explain(FOREST, X, LABELS, 3, random_state=0, **QUICK))


def test_scores_say_of_which_rows_they_are():
    for held_out, words in ((0.2, "on the 40 held out"), (0, "on the 200 rows")):
        found = explain(FOREST, X, LABELS, 4, held_out=held_out, random_state=0, **QUICK)
        known = "(the model may have been trained on them)"
        assert f"accuracy {words} {known}: model 1.000" in str(found)
        assert "fitted here" not in str(found) and str(found).count(known) == 1
        plain = explain(FOREST, X, None, 4, held_out=held_out, random_state=0, **QUICK)
        fidelity, *_ = [line for line in str(plain).splitlines() if line.startswith("fidelity to ")]
        assert fidelity.endswith(f" {known}")
        for one in (found, plain):
            advice = "fidelity_on(X) measures the fidelity on rows that the model has not seen"
            assert advice in str(one).splitlines() and advice in one.to_html()
            assert advice not in one.facts()  # which the command line and the report print
    fitted = explain(clone(FOREST), X, LABELS, 4, random_state=0, **QUICK)
    assert known not in str(fitted) and "fidelity_on" not in str(fitted)


def test_rules_of_a_pipeline_speak_of_the_columns_of_the_table():
    colours = np.random.default_rng(1).choice(["red", "green", "blue"], 200)
    frame = X.assign(colour=colours, b=X.b * 1000)
    frame.loc[::9, "a"] = np.nan
    y = np.where(frame.colour == "red", 3.0, 0.0) + 2 * (frame.a.fillna(0) > 0.2)
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
            (OneHotEncoder(), ["colour"]),
        ),
        RandomForestRegressor(10, random_state=0),
    ).fit(frame, y)
    found = explain(model, frame, y, max_rules=6, random_state=0, n_init=2, n_perturbations=40)
    assert found.fidelity > 0.99 and "colour is" in str(found) and "a > 0." in str(found)
    assert "undone before them: ColumnTransformer)" in str(found) and "note" not in str(found)
    own = RuleMixtureRegressor(model, max_rules=6, n_perturbations=20, random_state=0).fit(frame, y)
    assert own.fidelity_ > 0.99 and "colour is" in str(own.rules_)
    unfitted = RuleMixtureRegressor(clone(model), max_rules=6, n_perturbations=20, random_state=0)
    assert unfitted.fit(frame, y).score(frame, y) > 0.9
    assert fabinterp.nearest_change(found, frame.iloc[0]) is not None


def test_a_step_that_stands_in_the_way_is_named():
    model = make_pipeline(StandardScaler(), PCA(2), clone(FOREST)).fit(X, LABELS)
    found = explain(model, X, max_rules=4, random_state=0)
    assert found.method == "proxy tree"
    assert "its trees were not read: PCA: this step cannot be undone" in str(found)
    assert "PCA" in found._repr_html_() and "PCA" in repr(found)
    asked = explain(model, X, max_rules=4, method="tree", random_state=0)
    assert asked.rules == found.rules and "note" not in str(asked)
    with pytest.raises(ValueError, match="got 'mixture' for Pipeline; its trees.*PCA"):
        explain(model, X, method="mixture")
    line = make_pipeline(StandardScaler(), SVC()).fit(X, LABELS)
    assert "note" not in str(explain(line, X, max_rules=4, random_state=0))


def test_trees_that_predict_otherwise_than_their_pipeline_are_not_used():
    """A logarithm of what is negative is missing for the model, and no number for its trees."""
    model = make_pipeline(FunctionTransformer(np.log), clone(FOREST)).fit(X.abs() + 0.1, LABELS)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = explain(model, X, max_rules=4, random_state=0)
    assert found.method == "proxy tree" and "predict differs from the trees" in str(found)
    inside = explain(model, X.abs() + 0.1, max_rules=4, random_state=0, **QUICK)
    assert inside.method == "rule mixture"


DETECTORS = [
    IsolationForest(random_state=0),
    OneClassSVM(),
    LocalOutlierFactor(novelty=True),
    EllipticEnvelope(random_state=0),
    make_pipeline(StandardScaler(), IsolationForest(random_state=0)),
]


@pytest.mark.parametrize("model", DETECTORS, ids=lambda model: type(model).__name__)
def test_outliers_have_a_name(model):
    model = clone(model).fit(X.to_numpy())
    table = X.to_numpy()
    words = np.where(model.predict(table) > 0, "inlier", "outlier")
    found = explain(model, table, model.predict(table), max_rules=5, random_state=0)
    assert found.rules.classes == ("inlier", "outlier") and "then inlier" in str(found)
    assert np.array_equal(found.reference.predictions(table), words)
    assert found.model_score == 1.0
    named = explain(model, table, words, max_rules=5, random_state=0)
    assert named.model_score == 1.0 and named.rules == found.rules


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (RandomForestRegressor(3), np.stack([Y, Y], axis=1)),
        (Ridge(), np.stack([Y, Y], axis=1)),
        (RandomForestClassifier(3), np.stack([LABELS, LABELS], axis=1)),
        (make_pipeline(StandardScaler(), RandomForestRegressor(3)), np.stack([Y, Y], axis=1)),
    ],
)
def test_several_outputs_are_refused_by_name(model, y):
    name = type(model).__name__
    with pytest.raises(ValueError, match=f"one output, got {name} with 2 outputs; explain one"):
        explain(model.fit(X, y), X)
    if y.dtype.kind == "f":
        found = explain(lambda X: model.predict(X)[:, 0], X, max_rules=3, random_state=0)
        assert found.fidelity > 0.5


def test_boosters_of_other_libraries():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(
        X, np.unique(LABELS, return_inverse=True)[1]
    )
    for subject in (model, model.get_booster()):
        found = explain(subject, X, max_rules=5, random_state=0, **QUICK)
        assert found.method == "rule mixture" and found.fidelity > 0.9
        asked = explain(subject, X, max_rules=5, method="tree", random_state=0)
        assert asked.method == "proxy tree" and asked.fidelity > 0.9
        assert np.array_equal(asked.reference.predictions(X), model.predict(X))
    single = xgboost.XGBRegressor(n_estimators=1, max_depth=2, n_jobs=1).fit(X, Y).get_booster()
    found = explain(single, X, random_state=0)
    assert "a single tree" in found.why and found.fidelity > 0.999
    assert pickle.loads(pickle.dumps(found)).rules == found.rules


def test_files(tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    model = xgboost.XGBRegressor(n_estimators=4, n_jobs=1).fit(X, Y)
    model.save_model(tmp_path / "model.json")
    found = explain(tmp_path / "model.json", X, max_rules=4, random_state=0, **QUICK)
    assert found.rules == explain(model, X, max_rules=4, random_state=0, **QUICK).rules


def test_bart():
    stochtree = pytest.importorskip("stochtree", reason="stochtree is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = stochtree.BARTModel()
        model.sample(
            X_train=X.to_numpy(), y_train=Y, num_mcmc=10, general_params={"random_seed": 0}
        )
    found = explain(model, X.to_numpy(), max_rules=4, random_state=0)
    assert (
        found.method == "proxy tree" and "posterior" in found.why and found.fidelity_held_out > 0.8
    )


@pytest.mark.slow
@examples(8)
@given(st.integers(1, 12), st.integers(0, 1000))
def test_never_more_rules_than_allowed(max_rules, seed):
    for model in (Ridge().fit(X, Y), GradientBoostingClassifier(n_estimators=2).fit(X, LABELS)):
        options = {} if isinstance(model, Ridge) else QUICK
        found = explain(model, X, max_rules=max_rules, random_state=seed, **options)
        assert len(found.rules.rules) <= max_rules and found.fidelity <= 1


@pytest.mark.parametrize(
    "model", [RandomForestRegressor(5, random_state=0), SVR()], ids=["read", "asked"]
)
def test_an_explanation_goes_wherever_a_model_goes(model, monkeypatch):
    leave_out_pictures(monkeypatch)
    matplotlib.use("agg")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.iloc[:150]
    y = y[:150]
    options = {"n_perturbations": 2} if hasattr(model, "n_estimators") else {}
    found = explain(model.fit(X, y), X, y, max_rules=3, random_state=0, **options)
    assert found.rules_ is found.rules and pickle.loads(pickle.dumps(found)).rules_ == found.rules
    assert "<!DOCTYPE html>" in fabinterp.report(found, X, y)
    assert fabinterp.plot.rules(found) is not None
    assert fabinterp.plot.regions(found, X) is not None
    assert fabinterp.nearest_change(found, X.iloc[0]) is not None
    assert fabinterp.explore(found, X) is not None
    if options:
        with pytest.raises(AttributeError, match="tree_"):
            _ = found.tree_
    else:
        assert fabinterp.plot.tree(found) is not None
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = found.colour
    plt.close("all")


def test_rule_mixtures_read_what_explain_reads():
    """Searches and pipelines, fitted or not, on a table with rows that repeat."""
    table = X.round(0).assign(word=np.where(X.c > 0.5, "high", "low"))
    y = np.where(table.a + (table.word == "high") > 0, "yes", "no")
    encoded = make_column_transformer((OneHotEncoder(), ["word"]), remainder=StandardScaler())
    for model in (
        GridSearchCV(make_pipeline(encoded, clone(FOREST)), {"memory": [None]}, cv=2),
        make_pipeline("passthrough", encoded, clone(FOREST)),
    ):
        fitted = clone(model).fit(table, y)
        for either in (model, fitted):
            rules = RuleMixtureClassifier(either, max_rules=4, random_state=0, **QUICK).fit(
                table, y
            )
            assert rules.fidelity_ == 1 and rules.score(table, y) == 1
            assert "word is" in str(rules.rules_)
        assert explain(fitted, table, max_rules=4, random_state=0, **QUICK).fidelity == 1
        with pytest.raises(
            ValueError, match="must accept sample_weight in fit if rows occur more than once"
        ):
            RuleMixtureClassifier(model).fit(table, y, sample_weight=np.full(200, 0.5))
    numbers = GridSearchCV(clone(FOREST), {"max_depth": [3]}, cv=2)
    assert RuleMixtureClassifier(numbers, random_state=0, **QUICK).fit(X, LABELS).fidelity_ > 0.8


def test_meta_trees_read_them_too():
    plain = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, LABELS)
    scaled = make_pipeline(StandardScaler(), clone(plain)).fit(X, LABELS)
    search = GridSearchCV(clone(plain), {"max_depth": [3]}, cv=2).fit(X, LABELS)
    own = fabinterp.MetaTreeClassifier(plain).fit(X, LABELS).predict_proba(X)
    for model, tolerance in ((scaled, 0.1), (search, 1e-9)):
        said = fabinterp.MetaTreeClassifier(model).fit(X, LABELS).predict_proba(X)
        assert np.abs(said - own).mean() <= tolerance


def test_a_row_says_what_the_model_itself_answers():
    from fabinterp import explain_row, plot

    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.5 * np.sin(4 * X[:, 1]) > 0, "yes", "no")
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    explanation = explain(forest, X, y, max_rules=2, random_state=0, **QUICK)
    apart = np.flatnonzero(explanation.predict(X) != forest.predict(X))[0]
    found = explain_row(explanation, X[apart])
    assert found.model_prediction == forest.predict(X[[apart]])[0] == found.label != found.answer
    said = f"the model itself predicts {found.model_prediction}"
    assert said in str(found) and said in found.to_html()
    assert said in plot.row(explanation, X[apart]).get_title(loc="left").replace("\n", " ")
    assert json.loads(found.to_json())["model_prediction"] == found.model_prediction
    share = forest.predict_proba(X[[apart]]).max()
    assert np.isclose(found.model_probability, share)
    assert f"; {said} (probability {share:.3g}), the rules {found.answer}" in found.headline()
    assert np.isclose(json.loads(found.to_json())["model_probability"], share)
    assert explain_row(explanation.model, X[apart]).model_prediction is None
    for label in ("yes", "no"):
        found = explain_row(explanation, X[apart], label=label)
        assert found.answer == explanation.predict(X[[apart]])[0]
        lead = f"the model predicts {found.model_prediction} (probability {share:.3g}); "
        assert found.words().startswith(f"{lead}effects on its probability of {label}, ")
    agreed = np.flatnonzero(explanation.predict(X) == forest.predict(X))[0]
    alike = explain_row(explanation, X[agreed])
    lead = f"the model predicts {alike.answer} (probability {alike.model_probability:.3g}); "
    assert alike.words().startswith(f"{lead}effects on its probability of {alike.answer}, ")
    assert ", the rules" not in alike.headline()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    boosted = HistGradientBoostingRegressor(max_iter=10, random_state=0).fit(frame, X[:, 0])
    told = explain_row(explain(boosted, frame, random_state=0, **QUICK), dict(frame.iloc[3]))
    assert told.model_prediction == boosted.predict(frame[3:4])[0]
    coarse = explain(boosted, frame, max_rules=2, random_state=0, **QUICK)
    apart = np.abs(coarse.predict(frame) - boosted.predict(frame))
    told = explain_row(coarse, frame.iloc[apart.argmin()])
    assert abs(told.prediction - told.model_prediction) <= told.tolerance  # alike, as printed
    assert told.words().startswith("the model predicts ")
    told = explain_row(coarse, frame.iloc[apart.argmax()])
    assert abs(told.prediction - told.model_prediction) > told.tolerance
    assert "the model itself predicts " in told.headline() and "rules" not in told.words()


def test_a_rows_model_probability_is_the_models_own_or_none():
    from fabinterp import explain_row

    X = np.random.default_rng(1).normal(size=(200, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    logistic = LogisticRegression().fit(X, y)
    asked = []

    def shares(rows):
        asked.append(len(rows))
        return logistic.predict_proba(rows)

    for model in (logistic, HistGradientBoostingClassifier(max_iter=10).fit(X, y)):
        told = explain_row(explain(model, X, random_state=0), X[5])
        assert np.isclose(told.model_probability, model.predict_proba(X[[5]]).max(), atol=1e-6)
    by_function = explain(shares, X, classes=logistic.classes_, random_state=0)
    before = len(asked)
    told = explain_row(by_function, X[5])
    assert len(asked) == before + 1  # a model may take a second a row
    assert np.isclose(told.model_probability, logistic.predict_proba(X[[5]]).max())
    for sure in (LinearSVC().fit(X, y), Ridge().fit(X, X[:, 0])):
        told = explain_row(explain(sure, X, random_state=0), X[5])
        assert told.model_probability is None and told.model_prediction == sure.predict(X[[5]])[0]
        assert "(probability" not in str(told)


def effect_by_hand(found, model, x, name):
    """The model's answer, less its mean where one column has the values of the rows kept.

    Also the standard error of that mean, and of how many rows it is.
    """
    rows = pd.concat([x.to_frame().T] * len(found.sample), ignore_index=True).astype(float)
    rows[name] = found.sample[name].to_numpy()
    answers = model(rows)
    effect = model(x.to_frame().T.astype(float))[0] - answers.mean()
    return effect, np.sqrt(answers.var() / len(rows)), len(rows)


def test_a_row_has_the_effects_on_the_model_beside_the_contributions():
    crossed = np.where(X.a > 0, X.b, -X.b) + 0.01 * X.c
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(X, crossed)
    found = explain(model, X, max_rules=3, random_state=0)
    opposed = 0
    for i in range(40):
        x = X.iloc[i]
        row = fabinterp.explain_row(found, x)
        for name, effect in row.effects.items():
            by_hand = effect_by_hand(found, model.predict, x, name)
            assert effect == pytest.approx(by_hand, abs=1e-9)
        plain = {name: effect._asdict() for name, effect in row.effects.items()}
        assert list(plain) == list(X.columns) and json.loads(row.to_json())["effects"] == plain
        texts = {line.split(" = ")[0].strip(): line.split() for line in str(row).splitlines()}
        for part in row.contributions:
            effect, error, _ = row.effects[part.column]
            sure = abs(effect) > max(row.tolerance, 2 * error)
            assert (f"{part.column} = " in row.words()) == sure
            assert (part.column in texts) >= sure
            if part.column in texts:
                _, _, _, contribution, in_model = texts[part.column]
                assert float(in_model) == pytest.approx(effect, abs=row.tolerance)
                assert float(contribution) == pytest.approx(part.contribution, abs=row.tolerance)
            opposed += sure and effect * part.contribution < -row.tolerance
        assert f"values of {len(found.sample)} other rows" in str(row).splitlines()[-1]
        assert row.words().startswith(f"the model predicts {row._label_text(row.model_prediction)}")
    assert 0 < opposed < 120


def test_effects_of_classes_are_of_the_models_probability_or_answer():
    row = X.iloc[3]
    forest = explain(FOREST, X, random_state=0, **QUICK)
    c = list(FOREST.classes_).index("no")
    by_hand = effect_by_hand(forest, lambda Z: FOREST.predict_proba(Z)[:, c], row, "b")
    assert forest.model_effects(row, ["b"], "no") == {"b": pytest.approx(by_hand)}
    sure = LinearSVC(random_state=0).fit(X, LABELS)
    by_hand = effect_by_hand(
        explain(sure, X, random_state=0), lambda Z: sure.predict(Z) == "no", row, "b"
    )
    found = explain(sure, X, random_state=0)
    assert found.model_effects(row, ["b"], "no") == {"b": pytest.approx(by_hand)}


@pytest.mark.parametrize("kind", ["probabilities", "answers alone"])
def test_where_the_model_answers_another_class_its_class_is_explained(kind):
    sure = kind == "answers alone"
    model = LinearSVC(random_state=0).fit(X, LABELS) if sure else FOREST
    options = {} if sure else QUICK
    found = explain(model, X, max_rules=2, random_state=0, **options)
    differ = X[model.predict(X) != found.predict(X)]
    assert 3 <= len(differ) < len(X)
    for _, x in differ.iterrows():
        row = fabinterp.explain_row(found, x)
        answer = row.model_prediction
        assert answer == row.label != row.answer
        assert row.effects == found.model_effects(x, list(X.columns), answer)
        assert f"the model predicts {answer}" in row.words() and "rules" not in row.words()
        assert f", the rules {row.answer}" in row.headline()
        of = f"prediction of {answer}" if sure else f"probability of {answer}"
        assert f"effects on its {of}, compared" in row.words()
        assert str(row).splitlines()[-1] in row.to_html()
    other = fabinterp.explain_row(found, differ.iloc[0], label="yes")
    assert other.label == "yes" and "effects on its" in other.words()


def test_of_very_wide_tables_the_rules_columns_alone_are_asked_about():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(120, 600))
    labels = np.where(wide[:, 0] + 0.7 * wide[:, 1] > 0, "yes", "no")
    model = LinearSVC(random_state=0).fit(wide, labels)
    found = explain(model, wide, max_rules=2, random_state=0)
    row = fabinterp.explain_row(found, wide[0])
    read = {part.column for part in row.contributions if part.contribution != 0}
    assert len(read) == 1 and set(row.effects) == read and "effects on its" in row.words()
    (effect,) = found.model_effects(wide[0], ["x0"], "yes").values()
    assert effect.n_rows == len(found.sample)
    (effect, *_) = found.model_effects(wide[0], list(found.rules.columns.names), "yes").values()
    assert 2 <= effect.n_rows < len(found.sample) and effect.n_rows * 600 * 600 <= 2**25


def test_no_effects_where_each_call_is_counted_or_draws_know_their_rows():
    def first(Z):
        return np.asarray(Z)[:, 0]

    counted = explain(fabinterp.Budgeted(first, 100), X, random_state=0)
    drawn = explain(np.tile(Y, (3, 1)), X, random_state=0)
    for found in (counted, drawn, explain(first, X, random_state=0)):
        assert found.model_effects(X.iloc[0], ["a"]) == {}
        row = fabinterp.explain_row(found, X.iloc[0])
        assert row.effects == {} and "effects" not in row.words()


def test_rules_in_a_file_know_the_model_that_they_speak_for(tmp_path):
    for found in (explain(FOREST, X, **QUICK), explain(BOOSTING, X, **QUICK).at(2)):
        found.save(tmp_path / "rules.json")
        again = fabinterp.load_rules(tmp_path / "rules.json")
        assert again.source == {"explains": found.reference.source, "method": "rule mixture"}
    first = fabinterp.Budgeted(lambda Z: np.asarray(Z)[:, 0], 100)
    counted = explain(first, X, random_state=0)
    assert counted.rules.source == {"explains": counted.reference.source, "method": "proxy tree"}
