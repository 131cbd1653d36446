"""The page that measures the seconds of fits that find their size: its stored lines, and a small job."""

from frame import NBS

from fabinterp.bench.runner import key_text, read_lines
from fabinterp.bench.seconds import MODELS, TABLES, measure_seconds

RESULTS = NBS / "results"
LINES = read_lines(RESULTS / "seconds.jsonl")


def test_every_job_has_a_stored_line():
    (table,) = TABLES
    assert {key_text(line["key"]) for line in LINES} == set(table.keys())
    assert all(line["seconds"] > 0 and line["leaves"] >= 1 for line in LINES)


def test_one_price_is_quicker_than_all():
    seconds = {
        (line["key"]["data"], line["key"]["n"], line["key"]["model"]): line["seconds"]
        for line in LINES
    }
    for (data, n, model), spent in seconds.items():
        if not model.endswith("one price"):
            assert spent > seconds[data, n, f"{model}, one price"]


def test_a_small_job_is_measured():
    found = {
        model: measure_seconds({"data": "breast_cancer", "n": 200, "model": model})
        for model in MODELS
    }
    assert all(line["seconds"] > 0 and line["leaves"] >= 1 for line in found.values())
