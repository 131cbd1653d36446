"""What rules say in other languages: the exported Python function, and the query in a database."""

import math
import sqlite3

import numpy as np
import pandas as pd


def as_frame(said, X):
    """Return the rows as a frame with the names that the rules know."""
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=said.columns.names)


def by_python(said, X, **options):
    """Return what the exported Python function says of each row, None where it refuses a row."""
    scope = {}
    exec(said.to_python(name="answer", **options), scope)
    frame = as_frame(said, X)
    answers = []
    for values in frame.astype(object).itertuples(index=False):
        try:
            answers.append(scope["answer"](dict(zip(frame.columns, values, strict=True))))
        except ValueError:
            answers.append(None)
    return answers


def by_sql(said, X, table="t", **options):
    """Return what the exported query says of each row, and the names of its columns.

    An answer of one column is the value itself, of several a tuple.
    """
    frame = as_frame(said, X)
    base = sqlite3.connect(":memory:")
    base.create_function(
        "EXP", 1, lambda x: None if x is None else math.exp(x)
    )  # not in every build
    base.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(map(_quoted, frame.columns))})")
    rows = [
        [_plain(value) for value in row] for row in frame.astype(object).itertuples(index=False)
    ]
    base.executemany(
        f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * frame.shape[1])})", rows
    )
    found = base.execute(said.to_sql(table, **options))
    answers = [tuple(row) if len(row) > 1 else row[0] for row in found]
    return answers, [description[0] for description in found.description]


def _quoted(name):
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _plain(value):
    """Return a value as the database takes it."""
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
