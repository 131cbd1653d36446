"""Write the API: a page of Markdown per chapter with every public name, from docstrings and examples that run.

Quarto runs it before it renders (`pre-render` of _quarto.yml) and finds the pages beside the notebooks; the
plain build calls `write`. A name's page is that of the chapter that defines it, so that a new public name
is there without being listed.
"""

import contextlib
import doctest
import inspect
import io
import json
import os
import re
import sys
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
os.environ.setdefault("MPLBACKEND", "agg")

from frame import NBS, notebooks, page_stem  # noqa: E402
from frame.names import ELSEWHERE, PUBLIC, elsewhere, public  # noqa: E402
from frame.sources import fenced  # noqa: E402

# The page of each chapter that has public names: its title and claim
CHAPTERS = {
    "front": (
        "Explain, report, explore",
        "What takes any model, and gives back something to read.",
    ),
    "models": ("Rules and equations", "Estimators that are what they print."),
    "fab": ("Searches", "Options of the algorithms that fit rules and equations."),
    "metatree": (
        "Averages over prunings",
        "A tree with all its prunings, each by its probability.",
    ),
    "blackbox": ("Black-box models", "Models that are queried, and the limits of the queries."),
    "proxy": ("Proxies", "The tree or the equation closest to a model that is already there."),
    "forests": ("Trained ensembles", "Trees of other libraries, read exactly."),
    "rows": ("Installation", "What is installed."),
    "rules": ("Rules and trees", "What every method ends in, and what can be done with it."),
    "show": ("Pictures", "Rules, trees and single rows, drawn."),
}
MADE = re.compile(r"the result of `\w+`")  # how the docstring of such a record begins
HEADINGS = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)


def write(root):
    """Write the pages into `api/` below a folder; return the page on the site of every public name."""
    folder = root / "api"
    folder.mkdir(parents=True, exist_ok=True)
    places = {name: f"api/{chapter_of(name)}.html" for name in PUBLIC}
    for chapter, (title, claim) in CHAPTERS.items():
        names = names_of(chapter)
        entries = [entry(name, folder) for name in names]
        text = front(title, claim) + "\n\n".join([table_of(names, chapter), *entries])
        (folder / f"{chapter}.md").write_text(text + "\n", encoding="utf-8")
    (folder / "names.md").write_text(overview(), encoding="utf-8")
    return places


def chapter_of(name):
    """Return the chapter whose page holds a public name."""
    if name.startswith("plot."):
        return "show"
    chapter, _, inner = PUBLIC[name].partition(".")
    return chapter if inner else "front"


def names_of(chapter):
    """Return the public names of a chapter: what one calls, then the records that calls return."""
    return sorted(
        (name for name in PUBLIC if chapter_of(name) == chapter),
        key=lambda name: (is_dataclass(public(name)), *place_of(name)),
    )


def place_of(name):
    """Return where a name is defined: the place of its page in the order of reading, and its line there."""
    order = list(pages_of_modules())
    return order.index(PUBLIC[name]), inspect.getsourcelines(public(name))[1]


@cache
def pages_of_modules():
    """Return the notebook of each module by its name, as `models.piecewise`, in the order of reading."""
    return {
        ".".join([*path.relative_to(NBS).parent.parts, page_stem(path)]): path
        for path in notebooks()
    }


def front(title, claim):
    """Return the front matter of a page, as Quarto reads it."""
    return f'---\ntitle: "{title}"\ndescription: "{claim}"\n---\n\n'


def overview():
    """Return the page that lists all names, each with the first line of its docstring."""
    text = front("All names", "Every public name of the package, in a line each.")
    text += "`from fabinterp import …` imports them; `help(…)` prints their documentation.\n"
    for chapter, (title, _) in CHAPTERS.items():
        text += f"\n## {title}\n\n{table_of(names_of(chapter), chapter)}"
    text += "\n## Elsewhere\n\n| name | what it is |\n|---|---|\n"
    for name in ELSEWHERE:
        module = name.rpartition(".")[0]
        text += name_line(f"fabinterp.{name}", elsewhere(name), way_to(module))
    return text + "\nAt the shell there is [the command `fabinterp`](../cli.ipynb).\n"


def table_of(names, chapter):
    """Return the table of a chapter's names."""
    lines = [name_line(name, public(name), f"{chapter}.md") for name in names]
    return "| name | what it is |\n|---|---|\n" + "".join(lines)


def name_line(name, thing, page):
    """Return a line of the table of names: the name, linked, and how its docstring begins."""
    line = inspect.getdoc(thing).splitlines()[0]
    anchor = name if name in PUBLIC else thing.__name__
    return f"| [`{name}`]({page}#{anchor.lower()}) | {prose(line)} |\n"


def way_to(module):
    """Return the link from a page of the API to the notebook of a module."""
    return f"../{pages_of_modules()[module].relative_to(NBS).as_posix()}"


def entry(name, folder):
    """Return what the API says of a name: docstring, example, call and parameters, methods, its page.

    A record that a function makes is not called: its fields come last, folded.
    """
    thing = public(name)
    about, parts = sections(thing)
    fields = signature(name, thing)
    if "Parameters" in parts:
        fields += f"\n\n{section('Parameters', parts['Parameters'])}"
    is_made = MADE.search(about.splitlines()[0])
    blocks = [f"## {name} {{#{name.lower()}}}", prose(about)]
    blocks += ["### Example", *example(name, parts["Examples"], folder)]
    if not is_made:
        blocks.append(f"### Parameters\n\n{fields}")
    for heading in ("Attributes", "Returns", "Raises", "Notes", "References"):
        if heading in parts:
            blocks.append(f"### {heading}\n\n{section(heading, parts[heading])}")
    if inspect.isclass(thing):
        blocks += methods(name, thing)
    if is_made:
        blocks.append(
            f'<details class="code"><summary>Its fields</summary>\n\n{fields}\n\n</details>'
        )
    module = PUBLIC[name]
    title = page_title(pages_of_modules()[module])
    blocks.append(f"Derived, with its code: [{title}]({way_to(module)}#{thing.__name__.lower()}).")
    return "\n\n".join(block for block in blocks if block)


def page_title(path):
    """Return the title of a notebook."""
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
    return first[0].removeprefix("# ").strip()


def sections(thing):
    """Return a docstring's beginning, and its numpydoc sections by heading."""
    about, *rest = HEADINGS.split(inspect.getdoc(thing) or "")
    return about.strip(), dict(zip(rest[::2], map(str.strip, rest[1::2]), strict=True))


def signature(name, thing, is_method=False):
    """Return the call as code, in a line if it fits; types are left to the words on the parameters.

    is_method: whether the first parameter is the object itself.
    """
    found = list(inspect.signature(thing).parameters.values())[is_method:]
    parameters = [each.replace(annotation=each.empty) for each in found]
    line = f"{name}{inspect.Signature(parameters)}"
    if len(line) <= 80:
        return fenced(line, "python")
    words = list(map(str, parameters))
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    lines = "".join(f"    {word},\n" for word in words)
    return fenced(f"{name}(\n{lines})", "python")


def section(heading, text):
    """Return a section as Markdown: a list of terms where it describes names, else prose."""
    if heading in ("Notes", "References"):
        return prose(text)
    terms = re.findall(r"^(\S.*)\n((?:(?: .*)?\n?)*)", text, re.M)
    return "\n\n".join(term(head, inspect.cleandoc(body)) for head, body in terms)


def term(head, body):
    """Return a term of a definition list: names in code type, what they are, what is said of them."""
    names, colon, kind = head.partition(" : ")
    shown = ", ".join(f"`{name.strip()}`" for name in names.split(","))
    typed = f" <small>{prose(kind)}</small>" if colon else ""
    indented = prose(body).replace("\n", "\n    ")
    return f"{shown}{typed}\n:   {indented}"


def prose(text):
    """Return words of a docstring as Markdown: what is not in backticks is meant as it stands."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r'([\\*_<>$\[\]#~^|@"])', r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def methods(name, thing):
    """Return what a class offers beside its attributes: ours in full, that of scikit-learn by name."""
    blocks = []
    inherited = []
    heads = re.findall(r"^\S.*", sections(thing)[1].get("Attributes", ""), re.M)
    described = {name.strip() for head in heads for name in head.partition(" : ")[0].split(",")}
    for member in sorted(set(dir(thing)) - described):
        value = inspect.getattr_static(thing, member)
        if member.startswith("_") or not is_offered(thing, member, value):
            continue
        owner = next(base for base in thing.__mro__ if member in vars(base))
        if owner.__module__.startswith("fabinterp") and not member.startswith("set_"):
            blocks.append(method(name, member, value, getattr(thing, member)))
        else:
            inherited.append(f"`{member}`")
    if inherited:
        blocks.append(f"From scikit-learn: {', '.join(inherited)}.")
    return ["### Methods", *blocks] if blocks else []


def is_offered(thing, member, value):
    """Say whether a class has a method or property, not a value; some depend on what is estimated."""
    if not (callable(getattr(thing, member)) or isinstance(value, property)):
        return False
    if not hasattr(value, "check"):
        return True
    needs_arguments = any(
        p.default is p.empty for p in inspect.signature(thing).parameters.values()
    )
    return needs_arguments or hasattr(thing(), member)


def method(name, member, value, found):
    """Return what is said of a method or property: its call, and its docstring.

    value: what the class holds; found: what it gives, for a class method without the class.
    """
    if isinstance(value, property):
        call = fenced(member, "python")
    else:
        call = signature(member, found, is_method=inspect.isfunction(found))
    about, parts = sections(found)
    inner = [f"**{heading}**\n\n{section(heading, text)}" for heading, text in parts.items()]
    place = f"{name}.{member}".lower()
    return "\n\n".join([f"::: {{#{place} .member}}", call, prose(about), *inner, ":::"])


def example(name, text, folder):
    """Run an example as its test does; return its code and what it printed or drew, as Markdown."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = Recorder(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with contextlib.redirect_stderr(io.StringIO()):
        runner.run(test, clear_globs=False)
    blocks = []
    code = ""
    for source, got in runner.steps:
        code += source
        if got:
            blocks += [fenced(code.strip("\n"), "python"), fenced(got.strip("\n"), "output")]
            code = ""
    return blocks + ([fenced(code.strip("\n"), "python")] if code else []) + drawn(name, folder)


class Recorder(doctest.DocTestRunner):
    """Keeps what each step of an example printed."""

    def __init__(self, **options):
        super().__init__(**options)
        self.steps = []

    def report_success(self, out, test, example, got):
        self.steps.append((example.source, got))

    def report_failure(self, out, test, example, got):
        raise AssertionError(f"the example of {test.name} printed {got!r}")

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


def drawn(name, folder):
    """Save the figures that are open and close them; return them as Markdown."""
    plt = sys.modules.get("matplotlib.pyplot")
    images = []
    for number in plt.get_fignums() if plt else []:
        image = f"{name}-{number}.png"
        plt.figure(number).savefig(folder / image, dpi=100, bbox_inches="tight")
        images.append(f"![what the example of {name} draws]({image})")
    if plt:
        plt.close("all")
    return images


if __name__ == "__main__":
    write(Path.cwd())
