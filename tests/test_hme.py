"""The hierarchical mixture under FAB EM: it climbs, projected or not, on tables as bad as they come."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from shared.effort import case, examples

from fabinterp.fab.bernoulli_gate import BernoulliGate
from fabinterp.fab.criterion import MIN_WEIGHT_FRACTION, block_mass, fic
from fabinterp.fab.em import e_step
from fabinterp.fab.engine import fab, fab_steps
from fabinterp.fab.experts import Gaussian, Terms, first_gaussian, first_softmax, gaussian_experts
from fabinterp.fab.gate_tree import GateTree, full_tree_paths, gates_from_rules_tree
from fabinterp.fab.hme import HME, MixtureInputs, harden, project
from fabinterp.fab.hme_starts import (
    random_start,
    simulate,
    start_from_resp,
    start_from_tree,
)
from fabinterp.fab.oblique_gate import LogisticGate
from fabinterp.rows.bins import bin_codes, merge_identical, table_thresholds
from fabinterp.rows.blocks import in_memory

seeds = st.integers(0, 2**32 - 1)
KINDS = ["plain", "collinear", "wide", "gaps", "few"]


def table_of(rng, kind):
    """Rows as the mixture reads them: with copies and constants, more columns than rows, gaps, hardly any rows."""
    n, d = {"wide": (9, 25), "few": (3, 2)}.get(kind, (60, 4))
    X = rng.random((n, d)).round(int(rng.integers(1, 4)))
    if kind == "collinear":
        X[:, 2] = X[:, 0] - X[:, 3]
        X[:, 1] = 1.0
    Z = np.column_stack(
        [np.ones(n), (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)]
    )
    if kind == "gaps":
        X[rng.random(X.shape) < 0.15] = np.nan  # the design has them filled in, the codes do not
    bins = merge_identical(X, table_thresholds(X, 32))
    n_known = np.array([len(cuts) + 1 for cuts in bins.thresholds])
    return MixtureInputs(Z, bin_codes(X, bins)), n_known


def problem(seed, kind, task, weighted, penalty=1.0, depth=3):
    """Table, answers, weights, first model and responsibilities."""
    rng = np.random.default_rng(seed)
    table, n_known = table_of(rng, kind)
    n = len(table.Z)
    side = table.codes[:, 0] > n_known[0] // 2
    signal = np.where(side, table.Z[:, -1], -table.Z[:, 1]) + 0.3 * rng.normal(size=n)
    w = rng.integers(0, 3, n) + rng.random(n) * 0.5 if weighted else np.ones(n)
    first = first_gaussian
    if task == "classes":
        first = partial(first_softmax, n_classes=3)
        y = np.digitize(signal, [-0.7, 0.7])
    else:
        y = signal * 10.0 ** rng.integers(-5, 6) + rng.choice([0.0, 1e6])
    model, resp = random_start(in_memory((table, y, w)), n_known, rng, depth, penalty, first)
    return table, y, w, model, resp.single_block


@pytest.mark.parametrize(("kind", "task", "projected"), [
    case(kind, task, projected, quick=task == "numbers" or (kind == KINDS[0] and projected))
    for kind, task, projected in product(KINDS, ["numbers", "classes"], [False, True])])  # fmt: skip
def test_fic_never_falls(kind, task, projected):
    n_plain = n_dropped = n_rising = 0
    for seed in range(6):
        penalty = [0.0, 0.5, 1.0, 1.0, 2.0, 1.0][seed]
        table, y, w, model, resp = problem(seed, kind, task, seed % 2 == 1, penalty)
        hook = project if projected else None
        steps = fab_steps(
            model,
            table,
            y,
            resp,
            w,
            penalty=penalty,
            min_weight_fraction=0.04,
            max_e_steps=1,
            project=hook,
        )
        found = [step for _, step in zip(range(16), steps)]
        for before, after in zip(found, found[1:]):
            assert np.isfinite(after.fic) and np.isfinite(after.resp).all()
            assert np.isfinite(after.model.log_joint(table, y)).all()
            np.testing.assert_allclose(after.resp.sum(axis=1), 1, rtol=1e-9)
            n_dropped += after.shrunk
            if not after.shrunk:
                assert after.fic - before.fic >= -1e-8 * (1 + abs(before.fic)), (
                    seed,
                    after.fic - before.fic,
                )
                n_plain = n_plain + 1
                n_rising = n_rising + (after.fic - before.fic > 1e-4)
    assert n_plain >= 30 and n_rising >= 10 and n_dropped > 0


@examples(60)
@given(seeds, st.sampled_from(KINDS), st.sampled_from(["numbers", "classes"]), st.booleans())
def test_lemma_one(seed, kind, task, settled):
    """Any mixture of the last and the next responsibilities, row by row, keeps FIC; so does the projection."""
    table, y, w, model, old = problem(seed % 1000, kind, task, seed % 2 == 0, depth=2)
    rng = np.random.default_rng(seed)
    log_joint = model.log_joint(table, y)
    for _ in range(3 * settled):
        old, _, _ = e_step(log_joint, block_mass(old, w, model.blocks), model, w, max_e_steps=1)
    new, _, value = e_step(log_joint, block_mass(old, w, model.blocks), model, w, max_e_steps=1)
    before = fic(old, log_joint, model, w)
    slack = 1e-9 * (1 + abs(value))
    rho = rng.random((len(old), 1)) ** rng.choice([0.1, 1.0, 10.0])
    assert fic(rho * new + (1 - rho) * old, log_joint, model, w) >= before - slack
    got = project(model, in_memory((table, y, w)), in_memory(new), in_memory(old)).single_block
    assert fic(got, log_joint, model, w) >= before - slack and value >= before - slack
    np.testing.assert_allclose(got.sum(axis=1), 1, rtol=1e-9)
    assert got.min() >= 0


@examples(60)
@given(seeds)
def test_the_projection_is_the_nearest_point(seed):
    table, y, w, model, old = problem(seed % 1000, "plain", "numbers", True, depth=2)
    rng = np.random.default_rng(seed)
    new = rng.dirichlet(np.ones(4), len(old))
    new[::5] = old[::5]
    got = project(model, in_memory((table, y, w)), in_memory(new), in_memory(old)).single_block
    prior = np.exp(model.gates.update(table.codes, None, new, w).log_path(table.codes))
    step = new - old
    assert np.array_equal(got[::5], old[::5])  # 0/0
    moved = np.abs(got - new).max(axis=1) > 1e-12
    assert (
        np.abs(((prior - got) * step).sum(axis=1)[moved]).max(initial=0) < 1e-9
    )  # at a right angle, (Eto 21)
    short = ((prior - old) * step).sum(axis=1) <= 0
    beyond = ((prior - new) * step).sum(axis=1) >= 0
    assert np.array_equal(moved, ~(short | beyond))  # Algorithm 3: only between the ends


@examples(40)
@given(seeds, st.sampled_from(KINDS), st.sampled_from(["numbers", "classes"]))
def test_the_m_step_is_never_worse(seed, kind, task):
    table, y, w, model, _ = problem(seed % 1000, kind, task, seed % 2 == 0, depth=2)
    resp = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), len(w))
    better = model.update(table, y, resp, w)
    old, new = (fic(resp, m.log_joint(table, y), m, w) for m in (model, better))
    assert new >= old - 1e-8 * (1 + abs(old))


def test_the_parts_add_up():
    table, y, w, model, resp = problem(3, "plain", "numbers", True, depth=2)
    log_joint = model.log_joint(table, y)
    residual = y[:, None] - table.Z @ model.expert.coef.T
    density = np.exp(-0.5 * residual**2 / model.expert.var) / np.sqrt(2 * np.pi * model.expert.var)
    psi = np.exp(model.gates.log_path(table.codes))
    np.testing.assert_allclose(np.exp(log_joint), psi * density, rtol=1e-9)  # (Eto 5)
    assert np.array_equal(model.blocks[:3], model.gates.paths != 0) and np.array_equal(
        model.blocks[3:], np.eye(4)
    )
    assert model.dims[:3].tolist() == [2, 2, 2]
    assert np.array_equal(model.dims[3:], (model.expert.coef[:, 1:] != 0).sum(axis=1) + 2)
    cost = np.zeros(4)
    for path in model.gates.paths:
        cost[path != 0] += 1 / (1 + w @ resp[:, path != 0].sum(axis=1))
    cost += model.dims[3:] / 2 / (1 + w @ resp)
    expected = np.exp(log_joint - cost - logsumexp(log_joint - cost, axis=1, keepdims=True))
    got, _, _ = e_step(log_joint, block_mass(resp, w, model.blocks), model, w, max_e_steps=1)
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-15)  # (Eto 11)
    assert np.array_equal(model.assign(table), psi.argmax(axis=1))  # (Eto 9)


@examples(40)
@given(
    seeds,
    st.sampled_from(KINDS),
    st.sampled_from(["numbers", "classes"]),
    st.sampled_from([0.0, 0.15]),
)
def test_hard_gates_are_hard(seed, kind, task, min_weight_fraction):
    table, y, w, model, resp = problem(seed % 1000, kind, task, seed % 2 == 0)
    step, _ = fab(model, table, y, resp, w, max_iter=3, max_e_steps=1)
    rows = in_memory((table, y, w))
    hard, said = harden(step.model, rows, min_weight_fraction)
    said = said.single_block
    assert np.isin(said, (0, 1)).all() and (said.sum(axis=1) == 1).all()
    assert np.array_equal(said.argmax(axis=1), hard.assign(table))
    assert np.array_equal(hard.assign(table), hard.gates.route(table.codes))
    assert np.isin([gate.prob for gate in hard.gates.gates], (0, 1)).all()
    share = w @ said / w.sum()
    assert (share > 0).all() and ((share >= min_weight_fraction).all() or len(share) == 1)
    questions = {(gate.feature, gate.cell, gate.missing) for gate in step.model.gates.gates}
    assert {(gate.feature, gate.cell, gate.missing) for gate in hard.gates.gates} <= questions
    assert np.isfinite(fic(said, hard.log_joint(table, y), hard, w))
    again, _ = harden(hard, rows, min_weight_fraction)
    assert again.gates.gates == hard.gates.gates


def oblique(seed, factors=False, penalty=1.0, depth=2, n=200):
    """A table whose gates read numbers, answers, and a first model from random shares."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (n, 5))
    table = MixtureInputs(np.column_stack([np.ones(n), U]), U)
    y = np.where(U[:, 0] - 0.7 * U[:, 3] > 0.1, 2 * U[:, 1], -1 - U[:, 2]) + rng.normal(0, 0.1, n)
    paths = full_tree_paths(depth)
    w = rng.integers(0, 3, n) + rng.random(n)
    resp = rng.dirichlet(np.full(paths.shape[1], 3.0), n)
    gates = GateTree(
        (LogisticGate(penalty=penalty, fisher_factors=factors),) * len(paths), paths
    ).update(U, None, resp, w)
    expert = gaussian_experts(table.Z, y, resp, w, Terms.lines(6, penalty))
    return HME(gates, expert), table, y, w, resp


@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0])
def test_fic_never_falls_under_oblique_gates(factors, penalty):
    n_plain = n_used = 0
    for seed in range(5):
        model, table, y, w, resp = oblique(seed, factors, penalty)
        steps = fab_steps(
            model, table, y, resp, w, penalty=penalty, min_weight_fraction=0.02, max_e_steps=1
        )
        found = [step for _, step in zip(range(15), steps)]
        for before, after in zip(found, found[1:]):
            if not after.shrunk:
                assert after.fic - before.fic >= -1e-8 * (1 + abs(before.fic)), (
                    seed,
                    after.fic - before.fic,
                )
                n_plain += 1
        n_used += sum(len(gate.features) for gate in after.model.gates.gates)
    assert n_plain > 50 and n_used > 3


def test_what_gates_and_experts_price_is_what_the_mixture_prices():
    class Priced(Gaussian):
        const = np.array([0.5, 1.5, 2.5])

        def fisher(self, Z):
            return np.full((len(Z), 3), 0.25)

    gates = GateTree(
        (
            LogisticGate((0, 1), (3.0, -4.0), const=0.25, fisher_factors=True),
            BernoulliGate(0, 0, False, 0.7, 2),
        ),
        np.array([[1, 1, -1], [1, -1, 0]], np.int8),
    )
    U = np.random.default_rng(0).uniform(-1, 1, (7, 2))
    table = MixtureInputs(np.ones((7, 1)), U)
    expert = (np.ones((3, 1)), np.ones(3), Terms.lines(1))
    model = HME(gates, Priced(*expert))
    assert model.const.tolist() == [0.25, 0, 0.5, 1.5, 2.5] and model.dims.tolist() == [
        2,
        2,
        *model.expert.dims,
    ]
    factor = model.fisher(table)
    assert np.array_equal(factor[:, 0], gates.gates[0].fisher(U)) and factor.shape == (7, 5)
    assert (factor[:, 1] == 1).all() and (factor[:, 2:] == 0.25).all()
    fewer = replace(gates, gates=gates.gates[1:], paths=gates.paths[1:])
    plain = HME(fewer, Gaussian(*expert))
    assert plain.fisher(table) is None and plain.const.tolist() == [0.0] * 4
    assert (HME(gates, Gaussian(*expert)).fisher(table)[:, 1:] == 1).all()


def test_oblique_gates_harden_to_what_they_ask():
    model, table, y, w, resp = oblique(0, depth=1, n=600)
    step, _ = fab(model, table, y, resp, w, max_e_steps=1)
    hard, said = harden(step.model, in_memory((table, y, w)))
    said = said.single_block
    assert np.isin(said, (0, 1)).all() and np.array_equal(said.argmax(axis=1), hard.assign(table))
    assert np.array_equal(hard.assign(table), step.model.gates.route(table.codes))
    assert [set(gate.features) for gate in hard.gates.gates] == [{0, 3}]
    coef = dict(zip(hard.gates.gates[0].features, hard.gates.gates[0].coef))
    assert coef[3] / coef[0] == pytest.approx(-0.7, abs=0.1)


def test_starts():
    table, y, w, model, resp = problem(1, "plain", "numbers", False, depth=5)
    assert resp.shape == (60, 32) and model.gates.paths.shape == (31, 32) and len(model.dims) == 63
    rows = in_memory((table, y, w))
    single, all_one = random_start(rows, model.gates.n_known, np.random.default_rng(0), depth=0)
    assert (
        np.allclose(all_one.single_block, 1)
        and single.blocks.tolist() == [[1.0]]
        and len(single.dims) == 1
    )
    step, _ = fab(single, rows, resp=all_one, max_e_steps=1)
    assert step.n_components == 1 and (harden(step.model, rows)[1].single_block == 1).all()
    tree = model.gates
    leaf = tree.route(table.codes)
    _, sharp = start_from_tree(rows, tree, model.gates.n_known, soft=0.0)
    assert (
        np.array_equal(sharp.single_block.argmax(axis=1), leaf)
        and np.isin(sharp.single_block, (0, 1)).all()
    )
    soft_model, soft = start_from_tree(rows, tree, model.gates.n_known, soft=0.2)
    np.testing.assert_allclose(soft.single_block[np.arange(60), leaf], 0.8 + 0.2 / 32)
    assert np.array_equal(soft_model.blocks, model.blocks)
    kept = np.arange(32) % 16 == 0
    gates = model.gates.keep(kept)
    terms = Terms.lines(table.Z.shape[1])
    one, _ = start_from_resp(rows, in_memory(np.full((60, 2), 0.5)), gates, terms)
    assert isinstance(one, HME) and all(
        MIN_WEIGHT_FRACTION <= gate.prob <= 1 - MIN_WEIGHT_FRACTION for gate in one.gates.gates
    )


def test_random_starts_are_seeded():
    table, y, w, model, _ = problem(1, "plain", "numbers", False)
    rows = in_memory((table, y, w))
    one, two, other = (
        random_start(rows, model.gates.n_known, np.random.default_rng(s))[1].single_block
        for s in (5, 5, 6)
    )
    assert np.array_equal(one, two) and not np.array_equal(one, other)


@pytest.mark.parametrize("noise", [0.1, 0.1**0.5])
def test_the_simulation_is_what_it_says(noise):
    features = set()
    for seed in range(20):
        X, y, tree = simulate(seed, noise)
        again = simulate(seed, noise)
        assert np.array_equal(X, again[0]) and np.array_equal(y, again[1]) and tree == again[2]
        assert X.shape == (3000, 10) and 0 <= X.min() and X.max() <= 1 and tree.n_leaves == 5
        at = np.unique(tree.apply(X), return_counts=True)[1]
        assert len(at) == 5 and at.min() >= 150
        leaves = [leaf for leaf in tree.leaves if leaf is not None]
        assert all(
            2 <= len(leaf.features) <= 4 and 0 <= min(leaf.coef) and max(leaf.coef) <= 1
            for leaf in leaves
        )
        assert all(leaf.value == 0 for leaf in leaves)
        splits = [split for split in tree.splits if split is not None]
        assert len(splits) == 4 and all(0.25 <= split.threshold <= 0.75 for split in splits)
        features |= {split.features for split in splits}
        assert np.std(y - tree.predict(X)) == pytest.approx(noise, rel=0.1)
    assert len(features) == 10


@pytest.mark.parametrize("sizes", [{"n": 50}, {"d": 3}, {"n_leaves": 9}, {"n_leaves": 0}])
def test_the_simulation_refuses_what_it_cannot_draw(sizes):
    with pytest.raises(
        ValueError, match="n must be at least 100, d at least 4 and n_leaves from 1 to 8"
    ):
        simulate(0, **sizes)


def test_from_the_true_tree_em_stays_with_the_truth():
    for seed in (0, 1):
        X, y, truth = simulate(seed)
        bins = merge_identical(X, table_thresholds(X, 256))
        Z = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])
        table = MixtureInputs(Z, bin_codes(X, bins))
        w = np.ones(len(X))
        n_known = np.array([len(cuts) + 1 for cuts in bins.thresholds])
        rows = in_memory((table, y, w))
        model, resp = start_from_tree(rows, gates_from_rules_tree(truth, bins.thresholds), n_known)
        step, _ = fab(
            model, rows, resp=resp, max_e_steps=1, min_weight_fraction=0.01, project=project
        )
        hard, said = harden(step.model, rows)
        assert said.single_block.shape[1] == 5
        asked = sorted(gate.feature for gate in hard.gates.gates)
        assert asked == sorted(split.features[0] for split in truth.splits if split is not None)
        fitted = np.einsum("np,np->n", Z, hard.expert.coef[hard.assign(table)])
        assert np.sqrt(np.mean((fitted - truth.predict(X)) ** 2)) < 0.05
