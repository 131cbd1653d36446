"""Rows on a cluster of two processes are the rows in memory: the same sample, sums and models, and if a worker dies."""

import os
import signal
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")

from fabinterp.fab.engine import EM
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor
from fabinterp.proxy.local_explanations import explain_local
from fabinterp.rows.blocks import Maximum
from fabinterp.rows.chunks import FAN_IN, OnDask, build_chunked_data, is_dask, read_dask

N = 200_000
D = 6
N_BLOCKS = 4
FEW = 20_000  # rows at the keyboard


class Numbers(RegressorMixin, BaseEstimator):
    """An estimator of numbers, to build data for."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Words(ClassifierMixin, Numbers):
    pass


with_cluster = pytest.mark.xdist_group("cluster")  # one is enough


@pytest.fixture(scope="module")
def client():
    """Two worker processes of one thread each."""
    quiet = {"logging.distributed": "critical", "distributed.worker.daemon": True}
    with (
        dask.config.set(quiet),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture
def no_client():
    """Dask as it is without a cluster: threads."""
    with dask.config.set(scheduler="threads"):
        yield


# ------------------------------------------------------------------ the rows


def block(b, n=N // N_BLOCKS):
    """A block of rows: X (n, D) and the noise of y, drawn where they are needed."""
    rng = np.random.default_rng(b)
    return np.round(rng.normal(size=(n, D)), 3), rng.normal(size=n)


def numbers_of(X, noise):
    """A piecewise linear y."""
    return (
        np.where(X[:, 0] > 0.3, 2 * X[:, 1], np.where(X[:, 2] > 0, 1 - X[:, 1], X[:, 3]))
        + 0.5 * noise
    )


def words_of(X, noise):
    """Two classes whose log-odds are piecewise linear."""
    return np.where(numbers_of(X, 2 * noise) > 0.5, "yes", "no")


def in_memory(target, n=N):
    parts = (block(b, n // N_BLOCKS) for b in range(N_BLOCKS))
    X, noise = (np.concatenate(part) for part in zip(*parts, strict=True))
    return X, target(X, noise)


def on_dask(target, n=N):
    X = []
    y = []
    size = n // N_BLOCKS
    for b in range(N_BLOCKS):
        drawn = dask.delayed(block, nout=2)(b, size)
        X.append(da.from_delayed(drawn[0], (size, D), float))
        y.append(
            da.from_delayed(
                dask.delayed(target)(*drawn), (size,), target(np.zeros((1, D)), 0.0).dtype
            )
        )
    return da.concatenate(X), da.concatenate(y)


def frame(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.integers(0, 40, n) / 3,
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], n)),
            "yes": rng.random(n) < 0.5,
        }
    )
    X.loc[rng.random(n) < 0.2, "size"] = np.nan
    return X.assign(price=rng.normal(size=n), copies=rng.integers(0, 3, n))


def same(a, b):
    """Whether two Training objects hold the same rows, bit for bit, and say them alike."""
    classes = a.classes is b.classes is None or np.array_equal(a.classes, b.classes)
    return (
        np.array_equal(a.Z, b.Z, equal_nan=True)
        and np.array_equal(a.y, b.y)
        and np.array_equal(a.w, b.w)
        and a.columns == b.columns
        and a.original_columns == b.original_columns
        and a.framed == b.framed
        and classes
    )


# ------------------------------------------------------------------ without a cluster


def test_a_collection_is_known_without_importing_dask():
    assert is_dask(da.ones(3)) and is_dask(dd.from_pandas(frame(9), npartitions=2))
    assert not is_dask(np.ones(3)) and not is_dask(frame(9))


def test_frames_of_uneven_partitions_are_the_table(no_client, monkeypatch):
    monkeypatch.setattr("fabinterp.rows.chunks.N_SAMPLE", 500)
    table = frame(3000)
    parts = dd.from_pandas(table, npartitions=9)
    parts = parts[(parts["size"] > 9) | (parts["size"] < 0.3)]  # some partitions of another size
    table = table[(table["size"] > 9) | (table["size"] < 0.3)]
    gone = ["price", "copies"]
    one = Numbers()
    other = Numbers()
    whole = build_chunked_data(one, table.drop(columns=gone), table.price, table.copies)
    found = build_chunked_data(other, parts.drop(columns=gone), parts.price, parts.copies)
    assert (
        same(whole.sample, found.sample)
        and not found.sample_is_complete
        and whole.total == found.total
    )
    assert whole.sample.columns == found.sample.columns and list(other.feature_names_in_) == [
        "size",
        "colour",
        "yes",
    ]
    assert (
        isinstance(found.rows, OnDask)
        and sum(len(part[2]) for part in found.rows.gather()) == found.n == whole.n
    )
    words = build_chunked_data(Words(), parts.drop(columns=["colour"]), parts["yes"])
    assert same(
        words.sample,
        build_chunked_data(Words(), table.drop(columns=["colour"]), table["yes"]).sample,
    )


def test_small_collections_are_fitted_in_memory(no_client):
    table = frame(300)
    parts = dd.from_pandas(table, npartitions=4)
    whole = build_chunked_data(Numbers(), table[["size", "yes"]], table.price)
    found = build_chunked_data(Numbers(), parts[["size", "yes"]], parts.price)
    assert (
        found.sample_is_complete
        and same(whole.sample, found.sample)
        and found.rows.single_block[0] is found.sample.Z
    )


def test_empty_partitions_and_rows_of_weight_0(no_client, monkeypatch):
    monkeypatch.setattr("fabinterp.rows.chunks.N_SAMPLE", 50)
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.repeat(["a", "b"], 200)
    w = np.repeat([0.0, 1.0, 2.0, 0.0], 100)
    cut = (X.shape[0] - 290, 0, 90, 200)
    parts = (
        da.from_array(X, chunks=(cut, (2, 1))),
        da.from_array(y, chunks=77),
        da.from_array(w, chunks=(cut,)),
    )
    found = build_chunked_data(Words(), *parts)
    assert same(found.sample, build_chunked_data(Words(), X, y, w).sample) and found.n == 200
    assert all(len(part[2]) for part in found.rows.gather())
    unknown = parts[0][parts[0][:, 0] > 0], parts[1][parts[0][:, 0] > 0]  # sizes that nobody knows
    kept = X[:, 0] > 0
    with pytest.raises(ValueError, match=r"y must have as many partitions as X \(4\), got \d+"):
        build_chunked_data(Words(), *unknown)
    unknown = parts[0][parts[0][:, 0] > 0], da.from_array(y, chunks=(cut,))[parts[0][:, 0] > 0]
    assert same(
        build_chunked_data(Words(), *unknown).sample,
        build_chunked_data(Words(), X[kept], y[kept]).sample,
    )


@pytest.mark.parametrize(
    ("collection", "said"),
    [
        (
            lambda: (dd.from_pandas(frame(9).assign(word="a"), npartitions=2), da.ones(9)),
            r"X must have numbers and known categories, got others in column 'word': "
            r"use X.categorize\(columns=\['word'\]\)",
        ),
        (
            lambda: (
                dd.from_pandas(frame(9), npartitions=2).assign(
                    colour=lambda X: X.colour.astype(str).astype("category")
                ),
                da.ones(9),
            ),
            "got others in column 'colour'",
        ),
        (
            lambda: (da.ones((9, 2), chunks=4), np.ones(9)),
            "y must be a Dask collection because X is one, got ndarray",
        ),
        (lambda: (da.ones((9, 2), chunks=4), None), "y must be given, got None"),
        (
            lambda: (da.ones((9, 2), chunks=4), da.full(9, np.nan, chunks=4)),
            r"partition \d: Input y contains NaN",
        ),
        (
            lambda: (da.full((9, 2), np.inf, chunks=4), da.ones(9, chunks=4)),
            r"partition \d: X must hold finite or missing numbers, got infinity",
        ),
        (
            lambda: (da.ones((9, 2), chunks=4), da.ones(9, chunks=4), -da.ones(9)),
            r"partition \d: sample_weight must be [14]",
        ),
        (lambda: (da.ones((1, 2)), da.ones(1)), "X must hold at least 2 rows, got 1"),
        (lambda: (da.ones(3), da.ones(3)), "X must be a table of 2 dimensions, got 1"),
        (
            lambda: (da.ones((9, 2), chunks=4), da.ones(9, chunks=4), da.zeros(9)),
            "sample_weight must be positive for at least one row",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_line(no_client, collection, said):
    with pytest.raises(ValueError, match=said) as caught:
        build_chunked_data(Numbers(), *collection())
    assert "partition" in said or "\n" not in str(caught.value)


def test_without_dask_the_error_names_the_extra(monkeypatch):
    X = da.ones((9, 2))
    y = da.ones(9)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'fabinterp\[dask\]'"):
        build_chunked_data(Numbers(), X, y)
    assert build_chunked_data(Numbers(), np.eye(3), np.arange(3)).n == 3


# ------------------------------------------------------------------ three verbs


def times(part, factor, other=0):
    return factor * part + other


def kept_and_sent(part, other):
    return part + other, (part, None, Maximum(part))


@with_cluster
def test_three_verbs_without_and_with_a_cluster(no_client, client):
    for scheduler in ("threads", "distributed"):
        with dask.config.set(scheduler=scheduler if scheduler == "threads" else client):
            numbers = OnDask([dask.delayed((i, None)) for i in range(FAN_IN + 1)])
            twice = numbers.map(times, 2)
            assert twice.gather() == [2 * i for i in range(numbers.n_blocks)]
            assert numbers.map(times, 3, twice).gather() == [5 * i for i in range(numbers.n_blocks)]
            stays, (total, nothing, most) = numbers.map_and_sum(kept_and_sent, twice)
            assert stays.gather() == [3 * i for i in range(numbers.n_blocks)]
            assert (total, nothing, most.value) == (
                sum(range(numbers.n_blocks)),
                None,
                numbers.n_blocks - 1,
            )


def kept_block(b, n):
    return block(b, n), None


@with_cluster
def test_sums_do_not_depend_on_who_was_first(client):
    parts = OnDask([dask.delayed(kept_block)(b, 100 + 50 * (b % 3)) for b in range(20)])
    found = {parts.sum(first_column).tobytes() for _ in range(3)}
    with dask.config.set(scheduler="threads"):
        found.add(
            OnDask([dask.delayed(kept_block)(b, 100 + 50 * (b % 3)) for b in range(20)])
            .sum(first_column)
            .tobytes()
        )
    assert len(found) == 1


def first_column(part):
    time.sleep(0.01 * np.random.default_rng().random())
    return part[0].sum(axis=0)


# ------------------------------------------------------------------ a cluster


@with_cluster
def test_rows_of_a_cluster_are_the_rows_in_memory(client):
    for kind, target in ((Numbers, numbers_of), (Words, words_of)):
        whole = build_chunked_data(kind(), *in_memory(target))
        found = read_dask(kind(), *on_dask(target))
        assert same(whole.sample, found.sample) and found.n == whole.n == N and found.total == N
        assert len(found.sample.y) == 65_536 and not found.sample_is_complete


class Killing:
    """Kills a worker, as a machine would be lost, when a fit begins its pass number `at`."""

    def __init__(self, client, at, monkeypatch):
        self.client = client
        self.at = at
        self.passes = 0
        self.killed = None
        calls = OnDask._calls

        def counted(*args):
            self.passes += 1
            if self.passes == at:
                self.kill()
            return calls(*args)

        monkeypatch.setattr(OnDask, "_calls", counted)

    def pids(self):
        return set(self.client.run(os.getpid).values())

    def kill(self):
        self.killed = min(self.pids())
        os.kill(self.killed, signal.SIGKILL)


def forest(kind, target):
    """A small forest, as someone may have trained it on a part of the rows."""
    X, noise = block(99, 4000)
    return kind(n_estimators=8, max_depth=4, random_state=0).fit(X, target(X, noise))


MIXTURE = dict(
    max_rules=5, search=EM(n_components=5, max_iter=4), n_init=1, n_perturbations=10, random_state=0
)
PIECEWISE = dict(max_depth=2, random_state=0)
FITS = {  # a model, its target, and in which pass a worker dies
    "rules of a forest for classes": (
        lambda: RuleMixtureClassifier(forest(RandomForestClassifier, words_of), **MIXTURE),
        words_of,
        None,
    ),
    "rules of a forest for numbers": (
        lambda: RuleMixtureRegressor(forest(RandomForestRegressor, numbers_of), **MIXTURE),
        numbers_of,
        30,
    ),
    "equations for numbers": (
        lambda: PiecewiseLinearRegressor(search=EM(max_iter=4), **PIECEWISE),
        numbers_of,
        30,
    ),
    "equations for classes": (
        lambda: PiecewiseLinearClassifier(search=EM(max_iter=1), **PIECEWISE | dict(max_depth=1)),
        words_of,
        None,
    ),
    "meta-tree for classes": (lambda: MetaTreeClassifier(max_depth=5, random_state=0), words_of, 6),
    "forest of meta-trees for numbers": (
        lambda: MetaTreeRegressor(n_trees=3, max_depth=5, random_state=0),
        numbers_of,
        None,
    ),
}


@with_cluster
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cluster_finds_the_model_of_few_rows_in_memory(client, monkeypatch):
    monkeypatch.setattr("fabinterp.rows.chunks.N_SAMPLE", FEW // 3)
    make, target, _ = FITS["meta-tree for classes"]
    one = make().fit(*in_memory(target, FEW))
    other = make().fit(*on_dask(target, FEW))
    assert_same_model(one, other, target)


@with_cluster
@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cluster_finds_the_model_in_memory(client, name, monkeypatch):
    make, target, at = FITS[name]
    one = make().fit(*in_memory(target))
    if at is not None:
        killing = Killing(client, at, monkeypatch)
    other = make().fit(*on_dask(target))
    if at is not None:
        assert (
            killing.killed is not None
            and killing.passes > at
            and killing.killed not in killing.pids()
        )
    assert_same_model(one, other, target)


def assert_same_model(one, other, target):
    """Compare two models of the same rows: bound, what they say as text, and answers to new rows."""
    bound = "fic_" if hasattr(one, "fic_") else "log_evidence_"
    assert getattr(other, bound) == pytest.approx(getattr(one, bound), rel=1e-10)
    if isinstance(one, MetaTreeRegressor):
        pairs = [(one.to_tree(k), other.to_tree(k)) for k in range(3)]
    else:
        pairs = [(one.rules_, other.rules_)]
    for a, b in pairs:
        assert str(a) == str(b)
    X, noise = block(77, 2000)
    np.testing.assert_allclose(
        *(
            m.predict(X) == target(X, noise) if target is words_of else m.predict(X)
            for m in (one, other)
        ),
        rtol=1e-9,
        atol=1e-9,
    )


# ------------------------------------------------------------------ through joblib


@with_cluster
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_restarts_on_the_backend_of_joblib(client):
    X, noise = block(0, 1000)
    y = words_of(X, noise)
    options = MIXTURE | dict(n_init=3, n_jobs=2)
    one = RuleMixtureClassifier(forest(RandomForestClassifier, words_of), **options).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        other = RuleMixtureClassifier(forest(RandomForestClassifier, words_of), **options).fit(X, y)
    assert one.fic_ == other.fic_ and one.rules_ == other.rules_


@with_cluster
def test_local_explanations_on_the_backend_of_joblib(client):
    X, noise = block(0, 400)
    model = forest(RandomForestRegressor, numbers_of)
    one = explain_local(model, X[:6], X, n_jobs=2, random_state=0)
    with joblib.parallel_config(backend="dask"):
        other = explain_local(model, X[:6], X, n_jobs=2, random_state=0)
    assert [str(e) for e in one] == [str(e) for e in other]
