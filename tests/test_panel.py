"""A panel draws what its controls say, once a move; its stored frames stand alone."""

import base64
import io
import re

import ipywidgets
import pytest
from PIL import Image

from fabinterp.show.panel import Panel, make_control, render_frame, static_slider


def test_a_film_escapes():
    shown = static_slider(
        lambda figure, k: f"<b>{k}", [{"k": 1}, {"k": 2}], label='"<x>'
    )._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;1" in shown and 'aria-label="&quot;&lt;x&gt;"' in shown


def test_a_panel_says_what_is_refused():
    def draw(figure, k):
        if k > 2:
            raise ValueError(f"k must be small, got {k}")
        return f"k is {k}"

    panel = Panel(draw, {"k": (0, 5, 1)}, values={"k": 2})
    assert "k is 2" in panel.text.value
    panel.controls["k"].value = 4
    assert "k must be small, got 4" in panel.text.value


def draw_bar(figure, height, colour="red"):
    figure.subplots().bar([0], [height], color=colour)
    return [("height", str(height)), ("colour", colour)]


def test_the_picture_says_what_the_text_says():
    panel = Panel(draw_bar, {"height": (1, 9, 1), "colour": ["red", "blue"]})
    source, alt = re.search(
        'src="data:image/png;base64,([^"]*)" alt="([^"]*)"', panel.picture.value
    ).groups()
    picture = Image.open(io.BytesIO(base64.b64decode(source)))
    assert picture.size == (480, 288) and alt == "height: 1; colour: red"
    panel.set(height=3, colour="blue")
    assert 'alt="height: 3; colour: blue"' in panel.picture.value
    assert panel.values == {"height": 3, "colour": "blue"}


@pytest.mark.parametrize(
    "spec, kind, begins",
    [
        ((1, 9, 1), ipywidgets.IntSlider, 1),
        ((0.0, 1.0, 0.1), ipywidgets.FloatSlider, 0.0),
        ([0.5, 2, 10.0], ipywidgets.SelectionSlider, 0.5),
        (["a", "b"], ipywidgets.Dropdown, "a"),
        ([("few", 1), ("many", 9)], ipywidgets.Dropdown, 1),
        (False, ipywidgets.Checkbox, False),
    ],
)
def test_controls(spec, kind, begins):
    control = make_control("name", spec)
    assert type(control) is kind and control.value == begins and control.description == "name"
    assert make_control("name", control) is control


def test_a_control_starts_where_it_is_told():
    assert make_control("p", [0.5, 2, 10], 2).value == 2
    assert make_control("p", (-5, 5, 1), 3).value == 3
    assert make_control("p", False, True).value is True
    assert make_control("p", (5, 9, 1)).value == 5


def test_play_steps_through_a_slider():
    panel = Panel(
        draw_bar, {"colour": ["red"], "height": (2, 9, 1)}, values={"height": 4}, play="height"
    )
    controls = panel.widget.children[0].children
    assert [type(c).__name__ for c in controls] == ["Dropdown", "Play", "IntSlider"]
    assert (controls[1].min, controls[1].max, controls[1].value) == (2, 9, 4)


def test_frames_leave_out_what_stays():
    panel = Panel(
        draw_bar,
        {"height": (1, 9, 1), "colour": ["red", "blue"]},
        frames=[{"height": 2}, {"colour": "blue"}],
    )
    assert panel.frames == [{"height": 2, "colour": "red"}, {"height": 1, "colour": "blue"}]
    page = panel._repr_mimebundle_()["text/html"]
    assert page.count('alt="height: 1; colour: blue"') == 1 and 'max="2"' in page
    assert re.findall('data-name="([^"]*)"', page) == [
        "height 2, colour red",
        "height 1, colour blue",
    ]


def test_a_stored_slider_says_what_it_shows():
    """The value itself where one varies, and as its control says it; what follows another is left out."""
    panel = Panel(
        lambda figure, size, twice, way: f"{size} {twice}",
        {"size": (1, 9, 1), "twice": (2, 18, 1), "way": [("by <hand>", 0), ("by search", 1)]},
        links={"size": lambda size: {"twice": 2 * size}},
        frames=[{"size": size, "twice": 2 * size} for size in (3, 5)],
        label="size",
    )
    page = panel._repr_mimebundle_()["text/html"]
    assert re.findall('data-name="([^"]*)"', page) == ["3", "5"]
    assert 'aria-valuetext="3"' in page and "<span>3</span></div>" in page
    panel.frames = [{"size": 3, "twice": 6, "way": way} for way in (0, 1)]
    assert panel.frame_names() == ["by <hand>", "by search"]
    assert "by &lt;hand&gt;" in panel._repr_mimebundle_()["text/html"]


def test_a_frame_is_small():
    png, _ = render_frame(draw_bar, {"height": 3})
    assert len(png) < 8000


def test_links_move_others_and_draw_once():
    drawn = []
    panel = Panel(
        lambda figure, a, b: drawn.append((a, b)) or "",
        {"a": (0, 9, 1), "b": (0, 9, 1)},
        links={"a": lambda a: {"b": 9 - a}},
    )
    panel.controls["a"].value = 4
    panel.controls["b"].value = 7
    assert drawn == [(0, 0), (4, 5), (4, 7)]
