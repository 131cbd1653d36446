"""What differs between two records of a fit: words not at all, numbers no more than another processor makes them."""

import math
import re
from itertools import zip_longest

RELATIVE = 1e-6
FLOOR = 1e-10  # of the largest number of a field, or of 1: below it a difference is rounding
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)")


def first_difference(old, new):
    """Where two records first differ and how, in one line; None if they are the same."""
    for field in sorted(old.keys() | new.keys()):
        if field not in new:
            return f"{field}: no longer told"
        if field not in old:
            return f"{field}: not told before"
        found = field_difference(field, old[field], new[field])
        if found:
            return f"{field}{found}"
    return None


def field_difference(field, old, new):
    """How a field differs, or None.

    Texts are lists of lines; what people read is rounded, SQL is not.
    """
    if isinstance(old, str) and isinstance(new, str):
        old = old.splitlines()
        new = new.splitlines()
    if is_text(field):
        return text_difference(old, new, rounded=field.endswith("text"))
    return value_difference(old, new, FLOOR * largest(old))


def is_text(field):
    """Whether a field holds the lines of a text."""
    return field.endswith(("text", "sql", "json"))


# ------------------------------------------------------------------ texts


def text_difference(old, new, rounded):
    """The first line that differs, or None."""
    floor = FLOOR * largest([float(number) for line in old for number in NUMBER.findall(line)])
    for k, (a, b) in enumerate(zip_longest(old, new), 1):
        if a is None or b is None:
            return f", line {k}: {'no line' if a is None else repr(a)} became {'no line' if b is None else repr(b)}"
        if words(a) != words(b):
            return f", line {k}: {told(a, b)}"
        for one, other in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True):
            if not (near(float(one), float(other), floor) or rounded and near_printed(one, other)):
                return f", line {k}: {one} became {other} in {told(a, b)}"
    return None


def words(line):
    """A line with a mark for each number; a number that is one digit shorter moves what is set in columns."""
    return re.sub(" {2,}", "  ", NUMBER.sub("#", line))


def near_printed(one, other):
    """Whether printed numbers differ by one unit of their last digit at most: the digits of 1.2345 round both ways."""
    unit = max(last_digit(one, other), last_digit(other, one))
    return abs(float(one) - float(other)) <= 1.001 * unit


def last_digit(printed, other):
    """The unit of the last digit of a printed number.

    Zeros at the end are not printed, 0.9 may be 0.900: three digits count, or four where there is
    no point. Counts of less than four digits are therefore the same or not.
    """
    size = math.floor(math.log10(float(printed) or 1))
    whole = "." not in printed + other and "e" not in printed
    if "e" in printed:
        return 10.0 ** (size - 3)
    decimals = max(
        len(number.partition(".")[2]) for number in (printed, other) if "e" not in number
    )
    return min(10.0**-decimals, 10.0 ** (size - (3 if whole else 2)))


def told(a, b):
    """The places where two lines part."""
    start = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    start = max(0, start - 40)
    return f"{a[start : start + 100]!r} became {b[start : start + 100]!r}"


# ------------------------------------------------------------------ values


def largest(value):
    """The largest size of the numbers in a value, at least 1."""
    if isinstance(value, list):
        return max(map(largest, value), default=1.0)
    return max(1.0, abs(value)) if isinstance(value, float) and math.isfinite(value) else 1.0


def near(a, b, floor):
    """Whether two numbers are the same but for rounding; nan is nan."""
    return (
        a == b
        or math.isnan(a)
        and math.isnan(b)
        or abs(a - b) <= max(RELATIVE * max(abs(a), abs(b)), floor)
    )


def value_difference(old, new, floor):
    """Where two values, or lists of values, first differ and how; None if they are the same."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f": {len(old)} values became {len(new)}"
        parts = (
            (k, value_difference(a, b, floor))
            for k, (a, b) in enumerate(zip(old, new, strict=True))
        )
        return next((f"[{k}]{found}" for k, found in parts if found), None)
    numbers = isinstance(old, float) and isinstance(new, float)
    same = near(old, new, floor) if numbers else type(old) is type(new) and old == new
    return None if same else f": {old!r} became {new!r}"
