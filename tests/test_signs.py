"""Signs that hold everywhere: the certificate, the repair, and fits that keep a promise."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import case, examples
from shared.snapshots import leave_out_pictures
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from fabinterp import (
    ObliqueAdditiveClassifier,
    ObliqueAdditiveRegressor,
    PiecewiseLinearClassifier,
    PiecewiseLinearRegressor,
    load_rules,
    report,
)
from fabinterp.bench.promises import count_wrong_pairs, made_truth
from fabinterp.fab.engine import Structure
from fabinterp.models.curve_trees import CurveOptions
from fabinterp.rules.core import Columns, Curve, Leaf, Split
from fabinterp.rules.ruleset import Tree
from fabinterp.search.sign_repair import broken_steps, least_distance
from fabinterp.search.signs import (
    SignCertificate,
    certify_curves,
    certify_signs,
    check_signs,
    leaf_lines,
    least_step,
    order_bounds,
    shared_faces,
)

N = 100_000


def made(kind, n, seed):
    """A table of six columns whose truth is monotone, or for "against" is not; and signs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 6))
    return X, made_truth(kind, X) + 0.3 * rng.normal(size=n), {0: 1, 3: -1}


def n_violations(model, signs, n=N):
    """How many of n pairs at borders and of n at random go the wrong way."""
    return sum(count_wrong_pairs(model.tree_, signs, n, at_borders) for at_borders in (True, False))


FAST = {"penalty": 1.0, "max_depth": 3, "search": Structure(3), "random_state": 0}
WHOLE_PATH = FAST | {"penalty": None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lines", "steps", "against"])
def test_no_pair_goes_the_wrong_way_on_made_tables(kind):
    X, y, signs = made(kind, 300, 1)
    model = PiecewiseLinearRegressor(monotonic_cst=signs, **WHOLE_PATH).fit(X, y)
    certificate = model.sign_certificate_
    assert certificate.holds and certificate.signs == {"x0": 1, "x3": -1}
    assert n_violations(model, signs) == 0
    for size in model.path_["size"].unique():
        assert model.at(int(size)).sign_certificate_.holds


@pytest.mark.slow
def test_signs_cost_piecewise_trees_nothing_on_steps_that_keep_them():
    # not so of oblique trees, which may not cut a promised column: bench/13_promises has the price
    new, truth, _ = made("steps", 4000, 9)
    ratios = []
    for seed in range(3):
        X, y, signs = made("steps", 400, seed)
        errors = []
        for promise in (None, signs):
            model = PiecewiseLinearRegressor(monotonic_cst=promise, **FAST).fit(X, y)
            errors.append(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
        ratios.append(errors[1] / errors[0])
    assert np.mean(ratios) < 1.05


def test_a_real_table_with_names_and_a_given_price():
    data = load_diabetes(as_frame=True)
    signs = {"bmi": 1, "bp": 1, "s3": -1}
    model = PiecewiseLinearRegressor(
        monotonic_cst=signs, penalty=0.5, search=Structure(3), random_state=0
    ).fit(data.data, data.target)
    assert model.sign_certificate_.holds
    places = {list(data.data.columns).index(name): sign for name, sign in signs.items()}
    assert n_violations(model, places) == 0


def test_two_classes():
    data = load_breast_cancer()
    X = data.data[:, :6]
    signs = {0: -1, 1: -1, 4: -1}
    model = PiecewiseLinearClassifier(monotonic_cst=signs, **FAST).fit(X, data.target)
    assert model.sign_certificate_.holds
    assert n_violations(model, signs) == 0


def test_gaps_are_branches():
    X, y, signs = made("lines", 400, 3)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.15] = np.nan
    model = PiecewiseLinearRegressor(monotonic_cst=signs, **FAST).fit(
        X, np.where(np.isnan(y), 0, y)
    )
    certificate = model.sign_certificate_
    assert certificate.holds
    assert n_violations(model, signs) == 0


def test_labels_beside_a_promise_are_branches():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(400, 2)), columns=["a", "b"])
    X["kind"] = rng.choice(["u", "v", "w"], 400)
    y = np.where(X["kind"] == "u", -X["a"], 2 * X["a"]) + X["b"] + 0.1 * rng.normal(size=400)
    model = PiecewiseLinearRegressor(monotonic_cst={"a": 1}, **FAST).fit(X, y)
    assert model.sign_certificate_.holds
    below = X.assign(a=0.2)
    assert (model.predict(X.assign(a=0.8)) >= model.predict(below)).all()
    with pytest.raises(
        ValueError, match="monotonic_cst must name columns of numbers, got labels in 'kind'"
    ):
        clone(model).set_params(monotonic_cst={"kind": 1}).fit(X, y)


def test_no_promise_changes_nothing():
    X, y, _ = made("lines", 300, 2)
    plain = PiecewiseLinearRegressor(**FAST).fit(X, y)
    zeros = PiecewiseLinearRegressor(monotonic_cst=[0] * 6, **FAST).fit(X, y)
    assert plain.sign_certificate_ is None
    assert (plain.predict(X) == zeros.predict(X)).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"nobody": 1}, "monotonic_cst must name columns of X"),
        ({"x0": 1, 0: -1}, "monotonic_cst must give each column one sign, got two for 'x0'"),
        ({"x0": 2}, "monotonic_cst must be -1, 0 or 1 for each column, got 2"),
        ({"x0": True}, "monotonic_cst must be -1, 0 or 1 for each column, got True"),
        ([1, 0], r"monotonic_cst must have one number per column \(6\)"),
        (1, "monotonic_cst must be None, a dict"),
        ("x0", "monotonic_cst must be None, a dict"),
    ],
)
def test_bad_promises_get_one_line(wrong, message):
    X, y, _ = made("lines", 60, 0)
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    with pytest.raises(ValueError, match=message) as error:
        PiecewiseLinearRegressor(monotonic_cst=wrong, **FAST).fit(X, y)
    assert "\n" not in str(error.value)


def test_refused_elsewhere():
    X, y, signs = made("lines", 60, 0)
    with pytest.raises(ValueError, match="search must be 'structure' if monotonic_cst is given"):
        PiecewiseLinearRegressor(monotonic_cst=signs, search="em").fit(X, y)
    iris = load_iris()
    with pytest.raises(
        ValueError, match="monotonic_cst must be None for more than two classes, got 3"
    ):
        PiecewiseLinearClassifier(monotonic_cst={0: 1}).fit(iris.data, iris.target)
    with pytest.raises(ValueError, match="search must be 'structure' if monotonic_cst is given"):
        ObliqueAdditiveRegressor(monotonic_cst=signs, search="em").fit(X, y)
    with pytest.raises(
        ValueError, match="monotonic_cst must be None for more than two classes, got 3"
    ):
        ObliqueAdditiveClassifier(monotonic_cst={0: 1}).fit(iris.data, iris.target)


# The certificate, of any tree.

AB = Columns(["a", "b"], [None] * 2, [False] * 2, [(0, 1)] * 2)


def test_certificate_of_a_tree_that_breaks_its_promise():
    leaves = [Leaf(1.0, [1], [1.0]), Leaf(1.2, [1], [-1.0])]
    tree = Tree([Split([0], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, *leaves], AB)
    found = certify_signs(tree, {"a": 1})
    assert isinstance(found, SignCertificate) and not found.holds
    assert found.least_step == pytest.approx(-1.8) and found.row == {"a": 0.5, "b": 1.0}
    assert (found.n_leaves, found.n_pairs, found.leaves) == (2, 1, (1, 2))
    assert "not certified" in str(found) and "minimum step -1.8 at a = 0.5" in str(found)
    assert certify_signs(tree, {"a": -1}).least_step == pytest.approx(-0.2)
    assert certify_signs(tree, [0, 1]).least_slope == -1
    assert certify_signs(tree, [0, 0]).holds


def test_certificate_refuses_what_it_cannot_judge():
    tilted = Tree(
        [Split([0, 1], 0.5, (1, 1)), None, None],
        [2, -1, -1],
        [1, -1, -1],
        [None, Leaf(0.0), Leaf(1.0)],
        AB,
    )
    with pytest.raises(ValueError, match="one column at a time"):
        certify_signs(tilted, [1, 0])
    bent = Leaf(0.0, curves=[Curve(0, [0, 1, 2], [[0, 1], [1, 1]])])
    cut = Tree([Split([0], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, bent, bent], AB)
    with pytest.raises(ValueError, match="linear equations"):
        certify_signs(cut, [1, 0])
    three = Tree([None], [-1], [-1], [Leaf((0.2, 0.3, 0.5))], AB, (0, 1, 2))
    with pytest.raises(ValueError, match="two classes, got 3 classes"):
        certify_signs(three, [1, 0])


def test_certificate_of_curves_where_no_cut_asks_about_the_column():
    bent = Leaf(0.0, curves=[Curve(0, [0, 1, 2], [[0, 3, -1], [2, 1, 0]])])
    split = Split([0, 1], 0.5, (1, 1))
    assert certify_signs(Tree([None], [-1], [-1], [bent], AB), [1, 0]).least_slope == 1
    assert not certify_signs(Tree([None], [-1], [-1], [bent], AB), [-1, 0]).holds
    both = [None, bent, Leaf(1.0, [1], [2.0])]
    tree = Tree([Split([1], 0.5), None, None], [2, -1, -1], [1, -1, -1], both, AB)
    found = certify_signs(tree, {"a": 1})
    assert found.holds and (found.n_leaves, found.n_pairs, found.least_slope) == (2, 0, 0)
    with pytest.raises(ValueError, match="one column at a time"):
        certify_signs(replace(tree, splits=(split, None, None)), {"a": 1})
    down = Leaf(0.0, curves=[Curve(0, [0, 1, 2], [[0, 3], [1, 1]])])
    jump = certify_signs(Tree([None], [-1], [-1], [down], AB), {"a": 1})
    assert not jump.holds and (jump.least_step, jump.threshold, jump.column) == (-2, 1, "a")


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_least_step_is_reached_and_nowhere_undercut(seed):
    rng = np.random.default_rng(seed)
    m = rng.integers(0, 6)
    low = rng.normal(size=m)
    high = low + rng.exponential(size=m) * (rng.random(m) < 0.9)
    pair = [
        (rng.normal(), rng.normal(size=m) * (rng.random(m) < 0.7), *np.sort(2 * rng.normal(size=2)))
        for _ in range(2)
    ]
    found, x = least_step(*pair, low, high)
    assert ((x >= low - 1e-12) & (x <= high + 1e-12)).all()
    rows = np.vstack([x, rng.uniform(low, high, (500, m))])
    below, above = (np.clip(v + rows @ s, *ends) for v, s, *ends in pair)
    assert above[0] - below[0] == pytest.approx(found, abs=1e-9)
    assert (above - below >= found - 1e-9).all()


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_least_distance_satisfies_the_conditions_of_an_optimum(seed):
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(8, 4))
    h = E @ rng.normal(size=4) - rng.exponential(size=8)
    z = least_distance(E, h)
    assert (E @ z >= h - 1e-7).all()
    tight = E @ z < h + 1e-6
    push = np.linalg.lstsq(E[tight].T, z, rcond=None)[0] if tight.any() else np.zeros(0)
    assert np.allclose(E[tight].T @ push, z, atol=1e-5)


def test_lines_that_cross_beyond_their_bounds_are_in_order():
    split = Split([0], 0.5)
    for lower, n_broken in [(1.5, 0), (1.0, 1)]:
        leaves = [Leaf(1.0, [1], [1.0], 0.0, 1.5), Leaf(2.0, [1], [-2.0], lower, 3.0)]
        tree = Tree([split, None, None], [2, -1, -1], [1, -1, -1], [None, *leaves], AB)
        lines = leaf_lines(tree)
        faces = shared_faces(lines, AB, 0)
        assert len(broken_steps(lines, AB, np.array([1, 0]), faces)) == n_broken


def test_least_distance_to_a_border_is_zero():
    E = np.array([[1.0, 1.0], [1.0, -1.0]])
    assert np.array_equal(least_distance(E, np.array([0.0, -1e9])), np.zeros(2))


def test_bounds_follow_the_signs():
    leaves = [Leaf(1.0, [1], [1.0], 0.0, 5.0), Leaf(1.2, [1], [1.0], 1.0, 3.0)]
    tree = Tree([Split([0], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, *leaves], AB)
    assert [leaf.upper for leaf in order_bounds(tree, [1, 0]).leaves[1:]] == [5.0, 5.0]
    assert [leaf.lower for leaf in order_bounds(tree, [-1, 0]).leaves[1:]] == [0.0, 0.0]
    assert len(shared_faces(leaf_lines(tree), AB, 0)) == 1
    assert shared_faces(leaf_lines(tree), AB, 1) == []
    assert (check_signs({"b": -1}, AB) == [0, -1]).all()


def test_certificate_in_report_and_as_json(tmp_path, monkeypatch):
    leave_out_pictures(monkeypatch)
    X, y, signs = made("steps", 200, 0)
    model = PiecewiseLinearRegressor(monotonic_cst=signs, **FAST | {"penalty": 0.5}).fit(X, y)
    told = load_rules(model.to_json()).source["sign_certificate"]
    assert told == json.loads(json.dumps(model.sign_certificate_.to_dict()))
    assert told["holds"] and told["signs"] == {"x0": 1, "x3": -1}
    assert set(told["row"]) == {f"x{j}" for j in range(6)}
    page = tmp_path / "page.html"
    report(model, X, y, page)
    text = page.read_text()
    both = "y never falls as x0 rises, y never rises as x3 rises"
    assert "Monotonicity constraints" in text and both.replace(",", ";") in text
    assert f"certified: {both}; " in text and "not used" not in text


@pytest.mark.parametrize("oblique", [False, True])
def test_certificate_and_report_name_the_class_and_what_is_not_used(oblique, monkeypatch):
    leave_out_pictures(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    y = np.where(rng.random(200) < np.where(X[:, 0] > 0.5, 0.9, 0.1), "refused", "granted")
    kind = ObliqueAdditiveClassifier if oblique else PiecewiseLinearClassifier
    model = kind(monotonic_cst={1: 1, 2: -1}, penalty=5.0, search=Structure(1), random_state=0)
    model.fit(X, y)
    found = model.sign_certificate_
    promises = ["P(refused) never falls as x1 rises", "P(refused) never rises as x2 rises"]
    trivial = "x1 and x2 are not used, so their signs hold trivially"
    assert found.promises() == promises and found.unused == ("x1", "x2")
    assert str(found).startswith(f"certified: {', '.join(promises)}; {trivial}; ")
    assert "slope" not in str(found)
    assert f"<p>{'; '.join([*promises, trivial])}. All other columns" in report(model, X, y)


def test_certificate_calls_numbers_by_their_name_at_every_size():
    X, y, signs = made("lines", 200, 1)
    model = PiecewiseLinearRegressor(monotonic_cst=signs, **WHOLE_PATH | {"max_depth": 1})
    model.fit(X, pd.Series(y, name="price"))
    assert str(model.sign_certificate_).startswith("certified: price never falls as x0 rises")
    for size in model.path_["size"].unique():
        assert model.at(int(size)).sign_certificate_.target == "price"


def test_certificate_says_which_column_a_tree_does_not_use():
    leaves = [Leaf(1.0, [1], [1.0]), Leaf(1.2, [1], [2.0])]
    tree = Tree([Split([1], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, *leaves], AB)
    found = certify_signs(tree, {"a": -1, "b": 1})
    assert found.unused == ("a",) and "minimum slope 1," in str(found)  # of b in both leaves
    assert "; a is not used, so it holds trivially; " in str(found)
    line = Tree([None], [-1], [-1], [Leaf(1.0, [1], [2.5])], AB)
    for certified in (certify_signs, certify_curves):  # the least slope is of what is used
        found = certified(line, np.array([-1, 1]))
        assert found.least_slope == 2.5 and "1 leaf, 0 pairs at a face" in str(found)
    cut = Tree([Split([0], 0.5), None, None], [2, -1, -1], [1, -1, -1], [None, *leaves], AB)
    assert certify_signs(cut, {"a": 1}).unused == ()


# Curves and tilted cuts.

QUICK = {"penalty": 1.6, "search": Structure(3), "random_state": 0}


def curved(kind, n, seed):
    """A table like `made`, for oblique trees: its truth bends in the promised columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 6))
    if kind in ("lines", "against"):
        return X, made_truth(kind, X), made_truth(kind, X) + 0.3 * rng.normal(size=n)
    up, down = np.tanh(6 * X[:, 0] - 3), -np.sqrt(X[:, 3])
    side = X[:, 1] + X[:, 2] > (1 if kind == "tilted" else 9)
    truth = np.where(side, 3 * up + 2 * down + 2, up + down + np.sin(5 * X[:, 4]))
    return X, truth, truth + 0.3 * rng.normal(size=n)


def rows_at_borders(model, j, n, rng):
    """Pairs (n, d) that differ in column j, less and more; one stands at a knot, both at a gate."""
    ends = np.array(model.columns_.ranges, float)
    rows = rng.uniform(*ends.T, (n, len(ends)))
    splits = [split for split in model.tree_.splits if split is not None]
    for split in splits:
        some = rng.random(n) < 0.7 / len(splits)
        k, *_ = split.features
        rest = rows[some][:, split.features[1:]] @ np.array(split.coef[1:])
        rows[some, k] = (split.threshold - rest) / split.coef[0]
    low, high = ends[j]
    knots = np.array([*model.design_.bases[j].breaks, low, high])
    rows[:, j] = rng.choice(knots, n)
    beside = rows.copy()
    beside[:, j] += rng.choice([-1, 1], n) * (high - low) * 10 ** rng.uniform(-6, 0, n)
    swap = (beside[:, j] < rows[:, j])[:, None]
    return np.where(swap, beside, rows), np.where(swap, rows, beside)


def n_falls(model, signs, n=N):
    """Of n pairs at random and n at knots and gates, how many go the wrong way."""
    rng = np.random.default_rng(1)
    wrong = count_wrong_pairs(model.tree_, signs, n, at_borders=False)
    for j, sign in signs.items():
        pairs = rows_at_borders(model, j, -(-n // len(signs)), rng)
        if hasattr(model, "classes_"):
            low, high = (model.predict_proba(rows)[:, 1] for rows in pairs)
        else:
            low, high = (model.predict(rows) for rows in pairs)
        wrong += int((sign * (high - low) < 0).sum())
    return wrong


@pytest.mark.parametrize("smoothing", [0.5, "reml", case("gcv", quick=False)])
@pytest.mark.parametrize("kind", ["tilted", "sums", "lines", "against"])
def test_no_pair_of_curves_goes_the_wrong_way(kind, smoothing):
    X, _, y = curved(kind, 400, 1)
    signs = {0: 1, 3: -1}
    model = ObliqueAdditiveRegressor(
        monotonic_cst=signs, curves=CurveOptions(smoothing=smoothing), **QUICK
    ).fit(X, y)
    found = model.sign_certificate_
    assert found.holds and found.signs == {"x0": 1, "x3": -1} and found.n_pairs == 0
    asked = {j for split in model.tree_.splits if split is not None for j in split.features}
    assert not asked & {0, 3}
    assert n_falls(model, signs) == 0


@pytest.mark.slow
def test_curves_are_as_good_where_the_truth_keeps_the_promise():
    ratios = []
    for kind in ("tilted", "sums"):
        new, truth, _ = curved(kind, 4000, 9)
        for seed in range(6):
            X, _, y = curved(kind, 400, seed)
            errors = []
            for signs in (None, {0: 1, 3: -1}):
                model = ObliqueAdditiveRegressor(monotonic_cst=signs, **QUICK).fit(X, y)
                errors.append(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
            ratios.append(errors[1] / errors[0])
    # the middle: a plane that ends a hair elsewhere moves one draw by half, either way
    assert np.median(ratios) < 1.02


def test_curves_on_a_real_table_with_every_size():
    data = load_diabetes(as_frame=True)
    signs = {"bmi": 1, "bp": 1, "s3": -1}
    model = ObliqueAdditiveRegressor(monotonic_cst=signs, search=Structure(1), random_state=0)
    model.fit(data.data, data.target)
    places = {list(data.data.columns).index(name): sign for name, sign in signs.items()}
    for size in model.path_["size"].unique():
        one = model.at(int(size))
        assert one.sign_certificate_.holds
    bare = clone(model).set_params(monotonic_cst=places, penalty=1.6)
    bare.fit(data.data.to_numpy(), data.target)
    assert n_falls(bare, places) == 0


def test_curves_of_two_classes():
    data = load_breast_cancer()
    X = data.data[:, :6]
    signs = {0: -1, 1: -1, 4: -1}
    for smoothing in (0.5, "reml"):
        model = ObliqueAdditiveClassifier(
            monotonic_cst=signs, curves=CurveOptions(smoothing=smoothing), **QUICK
        )
        model.fit(X, data.target)
        assert model.sign_certificate_.holds
        assert n_falls(model, signs) == 0


def test_shown_fic_is_that_of_the_curves_that_keep_the_promise():
    X, _, y = curved("tilted", 400, 2)
    model = ObliqueAdditiveRegressor(monotonic_cst={0: 1, 3: -1}, **QUICK).fit(X, y)
    expert, gates = model.model_.expert, model.model_.gates
    location, scale = model.y_location_scale_
    table = model.design_.table(X)
    at = gates.route(table.codes)
    var = expert.var[0]
    mean = np.take_along_axis(table.Z @ expert.coef.T, at[:, None], axis=1)[:, 0]
    off = ((y - location) / scale - mean) ** 2 / (2 * var)
    value = -np.minimum(off, 10).sum() - len(y) * (0.5 * np.log(2 * np.pi * var) + np.log(scale))
    for k, n in enumerate(np.bincount(at, minlength=len(expert.coef))):
        n_curves = expert.terms.n_priced(expert.coef[[k]])[0]
        value -= 0.8 * (1 + n_curves) * np.log1p(n)
    for gate, path in zip(gates.gates, gates.paths, strict=True):
        below = np.count_nonzero(path[at])
        k = len(gate.features)
        value -= 1.6 * (0.5 * (k + 1) * np.log1p(below) + k * np.log(4))  # four may be split on
    assert model.fic_ == pytest.approx(value, abs=1e-6)


def test_gaps_are_branches_of_curves():
    X, _, y = curved("tilted", 500, 3)
    rng = np.random.default_rng(0)
    X[rng.random(500) < 0.2, 0] = np.nan
    model = ObliqueAdditiveRegressor(monotonic_cst={0: 1, 3: -1}, **QUICK).fit(X, y)
    assert model.sign_certificate_.holds
    assert n_falls(model, {0: 1, 3: -1}) == 0


def test_promises_of_curves_in_other_units_and_threads():
    X, _, y = curved("tilted", 300, 4)
    signs = {0: 1, 3: -1}
    model = ObliqueAdditiveRegressor(monotonic_cst=signs, **QUICK)
    first = clone(model).fit(X, y)
    again = clone(model).set_params(n_jobs=2).fit(X, y)
    assert (first.predict(X) == again.predict(X)).all()
    scaled = clone(model).fit(1024 * X, 4096 * y)
    assert np.allclose(scaled.predict(1024 * X), 4096 * first.predict(X), rtol=1e-6)
    turned = clone(model).set_params(monotonic_cst={0: -1, 3: 1}).fit(X, -y)
    assert np.allclose(turned.predict(X), -first.predict(X), atol=1e-6)


def test_no_promise_changes_no_curve():
    X, _, y = curved("tilted", 300, 5)
    for smoothing in (0.5, "reml"):
        plain = ObliqueAdditiveRegressor(curves=CurveOptions(smoothing=smoothing), **QUICK).fit(
            X, y
        )
        zeros = clone(plain).set_params(monotonic_cst=[0] * 6).fit(X, y)
        assert plain.sign_certificate_ is None and zeros.sign_certificate_.holds
        assert (plain.predict(X) == zeros.predict(X)).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"nobody": 1}, "monotonic_cst must name columns of X"),
        ({"x0": 1, 0: -1}, "monotonic_cst must give each column one sign, got two for 'x0'"),
        ({"x0": 2}, "monotonic_cst must be -1, 0 or 1 for each column, got 2"),
        ({"kind": 1}, "monotonic_cst must name columns of numbers, got labels in 'kind'"),
        ([1, 0], r"monotonic_cst must have one number per column \(3\)"),
        (
            {"x1": 1},
            "split_features must not contain columns with a constraint in monotonic_cst, got 'x1'",
        ),
    ],
)
def test_bad_promises_of_curves_get_one_line(wrong, message):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(80, 2)), columns=["x0", "x1"])
    X["kind"] = rng.choice(["u", "v", "w"], 80)
    model = ObliqueAdditiveRegressor(monotonic_cst=wrong, split_features=["x1"], **QUICK)
    with pytest.raises(ValueError, match=message) as error:
        model.fit(X, X["x0"] + X["x1"])
    assert "\n" not in str(error.value)


def test_certificate_of_curves_in_report(tmp_path, monkeypatch):
    leave_out_pictures(monkeypatch)
    X, _, y = curved("tilted", 200, 0)
    model = ObliqueAdditiveRegressor(monotonic_cst={0: 1, 3: -1}, **QUICK).fit(X, y)
    told = load_rules(model.to_json()).source["sign_certificate"]
    assert told == json.loads(json.dumps(model.sign_certificate_.to_dict()))
    assert told["holds"] and told["signs"] == {"x0": 1, "x3": -1}
    page = tmp_path / "page.html"
    report(model, X, y, page)
    text = page.read_text()
    assert "Monotonicity constraints" in text
    assert "certified: y never falls as x0 rises, y never rises as x3 rises; " in text
