"""Pictures of one row and of all: bars and arrows stand where the numbers are, words stay inside."""

import re

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from sklearn.ensemble import RandomForestRegressor

from fabinterp import (
    ProxyTreeClassifier,
    ProxyTreeRegressor,
    explain,
    nearest_change,
    plot_calibration,
    plot_change,
    plot_importances,
)

pd = pytest.importorskip("pandas")
HOSTILE = ["$x_1^2$ and _under_", "n" * 200, "line\nbreak", "<b>&amp;", "שלום"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def bank():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"income": rng.integers(10, 60, 300) * 100.0, "job": rng.choice(["cook", "clerk"], 300)}
    )
    y = np.where((X.income > 3000) & (X.job == "clerk"), "yes", "no")
    return X, pd.Series(y, name="credit")


@pytest.fixture(scope="module")
def changes(bank):
    X, y = bank
    model = ProxyTreeClassifier(size=3).fit(X, y)
    row = X[(X.income < 2500) & (X.job == "cook")].iloc[0]
    return nearest_change(model, row, X, target="yes"), row


def assert_inside(ax):
    """Every text lies within the figure and is read as it stands."""
    ax.figure.canvas.draw()
    for text in ax.texts:
        place = text.get_window_extent()
        if text.get_text():
            assert place.x0 >= 0 and place.x1 <= ax.figure.bbox.x1, text
            assert place.y0 >= 0 and place.y1 <= ax.figure.bbox.y1, text
            assert not text.get_parse_math()


def test_an_arrow_leads_from_the_row_to_the_change(changes):
    found, row = changes
    ax = plot_change(found)
    lines = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    (change,) = found
    for f in change.features:
        begin, end = lines[f"change0:{f}:scale"].get_xdata()
        low, high = change.ruleset.columns.ranges[f] if f == 0 else (-0.5, 1.5)
        ring = lines[f"change0:{f}:before"].get_xdata()[0]
        assert np.isclose((ring - begin) / (end - begin), (change.before[f] - low) / (high - low))
        arrows = [a for a in ax.texts if hasattr(a, "arrow_patch") and a.xyann[0] == ring]
        assert any(
            np.isclose((a.xy[0] - begin) / (end - begin), (change.after[f] - low) / (high - low))
            for a in arrows
        )
    said = " ".join(text.get_text() for text in ax.texts)
    assert f"{found.current}" in said and found.status in said and "cook → clerk" in said
    assert re.search(r"→ at least \d", said)
    assert_inside(ax)


def test_no_change_and_one_change_are_drawn(changes, bank):
    found, row = changes
    assert plot_change(found[0]).texts
    X, _ = bank
    model = ProxyTreeClassifier(size=3).fit(*bank)
    none = nearest_change(model, row, X, target="yes", fixed=["job"])
    said = " ".join(text.get_text() for text in plot_change(none).texts)
    assert not none and none.status in said
    with pytest.raises(TypeError, match="changes must be a result of nearest_change, got int"):
        plot_change(3)
    with pytest.raises(ValueError, match="max_changes"):
        plot_change(found, max_changes=0)


def test_bars_are_the_importances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 3] + X[:, 7] ** 2)
    for model in (forest, explain(forest, X, max_rules=6, random_state=0)):
        share = np.sort(model.feature_importances_)
        ax = plot_importances(model, max_features=3)
        assert [patch.get_width() for patch in ax.patches] == share[share > 0][-3:].tolist()
    assert ax.get_yticklabels()[-1].get_text() in {"x3", "x7"}
    assert "(17 columns with less" in plot_importances(forest, max_features=3).get_xlabel()
    assert not plot_importances(ProxyTreeRegressor().fit(X, np.ones(300))).patches
    with pytest.raises(TypeError, match="model must be fitted and have feature_importances_"):
        plot_importances(ProxyTreeRegressor())


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("width", [None, 4.0])
def test_pictures_of_hostile_names_on_dark_paper_stay_inside(width):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 5)), columns=HOSTILE)
    y = pd.Series(np.where(X.sum(axis=1) > 0, "$yes$", "n" * 80), name="t" * 90)
    model = ProxyTreeClassifier(size=8).fit(X, y)
    with plt.style.context("dark_background"):
        drawn = [
            plot_change(nearest_change(model, X.iloc[0], X, n_changes=2), width=width),
        ]
    for ax in drawn:
        assert_inside(ax)
        assert to_rgba(ax.texts[0].get_color()) == to_rgba("white")


@pytest.mark.parametrize("classes", [["$yes$", "n" * 80], ["a_1", "b" * 60, "<c>"]])
@pytest.mark.parametrize("width", [3.2, 4.2])
def test_calibration_of_hostile_classes_on_dark_paper_stays_inside(width, classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)))
    y = np.array(classes)[rng.integers(0, len(classes), 300)]
    model = ProxyTreeClassifier(size=4).fit(X, y)
    with plt.style.context("dark_background"):
        figure, ax = plt.subplots(figsize=(width, width), layout="constrained")
        plot_calibration(model, X, y, ax=ax)
    figure.canvas.draw()
    shown = [
        ax.xaxis.label,
        ax.yaxis.label,
        *(ax.get_legend().get_texts() if ax.get_legend() else []),
    ]
    for text in shown:
        place = text.get_window_extent()
        assert place.x0 >= 0 and place.x1 <= figure.bbox.x1 and place.y1 <= figure.bbox.y1, text
        assert not text.get_parse_math()
    (diagonal,) = [line for line in ax.lines if line.get_gid() == "true"]
    assert to_rgba(diagonal.get_color()) == to_rgba("white")
    assert len(shown) == (2 if len(classes) == 2 else 5)


def test_axes_of_ones_own(changes, bank):
    found, row = changes
    ax = plt.figure(figsize=(2.5, 1)).subplots()
    assert plot_change(found, ax) is ax
    assert_inside(ax)
