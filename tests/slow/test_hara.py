"""The baselines of the Hara & Hayashi tables against brute force, and the tables' jobs."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from frame import NBS
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import qr
from scipy.optimize import minimize
from shared.effort import examples
from shared.needs import need
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.bench import hara
from fabinterp.bench.datasets import synthetic1
from fabinterp.bench.hara import (
    FOLDS,
    MAX_COMPONENTS,
    ORDER,
    PEERS,
    RULE_METHODS,
    TABLES,
    EnsembleCase,
    NodeHarvest,
    born_again_tree,
    certain_boxes,
    distilled_trees,
    distinct_paths,
    fit_intrees,
    fit_restarts,
    greedy_list,
    harvest_weights,
    imodels_rule_holds,
    list_jobs,
    measure_em,
    measure_fab,
    measure_forest_methods,
    measure_peer,
    measure_rule_method,
    mixture_jobs,
    needed_conditions,
    node_harvest,
    permuted_rows,
    prune_conditions,
    quantile_levels,
    rule_text_jobs,
    rule_texts_record,
    rules_met,
    rules_of_tree,
    shorten_ruleset,
    soft_rules,
    tree_paths,
)
from fabinterp.bench.runner import UnavailableError, key_text, latest, read_lines, render
from fabinterp.forests.reading import read_ensemble
from fabinterp.rules.core import Columns, Leaf, Rule, Split, match_conditions, merge_conditions
from fabinterp.rules.ruleset import RuleSet

RESULTS = NBS / "results"
SEEDS = st.integers(0, 10_000)


def case_of(seed, numbers=False, n=80, d=3, model=None):
    """A small repetition with a forest of five trees."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.random((2, n, d)).round(2)
    truth = lambda Z: np.sin(5 * Z[:, 0]) + (Z[:, 1] > 0.4)  # noqa: E731
    y, y_new = (truth(Z) + 0.1 * rng.normal(size=n) for Z in (X, X_new))
    if not numbers:
        y = (y > 0.9).astype(int)
        y_new = (y_new > 0.9).astype(int)
        y[:2] = 0, 1
    kind = RandomForestRegressor if numbers else RandomForestClassifier
    columns = Columns(tuple("abcdefgh"[:d]), (None,) * d, (False,) * d)
    fitted = (model or kind(5, max_depth=4, random_state=seed)).fit(X, y)
    return EnsembleCase(X, y, X_new, y_new, columns, fitted, numbers, seed)


# Rows and paths


@given(SEEDS, st.floats(0, 1))
@examples(30)
def test_smeared_values_are_values_of_their_column(seed, share):
    rng = np.random.default_rng(seed)
    X = rng.random((12, 3)).round(1)
    new = permuted_rows(X, 40, rng, share)
    assert new.shape == (40, 3)
    assert all(set(new[:, j]) <= set(X[:, j]) for j in range(3))
    if share == 0:
        assert {tuple(row) for row in new} <= {tuple(row) for row in X}


@given(SEEDS, st.integers(0, 4), st.booleans())
@examples(20)
def test_the_ends_of_the_paths_of_a_tree_hold_each_row_once(seed, depth, numbers):
    case = case_of(seed, numbers)
    ensemble = read_ensemble(case.model, case.columns)
    found = tree_paths(ensemble, depth)
    held = np.array([match_conditions(said, case.X_new) for said, end in found if end])
    assert (held.sum(axis=0) == len(ensemble.trees)).all()
    assert max(len(said) for said, _ in found) <= depth
    assert sum(end for _, end in found) == sum(
        min(len(said), depth) == len(said) for said, end in found if end
    )


@given(SEEDS, st.integers(1, 20))
@examples(20)
def test_distinct_conditions_are_what_they_hold_and_no_two_hold_the_same(seed, least):
    case = case_of(seed)
    paths = [said for said, _ in tree_paths(read_ensemble(case.model, case.columns), 3)]
    said, members = distinct_paths(paths, case.X, least)
    assert said[0] == () and members[:, 0].all()  # the root is the shortest
    assert np.array_equal(members, np.array([match_conditions(s, case.X) for s in said]).T)
    assert (members.sum(axis=0) >= least).all()
    every = {
        match_conditions(p, case.X).tobytes()
        for p in paths
        if match_conditions(p, case.X).sum() >= least
    }
    assert len({column.tobytes() for column in members.T}) == members.shape[1] == len(every)


@given(SEEDS, st.booleans())
@examples(20)
def test_shortened_rules_answer_the_training_rows_as_before(seed, numbers):
    case = case_of(seed, numbers)
    tree = (DecisionTreeRegressor if numbers else DecisionTreeClassifier)(random_state=seed).fit(
        case.X, case.y
    )
    long = read_ensemble(tree, case.columns).trees[0].rules()
    short = shorten_ruleset(long, case.X)
    assert np.array_equal(short.predict(case.X), tree.predict(case.X))
    assert np.allclose(short.matches(case.X_new).sum(axis=1), 1)  # still disjoint, still everywhere
    width = [
        sum(len(repr(s.threshold)) for rule in rules.rules for s, _ in rule.conditions)
        for rules in (short, long)
    ]
    assert width[0] <= width[1]


def test_shortened_drops_what_no_row_can_satisfy():
    case = case_of(0)
    x = np.unique(case.X[:, 0])
    inside = (
        (Split((0,), x[3] + 0.001), True),
        (Split((0,), x[4] - 0.001), False),
    )  # between two training values
    rules = RuleSet(
        (Rule(inside, Leaf((1.0, 0.0))), Rule((), Leaf((0.0, 1.0)))), case.columns, (0, 1)
    )
    assert len(shorten_ruleset(rules, case.X).rules) == 1


# Node Harvest


def objective(weights, members, means, y):
    return float(np.sum((y - members @ (weights * means)) ** 2))


def by_sequential_programming(members, means, y):
    """The same programme by SciPy's SLSQP, its equations made independent."""
    rows = np.unique(members, axis=0).astype(float)
    order = qr(rows.T, pivoting=True)[2]
    rows = rows[order[: np.linalg.matrix_rank(rows)]]
    start = np.zeros(members.shape[1])
    start[0] = 1.0
    scale = y.std()
    found = minimize(
        lambda q: objective(q, members, means, y) / scale**2,
        start,
        bounds=[(0, None)] * len(start),
        constraints={"type": "eq", "fun": lambda q: rows @ q - 1},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    assert found.success
    return found.x


@pytest.mark.parametrize("seed", range(6))
def test_harvest_weights_against_another_solver(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((60, 2))
    y = 10 + 3 * X[:, 0] * (X[:, 1] > 0.5) + 0.2 * rng.normal(size=60)
    sides = [X[:, j] > cut for j in (0, 1) for cut in rng.uniform(0.2, 0.8, 2)]
    members = np.column_stack([np.ones(60, bool), *sides, *(~side for side in sides)])
    means = members.T @ y / members.sum(axis=0)
    ours = harvest_weights(members, means, y)
    theirs = by_sequential_programming(members, means, y)
    assert np.abs(members @ ours - 1).max() < 1e-5
    assert objective(ours, members, means, y) <= objective(theirs, members, means, y) * (1 + 1e-5)
    assert objective(ours, members, means, y) == pytest.approx(
        objective(theirs, members, means, y), rel=1e-3
    )


@given(SEEDS, st.booleans())
@examples(15)
def test_a_harvest_shares_out_each_training_row_and_answers_by_weighted_means(seed, numbers):
    case = case_of(seed, numbers)
    found = node_harvest(case.model, case)
    held = found.matches(case.X)
    weights = np.array(found.weights)
    assert (weights > 0).all() and held[:, -1].all()  # the root is last and holds everything
    assert np.allclose(
        held @ weights, 1, atol=0.05
    )  # but for the nodes left out and the root's least weight
    values = np.array([leaf.value if numbers else leaf.value[1] for leaf in found.leaves])
    for rule, inside in zip(found.rules, held.T, strict=True):
        mean = case.y[inside].mean()
        assert (rule.leaf.value if numbers else rule.leaf.value[1]) == pytest.approx(mean)
        assert len(rule.conditions) <= 2 and inside.sum() >= 10
    said = np.array(
        [np.average(values[row], weights=weights[row]) for row in found.matches(case.X_new)]
    )
    assert np.array_equal(
        found.predict(case.X_new), said if numbers else (said > 0.5).astype(int)
    ) or np.allclose(found.predict(case.X_new), said if numbers else said > 0.5)
    root = np.mean((case.y - case.y.mean()) ** 2)
    told = (held * weights) @ values / (held @ weights)
    assert np.mean((case.y - told) ** 2) <= root * 1.01  # the root alone is allowed


# inTrees


def slowly_dropped(held, code, decay):
    """Conditions tried from the last, by lists of rows."""

    def wrong(rows, label):
        inside = [n for n in range(len(code)) if all(held[k][n] for k in rows)]
        return sum(code[n] != label for n in inside) / len(inside)

    rows = list(range(len(held)))
    inside = [code[n] for n in range(len(code)) if all(held[k][n] for k in rows)]
    label = max(sorted(set(inside)), key=inside.count)
    first = wrong(rows, label)
    for k in reversed(range(len(held))):
        fewer = [r for r in rows if r != k]
        if fewer and wrong(fewer, label) <= first + decay:
            rows = fewer
    return rows


@given(SEEDS, st.integers(1, 5), st.sampled_from([0.0, 0.05, 0.3]))
@examples(60)
def test_conditions_are_dropped_as_by_hand(seed, n_conditions, decay):
    rng = np.random.default_rng(seed)
    held = rng.random((n_conditions, 40)) < 0.7
    held[:, 0] = True
    code = rng.integers(0, 3, 40)
    kept = prune_conditions(held, code, decay)
    assert kept == slowly_dropped(held, code, decay)
    assert kept and kept == sorted(kept)


def slow_list(members, lengths, code, least):
    """The same choice rule by rule, counted anew each time."""
    free = set(range(len(code)))
    order = []
    n = len(code)

    def best_label(rows):
        labels = [code[i] for i in rows]
        return max(sorted(set(labels)), key=labels.count)

    while free:
        found = []
        for r in range(members.shape[1]):
            rows = [i for i in free if members[i, r]]
            if len(rows) >= least * n:
                label = best_label(rows)
                error = 1 - sum(code[i] == label for i in rows) / len(rows)
                found.append((round(error, 9), -len(rows), lengths[r], r, label))
        label = best_label(free)
        if not found or min(found)[0] >= round(
            1 - sum(code[i] == label for i in free) / len(free), 9
        ):
            return order, label
        best = min(found)
        order.append((best[3], best[4]))
        free -= {i for i in free if members[i, best[3]]}
    return order, best_label(range(n))


@given(SEEDS)
@examples(60)
def test_the_list_is_picked_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    members = rng.random((64, 7)) < 0.4
    code = rng.integers(0, 2, 64)
    lengths = rng.integers(1, 4, 7).tolist()
    order, rest = greedy_list(members, lengths, code, 2, least=1 / 16)
    by_hand = slow_list(members, lengths, code, 1 / 16)
    # shares of 64 rows are exact in binary floats only up to the error's last digits: compare what
    # is answered
    assert [r for r, _ in order] == [r for r, _ in by_hand[0]]
    assert (order, rest) == by_hand


@given(SEEDS, st.integers(2, 5))
@examples(30)
def test_levels_are_intervals_with_their_means(seed, n_levels):
    y = np.random.default_rng(seed).integers(0, 12, 50).astype(float)
    code, means = quantile_levels(y, n_levels)
    assert np.array_equal(np.unique(code), np.arange(len(means))) and len(means) <= n_levels
    assert all(y[code == k].mean() == pytest.approx(mean) for k, mean in enumerate(means))
    assert all(y[code == k].max() < y[code == k + 1].min() for k in range(len(means) - 1))


@given(SEEDS, st.booleans())
@examples(10)
def test_in_trees_says_an_ordered_list_of_short_rules(seed, numbers):
    case = case_of(seed, numbers)
    rules = fit_intrees(case.model, case)
    assert rules.ordered and rules.default is not None
    assert all(len(rule.conditions) <= 12 for rule in rules.rules)
    said = rules.predict(case.X)
    if numbers:
        assert set(said) <= set(quantile_levels(case.y)[1])
    else:
        assert np.mean(said != case.y) <= min(
            case.y.mean(), 1 - case.y.mean()
        )  # the default alone is allowed


# Trees, mixtures


@pytest.mark.parametrize("numbers", [False, True])
def test_born_again_chooses_among_its_depths_and_repeats_the_teacher(numbers):
    case = case_of(3, numbers, n=150)
    tree = born_again_tree(
        case.model, case.X, case.y, np.random.default_rng(0), KFold(5).split(case.X)
    )
    assert tree.get_depth() <= max(hara.DEPTHS)
    said = tree.predict(case.X)
    taught = case.model.predict(case.X)
    assert (
        (np.mean((said - taught) ** 2) < 0.2 * taught.var())
        if numbers
        else np.mean(said == taught) > 0.9
    )
    rules = rules_of_tree(tree, case)
    assert len(rules.rules) <= tree.get_n_leaves() and np.allclose(rules.predict(case.X), said)


def test_students_have_their_depths():
    case = case_of(1)
    trees = distilled_trees(case.model, case.X, np.random.default_rng(0), (1, 3), n_new=500)
    assert [tree.get_depth() for tree in trees] == [1, 3]


@pytest.mark.parametrize("numbers", [False, True])
def test_settled_boxes_by_hand(numbers):
    case = case_of(5, numbers)
    model = fit_restarts(case, 1.0, 4, 1)["model"]
    boxes = np.empty((len(model.weights), len(model.bins.thresholds), 2))
    for k, found in enumerate(certain_boxes(model)):
        for j, cuts in enumerate(model.bins.thresholds):
            eta = model.eta[k, model.bins.bit_slice(j)]
            low = max([b for b, e in zip(cuts, eta, strict=True) if e >= 0.999], default=-np.inf)
            high = min([b for b, e in zip(cuts, eta, strict=True) if e <= 0.001], default=np.inf)
            boxes[k, j] = low, high
            own = {side: s.threshold for s, side in found if s.features == (j,)}
            assert (own.get(True, -np.inf), own.get(False, np.inf)) == (low, high)
    rules = soft_rules(model, case)
    inside = ((case.X[:, None] > boxes[..., 0]) & (case.X[:, None] <= boxes[..., 1])).all(axis=2)
    bounded = ~inside.all(axis=0) & (boxes[..., 0] < boxes[..., 1]).all(
        axis=1
    )  # a box of all rows says nothing
    assert np.array_equal(rules.matches(case.X).sum(axis=1), inside[:, bounded].sum(axis=1))


@given(SEEDS, st.integers(1, 6))
@examples(30)
def test_needed_conditions_hold_the_same_rows_and_none_can_go(seed, n_conditions):
    rng = np.random.default_rng(seed)
    X = rng.random((30, 3))
    said = merge_conditions(
        [
            (Split((int(j),), float(b)), bool(side))
            for j, b, side in zip(
                rng.integers(0, 3, n_conditions),
                rng.random(n_conditions),
                rng.random(n_conditions) < 0.5,
                strict=True,
            )
        ]
    )
    if said is None:
        return
    kept = needed_conditions(said, X)
    held = match_conditions(said, X)
    assert np.array_equal(match_conditions(kept, X), held)
    assert all(
        match_conditions([c for c in kept if c != one], X).sum() > held.sum() for one in kept
    )


@pytest.mark.parametrize("numbers", [False, True])
def test_the_figures_of_fab_and_em(numbers):
    case = case_of(2, numbers)
    found = measure_fab(case, 3)
    assert len(found["seconds"]) == len(found["sizes"]) == 3 and found["rules"] in found["sizes"]
    assert (
        0 <= found["outside"] <= 1 and 1 - found["outside"] <= found["covering"] <= found["rules"]
    )
    em = measure_em(case, 2)
    assert len(em["test"]) == len(em["train"]) == MAX_COMPONENTS
    assert em["error"] == em["test"][em["rules"] - 1] and em["train"][em["rules"] - 1] == min(
        em["train"]
    )


# Peers


@pytest.mark.measure
@pytest.mark.parametrize("name", PEERS)
def test_peers_are_counted_and_measured(name):
    need("imodels")
    found = measure_peer(name, case_of(0, n=200))
    assert (
        found["rules"] >= 1
        and 0 <= found["covering"] <= found["rules"]
        and 0 <= found["error"] <= 1
    )


def test_rules_of_imodels_are_read_as_they_are_written():
    X = np.array([[1.5, 0.0], [1.6, 3.0], [0.0, 3.0]])
    assert imodels_rule_holds("X0 <= 1.5 and X_1 > 2", X).tolist() == [False, False, True]
    assert imodels_rule_holds("X_0 > 1.5", X).tolist() == [False, True, False]


@pytest.mark.measure
def test_what_fits_of_rulefit_meets_its_own_transform():
    imodels = pytest.importorskip("imodels", reason="imodels is not installed")
    case = case_of(0, n=200)
    model = imodels.RuleFitClassifier(random_state=0).fit(case.X, case.y)
    size, met = rules_met("RuleFit", model, case.X_new)
    frame = model._get_rules()
    assert size == int((frame["coef"] != 0).sum()) and 0 < met <= size


def test_a_peer_that_is_not_there_is_a_blank(monkeypatch):
    monkeypatch.setitem(sys.modules, "imodels", None)
    with pytest.raises(UnavailableError, match="imodels is not installed"):
        measure_peer("FIGS", case_of(0))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(UnavailableError, match="xgboost is not installed"):
        hara.fit_xgboost(np.zeros((4, 1)), np.array([0, 1, 0, 1]), False, 0)


# Jobs and tables


@pytest.mark.parametrize("jobs", [list_jobs, mixture_jobs, rule_text_jobs])
@pytest.mark.parametrize("quick", [False, True])
def test_jobs_are_the_same_each_time_and_go_fold_by_fold(jobs, quick):
    keys = jobs(quick)
    texts = [json.dumps(key, sort_keys=True) for key in keys]
    assert keys == jobs(quick) and len(set(texts)) == len(texts)
    folds = [key["fold"] for key in keys]
    assert folds == sorted(folds)
    assert {key["data"] for key in keys} <= set(ORDER) == set(FOLDS)


@pytest.fixture
def small(monkeypatch):
    """Sixty rows a data set, forests of one size, and none in the cache."""
    monkeypatch.setattr(hara, "N_TRAIN", dict.fromkeys(ORDER, 60))
    monkeypatch.setattr(hara, "NODE_SIZES", (10,))
    monkeypatch.setattr(hara, "LEAVES", (16,))
    hara.ensemble_case.cache_clear()
    yield
    hara.ensemble_case.cache_clear()


@pytest.mark.measure
@pytest.mark.parametrize(
    "method", ["BATrees", "inTrees", "Node Harvest", "DTree2", "FIGS", "ensemble"]
)
def test_a_job_is_determined_by_its_key(method, small):
    need("imodels")
    key = {"part": "lists", "data": "synthetic2", "ensemble": "forest", "method": method, "fold": 1}
    first = measure_forest_methods(key)
    hara.ensemble_case.cache_clear()
    again = measure_forest_methods(key)
    for found in (first, again):
        found.pop("seconds", None)
    assert first == again


@pytest.mark.parametrize("method", ["FAB", "EM"])
def test_a_job_of_random_starts_is_determined_by_its_key(method, small):
    key = {
        "part": "mixture",
        "data": "synthetic1",
        "ensemble": "forest",
        "method": method,
        "fold": 0,
        "starts": 2,
    }
    first = measure_forest_methods(key)
    again = measure_forest_methods(key)
    assert {k: v for k, v in first.items() if k != "seconds"} == {
        k: v for k, v in again.items() if k != "seconds"
    }


def test_the_rows_are_the_papers(small):
    case = hara.ensemble_case("synthetic1", 2, "forest")
    X, y = synthetic1(120, np.random.default_rng(2))
    assert np.array_equal(np.vstack([case.X, case.X_new]), X)
    assert np.array_equal(np.append(case.y, case.y_new), y)


def test_a_table_that_is_not_there_is_a_blank(monkeypatch, tmp_path):
    monkeypatch.setenv("FABINTERP_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(UnavailableError, match="MiniBooNE"):
        measure_forest_methods(
            {
                "part": "lists",
                "data": "miniboone",
                "ensemble": "forest",
                "method": "DTree2",
                "fold": 0,
            }
        )


def test_what_is_told_is_what_was_measured(small):
    case = hara.ensemble_case("synthetic1", 0, "forest")
    for name in ("BATrees", "inTrees", "DTree2", "Node Harvest"):
        found = rule_texts_record(name, case, 2)
        said = json.loads(json.dumps(found["said"]))
        rules = RuleSet.from_dict(said)
        if found["weights"]:
            rules = replace(NodeHarvest.from_dict(said), weights=tuple(found["weights"]))
        assert case.error(rules.predict(case.X_new)) == measure_rule_method(name, case)["error"]
        assert len(found["share"]) == len(rules.rules)
    assert "Node Harvest" in RULE_METHODS


def lines_of(table):
    """The stored figures of a table."""
    texts = {key_text(key) for key in table.jobs(False)}
    return [
        line
        for text, line in latest(read_lines(RESULTS / "rules.jsonl")).items()
        if text in texts and "missing" not in line
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_bear_any_lines(table):
    lines = lines_of(table)
    assert lines, f"nbs/results/rules.jsonl has no line of {table.name}"
    filled = 0
    for part in (lines[:1], lines[::7], lines):
        grid = table.show(part)
        assert grid.to_text() and filled <= grid.frame.notna().to_numpy().sum()
        filled = grid.frame.notna().to_numpy().sum()
    assert render(table, RESULTS)._repr_html_()


def test_a_cell_is_the_mean_over_the_repetitions():
    table = next(table for table in TABLES if table.name == "hara-fig5")
    lines = lines_of(table)
    grid = table.show(lines)
    wanted = [
        line["error"]
        for line in lines
        if line["key"]["data"] == "energy" and line["key"]["method"] == "inTrees"
    ]
    cell = grid.frame.loc["Energy"]["test error", "inTrees", "peer", "lower"]
    assert cell.value == pytest.approx(np.mean(wanted)) and cell.deviation == pytest.approx(
        np.std(wanted, ddof=1)
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_shortfall_has_a_reason(table):
    grid = table.show(lines_of(table))
    assert table.why.get("") or grid.shortfalls().empty
    assert set(table.why) <= {"", *grid.frame.index}


def test_the_printed_figures_stand_under_their_data():
    assert hara.SECONDS.loc["energy", "FAB"].value == 0.03
    assert hara.COVERING.loc["spambase", "Node Harvest"] == (12.4, 1.76, 1)
    for table in (hara.SECONDS, hara.COVERING):
        assert tuple(table.index) == ORDER and table.notna().all(axis=None)
