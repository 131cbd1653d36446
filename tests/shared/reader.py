"""A reader with a pencil: what a printed text says, computed from the text alone.

It knows the words of `fabinterp.rules.text` and nothing of the objects that printed them. Names of columns and labels
are single words.
"""

import re

import numpy as np

NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞)"
CURVE_LINE = re.compile(r"^(s\d*\([^)]*\)(?: of \S+)?): (.*)$")
CODE_LINE = re.compile(r"^code of (\w+): (.*)$")
BOUNDS = re.compile(
    rf"clipped to \[({NUMBER}), ({NUMBER})\]|at least ({NUMBER})|at most ({NUMBER})"
)


def number(text):
    """Return the number that a text says."""
    return float(text.replace("∞", "inf"))


class Reader:
    """Answers for the rows of a frame, by a text."""

    def __init__(self, text, frame):
        self.frame = frame
        self.n = len(frame)
        self.curves = {}
        self.stated = 0.0  # how far off the text says that its curves are
        self.codes = {}
        self.lines = []
        for line in text.splitlines():
            if match := CURVE_LINE.match(line):
                self.curves[match[1]] = match[2]
            elif match := CODE_LINE.match(line):
                self.codes[match[1]] = dict(pair.rsplit(" ", 1) for pair in match[2].split(", "))
            elif not line.startswith("where "):
                self.lines.append(line)

    # Conditions

    def column(self, name):
        """Return a column as numbers; True is 1."""
        values = self.frame[name]
        if name in self.codes:
            return values.map(self.codes[name]).astype(float).to_numpy()
        return values.to_numpy(dtype=float)

    def labels(self, name):
        """Return a column as texts."""
        return self.frame[name].astype(str).to_numpy()

    def condition(self, text):
        """Return which rows satisfy a phrase."""
        text = text.strip()
        if text.startswith("(") and text.endswith(" or missing)"):
            text = text[1:-1]
        if text.endswith(" or missing"):
            phrase = text.removesuffix(" or missing")
            names = [name for name in self.frame if re.search(rf"\b{name}\b", phrase)]
            missing = self.frame[names].isna().any(axis=1).to_numpy()
            return missing | self.condition(phrase)
        if text in ("never", "always", "otherwise"):
            return np.full(self.n, text != "never")
        if match := re.fullmatch(r"(\w+) is (not )?missing", text):
            return self.frame[match[1]].isna().to_numpy() != bool(match[2])
        if match := re.fullmatch(r"(not )?(\w+)", text):
            return self.frame[match[2]].to_numpy(dtype=bool) != bool(match[1])
        if match := re.fullmatch(r"(\w+) is (not )?(\S+)", text):
            known = self.frame[match[1]].notna().to_numpy()
            return known & ((self.labels(match[1]) == match[3]) != bool(match[2]))
        if match := re.fullmatch(r"(\w+) (∈|∉) \{(.*)\}", text):
            known = self.frame[match[1]].notna().to_numpy()
            inside = np.isin(self.labels(match[1]), match[3].split(", "))
            return known & (inside == (match[2] == "∈"))
        if match := re.fullmatch(rf"({NUMBER}) < (.*) ≤ ({NUMBER})", text):
            value = self.sum(match[2])
            return (value > number(match[1])) & (value <= number(match[3]))
        match = re.fullmatch(rf"(.*) (>|≤) ({NUMBER})", text)
        assert match, text
        value = self.sum(match[1])
        return value > number(match[3]) if match[2] == ">" else value <= number(match[3])

    def conditions(self, text):
        """Return which rows satisfy all of the phrases."""
        parts = [self.condition(part) for part in text.split(" and ")]
        return np.logical_and.reduce(parts)

    # Equations

    def sum(self, text, of=""):
        """Return the values of a weighted sum, with the curves `of` a class."""
        known = {}

        def hold(values):
            known[f"v{len(known)}"] = values
            return f" v{len(known) - 1} "

        def bonus(match):
            return hold(number(match[1]) * self.condition(match[2]))

        def curve(match):
            return hold(self.curve(match[0] + of))

        def name(match):
            return hold(self.column(match[1]))

        expression = re.sub(rf"\(({NUMBER}) if ([^)]*)\)", bonus, text)
        expression = re.sub(r"\bs\d*\([^)]*\)", curve, expression)
        names = "|".join(sorted(map(re.escape, self.frame), key=len, reverse=True))
        expression = re.sub(rf"(?:code of )?\b({names})\b", name, expression)
        value = eval(expression.replace("·", "*"), {"__builtins__": {}}, known)  # noqa: S307
        return np.broadcast_to(np.asarray(value, dtype=float), self.n)

    def curve(self, name):
        """Return the values of a curve from its line."""
        feature = re.search(r"\(([^)]*)\)", name)[1]
        text = self.curves[name]
        notes = re.search(r" \(([^()]*)\)$", text)
        if notes:
            text = text[: notes.start()]
            if match := re.search(rf"to within ({NUMBER})", notes[1]):
                self.stated += number(match[1])
        pairs = [pair.split(" → ") for pair in text.split(", ")]
        missing = [number(value) for place, value in pairs if place == "missing"]
        pairs = [(place, number(value)) for place, value in pairs if place != "missing"]
        found = self.points(feature, pairs, notes is not None and "straight" in notes[1])
        gaps = self.frame[feature].isna().to_numpy()
        return np.where(gaps, missing[0], found) if missing else found

    def points(self, feature, pairs, straight):
        """Return the values of a column by pairs of place and value."""
        places = [place for place, _ in pairs]
        values = np.array([value for _, value in pairs])
        if places == ["everywhere"]:
            return np.full(self.n, values[0])
        if straight:
            return np.interp(self.column(feature), [number(place) for place in places], values)
        if places[0].startswith("below "):
            edges = [number(place.removeprefix("from ")) for place in places[1:]]
            return values[np.searchsorted(edges, self.column(feature), side="right")]
        by_label = dict(zip(places, values, strict=True))
        others = by_label.get("others", np.nan)
        return np.array([by_label.get(label, others) for label in self.labels(feature)])

    # Answers

    def clipped(self, values, text):
        """Return values within the bounds that a text names."""
        match = BOUNDS.search(text)
        if not match:
            return values
        low = match[1] or match[3] or "-∞"
        high = match[2] or match[4] or "∞"
        return np.clip(values, number(low), number(high))

    def answer(self, text):
        """Return what a leaf answers in each row: numbers, or (labels, margins)."""
        if match := re.fullmatch(r"(\S+) \((\d\S*)\)", text):
            return np.full(self.n, match[1]), np.full(self.n, np.inf)
        if match := re.fullmatch(r"(\S+) if (.*) > 0, else (\S+?)(; the sum .*)?", text):
            score = self.clipped(self.sum(match[2]), match[4] or "")
            return np.where(score > 0, match[1], match[3]), np.abs(score)
        if text.startswith("the largest of"):
            head, *parts = re.split(r"(?:(?<=of)|(?<=\)))\s(?=\S+: )|; ", text)
            names = [part.split(": ", 1)[0] for part in parts]
            scores = [
                self.clipped(self.sum(part.split(": ", 1)[1], f" of {label}"), head)
                for label, part in zip(names, parts, strict=True)
            ]
            scores = np.stack(np.broadcast_arrays(*scores), axis=1)
            ordered = np.sort(scores, axis=1)
            return np.array(names)[scores.argmax(axis=1)], ordered[:, -1] - ordered[:, -2]
        equation, _, bounds = text.partition(", ")
        return self.clipped(self.sum(equation), bounds)

    def regions(self):
        """Return pairs of the rows of a region, and the text of its answer."""
        first = self.lines[0]
        if re.match(r"(if|else if|otherwise|always)\b.*  then ", first):
            return self.rule_regions()
        if len(self.lines) == 1:
            return [(np.full(self.n, True), first)]
        return self.tree_regions()

    def rule_regions(self):
        """Return the regions of a list of rules."""
        free = np.full(self.n, True)
        found = []
        for line in self.lines:
            front, _, rest = line.partition("  then ")
            answer = re.sub(r"\s+\((?:support|fidelity) [^()]*\)$", "", rest)
            phrase = re.sub(r"^(else if|if)\s+", "", front).strip()
            mask = self.conditions(phrase) & free
            free = free & ~mask
            found.append((mask, answer))
        return found

    def tree_regions(self):
        """Return the regions of the leaves of a tree."""
        masks = []
        found = []
        for line in self.lines[1:]:
            depth = len(re.match(r"(?:│  |   )*", line)[0]) // 3
            phrase = re.sub(r"^(?:│  |   )*(?:├─ |└─ )", "", line)
            phrase, _, answer = phrase.partition(": ")
            del masks[depth:]
            masks.append(self.conditions(phrase))
            if answer:
                found.append((np.logical_and.reduce(masks), answer))
        return found


def read_numbers(text, frame):
    """Return what a text answers with numbers, (n,), and how far off it says that its curves may be."""
    reader = Reader(text, frame)
    told = np.full(reader.n, np.nan)
    for mask, answer in reader.regions():
        told[mask] = reader.answer(answer)[mask]
    return told, reader.stated


def read_classes(text, frame):
    """Return what a text answers with classes, (n,), how clear each answer is, and what is stated of curves."""
    reader = Reader(text, frame)
    told = np.full(reader.n, "", dtype=object)
    margins = np.full(reader.n, np.nan)
    for mask, answer in reader.regions():
        labels, clear = reader.answer(answer)
        told[mask] = labels[mask]
        margins[mask] = clear[mask]
    return told, margins, reader.stated
