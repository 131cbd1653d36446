"""Rule mixtures of rows in blocks: however the rows are cut, the same sums, the same bound, the same rules."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.blocks import LABELS, cut, mixed, rows_at
from shared.effort import case, examples
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from fabinterp.fab.engine import EM, fab
from fabinterp.forests.reading import ensemble_thresholds, read_ensemble
from fabinterp.models.ensemble_lists import round_cuts
from fabinterp.models.rule_lists import fit_rule_sets
from fabinterp.models.rule_mixture import RuleMixtureClassifier, RuleMixtureRegressor, coverage
from fabinterp.models.soft_regions import map_predictions, random_mixture, training_error
from fabinterp.rows import chunks
from fabinterp.rows.bins import (
    bin_codes,
    cell_counts,
    incidence,
    merge_bins,
    merge_identical,
    neighbouring_values,
)
from fabinterp.rows.blocks import add, in_memory
from fabinterp.rules.core import (
    Leaf,
    Rule,
    Split,
    measure_ruleset_in_blocks,
    predict_codes,
    read_columns,
)
from fabinterp.rules.ruleset import RuleSet

QUICK = {
    "max_rules": 4,
    "search": EM(n_components=4, max_iter=30),
    "n_init": 2,
    "n_perturbations": 4,
    "random_state": 0,
}
pytestmark = pytest.mark.filterwarnings("ignore:FIC still rises")


def blocks_of(part, rng):
    """`Blocks` of a tuple of columns, cut anywhere."""
    return in_memory(
        *(tuple(column[rows] for column in part) for rows in cut(rng, part[0].shape[0]))
    )


def table(seed, n=300):
    """Rows with gaps and ties, class codes, numbers and weights; some weights are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    t = np.where(X[:, 0] > 0.3, 2.0, 0.0) + X[:, 1] + 0.2 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.digitize(t, [0.2, 1.5]), t, rng.integers(0, 3, n).astype(float), rng


def mixture(seed, classes, probabilities=False):
    """A random mixture, and the rows that it sees."""
    X, y, t, w, rng = table(seed)
    X = X[w > 0]
    w = w[w > 0]
    target = (np.eye(3)[y] if probabilities else y) if classes else t
    target = target[table(seed)[3] > 0]
    bins = merge_identical(X, [np.linspace(-2, 2, 9)] * 3)
    codes_or_t = target.argmax(axis=1) if probabilities else target
    model = random_mixture(bins, codes_or_t, w, 4, 3 if classes else 0, rng)
    return model, (incidence(bin_codes(X, bins), bins), target, w), rng


@examples(60)
@given(st.integers(0, 10**6))
def test_counts_of_blocks_add_up_to_the_questions_of_all_rows(seed):
    X, _, _, _, rng = table(seed, n=int(np.random.default_rng(seed).integers(2, 80)))
    X[X == 0] = rng.choice([0.0, -0.0], (X == 0).sum())
    thresholds = [
        np.unique(rng.normal(size=rng.integers(0, 30)).round(int(rng.integers(1, 3))))
        for _ in range(3)
    ]
    counts = [cell_counts(X[rows], thresholds) for rows in cut(rng, len(X), min(6, len(X)))]
    total = counts[0]
    for part in counts[1:]:
        total = add(total, part)
    bins = merge_bins(thresholds, total)
    for j, cuts in enumerate(thresholds):
        known = X[~np.isnan(X[:, j]), j]
        columns, number = np.unique(known[:, None] > cuts, axis=1, return_counts=True)
        ours = known[:, None] > bins.thresholds[j]
        if len(known) and len(cuts):
            assert sorted(map(tuple, columns.T)) == sorted(map(tuple, ours.T))
            assert sorted(number) == sorted(bins.counts[j])
        assert bins.missing[j] == (len(known) < len(X)) and bins.counts[j].sum() == len(cuts)
        assert np.isin(bins.thresholds[j], cuts).all()


@examples(60)
@given(st.integers(0, 10**6))
def test_said_thresholds_keep_the_rows_of_every_block(seed):
    X, _, _, _, rng = table(seed, n=60)
    bins = merge_identical(X[:40], [np.unique(rng.normal(size=12)) for _ in range(3)])
    features = [2, 0]
    rows = blocks_of((X,), rng)
    bins = replace(bins, thresholds=tuple(bins.thresholds[j] for j in features))
    for j, cuts, said in zip(
        features, bins.thresholds, round_cuts(rows, features, bins), strict=True
    ):
        known = X[~np.isnan(X[:, j]), j]
        assert ((known[:, None] > cuts) == (known[:, None] > np.array(said))).all()
        for low, high, b in zip(*neighbouring_values(X[:, j], cuts), cuts, strict=True):
            assert low == max(known[known <= b], default=-np.inf) and high == min(
                known[known > b], default=np.inf
            )


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from(["classes", "probabilities", "numbers"]))
def test_the_mixture_of_blocks_is_that_of_all_rows(seed, kind):
    model, part, rng = mixture(seed, kind != "numbers", kind == "probabilities")
    resp = rng.dirichlet(np.ones(4), part[0].shape[0])
    once = model.update(*part[:2], resp, part[2])
    parts = cut(rng, len(resp))
    rows = in_memory(*(tuple(column[at] for column in part) for at in parts))
    rows = rows.map(own_incidence, model.bins)
    blocked = model.maximise(rows, in_memory(*(resp[at] for at in parts)))
    np.testing.assert_allclose(blocked.weights, once.weights, rtol=1e-12)
    np.testing.assert_allclose(blocked.eta, once.eta, rtol=1e-10)
    for name in ("prob",) if kind != "numbers" else ("mean", "var"):
        np.testing.assert_allclose(
            getattr(blocked.expert, name), getattr(once.expert, name), rtol=1e-9
        )
    (last, trace) = fab(model, *part[:2], w=part[2], max_iter=15)
    (other, again) = fab(model, rows, max_iter=15)
    np.testing.assert_allclose(again, trace, rtol=1e-10)
    assert last.n_components == other.n_components


def own_incidence(part, bins):
    """Rows of a sliced incidence as an `Incidence` again, which knows its transpose."""
    S, y, w = part
    cells = np.diff(np.append(bins.offsets[:-1], S.shape[1]))
    found = np.full((S.shape[0], len(cells)), 10**6)
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    feature = np.searchsorted(bins.offsets, S.indices, side="right") - 1
    found[row, feature] = S.indices - bins.offsets[feature]
    return incidence(found, bins), y, w


def rules_at(rng, classes):
    """Three conditions on columns of numbers."""
    return tuple(
        ((Split((int(j),), float(b), missing=bool(gap)), True),)
        for j, b, gap in zip(rng.integers(0, 3, 3), rng.normal(size=3), rng.integers(0, 2, 3))
    )


@examples(40)
@given(st.integers(0, 10**6), st.booleans())
def test_answers_and_measures_of_blocks_are_those_of_all_rows(seed, classes):
    X, y, t, w, rng = table(seed, n=80)
    X, y, t, w = (column[w > 0] for column in (X, y, t, w))
    conditions = rules_at(rng, classes)
    target = y if classes else t
    names = tuple(LABELS) if classes else None
    rows = blocks_of((X, target, w), rng)
    once = fit_rule_sets([conditions], in_memory((X, target, w)), names, read_columns(X))[0]
    rules = fit_rule_sets([conditions], rows, names, read_columns(X))[0]
    assert [rule.conditions for rule in rules.rules] == [rule.conditions for rule in once.rules]
    free = np.ones(len(X), bool)
    for rule in rules.rules:  # by the definition
        mask = free & np.all([split(X) == side for split, side in rule.conditions], axis=0)
        free &= ~mask
        here = mask if mask.any() else slice(None)
        value = (
            np.average(np.eye(3)[target] if classes else target, axis=0, weights=w * 1.0)
            if not mask.any()
            else np.average(
                (np.eye(3)[target] if classes else target)[here], axis=0, weights=w[here]
            )
        )
        np.testing.assert_allclose(rule.leaf.value, value, rtol=1e-12, atol=1e-14)
    said = rng.integers(0, 3, len(X)) if classes else rng.normal(size=len(X))
    reference = LABELS[said] if classes else said
    plain = rules.measure(X, reference, w)
    whole = measure_ruleset_in_blocks(rules, in_memory((X, said, w)))
    assert str(plain) == str(whole) and plain.rules == whole.rules  # one block: the same bits
    parted = measure_ruleset_in_blocks(rules, blocks_of((X, said, w), rng))
    for a, b in zip(plain.rules, parted.rules, strict=True):
        np.testing.assert_allclose(
            [b.support, b.coverage, b.fidelity], [a.support, a.coverage, a.fidelity], rtol=1e-10
        )
    apart = blocks_of((X, target, w, said), rng)  # the reference beside the rows
    beside = measure_ruleset_in_blocks(rules, apart.map(first_three), apart.map(last))
    assert str(beside) == str(plain)


def first_three(part):
    """Rows, targets, weights."""
    return part[:3]


def last(part):
    """What lies beside them."""
    return part[3]


def test_a_reference_that_never_changes_is_met_or_not_in_blocks_too():
    X = np.arange(6.0)[:, None]
    w = np.ones(6)
    rules = RuleSet((Rule((), Leaf(2.0)),), read_columns(X))
    for value, fidelity in ((2.0, 1.0), (3.0, 0.0)):
        part = (X, np.full(6, value), w)
        assert (
            measure_ruleset_in_blocks(rules, blocks_of(part, np.random.default_rng(0))).fidelity
            == fidelity
        )
        assert rules.measure(X, part[1]).fidelity == fidelity


@examples(30)
@given(st.integers(0, 10**6), st.booleans())
def test_codes_answered_are_the_positions_of_labels_answered(seed, classes):
    X, y, t, w, rng = table(seed, n=50)
    rows = in_memory((X, y if classes else t, w + 1))
    names = tuple(LABELS) if classes else None
    rules = fit_rule_sets([rules_at(rng, classes)], rows, names, read_columns(X))[0]
    said = predict_codes(rules, X)
    assert np.array_equal(rules.predict(X), LABELS[said] if classes else said)


@examples(30)
@given(st.integers(0, 10**6))
def test_the_training_error_is_a_mean(seed):
    rng = np.random.default_rng(seed)
    w = rng.random(30)
    y = rng.integers(0, 3, 30)
    said = rng.integers(0, 3, 30)
    assert training_error(said, y, w) == np.average(said != y, weights=w)
    assert training_error(said, np.eye(3)[y], w) == np.average(said != y, weights=w)
    t = rng.normal(size=30)
    assert training_error(said * 1.0, t, w) == np.average((said - t) ** 2, weights=w)


# The estimators: a sample of 120 rows and blocks of any size


def estimator(kind, forest=True, **changed):
    """A small rule mixture, of a forest that has been fitted elsewhere or of one to be grown."""
    X, y, t, _, _ = table(99)
    if kind == "classes":
        return RuleMixtureClassifier(fitted(kind) if forest else None, **QUICK | changed)
    return RuleMixtureRegressor(fitted(kind) if forest else None, **QUICK | changed)


def fitted(kind):
    """A forest that knows the toy."""
    X, y, t, _, _ = table(99)
    if kind == "classes":
        return RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, LABELS[y])
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, t)


def fit_cut(model, X, y, w, size, rng=None, sample=120):
    """The model fitted to rows in memory, or in chunks, with blocks of `size` rows and a small sample."""
    with (
        mock.patch.object(chunks, "N_SAMPLE", sample),
        mock.patch.object(chunks, "block_rows", lambda d: size),
    ):
        if rng is None:
            return model.fit(X, y, w)
        order = cut(rng, len(y))
        return model.fit_chunks(lambda: ((rows_at(X, at), y[at], w[at]) for at in order))


def same_fit(a, b, X):
    """Assert that two fits say the same."""
    assert str(a.rules_) == str(b.rules_)
    for one, other in zip(a.rules_.rules, b.rules_.rules, strict=True):
        assert one.conditions == other.conditions
        np.testing.assert_allclose(one.leaf.value, other.leaf.value, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            [one.support, one.coverage, one.fidelity],
            [other.support, other.coverage, other.fidelity],
            rtol=1e-10,
            atol=1e-12,
        )
    np.testing.assert_allclose(a.fic_, b.fic_, rtol=1e-10)
    np.testing.assert_allclose(
        [a.error_, a.overlap_, a.fidelity_], [b.error_, b.overlap_, b.fidelity_], rtol=1e-10
    )
    assert a.n_components_ == b.n_components_ and all(
        map(np.array_equal, a.bins_.counts, b.bins_.counts)
    )
    assert np.array_equal(a.rules_.predict(X), a.predict(X)) and np.array_equal(
        a.predict_posterior(X).shape, (len(X),)
    )


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        case({"target": "ensemble"}, quick=False),
        case({"penalty": 0.0}, quick=False),
    ],
)
@examples(2)
@given(seed=st.integers(0, 10**6), size=st.integers(20, 250))
def test_blocks_of_any_size_give_the_rules_of_one_block(kind, changed, seed, size):
    X, y, t, w, rng = table(seed)
    target = LABELS[y] if kind == "classes" else t
    model = estimator(kind, **changed)
    once = fit_cut(model, X, target, w, 10**9)
    assert len(once.rules_.rules) > 1 and once.rules_.rules[0].support < w.sum()
    same_fit(once, fit_cut(estimator(kind, **changed), X, target, w, size), X)
    same_fit(once, fit_cut(estimator(kind, **changed), X, target, w, size, rng), X)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_table_within_the_sample_is_one_block_however_it_comes(kind):
    X, y, t, w, rng = table(1)
    target = LABELS[y] if kind == "classes" else t
    plain = estimator(kind, forest=False).fit(X, target, w)
    streamed = fit_cut(estimator(kind, forest=False), X, target, w, 50, rng, sample=1000)
    assert (
        plain.rules_ == streamed.rules_
        and plain.fic_ == streamed.fic_
        and plain.error_ == streamed.error_
    )
    assert np.array_equal(plain.model_.eta, streamed.model_.eta)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_forest_that_must_be_grown_is_grown_from_the_sample(kind):
    X, y, t, w, rng = table(2)
    target = LABELS[y] if kind == "classes" else t
    once = fit_cut(estimator(kind, forest=False), X, target, w, 10**9)
    same_fit(once, fit_cut(estimator(kind, forest=False), X, target, w, 64, rng), X)
    assert once.estimator_.estimators_[0].tree_.n_node_samples[0] <= 120
    assert (
        once.rules_.rules[0].support <= w.sum()
        and sum(r.support for r in once.rules_.rules) == w.sum()
    )


def test_frames_with_labels_in_blocks():
    rng = np.random.default_rng(0)
    frame, t = mixed(rng, 400)
    w = rng.integers(0, 3, 400).astype(float)
    cases = [
        (RuleMixtureRegressor, HistGradientBoostingRegressor, t),
        (RuleMixtureRegressor, None, t),
        (RuleMixtureClassifier, HistGradientBoostingClassifier, LABELS[np.digitize(t, [0.5, 1.5])]),
    ]
    for cls, ensemble, target in cases:
        for model in (
            [None]
            if ensemble is None
            else [
                ensemble(max_iter=5, random_state=0),
                ensemble(max_iter=5, random_state=0).fit(frame, target),
            ]
        ):
            quick = QUICK | {"n_init": 1, "search": EM(n_components=4, max_iter=15)}
            once = fit_cut(cls(model, **quick), frame, target, w, 10**9)
            same_fit(once, fit_cut(cls(model, **quick), frame, target, w, 77, rng), frame)
            assert once.columns_ == once.rules_.columns


def test_said_thresholds_keep_rows_that_are_not_in_the_sample():
    X, y, t, w, rng = table(5, n=600)
    model = fit_cut(estimator("numbers"), X, t, w, 100, sample=60)
    asked = [
        np.unique(
            np.concatenate(
                [
                    tree.tree_.threshold[tree.tree_.feature == j]
                    for tree in model.estimator.estimators_
                ]
            )
        )
        for j in range(3)
    ]
    conditions = [c for rule in model.rules_.rules for c in rule.conditions]
    assert conditions
    for split, _ in conditions:
        (j,) = split.features
        x = X[w > 0, j]
        if np.isfinite(split.threshold):
            assert any(np.array_equal(x > split.threshold, x > b) for b in asked[j])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_questions_answers_and_measures_are_those_of_all_rows(kind):
    X, y, t, w, rng = table(6, n=500)
    target = LABELS[y] if kind == "classes" else t
    model = estimator(kind)
    fit_cut(model, X, target, w, 90, rng, sample=60)
    bins = merge_identical(
        X[w > 0], ensemble_thresholds(read_ensemble(model.estimator, model.columns_))
    )
    assert all(map(np.array_equal, model.bins_.thresholds, bins.thresholds))
    assert all(map(np.array_equal, model.bins_.counts, bins.counts))
    chosen = model.rules_.apply(X)
    numbers = np.eye(3)[y] if kind == "classes" else t
    for r, rule in enumerate(model.rules_.rules):
        mine = np.append(w[chosen == r], float(kind == "classes"))  # a row like all rows
        centre = np.average(numbers, axis=0, weights=w)
        values = np.concatenate([numbers[chosen == r], centre[None]])
        np.testing.assert_allclose(rule.leaf.value, np.average(values, axis=0, weights=mine))
        assert rule.support == w[chosen == r].sum()
    loss = model.predict(X) != target if kind == "classes" else (model.predict(X) - target) ** 2
    assert model.error_ == pytest.approx(np.average(loss, weights=w))
    assert model.overlap_ == pytest.approx(np.average(coverage(model.rules_, X), weights=w))
    measured = model.rules_.measure(X, model.estimator.predict(X), w)
    assert model.fidelity_ == pytest.approx(measured.fidelity)


@pytest.mark.slow
def test_200_000_rows_in_memory_and_streamed():
    rng = np.random.default_rng(0)
    n = 200_000
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(float)
    X[rng.random(n) < 0.05, 3] = np.nan
    y = LABELS[(X[:, 0] > 0.2).astype(int) + (X[:, 1] > 1)]
    w = rng.integers(0, 3, n).astype(float)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:3000], y[:3000])
    quick = QUICK | {"n_init": 1, "search": EM(n_components=4, max_iter=6)}
    model = RuleMixtureClassifier(forest, **quick).fit(X, y, w)
    parts = [(X[at], y[at], w[at]) for at in np.array_split(np.arange(n), [7, 90_000, 130_001])]
    streamed = RuleMixtureClassifier(forest, **quick).fit_chunks(parts)
    same_fit(model, streamed, X[:1000])
    assert sum(rule.support for rule in model.rules_.rules) == w.sum()
    assert model.error_ == pytest.approx(np.average(model.predict(X) != y, weights=w), rel=1e-12)
    said = forest.predict(X)
    assert model.fidelity_ == pytest.approx(
        np.average(model.predict(X) == said, weights=w), rel=1e-12
    )
    assert map_predictions(
        model.model_, incidence(bin_codes(X[:50], model.bins_), model.bins_)
    ).shape == (50,)


def test_what_cannot_be_is_refused_before_and_while_rows_are_read():
    X, y, t, w, _ = table(0)

    def never():
        raise AssertionError("read although a parameter is wrong")

    with pytest.raises(ValueError, match="max_rules must be an integer of at least 1, got 0"):
        estimator("classes", max_rules=0).fit_chunks(never)
    with pytest.raises(ValueError, match="random_state must be"):
        estimator("numbers", random_state=-1).fit_chunks([(X, t)])
    with pytest.raises(
        ValueError, match="estimator must be a classification ensemble, got RandomForestRegressor"
    ):
        RuleMixtureClassifier(fitted("numbers"), **QUICK).fit_chunks([(X, y)])
    with pytest.raises(
        ValueError, match="estimator must predict the classes of y, 'no', 'perhaps', got"
    ):
        estimator("classes").fit_chunks([(X[y < 2], LABELS[y[y < 2]])])
    with pytest.raises(ValueError, match="estimator must match X"):
        estimator("numbers").fit_chunks([(X[:, :2], t)])
    with pytest.raises(ValueError, match="chunk 2: "):
        estimator("numbers").fit_chunks([(X, t), (X[:, :2], t)])


def test_the_path_of_sizes_is_that_of_the_rows_at_once():
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    forest = RandomForestClassifier(10, random_state=0).fit(X[::-1], y[::-1])  # bags of other rows
    settings = dict(n_init=1, n_perturbations=5, random_state=0)
    once = RuleMixtureClassifier(forest, **settings).fit(X, y)
    parts = [(X[:100], y[:100]), (X[100:], y[100:])]
    parted = RuleMixtureClassifier(forest, **settings).fit_chunks(parts)
    assert once.path_.equals(parted.path_) and len(once.path_) > 2
    for size in once.path_["size"]:
        assert once.at(int(size)).rules_ == parted.at(int(size)).rules_
        assert np.allclose(
            once.at(int(size)).feature_importances_, parted.at(int(size)).feature_importances_
        )
