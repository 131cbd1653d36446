"""A file of measurements, one JSON line each: a run that was killed goes on where it stopped."""

import json
import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np


def version_of(package):
    """The version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def stamp(*packages):
    """When, where and with what a line was measured."""
    return {"date": date.today().isoformat(), "python": platform.python_version(), "machine": platform.machine(),
            "cores": os.cpu_count(), "numpy": np.__version__, "sklearn": version("scikit-learn"),
            **{name: version_of(name) for name in packages}, "load": round(os.getloadavg()[0], 1)}


def read_lines(out):
    """The lines of the file so far."""
    return [json.loads(line) for line in Path(out).read_text().splitlines()] if Path(out).exists() else []


def measure(out, jobs, *packages):
    """Call what is not yet in the file: `jobs` yields pairs of a key and a call that returns a dict."""
    out.parent.mkdir(exist_ok=True)
    done = {json.dumps(line["key"], sort_keys=True) for line in read_lines(out)}
    for key, call in jobs:
        if json.dumps(key, sort_keys=True) in done:
            continue
        line = {"key": key} | call() | stamp(*packages)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(key, flush=True)
