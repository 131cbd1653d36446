"""Pictures hold what they should: no box over another, no text cut off, no number but the model's."""

import re
from itertools import combinations
from types import SimpleNamespace

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.fab.engine import Structure
from fabinterp.forests.reading import read_ensemble
from fabinterp.metatree.estimators import MetaTreeClassifier, MetaTreeRegressor
from fabinterp.models.oblique import ObliqueAdditiveRegressor
from fabinterp.models.piecewise import PiecewiseLinearClassifier, PiecewiseLinearRegressor
from fabinterp.proxy.local_explanations import explain_local
from fabinterp.rules.core import Columns, Leaf, Split, read_columns
from fabinterp.rules.digits import short_number
from fabinterp.rules.ruleset import Tree
from fabinterp.rules.text import answer_text
from fabinterp.show import tree_plots as pictures
from fabinterp.show.tree_plots import (
    plot_meta_tree,
    plot_tradeoff,
    plot_tree,
    plot_uncertainty,
    tidy_layout,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# What the tests draw


def grown(X, y, n_leaves, kind=DecisionTreeClassifier):
    tree = kind(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
    return read_ensemble(tree, read_columns(X)).trees[0]


def iris_tree(n_leaves=5):
    data = load_iris()
    return grown(data.data, data.target, n_leaves), data.data, data.target


NAMES = ("a", "sepal length (cm)", "n" * 300, "$x_1^2$ and _under_", "<script>alert('x')</script>", "שלום עולם",
         "😀 smile", "line\nbreak", "")  # fmt: skip
LABELS = ("red", "$green$", "b" * 60, "\n", "<b>", "אדום")


def random_tree(rng, n_leaves, n_classes=0, hostile=False):
    """A tree of any shape, of numbers, labels, slanted questions and questions for gaps."""
    d = len(NAMES) if hostile else 4
    names = NAMES if hostile else tuple(f"feature {j}" for j in range(d))
    columns = Columns(names, (None,) * (d - 1) + (LABELS,), (True,) * d)
    splits = [None]
    yes = [-1]
    no = [-1]
    open_ = [0]
    while len(open_) < n_leaves:
        k = open_.pop(int(rng.integers(len(open_))))
        kind = rng.integers(4)
        f = int(rng.integers(d - 1))
        splits[k] = [
            Split(
                (f,),
                float(rng.normal()) * 10.0 ** rng.integers(-6, 7),
                missing=bool(rng.integers(2)),
            ),
            Split((d - 1,), categories=tuple(rng.choice(6, 3, replace=False)), missing=True),
            Split((f, (f + 1) % (d - 1)), float(rng.normal()), tuple(rng.normal(size=2))),
            Split((f,), np.inf, missing=True),
        ][kind]
        no[k] = len(splits)
        yes[k] = len(splits) + 1
        splits += [None, None]
        yes += [-1, -1]
        no += [-1, -1]
        open_ += [no[k], yes[k]]
    shares = rng.dirichlet(np.ones(max(n_classes, 1)), len(splits))
    leaves = [None if s is not None else Leaf(tuple(p)) if n_classes else Leaf(float(rng.normal() * 1e5))
              for s, p in zip(splits, shares, strict=True)]  # fmt: skip
    classes = tuple((*LABELS, "g", "h")[:n_classes]) if n_classes else None
    return Tree(
        tuple(splits), yes, no, tuple(leaves), columns, classes, "t" * 90 if hostile else "y"
    )


def boxes(ax):
    """The frames of the boxes by node, as (left, top, right, bottom) in inches."""
    found = {}
    for p in ax.patches:
        if re.fullmatch(r"node\d+", p.get_gid() or ""):
            x, y = p.get_xy()
            found[int(p.get_gid()[4:])] = (x, y, x + p.get_width(), y + p.get_height())
    return found


def said(ax, pattern):
    return [t.get_text() for t in ax.texts if re.fullmatch(pattern, t.get_gid() or "")]


def extents_of(ax):
    """The texts that are drawn, with their places in pixels of the figure."""
    if ax.figure.get_layout_engine() is not None:
        ax.figure.canvas.draw()
    return [(t, t.get_window_extent()) for t in ax.texts if t.get_text()]


def assert_all_inside(ax):
    """Every text lies within the figure, every text of a box within its box, and none is read as a formula."""
    page = ax.figure.bbox
    frames = {k: p for p in ax.patches if (k := p.get_gid() or "").startswith("node")}
    for text, place in extents_of(ax):
        assert (
            place.x0 >= -1
            and place.y0 >= -1
            and place.x1 <= page.x1 + 1
            and place.y1 <= page.y1 + 1
        ), text
        assert not text.get_parse_math()
        if re.fullmatch(r"node\d+(:text|:small)", text.get_gid() or ""):
            frame = frames[text.get_gid().split(":")[0]].get_window_extent()
            assert place.x0 >= frame.x0 and place.x1 <= frame.x1, text
            assert place.y0 >= frame.y0 - 1.5 and place.y1 <= frame.y1 + 1.5, text


def meet(a, b, slack=1e-9):
    return (
        a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack
    )


def crosses(start, end, box):
    """Whether a straight line passes through the inside of a box."""
    t = np.linspace(0, 1, 200)[:, None]
    x, y = (np.array(start) * (1 - t) + np.array(end) * t).T
    return bool(
        (
            (x > box[0] + 1e-6) & (x < box[2] - 1e-6) & (y > box[1] + 1e-6) & (y < box[3] - 1e-6)
        ).any()
    )


# Layout


@st.composite
def families(draw):
    """Children per node, parents before children, and a size for each node."""
    n = draw(st.integers(1, 60))
    children = [[] for _ in range(n)]
    for k in range(1, n):
        children[draw(st.integers(0, k - 1))].append(k)
    return children, draw(st.lists(st.floats(0.1, 5.0), min_size=n, max_size=n))


@examples(150)
@given(families())
def test_neighbours_of_a_level_do_not_overlap_and_parents_stand_in_the_middle(family):
    children, sizes = family
    place = tidy_layout(children, sizes, 0.25)
    level = [0] * len(sizes)
    for k, below in enumerate(children):
        for c in below:
            level[c] = level[k] + 1
        if below:
            assert np.isclose(place[k], (place[below[0]] + place[below[-1]]) / 2)
            assert list(place[below]) == sorted(place[below])
    for d in set(level):
        here = [k for k in range(len(sizes)) if level[k] == d]
        for a, b in combinations(here, 2):
            assert abs(place[a] - place[b]) >= (sizes[a] + sizes[b]) / 2 + 0.25 - 1e-9
    assert np.isclose(min(p - s / 2 for p, s in zip(place, sizes, strict=True)), 0)


def test_two_leaves_are_as_near_as_they_may_be_and_a_mirrored_tree_is_mirrored():
    assert np.allclose(tidy_layout([[1, 2], [], []], [1, 1, 1], 0.5), [1.25, 0.5, 2.0])
    place = tidy_layout([[1, 4], [2, 3], [], [], []], [1.0] * 5)
    other = tidy_layout([[1, 2], [], [3, 4], [], []], [1.0] * 5)
    assert np.allclose(place[[0, 1, 4, 2, 3]], place.max() + place.min() - other[[0, 2, 1, 4, 3]])


@examples(25)
@given(st.integers(0, 10**6), st.integers(1, 32), st.sampled_from(["down", "outline"]),
       st.sampled_from([None, 3.0, 6.4]), st.sampled_from([0, 3]))  # fmt: skip
def test_boxes_of_random_trees_do_not_overlap_and_no_line_crosses_one(
    seed, n_leaves, layout, width, n_classes
):
    tree = random_tree(np.random.default_rng(seed), n_leaves, n_classes)
    sketch = pictures.tree_drawing(tree)
    plan = pictures.best_layout(sketch, pictures.collapsed_nodes(sketch), (width, np.inf), layout)
    frames = [
        (x, y, x + b.width, y + b.height)
        for x, y, b in zip(plan.left, plan.top, plan.boxes, strict=True)
    ]
    assert len(frames) == 2 * n_leaves - 1
    assert not [pair for pair in combinations(frames, 2) if meet(*pair)]
    assert all(a >= 0 and b >= 0 and c <= plan.width and d <= plan.height for a, b, c, d in frames)
    for way in plan.edges[1:]:
        for start, end in zip(way, way[1:], strict=False):
            assert not [frame for frame in frames if crosses(start, end, frame)]
    for k, box in enumerate(plan.boxes):
        assert -1 <= box.parent < k and len(plan.edges) == len(plan.boxes)
    assert [box.parent for box in plan.boxes].count(-1) == 1


@examples(12)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.sampled_from([2.0, 3.0, None]),
    st.sampled_from([0, 2, 6]),
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_drawn_within_their_boxes_and_the_figure(
    seed, n_leaves, width, n_classes
):
    ax = plot_tree(
        random_tree(np.random.default_rng(seed), n_leaves, n_classes, hostile=True), width=width
    )
    assert len(boxes(ax)) == 2 * n_leaves - 1
    assert not [pair for pair in combinations(boxes(ax).values(), 2) if meet(*pair)]
    assert_all_inside(ax)
    plt.close("all")


# The tree


def test_every_question_and_leaf_has_its_box_and_says_what_it_is():
    tree, X, y = iris_tree()
    ax = plot_tree(tree, X)
    assert set(boxes(ax)) == set(range(9))
    rules = tree.rules().measure(X)
    leaves = [k for k in pictures.nodes_in_rule_order(tree) if tree.splits[k] is None]
    for k, rule in zip(leaves, rules.rules, strict=True):
        best = int(np.argmax(rule.leaf.value))
        assert said(ax, f"node{k}:text") == [str(tree.classes[best])]
        counted = f"{100 * rule.leaf.value[best]:.3g} %, from {rule.support:.6g} row" + (
            "s" if rule.support != 1 else ""
        )
        assert " ".join(said(ax, f"node{k}:small")) == counted
        parts = [p for p in ax.patches if re.fullmatch(f"leaf{k}:class\\d", p.get_gid() or "")]
        wide = sum(p.get_width() for p in parts)
        assert np.allclose([p.get_width() / wide for p in parts], rule.leaf.value)
    for k in set(range(9)) - set(leaves):
        (f,) = tree.splits[k].features
        assert (
            " ".join(said(ax, f"node{k}:text"))
            == f"x{f} > {short_number(tree.splits[k].threshold)}?"
        )
    assert sorted(said(ax, r"number\d+")) == ["1", "2", "3", "4", "5"]
    assert_all_inside(ax)


def test_lines_are_as_wide_as_the_share_of_the_rows():
    tree, X, y = iris_tree()
    ax = plot_tree(tree, X)
    passed = tree.decision_path(X).toarray().mean(axis=0)
    widths = {
        int(k.get_gid()[3:]): k.get_linewidth()
        for k in ax.lines
        if (k.get_gid() or "").startswith("way")
    }
    assert set(widths) == set(range(1, 9))
    assert np.allclose([widths[k] for k in range(1, 9)], 0.5 + 4 * passed[1:])
    assert said(plot_tree(tree, X), "note") == ["width of a line: share of the rows"]
    assert said(plot_tree(tree), "note") == []  # nothing is known of any rows


def test_numbers_stand_on_one_scale_with_the_spread_of_their_rows():
    data = load_diabetes()
    tree = grown(data.data, data.target, 6, DecisionTreeRegressor)
    ax = plot_tree(tree, data.data, data.target)
    at = tree.apply(data.data)
    spread = {k: np.quantile(data.target[at == k], (0.1, 0.9)) for k in np.unique(at)}
    low = np.min(list(spread.values()))
    high = np.max(list(spread.values()))
    lines = {k.get_gid(): k for k in ax.lines if k.get_gid()}
    bars = {p.get_gid(): p for p in ax.patches if p.get_gid()}
    for k, (a, b) in spread.items():
        begin, end = lines[f"leaf{k}:scale"].get_xdata()
        place = lines[f"leaf{k}:answer"].get_xdata()[0]
        assert np.isclose(
            (place - begin) / (end - begin), (tree.leaves[k].value - low) / (high - low)
        )
        bar = bars[f"leaf{k}:spread"]
        assert np.isclose((bar.get_x() - begin) / (end - begin), (a - low) / (high - low))
        assert np.isclose(bar.get_width() / (end - begin), (b - a) / (high - low))
    assert_all_inside(ax)


def test_a_small_spread_on_a_wide_scale_is_seen():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 20, np.tile([0.0, 1.0], 20), 1e6)
    tree = grown(X, y, 2, DecisionTreeRegressor)
    ax = plot_tree(tree, X, y)
    bars = [p for p in ax.patches if (p.get_gid() or "").endswith(":spread")]
    lines = {k.get_gid(): k.get_xdata() for k in ax.lines if k.get_gid()}
    assert len(bars) == 2
    for bar in bars:
        begin, end = lines[bar.get_gid().replace("spread", "scale")]
        assert bar.get_width() >= 0.05 - 1e-9  # wider than the mark of the answer, 1.6 points
        assert begin - 1e-9 <= bar.get_x() and bar.get_x() + bar.get_width() <= end + 1e-9


def test_gaps_sets_and_slanted_questions_are_said():
    columns = Columns(
        ("age", "colour", "b"), (None, ("red", "green", "blue"), None), (True, False, False)
    )
    walls = (Split((0,), 3.25, missing=True), Split((1,), categories=(0, 2)), Split((0, 2), 1.0, (1.5, -2.0)),
             Split((0,), np.inf, missing=True), None, None, None, None, None)  # fmt: skip
    no = [1, 3, 5, 7, -1, -1, -1, -1, -1]
    yes = [2, 4, 6, 8, -1, -1, -1, -1, -1]
    leaves = tuple(None if s else Leaf(float(k)) for k, s in enumerate(walls))
    ax = plot_tree(Tree(walls, yes, no, leaves, columns))
    told = [" ".join(said(ax, f"node{k}:text")) for k in range(4)]
    assert told == ["age > 3.25?", "colour ∈ {red, blue}?", "1.5·age - 2·b > 1?", "age is missing?"]
    assert [said(ax, f"side{k}")[0] for k in (1, 2, 3, 4)] == ["no", "yes ◇", "no", "yes"]
    assert [said(ax, f"side{k}")[0] for k in (5, 6, 7, 8)] == [
        "no ◇",
        "yes",
        "no",
        "yes",
    ]  # a sum, and the gap itself
    assert any("missing" in note for note in said(ax, "note"))
    whole = plot_tree(
        Tree(walls, yes, no, leaves, Columns(columns.names, columns.categories, (False,) * 3))
    )
    assert not any("◇" in text for text in said(whole, r"side\d+|note"))


def test_estimators_with_equations_show_their_largest_terms():
    data = load_diabetes(as_frame=True)
    X = data.data
    y = data.target
    model = PiecewiseLinearRegressor(max_depth=2, penalty=1.0, random_state=0).fit(X, y)
    ax = plot_tree(model, X, y)
    assert len(boxes(ax)) == len(model.tree_.splits)
    for k, leaf in enumerate(model.tree_.leaves):
        if leaf is not None and leaf.has_equation:
            drawn = [
                line for line in ax.lines if re.fullmatch(f"leaf{k}:term\\d+", line.get_gid() or "")
            ]
            assert len(drawn) == min(3, len(leaf.used_features))
            assert {int(line.get_gid().split("term")[1]) for line in drawn} <= set(
                leaf.used_features
            )
        if leaf is not None and leaf.has_equation:
            told = " ".join(said(ax, f"node{k}:small"))
            r = pictures.rule_numbers(model.tree_)[k]
            assert told.startswith(answer_text(model.rules_, r, r + 1))
    for dpi in (72, 100, 200):
        ax.figure.set_dpi(dpi)
        assert_all_inside(ax)
    supports = plot_tree(model)  # counts come from rules_ where no X is given
    numbers = pictures.rule_numbers(model.tree_)
    for k, r in numbers.items():
        assert f"{model.rules_.rules[r].support:.6g} rows" in " ".join(
            said(supports, f"node{k}:small")
        )


def test_every_kind_of_estimator_is_drawn():
    data = load_iris(as_frame=True)
    X = data.data
    y = data.target_names[data.target]
    quick = {"penalty": 1.0, "max_depth": 1, "search": Structure(1), "random_state": 0}
    several = PiecewiseLinearClassifier(**quick).fit(X, y)
    two = PiecewiseLinearClassifier(**quick).fit(X[y != "setosa"], y[y != "setosa"])
    oblique = ObliqueAdditiveRegressor(**quick).fit(X, data.target)
    for model in (several, two, oblique, MetaTreeClassifier(random_state=0).fit(X, y)):
        ax = plot_tree(model, X, width=4.0)
        tree = pictures.predicting_tree(model)
        assert len(boxes(ax)) == len(tree.splits)
        assert_all_inside(ax)
    forest = MetaTreeRegressor(n_trees=3, max_depth=3, random_state=0).fit(X, data.target)
    assert len(boxes(plot_tree(forest.map_tree_))) == len(forest.map_tree_.splits)
    assert len(boxes(plot_tree(forest.to_tree(2)))) == len(forest.to_tree(2).splits)


def test_large_trees_end_in_stubs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = rng.normal(size=2000)
    tree = grown(X, y, 300, DecisionTreeRegressor)
    ax = plot_tree(tree, X)
    stubs = [t for t in said(ax, r"node\d+:text") if t.startswith("…")]
    assert 1 <= len(stubs) and len(boxes(ax)) <= 63
    hidden = sum(int(re.findall(r"\d+", text)[0]) for text in stubs)
    ends = [p for p in ax.patches if re.fullmatch(r"leaf\d+", p.get_gid() or "")]
    assert hidden + len(ends) == tree.n_leaves == 300 and len(ends) + len(stubs) <= 32
    assert_all_inside(ax)
    one = plot_tree(tree, X, max_depth=0)
    assert said(one, "node0:text") == ["… 300 leaves"] and said(one, "node0:small") == ["2000 rows"]
    assert len(boxes(plot_tree(grown(X, y, 64, DecisionTreeRegressor)))) == 127  # drawn whole


@pytest.mark.parametrize("size", [(2, 1.5), (3, 3), (9, 3)])
def test_a_picture_shrinks_into_its_axes(size):
    tree, X, y = iris_tree(8)
    _, ax = plt.subplots(figsize=size)
    assert plot_tree(tree, X, ax=ax) is ax
    frame = ax.get_window_extent()
    for text, place in extents_of(ax):
        assert place.x0 >= frame.x0 - 2 and place.x1 <= frame.x1 + 2, text
        assert place.y0 >= frame.y0 - 2 and place.y1 <= frame.y1 + 2, text


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_ink_goes_with_the_ground(style):
    tree, X, y = iris_tree()
    with plt.style.context(style):
        ax = plot_tree(tree, X)
        ground = np.mean(matplotlib.colors.to_rgb(ax.figure.get_facecolor()))
        for text in ax.texts:
            assert abs(np.mean(matplotlib.colors.to_rgb(text.get_color())) - ground) > 0.9


# The meta-tree


def test_meta_tree_is_as_dark_as_sure():
    data = load_breast_cancer(as_frame=True)
    X = data.data.iloc[:, :8]
    y = data.target
    model = MetaTreeClassifier(max_depth=4, random_state=0).fit(X[:150], y[:150])
    ax = plot_meta_tree(model, max_depth=3, min_prob=0.0)
    tree = model.to_tree()
    posterior = model.posterior_
    asked = np.exp(posterior.log_reach + posterior.log_split)
    shown = [float(text[:-2]) for text in said(ax, r"node\d+:small") if text.endswith(" %")]
    inner = [k for k in range(len(asked)) if asked[k] > 0]
    assert max(shown) == pytest.approx(100 * asked[0], rel=5e-3)
    assert all(min(abs(100 * asked[inner] - p)) <= 0.006 * max(p, 1) for p in shown)
    fills = {
        k: p.get_facecolor()[3]
        for p in ax.patches
        if re.fullmatch(r"node\d+", k := p.get_gid() or "")
    }
    assert fills["node0"] == pytest.approx(0.6 * asked[0])
    widths = {
        int(k.get_gid()[3:]): k.get_linewidth()
        for k in ax.lines
        if (k.get_gid() or "").startswith("way")
    }
    for child in (tree.no[0], tree.yes[0]):
        assert widths[int(child)] == pytest.approx(0.5 + 4 * asked[0])
    assert_all_inside(ax)
    depth = pictures.node_depths(tree)
    assert max(depth[k] for k in boxes(ax)) <= 3


def test_chances_along_a_tree_are_those_of_the_posterior():
    data = load_iris()
    model = MetaTreeRegressor(n_trees=2, max_depth=3, random_state=0).fit(
        data.data, data.data[:, 0] + data.target
    )
    for t in range(2):
        tree = model.to_tree(t)
        reach, asked = pictures.node_probabilities(model, t, tree)
        leaf = np.array([s is None for s in tree.splits])
        assert reach[0] == 1 and np.all(asked[leaf] == 0) and np.all(asked <= reach + 1e-12)
        for k in np.flatnonzero(~leaf):
            assert reach[tree.no[k]] == pytest.approx(asked[k]) and reach[
                tree.yes[k]
            ] == pytest.approx(asked[k])
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    one = MetaTreeClassifier(max_depth=3, split_prob=0.7, random_state=0).fit(
        X, X[:, 0] + 2 * rng.normal(size=60) > 0
    )
    reach, asked = pictures.node_probabilities(one, 0, one.to_tree())
    kept = [[str(s) for s in tree.splits if s is not None] for tree in one.sample_trees(2000, 0)]
    level = pictures.node_depths(one.to_tree())
    assert np.any(
        (reach[level == 2] > 0.1) & (reach[level == 2] < 0.9)
    )  # there is something to doubt
    for k, split in enumerate(one.to_tree().splits):
        if split is not None:
            assert np.mean([str(split) in asks for asks in kept]) == pytest.approx(
                asked[k], abs=0.05
            )


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("width", [3.0, None])
def test_meta_tree_of_hostile_names(width):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 4)), columns=["$size_{$", "<b>", "n" * 300, "שלום"])
    frame["a\nb"] = pd.Categorical.from_codes(rng.integers(0, 3, 150), ["$a$", "אדום", "b" * 80])
    frame.iloc[::7, 1] = np.nan
    y = np.where(frame["<b>"].fillna(1) + (frame["a\nb"] == "$a$") > 0.5, "$yes$", "<no>")
    ax = plot_meta_tree(MetaTreeClassifier(random_state=0).fit(frame, y), max_depth=2, width=width)
    assert_all_inside(ax)
    assert not [pair for pair in combinations(boxes(ax).values(), 2) if meet(*pair)]


def test_questions_of_many_children_are_drawn_too():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 2)).astype(float)
    model = MetaTreeClassifier([0, 1]).fit(X, X[:, 0] > 1)
    ax = plot_meta_tree(model, max_depth=4, min_prob=0.0)
    assert len(boxes(ax)) == len(model.to_tree().splits)
    assert_all_inside(ax)


# The trace


# Size against error


RESULTS = {"a tree": ([8, 2, 4], [0.2, 0.3, 0.24], [0.01, 0.02, 0.03]), "rules $x_1$": ([3, 5], [0.19, 0.21]),
           "all of it": (None, [0.2])}  # fmt: skip


def test_tradeoff_draws_every_point_and_names_every_line():
    ax = plot_tradeoff(RESULTS)
    lines = {k.get_gid(): k for k in ax.lines if (k.get_gid() or "").startswith("model")}
    assert lines["model0"].get_xdata().tolist() == [2, 4, 8]
    assert lines["model0"].get_ydata().tolist() == [0.3, 0.24, 0.2]
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert np.allclose(ends, [[0.28, 0.32], [0.21, 0.27], [0.19, 0.21]])
    assert set(lines["model2"].get_ydata()) == {0.2}
    assert [text.get_text() for text in ax.get_legend().texts] == list(RESULTS)
    assert ax.get_xlabel() == "rules or leaves"


# Draws


def drawn_trees(n=40):
    rng = np.random.default_rng(0)
    data = load_diabetes(as_frame=True)
    trees = []
    for _ in range(n):
        rows = rng.integers(0, len(data.data), len(data.data))
        trees.append(
            grown(data.data.iloc[rows, :5], data.target.iloc[rows], 4, DecisionTreeRegressor)
        )
    return trees, data.data.iloc[:, :5], data.target


def test_inclusion_and_cuts_are_counted():
    trees, X, y = drawn_trees()
    columns = read_columns(X)
    trees = [Tree(t.splits, t.yes, t.no, t.leaves, columns) for t in trees]
    inclusion, all_cuts = pictures.summarize_trees(trees)
    asked = [[s for s in tree.splits if s is not None] for tree in trees]
    assert np.allclose(
        inclusion,
        [np.mean([any(f in s.features for s in a) for a in asked]) for f in range(5)],
    )
    for f, cuts in all_cuts.items():
        assert np.array_equal(
            cuts, sorted(s.threshold for a in asked for s in a if s.features == (f,))
        )
    ax = plot_uncertainty(trees, X)
    for f in range(5):
        if inclusion[f]:
            assert said(ax, f"feature{f}:percent") == [f"{100 * inclusion[f]:.3g} %"]
    (ticks,) = [c for c in ax.collections if c.get_gid() == "feature2:cuts"]
    low = X.iloc[:, 2].min()
    high = X.iloc[:, 2].max()
    (scale,) = [k for k in ax.lines if k.get_gid() == "feature2:scale"]
    a, b = scale.get_xdata()
    found = np.array([path.vertices[0, 0] for path in ticks.get_paths()])
    assert np.allclose((found - a) / (b - a), (all_cuts[2] - low) / (high - low))
    assert_all_inside(ax)


def test_leaf_draws_are_their_quantiles():
    trees, X, y = drawn_trees()
    columns = read_columns(X)
    trees = [Tree(t.splits, t.yes, t.no, t.leaves, columns) for t in trees]
    values = np.random.default_rng(1).normal([0, 1, 5, 3], 0.5, (200, 4))
    proxy = SimpleNamespace(trees_=trees, tree_=trees[0], leaf_draws_=values)
    ax = plot_uncertainty(proxy, X, width=5)
    thin = {k.get_gid(): k.get_xdata() for k in ax.lines if (k.get_gid() or "").startswith("leaf")}
    first = thin["leaf0:wide"]
    scale = (first[1] - first[0]) / np.subtract(*np.quantile(values[:, 0], (0.95, 0.05)))
    for k in range(4):
        a, b = thin[f"leaf{k}:wide"]
        low, high = np.quantile(values[:, k], (0.05, 0.95))
        assert (b - a) / scale == pytest.approx(high - low)
        assert (a - first[0]) / scale == pytest.approx(low - np.quantile(values[:, 0], 0.05))
    assert_all_inside(ax)


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("width", [3.0, 6.4])
def test_draws_of_hostile_trees(width):
    rng = np.random.default_rng(2)
    trees = [random_tree(rng, 6, hostile=True) for _ in range(12)]
    ax = plot_uncertainty(trees, width=width)
    assert_all_inside(ax)
    assert len(said(ax, r"feature\d+:percent")) == 8
    model = MetaTreeClassifier(random_state=0).fit(*iris_tree()[1:])
    assert_all_inside(plot_uncertainty(model.sample_trees(20, 0), width=width))


def test_a_fitted_proxy_is_drawn():
    proxy = pytest.importorskip("fabinterp.proxy.tree_estimators")
    from sklearn.linear_model import BayesianRidge

    data = load_diabetes(as_frame=True)
    model = proxy.ProxyTreeRegressor(BayesianRidge(), size=5, n_draws=8, cv=2, random_state=0)
    model.fit(data.data, data.target)
    ends = [k for k in pictures.nodes_in_rule_order(model.tree_) if model.tree_.splits[k] is None]
    means = [model.tree_.leaves[k].value for k in ends]
    assert np.allclose(
        np.corrcoef(means, model.leaf_draws_.mean(axis=0))[0, 1], 1, atol=0.01
    )  # the same order
    assert np.allclose(pictures.summarize_trees(model.trees_)[0], model.inclusion_)
    assert_all_inside(plot_uncertainty(model, data.data))
    assert_all_inside(plot_tree(model, data.data, data.target))


def test_what_cannot_be_drawn_is_refused():
    tree, X, y = iris_tree()
    other = random_tree(np.random.default_rng(0), 3)
    cases = [
        (lambda: plot_tree(tree.rules()), TypeError, "tree must be a Tree or .* got RuleSet"),
        (
            lambda: plot_tree(DecisionTreeClassifier().fit(X, y)),
            TypeError,
            "got DecisionTreeClassifier",
        ),
        (
            lambda: plot_tree(tree, X, y[:5]),
            ValueError,
            r"y must have one entry per row of X \(150\), got 5",
        ),
        (lambda: plot_tree(tree, None, y), ValueError, "y must have one entry"),
        (
            lambda: plot_tree(tree, max_depth=-1),
            ValueError,
            "max_depth must be None or an integer of at least 0, got -1",
        ),
        (lambda: plot_meta_tree(tree), TypeError, "model must be a fitted meta-tree, got Tree"),
        (
            lambda: plot_meta_tree(MetaTreeClassifier().fit(X, y), 1),
            ValueError,
            "t must be the position of a meta-tree, from 0 to 0, got 1",
        ),
        (lambda: plot_uncertainty(tree), TypeError, "proxy must have trees_ .* or be a list"),
        (
            lambda: plot_uncertainty([tree, other]),
            ValueError,
            "trees must have been fitted to the same columns",
        ),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_rows_that_the_tree_was_not_fitted_to_are_told():
    """The tree of one row was fitted to neighbours: a share is none of the rows of X."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    model = RandomForestClassifier(10, random_state=0).fit(X, X[:, 0] > 0)
    near = explain_local(model, X[0], X, random_state=0)
    words = [text.get_text() for text in plot_tree(near.tree, X).texts]
    assert "rows: the 80 of X; the tree was fitted to neighbours of a row" in " ".join(words)
    counted = [int(word.split(" %, ")[1].split()[0]) for word in words if " %, " in word]
    assert len(counted) == near.n_leaves > 1 and sum(counted) == 80
    words = [text.get_text() for text in plot_tree(near.tree).texts]
    assert not any("rows" in word for word in words)
