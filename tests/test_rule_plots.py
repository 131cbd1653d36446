"""Pictures say what the rules say: bars are intervals, colours are answers, outlines are regions."""

import re
from dataclasses import replace
from itertools import product
from math import inf

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from shared.effort import examples
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fabinterp.forests.reading import read_ensemble
from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split, extents, read_columns
from fabinterp.rules.ruleset import RuleSet
from fabinterp.rules.text import display_width
from fabinterp.show import rule_plots as show
from fabinterp.show.rule_plots import layout_rules, plot_regions, plot_rules, plot_terms


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def tree_rules(X, y, n_leaves=5, kind=DecisionTreeClassifier):
    tree = kind(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
    return (
        read_ensemble(tree, read_columns(X)).trees[0].rules().measure(X, reference=tree.predict(X))
    )


def iris_rules():
    data = load_iris()
    return tree_rules(data.data, data.target), data.data, data.target


def patches(ax, pattern):
    return [p for p in ax.patches if re.fullmatch(pattern, p.get_gid() or "")]


def texts(ax, pattern):
    return [t for t in ax.texts if re.fullmatch(pattern, t.get_gid() or "")]


def interval(*ends, feature=0, missing=False):
    """The conditions low < x ≤ high."""
    low, high = ends
    return tuple(c for c in (((Split((feature,), low, missing=missing), True), low > -inf),
                             ((Split((feature,), high, missing=not missing), False), high < inf)) if c[1])  # fmt: skip


def conditions(*ends, **words):
    return tuple(condition for condition, _ in interval(*ends, **words))


def plain_columns(d, missing=False):
    return Columns(tuple(f"x{j}" for j in range(d)), (None,) * d, (missing,) * d)


# plot_rules


def test_one_bar_per_condition_and_the_bar_is_the_interval():
    rules, X, _ = iris_rules()
    ax = plot_rules(rules, X)
    layout = layout_rules(rules, 6.4)
    assert len(patches(ax, r"rule\d+:\d+")) == rules.n_conditions
    for r, rule in enumerate(rules.rules):
        for e in extents(rule.conditions, rules.columns):
            (f,) = e.features
            (bar,) = patches(ax, f"rule{r}:{f}")
            (line,) = [k for k in ax.lines if k.get_gid() == f"rule{r}:{f}:scale"]
            left, right = line.get_xdata()
            low = X[:, f].min()
            high = X[:, f].max()
            ends = np.array([bar.get_x(), bar.get_x() + bar.get_width()])
            drawn = low + (ends - left) / (right - left) * (high - low)
            assert np.allclose(drawn, [max(e.low, low), min(e.high, high)])
            assert abs(left - layout.left[layout.features.index(f)]) < 1e-9


def test_rows_keep_the_order_and_say_answer_and_support():
    rules, X, _ = iris_rules()
    ax = plot_rules(rules, X)
    tops = [texts(ax, f"rule{r}")[0].get_position()[1] for r in range(len(rules.rules))]
    assert tops == sorted(tops)
    for r, rule in enumerate(rules.rules):
        assert texts(ax, f"rule{r}:answer")[0].get_text() == str(
            rules.classes[int(np.argmax(rule.leaf.value))]
        )
        assert (
            texts(ax, f"rule{r}:support")[0]
            .get_text()
            .endswith(f" %, from {rule.support:.0f} row{'s' * (rule.support != 1)}")
        )
    assert texts(ax, "target")[0].get_text() == "y"


def test_bars_have_the_colour_of_the_answer():
    rules, X, _ = iris_rules()
    ax = plot_rules(rules, X)
    colour = {patch.get_gid(): patch.get_facecolor() for patch in patches(ax, r"rule\d+:\d+")}
    for name, given_colour in colour.items():
        leaf = rules.rules[int(re.findall(r"\d+", name)[0])].leaf
        assert given_colour == to_rgba(show.PALETTE[int(np.argmax(leaf.value))])
    assert len(set(colour.values())) == 3


def test_a_default_a_constant_and_an_impossible_rule_are_said_in_words():
    columns = plain_columns(1)
    rules = RuleSet((Rule(conditions(2.0, 1.0), Leaf(1.0)), Rule((), Leaf(2.0))), columns)
    ax = plot_rules(rules)
    assert [t.get_text() for t in texts(ax, r"rule\d:words")] == ["never", "otherwise"]
    assert not patches(ax, ".*")
    ax = plot_rules(RuleSet((Rule((), Leaf(2.0)),), columns))
    assert [t.get_text() for t in texts(ax, r"rule\d:words")] == ["always"]
    plot_rules(RuleSet((), columns))


def test_labels_become_blocks():
    columns = Columns(("colour",), (("red", "green", "blue"),), (True,))
    rule = Rule(((Split((0,), categories=(0, 2), missing=True), True),), Leaf(1.0))
    ax = plot_rules(RuleSet((rule, Rule((), Leaf(0.0))), columns))
    blocks = sorted(p.get_x() for p in patches(ax, "rule0:0"))
    (line,) = [k for k in ax.lines if k.get_gid() == "rule0:0:scale"]
    left, right = line.get_xdata()
    thirds = (np.array(blocks) - left) / (right - left) * 3
    assert [int(t) for t in thirds] == [0, 2]
    assert "red, blue" in [t.get_text() for t in ax.texts]
    assert [k.get_gid() for k in ax.lines if "missing" in (k.get_gid() or "")] == [
        "rule0:0:missing"
    ]


def test_missing_values_are_marked_only_where_there_are_any():
    for gaps in (False, True):
        rule = Rule(conditions(0.0, 1.0, missing=True), Leaf(1.0))
        rules = RuleSet((rule, Rule((), Leaf(0.0))), plain_columns(1, gaps))
        ax = plot_rules(rules)
        assert any("missing" in (k.get_gid() or "") for k in ax.lines) == gaps
        assert any("missing" in t.get_text() for t in ax.texts) == gaps


def test_oblique_conditions_and_many_labels_are_said_in_words():
    labels = tuple(f"v{k}" for k in range(40))
    columns = Columns(("a", "b", "many"), (None, None, labels), (False,) * 3)
    slanted = (Split((0, 1), 3.0, (1.5, -2.0)), True)
    among = (Split((2,), categories=(1, 2)), True)
    rules = RuleSet((Rule((slanted, among), Leaf(1.0)), Rule((), Leaf(0.0))), columns)
    ax = plot_rules(rules)
    said = " ".join(t.get_text() for t in texts(ax, "rule0:words"))
    assert said == "1.5·a - 2·b > 3 and many ∈ {v1, v2}"
    assert not patches(ax, ".*") and not layout_rules(rules).features


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("inches", [3, 6.4])
def test_sixty_hostile_features_stay_in_their_place(inches):
    names = tuple(
        f"$x_{{{j}}}$ a\nvery <b>long</b> name of sensor number {j} 名前" for j in range(60)
    )
    columns = Columns(names, (None,) * 60, (False,) * 60)
    rules = tuple(
        Rule(
            sum((conditions(0.0, 1.0, feature=6 * r + k) for k in range(6)), ()),
            Leaf(float(r)),
            10,
            0.1,
            1.0,
        )
        for r in range(9)
    )
    rules = RuleSet((*rules, Rule((), Leaf(0.5))), columns)
    ax = plot_rules(rules, width=inches)
    ax.figure.canvas.draw()
    layout = layout_rules(rules, inches)
    assert 1 <= len(layout.features) <= 6
    # every condition is shown once, as a bar or in words
    bars = len(patches(ax, r"rule\d+:\d+"))
    words = " ".join(t.get_text() for t in texts(ax, r"rule\d+:words"))
    assert bars + words.count("≤ 1") == rules.n_conditions == 54
    # heads do not run into each other, no text leaves the picture at the bottom or on the left
    boxes = {f: [t.get_window_extent() for t in texts(ax, f"head:{f}")] for f in layout.features}
    for f, g in zip(layout.features, layout.features[1:]):
        assert max(b.x1 for b in boxes[f]) < min(b.x0 for b in boxes[g]) + 2
    frame = ax.figure.bbox
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.y0 >= -1 and box.y1 <= frame.y1 + 1
    assert not any(t.get_parse_math() for t in ax.texts)


HOSTILE = ("😀 smile", "שלום עולם", "n" * 300, "$x_1^2$ and _under_", "<script>alert('x')</script>", "العمر",
           "price in $ and \\frac{a}")  # fmt: skip


@pytest.mark.parametrize("inches", [3.0, 6.4])
def test_names_in_any_script_are_drawn_as_they_are(inches):
    columns = Columns(HOSTILE, (None,) * 5 + (("אדום", "$red$", "<b>"), None), (True,) * 7)
    first = ((Split((0,), 0.5), True), (Split((3,), 2.0, missing=True), False))
    second = (
        (Split((2,), 0.5), True),
        (Split((1,), 2.0), True),
        (Split((5,), categories=(0, 2)), True),
    )
    third = ((Split((4,), 0.5), True), (Split((1, 6), 1.0, (2.0, -1.0)), True))
    rules = [
        Rule(c, Leaf(p), 10)
        for c, p in ((first, (0.1, 0.9)), (second, (0.7, 0.3)), (third, (0.6, 0.4)))
    ]
    rules = RuleSet(
        (*rules, Rule((), Leaf((0.6, 0.4)))),
        columns,
        ("אמת", "$no_{x}$ 😀"),
        target="</script> $y_1$",
    )
    ax = plot_rules(rules, width=inches)
    ax.figure.canvas.draw()
    answers = [t.get_text() for t in texts(ax, r"rule\d:answer")]
    assert answers == ["$no_{x}$ 😀", "אמת", "אמת", "אמת"]
    for text in ax.texts:
        assert "\\u" not in text.get_text() and not text.get_parse_math()
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= ax.figure.bbox.x1 + 1, text


def test_no_text_is_longer_than_measured():
    texts = (
        "clipped to [22, 8714]",
        "67.9 %, from 207 rows",
        "i" * 20,
        "WAVE. TO",
        "12 + 0.5·(a - 3)",
    )
    for dpi in (72, 100, 150, 200):
        figure = plt.figure(dpi=dpi)
        renderer = figure.canvas.get_renderer()
        for text, size, weight in product(texts, (6, 7, 7.5, 8, 9), ("normal", "bold")):
            drawn = figure.text(0, 0, text, fontsize=size, weight=weight)
            wide = drawn.get_window_extent(renderer).width / dpi
            assert wide <= show.text_width(text, size, weight) + 1 / dpi, (dpi, text)


def test_lines_break_before_a_sign_and_never_within_a_product():
    text = "44 + age + 8.244·(bmi - 30) - 0.24·s1 + 55.47·(s5 - 5), clipped to [42, 341]"
    for width in (0.9, 1.2, 1.6):
        lines = show.wrap_to_width(text, width, 24)
        assert " ".join(lines) == text
        if width > 1:
            assert not any(line.endswith(("-", "+", "(bmi", "(s5")) for line in lines)


def test_letters_that_the_font_lacks_come_from_another(monkeypatch):
    monkeypatch.setattr(show, "_SCRIPTS", ("No Such Font", "STIXGeneral"))
    rules, X, _ = iris_rules()
    ax = plot_rules(rules, X)
    assert ax.texts[0].get_fontfamily() == ["sans-serif", "STIXGeneral"]
    assert plt.rcParams["font.family"] == ["sans-serif"]


def test_what_was_cut_may_be_cut_again():
    for text in ("אמת", "a\nb", "n" * 40, "אמת and more"):
        assert show.truncate_text(show.truncate_text(text, 20), 20) == show.truncate_text(text, 20)
        assert show.truncate_text(show.printable_name(text), 20).replace(
            "\\\\", "\\"
        ) == show.truncate_text(text, 20)


def test_text_does_not_overlap_between_rows():
    rules, X, _ = iris_rules()
    ax = plot_rules(rules, X, width=3)
    ax.figure.canvas.draw()
    layout = layout_rules(rules, 3)
    for r in range(len(rules.rules)):
        top, bottom = (ax.transData.transform((0, y))[1] for y in layout.tops[r : r + 2])
        for text in texts(ax, f"rule{r}(:.*)?"):
            box = text.get_window_extent()
            assert bottom - 2 <= box.y0 and box.y1 <= top + 2


def test_an_axes_of_ones_own_and_the_returned_one():
    rules, X, _ = iris_rules()
    _, own = plt.subplots(figsize=(5, 5))
    assert plot_rules(rules, X, own) is own
    ax = plot_rules(rules, X, width=4)
    assert np.allclose(ax.figure.get_size_inches(), (4, layout_rules(rules, 4).height))
    assert ax.get_xlim() == (0, 4)


def test_who_may_be_shown():
    class Fitted:
        rules_ = iris_rules()[0]

    assert show.as_ruleset(Fitted()) is Fitted.rules_
    data = load_iris()
    tree = read_ensemble(DecisionTreeClassifier(max_depth=2).fit(data.data, data.target)).trees[0]
    assert show.as_ruleset(tree) == tree.rules()
    with pytest.raises(TypeError, match="rules must be a RuleSet, .* got DecisionTreeClassifier"):
        plot_rules(DecisionTreeClassifier())


@given(st.text(max_size=60), st.integers(3, 40))
def test_cut_fits(text, most):
    assert display_width(show.truncate_text(text, most)) <= most
    assert "\n" not in show.truncate_text(text, most)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.booleans())
def test_a_scale_holds_every_threshold_and_value(cuts, with_data):
    rules = tuple(Rule(conditions(b, inf), Leaf(1.0)) for b in cuts)
    rules = RuleSet((*rules, Rule((), Leaf(0.0))), plain_columns(1))
    X = np.array([[-3.0], [np.nan], [7.0]]) if with_data else None
    low, high = show.feature_limits(rules, 0, X)
    assert low < high and all(low <= b <= high for b in cuts)
    assert not with_data or (low <= -3 and high >= 7)
    for rule in rules.rules[:-1]:
        (e,) = extents(rule.conditions)
        ((a, b),) = show.bars_of(e, rules.columns, (low, high))
        assert 0 <= a <= b <= 1


@pytest.mark.parametrize("ends", [(3.0, 3.1), (-inf, 0.0), (9e5, 1e6), (5e5, 5e5 + 1)])
def test_a_short_interval_on_a_wide_scale_is_seen(ends):
    """Its bar is as long as can be seen, around where it is, and inside the scale."""
    rules = (Rule(conditions(*ends), Leaf(1.0)), Rule((), Leaf(0.0)))
    ax = plot_rules(RuleSet(rules, plain_columns(1)), np.array([[0.0], [1e6]]))
    (bar,) = patches(ax, r"rule0:\d+")
    (scale,) = [line for line in ax.lines if line.get_gid() == "rule0:0:scale"]
    low, high = scale.get_xdata()
    begin, end = bar.get_x(), bar.get_x() + bar.get_width()
    assert bar.get_width() >= show.SHORTEST_BAR - 1e-9 and low - 1e-9 <= begin <= end <= high + 1e-9
    true = low + (high - low) * np.clip(np.array(ends) / 1e6, 0, 1)
    assert begin <= true[0] + 1e-9 and end >= true[1] - 1e-9


def test_many_classes_keep_apart():
    rules = RuleSet((Rule((), Leaf(tuple(np.eye(15)[3]))),), plain_columns(2), tuple(range(15)))
    assert len({show.colour_scale(rules).to_rgba(c) for c in range(15)}) == 15
    plot_regions(rules, np.random.default_rng(0).random((20, 2)))


# plot_regions


@st.composite
def rule_lists(draw):
    """An ordered list of boxes in two features on a coarse lattice, so that borders coincide often."""
    cuts = st.sampled_from([-inf, 0.125, 0.25, 0.5, 0.625, 0.75, inf])
    rules = []
    for _ in range(draw(st.integers(0, 5))):
        said = ()
        for f in (0, 1):
            low, high = sorted((draw(cuts), draw(cuts)))
            if low < high:
                said += conditions(low, high, feature=f)
        if said:
            rules.append(Rule(said, Leaf(draw(st.floats(-5, 5)))))
    return RuleSet((*rules, Rule((), Leaf(0.0))), plain_columns(2))


@given(rule_lists())
@examples(30)
def test_colours_and_outlines_are_exact(rules):
    plt.close("all")
    rng = np.random.default_rng(0)
    X = np.vstack([[0, 0], [1, 1], rng.random((300, 2))])
    ends = [(0.0, 1.0)] * 2
    across, up = (show.cell_edges(rules, f, end) for f, end in enumerate(ends))
    cells = rules.apply(show.cell_centres(rules, (0, 1), across, up, np.zeros(2))).reshape(
        len(up) - 1, len(across) - 1
    )
    place = tuple(
        np.clip(np.searchsorted(e, X[:, f]) - 1, 0, None) for f, e in ((1, up), (0, across))
    )
    assert (cells[place] == rules.apply(X)).all()
    ax = plot_regions(rules, X)
    mesh = next(c for c in ax.collections if c.get_gid() == "answers")
    colours = np.asarray(mesh.get_array()).reshape(*cells.shape, 4)[place]
    assert np.allclose(colours[:, :3], show.colour_scale(rules).to_rgba(rules.predict(X))[:, :3])
    visible = {int(t.get_text()) - 1 for t in ax.texts}
    assert visible == set(np.unique(cells))
    for r, rule in enumerate(rules.rules[:-1]):
        drawn = [c for c in ax.collections if c.get_gid() == f"rule{r}"]
        boxes = {e.features[0]: (max(e.low, 0), min(e.high, 1)) for e in extents(rule.conditions)}
        sides = [boxes.get(f, (0, 1)) for f in (0, 1)]
        (lines,) = drawn
        points = np.concatenate(lines.get_segments())
        assert np.allclose(
            [points.min(axis=0), points.max(axis=0)],
            [[a for a, _ in clip(sides, X)], [b for _, b in clip(sides, X)]],
        )


def clip(sides, X):
    """Box sides within the limits of the picture, 3 % beyond the data where a side is open."""
    return [(a if a > 0 else -0.03, b if b < 1 else 1.03) for a, b in sides]


def test_a_number_stands_where_its_rule_answers():
    rules, X, y = iris_rules()
    ax = plot_regions(rules, X, y)
    row = show.median_row(X, rules.columns)
    features = show.select_plane(rules, X)
    for text in ax.texts:
        row[list(features)] = text.get_position()
        assert rules.apply(row[None])[0] == int(text.get_text()) - 1


def test_rows_limits_and_names():
    rules, X, y = iris_rules()
    f, g = show.select_plane(rules, X)
    ax = plot_regions(rules, X, y)
    for c in range(3):
        (dots,) = [k for k in ax.collections if k.get_gid() == f"rows:{c}"]
        assert np.allclose(dots.get_offsets(), X[y == c][:, [f, g]])
    assert (
        ax.get_xlabel().startswith(rules.columns.names[f]) and "2 other features" in ax.get_xlabel()
    )
    assert ax.get_ylabel() == rules.columns.names[g]
    assert ax.get_xlim()[0] < X[:, f].min() and ax.get_xlim()[1] > X[:, f].max()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "2"]


def test_rows_with_gaps_are_left_out_and_rows_without_a_rule_stay_bare():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [np.nan, 0.5]])
    rules = RuleSet((Rule(conditions(0.5, inf), Leaf(1.0)),), plain_columns(2, True))
    ax = plot_regions(rules, X, features=["x0", "x1"])
    (dots,) = [k for k in ax.collections if k.get_gid() == "rows"]
    assert len(dots.get_offsets()) == 2
    mesh = next(c for c in ax.collections if c.get_gid() == "answers")
    assert sorted(np.asarray(mesh.get_array()).reshape(-1, 4)[:, 3]) == [0, 0.4]


def test_labels_and_numbers_on_the_axes():
    columns = Columns(("colour", "x"), (("red", "green"), None), (False, False))
    rules = RuleSet(
        (Rule(((Split((0,), categories=(1,)), True),), Leaf(1.0)), Rule((), Leaf(0.0))), columns
    )
    ax = plot_regions(rules, np.array([[0, 1.5], [1, 2.5]]), np.array([0.0, 1.0]))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["red", "green"]
    assert ax.get_xlim() == (-0.5, 1.5)
    assert len(ax.figure.axes) == 2  # the colour bar


def test_whole_numbers_and_labels_have_strips():
    rng = np.random.default_rng(0)
    columns = Columns(("flag", "hour", "colour"), (None, None, ("red", "green")), (False,) * 3)
    X = np.column_stack(
        [rng.integers(0, 2, 300), rng.integers(0, 24, 300), rng.integers(0, 2, 300)]
    )
    rules = RuleSet(
        (
            Rule(((Split((0,), 0.0), True), (Split((1,), 7.0), True)), Leaf(1.0)),
            Rule(((Split((2,), categories=(1,)), True),), Leaf(2.0)),
            Rule((), Leaf(0.0, (1,), (0.1,))),
        ),
        columns,
    )
    ax = plot_regions(rules, X, features=["flag", "hour"])
    assert ax.get_xlim() == (-0.5, 1.5) and ax.get_ylim() == (-0.5, 23.5)
    (lines,) = [c for c in ax.collections if c.get_gid() == "rule0"]
    corners = np.concatenate(lines.get_segments())
    assert corners.min(axis=0).tolist() == [0.5, 7.5]
    assert all(tick % 1 == 0 for tick in [*ax.get_xticks(), *ax.get_yticks()])
    (dots,) = [c for c in ax.collections if c.get_gid() == "rows"]
    spread = np.asarray(dots.get_offsets())
    assert np.array_equal(spread.round(), X[:, :2]) and len(np.unique(spread, axis=0)) == len(X)
    ax = plot_regions(rules, X, features=["colour", "hour"])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["red", "green"]
    (dots,) = [c for c in ax.collections if c.get_gid() == "rows"]
    assert np.array_equal(np.asarray(dots.get_offsets()).round(), X[:, [2, 1]])
    levels = show.feature_levels(rules, 1, X)
    edges = show.cell_edges(rules, 1, (-0.5, 23.5), levels=levels)
    assert edges.tolist() == (np.arange(25) - 0.5).tolist()  # the equation changes at every hour
    assert show.feature_levels(rules, 1, X + 0.5) is None
    assert show.feature_levels(rules, 1, 10 * X) is None  # too many values to tell apart


def test_slanted_borders_and_equations():
    slanted = Rule(((Split((0, 1), 0.0, (1.0, -1.0)), True),), Leaf(1.0))
    rules = RuleSet((slanted, Rule((), Leaf(0.0, (0,), (2.0,)))), plain_columns(2))
    X = np.random.default_rng(0).random((50, 2))
    ax = plot_regions(rules, X, X[:, 0])
    lines = next(c for c in ax.collections if c.get_gid() == "rule0")
    corners = np.concatenate(lines.get_segments())
    inside = (corners > 0.05).all(axis=1) & (corners < 0.95).all(axis=1)
    assert np.abs(corners[inside] @ [1, -1]).max() < 0.01 and inside.sum() > 100


@pytest.mark.parametrize("features", [("x0",), ("x0", "x0"), ("x0", "nope"), (0, 9), (0, 1, 2)])
def test_features_must_be_two(features):
    rules, X, _ = iris_rules()
    with pytest.raises(ValueError, match="features must (be two different|name) columns"):
        plot_regions(rules, X, features=features)


def test_the_plane_is_the_truest():
    data = load_breast_cancer()
    rules = tree_rules(data.data, data.target, 6)
    answers = show.predict_or_nan(rules, data.data)
    pair = show.best_plane(rules, data.data)
    rest = show.median_row(data.data, rules.columns)
    best = show.plane_loss(rules, data.data, pair, rest, answers)
    pool = show.column_features(rules)
    assert all(
        show.plane_loss(rules, data.data, (f, g), rest, answers) >= best
        for f in pool
        for g in pool
        if f < g
    )
    flat = np.tile(np.median(data.data, axis=0), (len(answers), 1))
    flat[:, pair] = data.data[:, pair]
    assert best == (rules.predict(flat) != rules.predict(data.data)).mean()


def test_lengths_are_checked():
    rules, X, y = iris_rules()
    with pytest.raises(ValueError, match="y must have one entry per row"):
        plot_regions(rules, X, y[:-1])


def test_regression_and_frames():
    pd = pytest.importorskip("pandas")
    data = load_breast_cancer()
    X = pd.DataFrame(data.data[:, :4], columns=data.feature_names[:4])
    y = data.data[:, 20]
    rules = tree_rules(X, y, 6, DecisionTreeRegressor)
    ax = plot_regions(rules, X, pd.Series(y), features=("mean radius", "mean texture"))
    (dots,) = [k for k in ax.collections if k.get_gid() == "rows"]
    assert len(dots.get_offsets()) == 500
    (dots,) = [
        k for k in plot_regions(rules, X, y, max_rows=None).collections if k.get_gid() == "rows"
    ]
    assert len(dots.get_offsets()) == len(X)
    plot_rules(rules, X)


def test_classes_by_equations():
    X = np.random.default_rng(0).normal(size=(200, 2))
    columns = read_columns(X)
    walls = ((Split((0,), 0.0), True),)
    two = RuleSet(
        (
            Rule(walls, Leaf(0.5, (0, 1), (1.0, -2.0), link="logit"), 90),
            Rule((), Leaf((0.25, 0.75))),
        ),
        columns,
        ("no", "yes"),
    )
    numbers = ((1.0, 0.0, -1.0), (0.0, 2.0, 0.0))
    three = RuleSet(
        (
            Rule(walls, Leaf((0.0, 0.5, 0.0), (0, 1), numbers, link="softmax")),
            Rule((), Leaf((0, 0, 1))),
        ),
        columns,
        ("a", "b", "c"),
    )
    for rules in (two, three):
        for width in (3, 12):  # an equation is never cut
            lines = texts(plot_rules(rules, X, width=width), "rule0:answer")
            said = " ".join(line.get_text() for line in lines)
            assert said == show.prediction_lines(rules, 0)[0]
        dots = [
            k
            for k in plot_regions(rules, X, rules.predict(X)).collections
            if "rows" in str(k.get_gid())
        ]
        assert sum(len(k.get_offsets()) for k in dots) == len(X)
    assert np.array_equal(
        show.predict_or_nan(two, X), [two.classes.index(c) for c in two.predict(X)]
    )
    grey, own = show.leaf_colours(two)
    assert len(set(grey[:3])) == 1 and len(set(own[:3])) == 3


# plot_terms


def bent(feature, values, low=0.0, high=1.0, missing=0.0):
    b = np.linspace(low, high, len(values))
    return Curve(
        feature, b, [(v, w - v) for v, w in zip(values, values[1:], strict=False)], missing
    )


CURVED = Columns(
    ("a", "b", "colour", "d"),
    (None, None, ("red", "green", "blue"), None),
    (True, False, True, False),
)


def additive_rules():
    hues = Curve(2, np.arange(4) - 0.5, ((1.0,), (-0.5,), (0.25,)), -2.0)
    first = Leaf(1.5, (3,), (2.0,), curves=(bent(0, [-1, 1, 0.5], 0, 2, 0.75), hues))
    return RuleSet(
        (
            Rule(((Split((3,), 0.5), True),), first, 10),
            Rule(((Split((3,), 0.0), True),), Leaf(3.0), 5),
            Rule((), Leaf(0.5, upper=9.0, curves=(bent(1, [2.0, -1.0], -10, 10),))),
        ),
        CURVED,
        target="risk",
    )


def additive_table(n=200):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(0, 2, n),
            rng.uniform(-10, 10, n),
            rng.integers(0, 3, n),
            rng.normal(0.5, 1, n),
        ]
    )
    X[::17, 0] = np.nan
    X[::19, 2] = np.nan
    return X


numbers = st.floats(-100, 100).map(lambda x: round(x, 3))


def test_terms_of_every_expert_and_of_one():
    rules = additive_rules()
    X = additive_table()
    *_, last = plot_terms(rules, X=X)
    assert last.get_title(loc="left").splitlines() == ["3  otherwise", "from 0.5, at most 9"]
    ax, *_ = plot_terms(rules, 1, X)
    mine = X[rules.apply(X) == 0]
    constant = 1.5 + 2 * mine[:, 3].mean()
    assert ax.get_title(loc="left").splitlines() == ["1  d > 0.5", f"from {constant:.4g}"]
    assert ax.get_ylabel() == "adds to risk"
    _, own = plt.subplots()
    assert plot_terms(rules, 3, ax=own) is own


def test_each_term_in_its_own_units_and_labels_as_bars():
    rules = additive_rules()
    X = additive_table()
    bands = {"a": ([0, 2], [-1, 0], [1, 2]), 2: ([0, 2], [0, -1], [2, 1])}
    axes = plot_terms(rules, 1, X, bands=bands)
    assert [bool(ax.get_title(loc="left")) for ax in axes] == [
        True,
        False,
        False,
    ]  # the rule is named once
    twice = [ax.get_title(loc="left") for ax in plot_terms(rules, X=X)]
    assert [title[:1] for title in twice] == ["1", "", "", "3"]
    rows = [ax.get_subplotspec().rowspan.start for ax in plot_terms(rules, X=X)]
    assert rows == [0, 0, 0, 1]  # a sum begins a row
    by_name = {ax.get_xlabel().removesuffix("  (◇: missing)"): ax for ax in axes}
    assert set(by_name) == {"a", "colour", "d"}
    bars = by_name["colour"].patches
    (band,) = by_name["a"].collections
    assert np.ptp(band.get_paths()[0].vertices[:, 1]) < 3 and band.get_gid() == "band0"
    (ends,) = by_name["colour"].collections
    assert [s[:, 1].tolist() for s in ends.get_segments()] == [[0, 2], [-0.5, 1.5], [-1, 1]]
    assert not by_name["d"].collections
    assert [b.get_height() for b in bars] == [1.0, -0.5, 0.25]
    assert [t.get_text() for t in by_name["colour"].get_xticklabels()] == ["red", "green", "blue"]
    mine = X[rules.apply(X) == 0]
    (line,) = [k for k in by_name["a"].lines if k.get_gid() == "term0"]
    x, v = line.get_data()
    assert np.isclose(x[0], np.nanmin(mine[:, 0])) and np.isclose(x[-1], np.nanmax(mine[:, 0]))
    assert np.allclose(v, np.interp(x, [0, 1, 2], [-1, 1, 0.5]), atol=1e-8)
    (mark,) = [k for k in by_name["a"].lines if k.get_gid() == "missing0"]
    assert mark.get_ydata()[0] == 0.75 and not [
        k for k in by_name["d"].lines if k.get_gid() == "missing3"
    ]
    (line,) = [k for k in by_name["d"].lines if k.get_gid() == "term3"]
    assert np.allclose(line.get_ydata(), 2 * (line.get_xdata() - mine[:, 3].mean()))


def test_terms_of_classes():
    many = Curve(0, (0, 1), [((1.0, 0.0, -0.5), (0.5, 0.0, 1.0))], (0.0, 0.0, 2.0))
    leaf = Leaf((0.5, 1.0, 0.0), (1,), ((0.0, 0.0, 1.0),), link="softmax", curves=(many,))
    rules = RuleSet((Rule((), leaf),), plain_columns(2), ("u", "v", "w"))
    axes = plot_terms(rules)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert [title.splitlines()[1] for title in titles if title] == [
        "the score of u: from 0.5",
        "the score of v: from 1",
        "the score of w: from 0.5",
    ]
    assert [[line.get_gid() for line in ax.lines if line.get_gid()] for ax in axes] == [
        ["term0"],
        [],
        ["term1"],
        ["term0"],
    ]
    ax, _ = plot_terms(rules, 1, label="w")
    assert ax.get_ylabel() == "adds to the score"
    plot_terms(rules, 1, label="v")
    two = RuleSet(
        (Rule((), Leaf(0.5, link="logit", curves=(many.part(2),))),),
        plain_columns(2),
        ("no", "yes"),
    )
    assert plot_terms(two).get_ylabel().split() == "adds to the log-odds of yes".split()
    for said in (rules, two):
        plot_rules(said, width=3)
        plot_regions(said, np.random.default_rng(0).random((20, 2)))


def test_a_long_name_stands_whole_above_the_mark_of_a_gap():
    columns = replace(plain_columns(2), names=("years in job", "kg"), missing=(True, True))
    curves = tuple(Curve(j, (0.0, 30.0), ((0.0, 1.0),), 0.5) for j in range(2))
    rules = RuleSet((Rule((), Leaf(0.0, curves=curves)),), columns)
    axes = plot_terms(rules, width=3.5)
    told = [ax.get_xlabel() for ax in axes]
    assert told == ["years in job\n(◇: missing)", "kg  (◇: missing)"]


def test_rules_and_regions_of_leaves_with_curves():
    rules = additive_rules()
    X = additive_table()
    ax = plot_rules(rules, X, width=12)
    assert texts(ax, "rule0:answer")[0].get_text() == "1.5 + 2·d + s1(a) + s1(colour)"
    assert texts(ax, "rule2:answer")[0].get_text() == "0.5 + s3(b), at most 9"
    grey, own, last = show.leaf_colours(rules)
    assert len(set(grey[:3])) == 1 == len(set(last[:3])) and len(set(own[:3])) == 3
    ax = plot_regions(rules, X, features=("b", "d"))
    mesh = next(c for c in ax.collections if c.get_gid() == "answers")
    assert (
        len(np.unique(np.asarray(mesh.get_array()).reshape(-1, 4), axis=0)) > 50
    )  # the curve over b bends the colour
    assert set(show.best_plane(rules, X)) <= {0, 1, 2, 3}


def test_few_terms_are_drawn_and_the_others_counted():
    leaf = Leaf(0.0, curves=tuple(bent(j, [0, j + 1]) for j in range(12)))
    rules = RuleSet((Rule((), leaf),), plain_columns(12))
    first, *_ = axes = plot_terms(rules, max_terms=3)
    assert len(axes) == 3 and "9 smaller terms not drawn" in first.get_title(loc="left")


@pytest.mark.parametrize("width_in", [3.0, 6.4])
def test_hostile_names_stay_inside_the_picture(width_in):
    names = ("n" * 120, "$x^2", "line\nbreak", "<b>&amp;", "")
    columns = Columns(names, (None, ("$a$", "b" * 60, "\n"), None, None, None), (True,) * 5)
    leaf = Leaf(
        1.0,
        lower=-1e9,
        upper=1e9,
        curves=(
            bent(0, [1, 2, -1], -1e-7, 1e-7),
            Curve(1, np.arange(4) - 0.5, ((1.0,), (-1.0,), (0.5,)), 3.0),
            bent(2, [1, -1], 1e9, 2e9),
            bent(3, [-1, 1]),
            bent(4, [1, 1]),
        ),
    )
    rules = RuleSet(
        (Rule(((Split((0,), 0.5), True),), leaf), Rule((), Leaf(0.0))), columns, target="t" * 90
    )
    ax = plot_terms(rules, width=width_in)
    figure = np.ravel(ax)[0].figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox
    for one in np.ravel(ax):
        shown = [
            t
            for t in one.get_xticklabels()
            if one.get_xlim()[0] <= t.get_position()[0] <= one.get_xlim()[1]
        ]
        said = [one.title, one._left_title, one.xaxis.label, *shown]
        boxes = [t.get_window_extent(renderer) for t in said if t.get_text()]
        assert all(
            b.x0 >= page.x0 - 2 and b.x1 <= page.x1 + 2 and b.y0 >= page.y0 - 2 for b in boxes
        )
        assert one.get_position().height * figure.get_figheight() > 0.8


def test_what_cannot_be_drawn_is_refused():
    rules = additive_rules()
    X = additive_table()
    softmax = Leaf((0.0, 0.0), (0,), ((1.0, 2.0),), link="softmax")
    classes = RuleSet((Rule((), softmax),), plain_columns(1), ("u", "v"))
    band = ([0, 1], [1, 1], [2, 2])
    cases = [
        (
            lambda: plot_terms(rules, 2),
            r"expert must be the number of a rule with an equation \(1, 3\), got 2",
        ),
        (lambda: plot_terms(rules, 0), "expert must be"),
        (lambda: plot_terms(rules, True), "expert must be"),
        (
            lambda: plot_terms(RuleSet((Rule((), Leaf(1.0)),), CURVED)),
            "none: no rule has an equation",
        ),
        (lambda: plot_terms(rules, bands={"a": band}), "bands can be drawn for one equation"),
        (
            lambda: plot_terms(rules, 1, bands={"b": band}),
            "bands must have only features of the equation",
        ),
        (
            lambda: plot_terms(rules, 1, bands={"a": [1, 2]}),
            "bands must be a dict {column: array",
        ),
        (lambda: plot_terms(rules, 1, bands=[band]), "bands must be a dict {column: array"),
        (lambda: plot_terms(classes, label="w"), "label must be one of the classes"),
        (
            lambda: plot_terms(rules, ax=plt.figure().subplots()),
            r"one axes per plot \(4\), got 1",
        ),
        (lambda: plot_terms(rules, X=X[:, :2]), "X must have shape"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
