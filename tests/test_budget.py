"""A budget of calls: never exceeded, kept in a file, resumed exactly, and an interval that holds."""

import itertools
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fabinterp import (
    Budgeted,
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    as_reference,
    explain,
    explain_local,
)
from fabinterp.blackbox import budgeted
from fabinterp.proxy.budget import (
    allocate_calls,
    choose_rows,
    fidelity_interval,
    impute_predictions,
)

SMALL = {"max_leaves": 4, "random_state": 0}


class Service:
    """A function of a table that counts the rows it is asked about, and may fail."""

    def __init__(self, fails_after=None, error=None, classes=False):
        self.n_rows = 0
        self.fails_after = fails_after
        self.error = error
        self.classes = classes

    def __call__(self, X):
        """Return the answers, or what goes wrong."""
        self.n_rows += len(X)
        Z = X.to_numpy(float) if isinstance(X, pd.DataFrame) else X
        found = np.tanh(3 * Z[:, 0]) + 0.2 * Z[:, 1]
        if self.classes:
            share = 1 / (1 + np.exp(-3 * found))
            found = np.stack([1 - share, share], axis=1)
        if self.fails_after is not None and self.n_rows > self.fails_after:
            if self.error is not None:
                raise self.error
            found[0] = np.nan
        return found


def fit_small(model, X, cache=None, n_calls=60, make=ProxyTreeRegressor):
    """Return a tree of at most four leaves for a model on a budget."""
    return make(Budgeted(model, n_calls, cache), **SMALL).fit(X)


def stored(path):
    """Return the methods and keys of the rows in a file."""
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT method, row FROM predictions").fetchall()


@pytest.fixture
def X():
    """Return rows of three columns."""
    return np.random.default_rng(0).uniform(-1, 1, size=(400, 3))


@given(
    st.lists(st.floats(0.01, 10), min_size=2, max_size=3),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.integers(1, 5),
)
def test_calls_go_where_the_error_falls_most(worth, asked, k):
    worth = np.array(worth)
    asked = np.array(asked[: len(worth)])
    ways = itertools.product(range(k + 1), repeat=len(worth))
    least = min((worth / (asked + way)).sum() for way in map(np.array, ways) if way.sum() == k)
    found = allocate_calls(worth, asked, np.full(len(worth), 99), k)
    assert found.sum() == k
    assert np.isclose((worth / (asked + found)).sum(), least)


def test_no_leaf_gives_more_rows_than_it_has(X):
    found = allocate_calls(np.array([5.0, 1.0]), np.array([2, 2]), np.array([3, 40]), 20)
    assert found.tolist() == [3, 17]
    asked = np.arange(50)
    new = choose_rows(X, np.ones(400), X[:, 0], asked, 30, 8, np.random.default_rng(0))
    assert len(np.union1d(asked, new)) == 80


def test_what_is_known_is_not_guessed(X):
    at = np.random.default_rng(1).permutation(400)[:80]
    found = impute_predictions(X, at, X[at, 0] * 1e100)
    assert np.array_equal(found[at], X[at, 0] * 1e100)
    assert np.corrcoef(found, X[:, 0])[0, 1] > 0.95
    shares = impute_predictions(X, at, Service(classes=True)(X[at]))
    assert (shares >= 0).all() and np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(impute_predictions(X, at, np.full(80, 3.0)), np.full(400, 3.0))


@pytest.mark.parametrize("n_calls", [10, 37, 60, 1000])
@pytest.mark.parametrize("classes", [False, True])
def test_the_budget_is_never_exceeded(X, n_calls, classes):
    service = Service(classes=classes)
    make = ProxyTreeClassifier if classes else ProxyTreeRegressor
    tree = make(Budgeted(service, n_calls), max_leaves=3, random_state=0).fit(X)
    assert service.n_rows == tree.n_calls_ <= n_calls
    low, high = tree.fidelity_interval_
    assert low <= tree.fidelity_ <= high


def test_a_fitted_model_and_its_function_choose_alike(X):
    model = LogisticRegression().fit(X, X[:, 0] + 0.5 * X[:, 1] > 0)
    tree = fit_small(model, X, make=ProxyTreeClassifier)
    assert tree.n_calls_ <= 60
    assert tree.reference_.model is model
    again = pickle.loads(pickle.dumps(tree))
    assert np.array_equal(again.predict(X), tree.predict(X))


@pytest.mark.parametrize("framed", [False, True])
def test_a_killed_run_is_resumed_exactly(X, tmp_path, framed):
    table = pd.DataFrame(X, columns=list("abc")) if framed else X
    whole = Service()
    expected = fit_small(whole, table)
    path = tmp_path / "answers.db"
    with pytest.raises(KeyboardInterrupt):
        fit_small(Service(30, KeyboardInterrupt()), table, path)
    before = len(stored(path))
    rest = Service()
    found = fit_small(rest, table, path)
    assert str(found.tree_) == str(expected.tree_)
    assert found.fidelity_interval_ == expected.fidelity_interval_
    assert 0 < before and before + rest.n_rows == whole.n_rows + 2  # two are queried once more
    assert found.n_calls_ == whole.n_rows == len(stored(path))


def test_results_do_not_depend_on_the_file(X, tmp_path):
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    model = LogisticRegression().fit(X, y)
    path = tmp_path / "answers.db"
    cold = explain(Budgeted(model, 80, path), X, y)
    warm = explain(Budgeted(model, 80, path), X, y)
    assert str(cold) == str(warm) == str(explain(Budgeted(model, 80), X, y))


def test_a_run_without_a_seed_is_not_paid_for_twice(X, tmp_path):
    counts = []
    for run in (
        lambda model: ProxyTreeRegressor(model, size=4).fit(X),
        lambda model: explain(model, X),
    ):
        for _ in range(2):
            service = Service()
            run(Budgeted(service, 60, tmp_path / f"answers{len(counts) // 2}.db"))
            counts.append(service.n_rows)
    assert counts[0] > 40 < counts[2] and counts[1] == counts[3] == 2


def test_labels_are_known_by_name_not_by_code(tmp_path):
    table = pd.DataFrame({"ward": ["b", "c"] * 50})
    path = tmp_path / "answers.jsonl"
    asked = []

    def named(rows):
        asked.extend(rows["ward"])
        return (rows["ward"] == "b").to_numpy(float)

    as_reference(Budgeted(named, 10, path), X=table).mean_var(table)
    other = pd.DataFrame({"ward": ["a", "b"]})
    mean, _ = as_reference(Budgeted(named, 10, path), X=other).mean_var(other)
    assert mean.tolist() == [0.0, 1.0] and sorted(asked) == ["a", "b", "b", "c"]


@pytest.mark.parametrize("error", [None, RuntimeError("no\nmore")])
def test_a_model_that_fails_costs_one_line_and_no_answers(X, tmp_path, error):
    path = tmp_path / "answers.db"
    with pytest.raises(ValueError, match="^model failed on .* are kept in a file") as caught:
        fit_small(Service(30, error), X, path)
    assert "\n" not in str(caught.value)
    kept = len(stored(path))
    rest = Service()
    tree = fit_small(rest, X, path)
    assert kept > 10 and kept + rest.n_rows == tree.n_calls_ + 2  # two are queried once more
    with pytest.raises(ValueError, match="cache=path keeps them"):
        fit_small(Service(30, error), X)


def test_draws_of_different_lengths_are_one_line(X):
    lengths = iter(range(2, 99))

    def draws(rows):
        return np.zeros((next(lengths), len(rows)))

    with pytest.raises(ValueError, match="the same shape for all rows"):
        fit_small(draws, X)


@pytest.mark.parametrize(
    ("n_calls", "options", "message"),
    [
        (0, {}, "n_calls must be an integer of at least 1, got 0"),
        (9, {}, "n_calls must be at least 10, so that each leaf has a row, got 9"),
        (12, {"max_leaves": 20}, "n_calls must be at least 20"),
        (12, {"size": 20}, "n_calls must be at least 20"),
        (40, {"reference_share": 0.5}, "reference_share must be 1 with Budgeted"),
    ],
)
def test_a_budget_that_cannot_do_is_refused(X, n_calls, options, message):
    service = Service()
    with pytest.raises(ValueError, match=message):
        ProxyTreeRegressor(Budgeted(service, n_calls), **options).fit(X, X[:, 0])
    assert service.n_rows == 0


def test_draws_that_are_there_need_no_budget(X):
    with pytest.raises(
        ValueError, match=r"Budgeted\(model\) must wrap a model that can be queried, got an array"
    ):
        fit_small(np.zeros((3, 400)), X)


def foreign_database(path):
    """Write a database that is none of ours."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE predictions (method, row, value)")


def other_version(path):
    """Write a file of a later version."""
    fit_small(Service(), np.random.default_rng(0).uniform(size=(40, 3)), path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version = 2")


def damaged_number(path):
    """Write a file with a prediction that is no number."""
    fit_small(Service(), np.random.default_rng(0).uniform(size=(40, 3)), path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE predictions SET value = '[[NaN]]'")


def cut_file(path):
    """Write a file whose last pages are lost."""
    fit_small(Service(), np.random.default_rng(0).uniform(size=(40, 3)), path)
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b"a,b\n1,2\n"),
        lambda path: path.write_bytes(b'{"answers of fabinterp": 1, "columns": ["x0"]}\n'),
        lambda path: path.write_bytes(b"x"),
        lambda path: path.write_bytes(b"SQLite format 3\x00" + b"x" * 2000),
        foreign_database,
        other_version,
        damaged_number,
        cut_file,
    ],
)
def test_another_or_a_damaged_file_is_refused(X, tmp_path, write):
    path = tmp_path / "table"
    write(path)
    held = path.read_bytes()
    service = Service()
    with pytest.raises(ValueError, match="cache must be a new file or one that Budgeted") as caught:
        fit_small(service, X, path)
    assert path.read_bytes() == held and service.n_rows == 0
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        lambda Z: np.full(len(Z), 1e200),
        lambda Z: None,
        lambda Z: [None] * len(Z),
        lambda Z: np.zeros(len(Z) + 1),
        lambda Z: np.zeros(max(len(Z) - 1, 1)),
        lambda Z: np.full((len(Z), 2), 0.3),
    ],
)
def test_an_answer_that_is_none_is_one_line_of_the_model(X, answer):
    with pytest.raises(ValueError, match="^model (failed|must)") as caught:
        fit_small(answer, X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing/answers.db", "."])
def test_a_path_without_room_for_a_file_is_refused(X, tmp_path, name):
    service = Service()
    with pytest.raises(ValueError, match="cache must"):
        fit_small(service, X, tmp_path / name)
    with pytest.raises(ValueError, match="cache must be None or a path, got 5"):
        fit_small(service, X, 5)
    assert service.n_rows == 0


def test_a_changed_model_gets_no_old_answers(X, tmp_path):
    path = tmp_path / "answers.db"
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    one = LogisticRegression().fit(X, y)
    fit_small(one, X, path, make=ProxyTreeClassifier)
    for other in (~y, np.where(y, "a", "b")):
        with pytest.raises(ValueError, match="prediction for a row differs") as caught:
            fit_small(LogisticRegression().fit(X, other), X, path, make=ProxyTreeClassifier)
        assert "\n" not in str(caught.value)
    before = fit_small(one, X, path, make=ProxyTreeClassifier)
    for other in (GaussianNB().fit(X, y), one.predict_proba):  # have lines of their own
        alone = fit_small(other, X, make=ProxyTreeClassifier)
        found = fit_small(other, X, path, make=ProxyTreeClassifier)
        assert str(found.tree_) == str(alone.tree_) and found.n_calls_ == alone.n_calls_
    again = fit_small(one, X, path, make=ProxyTreeClassifier)
    assert str(again.tree_) == str(before.tree_)


def test_answers_of_another_shape_are_one_line(X, tmp_path):
    path = tmp_path / "answers.db"
    fit_small(lambda Z: Service()(Z), X, path)
    for other in (
        lambda Z: np.stack([Service()(Z)] * 3),
        lambda Z: (Service()(Z), np.ones(len(Z))),
    ):
        with pytest.raises(ValueError, match="model must|cache must") as caught:
            fit_small(other, X, path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("framed", [False, True])
def test_a_budgeted_model_predicts_as_its_model(X, tmp_path, framed):
    X = pd.DataFrame(X, columns=list("abc")) if framed else X
    labels = np.where(np.asarray(X)[:, 0] > 0, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    for _ in range(2):
        found = Budgeted(model, 50, tmp_path / "answers.db")
        assert np.array_equal(found.predict(X[:50]), model.predict(X[:50]))
        assert np.array_equal(found.predict_proba(X[20:50]), model.predict_proba(X[20:50]))
        assert found.n_used == 50 and list(found.classes_) == ["no", "yes"]
        with pytest.raises(ValueError, match="n_calls must be at least 51 for these rows"):
            found.predict(X[49:51])
    assert not hasattr(Budgeted(Service(), 9), "predict_proba")
    for other in (clone(found), pickle.loads(pickle.dumps(found))):
        assert other.n_used == 0 and str(other) == str(found)


def test_the_interval_of_classes_holds_at_all_times():
    failed = 0
    for seed in range(300):
        agree = np.random.default_rng(seed).random(60) < 0.8
        prediction = np.eye(2)[(~agree).astype(int)]
        target = np.eye(2)[np.zeros(60, int)]
        ends = [fidelity_interval(target[:t], prediction[:t])[1:] for t in range(1, 61)]
        failed += any(not low <= 0.8 <= high for low, high in ends)
    assert failed <= 0.05 * 300 + 3


def test_the_interval_of_numbers_does_not_depend_on_the_unit():
    rng = np.random.default_rng(0)
    target = rng.normal(size=50)
    prediction = target + 0.4 * rng.normal(size=50)
    one = fidelity_interval(target, prediction)
    assert np.allclose(fidelity_interval(1e6 * target + 5, 1e6 * prediction + 5), one)
    assert one[1] < one[0] < one[2] <= 1
    assert fidelity_interval(target[:2], prediction[:2])[1] == -np.inf


def test_rows_told_rightly_are_no_certainty():
    target = np.repeat([0.0, 1.0], 5)
    fidelity, low, high = fidelity_interval(target, target)
    assert (fidelity, high) == (1, 1) and low < 0.5
    wide = fidelity_interval(target, target, reach=3)
    assert wide[1] < low < fidelity_interval(*[np.tile(target, 40)] * 2)[1] < 1


@pytest.mark.slow
def test_the_interval_holds_where_errors_are_rare_and_large():
    held = 0
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(2000, 3))
        answers = (X[:, 0] > 0) + 2.0 * (X[:, 2] > 2.5)
        tree = ProxyTreeRegressor(
            Budgeted(lambda Z: (Z[:, 0] > 0) + 2.0 * (Z[:, 2] > 2.5), 100),
            size=4,
            random_state=seed,
        ).fit(X)
        low, high = tree.fidelity_interval_
        truth = 1 - np.mean((answers - tree.predict(X)) ** 2) / answers.var()
        held += low <= truth <= high
    assert held == 8


def test_explain_on_a_budget_tells_of_rows_apart(X):
    service = Service()
    found = explain(Budgeted(service, 120), X, y=service(X), max_rules=4, random_state=0)
    assert service.n_rows <= 400 + 120
    assert "rows were queried" in str(found) and found.method == "proxy tree"
    low, high = found.model.fidelity_interval_
    assert low <= found.fidelity_on(X) <= high
    assert 0 < found.rules_score <= 1
    with pytest.raises(ValueError, match="method must be"):
        explain(Budgeted(service, 120), X, method="mixture")


def test_draws_come_with_the_rows_that_were_asked(X):
    def draws(rows):
        service.n_rows += len(rows)
        return rows[:, 0] + np.array([[-0.1], [0.0], [0.1]])

    service = Service()
    tree = ProxyTreeRegressor(Budgeted(draws, 60), n_draws=3, **SMALL).fit(X)
    assert service.n_rows <= 60 and tree.leaf_draws_.shape == (3, tree.n_leaves_)
    assert np.allclose(np.ptp(tree.leaf_draws_, axis=0), 0.2, atol=0.05)


def test_a_forest_on_a_budget_has_the_mean_of_its_trees(X):
    forest = RandomForestRegressor(8, random_state=0).fit(X, Service()(X))
    local = explain_local(Budgeted(forest, 60), X[3], X)
    assert np.isclose(local.prediction, forest.predict(X[3:4])[0])
    free = explain_local(forest, X[3], X, n_samples=59, random_state=0)
    assert str(local.tree) == str(free.tree) and "draws" not in str(local)


def test_a_reference_may_have_a_budget(X):
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    model = LogisticRegression().fit(X, y)
    limited = explain(Budgeted(as_reference(model), 60), X)
    assert str(limited) == str(explain(Budgeted(model, 60), X))
    service = Service()
    reference = as_reference(service, X=X)
    service.n_rows = 0
    tree = fit_small(reference, X)
    assert service.n_rows == tree.n_calls_ <= 60 and tree.reference_.model is service


def test_support_and_fidelity_of_rules_are_those_of_the_rows_asked(X):
    y = (Service()(X) > 0).astype(int)
    tree = fit_small(LogisticRegression().fit(X, y), X, make=ProxyTreeClassifier)
    support = sum(rule.support for rule in tree.rules_)
    assert 40 <= support <= tree.n_calls_ <= 60


@pytest.mark.parametrize("n_kept", [0, 30])
def test_the_announced_cost_counts_no_answer_twice(X, tmp_path, capsys, monkeypatch, n_kept):
    path = tmp_path / "answers"
    if n_kept:
        Budgeted(Service(), n_kept, path).predict(X[:n_kept])
    monkeypatch.setattr(budgeted, "_LONG", 0.0)
    model = Budgeted(Service(), 100, path)
    model.predict(X[: n_kept + 1])
    model.predict(X[: n_kept + 40])
    left = int(capsys.readouterr().out.split("at most ")[1].split(" more")[0])
    assert left == 100 - (n_kept + 1 + 16)  # printed after the first block of 16 rows


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("n_calls", [11, 40, 1000])
def test_a_local_explanation_never_asks_more(X, n_calls, classes):
    service = Service(classes=classes)
    local = explain_local(Budgeted(service, n_calls), X[3], X, random_state=0)
    n_different = len(np.unique(np.vstack([local.x, local.neighbours]), axis=0))
    assert service.n_rows == n_different <= min(n_calls, 201)  # those put at an end may be alike
    assert len(local.neighbours) == min(n_calls, 201) - 1
    truth = Service(classes=classes)(X[3:4])[0]
    assert np.allclose(local.prediction, truth)
    free = explain_local(
        Service(classes=classes), X[3], X, n_samples=min(n_calls - 1, 200), random_state=0
    )
    assert str(free) == str(local)


def test_a_local_explanation_out_of_the_file_asks_next_to_nothing(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y", "z"], 90)})

    class Named:
        n_rows = 0

        def __call__(self, rows):
            """Return answers by number and label."""
            self.n_rows += len(rows)
            return rows["a"].to_numpy() + (rows["b"] == "y").to_numpy()

    service = Named()
    model = Budgeted(service, 100, tmp_path / "answers")
    some = explain_local(model, frame[:2], frame)
    before = service.n_rows
    again = explain_local(model, frame[:2], frame)
    assert before <= 100 and service.n_rows - before <= 2  # two answers are checked anew
    assert [str(one) for one in some] == [str(one) for one in again]


def test_a_local_budget_that_cannot_do(X):
    service = Service()
    with pytest.raises(
        ValueError, match="n_calls must be at least 11, for the row and the neighbours"
    ):
        explain_local(Budgeted(service, 10), X[3], X)
    assert service.n_rows == 0


def test_a_local_explanation_that_fails_keeps_its_answers(X, tmp_path):
    path = tmp_path / "answers"
    with pytest.raises(ValueError, match="are kept in a file"):
        explain_local(Budgeted(Service(fails_after=80), 150, path), X[3], X)
    service = Service()
    explain_local(Budgeted(service, 150, path), X[3], X)
    assert service.n_rows < 90
