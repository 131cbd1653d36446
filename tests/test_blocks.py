"""Sums over blocks are sums over rows, however the rows are cut; what stays with a block meets its rows again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabinterp.rows.blocks import (
    InMemory,
    Maximum,
    Minimum,
    add,
    in_memory,
    slice_into_blocks,
)

cuts = st.lists(st.integers(0, 60), max_size=8).map(sorted)
seeds = st.integers(0, 2**32 - 1)


def table_of(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(-1000, 1000, (60, 3)).astype(float), rng.integers(0, 5, 60).astype(float)


def cut_at(part, cuts):
    return InMemory(zip(*(np.split(column, cuts) for column in part), strict=True))


def facts(part, factor):
    """A bit of everything: integers in floating point add without rounding."""
    X, w = part
    low = X.min(axis=0, initial=np.inf)
    high = X.max(axis=0, initial=-np.inf)
    return (
        (X * w[:, None]).T @ X * factor,
        (float(w.sum()), None, len(w)),
        Minimum(low),
        Maximum(high),
    )


@given(seeds, cuts)
def test_the_sum_does_not_depend_on_the_cuts(seed, cuts):
    part = table_of(seed)
    gram, (weight, nothing, n), least, most = cut_at(part, cuts).sum(facts, 2.0)
    whole = facts(part, 2.0)
    assert np.array_equal(gram, whole[0]) and (weight, nothing, n) == whole[1]
    assert np.array_equal(least.value, whole[2].value) and np.array_equal(
        most.value, whole[3].value
    )


@given(seeds, cuts)
def test_what_stays_meets_its_rows(seed, cuts):
    part = table_of(seed)
    rows = cut_at(part, cuts)
    doubled, total = rows.map_and_sum(lambda part: (2 * part[0], float(part[1].sum())))
    assert total == part[1].sum()
    assert np.array_equal(np.concatenate(doubled.gather()), 2 * part[0])
    halves = doubled.map(lambda two, part, factor: two / factor - part[0], rows, 2.0)
    assert not np.concatenate(halves.gather()).any()
    assert rows.sum(lambda part, two: float((two - 2 * part[0]).any()), doubled) == 0


@pytest.mark.parametrize(
    "a, b, total",
    [
        (None, None, None),
        (None, 3, 3),
        (3, None, 3),
        ((1, None), (2, 5), (3, 5)),
        (((1,), 2), ((3,), 4), ((4,), 6)),
    ],
)
def test_what_adds(a, b, total):
    assert add(a, b) == total


def test_tuples_of_unlike_length_do_not_add():
    with pytest.raises(ValueError, match="zip"):
        add((1, 2), (1, 2, 3))


@pytest.mark.parametrize(
    "n, size, n_blocks", [(0, 4, 1), (1, 4, 1), (4, 4, 1), (5, 4, 2), (12, 4, 3)]
)
def test_slices_hold_every_row_once_and_copy_nothing(n, size, n_blocks):
    X = np.arange(2.0 * n).reshape(n, 2)
    w = np.arange(float(n))
    rows = slice_into_blocks((X, w), size)
    assert len(rows.parts) == n_blocks
    assert np.array_equal(np.concatenate([part[0] for part in rows.gather()]), X)
    assert all(np.shares_memory(part[0], X) for part in rows.parts if len(part[0]))


def test_only_one_block_for_whoever_needs_all_rows():
    assert in_memory("all").single_block == "all"
    with pytest.raises(ValueError, match="rows must be in memory in one block.*got 2 blocks"):
        in_memory(1, 2).single_block  # noqa: B018


def test_a_view_is_what_is_mapped_and_made_anew_in_each_pass():
    rows = slice_into_blocks(table_of(1), 25)
    made = []

    def weighted(part, factor):
        made.append(len(part[1]))
        return part[0] * part[1][:, None], factor * part[1]

    view = rows.view(weighted, 2.0)
    assert made == []
    total = view.sum(lambda part: part[0].sum())
    assert made == [25, 25, 10] and total == view.sum(lambda part: part[0].sum())
    assert len(made) == 6
    kept = view.map(lambda part: part[1].sum())
    assert kept.gather() == [part[1].sum() for part in rows.map(weighted, 2.0).gather()]
    assert view.sum(lambda part, own: own, kept) == 2 * table_of(1)[1].sum()


def test_the_first_error_comes_through():
    with pytest.raises(ZeroDivisionError):
        in_memory(1, 0).sum(lambda part: 1 / part)
