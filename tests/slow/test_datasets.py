"""Generators against their formulas, loaders against their catalogue, and errors that tell the way out."""

import gzip
import json
import math
import os
from collections import Counter
from email.message import Message
from hashlib import md5
from io import BytesIO
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.needs import need_data

from fabinterp.bench import datasets
from fabinterp.bench.datasets import (
    OBLIQUE_REGIONS,
    SYNTHETIC1_TRUTH,
    catalogue,
    catalogue_entry,
    is_available,
    load,
    oblique_experts,
    simulate_meta_tree,
    simulate_oblique,
    simulate_piecewise,
    synthetic1,
    synthetic2,
    synthetic2_boundary,
)

seeds = st.integers(0, 2**32 - 1)
few_examples = examples(40)
ENTRIES = pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
TABLES = pytest.mark.parametrize("entry", [
    pytest.param(entry, id=entry.name, marks=[] if entry.name in datasets._IN_SKLEARN else pytest.mark.measure)
    for entry in catalogue()])  # fmt: skip


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder, nothing fetched before, no net; the fresh folder."""
    monkeypatch.setenv("FABINTERP_DATA", "")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn"))
    datasets._load_cached.cache_clear()
    yield tmp_path
    datasets._load_cached.cache_clear()


# The catalogue


def test_catalogue_has_every_table_of_the_papers():
    papers = Counter(paper for entry in catalogue() for paper in entry.papers)
    assert papers == {"Hara": 4, "Eto": 9, "Afrabandpey": 7, "Wang": 24}
    assert len({entry.name for entry in catalogue()}) == len(catalogue())


@ENTRIES
def test_entry_tells_everything(entry):
    assert entry.task in ("regression", "binary", "multiclass") and entry.rows > 0 < entry.columns
    assert entry.about and entry.source and entry.licence and entry.citation
    assert any(str(year) in entry.citation for year in range(1930, 2030))
    if entry.openml and entry.task == "binary":
        assert entry.openml_yes


def test_samples_say_that_they_are():
    assert all(catalogue_entry(name).note.startswith("a sample: ") for name in ("higgs", "ijcnn1"))


# Tables that are there


@TABLES
def test_table(entry):
    need_data(entry.name)
    found = load(entry.name)
    assert found.X.shape == (entry.rows, entry.columns) == (len(found.y), len(found.feature_names))
    assert found.X.dtype == float and np.isfinite(found.X).all() and np.isfinite(found.y).all()
    assert len(set(found.feature_names)) == entry.columns
    assert found.y.dtype == (float if entry.task == "regression" else int)
    if entry.task == "binary":
        assert set(found.y) == {0, 1}
    assert (found.task, found.citation, found.licence) == (
        entry.task,
        entry.citation,
        entry.licence,
    )
    assert load(entry.name) is found
    with pytest.raises(ValueError, match="read-only"):
        found.X[0, 0] = 1
    assert repr(found).startswith(f"Dataset({entry.name}: ")


def test_frame_has_names_and_target():
    frame = load("iris").frame()
    assert list(frame.columns) == [*load("iris").feature_names, "target"] and len(frame) == 150
    assert np.array_equal(frame.to_numpy()[:, :4], load("iris").X)


@pytest.mark.parametrize(
    "name, size", [("breast_cancer", 2), ("iris", 3), ("wine", 3), ("digits", 10)]
)
def test_scikit_learns_tables_need_no_folder(nowhere, name, size):
    assert is_available(name) and np.array_equal(np.unique(load(name).y), np.arange(size))


# A folder


def write(folder, name, X, y):
    head = ",".join([*(f"a{j}" for j in range(X.shape[1])), "target"])
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
        np.savetxt(
            file, np.column_stack([X, y]), delimiter=",", header=head, comments="", fmt="%.17g"
        )


def rows_of(name, rng):
    entry = catalogue_entry(name)
    y = rng.normal(size=entry.rows) if entry.task == "regression" else np.arange(entry.rows) % 2
    return rng.normal(size=(entry.rows, entry.columns)), y


@pytest.mark.parametrize("name", ["bodyfat", "fourclass"])
def test_a_file_comes_back_exactly(nowhere, monkeypatch, name):
    X, y = rows_of(name, np.random.default_rng(0))
    write(nowhere, name, X, y)
    assert not is_available(name)
    monkeypatch.setenv("FABINTERP_DATA", str(nowhere))
    assert is_available(name)
    found = load(name)
    assert np.array_equal(found.X, X) and np.array_equal(found.y, y)
    assert found.feature_names == tuple(f"a{j}" for j in range(X.shape[1]))


@pytest.mark.parametrize("spoil, message", [
    (lambda X, y: (X[1:], y[1:]), r"must have 862 rows of 2 features, fourclass.csv.gz has \(861, 2\)"),
    (lambda X, y: (X[:, :1], y), r"has \(862, 1\)"),
    (lambda X, y: (np.where(X == X[0, 0], np.nan, X), y), "must have no missing values"),
    (lambda X, y: (X, 2 * y - 1), r"must have a binary target, fourclass.csv.gz has \[-1.0, 1.0\]"),
    (lambda X, y: (X, 0 * y), "must have a binary target"),
])  # fmt: skip
def test_a_file_that_is_another_table_is_refused(nowhere, monkeypatch, spoil, message):
    write(nowhere, "fourclass", *spoil(*rows_of("fourclass", np.random.default_rng(0))))
    monkeypatch.setenv("FABINTERP_DATA", str(nowhere))
    with pytest.raises(ValueError, match=message):
        load("fourclass")


# OpenML


def test_without_folder_and_net_the_error_says_both_ways(nowhere, monkeypatch):
    def no_net(*args, **kwargs):
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", no_net)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    assert not is_available("miniboone")
    with (
        pytest.warns(UserWarning, match="network error"),
        pytest.raises(FileNotFoundError) as raised,
    ):
        load("miniboone")
    text = str(raised.value)
    for word in (
        "'miniboone'",
        "FABINTERP_DATA names no folder with miniboone.csv.gz",
        "OpenML's data set 41150",
        "URLError",
        "no route to host",
    ):
        assert word in text
    assert "\n" not in text


def test_without_folder_and_copy_the_error_says_so(nowhere):
    with pytest.raises(FileNotFoundError, match="'higgs'.*FABINTERP_DATA.*no copy on OpenML"):
        load("higgs")


@pytest.mark.parametrize("ask", [load, is_available, catalogue_entry])
def test_unknown_name(ask):
    with pytest.raises(ValueError, match="name must be one of spambase, .*, got 'abalon'"):
        ask("abalon")


def fetched(monkeypatch, bunch):
    """Let `fetch_openml` answer that; return what it is asked."""
    asked = []
    monkeypatch.setattr(datasets, "fetch_openml", lambda **kwargs: asked.append(kwargs) or bunch)
    return asked


@pytest.mark.parametrize(
    "name, labels",
    [
        ("pima_diabetes", ("tested_negative", "tested_positive")),
        ("banknote", ("1", "2")),
        ("magic04", ("h", "g")),
    ],
)
def test_openml_classes(nowhere, monkeypatch, name, labels):
    X, y = rows_of(name, np.random.default_rng(1))
    names = [f"f{j}" for j in range(X.shape[1])]
    said = np.array(labels, object)[y]
    asked = fetched(monkeypatch, SimpleNamespace(data=X, target=said, feature_names=names))
    found = load(name)
    assert (
        np.array_equal(found.X, X)
        and np.array_equal(found.y, y)
        and found.feature_names == tuple(names)
    )
    assert asked[0]["data_id"] == catalogue_entry(name).openml and asked[0]["cache"] is True
    assert f"OpenML's data set {asked[0]['data_id']}" in found.note
    assert load(name) is found and len(asked) == 1


def test_openml_rows_with_gaps_and_columns_that_give_it_away_are_left_out(nowhere, monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rows_of("auto_mpg", rng)
    gaps = np.vstack([X, np.full((6, 7), np.nan)])
    fetched(
        monkeypatch,
        SimpleNamespace(data=gaps, target=np.append(y, np.ones(6)), feature_names=list("abcdefg")),
    )
    assert np.array_equal(load("auto_mpg").X, X) and np.array_equal(load("auto_mpg").y, y)

    X, y = rows_of("bodyfat", rng)
    names = ["Density", *(f"f{j}" for j in range(13))]
    fetched(
        monkeypatch, SimpleNamespace(data=np.column_stack([y, X]), target=y, feature_names=names)
    )
    assert np.array_equal(load("bodyfat").X, X) and load("bodyfat").feature_names == tuple(
        names[1:]
    )


def test_openml_numbers_may_come_as_labels(nowhere, monkeypatch):
    X, _ = rows_of("abalone", np.random.default_rng(3))
    labels = np.array(["7", "15"], object)[np.arange(len(X)) % 2]
    fetched(monkeypatch, SimpleNamespace(data=X, target=labels, feature_names=list("abcdefgh")))
    assert set(load("abalone").y) == {7.0, 15.0} and load("abalone").y.dtype == float


def test_openml_with_other_rows_is_refused_and_asked_again(nowhere, monkeypatch):
    X, y = rows_of("abalone", np.random.default_rng(4))
    asked = fetched(
        monkeypatch, SimpleNamespace(data=X[1:], target=y[1:], feature_names=list("abcdefgh"))
    )
    for _ in range(2):
        with pytest.raises(
            ValueError, match="abalone must have 4177 rows of 8 features, OpenML's data set 183 has"
        ):
            load("abalone")
    assert len(asked) == 2


class FakeServer:
    """OpenML's answers for one table, as `urlopen` would bring them."""

    def __init__(self, number, arff, features):
        address = f"https://www.openml.org/data/v1/download/1/{number}.arff"
        self.asked = []
        described = {
            "id": number,
            "name": "fake",
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "url": address,
            "description": "",
            "md5_checksum": md5(arff.encode()).hexdigest(),
            "file_id": "1",
        }
        columns = [
            {
                "index": str(k),
                "name": name,
                "data_type": "numeric",
                "is_target": str(name == "y").lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for k, name in enumerate(features)
        ]
        rows = {"name": "NumberOfInstances", "value": str(arff.count("\n") - len(features) - 2)}
        self.pages = {
            f"api/v1/json/data/{number}": json.dumps({"data_set_description": described}),
            f"api/v1/json/data/features/{number}": json.dumps(
                {"data_features": {"feature": columns}}
            ),
            f"api/v1/json/data/qualities/{number}": json.dumps(
                {"data_qualities": {"quality": [rows]}}
            ),
            address.partition(".org/")[2]: arff,
            "data/v1/download/1": arff,  # where scikit-learn 1.6 looks
        }

    def __call__(self, request, *args, **kwargs):
        self.asked.append(request.full_url)
        answer = BytesIO(gzip.compress(self.pages[request.full_url.partition(".org/")[2]].encode()))
        head = Message()
        head["Content-Encoding"] = "gzip"
        answer.info = lambda: head
        return answer


def test_what_was_fetched_once_needs_no_net(nowhere, monkeypatch):
    """scikit-learn's own code against a server of our own: ARFF read, the answer kept in its folder."""
    X, y = rows_of("stock", np.random.default_rng(5))
    names = [*(f"f{j}" for j in range(9)), "y"]
    lines = [",".join(f"{value:.17g}" for value in row) for row in np.column_stack([X, y])]
    arff = "\n".join(
        ["@relation fake", *(f"@attribute {name} numeric" for name in names), "@data", *lines, ""]
    )
    server = FakeServer(223, arff, names)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", server)
    found = load("stock")
    assert (
        np.array_equal(found.X, X)
        and np.array_equal(found.y, y)
        and found.feature_names == tuple(names[:-1])
    )
    assert len(server.asked) == 4 and is_available("stock")

    datasets._load_cached.cache_clear()  # as another process would find it
    again = load("stock")
    assert len(server.asked) == 4 and np.array_equal(again.X, X)


# Hara & Hayashi


@given(seeds, st.integers(1, 300), st.sampled_from([synthetic1, synthetic2]))
@few_examples
def test_squares(seed, n, make):
    X, y = make(n, seed)
    clean, truth = make(n, seed, flip=0)
    assert X.shape == (n, 2) and y.shape == (n,) and set(y) <= {0, 1} and ((X >= 0) & (X < 1)).all()
    assert np.array_equal(X, clean) and np.array_equal(make(n, seed, flip=1)[1], 1 - truth)
    for same in (make(n, seed), make(n, np.random.default_rng(seed))):
        assert np.array_equal(same[0], X) and np.array_equal(same[1], y)
    for (a, b), label in zip(X.tolist(), truth.tolist()):
        r = 0.25 + 0.5 / (1 + math.exp(-20 * (a - 0.5))) + 0.05 * math.cos(2 * math.pi * a)
        assert label == (b > r if make is synthetic2 else (a > 0.5) != (b > 0.5))


def test_a_generator_goes_on():
    rng = np.random.default_rng(0)
    assert not np.array_equal(synthetic1(10, rng)[0], synthetic1(10, rng)[0])


@given(seeds)
@few_examples
def test_the_checkerboard_says_synthetic1(seed):
    X, y = synthetic1(500, seed, flip=0)
    assert np.array_equal(SYNTHETIC1_TRUTH.predict(X), y) and np.array_equal(
        SYNTHETIC1_TRUTH.rules().predict(X), y
    )


@pytest.mark.parametrize("make", [synthetic1, synthetic2])
def test_a_tenth_is_turned_over(make):
    n = 100_000
    wrong = np.mean(make(n, 0)[1] != make(n, 0, flip=0)[1])
    assert abs(wrong - 0.1) < 5 * np.sqrt(0.09 / n)


def test_the_border_stays_in_the_square():
    r = synthetic2_boundary(np.linspace(0, 1, 1001))
    assert 0 < r.min() < 0.3 and 0.75 < r.max() < 1


# Eto and others


@given(seeds, st.integers(100, 800), st.integers(4, 12), st.floats(0, 2))
@few_examples
def test_piecewise_is_its_tree_and_noise(seed, n, d, noise):
    X, y, tree = simulate_piecewise(seed, noise, n, d)
    assert X.shape == (n, d) and y.shape == (n,) and tree.n_leaves == 5
    assert np.allclose(
        y - tree.predict(X), noise * (simulate_piecewise(seed, 1.0, n, d)[1] - tree.predict(X))
    )
    leaves = [leaf for leaf in tree.leaves if leaf is not None]
    assert all(
        2 <= len(leaf.features) <= 4 and all(0 <= c < 1 for c in leaf.coef) for leaf in leaves
    )


# Wang and others


def by_hand(x):
    """What section 5 says of one row, numbered from 1, without noise."""
    if 2.5 * x[9] - 1.6 * x[10] < 0.613:
        if 1.5 * x[6] - 0.7 * x[4] < 0.358:
            return 1, 5 * math.sin(math.pi * x[1]) + 15 * (x[2] - 0.5) ** 2 - 4 * x[7] + 1
        return 2, 7 / (1 + math.exp(5 - 10 * x[5])) + 5 * math.sin(math.pi * x[7] ** 2) - 5 * x[
            8
        ] + 2
    if 1.6 * x[3] - 0.5 * x[12] < 0.715:
        return 3, 8 * abs(x[1] - 0.5) + 7 * (3 * x[8] - 2) ** 2 - 4
    return 4, 5 * math.cos(2 * math.pi * x[2]) + 5 * x[8] + 2 * math.log(100 * x[10] + 3) - 3


@given(seeds, st.integers(1, 200), st.integers(15, 40))
@few_examples
def test_oblique_by_hand(seed, n, d):
    X, y = simulate_oblique(seed, n, d, noise=0)
    said = [by_hand([None, *row]) for row in X.tolist()]
    assert OBLIQUE_REGIONS.predict(X[:, :15]).tolist() == [k for k, _ in said]
    assert np.allclose(y, [value for _, value in said], rtol=1e-12, atol=1e-12)
    assert np.allclose(oblique_experts(X)[np.arange(n), [k - 1 for k, _ in said]], y)


def test_oblique_noise_and_errors():
    X, y = simulate_oblique(0, 50_000)
    left = y - simulate_oblique(0, 50_000, noise=0)[1]
    assert X.shape == (50_000, 15) and abs(left.std() - 0.01) < 5 * 0.01 / np.sqrt(1e5)
    with pytest.raises(ValueError, match="d must be at least 15, got 12"):
        simulate_oblique(0, d=12)


# Nakahara & Matsushima

shapes = dict(
    depth=st.integers(0, 3),
    more=st.integers(0, 3),
    arity=st.integers(2, 3),
    n_classes=st.integers(2, 4),
    split_prob=st.floats(0, 1),
    alpha=st.floats(0.05, 5),
)


@given(seed=seeds, n=st.integers(1, 100), **shapes)
@few_examples
def test_meta_tree_is_a_pruning(seed, n, depth, more, arity, n_classes, split_prob, alpha):
    asked = dict(
        n=n,
        depth=depth,
        d=depth + more + 1,
        arity=arity,
        split_prob=split_prob,
        n_classes=n_classes,
        alpha=alpha,
    )
    X, y, tree = simulate_meta_tree(seed, **asked)
    assert X.shape == (n, depth + more + 1) and np.isin(X, np.arange(arity)).all()
    assert y.shape == (n,) and np.isin(y, np.arange(n_classes)).all()
    assert len({feature for split in tree.splits if split for feature in split.features}) <= depth
    assert tree.n_leaves <= arity**depth and (tree.n_leaves - 1) % (arity - 1) == 0
    assert (tree.predict_proba(X)[np.arange(n), y] > 0).all()
    again = simulate_meta_tree(seed, **asked)
    assert np.array_equal(again[0], X) and np.array_equal(again[1], y) and again[2] == tree


@given(seeds, st.permutations(range(4)))
@few_examples
def test_meta_tree_ends(seed, order):
    assert simulate_meta_tree(seed, split_prob=0)[2].n_leaves == 1
    _, _, tree = simulate_meta_tree(seed, n=5, d=4, split_prob=1, features=order)
    assert tree.n_leaves == 16 and tree.splits[0].features == (order[0],)


def test_meta_tree_rows_follow_the_leaves():
    X, y, tree = simulate_meta_tree(15, n=60_000, n_classes=3)
    at = tree.apply(X)
    assert len(np.unique(at)) == tree.n_leaves > 2
    for leaf in np.unique(at):
        shares = np.bincount(y[at == leaf], minlength=3) / np.sum(at == leaf)
        n = np.sum(at == leaf)
        said = np.array(tree.leaves[leaf].value)
        assert np.all(abs(shares - said) <= 5 * np.sqrt(said * (1 - said) / n) + 1e-9)


def test_meta_tree_splits_as_often_as_it_should():
    splits = np.mean(
        [
            simulate_meta_tree(seed, n=1, depth=1, split_prob=0.3)[2].n_leaves > 1
            for seed in range(2000)
        ]
    )
    assert abs(splits - 0.3) < 5 * np.sqrt(0.21 / 2000)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(depth=6),
        dict(arity=1),
        dict(n_classes=1),
        dict(split_prob=1.5),
        dict(alpha=0),
        dict(depth=-1),
    ],
)
def test_meta_tree_refuses(wrong):
    with pytest.raises(
        ValueError, match=r"depth, arity, n_classes, split_prob, alpha must be .*, got"
    ):
        simulate_meta_tree(0, **wrong)


@pytest.mark.measure
def test_data_are_those_of_the_folder_not_of_the_net():
    """With the folder named, `load` never asks scikit-learn for a table the folder has."""
    if not os.environ.get("FABINTERP_DATA"):
        pytest.skip("abalone: FABINTERP_DATA names no folder with abalone.csv.gz")
    need_data("abalone")
    assert load("abalone").feature_names[0] == "Sex" and "OpenML" not in load("abalone").note
