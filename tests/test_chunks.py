"""Rows in chunks are the rows of the table: the same sample, labels and blocks however they are cut; files go again."""

import gc
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from fabinterp.metatree.estimators import MetaTreeRegressor
from fabinterp.rows import chunks
from fabinterp.rows.blocks import InMemory, slice_into_blocks
from fabinterp.rows.chunks import (
    ChunkedFitMixin,
    OnDisk,
    Progress,
    block_rows,
    build_chunked_data,
    code_mappings,
    draw_sample,
    estimate_distinct,
    make_hash_sample,
    read_chunks,
    rechunk,
    recode_rows,
    report_progress,
    row_hashes,
    row_keys,
    sketch_hashes,
)
from fabinterp.rules.core import Columns

seeds = st.integers(0, 10**6)


class Numbers(ChunkedFitMixin, RegressorMixin, BaseEstimator):
    """An estimator that remembers the rows that it was given."""

    def __init__(self, verbose=0):
        self.verbose = verbose

    def _check_parameters(self):
        pass

    def _fit(self, chunked):
        self.chunked_ = chunked
        self.mass_ = chunked.rows.sum(mass_of)
        return self


class Words(ClassifierMixin, Numbers):
    pass


def mass_of(part):
    return part[2].sum()


def frame(rng, n):
    X = pd.DataFrame(
        {
            "size": rng.integers(0, 40, n) / 3,
            "colour": pd.Categorical(rng.choice(["red", "blue", "green", "black"], n)),
            "yes": rng.random(n) < 0.5,
            "word": rng.choice(["a", "b's", "c", "d"], n).astype(object),
        }
    )
    X.loc[rng.random(n) < 0.2, "size"] = np.nan
    X.loc[rng.random(n) < 0.1, "colour"] = None
    X.loc[rng.random(n) < 0.1, "word"] = None
    return X


def table(seed, n=None, small=300):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, small)) if n is None else n
    X = frame(rng, n)
    y = rng.normal(size=n) if seed % 2 else rng.choice(["no", "yes", "perhaps"], n)
    return rng, X, y, rng.integers(0, 3, n) + (np.arange(n) == 0)


def cuts(rng, n):
    """Where a table of n rows is cut, wildly: empty chunks, single rows, long ones."""
    return [0, *np.sort(rng.integers(0, n + 1, int(rng.integers(0, 8)))), n]


def cut(cuts, *columns):
    for i, j in zip(cuts, cuts[1:], strict=False):
        yield tuple(c.iloc[i:j] if hasattr(c, "iloc") else c[i:j] for c in columns)


def estimator(y):
    return Numbers() if y.dtype.kind == "f" else Words()


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


def sorted_rows(rows):
    """All rows of Blocks with their weights summed, in a fixed order."""
    Z, y, w = (np.concatenate(part) for part in zip(*rows.gather(), strict=True))
    keys = np.column_stack([np.nan_to_num(Z, nan=-1.0), y])
    keys, group = np.unique(keys, axis=0, return_inverse=True)
    return keys, np.bincount(group.ravel(), w)


# ------------------------------------------------------------------ the sample


@given(seeds)
@examples(50)
def test_hashes_know_rows_and_not_how_they_are_written(seed):
    rng = np.random.default_rng(seed)
    Z = rng.integers(-1, 3, (200, 3)) * rng.choice([0.5, 1.0])
    Z[rng.random(Z.shape) < 0.2] = np.nan
    y = rng.integers(0, 2, 200)
    hashes = row_hashes(Z, y)
    other = Z.copy(order="F")
    other[other == 0] = -0.0
    other[np.isnan(other)] = np.array([0xFFF8000000000001], dtype=np.uint64).view(float)[0]
    assert np.array_equal(hashes, row_hashes(other, y.astype(float)))
    by_bytes = row_keys(Z).tolist()
    assert by_bytes == row_keys(other).tolist()
    assert len(set(by_bytes)) == len(np.unique(np.nan_to_num(Z, nan=9.0), axis=0))
    keys = [(*np.where(np.isnan(z), 9.0, z), c) for z, c in zip(Z, y, strict=True)]
    assert (
        len(set(keys))
        == len(set(hashes.tolist()))
        == len(set(zip(keys, hashes.tolist(), strict=True)))
    )


def test_hashes_of_neighbouring_rows_look_drawn_at_random():
    Z = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    u = row_hashes(Z, np.zeros(len(Z))) / 2.0**64
    assert abs(u.mean() - 0.5) < 4 / np.sqrt(12 * len(u))
    assert np.abs(np.sort(u) - np.arange(len(u)) / len(u)).max() < 2 / np.sqrt(
        len(u)
    )  # Kolmogorov's distance
    low = u < 0.1
    assert (
        abs(np.corrcoef(low, Z[:, 0])[0, 1]) < 0.015
        and abs(np.corrcoef(low, Z[:, 1])[0, 1]) < 0.015
    )


def test_the_number_of_distinct_rows_is_counted_or_estimated():
    rng = np.random.default_rng(0)
    for n in (100, 4000, 50_000, 300_000):
        Z = rng.integers(0, n, (n, 1)).astype(float)
        y = np.zeros(n)
        sketch = slice_into_blocks((Z, y, y), 7000).sum(sketch_hashes)
        found = estimate_distinct(sketch.value)
        truth = len(np.unique(Z))
        assert found == truth if truth < chunks.SKETCH_SIZE else abs(found / truth - 1) < 0.06


@given(seeds)
@examples(60)
def test_the_sample_is_the_rows_with_the_smallest_hashes_for_any_blocks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    most = int(rng.integers(1, 120))
    Z = rng.integers(0, 12, (n, 2)).astype(float)
    y = rng.integers(0, 2, n)
    w = rng.integers(1, 4, n).astype(float)
    blocks = InMemory(part for part in cut(cuts(rng, n), Z, y, w) if len(part[0]))
    with mock.patch.object(chunks, "SKETCH_SIZE", 16):  # so that the limit is a poor guess
        (_, *found), truncated = draw_sample(blocks, most)
    keys, mass = sorted_rows(InMemory([(Z, y, w)]))
    low = np.sort(np.argsort(row_hashes(keys[:, :2], keys[:, 2]))[:most])
    got, weight = sorted_rows(InMemory([found]))
    assert np.array_equal(got, keys[low]) and np.array_equal(weight, mass[low])
    assert truncated == (len(keys) > most) or len(weight) == most


def test_a_poor_estimate_is_corrected():
    rng = np.random.default_rng(0)
    rows = InMemory([(rng.normal(size=(5000, 1)), np.zeros(5000), np.ones(5000))])
    with mock.patch.object(chunks, "estimate_distinct", lambda hashes: 500_000):
        (hashes, *_), truncated = draw_sample(rows, 1000)
    assert len(hashes) == 1000 and truncated


def test_sums_of_samples_are_samples():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 9, (60, 2)).astype(float)
    y = np.zeros(60)
    w = rng.random(60)
    parts = [
        make_hash_sample(15, row_hashes(z, t), z, t, v) for z, t, v in cut([0, 20, 40, 60], Z, y, w)
    ]
    one = ((parts[0] + parts[1]) + parts[2]).value
    other = (parts[2] + (parts[0] + parts[1])).value
    assert all(map(np.allclose, one, other)) and len(one[0]) == 15


# ------------------------------------------------------------------ the same rows, however they
# come


@given(seeds, st.sampled_from([30, 120, 10**6]))
@examples(60)
def test_chunks_are_the_table(seed, most):
    rng, X, y, w = table(seed)
    X = X if seed % 3 else X[["size", "yes"]].to_numpy(dtype=float)
    with mock.patch.object(chunks, "N_SAMPLE", most):
        one = estimator(y)
        other = estimator(y)
        whole = build_chunked_data(one, X, y, w)
        found = read_chunks(other, lambda: cut(cuts(rng, len(y)), X, y, w))
    assert (
        same(whole.sample, found.sample)
        and whole.sample_is_complete == found.sample_is_complete
        and whole.total == found.total
    )
    assert (whole.sample.columns, whole.sample.framed) == (
        found.sample.columns,
        found.sample.framed,
    )
    assert one.n_features_in_ == other.n_features_in_
    assert (
        getattr(one, "feature_names_in_", [None])[0]
        == getattr(other, "feature_names_in_", [None])[0]
    )
    for a, b in zip(sorted_rows(whole.rows), sorted_rows(found.rows), strict=True):
        assert np.array_equal(a, b)
    assert all(len(part[2]) and (part[2] > 0).all() for part in found.rows.gather())
    assert len(whole.sample.y) <= most and (whole.sample_is_complete or len(whole.sample.y) == most)


@given(seeds)
@examples(40)
def test_blocks_are_the_same_bits_however_the_chunks_were_cut(seed):
    rng, X, y, w = table(seed)
    with (
        mock.patch.object(chunks, "N_SAMPLE", 20),
        mock.patch.object(chunks, "block_rows", lambda d: 64),
    ):
        one, other = (
            read_chunks(estimator(y), cut(cuts(rng, len(y)), X, y, w)).rows.gather()
            for _ in range(2)
        )
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert all(np.array_equal(u, v, equal_nan=True) for u, v in zip(a, b, strict=True))
    assert all(len(part[2]) == 64 for part in one[:-1])


@given(seeds)
@examples(40)
def test_reslicing_keeps_rows_and_order(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(int(rng.integers(1, 300)), 2))
    with mock.patch.object(chunks, "block_rows", lambda d: 50):
        found = list(
            rechunk(part for part in cut(cuts(rng, len(Z)), Z, Z[:, 0], Z[:, 1]) if len(part[0]))
        )
    assert np.array_equal(np.concatenate([part[0] for part in found]), Z)
    assert [len(part[0]) for part in found[:-1]] == [50] * (len(found) - 1) and len(
        found[-1][0]
    ) <= 50


def test_block_rows_bound_the_memory():
    assert block_rows(1) == block_rows(128) == 65_536
    assert 8 * 1000 * block_rows(1000) <= 2**26 and block_rows(10**6) == 1024


def test_large_tables_in_memory_go_in_slices():
    X = np.random.default_rng(0).normal(size=(70_000, 2))
    found = build_chunked_data(Numbers(), X, X[:, 0])
    assert [len(part[2]) for part in found.rows.gather()] == [65_536, 4464]
    assert (
        len(found.sample.y) == 65_536
        and not found.sample_is_complete
        and found.n == found.total == 70_000
    )
    again = read_chunks(Numbers(), (X, X[:, 0]))
    assert same(again.sample, found.sample) and isinstance(again.rows, OnDisk)


@given(seeds)
@examples(30)
def test_recoding_says_the_same_labels(seed):
    rng = np.random.default_rng(seed)
    labels = ["a", "b", "c", "d", "e"]
    before = Columns(("u", "v", "x"), (labels, labels[:3], None))
    after = Columns(("u", "v", "x"), (rng.permutation(labels[:4]), labels[:3], None))
    Z = rng.integers(0, 3, (20, 3)).astype(float)
    Z[:, 0] = rng.integers(0, 5, 20)
    Z[rng.random(20) < 0.3, 0] = np.nan
    new = recode_rows(Z, code_mappings(before, after))
    assert np.array_equal(new[:, 1:], Z[:, 1:])
    for old, code in zip(Z[:, 0], new[:, 0], strict=True):
        assert (
            np.isnan(code)
            if np.isnan(old) or old == 4
            else after.categories[0][int(code)] == labels[int(old)]
        )
    assert recode_rows(Z, code_mappings(before, before)) is Z


# ------------------------------------------------------------------ sources


def test_sources_of_all_kinds_give_the_same_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = rng.normal(size=500)
    w = rng.random(500)
    whole = build_chunked_data(Numbers(), X, y, w).sample
    for name, values in (("X", X), ("y", y), ("w", w)):
        np.save(tmp_path / f"{name}.npy", values)
    maps = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xyw")
    pieces = [
        (X[:100], y[:100], w[:100]),
        (X[100:100], y[100:100], w[100:100]),
        [X[100:].tolist(), y[100:], w[100:]],
    ]
    for source in (maps, (X, y, w), pieces, lambda: pieces, iter(pieces), lambda: iter(pieces)):
        assert same(read_chunks(Numbers(), source).sample, whole)
    assert same(read_chunks(Numbers(), (X, y)).sample, build_chunked_data(Numbers(), X, y).sample)


def test_parquet_files_and_folders(tmp_path):
    pytest.importorskip("pyarrow")
    rng, X, y, w = table(1, n=400)
    whole = build_chunked_data(Numbers(), X, y, w).sample
    full = X.assign(price=y, copies=w)
    full.to_parquet(tmp_path / "one.parquet", row_group_size=90)
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(4):
        full.iloc[i * 100 : (i + 1) * 100].to_parquet(folder / f"part{i}.parquet")
    for path in (tmp_path / "one.parquet", folder, str(folder)):
        found = read_chunks(Numbers(), path, target="price", sample_weight="copies")
        assert same(found.sample, whole)
    with pytest.raises(
        ValueError, match=r"target .*'size', 'colour', 'yes', 'word', 'price' .*got None"
    ):
        read_chunks(Numbers(), folder)
    with pytest.raises(ValueError, match="got 'cost'"):
        read_chunks(Numbers(), folder, target="cost")
    with pytest.raises(ValueError, match="does not exist"):
        read_chunks(Numbers(), tmp_path / "none", target="price")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"fabinterp\[dask\]"):
        read_chunks(Numbers(), tmp_path, target="y")


def test_text_may_differ_from_chunk_to_chunk():
    X = pd.DataFrame({"word": ["b", None, "a", "c", None, "a"], "n": range(6)})
    y = np.array([1.0, 2, 3, 4, 5, 6])
    whole = build_chunked_data(Numbers(), X, y).sample
    for rows in ([0, 2, 4, 6], [0, 1, 2, 6], [0, 5, 6]):
        assert same(read_chunks(Numbers(), cut(rows, X, y)).sample, whole)
    blank = X.assign(word=[None, None, "a", "c", None, "a"])
    assert same(
        read_chunks(Numbers(), cut([0, 2, 6], blank, y)).sample,
        build_chunked_data(Numbers(), blank, y).sample,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda X: X.rename(columns={"size": "length"}),
            "unknown columns 'length' and no columns 'size'",
        ),
        (lambda X: X[X.columns[::-1]], "another order"),
        (
            lambda X: X.assign(colour=X.colour.cat.add_categories("pink")),
            "same categories in column 'colour'",
        ),
        (
            lambda X: X.assign(colour=1.0),
            "one kind of values in column 'colour', got categories in earlier chunks and numbers in this one",
        ),
        (
            lambda X: X.assign(size="a"),
            "one kind of values in column 'size', got numbers in earlier chunks and labels in this one",
        ),
        (
            lambda X: X.to_numpy()[:, :3],
            "array of strings|data frame in all chunks|could not convert",
        ),
        (lambda X: X.assign(size=np.inf), "infinity"),
    ],
)
def test_a_chunk_unlike_the_others_is_named(wrong, said):
    _, X, y, _ = table(1, n=90)
    with pytest.raises(ValueError, match=rf"chunk 2: .*({said})") as caught:
        read_chunks(Numbers(), [(X[:40], y[:40]), (wrong(X[40:]), y[40:])])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        ((np.ones((3, 2)), None), "y must be given, got None"),
        ((np.ones((3, 2)), [1.0, 2.0]), r"y must have one value per row of X \(3\), got 2"),
        ((np.ones((3, 2)), [1.0, 2.0, 3.0], [1.0, 1.0]), "sample_weight must have one value"),
        (
            (np.ones((3, 2)), [1.0, 2.0, 3.0], [1.0, 1.0, -1.0]),
            "sample_weight must be 3 numbers, all at least 0",
        ),
        ((np.ones((3, 2)), [1.0, np.nan, 3.0]), "NaN"),
        ((np.ones((3, 3)), [1.0, 2.0, 3.0]), "unknown columns 'x2'"),
        ((np.ones(3), [1.0, 2.0, 3.0]), "2D array"),
    ],
)
def test_a_wrong_chunk_is_named(chunk, said):
    good = np.ones((3, 2)), np.arange(3.0)
    with pytest.raises(ValueError, match=rf"(?s)chunk 3: .*{said}"):
        read_chunks(Numbers(), [good, good, chunk])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (3, "source must be a function .* got int"),
        (pd.DataFrame({"a": [1.0]}), "source must be a function .* got DataFrame"),
        ([], "source must yield at least 2 rows with positive weight, got 0"),
        (
            [(np.ones((1, 2)), np.ones(1))],
            "source must yield at least 2 rows with positive weight, got 1",
        ),
        (
            [np.ones((3, 2))],
            r"chunk 1 must be \(X, y\) or \(X, y, weights\), got ndarray",
        ),
        ([(np.ones((3, 2)),)], "chunk 1 must be"),
        (
            [(np.ones((3, 2)), np.ones(3), np.zeros(3))],
            "sample_weight must be positive for at least one row",
        ),
    ],
)
def test_what_is_no_source_is_refused(source, said):
    with pytest.raises(ValueError, match=said) as caught:
        read_chunks(Numbers(), source)
    assert "\n" not in str(caught.value)


def test_classes_that_come_late_and_kinds_that_differ():
    X = np.arange(8.0)[:, None]
    y = np.array(["b", "b", "b", "b", "a", "long label", "a", "b"])
    found = read_chunks(Words(), cut([0, 4, 5, 8], X, y)).sample
    assert same(found, build_chunked_data(Words(), X, y).sample) and list(found.target) == list(y)
    with pytest.raises(
        ValueError,
        match="chunk 2: y must contain either text labels or numeric labels, got both, such as 'b' and 1, 2",
    ):
        read_chunks(Words(), [(X[:2], y[:2]), (X[2:5], [1, 2, 1])])
    with pytest.raises(ValueError, match="chunk 1: Unknown label type: continuous"):
        read_chunks(Words(), [(X, X[:, 0] + 0.5)])


# ------------------------------------------------------------------ on disk


class Heavy:
    """A part that counts how many of its kind are in memory."""

    alive = most = 0

    def __init__(self, value):
        self.value = value
        self.__setstate__(self.__dict__)

    def __setstate__(self, state):
        self.__dict__.update(state)
        Heavy.alive += 1
        Heavy.most = max(Heavy.most, Heavy.alive)

    def __del__(self):
        Heavy.alive -= 1


def doubled(part, other=None):
    return Heavy(2 * part.value + (other.value if other else 0))


def doubled_and_value(part, factor):
    return Heavy(2 * part.value), factor * part.value


def value_of(part):
    return part.value


def test_a_pass_holds_one_block_in_memory():
    rows = OnDisk(Heavy(i) for i in range(20))
    Heavy.most = Heavy.alive = 0
    twice = rows.map(doubled)
    again, total = rows.map_and_sum(doubled_and_value, 3)
    assert total == 3 * 190 and again.sum(value_of) == 380
    assert Heavy.most <= 4, "the part, what becomes of it, and those of the block before"
    assert rows.map(doubled, twice).sum(value_of) == 4 * 190
    assert [part.value for part in twice.gather()] == list(range(0, 40, 2))


def test_files_go_with_the_object_and_after_an_error(tmp_path):
    rows = OnDisk(range(5), tmp_path)
    more = rows.map(str)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ZeroDivisionError):
        rows.map(one_over)
    with pytest.raises(ZeroDivisionError):
        rows.map_and_sum(one_over)
    assert len(list(tmp_path.iterdir())) == 2
    del rows
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1 and more.gather() == list("01234")
    del more
    gc.collect()
    assert not list(tmp_path.iterdir())


def one_over(part):
    return 1 / (part - 3), 1


class Failing(Numbers):
    def _fit(self, chunked):
        chunked.rows.map(one_over)


def test_fit_chunks_leaves_nothing_behind(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2))
    with mock.patch.object(chunks, "N_SAMPLE", 100):
        model = Numbers().fit_chunks((X, X[:, 0]), scratch=tmp_path)
        assert (
            model.mass_ == 300
            and not model.chunked_.sample_is_complete
            and not list(tmp_path.iterdir())
        )
        with pytest.raises(TypeError):
            Failing().fit_chunks((X, X[:, 0]), scratch=tmp_path)
        with pytest.raises(ValueError, match="chunk 2") as caught:
            Numbers().fit_chunks([(X, X[:, 0]), (X, None)], scratch=tmp_path)
    del caught
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_y_of_chunks_keeps_its_name():
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = pd.Series(X[:, 0], name="rent")
    model = MetaTreeRegressor(max_depth=1, random_state=0)
    streamed = model.fit_chunks([(X[:60], y[:60]), (X[60:], y[60:])])
    assert streamed.rules_.target == "rent"


def test_fit_takes_arrays_and_frames():
    _, X, y, w = table(2, n=200)
    one = Words().fit(X, y, w)
    assert (
        one.chunked_.sample_is_complete
        and one.mass_ == w.sum()
        and one.columns_ == one.chunked_.sample.columns
    )
    assert same(
        one.chunked_.sample, Words().fit_chunks(lambda: cut([0, 60, 200], X, y, w)).chunked_.sample
    )


def test_long_passes_say_where_they_are(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 100.0, 0.9))
    monkeypatch.setattr(chunks.time, "monotonic", lambda: next(clock))
    assert list(report_progress("abcdefg", "block", 7)) == list("abcdefg")
    told = "block 3 of 7, 3 s, about 4 s left of this stage\n"
    told += "block 6 of 7, 5 s, about 1 s left of this stage\n"
    assert capsys.readouterr().out == told
    assert list(report_progress("abcd", "chunk")) == list("abcd")
    assert capsys.readouterr().out == "chunk 3, 3 s\n"
    assert list(report_progress("abcdefg", "block", 7, 0)) == list("abcdefg")
    assert capsys.readouterr().out == ""


def test_progress_tells_the_time_left_in_readable_units(monkeypatch, capsys):
    clock = iter([0.0, 300.0, 301.0, 7500.0])
    monkeypatch.setattr(chunks.time, "monotonic", lambda: next(clock))
    progress = Progress("tree", 100)
    progress.step("9 leaves")
    progress.step()  # a second later
    progress.step()
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "tree 1 of 100, 9 leaves, 5 min, about 8.2 h left of this stage"
    assert told[1:] == ["tree 3 of 100, 2.1 h, about 67.4 h left of this stage"]


def test_time_left_counts_rounds_of_threads_and_a_guess_that_would_be_none_is_left_out(
    monkeypatch, capsys
):
    clock = iter([0.0, 10.0, 13.0, 20.0, 0.0, 3.0])
    monkeypatch.setattr(chunks.time, "monotonic", lambda: next(clock))
    watched = Progress("fold", 5).watch(abs, 2)
    for number in (-1, -2, -3):
        assert watched(number) == -number
    Progress("step", after="the choice of a size").step()
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "fold 1 of 5, 10 s, about 20 s left of this stage",  # of three rounds one is over
        "fold 2 of 5, 13 s, about 26 s left of this stage",
        "fold 3 of 5, 20 s, about 10 s left of this stage",
        "step 1, 3 s, then the choice of a size",
    ]


def test_files_lie_in_the_folder_of_tempfile_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = OnDisk(range(2))
    assert Path(rows.folder).parent == tmp_path and rows.gather() == [0, 1]
    assert Path(rows.folder).name.startswith("fabinterp-")
