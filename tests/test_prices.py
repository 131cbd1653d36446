"""Of the trees that a search saw the best at every price; folds of rows; the dial of the trees of equations."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import case, examples
from shared.options import nested
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError

from fabinterp import ObliqueAdditiveRegressor, PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.fab.engine import Structure
from fabinterp.rows.tables import joined_groups
from fabinterp.rules.size_path import (
    SMALL_PRICE,
    SizeEntry,
    choose_by_error,
    choose_size,
    size_gap_text,
    sizes_of,
)
from fabinterp.search.prices import (
    PricedTree,
    PriceInterval,
    best_at_price,
    deal_folds,
    price_path,
)

COLUMNS = ["size", "n_numbers", "criterion", "cv_error", "cv_se", "price", "chosen"]


def table(numbers=True, seed=0, n=80):
    """A jump and a line, with noise; or the sign of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] > 0.2, 2 + X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, y if numbers else np.where(y > 0.5, "yes", "no")


def quick(numbers=True, **changed):
    cls = PiecewiseLinearRegressor if numbers else PiecewiseLinearClassifier
    return cls(**nested(**{"max_depth": 2, "n_perturbations": 1, "random_state": 0} | changed))


@pytest.fixture(scope="module", params=[True, False], ids=["numbers", "classes"])
def fitted(request):
    return quick(request.param).fit(*table(request.param))


# ------------------------------------------------------------------ prices


@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 8)), min_size=1, max_size=12),
    st.floats(0.1, 1.0),
)
@examples(60)
def test_a_search_of_a_share_of_the_rows_answers_with_the_same_tree(lines, share):
    whole = [PricedTree(None, None, float(log_lik), cost) for log_lik, cost in lines]
    part = [PricedTree(None, None, share * log_lik, cost) for log_lik, cost in lines]
    for one in price_path(whole, 0.5):
        found = one.best_of(part, share)
        assert found.cost == one.found.cost
        assert found.log_lik == share * one.found.log_lik


def test_each_fold_is_asked_at_the_share_of_the_weight_that_it_has_seen(monkeypatch):
    shares = set()
    ask = PriceInterval.best_of
    monkeypatch.setattr(
        PriceInterval,
        "best_of",
        lambda one, trees, share: shares.add(share) or ask(one, trees, share),
    )
    X, y = table()
    w = np.random.default_rng(1).uniform(1, 4, len(y))
    quick().fit(X, y, sample_weight=w)
    assert len(shares) == 5 and np.isclose(sum(1 - share for share in shares), 1)


@given(st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 8)), min_size=1, max_size=12))
@examples(60)
def test_the_path_is_the_upper_envelope(lines):
    trees = [PricedTree(None, None, float(a), float(c)) for a, c in lines]
    path = price_path(trees, 0.5)
    assert path[0].low == 0.5 and path[-1].high == np.inf
    assert (
        PriceInterval(trees[0], 1.0, 4.0).price == 2.0 == PriceInterval(trees[0], 2.0, np.inf).price
    )
    assert all(one.high == other.low and one.low < one.high for one, other in zip(path, path[1:]))
    for price in np.linspace(0.5, 40, 80):
        here = next(one for one in path if one.low <= price < one.high)
        best = max(tree.value(price) for tree in trees)
        assert here.found.value(price) == pytest.approx(best, abs=1e-9)
        assert best_at_price(trees, price).value(price) == best
    costs = [one.found.cost for one in path]
    assert costs == sorted(costs, reverse=True)


@given(st.integers(0, 10**6))
@examples(20)
def test_copies_share_a_fold_and_folds_are_alike(seed):
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 6, (rng.integers(2, 60), 2)).astype(float)
    Z[rng.random(Z.shape) < 0.1] = np.nan
    label = rng.integers(0, 2, len(Z)) if seed % 2 else None
    fold = deal_folds(Z, label, np.random.default_rng(0))
    _, copy = np.unique(np.nan_to_num(Z, nan=9), axis=0, return_inverse=True)
    if copy.max() == 0:
        assert fold is None
        return
    pairs = set(zip(copy.ravel().tolist(), fold.tolist()))
    assert len(pairs) == copy.max() + 1
    sizes = np.bincount([f for _, f in pairs])
    assert sizes.min() >= 1 and sizes.max() - sizes.min() <= 1


# ------------------------------------------------------------------ the dial


def test_large_numbers_that_differ_little_are_dealt_apart():
    """Microseconds of today, in seconds since 1970."""
    Z = 1.8e9 + 1e-6 * np.arange(200.0)[:, None]
    fold = deal_folds(Z, np.arange(200) % 7, np.random.default_rng(0))
    assert (np.bincount(fold) == 40).all()


def test_the_path_is_a_frame_of_all_sizes(fitted):
    path = fitted.path_
    assert list(path.columns) == COLUMNS and path.chosen.sum() == 1 and len(path) > 1
    assert path["size"].is_monotonic_increasing and (path["size"] <= path.n_numbers).all()
    assert (path["size"][0], path.n_numbers[0]) == (1, 1)  # the constant
    assert path.cv_error.notna().all() and (path.cv_se >= 0).all()
    assert path.cv_error[path.chosen].item() == path.cv_error.min()
    assert path.criterion[path.chosen].item() == -fitted.fic_


@pytest.mark.filterwarnings("ignore:the path has no size")
def test_every_size_is_a_fitted_model(fitted):
    numbers = isinstance(fitted, PiecewiseLinearRegressor)
    X, _ = table(numbers)
    for n in (1, 2, 3, 100):
        other = fitted.at(n)
        assert len(other.rules_) <= n and len(other.rules_) == other.n_components_
        assert np.array_equal(other.predict(X), other.tree_.predict(X))
        assert other.feature_importances_.shape == (3,)
        assert other.fic_ == other.trace_[-1]
        assert other.path_.drop(columns="chosen").equals(fitted.path_.drop(columns="chosen"))
    if numbers:
        assert fitted.at(2).predict_interval(X).shape == (len(X), 2)


@pytest.mark.parametrize("numbers", [True, False])
def test_trees_of_one_size_are_reached_by_their_numbers(numbers):
    X, y = load_diabetes(return_X_y=True)
    fitted = quick(numbers, max_depth=1).fit(X, y if numbers else y > 150)
    path = fitted.path_
    alike = path[path["size"].duplicated(keep=False)]
    assert len(alike) > 1  # else nothing is tested
    for k, entry in alike.iterrows():
        other = fitted.at(int(entry["size"]), n_numbers=int(entry.n_numbers))
        assert other.path_.chosen.idxmax() == k and other.n_components_ == entry["size"]
        assert -other.fic_ == entry.criterion
    for n in sorted(set(alike["size"])):
        least = alike[alike["size"] == n].cv_error.idxmin()
        assert fitted.at(int(n)).path_.chosen.idxmax() == least
    assert path.chosen.idxmax() == fitted.path_.chosen.idxmax()  # the model itself stays
    known = ", ".join(map(str, path.n_numbers[path["size"] == 1][:3]))
    with pytest.raises(ValueError, match=f"n_numbers must be one of {known}"):
        fitted.at(1, n_numbers=99)


@pytest.mark.slow
def test_small_and_accurate_stand_on_either_side(fitted):
    numbers = isinstance(fitted, PiecewiseLinearRegressor)
    X, y = table(numbers)
    position = {}
    for size in ("small", "balanced", "accurate", 2):
        path = quick(numbers, size=size).fit(X, y).path_
        position[size] = int(np.flatnonzero(path.chosen)[0])
        if size == 2:
            assert path["size"][position[size]] <= 2
    assert position["small"] <= position["balanced"] <= position["accurate"]
    best = path.cv_error.argmin()
    within = path.cv_error <= path.cv_error[best] + path.cv_se[best]
    dear = path.price[path.price > SMALL_PRICE]  # what FIC prefers at that price, and dearer ones
    assert position["small"] == min(within.idxmax(), dear.idxmin(), position["balanced"])


def test_errors_and_prices_choose_among_entries():
    def entries(*errors, se=0.0, price=100.0, leads=(0, 0, 0, 0, 0), least=4):
        """Entries of one leaf more each; at the default, FIC at λ = 2 leaves the choice to errors."""
        return [
            SizeEntry(k + 1, k + 1, abs(k - least), {}, error, se, price - k, cv_lead=lead)
            for k, (error, lead) in enumerate(zip(errors, leads))
        ]

    errors = (2.0, 1.09, 1.03, 1.0, 1.02)
    assert choose_by_error(entries(*errors), "small") == 3
    assert choose_by_error(entries(*errors, se=0.1), "small") == 1
    assert choose_by_error(entries(*errors, se=0.1, price=3.5), "small") == 1
    assert choose_by_error(entries(*errors, se=0.1, price=2.5), "small") == 0
    assert choose_by_error(entries(*errors, se=0.1, price=np.nan), "small") == 1  # as of proxies
    assert choose_by_error(entries(*errors, se=0.02), "accurate") == 4
    assert choose_by_error(entries(*errors), "balanced") == 4  # of FIC at λ = 1
    assert choose_by_error(entries(*errors, least=1), "balanced") == 1
    assert choose_by_error(entries(*errors, leads=(0, 3, 2.5, 1.4, 0)), "balanced") == 2
    assert choose_by_error(entries(*errors, price=np.nan), "balanced") == 3
    assert choose_by_error(entries(*errors, leads=(0, 3, 0, 0, 0)), "small") == 1
    assert choose_by_error(entries(*errors), "accurate") == 4
    assert choose_by_error(entries(0.0, 0.0), "small") == 0


@pytest.mark.parametrize(
    "budget",
    [
        case({"max_leaves": 1}, quick=False),
        {"max_leaves": 2},
        {"max_terms": 1},
        case({"max_terms": 2}, quick=False),
    ],
)
def test_budgets_cap_every_choice(budget):
    model = quick(**budget).fit(*table(n=60))
    for entry in model._path:
        assert len(entry.fitted["rules_"]) <= budget.get("max_leaves", np.inf)
        terms = sum(len(leaf.features) for leaf in entry.fitted["rules_"].leaves)
        assert terms <= budget.get("max_terms", np.inf)


def test_the_path_does_not_depend_on_threads_or_units(fitted):
    numbers = isinstance(fitted, PiecewiseLinearRegressor)
    X, y = table(numbers)
    again = quick(numbers, n_jobs=2).fit(X, y)
    assert again.path_.equals(fitted.path_) and again.tree_ == fitted.tree_
    moved = quick(numbers).fit(8 * X + [1, 0, 0], y)
    np.testing.assert_allclose(moved.path_.cv_error, fitted.path_.cv_error, rtol=1e-6)
    assert moved.fic_ == pytest.approx(fitted.fic_, rel=1e-6)


@pytest.mark.parametrize("numbers", [True, False])
def test_the_order_of_rows_and_columns_does_not_matter(numbers):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (90, 4)).astype(float)  # many ties, and two equal columns
    X[:, 3] = X[:, 1]
    X = pd.DataFrame(X, columns=list("abcd"))
    y = X.a * X.b + rng.integers(0, 2, 90)
    y = y if numbers else (y > 1).map({True: "yes", False: "no"})
    rows = rng.permutation(90)
    columns = list("cadb")
    model = quick(numbers).fit(X, y)
    other = quick(numbers).fit((1 + 1e-12) * X.loc[rows, columns], y[rows])
    np.testing.assert_allclose(other.path_.cv_error, model.path_.cv_error, rtol=1e-6)
    answers = [model.predict(X), other.predict((1 + 1e-12) * X[columns])]
    if numbers:
        np.testing.assert_allclose(*answers, rtol=1e-6)
    else:
        assert (answers[0] == answers[1]).all()


def test_the_spread_is_that_of_rows_left_out():
    model = quick().fit(*table())
    line = model.at(1)
    assert line.std_[0] ** 2 == pytest.approx(line.path_.cv_error[line.path_.chosen].item())
    own = np.average(model.std_**2, weights=[rule.support for rule in model.rules_.rules])
    assert own == pytest.approx(model.path_.cv_error[model.path_.chosen].item(), rel=0.5)


@pytest.mark.parametrize("numbers", [True, False])
def test_no_leaf_has_more_numbers_than_a_third_of_its_rows(numbers):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 20))
    y = X[:, :12].sum(axis=1) + np.where(X[:, 0] > 0, 3 * X[:, 13], 0)
    y = y if numbers else np.where(y > 0, "yes", "no")
    model = quick(numbers, penalty=0.05).fit(X, y)
    at = model.rules_.apply(X)
    for k, leaf in enumerate(model.rules_.leaves):
        rows = np.unique(y[at == k], return_counts=True)[1]
        assert rows.sum() >= 5
        n_terms = len(leaf.features)
        carried = rows.sum() if numbers else rows.sum() - rows.max()
        assert n_terms == 0 or 3 * (1 + n_terms) <= carried


def test_a_weight_is_so_many_rows():
    X, y = table(n=60)
    w = np.random.default_rng(0).integers(1, 4, 60)
    weighted = quick(max_depth=1).fit(X, y, sample_weight=w)
    repeated = quick(max_depth=1).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.path_.equals(repeated.path_) and weighted.tree_ == repeated.tree_


@pytest.mark.parametrize("settings", [{"penalty": 1.0}, {"search": "em", "max_iter": 20}])
def test_a_given_price_and_em_have_one_size(settings):
    path = quick(**settings).fit(*table()).path_
    assert len(path) == 1 and path.chosen.all() and path.cv_error.isna().all()


@pytest.mark.parametrize("d,n_designs", [(3, 1), (80, 6)])
def test_columns_of_a_wide_table_are_chosen_anew_in_each_fold(d, n_designs, monkeypatch):
    made = []
    lines = PiecewiseLinearRegressor._family

    def make(settings, chunked, penalty):
        made.append(len(chunked.sample.y))
        return lines.make_design(settings, chunked, penalty)

    family = replace(lines, make_design=make)
    monkeypatch.setattr(PiecewiseLinearRegressor, "_family", family)
    rng = np.random.default_rng(0)
    quick(max_depth=0).fit(rng.normal(size=(40, d)), rng.normal(size=40))
    assert made == [40] + [32] * (n_designs - 1)  # five folds


def test_noise_is_one_constant():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    model = quick(size="small").fit(X, rng.normal(size=300))
    assert len(model.rules_) == 1 and model.rules_.leaves[0].features == ()


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"size": "tiny"}, "size must be"),
        ({"size": 0}, "size must be"),
        ({"max_leaves": 0}, "max_leaves must be"),
        ({"max_terms": -1}, "max_terms must be"),
    ],
)
def test_what_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        quick(**settings).fit(*table())


def test_sizes_before_a_fit_and_sizes_that_are_none(fitted):
    with pytest.raises(NotFittedError, match="fit first"):
        PiecewiseLinearRegressor().at(2)
    with pytest.raises(NotFittedError, match="fit first"):
        print(PiecewiseLinearRegressor().path_)
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        fitted.at(0)


def test_the_path_has_sizes_that_are_best_at_no_price():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 2))  # a chessboard: one split alone gains nothing
    y = np.where((X[:, 0] > 0) == (X[:, 1] > 0), 1.0, -1.0) + rng.normal(0, 0.2, 150)
    model = quick().fit(X, y)
    path = model.path_.groupby("size")[["price", "cv_error"]].agg(["max", "min"])
    assert path.index.tolist() == [1, 2, 3, 4] and model.n_components_ == 4
    assert path.price["max"].tolist()[1:3] == [0.0, 0.0] and path.price["max"][4] > 1
    assert path.cv_error["max"][3] < path.cv_error["min"][1]
    with pytest.warns(UserWarning, match="no size 9: 4, the largest, is taken") as caught:
        assert model.at(9).n_components_ == 4
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [model.at(n).n_components_ for n in (1, 2, 3, 4)] == [1, 2, 3, 4]


@given(st.sets(st.integers(1, 12), min_size=1), st.integers(1, 14))
@examples(60)
def test_the_size_told_is_the_size_taken(sizes, n):
    entries = [SizeEntry(k, k, -k, {}) for k in sorted(sizes)]
    text = size_gap_text(entries, n)
    assert (text == "") == (n in sizes) and size_gap_text(entries, "small") == ""
    if text:
        _, *told = map(int, re.findall(r"\d+", text))
        assert told[0] == entries[choose_size(entries, n)].size
        around = [
            max((k for k in sizes if k < n), default=0),
            min((k for k in sizes if k > n), default=0),
        ]
        assert told == [k for k in around if k]


def test_few_rows_and_copies():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    path = quick().fit(X, np.array([1.0, 2.0, 3.0, 9.0])).path_
    assert path.cv_error.notna().all()
    same = quick().fit(np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 9.0]))
    assert same.path_.cv_error.isna().all() and len(same.rules_) == 1
    lonely = quick(False).fit(np.arange(6.0)[:, None], list("aaaaab"))  # a fold without b
    assert set(lonely.predict([[0.0], [9.0]])) <= {"a", "b"}


def test_the_constants_log_loss_gives_each_class_half_a_row():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 2))
    y = rng.choice(["a", "b", "c"], size=150, p=[0.5, 0.3, 0.2])
    path = quick(False).fit(X, y).path_
    code = np.unique(y, return_inverse=True)[1]
    fold = deal_folds(X, code.astype(float), np.random.default_rng(0))
    expected = []
    for out, own in zip(fold, code):
        inside = fold != out
        counts = np.bincount(code[inside], minlength=3)
        expected.append(-np.log((counts[own] + 0.5) / (inside.sum() + 1.5)))
    assert path.n_numbers[0] == 1  # one answer for all
    assert path.cv_error[0] == pytest.approx(np.mean(expected), rel=1e-3)


def test_a_row_that_a_sure_leaf_gets_wrong_costs_a_finite_amount():
    x = np.arange(60.0)[:, None]
    y = np.where(x[:, 0] < 30, "left", "right")
    y[3] = "right"
    path = quick(False).fit(x, y).path_
    assert (path.cv_error < np.log(2 * 60 + 2)).all()
    assert path.cv_error.min() < 0.5 * np.log(2)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "classes"])
def test_labels_that_say_nothing_are_not_cut(numbers):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"shop": rng.integers(500, size=1000), "x": rng.normal(size=1000)})
    X["shop"] = "s" + X["shop"].astype(str)
    y = X["x"].to_numpy() + rng.normal(size=1000)
    kind = PiecewiseLinearRegressor if numbers else PiecewiseLinearClassifier
    model = kind(random_state=0).fit(X, y if numbers else y > 0)
    path = model.path_
    assert len(model.rules_) == 1
    if numbers:  # the noise has a variance of 1
        assert 0.9 < path.cv_error[path.chosen].item() < 1.15


# ------------------------------------------------------------------ groups


def visits(n_patients=12, n_visits=10):
    """Rows of patients: what a row says of y is its patient's own, and no other's."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(n_patients), n_visits)
    X = rng.normal(size=(n_patients, 3))[patient] + 0.01 * rng.normal(size=(len(patient), 3))
    y = rng.normal(size=n_patients)[patient] + 0.1 * rng.normal(size=len(patient))
    return X, y, patient


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PiecewiseLinearRegressor, ObliqueAdditiveRegressor])
def test_rows_of_one_group_are_left_out_together(kind):
    X, y, patient = visits()
    alone = kind(random_state=0).fit(X, y).path_
    names = np.array([f"p{k}" for k in patient], dtype=object)
    together = kind(random_state=0).fit(X, y, groups=names).path_
    assert alone["size"].equals(together["size"])  # the same trees, judged otherwise
    assert alone.cv_error.min() < 0.5 < together.cv_error.min()


@pytest.mark.parametrize(
    "groups, said",
    [
        (np.zeros(119), "groups must contain a group for each of 120 rows, got shape (119,)"),
        (np.zeros(120), "groups must have at least 2 distinct values, got 1"),
    ],
)
def test_groups_that_cannot_be_dealt_are_refused_in_one_line(groups, said):
    X, y, _ = visits()
    with pytest.raises(ValueError) as refused:
        PiecewiseLinearRegressor().fit(X, y, groups=groups)
    assert str(refused.value) == said


def test_copies_join_their_groups():
    a = np.array([0, 0, 1, 1, 2, 3])
    b = np.array([0, 1, 1, 2, 3, 3])
    codes = joined_groups(a, b)
    assert len(set(codes[:4])) == 1 and len(set(codes[4:])) == 1 and codes[0] != codes[4]


def test_every_entry_of_a_path_is_shown_as_itself():
    """Also where several have the same number of leaves."""
    X, _ = table()
    model = quick().fit(X, X @ [3.0, 1.0, 0.3] + np.random.default_rng(1).normal(size=len(X)))
    found = sizes_of(model)
    assert len({entry.size for entry, *_ in found}) < len(found)
    for k, (entry, other, is_shown) in enumerate(found):
        assert other.tree_ is entry.fitted["tree_"]
        assert is_shown == model.path_["chosen"][k]


def test_a_number_for_size_bounds_the_search():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    y = 3.0 * ((X[:, 0] > 0) ^ (X[:, 1] > 0.1)) + 0.3 * rng.normal(size=400)
    whole = quick().fit(X, y)
    for n in (2, 3):
        asked = quick(size=n).fit(X, y)
        assert asked.n_components_ == asked.path_["size"].max() == n
        assert "max_leaves" not in asked.limits_reached_
        assert asked.path_.cv_error[asked.path_.chosen].item() < 0.6 * whole.path_.cv_error.iloc[0]
    bounded = quick(size=5, max_leaves=2).fit(X, y)
    assert bounded.n_components_ == 2 and "max_leaves" in bounded.limits_reached_
    curves = ObliqueAdditiveRegressor(2, search=Structure(1), max_depth=2, random_state=0)
    assert curves.fit(X, y).path_["size"].max() == 2
