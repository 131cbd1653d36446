"""What users of scikit-learn expect of every estimator beside `fit` and `predict`."""

import ast
import json
import re
import warnings
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from shared.estimators import ONE_OF_EACH, SETTINGS, each
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_sample_weight

from fabinterp import (
    MetaTreeClassifier,
    ProxyLinearRegressor,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    load_rules,
)
from fabinterp.rows import chunks
from fabinterp.rows.chunks import build_chunked_data, read_chunks
from fabinterp.rows.tables import build_training_data
from fabinterp.rules.ruleset import RuleSet, Tree

CLASSIFIERS = [setting for setting in SETTINGS if setting.is_classifier]


def table(setting, n=90, labels=("many", "no", "some")):
    """Draw X (n, 3) and y (n,): three labels, the last of them rare, or numbers."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3)).round(2)
    t = np.where(X[:, 0] > 0.3, 2 + X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=n)
    if setting.is_classifier:
        return X, np.array(labels)[np.digitize(t, np.quantile(t, [0.6, 0.9]))]
    return X, t


# ------------------------------------------------------------------ class_weight


# of rules, support counts rows without class weights: tests/test_rare_classes.py
@each([setting for setting in CLASSIFIERS if not setting.name.startswith("rules")])
@pytest.mark.parametrize("class_weight", ["balanced", {"many": 0.5, "some": 4}])
def test_class_weight_is_a_factor_of_the_weights(setting, class_weight):
    X, y = table(setting)
    w = np.random.default_rng(0).integers(1, 4, len(y))
    named = setting.fresh(random_state=0, class_weight=class_weight)
    by_weight = setting.fresh(random_state=0)
    alone = named.fit(X, y).predict_proba(X)
    weights = compute_sample_weight(class_weight, y)
    assert np.array_equal(alone, by_weight.fit(X, y, weights).predict_proba(X))
    repeated = np.repeat(np.arange(len(y)), w)
    factor = compute_sample_weight(class_weight, y[repeated])[np.cumsum(w) - 1]
    both = named.fit(X, y, w).predict_proba(X)
    assert np.allclose(both, by_weight.fit(X, y, w * factor).predict_proba(X), rtol=1e-9)


@each([setting for setting in ONE_OF_EACH if setting.is_classifier])
def test_a_class_weight_that_cannot_be_is_refused(setting):
    X, y = table(setting)
    for wrong, said in (
        ({"mnay": 2.0}, "class_weight must name classes of y, 'many', 'no', 'some', got 'mnay'"),
        (
            {"no": 0, "many": 0, "some": 0},
            "class_weight must be positive for at least one class of y",
        ),
        ({"no": -1.0}, "class_weight must be a finite number of at least 0.0, got -1.0"),
        ("even", "class_weight must be None, 'balanced' or a dict of class to weight, got 'even'"),
    ):
        with pytest.raises(ValueError, match=said):
            setting.fresh(class_weight=wrong).fit(X, y)
    for regressor in SETTINGS:
        assert regressor.is_classifier or "class_weight" not in regressor.estimator.get_params()


class Words(ClassifierMixin, BaseEstimator):
    """A classifier that does nothing but ask for rows."""

    def __init__(self, class_weight=None):
        self.class_weight = class_weight


@pytest.mark.parametrize("class_weight", ["balanced", {"many": 0.5, "some": 4, "no": 0}])
def test_class_weight_of_rows_in_chunks(class_weight):
    X, y = table(CLASSIFIERS[0], 60)
    w = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    whole = build_training_data(Words(class_weight), X, y, w)
    pieces = [(X[i : i + 7], y[i : i + 7], w[i : i + 7]) for i in range(0, 60, 7)]
    found = read_chunks(Words(class_weight), iter(pieces)).sample
    assert np.array_equal(found.Z, whole.Z) and np.allclose(found.w, whole.w, rtol=1e-14)


def test_class_weight_of_a_cluster():
    dask = pytest.importorskip("dask.array")
    X, y = table(CLASSIFIERS[0], 60)
    blocks = (dask.from_array(X, (13, 3)), dask.from_array(y, 13))
    found = build_chunked_data(Words("balanced"), *blocks).sample
    assert np.allclose(found.w, build_training_data(Words("balanced"), X, y).w, rtol=1e-14)


def test_class_weight_of_rows_in_calls():
    X, y = table(CLASSIFIERS[0])
    settings = dict(random_state=0, split_prob=0.5, prior=1.0)
    weights = {"no": 3.0, "some": 0.5}
    first, later = slice(None, 40), slice(40, None)
    named = MetaTreeClassifier(**settings, class_weight=weights)
    named.partial_fit(X[first], y[first], classes=["many", "no", "none", "some"])
    named.partial_fit(X[later], y[later])
    plain = MetaTreeClassifier(**settings)
    w = compute_sample_weight(weights, y)
    plain.partial_fit(
        X[first], y[first], classes=["many", "no", "none", "some"], sample_weight=w[first]
    )
    plain.partial_fit(X[later], y[later], sample_weight=w[later])
    assert np.allclose(named.predict_proba(X), plain.predict_proba(X), rtol=1e-12)
    with pytest.raises(ValueError, match="class_weight must be None or a dict .* got 'balanced'"):
        MetaTreeClassifier(class_weight="balanced").partial_fit(X, y)


def test_a_class_weight_of_a_proxy_is_by_y_and_needs_it():
    X, y = table(CLASSIFIERS[0])
    reference = ProxyTreeClassifier(random_state=0).fit(X, y)
    proxy = ProxyTreeClassifier(reference, class_weight={"some": 5.0}, random_state=0)
    weights = compute_sample_weight({"some": 5.0}, y)
    by_weight = ProxyTreeClassifier(reference, random_state=0).fit(X, y, weights)
    assert proxy.fit(X, y).rules_ == by_weight.rules_
    with pytest.raises(ValueError, match="y must be given if class_weight is given, got None"):
        proxy.fit(X)


# ------------------------------------------------------------------ apply, decision_path


def is_meta_tree(setting):
    """Say whether a setting is of meta-trees, which are forests also where there is one."""
    return setting.name.startswith("meta-tree")


@each()
def test_where_rows_end_and_on_which_way(setting):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = setting.fresh(random_state=0).fit(frame, y)
    end = model.apply(frame)
    path = model.decision_path(frame)
    if is_meta_tree(setting):
        path, starts = path
        trees = [model.to_tree(t) for t in range(end.shape[1])]
        assert starts.tolist() == np.cumsum([0, *(len(tree.splits) for tree in trees)]).tolist()
        for t, tree in enumerate(trees):
            own = path[:, starts[t] : starts[t + 1]]
            assert np.array_equal(end[:, t], tree.apply(frame))
            assert np.array_equal(own.toarray(), tree.decision_path(frame).toarray())
        return
    answering = getattr(model, "tree_", model.rules_)
    assert end.shape == (90,) and path.shape == (90, len(answering.leaves))
    assert (path.toarray()[np.arange(90), end] == 1).all()
    said = {place: answering.leaves[place] for place in end}
    for row in range(90):  # the number that is shown is that of the rule with this leaf
        shown = model.rules_.apply(frame)[row] + 1
        assert model.rules_[shown - 1].leaf == said[end[row]]


def test_shapes_and_types_are_those_of_scikit_learn():
    X, y = table(CLASSIFIERS[0])
    theirs = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    ours = MetaTreeClassifier(theirs).fit(X, y)
    assert ours.apply(X).shape == theirs.apply(X).shape
    (our_path, _), (their_path, _) = ours.decision_path(X), theirs.decision_path(X)
    assert type(our_path) is type(their_path) and our_path.dtype == their_path.dtype
    one = ProxyTreeClassifier(theirs[0], size=3, random_state=0).fit(X)
    path = one.decision_path(X)
    assert type(path) is type(their_path) and path.dtype == their_path.dtype


def test_a_list_is_tried_up_to_the_rule_that_answers():
    X, y = table(CLASSIFIERS[0])
    tree = ProxyTreeClassifier(size=4, random_state=0).fit(X, y)
    disjoint = tree.rules_
    end = disjoint.apply(X)
    assert np.array_equal(disjoint.decision_path(X).toarray(), np.eye(len(disjoint))[end])
    listed = RuleSet(disjoint[:2], disjoint.columns, disjoint.classes)
    end = listed.apply(X)
    assert set(end) == {-1, 0, 1}
    tried = listed.decision_path(X).toarray()
    assert np.array_equal(tried[:, 0], np.ones(len(X))) and np.array_equal(tried[:, 1], end != 0)


@each(CLASSIFIERS)
def test_logarithms_of_probabilities(setting):
    X, y = table(setting)
    model = setting.fresh().fit(X, y)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    assert not hasattr(SETTINGS[1].estimator, "predict_log_proba")


# ------------------------------------------------------------------ a file that predicts


@each()
def test_the_json_of_an_estimator_predicts(setting, tmp_path):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = setting.fresh(random_state=0).fit(frame, y)
    if not hasattr(model, "rules_"):
        with pytest.raises(AttributeError, match="a forest of 4 meta-trees has no rules_"):
            model.to_json()
        return
    model.save(tmp_path / "model.json")
    for back in (load_rules(tmp_path / "model.json"), load_rules(model.to_json())):
        assert isinstance(back, RuleSet | Tree)
        assert np.array_equal(back.predict(frame), model.predict(frame))
        assert back.feature_names_in_.tolist() == ["a", "b", "c"] and back.n_features_in_ == 3
        if setting.is_classifier:
            assert back.classes_.tolist() == model.classes_.tolist()
            for name in ("predict_proba", "predict_log_proba"):
                assert np.array_equal(getattr(back, name)(frame), getattr(model, name)(frame))
        if not is_meta_tree(setting):
            assert np.array_equal(back.apply(frame), model.apply(frame))
        assert back.source["estimator"] == type(model).__name__
        assert set(back.source["parameters"]) == set(model.get_params(deep=False))
        assert load_rules(back.to_json()).source == back.source


def test_json_needs_a_fit_and_strange_parameters_are_put_in_words():
    with pytest.raises(NotFittedError):
        ProxyTreeClassifier().to_json()
    X, y = table(CLASSIFIERS[0])
    model = ProxyTreeClassifier(alpha=np.float32(0.1), random_state=np.random.RandomState(0))
    parameters = json.loads(model.fit(X, y).to_json())["source"]["parameters"]
    assert parameters["alpha"] == "0.1" and parameters["random_state"].startswith("RandomState")
    with pytest.raises(ValueError, match="path must name a JSON file written by `save`, got text"):
        load_rules("{nonsense")


# ------------------------------------------------------------------ numbers that came as text


@each([setting for setting in ONE_OF_EACH if not setting.numbers_only])
def test_numbers_as_text_are_warned_of_with_the_code_that_helps(setting):
    X, y = table(setting)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=[f"{c:.2f}" for c in X[:, 2]])
    with pytest.warns(
        UserWarning, match=r"X holds numbers as text in 'c', taken as \d+ labels"
    ) as w:
        setting.fresh().fit(frame, y)
    message = next(str(one.message) for one in w if "as text" in str(one.message))
    assert not any("a distinct label in each row" in str(one.message) for one in w)
    schema = ast.literal_eval(re.search(r"schema=(\{.*?\})", message)[1])
    fitted = setting.fresh(random_state=0).fit(frame, y, schema=schema)
    numbers = setting.fresh(random_state=0).fit(frame.astype({"c": float}), y)
    assert np.array_equal(fitted.predict(frame), numbers.predict(frame.astype({"c": float})))


def test_decimal_commas_and_what_is_meant_as_labels():
    X, y = table(CLASSIFIERS[0])
    frame = pd.DataFrame({"a": X[:, 0], "c": [f"{c:.2f}".replace(".", ",") for c in X[:, 2]]})
    model = ProxyTreeClassifier(random_state=0).fit(frame, y, schema={"c": "number"})
    expected = ProxyTreeClassifier(random_state=0).fit(frame.assign(c=X[:, 2]), y)
    assert (model.predict(frame) == expected.predict(frame.assign(c=X[:, 2]))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".* for any training row")
        ProxyTreeClassifier().fit(frame, y, schema={"c": "label"})
        ProxyTreeClassifier().fit(frame.astype({"c": "category"}), y)
        grades = frame.assign(c=np.resize(["1", "2", "3"], len(frame)))
        ProxyTreeClassifier().fit(grades, y)


# ------------------------------------------------------------------ progress


@each(ONE_OF_EACH)
def test_long_fits_tell_the_time_left_and_are_silent_unless_asked(setting, monkeypatch, capsys):
    X, y = table(setting)
    clock = SimpleNamespace(monotonic=count(0, 5).__next__)  # each step takes five seconds
    monkeypatch.setattr(chunks, "time", clock)
    setting.fresh(random_state=0, n_init=2).fit(X, y)
    assert capsys.readouterr().out == ""
    setting.fresh(random_state=0, n_init=2, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    at_once = ("equation", "meta-tree of classes")  # nothing is repeated in their fits
    assert any(re.search(r" \d+ of \d+, .*left of this stage$", line) for line in lines) == (
        not setting.name.startswith(at_once)
    )


def test_draws_tell_the_time_left(monkeypatch, capsys):
    X, _ = table(SETTINGS[1])
    draws = np.random.default_rng(0).normal(size=(4, len(X))) + X[:, 0]
    for proxy, name in ((ProxyTreeRegressor(n_draws=4), "tree"), (ProxyLinearRegressor(), "terms")):
        clock = SimpleNamespace(monotonic=count(0, 5).__next__)
        monkeypatch.setattr(chunks, "time", clock)
        proxy.set_params(reference=draws, verbose=1, random_state=0).fit(X)
        lines = capsys.readouterr().out.splitlines()
        told = [line for line in lines if line.startswith(f"{name} of draw")]
        assert (
            told[0] == f"{name} of draw 1 of 4, 5 s, about 15 s left of this stage"
            and len(told) == 3
        )
