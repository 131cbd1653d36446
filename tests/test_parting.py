"""Where rules and ensemble part: equal to the list of all cells, bounds that only close, errors in a line."""

import json
import signal
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.needs import need
from shared.random_rules import random_rules
from sklearn.datasets import load_diabetes, load_wine, make_friedman1
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fabinterp import disagreement, explain, report
from fabinterp.forests.arrays import example_cars
from fabinterp.forests.reading import read_ensemble
from fabinterp.models.piecewise import PiecewiseLinearRegressor
from fabinterp.proxy import parting
from fabinterp.proxy.disagreements import Disagreement
from fabinterp.rules.core import Columns, Leaf, Rule, Split, encode, match_conditions
from fabinterp.rules.ruleset import RuleSet

pd = pytest.importorskip("pandas")


FEW = {"n_init": 1, "n_perturbations": 2, "random_state": 0}


def gap_of(rules, ensemble, Z):
    """The gaps at encoded rows, from what both answer, in plain numpy."""
    if rules.classes is None:
        return np.abs(rules.predict(Z) - ensemble.predict(Z))
    raw = ensemble.raw(Z)
    scores = np.hstack([0 * raw, raw]) if raw.shape[1] == 1 else raw
    own = np.array([list(ensemble.classes).index(label) for label in rules.predict(Z)])
    other = np.where(np.arange(scores.shape[1]) == own[:, None], -np.inf, scores).max(axis=1)
    return other - scores[np.arange(len(Z)), own]


def listed(rules, ensemble, Z):
    """The largest gap over every combination of a value between each two cuts, of labels, of gaps."""
    steps = parting.find_steps(ensemble, rules, Z)
    rows = np.array(list(product(*(column.values for column in steps))))
    return gap_of(rules, ensemble, rows).max()


def numbers(n=150, d=2, seed=0):
    """A table of d columns between 0 and 1, and a target that bends."""
    X = np.random.default_rng(seed).random((n, d)).round(2)
    return X, 4 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + X[:, 0]


def held(rules, model, X):
    """What was found, once it is equal to the list of all cells and true of its box and row."""
    found = disagreement(rules, model, X, max_seconds=None)
    ruleset = getattr(rules, "rules_", rules)
    ensemble = read_ensemble(model, ruleset.columns)
    Z = encode(X, ruleset.columns)
    assert found.proven
    assert found.lower == pytest.approx(listed(ruleset, ensemble, Z), abs=1e-6)
    at = gap_of(ruleset, ensemble, found.row[None])[0]
    assert at == pytest.approx(found.lower, abs=1e-5)
    assert match_conditions(found.conditions, found.row[None])[0]
    inside = match_conditions(found.conditions, Z)
    assert found.n_rows_inside == inside.sum()
    gaps = gap_of(ruleset, ensemble, Z)
    assert np.allclose(gaps[inside], found.lower, atol=1e-5)
    assert found.at_rows == pytest.approx(gaps.max(), abs=1e-6)
    assert found.share == np.mean(gaps > found.delta)
    return found


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(5, max_depth=3, random_state=0),
        ExtraTreesRegressor(6, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=10, max_depth=2, random_state=0),
        HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=5),
        HistGradientBoostingRegressor(loss="poisson", max_iter=3, max_leaf_nodes=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_numbers_equal_the_list_of_all_cells(model):
    X, y = numbers()
    model.fit(X, y - y.min())
    held(explain(model, X, max_rules=4, **FEW), model, X)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, max_depth=2, random_state=0),
        GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4),
        AdaBoostClassifier(n_estimators=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_equal_the_list_of_all_cells(model, n_classes):
    wine = load_wine(as_frame=True)
    X = wine.data.iloc[:, [0, 6, 9]]
    y = wine.target_names[np.minimum(wine.target, n_classes - 1)]
    model.fit(X, y)
    found = held(explain(model, X, max_rules=3, **FEW), model, X)
    assert found.is_class and found.delta == 0


@pytest.mark.slow
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_other_libraries_equal_the_list_of_all_cells(library):
    need(library)
    X, y = numbers()
    settings = dict(n_estimators=4, max_depth=2, n_jobs=1, random_state=0)
    if library == "xgboost":
        from xgboost import XGBClassifier, XGBRegressor

        models = XGBRegressor(**settings), XGBClassifier(**settings)
    else:
        from lightgbm import LGBMClassifier, LGBMRegressor

        models = LGBMRegressor(verbose=-1, **settings), LGBMClassifier(verbose=-1, **settings)
    for model, target in zip(models, (y, (y > 0.5).astype(int)), strict=True):
        model.fit(X, target)
        held(explain(model, X, max_rules=3, random_state=0), model, X)


def test_labels_and_gaps_are_branches():
    X, price = example_cars(200)
    X = X[["size", "colour", "door", "old"]]
    model = HistGradientBoostingRegressor(
        max_iter=4, max_leaf_nodes=6, categorical_features="from_dtype"
    ).fit(X, price)
    explained = explain(model, X, max_rules=4, random_state=0)
    found = held(explained, model, X)
    steps = parting.find_steps(
        read_ensemble(model, explained.rules.columns), explained.rules, encode(X, found.columns)
    )
    assert [column.has_gap for column in steps] == [True, True, False, False]


@given(seed=st.integers(0, 2**32 - 1))
def test_the_boxes_of_a_list_hold_every_row_once(seed):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, "numbers", slanted=False)
    Z = np.column_stack([rng.normal(size=(40, 2)), rng.integers(0, 3, 40)])
    Z[rng.random(Z.shape) < 0.1] = np.nan
    Z[0] = 0.0  # a column holds something
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(Z, rng.normal(size=40))
    steps = parting.find_steps(read_ensemble(model, rules.columns), rules, Z)
    rule, low, high = parting.list_boxes(rules, steps)
    at = np.stack([column.positions(Z[:, j]) for j, column in enumerate(steps)], axis=1)
    inside = ((low <= at[:, None]) & (at[:, None] < high)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert (rule[inside.argmax(axis=1)] == rules.apply(Z)).all()
    found = disagreement(rules, model, Z)
    assert found.proven and found.lower == pytest.approx(
        listed(rules, read_ensemble(model, rules.columns), Z)
    )


@pytest.fixture(scope="module")
def boosted():
    """Boosting that takes some hundred boxes, its table, and rules for it."""
    X, y = make_friedman1(300, 8, noise=1.0, random_state=0)
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, y)
    return model, X, explain(model, X, max_rules=5, random_state=0)


def test_bounds_only_close(boosted):
    model, X, rules = boosted
    runs = [
        disagreement(rules, model, X, max_nodes=n, max_seconds=None) for n in (0, 1, 7, 65, 200)
    ]
    runs.append(disagreement(rules, model, X, max_seconds=None))
    assert runs[-1].proven and runs[-1].lower == runs[-1].upper
    for less, more in zip(runs, runs[1:], strict=False):
        assert less.lower <= more.lower <= more.upper <= less.upper
        assert less.n_boxes <= more.n_boxes
    n, lower, upper = np.array(runs[-1].trace).T
    assert (np.diff(n) > 0).all() and (np.diff(lower) >= 0).all() and (np.diff(upper) <= 0).all()


def test_a_number_of_boxes_gives_the_same_every_time(boosted):
    model, X, rules = boosted
    runs = [disagreement(rules, None, X, max_nodes=70, max_seconds=None) for _ in range(2)]
    assert runs[0].to_json() == runs[1].to_json() and runs[0].trace == runs[1].trace
    assert runs[0].n_boxes == 70 and not runs[0].proven


def test_no_row_parts_by_more(boosted):
    model, X, rules = boosted
    found = disagreement(rules, model, X, max_nodes=20, max_seconds=None)
    Z = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (20_000, 8))
    assert np.abs(rules.predict(Z) - model.predict(Z)).max() <= found.upper + 1e-9


def test_interrupted_it_says_what_is_proven(boosted, monkeypatch):
    model, X, rules = boosted
    step = parting.GapSearch.step

    def interrupted(self, most):
        if self.n_boxes >= 64:
            self.queue.clear()  # boxes were taken, nothing came of them
            raise KeyboardInterrupt
        step(self, most)

    monkeypatch.setattr(parting.GapSearch, "step", interrupted)
    found = disagreement(rules, model, X, max_seconds=None)
    monkeypatch.undo()
    whole = disagreement(rules, model, X, max_seconds=None)
    assert 64 <= found.n_boxes < whole.n_boxes and found.lower <= whole.lower <= found.upper
    assert not found.proven and f"a bound, after {found.n_boxes} boxes" in found.to_text()


@pytest.mark.slow
def test_ctrl_c_returns_the_bounds_so_far(monkeypatch):
    X, y = make_friedman1(600, 10, noise=1.0, random_state=0)
    model = RandomForestRegressor(100, random_state=0).fit(X, y)
    rules = explain(model, X, max_rules=4, random_state=0)
    timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
    run = parting.GapSearch.run

    def timed(self, *limits):
        timer.start()
        run(self, *limits)

    monkeypatch.setattr(parting.GapSearch, "run", timed)
    # where tests run side by side, their processes ignore the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = disagreement(rules, model, X, max_seconds=3600)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not timer.is_alive() and found.at_rows <= found.lower < found.upper < np.inf


def test_rules_that_agree_everywhere():
    X, y = numbers()
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    rules = read_ensemble(model).trees[0].rules()
    found = disagreement(rules, model, X)
    assert found.lower == found.upper == found.share == 0 and found.proven
    wine = load_wine(as_frame=True)
    forest = RandomForestClassifier(1, max_depth=2, bootstrap=False, random_state=0)
    forest.fit(wine.data, wine.target_names[wine.target])
    rules = read_ensemble(forest, held_columns(wine.data)).trees[0].rules()
    found = disagreement(rules, forest, wine.data)
    assert found.upper <= 0 and found.share == 0
    assert "come nearest to disagreeing" in found.to_text() and "also predicts" in found.to_text()


def held_columns(X):
    """The `Columns` of a frame of numbers without gaps."""
    return Columns(tuple(X.columns), (None,) * X.shape[1], (False,) * X.shape[1])


def test_only_steps_that_exist():
    steps = parting.number_steps(
        np.array([1.0, 2, 5, 9] * 9 + [30]), np.array([2.3, 2.7, 4, 8.5, 40]), False
    )
    assert steps.values.tolist() == [2.0, 5.0, 30.0]  # few values: nothing between 2 and 5
    whole = parting.number_steps(np.arange(40.0), np.array([2.3, 2.7, 7.5]), False)
    assert whole.values.tolist() == [2.0, 7.0, 39.0] and whole.high.tolist() == [2, 7, np.inf]
    dense = parting.number_steps(np.linspace(0, 1, 41), np.array([-1.0, 0.5, 1.0]), False)
    assert dense.values.tolist() == [0.25, 0.75] and dense.is_dense
    assert dense.positions(np.array([0.0, 0.5, 0.6, np.nan])).tolist() == [0, 0, 1, 2]


def test_what_is_told():
    X = pd.DataFrame(numbers()[0], columns=["size", "<b>age"])
    y = numbers()[1]
    model = RandomForestRegressor(6, max_depth=3, random_state=0).fit(X, y)
    found = disagreement(explain(model, X, y, max_rules=3, random_state=0), model, X, delta=0.1)
    assert isinstance(found, Disagreement)
    assert repr(found) == str(found) == found.to_text()
    frame = found.to_frame()
    assert frame["column"].tolist() == list(X.columns)
    d = json.loads(found.to_json())
    assert d["lower"] == found.lower and d["proven"] is True and d["delta"] == 0.1
    assert d["row"] == dict(zip(X.columns, found.row.tolist(), strict=True))
    assert found.words() == d["where"] and any(name in found.words() for name in X.columns)
    page = found.to_html()
    assert "<b>" not in page and "&lt;b&gt;age" in page
    assert found._repr_html_() == page


def test_a_margin_is_told_as_what_it_is():
    X, y = numbers(300, 3)
    labels = np.where(y > 0.4, "high", "low")
    forest = RandomForestClassifier(20, min_samples_leaf=2, random_state=0).fit(X, labels)
    explained = explain(forest, X, max_rules=2, random_state=0)
    found = disagreement(explained, forest, X, max_nodes=0)
    shares = dict(zip(forest.classes_, forest.predict_proba(found.row[None])[0], strict=True))
    margin = shares[found.ensemble_answer] - shares[found.rule_answer]
    np.testing.assert_allclose(found.lower, margin)
    text = found.to_text()
    assert (
        f"differ most, by a margin of {found.lower:.4g}, where" in text
        and "(probability)" not in text
    )
    of = f"its probability of {found.ensemble_answer} minus that of {found.rule_answer}"
    assert f"the margin is {of}\n" in text
    assert f"at the rows by a margin of {found.at_rows:.4g} at most" in text
    # the largest value that there can be is no bound to speak of
    np.testing.assert_allclose(found.upper, 1.0)
    assert "no bound below 1, the largest possible margin" in text
    assert "differ by no more than" not in text
    closer = replace(found, upper=0.99)
    assert "they differ by no more than 0.99 anywhere" in closer.to_text()
    odds = replace(found, unit="log-odds", upper=1.5).to_text()
    assert (
        "differ by no more than 1.5" in odds
        and f"log-odds of {found.ensemble_answer} against" in odds
    )


@pytest.mark.slow
def test_it_is_in_the_report():
    X, y = numbers(200, 3)
    explained = explain(RandomForestRegressor(8, max_depth=4, random_state=0), X, y, random_state=0)
    page = report(explained, X, y)
    assert "Differences from RandomForestRegressor" in page
    assert page == report(explained, X, y)
    tree = DecisionTreeRegressor(max_depth=2).fit(X, y)
    assert "Differences from" not in report(read_ensemble(tree).trees[0], X, y)


def test_bad_input():
    X, y = numbers()
    model = RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)
    other = RandomForestRegressor(4, max_depth=3, random_state=1).fit(X, y)
    labels = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y > 0.5)
    explained = explain(model, X, max_rules=3, random_state=0)
    plain = explained.rules
    lines = PiecewiseLinearRegressor(penalty=1.0, random_state=0).fit(X, X @ [1.0, 3.0])
    tilted = Split((0, 1), 0.5, (1.0, 1.0))
    sums = RuleSet((Rule(((tilted, True),), Leaf(1.0)), Rule((), Leaf(0.0))), plain.columns)
    of_labels = explain(labels, X, max_rules=3, random_state=0)
    strange = RandomForestClassifier(4, random_state=0).fit(X, np.where(y > 0.5, "a", "b"))
    wider = RandomForestRegressor(4, random_state=0).fit(np.hstack([X, X]), y)
    single = RandomForestClassifier(4, random_state=0).fit(X, ["a"] * len(X))
    sure = RuleSet((Rule((), Leaf((1.0,))),), plain.columns, ("a",))
    ada = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, y)
    for told, arguments in {
        "ensemble must be the one that the rules summarize": (explained, other, X),
        "ensemble must be given for rules without a stored ensemble": (plain, None, X),
        "ensemble must predict numbers as the rules do": (plain, labels, X),
        "ensemble must predict classes as the rules do": (of_labels.rules, model, X),
        "ensemble must have the classes of the rules": (of_labels.rules, strange, X),
        "ensemble must predict two classes or more": (sure, single, X),
        "ensemble must predict the sum or mean of its trees": (plain, ada, X),
        "columns: the model was fitted on 4 columns, got 2": (plain, wider, X),
        "rules must predict a constant in each rule, got an equation in rule 1": (lines, model, X),
        "rules must have conditions on single columns, got a weighted sum in rule 1": (
            sums,
            model,
            X,
        ),
        "X must be a table": (explained, model, None),
        "X must have shape": (explained, model, X[:, :1]),
        "X has unknown columns": (explained, model, pd.DataFrame(X, columns=["a", "b"])),
    }.items():
        with pytest.raises(ValueError, match=told) as error:
            disagreement(*arguments)
        assert "\n" not in str(error.value)
    for told, arguments in {
        "delta must be a finite number of at least 0.0, got -1": dict(delta=-1.0),
        "max_seconds must be": dict(max_seconds=-1.0),
        "max_nodes must be an integer of at least 0": dict(max_nodes=1.5),
    }.items():
        with pytest.raises(ValueError, match=told):
            disagreement(explained, model, X, **arguments)
    with pytest.raises(TypeError, match="rules must be a RuleSet"):
        disagreement(model, model, X)
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        disagreement(explained, model, X)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_small_ensembles_end(seed):
    """Twenty trees of depth four on ten columns: in at most ten seconds."""
    X, y = make_friedman1(2000, 10, noise=1.0, random_state=seed)
    for kind in (RandomForestRegressor, ExtraTreesRegressor):
        model = kind(20, max_depth=4, random_state=seed).fit(X, y)
        found = disagreement(explain(model, X, max_rules=8, random_state=0), model, X)
        assert found.proven


@pytest.mark.slow
def test_a_full_forest_gets_better_with_time():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(100, random_state=0).fit(X, y)
    rules = explain(model, X, max_rules=6, random_state=0)
    runs = [disagreement(rules, model, X, max_nodes=n, max_seconds=None) for n in (0, 200, 2000)]
    assert runs[0].upper > runs[1].upper > runs[2].upper > runs[2].lower >= runs[0].lower
    assert runs[2].upper < 1.4 * runs[2].lower


def test_rules_count_from_0_in_python_and_from_1_in_the_text():
    X, y = numbers()
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    found = explain(forest, X, max_rules=4, random_state=0)
    gap = disagreement(found, forest, X)
    assert gap.rule == found.rules.apply(gap.row[None])[0] == gap.to_dict()["rule"]
    assert found.rules[gap.rule].leaf.constant == gap.rule_answer
    assert f"\nrule {gap.rule + 1} predicts " in str(gap)
