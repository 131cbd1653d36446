"""One pass over the nodes says what listing every pruning would say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples

from fabinterp.metatree.conjugate import (
    BetaBernoulli,
    DirichletCategorical,
    NormalGamma,
    sufficient_statistics,
)
from fabinterp.metatree.prunings import (
    average_over_prunings,
    build_topology,
    charge_for_cuts,
    enumerate_prunings,
    log_prob,
    map_pruning,
    path_to,
    perfect,
    prior_over_prunings,
    pruning_leaves,
    sample_pruning,
    stopping_weights,
    sum_over_subtrees,
    update_posterior,
)
from fabinterp.metatree.sequential import sequential_step, update_posterior_at


def problem(arity, depth, seed, n=40, family=None):
    """A perfect tree, its rows' leaves, their y, and a prior that differs from node to node."""
    rng = np.random.default_rng(seed)
    tree = perfect(arity, depth)
    family = family or BetaBernoulli(rng.uniform(0.2, 2), rng.uniform(0.2, 2))
    at = tree.starts[-2] + rng.integers(0, arity**depth, n)
    y = rng.integers(0, 2, n) if hasattr(family, "n_classes") else rng.normal(size=n) + (at % 2)
    return tree, family, at, y, prior_over_prunings(tree, rng.uniform(0.05, 0.95, tree.size))


def stats_of(tree, family, at, y):
    return sum_over_subtrees(tree, sufficient_statistics(family, at, tree.size, y, np.ones(len(y))))


@pytest.mark.parametrize(
    ("arity", "depth"), [(2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3), (4, 2)]
)
@pytest.mark.parametrize("family", [None, NormalGamma(0.1, 0.5, 1.0, 0.7)], ids=["coin", "number"])
def test_the_recursion_is_the_sum_over_all_prunings(arity, depth, family):
    tree, family, at, y, before = problem(arity, depth, arity * 10 + depth, family=family)
    log_leaf = family.log_evidence(stats_of(tree, family, at, y))
    after = update_posterior(before, log_leaf)
    every = list(enumerate_prunings(tree))
    assert (
        len(set(every))
        == len(every)
        == {2: [2, 5, 26, 677], 3: [2, 9, 730], 4: [2, 17]}[arity][depth - 1]
    )
    assert np.isclose(sum(np.exp(log_prob(before, T)) for T in every), 1, rtol=1e-12)
    joint = np.array(
        [log_prob(before, T) + sum(log_leaf[s] for s in pruning_leaves(tree, T)) for T in every]
    )
    total = np.logaddexp.reduce(joint)
    assert np.isclose(after.log_q[0], total, rtol=1e-12)
    found = np.array([log_prob(after, T) for T in every])
    assert np.allclose(np.exp(found), np.exp(joint - total), rtol=1e-11, atol=1e-300)
    assert np.allclose(found, joint - total, rtol=1e-12, atol=1e-12)
    for s in range(tree.size):
        here = sum(
            p for T, p in zip(every, np.exp(found), strict=True) if s in pruning_leaves(tree, T)
        )
        assert np.isclose(after.leaf_prob[s], here, rtol=1e-10, atol=1e-14)
    best, log_best = map_pruning(after)
    assert (
        np.isclose(log_best[0], found.max())
        and frozenset(np.flatnonzero(best)) == every[int(found.argmax())]
    )


@given(arity=st.sampled_from([2, 3]), seed=st.integers(0, 10**6), n=st.integers(0, 30))
@examples(40)
def test_row_by_row_in_any_order_is_the_batch(arity, seed, n):
    tree, family, at, y, before = problem(arity, 3, seed, n)
    after = update_posterior(before, family.log_evidence(stats_of(tree, family, at, y)))
    for order in (np.arange(n), np.random.default_rng(seed).permutation(n)):
        split = before.log_split.copy()
        stop = before.log_stop.copy()
        total = 0.0
        stats = stats_of(tree, family, at[:0], y[:0])
        for i in order:
            path = path_to(tree, int(at[i]))
            said = family.log_density(np.full(len(path), y[i]), family.posterior(stats[path]))
            total += sequential_step(split, stop, path, said)
            stats[path, y[i]] += 1
        assert np.isclose(total, after.log_q[0], rtol=1e-12, atol=1e-12)
        assert np.allclose(np.exp(split), after.split_prob, rtol=1e-12, atol=1e-13)


@given(seed=st.integers(0, 10**6), calls=st.integers(1, 6))
@examples(30)
def test_touching_only_what_changed_is_the_whole_pass(seed, calls):
    tree, family, at, y, before = problem(2, 6, seed, 25)
    stats = stats_of(tree, family, at[:0], y[:0])
    after = before
    for part in np.array_split(np.random.default_rng(seed).permutation(25), calls):
        new = stats_of(tree, family, at[part], y[part])
        stats = stats + new
        after = update_posterior_at(
            before, after, family.log_evidence(stats), np.flatnonzero(new.any(axis=1))
        )
    whole = update_posterior(before, family.log_evidence(stats))
    for name in ("log_split", "log_stop", "log_q"):
        mine = getattr(after, name)
        theirs = getattr(whole, name)
        finite = np.isfinite(theirs)
        assert np.allclose(mine[finite], theirs[finite], rtol=1e-12, atol=1e-12) and np.all(
            mine[~finite] == -np.inf
        )


def test_nodes_without_rows_keep_the_prior_and_few_nodes_have_rows():
    tree, family, at, y, before = problem(2, 8, 3, 5)
    stats = stats_of(tree, family, at, y)
    after = update_posterior(before, family.log_evidence(stats))
    empty = ~stats.any(axis=1)
    assert np.allclose(after.log_q[empty], 0, atol=1e-14)
    assert np.allclose(after.split_prob[empty], before.split_prob[empty], rtol=1e-13)
    assert np.sum(~empty) <= 5 * (8 + 1)
    one = stats_of(tree, family, at[:1], y[:1])
    assert np.sum(one.any(axis=1)) == 8 + 1  # not 8, as the paper's bound n D_max has it


def test_parents_and_children_of_two_trees():
    children = [[2, 3], [-1, -1], [-1, -1], [4, 5], [-1, -1], [-1, -1]]
    trees, order = build_topology(children, roots=(0, 1))
    assert order.tolist() == [0, 1, 2, 3, 4, 5]
    assert trees.parent.tolist() == [-1, -1, 0, 0, 3, 3]
    assert trees.first_child.tolist() == [2, -1, -1, 4, -1, -1]
    assert trees.tree_index.tolist() == [0, 1, 0, 0, 0, 0]


def test_extreme_priors_leave_one_tree():
    tree, family, at, y, _ = problem(2, 3, 0)
    log_leaf = family.log_evidence(stats_of(tree, family, at, y))
    never = update_posterior(prior_over_prunings(tree, 0.0), log_leaf)
    always = update_posterior(prior_over_prunings(tree, 1.0), log_leaf)
    assert never.log_q[0] == log_leaf[0] and np.isclose(
        always.log_q[0], log_leaf[tree.starts[-2] :].sum()
    )
    assert np.array_equal(never.leaf_prob, np.eye(tree.size)[0])
    assert np.array_equal(always.leaf_prob, (np.arange(tree.size) >= tree.starts[-2]).astype(float))


@given(seed=st.integers(0, 10**6))
@examples(30)
def test_ragged_forests_are_their_trees_one_by_one(seed):
    rng = np.random.default_rng(seed)
    parts = []
    starts = []
    total = 0
    for _ in range(3):
        children = [[-1, -1]]
        open_ = [0]
        while open_ and len(children) < 15:
            node = open_.pop(rng.integers(len(open_)))
            children[node] = [len(children), len(children) + 1]
            children += [[-1, -1], [-1, -1]]
            open_ += children[node]
        parts.append(np.array(children))
        starts.append(total)
        total += len(children)
    whole, order = build_topology(
        np.concatenate([np.where(c >= 0, c + s, -1) for c, s in zip(parts, starts, strict=True)]),
        starts,
    )
    assert sorted(order) == list(range(total))
    values = rng.normal(size=total)
    log_leaf = values[order]
    g = rng.uniform(0.1, 0.9, total)
    after = update_posterior(prior_over_prunings(whole, g[order]), log_leaf)
    mean = average_over_prunings(after, values[order])
    for t, (children, s) in enumerate(zip(parts, starts, strict=True)):
        topology, mine = build_topology(children)
        alone = update_posterior(prior_over_prunings(topology, g[s + mine]), values[s + mine])
        assert np.isclose(alone.log_q[0], after.log_q[t], rtol=1e-12)
        where = np.flatnonzero(whole.tree_index == t)
        assert np.array_equal(order[where], s + mine)
        assert np.allclose(average_over_prunings(alone, values[s + mine]), mean[where])
        assert all(
            whole.parent[c] == p
            for p in where
            if whole.first_child[p] >= 0
            for c in (whole.first_child[p], whole.first_child[p] + 1)
        )


def test_draws_come_as_often_as_the_posterior_says():
    tree, family, at, y, before = problem(2, 2, 5, 12)
    after = update_posterior(before, family.log_evidence(stats_of(tree, family, at, y)))
    rng = np.random.default_rng(0)
    drawn = [frozenset(np.flatnonzero(sample_pruning(after, rng))) for _ in range(4000)]
    for T in enumerate_prunings(tree):
        p = np.exp(log_prob(after, T))
        assert abs(drawn.count(T) / 4000 - p) < 5 * np.sqrt(p * (1 - p) / 4000) + 1e-3


def test_the_mixture_over_stops_is_the_average():
    family = DirichletCategorical((0.5, 1.0, 1.5))
    rng = np.random.default_rng(1)
    tree = perfect(3, 2)
    at = tree.starts[-2] + rng.integers(0, 9, 30)
    stats = sum_over_subtrees(
        tree, sufficient_statistics(family, at, tree.size, rng.integers(0, 3, 30), None)
    )
    after = update_posterior(prior_over_prunings(tree, 0.6), family.log_evidence(stats))
    share = family.mean(family.posterior(stats))
    row, node, weight = stopping_weights(after, at)
    mixed = np.stack([np.bincount(row, weight * share[node, c], 30) for c in range(3)], axis=1)
    assert np.allclose(mixed, average_over_prunings(after, share)[at]) and np.allclose(
        np.bincount(row, weight), 1
    )


def test_log_evidence_of_a_million_rows_is_finite():
    rng = np.random.default_rng(0)
    tree = perfect(2, 5)
    family = BetaBernoulli()
    at = tree.starts[-2] + rng.integers(0, 32, 10**6)
    y = rng.integers(0, 2, 10**6)
    after = update_posterior(
        prior_over_prunings(tree, 0.5),
        family.log_evidence(
            sum_over_subtrees(tree, sufficient_statistics(family, at, tree.size, y, None))
        ),
    )
    assert np.all(np.isfinite(after.log_q)) and -(10**6) < after.log_q[0] < -6 * 10**5


@given(st.integers(0, 10**6))
@examples(20)
def test_a_charge_divides_the_odds_of_each_split(seed):
    rng = np.random.default_rng(seed)
    tree = perfect(2, 3)
    g = rng.random(tree.size)
    cuts = rng.integers(1, 10**6, tree.size)
    before = prior_over_prunings(tree, g)
    charged = charge_for_cuts(before, np.log(cuts))
    inner = tree.first_child >= 0
    odds = [np.exp(prior.log_split - prior.log_stop)[inner] for prior in (before, charged)]
    assert np.allclose(odds[1] * cuts[inner], odds[0], rtol=1e-9)
    assert np.allclose(np.exp(charged.log_split) + np.exp(charged.log_stop), 1)
    assert not charged.split_prob[~inner].any() and not charged.log_q.any()
