"""Compiled kernels return what the numpy code returns; a binary of another source is not used."""

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from fabinterp.fab import foba, foba_batches, foba_classes
from fabinterp.rows.kernels import KERNELS, load_kernels
from fabinterp.search import screening

compiled = pytest.mark.skipif(KERNELS is None, reason="no compiled kernels")
SEEDS = range(60)


def problem(seed):
    """Draw a table with ties, constants and copies; some have few rows or weights of 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 5, 60]))
    p = int(rng.integers(2, 12))
    X = rng.integers(-2, 3, (n, p)) if seed % 2 else rng.normal(size=(n, p))
    X = X.astype(float)
    X[:, 0] = 1.0
    if p > 4:
        X[:, 3] = X[:, 2]
        X[:, 4] = 2.0
    w = rng.exponential(size=n) * (rng.random(n) < 0.8)
    return rng, X, w


def assert_near(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_foba_many_is_compiled_as_it_is_written(seed):
    rng, X, _ = problem(seed)
    w = rng.exponential(size=(7, len(X))) * (rng.random((7, len(X))) < 0.8)
    y = X[:, -1] + rng.normal(size=(7, len(X)))
    ridge = np.diag(np.full(X.shape[1], 0.5 * (seed % 3 == 0)))
    grams = np.einsum("bn,ni,nj->bij", w, X, X) + ridge
    crosses = (w * y) @ X
    prices = rng.exponential(size=7) * (seed % 5 > 0)
    words = grams, crosses, prices, rng.integers(0, X.shape[1] + 1, 7)
    coefs, gains = foba_batches.foba_many(*words)
    expected, expected_gains = foba_batches.foba_many.__wrapped__(*words)
    assert_near(coefs, expected)
    assert_near(gains, expected_gains)
    assert np.array_equal(coefs != 0, expected != 0)


@compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_is_compiled_as_it_is_written(seed):
    rng, X, w = problem(seed)
    p = X.shape[1]
    targets = X[:, -2:] + rng.normal(size=(len(X), 2))
    gram = X.T @ (X * w[:, None])
    start = np.flatnonzero(rng.random(p) < 0.3)
    groups = [None, rng.integers(0, 4, p)][seed % 2]
    units = foba._units(p, np.array([0]), groups, bool(groups is not None and seed % 3))
    most = int(rng.choice([0, 1, 3, p]))
    words = gram, X.T @ (targets * w[:, None]), 0.5, start, np.array([0]), *units, most
    for one, other in zip(foba._climb(*words), foba._climb.__wrapped__(*words), strict=True):
        assert_near(one, other)


@compiled
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_classes_are_compiled_as_they_are_written(seed, n_classes):
    rng, X, w = problem(seed)
    p = X.shape[1]
    w[0] = 1.0
    y = np.argmax(
        X @ rng.normal(size=(p, n_classes)) + rng.gumbel(size=(len(X), n_classes)), axis=1
    )
    start = rng.normal(size=(p, n_classes)) * (rng.random((p, 1)) < 0.3)
    start -= start.mean(axis=1, keepdims=True)
    options = {"max_size": int(rng.choice([1, p])), "ridge": [None, np.full(p, 0.3)][seed % 2]}
    if seed % 3:
        options |= {"groups": rng.integers(0, 3, p), "per_group": seed % 3 > 1}
    words = X, np.eye(n_classes)[y], w, *foba_classes._softmax_arguments(0.5, start, **options)
    coef, gain = foba_classes._softmax(*words)
    expected, expected_gain = foba_classes._softmax.__wrapped__(*words)
    assert gain == pytest.approx(expected_gain, rel=1e-9, abs=1e-9)
    assert np.array_equal(coef != 0, expected != 0)


@compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_the_screening_is_compiled_as_it_is_written(seed):
    rng, X, w = problem(seed)
    n, p = X.shape
    n_known = rng.integers(2, 7, 3)
    codes = rng.integers(0, n_known + 1, (n, 3)).astype([np.uint8, np.uint16][seed % 2])
    chosen = [
        (f, c, m)
        for f in range(3)
        for m in (True, False)[seed % 3 > 1 :]
        for c in range(n_known[f])
    ]
    feature, cell, missing = (np.array(each) for each in zip(*chosen, strict=True))
    cuts = screening._CandidateCuts(feature, cell, missing, n_known[feature])
    i, j = np.triu_indices(p)
    slopes = rng.normal(size=(n, 2))
    parts = np.hstack([X[:, i] * X[:, j] * w[:, None], *(X * slope[:, None] for slope in slopes.T)])
    sums = screening._split_sums(cuts, codes, parts)
    assert_near(sums, screening._split_sums.__wrapped__(cuts, codes, parts))
    gains = screening._half_gains.__wrapped__(sums, p, 2)
    np.testing.assert_allclose(screening._half_gains(sums, p, 2), gains, rtol=1e-9, atol=1e-6)


@compiled
def test_arguments_may_be_read_only_views():
    _, X, w = problem(3)
    for array in (X, w):
        array.setflags(write=False)
    found = foba_classes.foba_logistic(X[::-1], X[::-1, 1], w[::-1], 1.0)
    assert np.isfinite(found.coef).all()


def test_a_binary_of_another_source_is_not_used(monkeypatch, tmp_path):
    stale = ModuleType("stale")
    stale.__file__ = str(tmp_path / "stale.so")
    stale.DIGEST = "0"
    monkeypatch.delenv("FABINTERP_KERNELS", raising=False)
    monkeypatch.setitem(sys.modules, "stale", stale)
    source = tmp_path / "_kernels.pyx"
    source.write_text('DIGEST = "0"\n')
    assert load_kernels("stale") is stale
    source.write_text('DIGEST = "1"\n')
    with pytest.warns(UserWarning, match="older than their source"):
        assert load_kernels("stale") is None


def test_a_variable_selects_numpy(monkeypatch):
    monkeypatch.setenv("FABINTERP_KERNELS", "numpy")
    code = "import fabinterp; fabinterp.show_versions()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["kernels", "numpy"]
