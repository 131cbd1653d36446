"""The box search against enumeration: intervals, gains, and an objective that never rises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples

from fabinterp.search.box_lists import (
    ListPath,
    climb_path,
    drop_least_useful,
    insert_box,
    list_from_boxes,
    only_default,
    perturb_list,
    prune_boxes,
    search_list_path,
    sweep,
    values_without,
)
from fabinterp.search.boxes import (
    BinnedRows,
    BoxList,
    best_constant,
    best_intervals,
    constant_losses,
    count_bounds,
    first_box,
    full_box,
    histogram,
    improve_box,
    objective,
    refit_answers,
    row_gains,
    rows_in_box,
)

seeds = st.integers(0, 2**32 - 1)
few = examples(25)


def problem(seed, **changes):
    """Random rows with gaps, one-cell features, numbers or classes as target."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 50)
    d = rng.integers(1, 5)
    n_cells = rng.integers(1, 7, d)
    codes = rng.integers(0, n_cells[:, None], (d, n))
    codes = np.where(rng.random((d, n)) < rng.choice([0.0, 0.3]), n_cells[:, None], codes)
    target = rng.normal(size=n) if rng.random() < 0.5 else rng.dirichlet(np.ones(3), n)
    price = rng.choice([0.0, 0.3]) if rng.random() < 0.7 else rng.random(d)
    prices = dict(price=price, overlap_price=rng.choice([0.0, 0.1]))
    limits = dict(max_conditions=rng.choice([None, 1, 2]), min_support=rng.choice([0.0, 3.0]))
    weight = rng.integers(1, 4, n).astype(float)
    return rng, BinnedRows(codes, n_cells, target, weight, **(prices | limits | changes))


def random_boxes(rng, rows, n_boxes=None):
    n_boxes = rng.integers(1, 5) if n_boxes is None else n_boxes
    boxes = []
    for _ in range(n_boxes):
        box = full_box(rows)
        low, high, gap = box
        most = rows.max_conditions or len(low)
        for j in rng.permutation(len(low))[: rng.integers(1, most + 1)]:
            low[j] = rng.integers(rows.n_cells[j])
            high[j] = rng.integers(low[j], rows.n_cells[j])
            gap[j] = rng.random() < 0.5
        boxes.append(box)
    return boxes


def random_list(rng, rows, n_boxes=None):
    boxes = only_default(rows)
    for box in random_boxes(rng, rows, n_boxes):
        boxes = insert_box(rows, boxes, rng.integers(len(boxes) + 1), box, boxes.answers[-1])
    return refit_answers(rows, boxes)


def sides(boxes):
    return iter(boxes)


def member(rows, box, n):
    low, high, gap = box
    return all(
        gap[j] if c == rows.n_cells[j] else low[j] <= c <= high[j]
        for j, c in enumerate(rows.codes[:, n])
    )


def assert_held(rows, boxes):
    for held, box in zip(boxes.covered, sides(boxes), strict=True):
        assert held.tolist() == [member(rows, box, n) for n in range(len(held))]


def every_interval(known, missing, has_missing, price):
    """The best gain over all intervals, with and without the missing cell, and over nothing."""
    m = len(known)
    worth = [-price, missing - price if has_missing else -np.inf]
    for s in range(m):
        for e in range(s, m):
            for gap in (True, False):
                bounds = (s > 0) + (e < m - 1)
                bounds = 1 if bounds == 0 and has_missing and not gap else bounds
                worth.append(known[s : e + 1].sum() + gap * missing - price * bounds)
    return max(worth)


@examples(150)
@given(seeds, st.booleans(), st.sampled_from([0.0, 0.5, 2.0]))
def test_best_intervals_equal_enumeration(seed, ties, price):
    rng = np.random.default_rng(seed)
    d = rng.integers(1, 6)
    n_cells = rng.integers(1, 9, d)
    has_missing = rng.random(d) < 0.5
    sums = rng.integers(-2, 3, (d, 9)).astype(float) if ties else rng.normal(size=(d, 9))
    sums[rng.random(sums.shape) < 0.3] = 0.0
    sums[np.arange(9) > n_cells[:, None]] = 0.0
    sums[~has_missing, n_cells[~has_missing]] = 0.0
    gain, low, high, gap = best_intervals(sums, n_cells, has_missing, price)
    for j, m in enumerate(n_cells):
        assert np.isclose(gain[j], every_interval(sums[j, :m], sums[j, m], has_missing[j], price))
        bounds = int(low[j] > 0) + int(high[j] < m - 1) if low[j] <= high[j] else 1
        bounds = 1 if bounds == 0 and has_missing[j] and not gap[j] else bounds
        said = sums[j, low[j] : high[j] + 1].sum() + gap[j] * sums[j, m] - price * bounds
        assert said >= gain[j] - 1e-12  # what is returned is worth what is claimed


@given(seeds)
@few
def test_order_of_features_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    n_cells = rng.integers(1, 9, 6)
    has_missing = rng.random(6) < 0.5
    sums = rng.normal(size=(6, 9)) * (np.arange(9) <= n_cells[:, None])
    order = rng.permutation(6)
    plain = best_intervals(sums, n_cells, has_missing, 0.3)
    moved = best_intervals(sums[order], n_cells[order], has_missing[order], 0.3)
    for one, other in zip(plain, moved, strict=True):
        assert np.array_equal(one[order], other)


@given(seeds, st.sampled_from([3, 40, 1200]), st.sampled_from([1, 5, 12]))
@few
def test_histogram_is_a_sum_per_cell(seed, n, d):
    rng = np.random.default_rng(seed)
    n_cells = rng.integers(1, 7, d)
    rows = BinnedRows(
        rng.integers(0, n_cells[:, None] + 1, (d, n)), n_cells, np.zeros(n), np.ones(n)
    )
    gain = rng.normal(size=n)
    held = rng.random(n) < 0.9
    features = rng.permutation(d)[: rng.integers(1, d + 1)]
    found = histogram(rows, features, held, gain)
    for i, j in enumerate(features):
        for c in range(n_cells[j] + 1):
            assert np.isclose(found[i, c], gain[held & (rows.codes[j] == c)].sum())


@given(seeds)
@few
def test_gains_are_differences_of_the_objective(seed):
    rng, rows = problem(seed, price=0.0)
    boxes = random_list(rng, rows)
    n = len(rows.weight)
    for k, box in enumerate(sides(boxes)):
        some = rng.random(n) < 0.5
        fall = objective(rows, boxes.replace_box(k, box, np.zeros(n, bool))) - objective(
            rows, boxes.replace_box(k, box, some)
        )
        assert np.isclose(fall, row_gains(rows, boxes, k)[some].sum())


@given(seeds)
@few
def test_objective_row_by_row(seed):
    rng, rows = problem(seed)
    boxes = random_list(rng, rows)
    total = sum((count_bounds(rows, box) * rows.price).sum() for box in sides(boxes))
    for n, w in enumerate(rows.weight):
        inside = [k for k, box in enumerate(sides(boxes)) if member(rows, box, n)]
        answer = boxes.answers[min(inside, default=len(boxes))]
        total += w * (
            (rows.target[n] - answer) ** 2 if rows.target.ndim == 1 else 1 - rows.target[n, answer]
        )
        total += rows.overlap_price * w * max(len(inside) - 1, 0)
    assert np.isclose(objective(rows, boxes), total)
    assert_held(rows, boxes)


@given(seeds)
@few
def test_best_answers_are_optimal(seed):
    rng, rows = problem(seed)
    boxes = random_list(rng, rows)
    for k in range(len(boxes) + 1):
        for other in range(3) if rows.target.ndim == 2 else rng.normal(size=5):
            answers = (*boxes.answers[:k], other, *boxes.answers[k + 1 :])
            assert boxes.value <= objective(rows, replace(boxes, answers=answers)) + 1e-9


@given(seeds)
@few
def test_climb_never_loses_and_keeps_its_limits(seed):
    rng, rows = problem(seed)
    gain = rng.normal(size=len(rows.weight))
    for box in random_boxes(rng, rows):
        held = rows_in_box(rows, box, range(len(rows.n_cells)))
        new, kept = improve_box(rows, box, held, gain)
        worth = [
            gain[h].sum() - (rows.price * count_bounds(rows, b)).sum()
            for b, h in ((box, held), (new, kept))
        ]
        assert worth[1] >= worth[0] - 1e-9
        assert kept.tolist() == [member(rows, new, n) for n in range(len(gain))]
        assert (
            rows.max_conditions is None
            or (count_bounds(rows, new) > 0).sum() <= rows.max_conditions
        )


@given(seeds)
@few
def test_a_settled_box_has_no_better_interval(seed):
    rng, rows = problem(seed, max_conditions=None)
    gain = rng.normal(size=len(rows.weight))
    box, held = improve_box(rows, full_box(rows), np.ones(len(gain), bool), gain, max_steps=200)
    now = gain[held].sum() - (rows.price * count_bounds(rows, box)).sum()
    d = len(rows.n_cells)
    for j in range(d):
        others = rows_in_box(rows, box, [i for i in range(d) if i != j])
        sums = histogram(rows, np.array([j]), others, gain)[0]
        m = rows.n_cells[j]
        paid = np.delete(count_bounds(rows, box) * rows.prices, j).sum()
        found = every_interval(sums[:m], sums[m], rows.has_missing[j], rows.prices[j])
        assert found - paid <= now + 1e-6


@given(seeds)
@few
def test_sweep_prune_and_search_never_raise_the_objective(seed):
    rng, rows = problem(seed, min_support=0.0)
    boxes = random_list(rng, rows)
    assert prune_boxes(rows, boxes).value <= boxes.value * (1 + 1e-12)  # sums in another order
    swept = sweep(rows, boxes)
    assert swept.value <= boxes.value * (1 + 1e-12)
    assert np.isclose(swept.value, objective(rows, swept))
    assert_held(rows, swept)
    path = search_list_path(
        rows, [boxes], np.random.default_rng(0), len(boxes) + 1, n_perturbations=4
    )
    assert path[-1].value <= min(swept.value, only_default(rows).value) + 1e-9


@given(seeds)
@few
def test_a_path_holds_one_list_of_a_size_and_larger_ones_cost_less(seed):
    rng, rows = problem(seed)
    starts = [list_from_boxes(rows, random_boxes(rng, rows), 5)]
    most = None if rng.random() < 0.5 else int(rng.integers(1, 5))
    path = search_list_path(rows, starts, rng, 5, n_perturbations=4, max_conditions_total=most)
    sizes = [len(boxes) for boxes in path]
    assert sizes[0] == 0 and sizes == sorted(set(sizes)) and sizes[-1] < 5
    values = [boxes.value for boxes in path]
    assert values == sorted(values, reverse=True) and len(set(values)) == len(values)
    for boxes in path:
        assert_held(rows, boxes)
        assert np.isclose(boxes.value, objective(rows, boxes))
        conditions = sum((count_bounds(rows, box) > 0).sum() for box in boxes)
        assert most is None or conditions <= most


@given(seeds)
@few
def test_up_and_down_ends_where_nothing_moves(seed):
    rng, rows = problem(seed)
    path = ListPath(rows, 4)
    climb_path(rows, path, max_rounds=50)
    before = {size: path.value(size) for size in path.best}
    assert not any(path.untried.values())
    for directions in path.untried.values():
        directions.update(path.best)
    climb_path(rows, path, max_rounds=1)
    assert {size: path.value(size) for size in path.best} == before


@given(seeds)
@few
def test_values_without_each_box_are_those_of_the_lists_without_it(seed):
    rng, rows = problem(seed)
    boxes = random_list(rng, rows)
    slow = [refit_answers(rows, boxes.without(k)).value for k in range(len(boxes))]
    assert np.allclose(values_without(rows, boxes), slow)


@given(seeds)
@few
def test_answers_by_sums_are_the_best_constants(seed):
    rng, rows = problem(seed)
    boxes = random_list(rng, rows)
    owner = first_box(boxes.covered)
    assert np.isclose(boxes.value, objective(rows, boxes))
    for k in range(len(boxes) + 1):
        if (owner == k).any():
            best = constant_losses(rows, best_constant(rows, owner == k))[owner == k].sum()
            own = constant_losses(rows, boxes.answers[k])[owner == k].sum()
            assert np.isclose(own, best)


def test_rows_that_count_for_nothing_support_no_rule():
    codes = np.repeat([[0, 1]], 10, axis=0).T.reshape(1, -1)
    target = np.eye(2)[codes[0]]
    counts = (codes[0] == 0).astype(float)  # the ones are invented
    rows = BinnedRows(codes, np.array([2]), target, np.ones(20), min_support=5.0)
    ones = full_box(rows)
    ones[0, 0] = 1
    boxes = refit_answers(rows, insert_box(rows, only_default(rows), 0, ones, 1))
    assert len(prune_boxes(rows, boxes)) == 1
    assert len(prune_boxes(replace(rows, counts=counts), boxes)) == 0


@given(seeds)
@few
def test_perturbations_keep_the_budget_and_the_table_of_members(seed):
    rng, rows = problem(seed)
    boxes = list_from_boxes(rows, random_boxes(rng, rows), 4)
    for _ in range(6):
        boxes = refit_answers(rows, perturb_list(rows, boxes, rng, 4))
        assert len(boxes) <= 3 and len(boxes.answers) == len(boxes) + 1
        assert_held(rows, boxes)


@given(seeds, st.integers(1, 4))
@few
def test_lists_keep_their_limits(seed, max_rules):
    rng, rows = problem(seed)
    start = list_from_boxes(rows, random_boxes(rng, rows, 6), max_rules)
    path = search_list_path(rows, [start], rng, max_rules, n_perturbations=4)
    for boxes in (start, *path):
        assert len(boxes) + 1 <= max_rules
        for box in sides(boxes):
            assert (
                rows.max_conditions is None
                or (count_bounds(rows, box) > 0).sum() <= rows.max_conditions
            )


@given(seeds)
@few
def test_without_one_drops_the_box_missed_least(seed):
    rng, rows = problem(seed)
    boxes = random_list(rng, rows)
    values = [
        refit_answers(rows, boxes.take(np.delete(np.arange(len(boxes)), k))).value
        for k in range(len(boxes))
    ]
    assert np.isclose(drop_least_useful(rows, boxes).value, min(values))


@given(seeds)
@few
def test_weight_two_is_a_row_twice(seed):
    rng, rows = problem(seed)
    twice = np.repeat(np.arange(len(rows.weight)), rows.weight.astype(int))
    long = replace(
        rows, codes=rows.codes[:, twice], target=rows.target[twice], weight=np.ones(len(twice))
    )
    boxes = random_list(rng, rows)
    same = refit_answers(long, replace(boxes, covered=boxes.covered[:, twice]))
    assert np.isclose(same.value, boxes.value)
    boxes = replace(same, covered=boxes.covered)
    for k in range(len(boxes)):
        summed = np.bincount(twice, row_gains(long, same, k), len(rows.weight))
        assert np.allclose(summed, row_gains(rows, boxes, k))


@given(seeds)
@examples(8)
def test_a_seed_decides_everything(seed):
    rng, rows = problem(seed)
    starts = [list_from_boxes(rows, random_boxes(rng, rows), 4)]
    one, two = (
        search_list_path(rows, starts, np.random.default_rng(seed), 4, n_perturbations=5)
        for _ in range(2)
    )
    for a, b in zip(one, two, strict=True):
        assert a.value == b.value and a.answers == b.answers
        assert np.array_equal(a.bounds, b.bounds) and np.array_equal(a.covered, b.covered)


def test_expected_error_is_half_a_squared_distance():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    rows = BinnedRows(np.zeros((1, 50), int), np.array([1]), p, np.ones(50))
    for c in range(3):
        half = 0.5 * ((np.eye(3)[c] - p) ** 2).sum(axis=1)
        assert np.allclose(half, constant_losses(rows, c) - 0.5 * (1 - (p**2).sum(axis=1)))


def test_the_search_solves_exclusive_or():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10, (4, 500))
    y = ((codes[0] > 4) ^ (codes[1] > 4)).astype(int)
    rows = BinnedRows(
        codes,
        np.full(4, 10),
        np.eye(2)[y],
        np.ones(500),
        price=1.0,
        overlap_price=0.1,
        max_conditions=2,
    )
    found = search_list_path(rows, [], rng, 3, n_perturbations=60)[-1]
    wrong = found.value - 4.0 - 0.1 * (found.covered.sum(axis=0) > 1).sum()
    assert abs(wrong) < 1e-9  # two corners of two bounds each, nothing wrong


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(("n", "cells"), [(1, [1]), (1, [3]), (5, [1]), (5, [4])])
def test_tiny_inputs(n, cells, classes):
    target = np.eye(2)[np.arange(n) % 2] if classes else np.arange(float(n))
    weight = np.zeros(n)
    weight[0] = 2.0  # all weight on one row
    for w in (weight, np.ones(n)):
        rows = BinnedRows(np.arange(n)[None, :] % cells[0], np.array(cells), target, w, price=0.01)
        found = search_list_path(rows, [], np.random.default_rng(0), 3, n_perturbations=5)[-1]
        assert np.isfinite(found.value) and found.value <= only_default(rows).value
        assert len(found.answers) == len(found) + 1


def test_no_weight_and_no_features():
    rows = BinnedRows(np.zeros((1, 2), int), np.array([1]), np.array([3.0, 5.0]), np.zeros(2))
    assert best_constant(rows, np.ones(2, bool)) == 0.0
    none = BinnedRows(np.zeros((0, 3), int), np.zeros(0, int), np.arange(3.0), np.ones(3))
    found = search_list_path(none, [], np.random.default_rng(0), 5)[-1]
    assert (
        isinstance(found, BoxList)
        and len(found) == 0
        and found.answers == (1.0,)
        and found.value == 2.0
    )
