"""A budget of calls: never exceeded, kept in a file, resumed exactly, and an interval that holds."""

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fabinterp import ProxyTreeClassifier, ProxyTreeRegressor, explain, explain_local
from fabinterp.proxy.budget import (
    AnswerBook,
    allocate_calls,
    budgeted_reference,
    choose_rows,
    fidelity_interval,
    impute_answers,
)
from fabinterp.rules.core import read_columns

SMALL = {"max_leaves": 4, "n_calls": 60, "random_state": 0}


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
    found = impute_answers(X, at, X[at, 0] * 1e100)
    assert np.array_equal(found[at], X[at, 0] * 1e100)
    assert np.corrcoef(found, X[:, 0])[0, 1] > 0.95
    shares = impute_answers(X, at, Service(classes=True)(X[at]))
    assert (shares >= 0).all() and np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(impute_answers(X, at, np.full(80, 3.0)), np.full(400, 3.0))


@pytest.mark.parametrize("n_calls", [10, 37, 60, 1000])
@pytest.mark.parametrize("classes", [False, True])
def test_the_budget_is_never_exceeded(X, n_calls, classes):
    service = Service(classes=classes)
    make = ProxyTreeClassifier if classes else ProxyTreeRegressor
    tree = make(service, max_leaves=3, n_calls=n_calls, random_state=0).fit(X)
    assert service.n_rows == tree.n_calls_ <= n_calls
    low, high = tree.fidelity_interval_
    assert low <= tree.fidelity_ <= high


def test_a_fitted_model_and_its_function_choose_alike(X):
    model = LogisticRegression().fit(X, X[:, 0] + 0.5 * X[:, 1] > 0)
    tree = ProxyTreeClassifier(model, **SMALL).fit(X)
    assert tree.n_calls_ <= 60
    assert tree.reference_.model is model
    again = pickle.loads(pickle.dumps(tree))
    assert np.array_equal(again.predict(X), tree.predict(X))


@pytest.mark.parametrize("framed", [False, True])
def test_a_killed_run_is_resumed_exactly(X, tmp_path, framed):
    table = pd.DataFrame(X, columns=list("abc")) if framed else X
    whole = Service()
    expected = ProxyTreeRegressor(whole, **SMALL).fit(table)
    path = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt):
        ProxyTreeRegressor(Service(30, KeyboardInterrupt()), cache=path, **SMALL).fit(table)
    with path.open("a") as file:
        file.write('{"row": "cut o')
    before = len(path.read_text().splitlines()) - 2
    rest = Service()
    found = ProxyTreeRegressor(rest, cache=path, **SMALL).fit(table)
    assert str(found.tree_) == str(expected.tree_)
    assert found.fidelity_interval_ == expected.fidelity_interval_
    assert 0 < before and before + rest.n_rows == whole.n_rows + 2  # two are asked once more
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_run_without_a_seed_is_not_paid_for_twice(X, tmp_path):
    path = tmp_path / "answers.jsonl"
    counts = []
    for _ in range(2):
        service = Service()
        ProxyTreeRegressor(service, size=4, n_calls=60, cache=path).fit(X)
        counts.append(service.n_rows)
    for _ in range(2):
        service = Service()
        explain(service, X, n_calls=60, cache=tmp_path / "others.jsonl")
        counts.append(service.n_rows)
    assert counts[0] > 40 < counts[2] and counts[1] == counts[3] == 2


def test_labels_are_known_by_name_not_by_code(tmp_path):
    table = pd.DataFrame({"ward": ["b", "c"] * 50})
    path = tmp_path / "answers.jsonl"
    asked = []

    def named(rows):
        asked.extend(rows["ward"])
        return (rows["ward"] == "b").to_numpy(float)

    budgeted_reference(named, table, 10, cache=path).mean_var(table)
    other = pd.DataFrame({"ward": ["a", "b"]})
    mean, _ = budgeted_reference(named, other, 10, cache=path).mean_var(other)
    assert mean.tolist() == [0.0, 1.0] and sorted(asked) == ["a", "b", "b", "c"]


@pytest.mark.parametrize("error", [None, RuntimeError("no\nmore")])
def test_a_model_that_fails_costs_one_line_and_no_answers(X, tmp_path, error):
    path = tmp_path / "answers.jsonl"
    with pytest.raises(ValueError, match="kept in the file of cache") as caught:
        ProxyTreeRegressor(Service(30, error), cache=path, **SMALL).fit(X)
    assert "\n" not in str(caught.value)
    kept = len(path.read_text().splitlines()) - 1
    rest = Service()
    tree = ProxyTreeRegressor(rest, cache=path, **SMALL).fit(X)
    assert kept > 10 and kept + rest.n_rows == tree.n_calls_ + 2  # two are asked once more
    with pytest.raises(ValueError, match="cache=path keeps them"):
        ProxyTreeRegressor(Service(30, error), **SMALL).fit(X)


def test_draws_of_different_lengths_are_one_line(X):
    lengths = iter(range(2, 99))

    def draws(rows):
        return np.zeros((next(lengths), len(rows)))

    with pytest.raises(ValueError, match="equal shapes for all rows"):
        ProxyTreeRegressor(draws, **SMALL).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_calls": 0}, "n_calls must be an integer of at least 10, got 0"),
        ({"n_calls": 12, "max_leaves": 20}, "at least max_leaves = 20"),
        ({"n_calls": 12, "size": 20}, "at least size = 20"),
        ({"cache": "answers.jsonl"}, "cache must be None without n_calls"),
        ({"n_calls": 40, "min_fidelity": 1.5}, "min_fidelity must lie between 0 and 1"),
        ({"n_calls": 40, "min_fidelity": "a"}, "min_fidelity must lie between 0 and 1, got 'a'"),
        ({"n_calls": 40, "reference_share": 0.5}, "reference_share must be None or 1 with n_calls"),
    ],
)
def test_a_budget_that_cannot_do_is_refused(X, options, message):
    service = Service()
    with pytest.raises(ValueError, match=message):
        ProxyTreeRegressor(service, **options).fit(X, X[:, 0])
    assert service.n_rows == 0


def test_draws_that_are_there_need_no_budget(X):
    with pytest.raises(ValueError, match="n_calls must be None for an array"):
        ProxyTreeRegressor(np.zeros((3, 400)), n_calls=20).fit(X)
    with pytest.raises(ValueError, match="n_calls must be None where y is the reference"):
        ProxyTreeRegressor(n_calls=20).fit(X, X[:, 0])


@pytest.mark.parametrize(
    "held",
    [
        b"a,b\n1,2\n",
        b'{"my": "model"}',
        b'{"columns": ["x0", "x1", "x2"]}\n{"ro',
        b"\xff\xfe\x00\n",
        b"7\n",
    ],
)
def test_another_file_is_not_taken_for_answers(X, tmp_path, held):
    path = tmp_path / "table.csv"
    path.write_bytes(held)
    service = Service()
    with pytest.raises(ValueError, match="cache must be a file of predictions") as caught:
        ProxyTreeRegressor(service, cache=path, **SMALL).fit(X)
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
def test_an_answer_that_is_none_is_one_line_of_the_reference(X, answer):
    with pytest.raises(ValueError, match="^reference must") as caught:
        ProxyTreeRegressor(answer, **SMALL).fit(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing/answers.jsonl", "."])
def test_a_path_without_room_for_a_file_is_refused(X, tmp_path, name):
    service = Service()
    with pytest.raises(ValueError, match="cache must"):
        ProxyTreeRegressor(service, cache=tmp_path / name, **SMALL).fit(X)
    with pytest.raises(ValueError, match="cache must be None or a path, got 5"):
        ProxyTreeRegressor(service, cache=5, **SMALL).fit(X)
    assert service.n_rows == 0


def test_a_changed_model_gets_no_old_answers(X, tmp_path):
    path = tmp_path / "answers.jsonl"
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    one = LogisticRegression().fit(X, y)
    ProxyTreeClassifier(one, cache=path, **SMALL).fit(X)
    held = path.read_bytes()
    for other, message in [
        (LogisticRegression().fit(X, ~y), "prediction for a row differs"),
        (LogisticRegression().fit(X, np.where(y, "a", "b")), "cache must be of the classes"),
        (GaussianNB().fit(X, y), "cache must belong to a reference of kind"),
        (one.predict_proba, "cache must belong to a reference of kind"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            ProxyTreeClassifier(other, cache=path, **SMALL).fit(X)
        assert "\n" not in str(caught.value) and path.read_bytes() == held
    ProxyTreeClassifier(one, cache=path, **SMALL).fit(X)


def test_answers_of_another_shape_are_one_line(X, tmp_path):
    path = tmp_path / "answers.jsonl"
    ProxyTreeRegressor(Service(), cache=path, **SMALL).fit(X)
    for other in (
        lambda Z: np.stack([Service()(Z)] * 3),
        lambda Z: (Service()(Z), np.ones(len(Z))),
        Service(classes=True),
    ):
        with pytest.raises(ValueError, match="reference must|cache must") as caught:
            ProxyTreeRegressor(other, cache=path, **SMALL).fit(X)
        assert "\n" not in str(caught.value)


def test_a_surely_good_tree_ends_early(X):
    often = ProxyTreeRegressor(Service(), size=8, n_calls=300, random_state=0).fit(X)
    early = ProxyTreeRegressor(
        Service(), size=8, n_calls=300, min_fidelity=0.5, random_state=0
    ).fit(X)
    assert early.n_calls_ < often.n_calls_


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
            lambda Z: (Z[:, 0] > 0) + 2.0 * (Z[:, 2] > 2.5),
            size=4,
            n_calls=100,
            random_state=seed,
        ).fit(X)
        low, high = tree.fidelity_interval_
        truth = 1 - np.mean((answers - tree.predict(X)) ** 2) / answers.var()
        held += low <= truth <= high
    assert held == 8


def test_explain_on_a_budget_tells_of_rows_apart(X):
    service = Service()
    found = explain(service, X, y=service(X), max_rules=4, n_calls=120, random_state=0)
    assert service.n_rows <= 400 + 120
    assert "rows were asked" in str(found) and found.method == "proxy tree"
    low, high = found.model.fidelity_interval_
    assert low <= found.fidelity_on(X) <= high
    assert 0 < found.rules_score <= 1
    with pytest.raises(ValueError, match="method must be"):
        explain(service, X, method="mixture", n_calls=120)


def test_draws_come_with_the_rows_that_were_asked(X):
    def draws(rows):
        service.n_rows += len(rows)
        return rows[:, 0] + np.array([[-0.1], [0.0], [0.1]])

    service = Service()
    tree = ProxyTreeRegressor(draws, n_draws=3, **SMALL).fit(X)
    assert service.n_rows <= 60 and tree.leaf_draws_.shape == (3, tree.n_leaves_)
    assert np.allclose(np.ptp(tree.leaf_draws_, axis=0), 0.2, atol=0.05)


def test_support_and_fidelity_of_rules_are_those_of_the_rows_asked(X):
    y = (Service()(X) > 0).astype(int)
    tree = ProxyTreeClassifier(LogisticRegression().fit(X, y), **SMALL).fit(X)
    support = sum(rule.support for rule in tree.rules_)
    assert 40 <= support <= tree.n_calls_ <= 60


@pytest.mark.parametrize("n_kept", [0, 30])
def test_the_cost_that_is_said_counts_no_answer_twice(X, tmp_path, capsys, n_kept):
    path = tmp_path / "answers"
    columns = read_columns(X)
    if n_kept:
        AnswerBook(Service(), columns, n_kept, path)(X[:n_kept])
    book = AnswerBook(Service(), columns, 100, path, verbose=1)
    book(X[: n_kept + 1])
    book(X[: n_kept + 40])
    left = int(capsys.readouterr().out.split("at most ")[1].split(" more")[0])
    assert left == 100 - (n_kept + 1 + 16)  # said after the first block of 16 rows


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("n_calls", [11, 40, 1000])
def test_a_local_explanation_never_asks_more(X, n_calls, classes):
    service = Service(classes=classes)
    local = explain_local(service, X[3], X, n_calls=n_calls, random_state=0)
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
    options = {"n_calls": 100, "cache": tmp_path / "answers"}
    some = explain_local(service, frame[:2], frame, **options)
    before = service.n_rows
    again = explain_local(service, frame[:2], frame, **options)
    assert before <= 100 and service.n_rows - before <= 2  # two answers are checked anew
    assert [str(one) for one in some] == [str(one) for one in again]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_calls": 0}, "n_calls must be an integer of at least 1"),
        ({"n_calls": 10}, "n_calls must be at least 11, a row and the neighbours"),
        ({"cache": "answers"}, "cache must be None without n_calls"),
    ],
)
def test_a_local_budget_that_cannot_do(X, options, message):
    service = Service()
    with pytest.raises(ValueError, match=message):
        explain_local(service, X[3], X, **options)
    assert service.n_rows == 0


def test_a_local_explanation_that_fails_keeps_its_answers(X, tmp_path):
    path = tmp_path / "answers"
    options = {"n_calls": 150, "cache": path}
    with pytest.raises(ValueError, match="are kept in the file of cache"):
        explain_local(Service(fails_after=80), X[3], X, **options)
    service = Service()
    explain_local(service, X[3], X, **options)
    assert service.n_rows < 90
