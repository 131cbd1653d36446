"""The account of a row says what the rules say; the panel follows what it is told."""

import re

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import examples
from shared.random_rules import COLUMNS, random_rules
from sklearn.datasets import load_iris

from fabinterp.change import nearest_change
from fabinterp.explorer import explore, why_lines
from fabinterp.rules.core import Columns, Curve, Leaf, Rule, Split
from fabinterp.rules.ruleset import RuleSet, Tree, as_ruleset
from fabinterp.rules.text import answer_text
from fabinterp.show import panel as panel_module


def test_the_account_of_an_equation():
    curve = Curve(1, (0.0, 1.0), ((0.0, 2.0),))
    leaf = Leaf(1.5, (0,), (0.25,), -10, 3.0, curves=(curve,))
    rules = RuleSet(
        (Rule(((Split((2,), categories=(0,)), True),), Leaf(7.0)), Rule((), leaf)), COLUMNS
    )
    said = dict(why_lines(rules, [2.0, 0.5, 2]))
    assert said["y"] == "3" and said["rule 2 of 2"] == "otherwise"
    assert said["equation"] == answer_text(rules, 1, 2)
    assert said["not before"] == "rule 1 needs c is red (here blue)"
    assert "no prediction" in dict(why_lines(rules, [np.nan, 1, 2]))["y"]
    change = nearest_change(rules, [2.0, 0.5, 2])
    assert why_lines(rules, [2.0, 0.5, 2], change)[-1] == (
        "different prediction if", "c from blue to red: rule 1 then predicts 7")  # fmt: skip


@examples(60)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["labels", "numbers", "lines", "logit", "softmax"])
)
def test_the_account_names_the_rule_and_the_answer(seed, kind):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, kind, True)
    x = np.array([*rng.uniform(-1, 1, 2), rng.integers(3)])
    said = why_lines(rules, x)
    answer = rules.predict(x[None])[0]
    assert said[0][1].startswith(answer if rules.classes else f"{answer:.4g}")
    assert said[1][0] == f"rule {rules.apply(x[None])[0] + 1} of {len(rules.rules)}"


def test_a_border_is_named_by_its_threshold():
    """Nobody wants to read all digits of the next number after a threshold."""
    rules = RuleSet((Rule(((Split((0,), 2.0), True),), Leaf(5.0)), Rule((), Leaf(0.0))),
                    Columns(("u",), (None,)))  # fmt: skip
    change = nearest_change(rules, [0.5])
    assert dict(why_lines(rules, [0.5], change))["different prediction if"] == (
        "u from 0.5 to at least 2.01: rule 1 then predicts 5"
    )


# The panel


def flower_rules():
    flowers = load_iris(as_frame=True)
    conditions = [((Split((2,), 2.45), False),), ((Split((3,), 1.75), False),), ()]
    rules = tuple(Rule(c, Leaf(tuple(np.eye(3)[k]))) for k, c in enumerate(conditions))
    return (
        RuleSet(rules, Columns(tuple(flowers.data.columns), (None,) * 4), (0, 1, 2)),
        flowers.data,
        flowers.target,
    )


def text(panel):
    return re.sub("<[^>]*>", " ", panel.text.value)


def test_the_panel_follows_its_controls():
    rules, X, y = flower_rules()
    panel = explore(rules, X, y, row=3)
    assert "row  3" in text(panel) and "at least 2.5" in text(panel)
    before = panel.picture.value
    panel.controls["x2"].value = 5.0
    assert "with petal length (cm) moved" in text(panel) and "rule 2 of 3" in text(panel)
    assert panel.picture.value != before
    panel.controls["row"].value = 120
    assert "moved" not in text(panel) and "rule 3 of 3" in text(panel)
    assert panel.controls["x2"].value == X.iloc[120, 2]


def test_one_move_draws_once(monkeypatch):
    rules, X, y = flower_rules()
    panel = explore(rules, X, y)
    drawn = []
    draw = panel_module.render_frame
    monkeypatch.setattr(panel_module, "render_frame", lambda *a: drawn.append(1) or draw(*a))
    panel.controls["row"].value = 77  # moves the features' sliders too
    assert len(drawn) == 1


def test_gaps_and_labels_have_controls():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3, 4], "<b>": pd.Categorical(["x", "y", "x", "<i>"])})
    first = Rule(
        ((Split((0,), 2.0, missing=True), True), (Split((1,), categories=(0,)), False)), Leaf(1.0)
    )
    rules = RuleSet(
        (first, Rule((), Leaf(2.0))), Columns(("a", "<b>"), (None, ("<i>", "x", "y"))), target="<u>"
    )
    panel = explore(rules, frame, [1, 1, 2, 2], row=1)
    assert panel.controls["gap0"].value is True and "missing" in text(panel)
    assert not re.search("<[bui]>", panel.text.value) and "&lt;b&gt;" in panel.text.value
    assert "&lt;u&gt;" in panel.text.value
    panel.controls["gap0"].value = False
    assert "rule 2 of 2" in text(panel)
    assert list(panel.controls["x1"].options)[0] == ("<i>", 0.0)


def test_a_tree_and_a_refusal():
    tree = Tree((Split((0,), 0.5), None, None), [2, -1, -1], [1, -1, -1], (None, Leaf(0.0), Leaf(0.0, (1,), (1.0,))),
                Columns(("u", "v"), (None, None)))  # fmt: skip
    X = np.random.default_rng(0).random((30, 2))
    panel = explore(tree, X, target=(0.9, None))
    assert len(as_ruleset(tree).rules) == 2 and "rule" in text(panel)
    panel.controls["up"].value = panel.controls["across"].value
    assert "features must be two different columns" in text(panel)


def test_the_stored_film_stands_alone():
    rules, X, y = flower_rules()
    bundle = explore(rules, X, y, frames=(0, 60, 120))._repr_mimebundle_()
    page = bundle["text/html"]
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert page.count("<img") == 3 and not re.search(r"<script|https?:|<link", page)
    assert (
        page.count("display:none") == 2
        and 'max="3"' in page
        and "live where a kernel runs" in bundle["text/plain"]
    )
    assert "text/html" not in explore(rules, X, y)._repr_mimebundle_()


def test_what_a_slider_cannot_show_is_not_a_move():
    """Sliders stand on steps, rows lie between them: a page that reports its sliders leaves the row as it is."""
    X = np.random.default_rng(0).random((20, 2))
    rules = RuleSet((Rule(((Split((0,), 0.5), True),), Leaf(1.0)), Rule(((Split((1,), 0.5), True),), Leaf(3.0)),
                     Rule((), Leaf(2.0))), Columns(("u", "v"), (None, None), (False, False)))  # fmt: skip
    panel = explore(rules, X, row=4)
    view = panel.draw.__self__
    values = {name: one.value for name, one in panel.controls.items()}
    assert (view.point(4, values) == X[4]).all() and "moved" not in text(panel)
    assert abs(values["x0"] - X[4, 0]) <= 0.5 * panel.controls["x0"].step
    panel.controls["x0"].value += panel.controls["x0"].step
    assert "with u moved" in text(panel)


def test_the_picture_shows_the_point_and_where_it_would_change():
    from matplotlib.figure import Figure

    rules, X, y = flower_rules()
    view = explore(rules, X, y).draw.__self__
    figure = Figure()
    view.draw(figure, 0, across=2, up=3, **view.slider_values(view.Z[0]))
    lines = {line.get_gid(): line for line in figure.axes[0].lines}
    point, after = (np.ravel(lines[name].get_xdata())[0] for name in ("point", "after"))
    assert point == X.iloc[0, 2] < 2.45 < after
    figure = Figure()  # the change is of petal length, which this plane does not show
    view.draw(figure, 0, across=0, up=1, **view.slider_values(view.Z[0]))
    gids = [line.get_gid() for line in figure.axes[0].lines]
    assert "point" in gids and "after" not in gids
