"""Three databases with the same few methods: SQLite, DuckDB, and PostgreSQL with a server of its own."""

import csv
import io
import math
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

ARROW_TYPES = {
    "INTEGER": ("int32",),
    "BIGINT": ("int64",),
    "DECIMAL(12,2)": ("decimal128", 12, 2),
    "REAL": ("float32",),
    "DOUBLE PRECISION": ("float64",),
    "BOOLEAN": ("bool_",),
    "TEXT": ("string",),
}


def new_table(name, types):
    """The two statements that create a table; types: SQL type by column."""
    columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    return f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})"


class Sqlite:
    """SQLite in memory, with EXP where the build lacks it."""

    name = "sqlite"

    def __init__(self):
        self.base = sqlite3.connect(":memory:")
        self.base.create_function("EXP", 1, lambda x: None if x is None else math.exp(x))

    def load(self, name, types, columns):
        """Create a table of columns: name to values, None for NULL."""
        for statement in new_table(name, types):
            self.base.execute(statement)
        rows = zip(*columns.values(), strict=True)
        plain = ([float(v) if isinstance(v, Decimal) else v for v in row] for row in rows)
        self.base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(types))})", plain)

    def rows(self, query):
        """The rows of a query."""
        return self.base.execute(query).fetchall()


class DuckDb:
    """DuckDB in memory."""

    name = "duckdb"

    def __init__(self):
        self.base = pytest.importorskip("duckdb").connect()

    def load(self, name, types, columns):
        """Create a table of columns: name to values, None for NULL."""
        for statement in new_table(name, types):
            self.base.execute(statement)
        import pyarrow as pa

        arrays = {}
        for column, (kind, *digits) in ((c, ARROW_TYPES[kind]) for c, kind in types.items()):
            arrays[column] = pa.array(columns[column], getattr(pa, kind)(*digits))
        self.base.register("loaded", pa.table(arrays))
        self.base.execute(f"INSERT INTO {name} SELECT * FROM loaded")

    def rows(self, query):
        """The rows of a query."""
        return self.base.execute(query).fetchall()


class Postgres:
    """PostgreSQL through psql; values are returned as text, NULL as None."""

    name = "postgres"

    def __init__(self, socket):
        self.command = ["psql", "-h", socket, "-U", "tester", "-d", "postgres", "-X", "-q"]
        self.command += ["-v", "ON_ERROR_STOP=1"]

    def run(self, text):
        """What psql prints for a script."""
        done = subprocess.run(self.command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout

    def load(self, name, types, columns):
        """Create a table of columns: name to values, None for NULL."""
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(zip(*columns.values(), strict=True))
        copy = f"COPY {name} FROM STDIN (FORMAT csv)"
        self.run(";\n".join([*new_table(name, types), copy]) + f";\n{lines.getvalue()}\\.\n")

    def rows(self, query):
        """The rows of a query."""
        text = self.run(f"COPY ({query}) TO STDOUT (FORMAT csv);\n")
        return [[v or None for v in row] for row in csv.reader(io.StringIO(text))]


def postgres_programs():
    """The folder of PostgreSQL's programs, or None; Debian has them in lib, beside bin."""
    on_path = Path(shutil.which("initdb") or shutil.which("psql") or ".")
    beside = on_path.parents[1].glob("lib/postgresql/*/bin") if on_path.name == "psql" else []
    folders = [on_path.parent, *sorted(beside, reverse=True)]
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def postgres_server():
    """The socket folder of a server whose data is in a temporary folder."""
    programs = postgres_programs()
    if programs is None or not shutil.which("psql"):
        reason = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
        (pytest.fail if "CI" in os.environ else pytest.skip)(reason)
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = {}
    if os.getuid() == 0:  # the server refuses to run as root
        user = {"user": "nobody", "group": "nogroup"}
        shutil.chown(folder, *user.values())
    quiet = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL, **user}
    data = str(folder / "data")
    control = [programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log"]
    try:
        subprocess.run([programs / "initdb", "-D", data, "-U", "tester", "-A", "trust",
                        "-E", "UTF8", "--locale=C", "--no-sync"], **quiet)  # fmt: skip
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c jit=off"
        subprocess.run([*control, "-o", options, "start"], **quiet)
        yield str(folder)
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **{**quiet, "check": False})
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_socket():
    """The socket folder of a server for all tests of a process."""
    with postgres_server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def database(request):
    """One of the three databases."""
    if request.param == "postgres":
        return Postgres(request.getfixturevalue("postgres_socket"))
    return {"sqlite": Sqlite, "duckdb": DuckDb}[request.param]()
