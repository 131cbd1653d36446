"""Fits at fixed seeds return what the golden file holds, with the pinned versions and with others."""

import json
import os
import subprocess
import sys

import pytest
from frame import ROOT
from golden import fits
from golden.compare import first_difference
from golden.record import FILE, N_SHOWN, golden, spread, unversioned, versions
from golden.side_by_side import first_place

from fabinterp.bench.runner import FIT_VERSION

KEPT = json.loads(FILE.read_text(encoding="utf-8"))
# Forests of these fits differ between versions of scikit-learn: missing values, and ties of splits
OTHER_FORESTS = {
    "rules_of_a_mixed_weighted_table_for_words",
    "rules_of_a_mixed_weighted_table_for_numbers",
    "proxy_tree_of_a_mixed_weighted_table",
}


@pytest.mark.parametrize("name", fits.FITS)
def test_a_fit_is_that_of_the_golden_file(name):
    assert name in KEPT["fits"], f"record it: python tests/golden/record.py {name}"
    difference = first_difference(KEPT["fits"][name], golden(fits.run(name)[0]))
    if difference and name in OTHER_FORESTS and versions() != KEPT["made_with"]:
        pytest.xfail(f"{versions()}: {difference}")
    assert difference is None, f"{name}: {difference}"


@pytest.mark.skipif("CI" not in os.environ, reason="developers may have other versions")
def test_ci_has_the_versions_of_the_golden_file():
    assert versions() == KEPT["made_with"], "tests/constraints.txt pins other versions"


def test_fits_that_may_differ_with_other_versions_are_few():
    assert OTHER_FORESTS <= set(fits.FITS) and len(OTHER_FORESTS) <= 6


def test_a_fit_whose_number_was_raised_is_recorded_anew():
    """`record.py` writes the file only if the number of each changed fit was raised."""
    assert KEPT["fit_versions"] == FIT_VERSION, "run python tests/golden/record.py"
    assert {record["fit"] for record in KEPT["fits"].values()} == set(FIT_VERSION)


def test_a_changed_fit_needs_a_higher_number():
    name = "linear_pieces_for_numbers"
    changed = KEPT["fits"][name] | {"fic": KEPT["fits"][name]["fic"] + 1}
    assert unversioned(KEPT, {"fits": {name: KEPT["fits"][name]}}) == []
    assert unversioned(KEPT, {"fits": {name: changed}}) == [name]
    lower = KEPT | {"fit_versions": dict.fromkeys(FIT_VERSION, 0)}
    assert unversioned(lower, {"fits": {name: changed}}) == []


@pytest.mark.slow
def test_a_commit_is_equal_to_itself():
    if not (ROOT / ".git").exists():
        pytest.skip("the tree is no git checkout")
    name = "proxy_tree_of_a_mixed_weighted_table"
    assert name in fits.FITS
    script = str(FILE.parent / "side_by_side.py")
    command = [sys.executable, script, "HEAD", "HEAD", "--runs", "1", "--only", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All is equal, bit for bit." in done.stdout


def test_every_fit_of_the_golden_file_is_still_done():
    assert set(KEPT["fits"]) <= set(fits.FITS)


def test_every_public_estimator_is_in_the_golden_file():
    import fabinterp

    source = (FILE.parent / "fits.py").read_text(encoding="utf-8")
    fitted = [name for name in fabinterp.__all__ if name.endswith(("Classifier", "Regressor"))]
    assert len(fitted) >= 12
    for name in [*fitted, "explain", "explain_local"]:
        assert f" {name}(" in source, f"{name} is in no fit of tests/golden/fits.py"


# ------------------------------------------------------------------ the comparison

RECORD = {
    "rules text": [
        "if x0 ≤ 0.85   then 12.35 + 0.5·x1  (support 50, fidelity 0.962)",
        "otherwise then 1e-05 (90%)",
    ],
    "rules sql": ['CASE WHEN "x0" <= 0.85', 'THEN 12.345000000001 + 0.5 * "x1"', "ELSE 1"],
    "fic": -1234.5678,
    "predict": [1.5, -2.0, 1e-15],
    "labels": ["a", 1, True, None],
}


def changed(field, *change):
    """`RECORD` with a field changed: its value, or what one text in it is replaced by."""
    value = RECORD[field]
    return RECORD | {
        field: change[0] if len(change) == 1 else [line.replace(*change) for line in value]
    }


@pytest.mark.parametrize(
    "field, change",
    [
        ("rules text", ("0.85   ", "0.85  ")),  # blanks that set columns
        ("rules text", ("12.35", "12.34")),  # 12.345 may be printed either way
        ("rules text", ("0.962", "0.961")),
        ("rules text", ("0.5·", "0.501·")),  # as 0.500
        ("rules sql", ("12.345000000001", "12.345000000002")),
        ("fic", (-1234.5678 * (1 + 1e-9),)),
        ("predict", ([1.5 + 1e-9, -2.0, 3e-15],)),
        ("predict", ([1.5, -2.0, 0.0],)),
    ],
)
def test_rounding_is_accepted(field, change):
    other = changed(field, *change)
    assert (
        other != RECORD
        and first_difference(RECORD, other) is None
        and first_difference(other, RECORD) is None
    )


@pytest.mark.parametrize(
    "field, change, said",
    [
        ("rules text", ("otherwise", "else"), "rules text, line 2: 'otherwise"),
        ("rules text", ("x0", "x3"), "rules text, line 1: 'if x0"),
        ("rules text", ("≤", ">"), "rules text, line 1"),
        ("rules text", ("12.35", "-12.35"), "rules text, line 1"),
        ("rules text", ("12.35", "12.37"), "12.35 became 12.37"),
        ("rules text", ("0.5·", "0.6·"), "0.5 became 0.6"),
        ("rules text", ("50", "51"), "50 became 51"),
        ("rules text", ("90%", "91%"), "90 became 91"),
        ("rules text", ("1e-05", "2e-05"), "1e-05 became 2e-05"),
        (
            "rules text",
            (RECORD["rules text"][:1],),
            "line 2: 'otherwise then 1e-05 (90%)' became no line",
        ),
        ("rules sql", ("0.85", "0.86"), "0.85 became 0.86"),
        (
            "rules sql",
            ("12.345000000001", "12.3451"),
            "rules sql, line 2: 12.345000000001 became 12.3451",
        ),
        ("fic", (-1234.57,), "fic: -1234.5678 became -1234.57"),
        ("fic", (float("nan"),), "fic: -1234.5678 became nan"),
        ("predict", ([1.5, -2.0001, 1e-15],), "predict[1]: -2.0 became -2.0001"),
        ("predict", ([1.5, -2.0],), "predict: 3 values became 2"),
        ("labels", (["b", 1, True, None],), "labels[0]: 'a' became 'b'"),
        ("labels", (["a", 2, True, None],), "labels[1]: 1 became 2"),
        ("labels", (["a", 1, 1, None],), "labels[2]: True became 1"),
    ],
)
def test_a_change_is_noticed_and_named(field, change, said):
    assert said in first_difference(RECORD, changed(field, *change))


def test_a_field_may_neither_go_nor_come():
    less = {field: value for field, value in RECORD.items() if field != "fic"}
    assert first_difference(RECORD, less) == "fic: no longer told"
    assert first_difference(less, RECORD) == "fic: not told before"


def test_nan_stays_nan():
    assert first_difference({"fic": float("nan")}, {"fic": float("nan")}) is None


def test_shown_answers_are_spread_from_the_first_to_the_last():
    assert spread(list(range(7))) == list(range(7))
    places = spread(list(range(1001)))
    assert places[0] == 0 and places[-1] == 1000 and len(set(places)) == N_SHOWN


# ------------------------------------------------------------------ bit for bit


def test_side_by_side_sees_the_last_bit():
    one = fits.exact({"fic": 0.3, "predict": [1.0, 0.1 + 0.2], "text": "a\nb 0.3"})
    assert first_place(one, one) is None
    other = fits.exact({"fic": 0.3, "predict": [1.0, 0.3], "text": "a\nb 0.3"})
    assert first_place(one, other) == "predict[1]: 0.30000000000000004 became 0.3"
    assert first_place(one, one | {"text": "a\nb 0.4"}) == "text, line [1]: 'b 0.3' became 'b 0.4'"
    long = "word " * 50
    assert first_place({"text": f"{long}0.3"}, {"text": f"{long}0.4"}).endswith("0.4'")
    assert first_place(one, {"fic": one["fic"]}) == "predict: told by one of them"
