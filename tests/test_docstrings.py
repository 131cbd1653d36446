"""`help()` of every public name tells the parameters there are; its examples print what they say."""

import doctest
import inspect
import re
import sys

import pytest
from shared.needs import need

import fabinterp

# What the examples of a name import beside the libraries that the package requires
NEEDS = {name: ("matplotlib",) for name in fabinterp.__all__ if name.startswith("plot_")} | {
    "Panel": ("ipywidgets", "matplotlib"),
    "explore": ("ipywidgets", "matplotlib"),
    "report": ("matplotlib",),
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

each_name = pytest.mark.parametrize("name", fabinterp.__all__)


@pytest.fixture
def closed_figures():
    """Close the figures that an example leaves open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def sections(thing):
    """Return the numpydoc sections of a docstring: dict of heading to lines."""
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(thing), flags=re.M)
    return dict(zip(parts[1::2], map(str.splitlines, parts[2::2]), strict=True))


def described(lines):
    """Return the names that begin the lines of a section; each line says a type after a colon."""
    heads = [line.split(" : ") for line in lines if line and not line.startswith(" ")]
    return [name.strip(" *") for names, _ in heads for name in names.split(",")]


@each_name
def test_every_parameter_is_described_in_the_order_of_the_signature(name):
    thing = getattr(fabinterp, name)
    found = sections(thing)
    assert described(found["Parameters"]) == list(inspect.signature(thing).parameters)
    assert inspect.isclass(thing) or found["Returns"]


@each_name
def test_examples_print_what_they_say(name, closed_figures):
    need(*NEEDS.get(name, ()))
    thing = getattr(fabinterp, name)
    examples = "\n".join(sections(thing)["Examples"])
    # Nothing is imported for an example: what it uses, it says
    test = doctest.DocTestParser().get_doctest(examples, {}, name, None, 0)
    assert test.examples
    report = []
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append).failed
    assert not failed, "".join(report)
