"""How many examples a property is given: all of them in the slow tier, a few at the keyboard."""

import pytest
from hypothesis import settings

QUICK = "quick"
FULL = "full"
FEW = 3

# At the keyboard the same examples every time: what fails there fails again. The slow tier draws
# new ones.
settings.register_profile(QUICK, deadline=None, max_examples=FEW, derandomize=True)
settings.register_profile(FULL, deadline=None, max_examples=100)


def examples(n):
    """Give a property n examples in the slow tier, at most `FEW` in the quick one.

    A property without this decorator has the profile's: 100, or `FEW`.
    """
    quick = settings.get_current_profile_name() == QUICK
    return settings(max_examples=min(n, FEW) if quick else n)


def case(*values, quick=True):
    """Return one case of a parametrized test, of the slow tier unless it is quick."""
    return pytest.param(*values, marks=[] if quick else pytest.mark.slow)
