"""Tables in files: the right numbers and labels, or a rejection whose hint works."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared.effort import case, examples

from fabinterp import (
    MetaTreeRegressor,
    PiecewiseLinearRegressor,
    ProxyTreeRegressor,
    Schema,
    explain,
    load_rules,
    report,
)
from fabinterp.commands import schema_of_model
from fabinterp.files import TableOptions, read_table
from fabinterp.rules.schema import infer_column, suspected_codes, with_schema
from fabinterp.terminal import CommandError


def numbers(seed=0, n=60):
    """A table of numbers without special forms."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "staff": rng.integers(1, 9000, n),
            "rent": rng.uniform(100, 9000, n).round(2),
            "rooms": rng.integers(1, 9, n),
        }
    )


def text_of(frame, sep=","):
    return frame.to_csv(index=False, sep=sep)


def placeholder(mark):
    def write(frame):
        cells = frame.astype({"staff": object})
        cells.loc[::10, "staff"] = mark
        expected = frame.astype({"staff": float})
        expected.loc[::10, "staff"] = np.nan
        return text_of(cells), expected

    return write


def european(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def whole(value):
    return f"{value:,}".replace(",", ".")


def with_subtotals(frame, name):
    """Write a table with the sums of each ten rows below them, in a row of this name."""
    lines = ["region,staff,rent,rooms"]
    for start in range(0, len(frame), 10):
        part = frame[start : start + 10]
        lines += [f"r{k},{row.staff:.0f},{row.rent},{row.rooms:.0f}" for k, row in part.iterrows()]
        sums = part.sum()
        lines.append(f"{name},{sums.staff:.0f},{sums.rent:.2f},{sums.rooms:.0f}")
    return "\n".join(lines) + "\n"


def plain(write):
    """A way to write a table whose numbers are read as they are."""
    return lambda frame: (write(frame), frame)


FILES = {
    **{f"missing {mark}": placeholder(mark) for mark in
       ["?", "-", "–", ".", "..", ":", "*", "(D)", "<5", "#N/A", "#DIV/0!", "unknown", "None", "N/A"]},
    "separator at the end of lines": plain(lambda f: text_of(f).replace("\n", ",\n").replace(",\n", "\n", 1)),
    "row names": plain(lambda f: f.set_axis([f"r{k}" for k in f.index]).to_csv().removeprefix(",")),
    "row numbers of R": plain(lambda f: f.set_axis(range(1, len(f) + 1)).to_csv().removeprefix(",")),
    "row numbers": plain(lambda f: f.to_csv()),
    "sep=": plain(lambda f: "sep=;\n" + text_of(f, ";")),
    "titles": plain(lambda f: "Office,,\nTable 12,,\n\n" + text_of(f)),
    "short titles": plain(lambda f: "Office of statistics\n\n" + text_of(f)),
    "units": plain(lambda f: text_of(f).replace("\n", "\npersons,EUR,\n", 1)),
    "footnotes": plain(lambda f: text_of(f) + "\nSource: the office, provisional\n* revised\n"),
    "padded footnote": plain(lambda f: text_of(f) + "Source: the office,,\n"),
    "total": plain(lambda f: text_of(f) + f"{f.staff.sum()},{f.rent.sum():.2f},{f.rooms.sum()}\n"),
    "total of two": plain(lambda f: text_of(f) + f"{f.staff.sum()},,{f.rooms.sum()}\n"),
    "total of one": plain(lambda f: text_of(f) + f",,{f.rooms.sum()}\n"),
    "total in words": plain(lambda f: text_of(f) + f"Total,,{f.rooms.sum()}\n"),
    "semicolons": plain(lambda f: text_of(f, ";")),
    "tabs": plain(lambda f: text_of(f, "\t")),
    "bars": plain(lambda f: text_of(f, "|")),
    "carriage returns": plain(lambda f: text_of(f).replace("\n", "\r")),
    "Windows": plain(lambda f: text_of(f).replace("\n", "\r\n")),
    "quoted": plain(lambda f: f.to_csv(index=False, quoting=1)),
    "decimal commas": plain(lambda f: f.to_csv(index=False, sep=";", decimal=",")),
    "decimal commas and points": plain(lambda f: text_of(f.assign(rent=f.rent.map(european)), ";")),
    "quoted decimal commas": plain(lambda f: text_of(f.assign(rent=f.rent.map(european)))),
    "thousands": plain(lambda f: text_of(f.assign(staff=f.staff.map("{:,}".format)))),
    "thousands with blanks": plain(lambda f: text_of(f.assign(staff=f.staff.map("{:,}".format).str.replace(",", " ")))),
    "Swiss": plain(lambda f: text_of(f.assign(staff=f.staff.map("{:,}".format).str.replace(",", "'")))),
    "dollars": plain(lambda f: text_of(f.assign(rent=f.rent.map("${:,.2f}".format)))),
    "euros": plain(lambda f: text_of(f.assign(rent=f.rent.map(european) + " €"), ";")),
    "per cent": plain(lambda f: text_of(f.assign(rooms=f.rooms.astype(str) + "%"))),
    "dates": plain(lambda f: text_of(f.assign(day=pd.date_range("2020", periods=len(f))))),
    "blanks": plain(lambda f: text_of(f).replace(",", " , ")),
    "empty last lines": plain(lambda f: text_of(f) + "\n\n,,\n"),
    "whole numbers with points": lambda f: (
        text_of(f.assign(staff=f.staff.map(whole))[["staff", "rooms"]]), f[["staff", "rooms"]]),
    "mixed thousands": plain(lambda f: text_of(f.assign(staff=f.staff.map("{:,}".format)))
                             .replace(f'"{f.staff.max():,}"', str(f.staff.max()))),
    "subtotals": plain(lambda f: with_subtotals(f, "Zwischensumme ")),
    "subtotals without a name": plain(lambda f: with_subtotals(f, "")),
}  # fmt: skip


def file_of(folder, text, name="t.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return str(path)


def lines_of(pattern, frame):
    """Write each row of a frame by a pattern; its fields are columns, and k is the number of the row."""
    rows = frame.to_dict("records")
    return "".join(
        pattern.format(k=k, p="p" * (k % 6 == 0), **row) + "\n" for k, row in enumerate(rows)
    )


WORLD_BANK = (
    '"Data Source","World Development Indicators",\n\n"Last Updated Date","2024-10-24",\n\n'
)
GENESIS = "Statistik: 12411\nBevölkerung: Kreise, Stichtag;;;\n;;Zahl;Zahl\n"
SAP_ROW = "{k:06d};{area_de}{minus};{people_de};{kind}"

# header, pattern of a row, footer; lines to skip if the file is rejected
EXPORTS = {
    "Eurostat SDMX": ("DATAFLOW,freq,geo,TIME_PERIOD,kind,people,area,OBS_FLAG,CONF_STATUS\n",
                      "ESTAT:X(1.0),A,DE{k:03d},2019,{kind},{people},{area},{p},", "", None),
    "Eurostat TSV": ("freq,unit,geo\\TIME_PERIOD\tkind \tpeople \tarea \n",
                     "A,PC,DE{k:03d}\t{kind}\t{people} \t{area} ", "", None),
    "GENESIS": (GENESIS + ";kind;people;area\n;;Anzahl;km2\n", "{k:05d};{kind};{people};{area_de}",
                "__________\n(C)opyright Statistisches Bundesamt (Destatis), 2024\nStand: 01.02.2024 / 10:11:12\n", 3),
    "GENESIS of regions": ("Kreise;kind;people;area\n;;Anzahl;km2\n", "{k:05d};{kind};{people};{area_de}", "", None),
    "US Census": ("GEO_ID,kind,people,area,MOE\nGeography,Type,Estimate!!Total,Area,Margin of Error\n",
                  "0500000US{k:05d},{kind},{people},{area},*****", "", None),
    "World Bank file": (WORLD_BANK + '"Country Name","kind","people","area",\n',
                        '"Land {k}","{kind}","{people}","{area}",', "", 4),
    "World Bank DataBank": ("Country Name,kind,people,area,2020 [YR2020]\n", "Land {k},{kind},{people},{area},..",
                            "\n\nData from database: World Development Indicators\nLast Updated: 10/24/2024\n", None),
    "SAP": ("Konto;area;people;kind\n", SAP_ROW, "", None),
    "German Excel": ("sep=;\nOrt;kind;people;area\n", "Ort {k};{kind};{people_de};{area_de}", "\n", None),
    "German Excel, whole numbers": ("people;kind;area\n", "{people_de};{kind};{area_de}", "", None),
    "Swiss Excel": ("people;kind;area\n", "{people_ch};{kind};{area}", "", None),
    "French Excel": ("people;kind;area\n", "{people_fr};{kind};{area_fr} €", "", None),
    "R write.csv": ('"","people","kind","area"\n', '"{k}",{people},"{kind}",{area}', "", None),
    "R write.csv2": ('"";"people";"kind";"area"\n', '"{k}";{people};"{kind}";{area_fr}', "", None),
    "Stata": ("people,kind,area,wage\n", "{people},{kind},{area},.a", "", None),
    "LimeSurvey": ('"id. Antwort ID","submitdate. Datum","kind","people","area"\n',
                   '"{k}","2024-01-31 10:00:00","{kind}","{people}","{area}"', "", None),
    "bank": ("Umsätze Girokonto;;;\nKonto:;DE12 3456;;\nSaldo:;1.234,56 EUR;;\n\nTag;kind;people;area\n",
             "31.01.2024;{kind};{people};{area_de}", "", 4),
    "bank without padding": ('"Umsätze";"Zeitraum: 30 Tage"\n"Kontostand";"1,56 EUR"\n\n"Tag";"kind";"people";"area"\n',
                             '"31.01.2024";"{kind}";"{people}";"{area_de}"', "", 3),
    "MySQL": ("id,kind,people,area,note\n", "{k},{kind},{people},{area},\\N", "", None),
    "survey with units": ("people,kind,area\npersons,group,m2\n", "{people},{kind},{area}", "", None),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_or_rejected_with_a_hint_that_works(tmp_path, name, seed):
    header, row, footer, skip = EXPORTS[name]
    rng = np.random.default_rng(seed)
    expected = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 60)})
    expected["people"] = rng.integers(1, 90_000, 60)
    expected["area"] = rng.uniform(1, 9000, 60).round(2)
    written = expected.assign(
        people_de=expected.people.map(whole), area_de=expected.area.map(european), minus="",
        people_ch=expected.people.map("{:,}".format).str.replace(",", "'"), p="",
        people_fr=expected.people.map("{:,}".format).str.replace(",", "\u202f"),
        area_fr=expected.area.astype(str).str.replace(".", ","),
    ).drop(columns="p")  # fmt: skip
    if name == "SAP":
        written.loc[::3, "minus"] = "-"
        expected.loc[::3, "area"] *= -1
    path = file_of(tmp_path, header + lines_of(row, written) + footer)
    if skip is None:
        table = read_table(path)
    else:
        with pytest.raises(CommandError, match="--skip N"):
            read_table(path)
        table = read_table(path, TableOptions(skip=skip))
    read = table.rows(list(expected))
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


@pytest.mark.parametrize("sep, texts, values, other", [
    (",", ["6.611", "7.320"], [6.611, 7.32], [6611, 7320]), (";", ["6.611", "7.320"], [6611, 7320], [6.611, 7.32]),
    (",", ['"1,234"', '"2,345"', "987654"], [1234, 2345, 987654], [1.234, 2.345, 987654]),
    (";", ["6,611", "7,320"], [6.611, 7.32], [6611, 7320]),
])  # fmt: skip
def test_numbers_of_two_readings_are_named_with_the_option_that_decides(
    tmp_path, sep, texts, values, other
):
    path = file_of(tmp_path, f"x{sep}y\n" + "".join(f"{text}{sep}a\n" for text in texts * 9))
    table = read_table(path)
    assert table.columns["x"].tolist() == values * 9
    (option,) = re.findall("x +number .*--decimal (.) sets another", "\n".join(table.remarks))
    assert read_table(path, TableOptions(decimal=option)).columns["x"].tolist() == other * 9
    decided = file_of(tmp_path, f"x{sep}z\n" + "".join(f"{text}{sep}0.5\n" for text in texts * 9))
    if "." in texts[0] or sep == ",":
        assert not any("--decimal" in line for line in read_table(decided).remarks)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_as_the_plain_table(tmp_path, kind, seed):
    text, expected = FILES[kind](numbers(seed))
    table = read_table(file_of(tmp_path, text))
    read = table.rows()[list(expected)]
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)
    assert set(table.rows()) == set(expected), "columns that models use"
    quiet = (
        "sep=",
        "semicolons",
        "tabs",
        "bars",
        "carriage returns",
        "Windows",
        "quoted",
        "empty last lines",
    )
    assert bool(table.remarks) == (kind not in (*quiet, "blanks", "missing N/A"))


def test_lines_with_more_cells_are_rejected_with_the_line(tmp_path):
    frame = numbers()
    path = file_of(tmp_path, text_of(frame) + "1,2,3,4\n")
    with pytest.raises(CommandError, match="line 62, saw 4; --sep") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    assert len(read_table(path, TableOptions(footer=1))) == len(frame)
    text = text_of(frame).replace("\n", ",7\n").replace(",7\n", "\n", 1)
    with pytest.raises(CommandError, match="lines have 4 cells and the header has 3"):
        read_table(file_of(tmp_path, text))


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("kinds", [None, ("number", "number"), ("label", "number")])
def test_a_header_alone_is_a_table_without_rows(tmp_path, end, kinds):
    path = file_of(tmp_path, f"a,b{end}")
    given = Schema(dict(zip("ab", kinds))) if kinds else None
    with pytest.raises(CommandError, match="has no rows$"):
        read_table(path, schema=given)


def test_the_hint_to_skip_lines_works(tmp_path):
    text = "Table,12,,\n2019,2020,2021,2022\n" + numbers().assign(x=1).to_csv(index=False)
    path = file_of(tmp_path, "Table 12,,,\n" + text)
    table = read_table(path, TableOptions(skip=3))
    assert len(table) == 60 and list(table.columns) == ["staff", "rent", "rooms", "x"]


def labels_of(*texts):
    return infer_column(dict.fromkeys(texts, 5))[0].kind


CODES = [
    ["01", "02", "10"], ["12A", "1B", "7"], ["1E5", "2E3"], ["250", "V45", "401"], ["007", "008", "?"],
    ["1", "2", "A", "B"], ["12-3", "14-5"], ["2024W01", "2024W02"], ["1.2.3", "1.10.0"], ["A1", "A2", "-"],
    ["True", "False", "Unknown"], ["00501", "10115"], ["7a", "7b", "12"], ["N", "S", "1", "2", "7"],
    ["1234567890123456", "1234567890123457"], ["+49 30", "+49 40"], ["3E2", "445", "7E1"], ["0", "00", "000"],
    ["M", "L", "XL", "42"], ["1/2", "3/4"], ["None", "-"],
]  # fmt: skip


@pytest.mark.parametrize("texts", CODES, ids=lambda texts: texts[0])
def test_codes_are_labels(tmp_path, texts):
    assert labels_of(*texts) in ("label", "identifier")
    cells = np.resize(texts, 40)
    frame = pd.DataFrame({"code": cells, "y": np.arange(40) % 3})
    for order in (["code", "y"], ["y", "code"]):
        column = read_table(file_of(tmp_path, text_of(frame[order]))).columns["code"]
        assert [str(value) for value in column] == list(cells)


def test_suspicious_columns_are_named_and_can_be_overridden(tmp_path):
    frame = numbers().assign(floor=np.resize(["3", "4", "12", "7", "1B"], 60))
    path = file_of(tmp_path, text_of(frame))
    table = read_table(path)
    assert any("floor" in line and "--number" in line for line in table.remarks)
    stated = TableOptions(schema=Schema({"floor": "number"}))
    read = read_table(path, stated).columns["floor"]
    assert np.isnan(read[4::5]).all() and set(read[~np.isnan(read)]) == {3, 4, 7, 12}
    assert read_table(path, TableOptions(missing=("1B",))).schema.columns["floor"].kind == "number"
    text = read_table(path, TableOptions(schema=Schema({"rooms": "label"}), text=("rooms",)))
    assert set(text.columns["rooms"]) <= set("12345678")


def test_repeated_names_are_numbered_and_blanks_stripped(tmp_path):
    table = read_table(file_of(tmp_path, "a,a,b\n" + "1,2,yes \n3,4,no\n5,6,yes\n" * 5))
    assert list(table.columns) == ["a", "a.1", "b"]
    assert set(table.columns["b"]) == {"yes", "no"} and len(table.remarks) == 3


def test_special_codes():
    rng = np.random.default_rng(0)
    months = rng.integers(0, 80, 900)
    assert suspected_codes(np.where(rng.random(900) < 0.2, -7, months)) == (-7,)
    both = np.where(rng.random(900) < 0.1, 998, np.where(rng.random(900) < 0.1, 999, months))
    assert suspected_codes(both) == (998, 999)
    assert suspected_codes(months) == suspected_codes(rng.normal(size=900)) == ()
    assert suspected_codes([]) == suspected_codes([np.nan, 1.0]) == ()


def test_schemas_are_checked():
    for wrong, message in (
        ({"x": "text"}, "kind must be one of"), ({"x": {"kind": "number", "missing": "?"}}, "must be a list"),
        ({"x": {"sort": 1}}, "schema\\['x'\\]"), ({"x": 3}, "schema\\['x'\\]"), ([], "must be a Schema or a dict"),
        ({"x": {"kind": "number", "decimal": ",,"}}, "must be one character"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Schema(wrong)
    people = pd.DataFrame({"x": ["6.611", "732"]})
    assert with_schema(people, {"x": "number"})["x"].tolist() == [6611, 732]
    X = pd.DataFrame({"x": ["1", "b"], "z": [1.0, 2.0]})
    with pytest.raises(ValueError, match="schema must name columns of X, got 'w'"):
        ProxyTreeRegressor().fit(X, [1.0, 2.0], schema={"w": "label"})
    with pytest.raises(ValueError, match="schema needs a data frame"):
        ProxyTreeRegressor().fit(X[["z"]].to_numpy(), [1.0, 2.0], schema={"w": "label"})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A table of all kinds of columns, its file, and a model fitted to it."""
    rng = np.random.default_rng(1)
    n = 300
    frame = pd.DataFrame(
        {
            "code": rng.choice(["01", "02", "03", "1A"], n),
            "back": rng.choice(["True", "False", "Unknown"], n),
            "sold": rng.choice(["True", "False"], n),
            "sku": rng.choice(["1E5", "2E3", "A12"], n),
            "pay": [f"{v:,.1f}" if v > 90 else "?" for v in rng.uniform(0, 4000, n)],
            "size": rng.integers(1, 99, n).astype(str),
            "name": [f"name {k}" for k in range(n)],
        }
    )
    y = (frame.code == "01") * 2.0 + (frame.back == "True") + (frame["size"].astype(int) > 50)
    folder = tmp_path_factory.mktemp("mixed")
    path = file_of(folder, text_of(frame.assign(y=y)))
    table = read_table(path)
    X = table.without(["y"]).rows()
    model = ProxyTreeRegressor(max_leaves=12, size=12).fit(X, table.columns["y"])
    return frame, folder, load_rules(model.to_json()), model


def predictions(model, path):
    names = model.columns.names
    table = read_table(path, schema=schema_of_model(model), needed=names)
    return model.predict(table.rows(names))


@given(st.data())
@examples(60)
def test_predictions_do_not_depend_on_the_other_rows(mixed, data):
    frame, folder, model, _ = mixed
    rows = data.draw(st.lists(st.integers(0, len(frame) - 1), min_size=1, max_size=25))
    order = data.draw(st.permutations(list(frame)))
    all_ = predictions(model, file_of(folder, text_of(frame), "all.csv"))
    few = predictions(model, file_of(folder, text_of(frame.iloc[rows][order]), "few.csv"))
    assert np.array_equal(few, all_[rows])


@pytest.mark.parametrize("n_files", [case(20), case(900, quick=False)])
def test_predictions_of_parts_of_a_file_are_those_of_the_whole(mixed, n_files):
    frame, folder, model, _ = mixed
    expected = predictions(model, file_of(folder, text_of(frame), "all.csv"))
    rng = np.random.default_rng(0)
    n_compared = 0
    for _ in range(n_files):
        kept = np.isin(frame.code, rng.choice(["01", "02", "03", "1A"], 3))  # others are absent
        rows = rng.permutation(
            np.flatnonzero(kept & (rng.random(len(frame)) < rng.uniform(0.1, 2)))
        )
        if not len(rows):
            continue
        part = frame.iloc[rows][rng.permutation(frame.columns)]
        predicted = predictions(model, file_of(folder, text_of(part), "part.csv"))
        assert np.array_equal(predicted, expected[rows])
        n_compared += len(rows)
    assert n_compared > 100 * n_files


def test_the_schema_is_stored_and_used_by_the_estimator(mixed):
    frame, _, stored, model = mixed
    assert stored.columns.schema == model.columns_.schema
    assert np.array_equal(model.predict(frame), stored.predict(frame.iloc[:, ::-1]))


def test_a_later_text_among_numbers_is_rejected(mixed):
    frame, folder, model, _ = mixed
    path = file_of(folder, text_of(frame.assign(size="much")), "late.csv")
    with pytest.raises(
        CommandError, match="late.csv': column 'size' must hold numbers, got 'much'"
    ):
        predictions(model, path)


@pytest.fixture(scope="module")
def stated():
    """A frame of texts and codes, its target, and the schema of its columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(0, 90, 300).astype(str), "zip": rng.integers(1, 4, 300)})
    X.loc[::9, "age"] = "?"
    X.loc[:99, "zip"] = np.minimum(X.zip[:100], 2)  # the first chunk lacks a label
    y = np.where(X.zip == 2, 5.0, 1.0) + rng.normal(0, 0.1, 300)
    return X, y, {"age": "number", "zip": "label"}


def test_chunks_are_read_by_a_schema(stated):
    X, y, schema = stated
    chunks = [(X[i : i + 100], y[i : i + 100]) for i in (0, 100, 200)]
    model = PiecewiseLinearRegressor(random_state=0)
    expected = model.fit(X, y, schema=schema).predict(X)
    assert np.array_equal(model.fit_chunks(chunks, schema=schema).predict(X), expected)
    assert model.columns_.categories[0] is None and set(model.columns_.categories[1]) == {1, 2, 3}
    added = MetaTreeRegressor(random_state=0).partial_fit(*chunks[1], schema=schema)
    added.partial_fit(*chunks[2])
    assert added.columns_.schema.columns["age"].missing == ("?",)


def test_explanations_and_reports_use_a_schema(stated):
    X, y, schema = stated
    model = ProxyTreeRegressor(random_state=0).fit(X, y, schema=schema)
    found = explain(model, X, y, schema=schema, random_state=0)
    assert found.fidelity_on(X) > 0.9 and "zip is 2" in str(found)
    assert "zip is 2" in report(model, X, y)
