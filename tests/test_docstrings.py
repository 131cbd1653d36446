"""The examples in the docstrings of public names print what they show."""

import doctest
import sys

import pytest
from frame.check_package import sections
from frame.names import ELSEWHERE, PUBLIC, elsewhere, public
from shared.needs import need

# What the examples of a name import beside the libraries that the package requires
NEEDS = {name: ("matplotlib",) for name in PUBLIC if name.startswith("plot.")} | {
    "show.panel.Panel": ("ipywidgets", "matplotlib"),
    "explore": ("ipywidgets", "matplotlib"),
    "report": ("matplotlib",),
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

each_name = pytest.mark.parametrize("name", [*PUBLIC, *ELSEWHERE])


@pytest.fixture
def closed_figures():
    """Close the figures that an example leaves open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@each_name
def test_examples_print_what_they_show(name, closed_figures):
    need(*NEEDS.get(name, ()))
    thing = public(name) if name in PUBLIC else elsewhere(name)
    examples = "\n".join(sections(thing)["Examples"])
    # Nothing is imported for an example: it imports what it uses
    test = doctest.DocTestParser().get_doctest(examples, {}, name, None, 0)
    assert test.examples
    report = []
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append).failed
    assert not failed, "".join(report)
