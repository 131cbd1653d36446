"""How many examples a property is given: all of them in the slow tier, a few at the keyboard."""

import pytest
from hypothesis import settings

QUICK = "quick"
FULL = "full"
NEW = "new"
FEW = 3

# The same examples every time: what fails once fails again, and what passed once does not stop CI.
settings.register_profile(QUICK, deadline=None, max_examples=FEW, derandomize=True)
settings.register_profile(FULL, deadline=None, max_examples=100, derandomize=True)
settings.register_profile(NEW, deadline=None, max_examples=100)


def examples(n):
    """Give a property n examples in the slow tier, at most `FEW` in the quick one.

    A property without this decorator has the profile's: 100, or `FEW`.
    """
    quick = settings.get_current_profile_name() == QUICK
    return settings(max_examples=min(n, FEW) if quick else n)


def case(*values, quick=True):
    """Return one case of a parametrized test, of the slow tier unless it is quick."""
    return pytest.param(*values, marks=[] if quick else pytest.mark.slow)
