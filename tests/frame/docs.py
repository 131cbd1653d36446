"""Build the pages as plain HTML and fail on what a reader would stumble over.

Each notebook goes through nbdev's own filters, nbconvert and pandoc (MathML), so the check needs no
quarto. It reports formulas that do not parse, dead links, stored errors, notebooks missing from the
sidebar, and references to figures or equations that nobody defines. `--out FOLDER` keeps the pages.
"""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

import nbformat  # noqa: E402
import yaml  # noqa: E402
from nbconvert import MarkdownExporter  # noqa: E402

from frame import ROOT, copy_tree, page_stem, pages, settings, sidebar  # noqa: E402

STYLE = """<style>
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.55 system-ui, sans-serif; color: #222 }
pre { background: #f6f6f4; padding: .7rem; overflow-x: auto; font-size: .85rem } img { max-width: 100% }
table { border-collapse: collapse } td, th { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: left }
</style>"""


class Page(HTMLParser):
    """The links of a page and the places in it that a link may point to."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.places = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[key] for key in ("href", "src") if attrs.get(key)]
        self.places |= {attrs[key] for key in ("id", "name") if attrs.get(key)}


def build(out):
    """Write one page per notebook into `out`; return the problems found."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.rglob("*.html"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder) / "tree")
        problems = sidebar_problems(tree) + stored_errors(tree)
        filtered = nbdev_filters(tree)
        paths = pages(filtered)
        names = {path.relative_to(filtered).as_posix(): page_name(path, filtered) for path in paths}
        built = {}
        for path in paths:
            name = path.relative_to(filtered).as_posix()
            text, found = render(path, out, names, name)
            built[names[name]] = Page(text)
            problems += found + reference_problems(path)
    return problems + clashing_names(built) + link_problems(built, out)


def clashing_names(built):
    """Name the pages of different folders that share a name: an anchor or a mention would be ambiguous."""
    stems = [Path(name).stem for name in built]
    return [
        f"{stem}.html: two pages bear this name"
        for stem in sorted(set(stems))
        if stems.count(stem) > 1
    ]


def nbdev_filters(tree):
    """Run nbdev's filters over the copy's notebooks; return the folder they end in."""
    code = "from nbdev.serve import proc_nbs; print(proc_nbs(force=True, n_workers=0))"
    env = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
    env["PYTHONPATH"] = str(tree)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=env, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"nbdev's filters failed:\n{done.stderr[-3000:]}")
    return tree / "_proc"


def read(path):
    """Read a notebook, or what nbdev's filters made of it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell.pop("has_sd", None)  # a note nbdev makes for itself, which nbformat does not know
    return nbformat.reads(json.dumps(notebook), 4)


def page_name(path, root):
    """Return the page a notebook becomes: nbdev names it after the module, in the front matter it writes."""
    front = read(path).cells[0].source
    match = re.search(r"^output-file: *(\S+)$", front, re.M)
    name = match[1] if match else f"{page_stem(path)}.html"
    return (path.parent.relative_to(root) / name).as_posix()


def render(path, out, names, name):
    """Turn a filtered notebook into HTML; return the text and what pandoc complained about.

    names: the page of every notebook; name: this notebook among them.
    """
    images = {"output_files_dir": f"{path.stem}_files"}
    notebook = read(path)
    for cell in notebook.cells:
        if re.search(r"^#\| *echo: *false", cell.source, re.M):
            cell.source = ""
    text, resources = MarkdownExporter().from_notebook_node(notebook, images)
    page = out / names[name]
    page.parent.mkdir(parents=True, exist_ok=True)
    for image, data in resources["outputs"].items():
        (page.parent / image).parent.mkdir(parents=True, exist_ok=True)
        (page.parent / image).write_bytes(data)
    text = re.sub(r"\\tag\{([^}]*)\}", r"\\qquad(\\text{\1})", text)  # pandoc drops \tag
    text = re.sub(
        r"\]\(((?!\w+:)[\w./-]+\.ipynb)",
        lambda match: f"]({page_link(match[1], name, names)}",
        text,
    )
    with tempfile.TemporaryDirectory() as folder:
        head = Path(folder) / "head.html"
        head.write_text(STYLE)
        done = subprocess.run(
            ["pandoc", "--from=markdown-citations-implicit_figures", "--to=html", "--mathml", "--standalone",
             f"--metadata=pagetitle:{path.stem}", f"--include-in-header={head}", f"--output={page}"],
            input=text, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{path.name}: pandoc failed: {done.stderr}")
    complaints = [f"{path.name}: {line}" for line in done.stderr.splitlines() if line.strip()]
    return page.read_text(encoding="utf-8"), complaints


def page_link(link, name, names):
    """Return where a link from one notebook to another leads on the pages; unknown targets stay as they are."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    if target not in names:
        return link
    return posixpath.relpath(names[target], posixpath.dirname(names[name]) or ".")


def sidebar_problems(tree):
    """Compare _quarto.yml with the notebooks and with settings.ini."""
    site = yaml.safe_load((tree / "nbs" / "_quarto.yml").read_text())["website"]
    listed = {page for _, section in sidebar(tree / "nbs") for page in section}
    present = {path.relative_to(tree / "nbs").as_posix() for path in pages(tree / "nbs")}
    problems = [
        f"_quarto.yml: {name} is missing from the sidebar" for name in sorted(present - listed)
    ]
    problems += [
        f"_quarto.yml: the sidebar lists {name}, which does not exist"
        for name in sorted(listed - present)
    ]
    cfg = settings()
    said = {
        "title": cfg["title"],
        "site-url": cfg["doc_host"] + cfg["doc_baseurl"],
        "repo-url": cfg["git_url"],
    }
    for key, value in said.items():
        if site[key] != value:
            problems.append(f"_quarto.yml: {key} is {site[key]}, settings.ini says {value}")
    return problems


def stored_errors(tree):
    """Name the cells whose stored output is an error."""
    return [
        f"{path.name}: cell {cell.id} stores an error"
        for path in pages(tree / "nbs")
        for cell in read(path).cells
        for out in cell.get("outputs", [])
        if out.output_type == "error"
    ]


def reference_problems(path):
    """Name the @eq- and @fig- references of a notebook that have no definition in it."""
    cells = read(path).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    prose = re.sub(r"`[^`]*`", "", prose)
    defined = set(re.findall(r"#((?:eq|fig|tbl)-[\w-]+)", prose)) | set(
        re.findall(r"^#\| *label: *(\S+)", code, re.M)
    )
    used = set(re.findall(r"@((?:eq|fig|tbl)-[\w-]*\w)", prose))
    return [f"{path.name}: @{name} is not defined" for name in sorted(used - defined)]


def link_problems(built, out):
    """Follow every link that stays on the site, or points into the repository."""
    cfg = settings()
    problems = []
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    source = f"{cfg['git_url']}/blob/{cfg['branch']}/"
    for name, page in built.items():
        for link in page.links:
            local = link.removeprefix(site)
            if local.startswith(source):
                if not (ROOT / urlsplit(local.removeprefix(source)).path).exists():
                    problems.append(f"{name}: dead link {link}")
                continue
            parts = urlsplit(local)
            if parts.scheme or parts.netloc:
                continue
            from_root = local != link  # as nbdev links, private names to no place
            base = "" if from_root else posixpath.dirname(name)
            path = posixpath.join(base, unquote(parts.path))
            target = posixpath.normpath(path) if parts.path else name
            place = "" if from_root else unquote(parts.fragment)
            missing = target not in built and not (out / target).is_file()
            if missing or (place and target in built and place not in built[target].places):
                problems.append(f"{name}: dead link {link}")
    return problems


def main(arguments):
    """Check; keep the pages if asked."""
    if not shutil.which("pandoc"):
        sys.exit("the docs check needs pandoc (apt-get install pandoc)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(arguments[1]).resolve() if arguments[:1] == ["--out"] else Path(folder)
        problems = build(out)
        print(*problems, sep="\n") if problems else print(
            f"{len(list(out.rglob('*.html')))} pages, no problems"
        )
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
