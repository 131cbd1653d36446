"""The array tree: rows walk as by hand, parts join and split, the prunings of every size are those of the list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples

from fabinterp.rows.array_tree import (
    ArrayTree,
    array_to_rules_tree,
    best_pruning_of_size,
    concatenate_trees,
    ends_of_size,
    levels,
    losses_by_size,
    preorder,
    prune_at,
    shorten_thresholds,
    subset_nodes,
    with_gaps,
)
from fabinterp.rules.core import Columns

seeds = st.integers(0, 10**6)
N_CODES = 5
COLUMNS = Columns(("a", "b", "c"), (None, None, tuple("vwxyz")))


def random_tree(rng, n_splits):
    """Random splits on two columns of numbers and one of codes; the losses follow no order."""
    feature, yes, no, group, sets = [-1], [-1], [-1], [-1], []
    for _ in range(n_splits):
        k = int(rng.choice(np.flatnonzero(np.array(feature) < 0)))
        feature[k], no[k], yes[k] = int(rng.integers(3)), len(feature), len(feature) + 1
        if feature[k] == 2 and rng.random() < 0.5:
            group[k] = len(sets)
            sets.append(tuple(np.flatnonzero(rng.random(N_CODES) < 0.5).tolist()))
        for array in (feature, yes, no, group):
            array += [-1, -1]
    size = len(feature)
    return ArrayTree(
        feature,
        rng.normal(size=size),
        yes,
        no,
        value=rng.normal(size=size),
        missing=rng.random(size) < 0.5,
        group=group,
        sets=sets,
        weight=np.ones(size),
        loss=rng.normal(size=size),
    )


def random_rows(rng, n=60):
    """Rows with gaps; the last column holds codes."""
    Z = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, N_CODES, n)])
    Z[rng.random(Z.shape) < 0.15] = np.nan
    return Z


def walk(tree, x, k):
    """The leaf of one row, by hand."""
    while tree.feature[k] >= 0:
        z = x[tree.feature[k]]
        held = z in tree.sets[tree.group[k]] if tree.group[k] >= 0 else z > tree.threshold[k]
        k = (tree.yes if (tree.missing[k] if np.isnan(z) else held) else tree.no)[k]
    return k


def every_pruning(tree, k=0):
    """The leaves of every pruning below node k."""
    yield (k,)
    if tree.feature[k] >= 0:
        for below_no in every_pruning(tree, tree.no[k]):
            for below_yes in every_pruning(tree, tree.yes[k]):
                yield below_no + below_yes


def same_tree(one, other):
    """Whether two trees are the same, node by node."""
    inner = one.feature >= 0
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("yes", "no", "value", "weight", "loss", "roots")
    ) and all(
        np.array_equal(getattr(one, name)[inner], getattr(other, name)[inner])
        for name in ("feature", "threshold", "missing")
    )


@given(seeds, st.lists(st.integers(0, 12), min_size=1, max_size=5))
@examples(60)
def test_rows_walk_as_by_hand_in_one_tree_and_in_many(seed, sizes):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_splits) for n_splits in sizes]
    Z = random_rows(rng)
    forest = concatenate_trees(trees)
    assert forest.n_leaves == sum(sizes) + len(sizes)
    leaves = forest.apply_all(Z)
    for t, tree in enumerate(trees):
        root = forest.roots[t]
        assert leaves[:, t].tolist() == [walk(forest, x, root) for x in Z]
        assert np.array_equal(tree.apply(Z) + root, leaves[:, t])
        assert np.array_equal(forest.apply(Z, root), leaves[:, t])
        assert same_tree(forest.tree(t), tree)
    start = forest.roots[rng.integers(len(trees), size=len(Z))]  # a tree for each row
    own = np.searchsorted(forest.roots, start)
    assert np.array_equal(forest.apply(Z, start), leaves[np.arange(len(Z)), own])
    assert forest.apply_all(Z[:0]).shape == (0, len(trees))


@given(seeds, st.integers(0, 12))
@examples(40)
def test_the_order_of_nodes_changes_nothing(seed, n_splits):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits)
    Z = random_rows(rng)
    turned = subset_nodes(tree, rng.permutation(len(tree.feature)))
    assert turned.roots.shape == (1,)
    (root,) = turned.roots
    assert np.array_equal(turned.value[turned.apply(Z, root)], tree.leaf_values(Z))
    back = subset_nodes(turned, preorder(turned.yes, turned.no, root))
    assert preorder(back.yes, back.no).tolist() == list(range(len(tree.feature)))
    assert np.array_equal(back.leaf_values(Z), tree.leaf_values(Z))
    below = [k + 1 for k in np.flatnonzero(back.feature >= 0)]
    assert np.array_equal(back.no[back.feature >= 0], below)


@given(seeds, st.integers(0, 12))
@examples(40)
def test_pruned_trees_answer_with_the_node_where_they_stop(seed, n_splits):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_splits)
    Z = random_rows(rng)
    ends = rng.random(len(tree.feature)) < 0.3
    pruned = prune_at(tree, ends)
    assert np.array_equal(np.sort(np.concatenate(levels(pruned))), np.arange(len(pruned.feature)))
    above = {0: 0}  # each node, and where the walk to it stops
    for k in preorder(tree.yes, tree.no):
        for child in (tree.yes[k], tree.no[k]) if tree.feature[k] >= 0 else ():
            above[child] = above[k] if ends[above[k]] else child
    stops = [above[k] for k in tree.apply(Z)]
    assert np.array_equal(pruned.leaf_values(Z), tree.value[stops])
    assert same_tree(prune_at(tree), tree)


@given(seeds, st.lists(st.integers(0, 7), min_size=1, max_size=6))
@examples(60)
def test_best_prunings_are_those_of_the_list(seed, sizes):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_splits) for n_splits in sizes]
    forest = concatenate_trees(trees)
    losses, shares = losses_by_size(forest)
    assert losses.shape == (len(trees), max(sizes) + 1)
    every = [
        [(len(leaves), tree.loss[list(leaves)].sum()) for leaves in every_pruning(tree)]
        for tree in trees
    ]
    for t in range(len(trees)):
        for size in range(1, losses.shape[1] + 1):
            least = min((loss for b, loss in every[t] if b == size), default=np.inf)
            assert losses[t, size - 1] == pytest.approx(least, abs=1e-12)
    wanted = np.array([rng.integers(1, n_splits + 2) for n_splits in sizes])
    pruned = prune_at(forest, ends_of_size(forest, shares, wanted))
    for t, size in enumerate(wanted):
        small = pruned.tree(t)
        assert small.n_leaves == size
        assert small.loss[small.feature < 0].sum() == pytest.approx(losses[t, size - 1], abs=1e-12)
    for most in range(1, 5):
        small = prune_at(trees[0], best_pruning_of_size(trees[0], most))
        assert small.n_leaves <= most
        assert small.loss[small.feature < 0].sum() == pytest.approx(
            min(loss for b, loss in every[0] if b <= most), abs=1e-12
        )


def test_a_long_chain_keeps_few_sizes():
    """Sizes grow with the leaves below a node, not with the levels, of which there are a thousand."""
    depth = 1000
    feature = np.tile([0, -1], depth + 1)[: 2 * depth + 1]
    feature[-1] = -1
    k = np.arange(2 * depth + 1)
    is_inner = feature >= 0
    chain = ArrayTree(
        feature,
        k.astype(float),
        np.where(is_inner, k + 2, -1),
        np.where(is_inner, k + 1, -1),
        value=k,
        loss=np.where(is_inner, 2.0 + 2 * depth - k, 1.0),
    )
    losses, _ = losses_by_size(chain, max_leaves=6)
    assert losses.shape == (1, 6)
    assert prune_at(chain, best_pruning_of_size(chain, 6)).n_leaves == 6


@given(seeds, st.integers(0, 12))
@examples(40)
def test_short_thresholds_part_the_rows_as_before(seed, n_splits):
    rng = np.random.default_rng(seed)
    forest = concatenate_trees([random_tree(rng, n_splits), random_tree(rng, 3)])
    Z = random_rows(rng)
    numeric = [labels is None for labels in COLUMNS.categories]
    known = with_gaps(forest, Z)
    short = shorten_thresholds(known, numeric)
    assert np.array_equal(short.apply_all(Z), forest.apply_all(Z))
    changed = short.threshold != forest.threshold
    assert not changed[(forest.feature < 0) | (forest.feature == 2)].any()
    assert (short.threshold[changed] >= known.low[changed]).all()
    assert (short.threshold[changed] < known.high[changed]).all()
    some = np.flatnonzero(changed)[:2]
    few = shorten_thresholds(known, numeric, some)
    assert np.flatnonzero(few.threshold != forest.threshold).tolist() == some.tolist()


@given(seeds, st.integers(0, 12))
@examples(40)
def test_the_tree_that_is_read_predicts_the_same(seed, n_splits):
    rng = np.random.default_rng(seed)
    forest = concatenate_trees([random_tree(rng, 2), random_tree(rng, n_splits)])
    Z = random_rows(rng)
    read = array_to_rules_tree(forest, COLUMNS, target="price", t=1)
    assert read.target == "price" and read.n_leaves == n_splits + 1
    assert np.array_equal(read.predict(Z), forest.value[forest.apply(Z, forest.roots[1])])


def test_vectors_are_numbers_or_probabilities_of_classes():
    tree = ArrayTree([0, -1, -1], [0.5, 0, 0], [2, -1, -1], [1, -1, -1], np.eye(3)[:, :2])
    columns = Columns(("a",), (None,))
    Z = np.array([[0.0], [1.0]])
    classes = array_to_rules_tree(tree, columns, ("u", "v"))
    assert np.array_equal(classes.predict_proba(Z), tree.leaf_values(Z))
    assert array_to_rules_tree(tree, columns).predict(Z).tolist() == tree.value[[1, 2], 0].tolist()


class Diagonal(ArrayTree):
    """A tree whose splits are on the sum of all columns."""

    def answers(self, Z, row, node):
        """Whether the sum is above the threshold."""
        return Z[row].sum(axis=1) > self.threshold[node]


def test_another_kind_of_question_is_one_method():
    tree = Diagonal([0, -1, -1], [1.0, 0, 0], [2, -1, -1], [1, -1, -1], [0.0, -1.0, 1.0])
    Z = np.random.default_rng(0).normal(size=(50, 3))
    expected = np.where(Z.sum(axis=1) > 1, 1.0, -1.0)
    both = concatenate_trees([tree, tree])
    assert np.array_equal(tree.leaf_values(Z), expected)
    assert np.array_equal(both.value[both.apply_all(Z)], np.stack([expected] * 2, axis=1))
    assert np.array_equal(prune_at(tree).leaf_values(Z), expected)
