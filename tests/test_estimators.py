"""A meta-tree is the exact average over prunings, whatever the tree, the table, and the calls its rows came in."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.tables import mixed_frame
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.metatree.conjugate import (
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    NormalGamma,
    sufficient_statistics,
)
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.metatree.posterior import (
    empty_state,
    one_standard_error_rule,
    reset_state,
    update_state,
)
from fabinterp.metatree.prunings import enumerate_prunings, log_prob, pruning_leaves
from fabinterp.metatree.representative import LevelTree, perfect
from fabinterp.rules.core import Columns, Leaf, Split, read_columns
from fabinterp.rules.ruleset import RuleSet, Tree


def table(seed=0, n=150, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2)
    t = np.where(X[:, 0] > 0.3, 2.0, 0.0) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, (t > 0.6).astype(int) + (t > 1.8), t


def codes(seed, n=60, K=4, M=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, M, (n, K)).astype(float)
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < 0.2)).astype(int), X[:, 1] + rng.normal(size=n)


# ------------------------------------------------------------------ judging its own case


@pytest.mark.parametrize("cls", [MetaTreeClassifier, MetaTreeRegressor])
def test_a_tree_grown_on_noise_is_cut_to_its_root(cls):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 4))
        y = rng.integers(0, 2, 150) if cls is MetaTreeClassifier else rng.normal(size=150)
        assert cls(random_state=0).fit(X, y).map_tree_.n_leaves == 1
        flat = cls(random_state=0, multiplicity=False, leaf_centre="flat").fit(X, y)
        assert flat.posterior_.leaf_prob.sum() > 1.5


def test_only_a_single_tree_that_is_grown_here_pays_for_its_cuts():
    X, y, t = table()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    fitted = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, t)
    for model in (None, tree):
        state = MetaTreeRegressor(model, max_depth=3, random_state=0).fit(X, t).state_
        assert state.log_cuts[0] > 5 and state.centre_rows == 0.5
    for model in (fitted, RandomForestRegressor(3, random_state=0)):
        state = MetaTreeRegressor(model, random_state=0).fit(X, t).state_
        assert state.log_cuts is None and state.centre_rows == 0
    asked = MetaTreeRegressor(fitted, multiplicity=True, leaf_centre="parent").fit(X, t).state_
    assert asked.log_cuts[0] > 5 and asked.centre_rows == 0.5
    forest = MetaTreeClassifier(n_trees=3, multiplicity=True, leaf_centre="parent", random_state=0)
    assert np.allclose(forest.fit(X, y).predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("leaf", ["normal", "poisson", "exponential"])
def test_rows_that_stand_at_the_parent_may_come_in_any_calls(leaf):
    X, _, t = table(3)
    t = t if leaf == "normal" else np.round(np.abs(3 * t))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, t)
    settings = {"leaf": leaf, "leaf_centre": "parent", "multiplicity": True}
    once = MetaTreeRegressor(tree, **settings).fit(X, t)
    state = once.state_
    every = np.array_split(np.random.default_rng(0).permutation(len(X)), 5)
    parted = reset_state(state)
    for rows in every:
        parted = update_state(parted, parted.leaf_sums(X[rows], t[rows], np.ones(len(rows))))
    assert np.allclose(parted.log_evidence, state.log_evidence, rtol=1e-10)
    assert np.allclose(parted.table, state.table, rtol=1e-9)
    assert np.isclose(state.leaf_values[0], t.mean(), rtol=1e-6)


@pytest.mark.parametrize(
    "changed", [{"multiplicity": True}, {"leaf_centre": "parent"}], ids=lambda v: str(v)
)
def test_a_tree_without_end_has_the_same_prior_in_all_nodes(changed):
    X, y, _ = codes(0)
    with pytest.raises(ValueError, match="if estimator lists columns and max_depth is None, got"):
        MetaTreeClassifier([0, 1], max_depth=None, **changed).fit(X, y)


# ------------------------------------------------------------------ exactness


@pytest.mark.parametrize(("M", "depth"), [(2, 4), (3, 3)])
def test_fitted_model_is_the_sum_over_all_prunings(M, depth):
    X, y, _ = codes(M, K=depth, M=M)
    g = (0.7, 0.6, 0.3, 0.2)
    model = MetaTreeClassifier(
        list(range(depth)), leaf=DirichletCategorical((0.4, 0.9)), split_prob=g
    ).fit(X, y)
    state = model.state_
    topology = state.trees.topology
    n_seen = model.state_.stats.sum(axis=1)
    assert n_seen[0] == len(y) and topology.size == (M ** (depth + 1) - 1) // (M - 1)
    every = list(enumerate_prunings(topology))
    joint = np.array(
        [
            log_prob(state.prior, T) + sum(state.log_leaf[s] for s in pruning_leaves(topology, T))
            for T in every
        ]
    )
    assert np.isclose(model.log_evidence_, np.logaddexp.reduce(joint), rtol=1e-12)
    posterior = np.exp(joint - np.logaddexp.reduce(joint))
    at = state.trees.leaves(X)[:, 0]
    share = state.family.mean(state.params)
    answer = np.zeros((len(X), 2))
    for T, p in zip(every, posterior, strict=True):
        ends = set(pruning_leaves(topology, T))
        node = at.copy()
        while not set(node.tolist()) <= ends:
            node = np.where(np.isin(node, list(ends)), node, topology.parent[node])
        answer += p * share[node]
    assert np.allclose(model.predict_proba(X), answer, rtol=1e-12)
    assert model.split_prob == g and np.isclose(state.prior.split_prob[0], 0.7)


def test_without_end_is_the_perfect_tree_for_rows_that_were_seen():
    X, y, _ = codes(1, n=25, K=7, M=2)
    leaf = BetaBernoulli(0.5, 0.5)
    endless = MetaTreeClassifier(list(range(7)), max_depth=None, leaf=leaf).fit(X, y)
    perfect_ = MetaTreeClassifier(list(range(7)), max_depth=7, leaf=leaf).fit(X, y)
    assert np.isclose(endless.log_evidence_, perfect_.log_evidence_, rtol=1e-12)
    assert np.allclose(endless.predict_proba(X), perfect_.predict_proba(X), rtol=1e-11)
    assert endless.state_.trees.topology.size < perfect_.state_.trees.topology.size / 2
    every = np.array(np.meshgrid(*[[0, 1]] * 7)).reshape(7, -1).T
    assert np.allclose(endless.predict_proba(every).sum(axis=1), 1)


@pytest.mark.measure
def test_bayesml_agrees():
    metatree = pytest.importorskip("bayesml.metatree", reason="bayesml is not installed")
    from bayesml import bernoulli

    X, y, _ = codes(4, n=300, K=5, M=2)
    model = MetaTreeClassifier([3, 0, 4, 1], leaf="bernoulli", prior=0.5, split_prob=0.5).fit(X, y)
    node_of = type(metatree.GenModel(0, 5, c_max_depth=1).gen_params().get_params()["root"])

    def node(d):
        end = d == 4
        return node_of(
            d,
            k_candidates=list(range(5)),
            h_g=0.5,
            k=None if end else [3, 0, 4, 1][d],
            leaf=end,
            sub_model=bernoulli.LearnModel(),
            children=None if end else [node(d + 1), node(d + 1)],
            ranges=np.zeros((0, 2)),
            log_children_marginal_likelihood=np.zeros(2),
        )

    theirs = metatree.LearnModel(0, 5, c_max_depth=4)
    root = node(0)
    theirs.hn_metatree_list = [root]
    theirs.hn_metatree_prob_vec = np.ones(1)
    theirs.update_posterior(x_categorical=X.astype(int), y=y, alg_type="given_MT")
    assert np.isclose(root.h_g, model.posterior_.split_prob[0], rtol=1e-12)
    assert np.allclose(
        theirs.predict_proba(x_categorical=X.astype(int)), model.predict_proba(X), rtol=1e-11
    )


# ------------------------------------------------------------------ any split into calls


def given_tree(kind):
    X, c, t = table(9, 80)
    if kind == "classes":
        return DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, c), DirichletCategorical(
            (0.5, 1.0, 0.7)
        )
    return DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, t), NormalGamma(
        0.5, 0.7, 1.0, 0.8
    )


@pytest.mark.parametrize("kind", ["classes", "numbers", "levels", "endless"])
@given(seed=st.integers(0, 10**6), calls=st.integers(1, 7))
@examples(15)
def test_any_split_into_calls_gives_the_same_posterior(kind, seed, calls):
    rng = np.random.default_rng(seed)
    if kind in ("classes", "numbers"):
        X, c, t = table(seed, 90)
        tree, leaf = given_tree(kind)
        make, y = (MetaTreeClassifier, c) if kind == "classes" else (MetaTreeRegressor, t)
        model = make(
            FrozenEstimator(tree), leaf=leaf
        )  # a clone of a plain estimator would be unfitted
    else:
        X, y, _ = codes(seed, 90, K=4, M=2)
        X[:2] = [[0, 1, 1, 1], [1, 0, 0, 0]]
        y[:2] = [0, 1]
        model = MetaTreeClassifier(
            [2, 0, 1, 3],
            leaf=DirichletCategorical((0.3, 0.8)),
            max_depth=None if kind == "endless" else 3,
        )
    w = rng.integers(0, 3, 90).astype(float)
    w[:2] = 1
    whole = clone(model).fit(X, y, w)
    parts = clone(model)
    first = {} if kind == "numbers" else {"classes": np.unique(y)}
    order = rng.permutation(np.arange(2, 90))
    for i, rows in enumerate(
        [np.concatenate([[0, 1], order[:10]]), *np.array_split(order[10:], calls)]
    ):
        parts.partial_fit(X[rows], y[rows], sample_weight=w[rows], **(first if i == 0 else {}))
    one = whole.state_
    two = parts.state_
    assert np.isclose(whole.log_evidence_, parts.log_evidence_, rtol=1e-12, atol=1e-12)
    assert one.trees.topology.size == two.trees.topology.size
    assert np.allclose(one.posterior.split_prob, two.posterior.split_prob, rtol=1e-11, atol=1e-12)
    assert np.allclose(one.stats, two.stats, rtol=1e-12, atol=1e-11)
    answer = "predict" if kind == "numbers" else "predict_proba"
    assert np.allclose(getattr(whole, answer)(X), getattr(parts, answer)(X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_thousand_calls_are_one_call(kind):
    X, c, t = table(0, 1100)
    make, y = (MetaTreeClassifier, c) if kind == "classes" else (MetaTreeRegressor, t)
    tree, leaf = given_tree(kind)
    whole = make(FrozenEstimator(tree), leaf=leaf).fit(X, y)
    parts = make(FrozenEstimator(tree), leaf=leaf)
    first = {} if kind == "numbers" else {"classes": np.unique(y)}
    blocks = np.split(np.arange(1100), np.arange(101, 1100))
    assert len(blocks) == 1000
    for i, rows in enumerate(blocks):
        parts.partial_fit(X[rows], y[rows], **(first if i == 0 else {}))
    assert np.isclose(whole.log_evidence_, parts.log_evidence_, rtol=1e-10, atol=0)
    answer = "predict" if kind == "numbers" else "predict_proba"
    assert np.allclose(getattr(whole, answer)(X), getattr(parts, answer)(X), rtol=1e-10, atol=0)
    assert np.allclose(whole.state_.stats, parts.state_.stats, rtol=1e-10, atol=1e-10)


def test_second_calls_take_single_rows_new_labels_and_refuse_new_classes():
    frame = mixed_frame(np.random.default_rng(0), 60)
    y = np.arange(60) % 2
    model = MetaTreeClassifier(random_state=0).partial_fit(frame[:40], y[:40], classes=[0, 1, 2])
    before = model.log_evidence_
    later = frame[40:].copy()
    later["word"] = "never seen"
    for i in range(20):
        model.partial_fit(later[i : i + 1], y[40 + i : 41 + i])
    assert (
        model.log_evidence_ < before
        and model.state_.total_weight[0] == 60
        and model.predict_proba(frame).shape == (60, 3)
    )
    with pytest.raises(
        ValueError, match=r"y must contain only the classes of the first call, 0, 1, 2, got 5"
    ):
        model.partial_fit(frame[:2], [1, 5])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["colour", "yes", "word"]][:2], [1, 0])
    model.partial_fit(frame[["colour", "size", "yes", "word"]][:2], [1, 0])  # put in order
    assert model.state_.total_weight[0] == 62


# ------------------------------------------------------------------ what is shown is what predicts


@pytest.mark.parametrize("seed", range(40))
def test_rules_and_tree_predict_what_predict_says(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 120))
    kind = ("classes", "normal", "linear", "poisson")[seed % 4]
    X = mixed_frame(rng, n) if seed % 3 else rng.normal(size=(n, 2)).round(1)
    size = np.nan_to_num(np.asarray(X)[:, 0].astype(float))
    y = (
        rng.choice(["no", "yes", "perhaps"], n)
        if kind == "classes"
        else rng.poisson(np.exp(size.clip(-1, 1)))
    )
    if kind == "classes":
        model = MetaTreeClassifier(max_depth=int(rng.integers(0, 6)), random_state=0)
    else:
        model = MetaTreeRegressor(max_depth=int(rng.integers(0, 6)), leaf=kind, random_state=0)
    model.fit(X, y, rng.integers(0, 3, n) + (np.arange(n) < 2))
    other = mixed_frame(rng, 200) if seed % 3 else rng.normal(size=(200, 2)) * 3
    said = model.predict(other)
    for told in (
        model.rules_,
        model.to_tree(),
        RuleSet.from_json(model.rules_.to_json()),
        Tree.from_json(model.to_tree().to_json()),
    ):
        assert np.array_equal(told.predict(other), said)
    if kind == "classes":
        assert np.array_equal(model.to_tree().predict_proba(other), model.predict_proba(other))
    assert np.isclose(
        sum(rule.support for rule in model.rules_.rules), model.state_.total_weight[0]
    )
    assert model.map_tree_.n_leaves <= model.to_tree().n_leaves


def test_levels_are_said_as_yes_no_questions():
    frame = pd.DataFrame(
        {"a": pd.Categorical(list("xyzxyzxxyz")), "b": [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]}
    )
    y = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1]
    model = MetaTreeClassifier(["a", "b"], split_prob=0.8).fit(frame, y)
    assert model.state_.trees.topology.arity == 4
    for rows in (frame, pd.DataFrame({"a": pd.Categorical(["q", None, "z"]), "b": [7, np.nan, 1]})):
        assert np.array_equal(model.to_tree().predict_proba(rows), model.predict_proba(rows))
        assert np.array_equal(model.rules_.predict(rows), model.predict(rows))
    assert "a" in str(model.rules_)


def test_a_level_of_many_labels_has_a_leaf_for_each():
    codes = np.arange(60) % 6
    frame = pd.DataFrame({"a": pd.Categorical.from_codes(codes, list("uvwxyz"))})
    y = np.array([3.0, 0.0, 5.0, 1.0, 4.0, 2.0])[codes]
    model = MetaTreeRegressor(["a"], max_depth=1).fit(frame, y + 0.01 * (np.arange(60) % 7))
    assert np.allclose(model.to_tree().predict(frame), y, atol=0.2)
    assert np.array_equal(model.to_tree().predict(frame), model.predict(frame))


def test_the_most_probable_pruning_is_the_most_frequent_draw():
    X, y, _ = codes(3, n=80, K=2, M=2)
    model = MetaTreeClassifier([0, 1], split_prob=0.5).fit(X, y)
    drawn = [tree.to_json() for tree in model.sample_trees(400, random_state=1)]
    assert drawn == [tree.to_json() for tree in model.sample_trees(400, random_state=1)]
    assert max(set(drawn), key=drawn.count) == model.map_tree_.to_json()
    mean = np.mean([Tree.from_json(tree).predict_proba(X) for tree in drawn], axis=0)
    assert np.abs(mean - model.predict_proba(X)).max() < 0.03


def test_a_forest_has_no_rules_and_says_why():
    X, y, _ = table()
    forest = MetaTreeClassifier(n_trees=3, random_state=0).fit(X, y)
    with pytest.raises(
        AttributeError,
        match="a forest of 3 meta-trees has no rules_, because it predicts an average",
    ):
        forest.rules_  # noqa: B018
    with pytest.raises(ValueError, match="t must be the position of one of 3 meta-trees, got None"):
        forest.to_tree()
    mean = np.mean([forest.to_tree(t).predict_proba(X) for t in range(3)], axis=0)
    assert np.allclose(mean, forest.predict_proba(X)) and isinstance(forest.map_tree_, Tree)
    assert len(forest.sample_trees(4, 0)) == 4 and not hasattr(forest, "rules_")


# ------------------------------------------------------------------ representative trees of every
# kind


def test_trees_of_many_kinds():
    X, y, t = table()
    models = [
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(3),
        ExtraTreesClassifier(3),
        HistGradientBoostingClassifier(max_iter=3),
    ]
    for model in models:
        fitted = clone(model).fit(X, y)
        again = None
        state = pickle.dumps(fitted)
        for given_model in (model, fitted):
            again = MetaTreeClassifier(given_model, random_state=0).fit(X, y)
            assert again.predict_proba(X).shape == (150, 3) and again.state_.total_weight[0] == 150
        assert pickle.dumps(fitted) == state
    number = MetaTreeRegressor(GradientBoostingRegressor(n_estimators=5, random_state=0)).fit(X, t)
    assert number.state_.trees.topology.n_trees == 5 and number.predict(X).std() > 0.5


def test_a_tree_with_oblique_questions_is_pruned_as_any():
    X, y, _ = table()
    columns = read_columns(X)
    tree = Tree(
        (Split((0, 1), 0.3, (1.0, 0.5)), None, Split((2,), 0.0), None, None),
        [2, -1, 3, -1, -1],
        [1, -1, 4, -1, -1],
        (None, Leaf(0.0), None, Leaf(1.0), Leaf(2.0)),
        columns,
    )
    model = MetaTreeClassifier(tree).fit(X, y)
    assert np.array_equal(model.rules_.predict(X), model.predict(X))
    assert model.posterior_.split_prob[0] > 0.99 and len(model.rules_.rules) == 3
    both = MetaTreeClassifier([tree, tree]).fit(X, y)
    assert np.allclose(both.predict_proba(X), model.predict_proba(X)) and both.n_effective_ == 2


def test_trees_that_know_their_labels_meet_another_table():
    rng = np.random.default_rng(3)
    frame = mixed_frame(rng, 200)
    y = rng.integers(0, 2, 200)
    y[frame["colour"] == "red"] = 1
    first = MetaTreeClassifier(max_depth=3, random_state=0).fit(frame, y)
    tree = first.to_tree()
    other = frame[frame["colour"] != "black"].copy()
    other["colour"] = other["colour"].cat.remove_unused_categories()
    second = MetaTreeClassifier(tree).fit(other, y[other.index])
    assert np.array_equal(second.rules_.predict(frame), second.predict(frame))
    with pytest.raises(ValueError, match="estimator must split on the columns of X"):
        MetaTreeClassifier(tree).fit(frame.rename(columns={"size": "length"}), y)


# ------------------------------------------------------------------ forests, intervals, summaries


def test_a_forest_is_no_worse_than_the_one_it_was_grown_from():
    X, y = load_breast_cancer(return_X_y=True)
    Xa, Xb, ya, yb = train_test_split(X, y, random_state=1)
    for depth in (5, 10, None):
        model = MetaTreeClassifier(RandomForestClassifier(60, max_depth=depth, random_state=0)).fit(
            Xa, ya
        )
        ratio = log_loss(yb, model.predict_proba(Xb)) / log_loss(
            yb, model.estimator_.predict_proba(Xb)
        )
        assert ratio < (1.05 if depth == 5 else 1.03)


def test_a_single_meta_tree_knows_what_it_does_not_know():
    X, y = load_breast_cancer(return_X_y=True)
    scores = []
    for seed in range(6):
        Xa, Xb, ya, yb = train_test_split(X, y, random_state=seed)
        model = MetaTreeClassifier(max_depth=None, random_state=0).fit(Xa, ya)
        tree = model.estimator_
        scores.append(
            [
                model.score(Xb, yb),
                tree.score(Xb, yb),
                log_loss(yb, model.predict_proba(Xb)),
                log_loss(yb, tree.predict_proba(Xb)),
            ]
        )
    right, tree_right, loss, tree_loss = np.mean(scores, axis=0)
    assert right > tree_right - 0.005 and loss < 0.2 * tree_loss


def test_thresholds_of_a_single_tree_are_short_and_part_the_same_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = MetaTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    own = model.estimator_.apply(X)
    at = model.state_.trees.leaves(X)[:, 0]
    assert (
        len(set(zip(own.tolist(), at.tolist(), strict=True)))
        == len(set(own.tolist()))
        == len(set(at.tolist()))
    )
    said = [split.threshold for split in model.to_tree().splits if split is not None]
    assert np.mean([len(repr(t)) for t in said]) < 7


@pytest.mark.parametrize(
    "model", [MetaTreeRegressor(random_state=0), MetaTreeRegressor(n_trees=20, random_state=0)]
)
def test_intervals_hold_what_they_promise(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.3, 1500)
    model.fit(X[:1000], y[:1000])
    inner = model.predict_interval(X[1000:], 0.5)
    outer = model.predict_interval(X[1000:], 0.9)
    for bounds, level in ((inner, 0.5), (outer, 0.9)):
        held = np.mean((bounds[:, 0] <= y[1000:]) & (y[1000:] <= bounds[:, 1]))
        assert abs(held - level) < 0.05
    assert np.all(outer[:, 0] < inner[:, 0]) and np.all(inner[:, 1] < outer[:, 1])
    dist = model.predict_dist(X[1000:1010])
    assert np.allclose(dist.mean(), model.predict(X[1000:1010]), rtol=1e-9)
    assert np.allclose(model.predict_quantile(X[1000:1010], 0.3), dist.quantile(0.3), rtol=1e-9)
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got 90"):
        model.predict_interval(X, 90)


def test_importance_goes_to_what_matters():
    X, y, t = table(0, 400, 5)
    for model in (
        MetaTreeRegressor(random_state=0).fit(X, t),
        MetaTreeRegressor(n_trees=10, random_state=0).fit(X, t),
    ):
        share = model.feature_importances_
        assert np.isclose(share.sum(), 1) and share[:2].sum() > 0.6 and share.shape == (5,)
    assert not MetaTreeRegressor(max_depth=0).fit(X, t).feature_importances_.any()


def test_weights_by_evidence_collapse_and_are_counted():
    X, y, _ = table(0, 300)
    equal = MetaTreeClassifier(n_trees=20, random_state=0).fit(X, y)
    heavy = clone(equal).set_params(tree_weights="evidence").fit(X, y)
    assert (
        np.isclose(equal.n_effective_, 20)
        and heavy.n_effective_ < 5
        and np.isclose(heavy.tree_weights_.sum(), 1)
    )
    assert np.isclose(
        heavy.log_evidence_,
        np.log(np.mean(np.exp(heavy.tree_log_evidence_ - heavy.tree_log_evidence_.max())))
        + heavy.tree_log_evidence_.max(),
    )


# ------------------------------------------------------------------ the contract


@pytest.mark.parametrize("cls", [MetaTreeClassifier, MetaTreeRegressor])
def test_weights_are_repeats_and_rows_have_no_order(cls):
    X, y, t = table(2, 100)
    y = y if cls is MetaTreeClassifier else t
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, 100)
    often = rng.permutation(np.repeat(np.arange(100), w))
    for n_trees in (1, 5):
        model = cls(n_trees=n_trees, random_state=0)
        one = clone(model).fit(X, y, w)
        two = clone(model).fit(X[often], y[often])
        assert np.allclose(one.state_.stats, two.state_.stats) and np.allclose(
            one.log_evidence_, two.log_evidence_
        )
        answer = "predict_proba" if cls is MetaTreeClassifier else "predict"
        assert np.allclose(getattr(one, answer)(X), getattr(two, answer)(X), rtol=1e-10)


def test_same_seed_same_answer_whatever_the_threads_and_the_library_accepts_it():
    X, y = load_iris(return_X_y=True, as_frame=True)
    one = MetaTreeClassifier(n_trees=8, random_state=3, n_jobs=1).fit(X, y)
    two = MetaTreeClassifier(n_trees=8, random_state=np.random.RandomState(3), n_jobs=2).fit(X, y)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    copy = pickle.loads(pickle.dumps(one))
    assert np.array_equal(copy.predict_proba(X), one.predict_proba(X))
    assert cross_val_score(MetaTreeClassifier(random_state=0), X, y).mean() > 0.9
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), MetaTreeRegressor(random_state=0)),
        {"metatreeregressor__max_depth": [2, 4]},
    ).fit(*load_diabetes(return_X_y=True))
    assert grid.best_score_ > 0.2


def test_one_class_one_column_and_constant_rows_are_trivial_models():
    one = MetaTreeClassifier().fit(np.ones((5, 1)), ["a"] * 5)
    assert np.array_equal(one.predict_proba(np.zeros((2, 1))), np.ones((2, 1)))
    flat = MetaTreeRegressor().fit(np.ones((5, 1)), np.full(5, 3.0))
    assert np.allclose(flat.predict(np.zeros((2, 1))), 3.0) and len(flat.rules_.rules) == 1


BAD = [
    (
        {"leaf": "normal"},
        MetaTreeClassifier,
        r"leaf must be 'categorical', 'bernoulli' or a family .* got 'normal'",
    ),
    ({"leaf": DirichletCategorical((1.0, 1.0))}, MetaTreeRegressor, "leaf must be 'normal'"),
    (
        {"leaf": "bernoulli"},
        MetaTreeClassifier,
        "leaf must be a family for 3 classes, as y has, got one for 2",
    ),
    ({"n_trees": 0}, MetaTreeClassifier, "n_trees must be an integer of at least 1, got 0"),
    ({"max_depth": -1}, MetaTreeRegressor, "max_depth must be an integer of at least 0, got -1"),
    ({"prior": 0}, MetaTreeRegressor, "prior must be .*got 0"),
    ({"split_prob": 1.5}, MetaTreeRegressor, "split_prob must be a number from 0 to 1, .* got 1.5"),
    ({"split_prob": []}, MetaTreeClassifier, "split_prob must be"),
    (
        {"tree_weights": "best"},
        MetaTreeClassifier,
        "tree_weights must be one of 'equal', 'evidence', got 'best'",
    ),
    ({"estimator": ["x9"]}, MetaTreeClassifier, "estimator must name columns of X"),
    (
        {"estimator": [0, 0]},
        MetaTreeClassifier,
        "estimator must list each column of X at most once",
    ),
    (
        {"estimator": [0, 1]},
        MetaTreeClassifier,
        "estimator must list columns of labels or of codes 0, 1, 2",
    ),
    ({"estimator": StandardScaler().fit(np.eye(3))}, MetaTreeClassifier, "estimator"),
    (
        {"leaf": "poisson"},
        MetaTreeRegressor,
        "y must contain only counts 0, 1, 2, … with leaf='poisson', got",
    ),
    (
        {"leaf": "exponential"},
        MetaTreeRegressor,
        "y must contain only numbers of at least 0 with leaf='exponential', got",
    ),
    ({"random_state": "x"}, MetaTreeRegressor, "random_state must be"),
    ({"multiplicity": "cuts"}, MetaTreeClassifier, "multiplicity must be one of None, True, False"),
    (
        {"leaf_centre": "root"},
        MetaTreeRegressor,
        "leaf_centre must be one of None, 'flat', 'parent'",
    ),
    (
        {"leaf_centre": "parent", "leaf": "linear"},
        MetaTreeRegressor,
        "leaf_centre must be None or 'flat' for leaf='linear', got 'parent'",
    ),
    (
        {"leaf": "linear", "leaf_features": ["no"]},
        MetaTreeRegressor,
        "leaf_features must name columns of X",
    ),
]


@pytest.mark.parametrize(("changed", "cls", "message"), BAD, ids=lambda v: str(v)[:40])
def test_what_cannot_be_is_refused_in_one_line(changed, cls, message):
    X, y, t = table()
    with pytest.raises(ValueError, match=message) as told:
        cls(**changed).fit(X, y if cls is MetaTreeClassifier else t)
    assert "\n" not in str(told.value)


def test_a_list_of_trees_and_columns_is_refused():
    X, _, t = table()
    tree = MetaTreeRegressor(max_depth=1).fit(X, t).to_tree()
    with pytest.raises(ValueError, match="estimator must name columns of X"):
        MetaTreeRegressor([tree, 0]).fit(X, t)


def test_too_many_levels_are_refused_and_nothing_is_known_before_fit():
    X = np.random.default_rng(0).integers(0, 2, (50, 30))
    with pytest.raises(
        ValueError, match="estimator must list fewer columns, or max_depth must be None"
    ):
        MetaTreeClassifier(list(range(30)), max_depth=30).fit(X, X[:, 0])
    endless = MetaTreeClassifier(list(range(30)), max_depth=None).fit(X, X[:, 0])
    assert endless.state_.trees.topology.size < 50 * 31
    for name in (
        "rules_",
        "map_tree_",
        "log_evidence_",
        "tree_weights_",
        "feature_importances_",
        "posterior_",
    ):
        assert not hasattr(MetaTreeClassifier(), name)
    with pytest.raises(NotFittedError):
        MetaTreeRegressor().predict_interval(X)


def test_gaps_where_an_equation_needs_numbers_are_refused():
    X, _, t = table()
    model = MetaTreeRegressor(leaf="linear", max_depth=2).fit(X, t)
    X[3, 1] = np.nan
    with pytest.raises(
        ValueError,
        match="X must have no missing values in the columns of the leaves' equations, got some",
    ):
        model.predict(X)


def test_a_gap_that_only_some_rows_have_is_no_obstacle_to_calibration():
    X, _, t = table(5, 40)
    X[7, 2] = np.nan
    model = MetaTreeRegressor(leaf="linear", max_depth=2).fit(X, t)
    assert model.state_.regressors.used == (0, 1) and len(model.pit_) == 40


def test_equations_hold_the_columns_that_are_named_each_once():
    X, _, t = table()
    model = MetaTreeRegressor(leaf="linear", leaf_features=[2, 0, 2], max_depth=1).fit(X, t)
    assert model.state_.regressors.used == (2, 0)
    plain = MetaTreeRegressor(leaf="linear", leaf_features=[], max_depth=1).fit(X, t)
    assert len(np.unique(plain.predict(X))) == 2
    assert np.array_equal(plain.rules_.predict(X), plain.predict(X))


def test_a_million_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (10**6, 5)).astype(np.uint8)
    y = rng.integers(0, 2, 10**6)
    columns = Columns(tuple("abcde"), (None,) * 5)
    levels = LevelTree(perfect(2, 5), (4, 2, 0, 1, 3), np.zeros(5), columns)
    assert np.array_equal(
        levels.leaves_of_codes(X[:1000]), levels.leaves(X[:1000].astype(float))[:, 0]
    )
    family = BetaBernoulli()
    state = update_state(
        empty_state(levels, family, 0.5),
        sufficient_statistics(family, levels.leaves_of_codes(X), 63, y, None),
    )
    assert np.isfinite(state.log_evidence[0]) and state.total_weight[0] == 10**6
    t = rng.poisson(3, 10**5) + X[: 10**5, 0]
    model = MetaTreeRegressor([0, 1, 2], leaf=GammaPoisson()).fit(X[: 10**5], t)
    assert np.isfinite(model.log_evidence_) and model.posterior_.split_prob[0] > 0.999


def test_the_plainest_of_equals_is_chosen():
    rng = np.random.default_rng(0)
    base = rng.normal(size=500)
    losses = np.stack([base + 0.5, base + 0.001 * rng.normal(size=500), base])
    assert one_standard_error_rule(losses, np.ones(500)) == 1
    losses[2] -= 0.1
    assert one_standard_error_rule(losses, np.ones(500)) == 2
    assert one_standard_error_rule(np.repeat(losses, 2, axis=1), np.full(1000, 0.5)) == 2


def test_forest_regression_stays_close_to_its_forest():
    X, y = load_diabetes(return_X_y=True)
    Xa, Xb, ya, yb = train_test_split(X, y, random_state=0)
    model = MetaTreeRegressor(RandomForestRegressor(60, random_state=0)).fit(Xa, ya)
    ours, theirs = (np.sqrt(np.mean((m.predict(Xb) - yb) ** 2)) for m in (model, model.estimator_))
    assert ours < 1.01 * theirs
