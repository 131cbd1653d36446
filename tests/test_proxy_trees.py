"""A proxy is the closest tree to its reference: pruned exactly, the same for any n_jobs, said as it predicts."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.tables import mixed_frame
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fabinterp.blackbox.wrapping import as_reference
from fabinterp.proxy.growing import greedy_tree, look_ahead
from fabinterp.proxy.proxy_data import ProxyData
from fabinterp.proxy.proxy_trees import (
    mean_log_lik,
    mean_log_prob,
    mix_with_observed,
    observed_target,
    synthetic_cells,
    synthetic_table,
)
from fabinterp.proxy.prune import enforce_min_weight, pruning_path
from fabinterp.proxy.tree_estimators import ProxyTreeClassifier, ProxyTreeRegressor
from fabinterp.proxy.tree_sizes import choose_by_losses, grow_tree, held_out_log_lik
from fabinterp.rows.array_tree import (
    array_to_rules_tree,
    best_pruning_of_size,
    preorder,
    prune_at,
    shorten_thresholds,
    with_gaps,
)
from fabinterp.rules.core import read_columns
from fabinterp.rules.ruleset import RuleSet


def task(seed, n=30, d=3, n_classes=0, gaps=0.1):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)).round(1)
    Z[rng.random((n, d)) < gaps] = np.nan
    target = rng.dirichlet(np.full(n_classes, 0.5), n) if n_classes else rng.normal(size=n)
    return Z, target, rng.integers(1, 4, n).astype(float), rng


def loss_of(target, w):
    mean = np.average(target, axis=0, weights=w)
    if target.ndim == 1:
        return float(w @ (target - mean) ** 2)
    return float(-w @ (target * np.log(np.where(target > 0, mean, 1.0))).sum(axis=1))


def best_split_loss(Z, target, w, min_leaf):
    """The least loss after any one question, gaps on either side or alone; by trying all."""
    least = np.inf
    for z in Z.T:
        gap = np.isnan(z)
        sides = [
            (z <= cut) | (gap & left) for cut in np.unique(z[~gap]) for left in (False, True)
        ] + [~gap]
        for left in sides:
            if min(w[left].sum(), w[~left].sum()) >= min_leaf and left.any() and not left.all():
                least = min(
                    least, loss_of(target[left], w[left]) + loss_of(target[~left], w[~left])
                )
    return least


def every_pruning(grown, k=0):
    yield (k,)
    if grown.feature[k] >= 0:
        for left in every_pruning(grown, grown.no[k]):
            for right in every_pruning(grown, grown.yes[k]):
                yield left + right


def leaf_loss(grown):
    return grown.loss[grown.feature < 0].sum()


# ------------------------------------------------------------------ growing


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([0, 2, 3]),
    min_leaf=st.sampled_from([1, 3]),
    gaps=st.sampled_from([0.0, 0.2]),
)
@examples(40)
def test_every_question_is_the_best_one_that_its_rows_allow(seed, n_classes, min_leaf, gaps):
    Z, target, w, _ = task(seed, n_classes=n_classes, gaps=gaps)
    grown = greedy_tree(Z, target, w, max_depth=3, min_leaf=min_leaf)
    inside = {0: np.ones(len(Z), bool)}
    for k, j in enumerate(grown.feature):
        rows = inside[k]
        assert np.isclose(grown.weight[k], w[rows].sum())
        assert np.allclose(grown.value[k], np.average(target[rows], axis=0, weights=w[rows]))
        assert np.isclose(grown.loss[k], loss_of(target[rows], w[rows]), atol=1e-9)
        if j < 0:
            continue
        z = Z[:, j]
        left = rows & np.where(np.isnan(z), ~grown.missing[k], z <= grown.threshold[k])
        inside[grown.no[k]] = left
        inside[grown.yes[k]] = rows & ~left
        after = grown.loss[grown.no[k]] + grown.loss[grown.yes[k]]
        assert np.isclose(
            after, best_split_loss(Z[rows], target[rows], w[rows], min_leaf), rtol=1e-6, atol=1e-9
        )
        assert min(grown.weight[[grown.no[k], grown.yes[k]]]) >= min_leaf * (1 - 1e-9)


@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([0, 3]), most=st.integers(1, 9))
@examples(25)
def test_best_first_takes_the_largest_gain_each_time_and_looking_ahead_never_loses(
    seed, n_classes, most
):
    Z, target, w, _ = task(seed, 40, n_classes=n_classes)
    whole = greedy_tree(Z, target, w, min_leaf=2)
    small = greedy_tree(Z, target, w, max_leaves=most, min_leaf=2)
    losses = [whole.loss[0]]
    ends = {0}
    while len(losses) < most:
        gain = {
            k: whole.loss[k] - whole.loss[[whole.no[k], whole.yes[k]]].sum()
            for k in ends
            if whole.feature[k] >= 0
        }
        if not gain:
            break
        k = max(gain, key=gain.get)
        ends = ends - {k} | {int(whole.no[k]), int(whole.yes[k])}
        losses.append(losses[-1] - gain[k])
    assert small.n_leaves == len(losses) and np.isclose(
        leaf_loss(small), losses[-1], rtol=1e-6, atol=1e-9
    )
    ahead = look_ahead(Z, target, w, max_leaves=most, min_leaf=2)
    assert ahead.n_leaves <= most and leaf_loss(ahead) <= leaf_loss(small) * (1 + 1e-6) + 1e-9
    for tree in (small, ahead):
        assert preorder(tree.yes, tree.no).tolist() == list(range(len(tree.feature)))
        answer = tree.leaf_values(Z)
        found = (
            w @ (target - answer) ** 2
            if not n_classes
            else -w
            @ np.where(target > 0, target * np.log(np.where(target > 0, answer, 1)), 0).sum(axis=1)
        )
        assert np.isclose(found, leaf_loss(tree), atol=1e-9)


def test_looking_ahead_keeps_real_rows_in_every_leaf():
    Z, target, w, rng = task(5, 300)
    real = np.where(rng.random(300) < 0.2, w, 0.0)
    tree = look_ahead(
        Z, target, w, max_leaves=12, min_leaf=3, table_weights=real, min_table_weight=4.0
    )
    held = np.bincount(tree.apply(Z), real, len(tree.feature))[tree.feature < 0]
    assert tree.n_leaves > 3 and held.min() >= 4


def test_a_question_that_pays_only_later_is_found_by_looking_ahead():
    rng = np.random.default_rng(1)
    Z = np.column_stack([rng.random((400, 2)), np.zeros(400)])
    target = ((Z[:, 0] > 0.5) == (Z[:, 1] > 0.5)) + 0.4 * (Z[:, 0] > 0.5)
    Z[:, 2] = target + 0.7 * rng.normal(size=400)  # a decoy that is better at first
    greedy, ahead = (f(Z, target, max_leaves=4, min_leaf=5) for f in (greedy_tree, look_ahead))
    assert leaf_loss(ahead) < 0.1 * leaf_loss(greedy)


# ------------------------------------------------------------------ pruning


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([0, 0, 3]),
    spread=st.sampled_from([0.0, 0.3, 5.0]),
)
@examples(40)
def test_prunings_are_the_best_of_all(seed, n_classes, spread):
    Z, target, w, rng = task(seed, 14, 2, n_classes)
    grown = greedy_tree(Z, target, w, max_depth=3, min_leaf=2)
    every = [(len(ends), grown.loss[list(ends)].sum()) for ends in every_pruning(grown)]

    def cost(loss):
        return (
            2 * loss / w.sum() if n_classes else np.log((max(loss, 0) + spread) / w.sum() + 1e-300)
        )

    path = pruning_path(grown, spread)
    for alpha in np.exp(rng.uniform(-7, 1, 30)):
        tree = prune_at(grown, path.leaf_mask(path.index_of(alpha)))
        assert tree.n_leaves == path.sizes[path.index_of(alpha)]
        assert np.isclose(leaf_loss(tree), path.losses[path.index_of(alpha)], atol=1e-9)
        mine = cost(leaf_loss(tree)) + alpha * tree.n_leaves
        assert mine <= min(cost(loss) + alpha * size for size, loss in every) + 1e-7
    assert prune_at(grown, path.leaf_mask(path.index_of(0.0))).n_leaves == grown.n_leaves
    assert prune_at(grown, path.leaf_mask(path.index_of(1e12))).n_leaves == 1
    assert (
        (np.diff(path.sizes) < 0).all() and (np.diff(path.alphas) > 0).all() and path.alphas[0] == 0
    )
    for most in range(1, 9):
        tree = prune_at(grown, best_pruning_of_size(grown, most))
        least = min(loss for size, loss in every if size <= most)
        assert tree.n_leaves <= most and np.isclose(leaf_loss(tree), least, atol=1e-9)


@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([0, 3]))
@examples(15)
def test_held_out_score_is_the_mean_log_likelihood_of_each_pruning(seed, n_classes):
    Z, target, w, rng = task(seed, 60, n_classes=n_classes)
    var = np.zeros(60) if n_classes else rng.random(60)
    out = ProxyData(Z[40:], target[40:], var[40:], w[40:], 20)
    grown = greedy_tree(Z[:40], target[:40], w[:40], min_leaf=3)
    spread = float(w[:40] @ var[:40])
    path = pruning_path(grown, spread)
    scores = held_out_log_lik(grown, path, spread, out)
    for i, score in enumerate(scores):
        tree = prune_at(grown, path.leaf_mask(i))
        if n_classes:
            leaf = tree.apply(out.Z)
            shares = (tree.value * tree.weight[:, None] + tree.value[0]) / (
                tree.weight[:, None] + 1
            )
            expected = w[40:] @ mean_log_prob(out.target, shares[leaf])
        else:
            left = (leaf_loss(tree) + spread) / w[:40].sum()
            expected = w[40:] @ mean_log_lik(out.target, out.var, tree.leaf_values(out.Z), left)
        assert np.isclose(score, expected)


@given(seed=st.integers(0, 10**6))
@examples(25)
def test_short_thresholds_part_the_rows_alike(seed):
    Z, target, w, rng = task(seed, 50)
    Z = Z + 1e-3 * rng.normal(size=Z.shape)
    grown = greedy_tree(Z, target, w, max_leaves=8)
    short = shorten_thresholds(with_gaps(grown, Z))
    assert np.array_equal(short.apply(Z), grown.apply(Z))
    columns = read_columns(Z)
    tree = array_to_rules_tree(short, columns)
    assert np.array_equal(tree.predict(Z), short.leaf_values(Z))
    digits = [
        len(repr(float(t)).replace("-", "").strip("0."))
        for t in short.threshold[short.feature >= 0]
    ]
    assert np.mean(digits) < 7


# ------------------------------------------------------------------ made-up rows


def says(frame):
    """A model of a frame with gaps and labels: numbers."""
    size = frame["size"].fillna(-1).to_numpy()
    red = frame["colour"].isin(["red", "black"]).to_numpy()
    return np.where(red, 3.0, 0.0) + (size > 0.5) + 0.5 * (frame["word"] == "a").to_numpy()


def test_made_up_rows_keep_labels_gaps_and_each_columns_values():
    rng = np.random.default_rng(0)
    frame = mixed_frame(rng, 50)
    w = np.where(np.arange(50) < 5, 0.0, 1.0)
    cells = synthetic_cells(rng, w, 4, 4000, share=0.3)
    assert cells.min() >= 5 and cells.shape == (4000, 4)
    own = np.array(
        [np.bincount(row).max() for row in cells]
    )  # how many cells come from the same row
    assert 0.65 < np.mean(own / 4) < 0.85
    made = synthetic_table(frame, cells)
    assert (made.dtypes == frame.dtypes).all()
    for name in frame:
        known = frame[name][5:]
        seen = made[name]
        assert set(seen.dropna()) == set(known.dropna())
        assert abs(seen.isna().mean() - known.isna().mean()) < 0.05
    X = rng.normal(size=(50, 4))
    assert np.array_equal(synthetic_table(X, cells), np.take_along_axis(X, cells, 0))


def test_frames_with_labels_and_gaps():
    rng = np.random.default_rng(1)
    frame = mixed_frame(rng, 300)
    model = ProxyTreeRegressor(says, size=8, random_state=0).fit(frame)
    assert model.fidelity_ > 0.9
    assert np.array_equal(model.rules_.predict(frame), model.predict(frame))
    assert np.array_equal(model.tree_.predict(frame), model.predict(frame))
    assert "colour" in str(model.rules_) and "red" in str(model.rules_)
    assert RuleSet.from_json(model.rules_.to_json()) == model.rules_
    unseen = frame.copy()
    unseen["word"] = "never"
    unseen["colour"] = None
    assert np.isfinite(model.predict(unseen)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.drop(columns="size"))
    y = np.array(["few", "many"])[(says(frame) > 2).astype(int)]
    spoken = ProxyTreeClassifier(size=5).fit(frame, y)
    assert set(spoken.predict(frame)) == {"few", "many"} and spoken.score(frame, y) > 0.8
    assert np.array_equal(spoken.rules_.predict_proba(frame), spoken.predict_proba(frame))


def test_a_model_that_takes_frames_is_asked_with_frames():
    rng = np.random.default_rng(2)
    frame = mixed_frame(rng, 200).dropna()
    first = make_column_transformer((OneHotEncoder(), ["colour", "word"]), remainder="passthrough")
    piped = make_pipeline(first, RandomForestRegressor(20, random_state=0))
    model = ProxyTreeRegressor(piped, size=6, n_draws=5, random_state=0).fit(frame, says(frame))
    assert model.fidelity_ > 0.9 and len(model.trees_) == 5
    assert not hasattr(piped, "n_features_in_")  # the pipeline that was given stays unfitted


@pytest.mark.parametrize("max_leaves", [4, 9])
def test_no_leaf_without_rows_of_the_table(max_leaves):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0, min_samples_leaf=5).fit(X, y)
    for lookahead in (True, False):
        model = ProxyTreeClassifier(
            forest, size=max_leaves, lookahead=lookahead, random_state=0
        ).fit(X)
        assert min(rule.support for rule in model.rules_.rules) >= 5
        assert sum(rule.support for rule in model.rules_.rules) == 150


# ------------------------------------------------------------------ estimators


def forest_and_table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    y = np.where(X[:, 0] > 0.3, 2.0, 0.0) + X[:, 1] + 0.3 * rng.normal(size=n)
    return RandomForestRegressor(15, min_samples_leaf=3, random_state=0).fit(X, y), X, y


def test_one_seed_one_answer_whatever_the_number_of_threads():
    forest, X, _ = forest_and_table()
    fits = [
        ProxyTreeRegressor(forest, n_draws=6, n_jobs=jobs, random_state=3, n_synthetic=300).fit(X)
        for jobs in (None, 2)
    ]
    for other in fits[1:]:
        assert (
            other.tree_ == fits[0].tree_
            and other.trees_ == fits[0].trees_
            and other.rules_ == fits[0].rules_
        )
        assert np.array_equal(other.leaf_draws_, fits[0].leaf_draws_)
    again = pickle.loads(pickle.dumps(fits[0]))
    assert np.array_equal(again.predict(X), fits[0].predict(X))


@pytest.mark.parametrize("lookahead", [True, False])
def test_a_weight_is_a_row_repeated_and_order_does_not_matter(lookahead):
    forest, X, y = forest_and_table()
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, len(X))
    order = rng.permutation(np.repeat(np.arange(len(X)), w))
    for reference, more in (
        (forest.predict, {"n_draws": 3}),
        (None, {}),
        (None, {"max_leaves": 6}),
    ):
        make = ProxyTreeRegressor(
            reference, lookahead=lookahead, random_state=0, n_synthetic=200, **more
        )
        one = clone(make).fit(X, y, w)
        two = clone(make).fit(X[order], y[order])
        assert one.tree_ == two.tree_ and np.isclose(
            getattr(one, "var_", 0), getattr(two, "var_", 0)
        )
        assert [r.support for r in one.rules_.rules] == [r.support for r in two.rules_.rules]


def test_alpha_and_size():
    X, y = load_diabetes(return_X_y=True)
    process = GaussianProcessRegressor(
        RBF(0.3) + WhiteKernel(1.0), normalize_y=True, optimizer=None
    ).fit(X, y)
    make = ProxyTreeRegressor(as_reference(process), lookahead=False, n_synthetic=0, random_state=0)
    whole, root = (clone(make).set_params(alpha=alpha).fit(X) for alpha in (0, 1e9))
    assert (
        whole.n_leaves_ == whole.pruning_path_.sizes[0] > 30
        and root.n_leaves_ == 1
        and np.ptp(root.predict(X)) == 0
    )
    for most in (1, 2, 5, 9):
        model = clone(make).set_params(max_leaves=most).fit(X)
        both = clone(make).set_params(max_leaves=most, alpha=0).fit(X)
        assert model.n_leaves_ == most >= both.n_leaves_
    mine = clone(make).set_params(alpha="cv").fit(X)
    assert 1 < mine.n_leaves_ < whole.n_leaves_ and mine.alpha_ > 0
    assert clone(make).set_params(max_depth=0, lookahead=True).fit(X).n_leaves_ == 1
    assert clone(make).set_params(max_depth=2, lookahead=True, alpha=0).fit(X).tree_.depth == 2


def test_without_a_reference_it_is_cart():
    X, y = load_diabetes(return_X_y=True)
    model = ProxyTreeRegressor(alpha=0, min_samples_leaf=5).fit(X, y)
    assert np.isclose(model.var_, np.mean((y - model.predict(X)) ** 2))
    cart = ProxyTreeRegressor(random_state=0)
    assert 0.25 < cross_val_score(cart, X, y).mean() < 0.5
    assert GridSearchCV(cart, {"max_leaves": [2, 5]}, cv=3).fit(X, y).best_params_ == {
        "max_leaves": 5
    }


def test_uncertainty_adds_up():
    X, y = load_diabetes(return_X_y=True)
    ridge = BayesianRidge().fit(X, y)
    model = ProxyTreeRegressor(ridge, size=6, n_draws=12, n_synthetic=0, random_state=0).fit(X)
    reference = model.reference_
    b = model.n_leaves_
    assert (
        model.leaf_draws_.shape == (12, b)
        and model.leaf_vars_.shape == (12,)
        and len(model.trees_) == 12
    )
    asked = [{s.features[0] for s in tree.splits if s is not None} for tree in model.trees_]
    assert np.allclose(
        model.inclusion_, [np.mean([j in columns for columns in asked]) for j in range(10)]
    )
    draws = reference.draws(X, 12)
    noise = reference.noise(X, 12)
    leaf = model.rules_.apply(X)
    assert np.allclose(model.leaf_draws_[7, leaf[3]], draws[7, leaf == leaf[3]].mean())
    assert np.isclose(
        model.leaf_vars_[7], np.mean(noise[7] + (draws[7] - model.leaf_draws_[7, leaf]) ** 2)
    )
    dist = model.predict_dist(X)
    assert np.allclose(dist.mean(), model.leaf_draws_.mean(axis=0)[leaf])
    # Law of total variance: the mixture's variance is that of one Gaussian fitted to the draws'
    # mean and variance.
    total = np.mean(
        noise.mean(axis=0) + draws.var(axis=0) + (draws.mean(axis=0) - dist.mean()) ** 2
    )
    assert np.isclose(np.mean(dist.variance()), total)
    half = dist.quantile(0.5)
    assert np.allclose(dist.cdf(half), 0.5) and np.all(dist.quantile(0.9) > half)
    said = model.split_frame()
    assert (
        np.isclose(said.query("place == 'first'")["share"].sum(), 1)
        and said["share"].between(0, 1).all()
    )
    first = model.trees_[0].splits[0]
    row = said.query(f"place == 'first' and column == 'x{first.features[0]}'").iloc[0]
    roots = [tree.splits[0] for tree in model.trees_ if tree.splits[0].features == first.features]
    assert (
        np.isclose(row["threshold"], np.mean([s.threshold for s in roots]))
        and row["share"] == len(roots) / 12
    )
    single = ProxyTreeRegressor(ridge, size=6, n_synthetic=0, random_state=0).fit(X)
    mean, var = as_reference(ridge).mean_var(X)
    one = single.predict_dist(X)
    assert np.allclose(one.mean(), single.predict(X))
    assert np.allclose(one.variance(), np.mean(var + (mean - single.predict(X)) ** 2))
    y0 = single.predict(X)
    assert np.allclose(one.log_density(y0), mean_log_lik(y0, 0.0, y0, one.variance()))


def test_class_draws():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(12, random_state=0, min_samples_leaf=4).fit(X, names)
    model = ProxyTreeClassifier(forest, n_draws=12, random_state=0, n_synthetic=300, size=5).fit(X)
    assert model.leaf_draws_.shape == (12, 5, 3) and np.allclose(model.leaf_draws_.sum(axis=2), 1)
    leaf = model.rules_.apply(X)
    assert np.allclose(model.leaf_draws_.mean(axis=0)[leaf], model.predict_proba(X))
    assert (
        list(model.classes_) == ["setosa", "versicolor", "virginica"]
        and model.score(X, names) > 0.9
    )
    assert set(model.trees_[0].predict(X)) <= set(model.classes_) and model.fidelity_ > 0.9


def test_given_draws_for_the_rows():
    X, y = load_diabetes(return_X_y=True)
    draws = BayesianRidge().fit(X, y).predict(X) + np.random.default_rng(0).normal(size=(20, 1))
    model = ProxyTreeRegressor(draws, size=4, n_draws=20, lookahead=False).fit(X)
    assert model.leaf_draws_.shape == (20, 4)
    assert np.allclose(model.leaf_draws_.mean(axis=0)[model.rules_.apply(X)], model.predict(X))
    one = ProxyTreeRegressor(draws[:1], size=4).fit(X)  # S = 1
    assert one.n_leaves_ == 4 and one.fidelity_ > 0.5
    pair = ProxyTreeRegressor((draws.mean(axis=0), draws.var(axis=0)), size=4).fit(X)
    assert np.allclose(pair.predict(X), model.predict(X))
    shares = np.stack([1 - (y > 150) * 0.9, (y > 150) * 0.9], axis=1)
    assert ProxyTreeClassifier(shares[None], size=3).fit(X).classes_.tolist() == [0, 1]


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (np.zeros((3, 7)), "draws must have shape"),
        (np.full((3, 442), np.nan), "draws must be finite, got nan"),
        (np.zeros((0, 442)), "draws must have shape"),
        (np.full((2, 442, 2), 0.5), "reference must predict numbers"),
        (
            RandomForestClassifier(2).fit([[0.0] * 10, [1.0] * 10], [0, 1]),
            "reference must predict numbers",
        ),
        (object(), "^reference must be a fitted estimator, a function of X or draws, got object"),
    ],
)
def test_references_that_are_none(reference, said):
    X, _ = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=said):
        ProxyTreeRegressor(reference).fit(X)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"max_leaves": 0}, "max_leaves must be an integer of at least 1, got 0"),
        ({"max_depth": -1}, "max_depth must be"),
        ({"alpha": -0.1}, "alpha must be"),
        ({"alpha": "aic"}, "alpha must be"),
        ({"cv": 1}, "cv must be"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"n_synthetic": -1}, "n_synthetic must be"),
        ({"synthetic_share": 1.0}, r"synthetic_share must be at least 0 and below 1"),
        ({"reference_share": 1.5}, r"reference_share must be from 0 to 1"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"lookahead": "yes"}, "lookahead must be"),
        ({"random_state": "a"}, "random_state must be"),
        ({"min_samples_leaf": -1.0}, "min_samples_leaf must be"),
    ],
)
def test_bad_parameters(parameters, said):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=said):
        ProxyTreeRegressor(**parameters).fit(X, y)


def test_tables_that_say_nothing():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="requires y"):
        ProxyTreeRegressor().fit(X)
    with pytest.raises(AttributeError, match="n_draws"):
        ProxyTreeRegressor(size=2).fit(X, y).split_frame()
    with pytest.raises(ValueError, match="inconsistent"):
        ProxyTreeRegressor(lambda X: X[:, 0]).fit(X, y[:-1])
    with pytest.raises(ValueError, match="[Ss]ample.weight"):
        ProxyTreeRegressor().fit(X, y, np.zeros(len(y)))
    flat = ProxyTreeRegressor(lambda X: np.ones(len(X)), random_state=0).fit(X)
    assert flat.n_leaves_ == 1 and (flat.predict(X) == 1).all()
    assert np.isfinite(flat.predict_dist(X[:3]).quantile(0.9)).all()
    one = ProxyTreeClassifier().fit(X, np.full(len(X), "only"))
    assert set(one.predict(X)) == {"only"} and np.array_equal(
        one.predict_proba(X), np.ones((len(X), 1))
    )
    huge = X.copy()
    huge[0, 0] = 1e300
    with pytest.raises(ValueError, match="float32"):
        ProxyTreeRegressor().fit(huge, y)


def test_size_is_what_grows_the_folds():
    Z, target, w, _ = task(0, 60)
    rows = ProxyData(Z, target, np.ones(60), w, 40)
    whole = grow_tree(rows, ProxyTreeRegressor()._options())
    assert (
        np.bincount(whole.apply(Z[:40]), w[:40], len(whole.feature))[whole.feature < 0].min() >= 5
    )


def test_a_pipeline_that_takes_gaps_is_explained_with_gaps():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.arange(120) % 2
    X[::7, 0] = np.nan
    pipe = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    model = ProxyTreeClassifier(pipe, size=4, random_state=0).fit(X)
    assert (model.predict(X) == model.rules_.predict(X)).all()


# The target


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 3]), st.sampled_from([0.0, 0.3, 0.5]))
@examples(20)
def test_a_mixture_is_the_table_with_each_row_twice(seed, n_classes, share):
    Z, target, w, rng = task(seed, n_classes=n_classes)
    n = len(Z)
    seen = np.eye(3)[rng.integers(0, 3, n)] if n_classes else rng.normal(size=n)
    noise = np.zeros((2, n)) if n_classes else rng.random((2, n))
    mixed = mix_with_observed(ProxyData(Z, target, noise[0], w, n), (seen, noise[1]), share)
    once = greedy_tree(Z, mixed.target, w, max_leaves=4, min_leaf=3)
    twice = greedy_tree(
        np.vstack([Z, Z]),
        np.concatenate([target, seen]),
        np.concatenate([share * w, (1 - share) * w]),
        max_leaves=4,
        min_leaf=3,
    )
    assert (
        np.allclose(
            once.loss[0] + mixed.irreducible_loss,
            twice.loss[0] + w @ (share * noise[0] + (1 - share) * noise[1]),
        )
        or n_classes
    )
    assert np.array_equal(once.feature, twice.feature) and np.allclose(once.value, twice.value)


def test_what_is_observed_at_rows_that_are_there_several_times():
    place = np.array([0, 1, 0, -1, 1])
    w = np.array([1.0, 1.0, 3.0, 0.0, 1.0])
    mean, var = observed_target(np.array([1.0, 2.0, 5.0, 99.0, 2.0]), w, place, 2)
    assert np.allclose(mean, [4.0, 2.0]) and np.allclose(var, [3.0, 0.0])
    shares, none = observed_target(np.eye(2)[[0, 0, 1, 1, 1]], w, place, 2)
    assert np.allclose(shares, [[0.25, 0.75], [0.5, 0.5]]) and not none.any()


def test_a_column_of_y_chooses_the_size_as_its_numbers_do():
    forest, X, y = forest_and_table()
    settings = {"max_leaves": 4, "random_state": 0, "n_synthetic": 200}
    flat = ProxyTreeRegressor(forest, **settings).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of a column
        column = ProxyTreeRegressor(forest, **settings).fit(X, y[:, None])
    assert column.path_.equals(flat.path_) and column.tree_ == flat.tree_


def test_the_share_of_the_reference():
    _, X, y = forest_and_table(n=200)
    line = LinearRegression().fit(X, X[:, 3])
    settings = {"size": 5, "n_synthetic": 0, "lookahead": False, "random_state": 0}
    trees = {
        share: ProxyTreeRegressor(line, reference_share=share, **settings).fit(X, y)
        for share in (0, 0.5, 1)
    }
    cart = ProxyTreeRegressor(**settings).fit(X, y)
    assert np.allclose(trees[0].predict(X), cart.predict(X))
    assert trees[1].tree_ == ProxyTreeRegressor(line, **settings).fit(X).tree_
    assert trees[0].fidelity_ < trees[0.5].fidelity_ < trees[1].fidelity_


def test_a_forest_is_evaluated_by_its_out_of_bag_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    noise = rng.normal(size=200)
    forest = RandomForestRegressor(30, random_state=0).fit(X, noise)
    model = ProxyTreeRegressor(forest, random_state=0).fit(X)
    unknown = ProxyTreeRegressor(forest.predict, random_state=0).fit(X)
    errors = [one.path_["cv_error"][0] for one in (model, unknown)]
    assert errors[0] < 0.8 * errors[1]  # of the root, about the variance of the predictions


def test_the_model_is_never_fitted_again(monkeypatch):
    forest, X, y = forest_and_table()
    expected = ProxyTreeRegressor(forest, random_state=0).fit(X, y).tree_
    monkeypatch.setattr(RandomForestRegressor, "fit", None)
    assert ProxyTreeRegressor(forest, random_state=0).fit(X, y).tree_ == expected


@pytest.mark.parametrize("lookahead", [True, False])
def test_the_target_has_no_unit(lookahead):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    found = []
    for unit in (1.0, 2.0**333):  # about 1e100
        line = LinearRegression().fit(X, unit * y)
        model = ProxyTreeRegressor(line, lookahead=lookahead, random_state=0).fit(X, unit * y)
        found.append([split and split.threshold for split in model.tree_.splits])
    assert found[0] == found[1]


def test_a_share_is_any_real_number():
    forest, X, y = forest_and_table()
    settled = {"max_leaves": 3, "n_synthetic": 0, "lookahead": False}
    shares = (0.5, np.float32(0.5))
    trees = [
        ProxyTreeRegressor(forest, reference_share=share, random_state=0, **settled).fit(X, y).tree_
        for share in shares
    ]
    assert trees[0] == trees[1]


def test_bad_y():
    forest, X, y = forest_and_table()
    with pytest.raises(ValueError, match="reference_share=0.5 requires y"):
        ProxyTreeRegressor(forest, reference_share=0.5).fit(X)
    labels = np.where(y > 1, "high", "low")
    classes = RandomForestClassifier(5, random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match="y must hold classes of the reference, 'high', 'low'"):
        ProxyTreeClassifier(classes).fit(X, np.where(y > 1, "up", "low"))


@given(st.integers(0, 2**32 - 1))
@examples(50)
def test_the_words_for_a_size_are_ordered(seed):
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=(6, 20)) * rng.random((6, 1)) + rng.random((6, 1))
    w = rng.integers(1, 4, 20).astype(float)
    small, balanced, accurate = (
        choose_by_losses(losses, w, size) for size in ("small", "balanced", "accurate")
    )
    assert small <= balanced <= np.average(losses, axis=1, weights=w).argmin() <= accurate


def test_a_tie_is_resolved_in_favour_of_the_smaller_tree():
    noise = np.tile([1.0, -1.0], 50)
    losses = 1 + np.array([noise, -0.01 + 0 * noise, -0.02 + noise, noise])
    assert choose_by_losses(losses, np.ones(100), "balanced") == 1
    sure = 1 + np.array([0.02 + noise, noise, noise])  # the same difference in each row
    assert choose_by_losses(sure, np.ones(100), "balanced") == 1
    assert choose_by_losses(2.0**333 * sure, np.ones(100), "balanced") == 1


@pytest.mark.parametrize("with_y", [True, False])
def test_a_rare_class_is_predicted_or_warned_of(with_y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    rare = (X[:, 0] > 1.2) & (X[:, 1] > 0)
    y = np.where(rare ^ (rng.random(1000) < 0.01), "rare", "common")
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ProxyTreeClassifier(forest, random_state=0).fit(X, y if with_y else None)
    assert set(model.predict(X)) == {"rare", "common"}
    with pytest.warns(UserWarning, match="does not predict 'rare' for any training row"):
        ProxyTreeClassifier(forest, size=1, random_state=0).fit(X)


def test_a_price_chooses_in_place_of_the_size():
    forest, X, y = forest_and_table()
    settings = {"n_synthetic": 200, "lookahead": False, "random_state": 0}
    for alpha in (0.02, 0.1):
        model = ProxyTreeRegressor(forest, alpha=alpha, size="small", **settings).fit(X)
        path = model.pruning_path_
        assert model.n_leaves_ == path.sizes[path.index_of(alpha)] and model.alpha_ == alpha
        again = ProxyTreeRegressor(forest, size=model.n_leaves_, **settings).fit(X)
        assert again.tree_ == model.tree_ and again.alpha_ is None


def test_y_itself_has_no_share_of_a_reference():
    _, X, y = forest_and_table()
    half = ProxyTreeRegressor(reference_share=0.5, random_state=0).fit(X, y)
    assert half.tree_ == ProxyTreeRegressor(random_state=0).fit(X, y).tree_


@pytest.mark.parametrize("most", [None, 24])
def test_a_size_beyond_sixteen_is_reached(most):
    X = np.linspace(0, 1, 400)[:, None]
    settings = {"max_leaves": most, "lookahead": False, "random_state": 0}
    found = ProxyTreeRegressor(lambda Z: np.asarray(Z)[:, 0], size=20, **settings).fit(X)
    assert found.tree_.n_leaves == 20
    assert len(found.path_["size"]) == 20


def test_the_side_with_rows_of_the_table_stays():
    """Rows drawn below -1 are no rows of the table: the split there goes, its other side stays."""
    x = np.r_[np.full(20, -2.0), np.full(20, 0.0), np.full(20, 1.0)]
    target = np.r_[np.full(20, 9.0), np.full(20, 0.0), np.full(20, 4.0)]
    table_weights = (x > -1).astype(float)
    grown = greedy_tree(x[:, None], target, max_leaves=3)
    kept = enforce_min_weight(grown, x[:, None], target, np.ones(60), table_weights, 2.0)
    assert np.sort(grown.threshold[grown.feature >= 0]) == pytest.approx([-1.0, 0.5])
    assert kept.threshold[kept.feature >= 0] == pytest.approx([0.5])
    means = kept.value[kept.apply(np.array([[0.0], [1.0]]))]
    assert means.ravel() == pytest.approx([4.5, 4.0])
