"""Checks of single pages: format of the notebook, outputs, links, imports; and of the sidebar and the gallery."""

import ast
import re
import sys
from collections import Counter

import yaml

from frame import (
    NBS,
    ROOT,
    Problem,
    code,
    exports_to,
    nodes,
    notebooks,
    page_stem,
    pages,
    parse,
    problem,
    prose,
    read_cells,
    read_metadata,
    settings,
    sidebar,
)

GUIDE = NBS / "guide"
GALLERY = GUIDE / "02_gallery.ipynb"
VIEWS = "explain explain_local explain_row nearest_change disagreement explore report".split()
IMPORTS = ast.Import | ast.ImportFrom
# Modules of a requirement of settings.ini, where the names differ
MODULES_OF = {
    "scikit-learn": {"sklearn", "joblib", "threadpoolctl"},
    "ipywidgets": {"ipywidgets", "IPython"},
    "xgboost-cpu": {"xgboost"},
}
HEADING = re.compile(r"^#{1,6} +(.+?)(?: *\{#([\w.-]+)[^}]*\})?$", re.M)
FORMULA_OR_CODE = re.compile(r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", re.S)
LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


# Format


def cell_ids(path):
    """Yield cells whose id is not in lower case, or not unique."""
    ids = Counter(cell.id for cell in read_cells(path))
    for name, count in ids.items():
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
            remedy = "use lower case, digits and hyphens"
            yield problem(path, "the id is not in lower case", remedy, name)
        if count > 1:
            yield problem(path, f"{count} cells have this id", "give each its own", name)


def first_cell(path):
    """Yield a problem if a page does not begin with a cell of its title and its claim alone."""
    first = read_cells(path)[0]
    if not first.is_prose or not re.fullmatch(r"# .+\n+> .+(\n+- .+)*\n*", first.source):
        message = "the first cell is not `# Title` and `> claim`"
        yield problem(path, message, "move the rest to the next cell: nbdev drops it", first.id)


def stored_outputs(path):
    """Yield stored errors and states of widgets."""
    remedy = "run `make run NB=` with this page"
    if "widgets" in read_metadata(path):
        yield problem(path, "stores the states of widgets", "run `make export`")
    for cell in code(path):
        if any(output["output_type"] == "error" for output in cell.outputs):
            yield problem(path, "stores an error", remedy, cell.id)
        if any("widget" in kind for output in cell.outputs for kind in output.get("data", {})):
            yield problem(path, "stores the view of a widget", "run `make export`", cell.id)


def forbidden_statements(path):
    """Yield `import *` and `@patch`."""
    for cell in code(path):
        match = re.search(r"^\s*(from \S+ import \*|@patch\b)", cell.source, re.M)
        if match:
            yield problem(path, f"has `{match[1]}`", "import by name, define in a class", cell.id)


def import_cells(path):
    """Yield exported cells that mix imports with other statements."""
    for cell in code(path):
        if cell.is_exported:
            kinds = {isinstance(node, IMPORTS) for node in parse(cell.source).body}
            if len(kinds) > 1:
                remedy = "move the imports to an exported cell of their own"
                yield problem(path, "an exported cell imports and defines", remedy, cell.id)


def share_of_prose(path):
    """Yield a problem if a page has more exported cells than cells of prose."""
    n_exported = sum(cell.is_exported for cell in read_cells(path))
    if n_exported > len(prose(path)):
        message = f"{n_exported} exported cells, {len(prose(path))} cells of prose"
        yield problem(path, message, "merge exported cells or describe each step")


def page_name(path):
    """Yield a problem if the name of a page lacks its digits or differs from its module's."""
    chapter = path.relative_to(NBS).parent
    if chapter.name and not re.match(r"\d\d_", path.stem):
        yield problem(path, "the name has no digits", "begin it with two that order the chapter")
    module = exports_to(path)
    expected = ".".join([*chapter.parts, page_stem(path)])
    if module and module != expected:
        yield problem(path, f"default_exp is {module}", f"call it {expected}")


def unique_page_names():
    """Yield names that two pages share."""
    for name, count in Counter(page_stem(path) for path in notebooks()).items():
        if count > 1:
            yield Problem("nbs", f"{count} pages are called {name}", "rename one")


# Links


def mentions_of_pages(path):
    """Yield names of notebooks in code type that are no links."""
    stems = [re.escape(page.stem) for page in pages() if re.match(r"\d\d_", page.stem)]
    mention = re.compile(rf"(?<!\[)`(?:[a-z]+/)?(?:{'|'.join(stems)})`(?!\]\()")
    for cell in prose(path):
        for name in mention.findall(cell.source):
            if path.stem not in name:
                yield problem(path, f"{name} is no link", "link the page", cell.id)


def unlinked_subjects(text):
    """Return the subjects in *the page on* or *of* a subject that have no link, up to the next mark."""
    named = re.compile(r"\b[Tt]he pages?\s+(?:on|of)\s+([^.,;:()\[\]]*)([\[\]]?)")
    general = re.compile(r"(this|its|all|a|an|the paper)\b")  # of this chapter, of a library
    return [
        " ".join(subject.split())
        for subject, bracket in named.findall(text)
        if not bracket and not general.match(subject)
    ]


def mentions_of_subjects(path):
    """Yield pages that prose names by their subject without a link."""
    for cell in prose(path):
        for subject in unlinked_subjects(cell.source):
            yield problem(path, f"the page on {subject!r} is no link", "link the page", cell.id)


def places(path):
    """Return the places of a page that a link may lead to: headings, anchors, exported names."""
    text = "\n".join(cell.source for cell in prose(path))
    named = {given or slug(title) for title, given in HEADING.findall(text)}
    named |= set(re.findall(r'\bid="([^"]+)"', text)) | set(re.findall(r"\{#([\w.-]+)", text))
    exported = "\n".join(cell.source for cell in code(path) if cell.is_exported)
    return named | {name.lower() for name in re.findall(r"^(?:class|def) (\w+)", exported, re.M)}


def slug(title):
    """Return the place of a heading, as pandoc names it."""
    text = re.sub(r"\]\([^)]*\)", "", title.lower())
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s.-]", "", text)).lstrip("0123456789-_.")


def dead_links(path):
    """Yield links of the prose to files or places that do not exist; those of the API are checked on the site."""
    for cell in prose(path):
        for link in LINK.findall(FORMULA_OR_CODE.sub("", cell.source)):
            file, _, place = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if target.is_relative_to(NBS / "api"):
                continue
            is_lost = place and target.suffix == ".ipynb" and target.exists()
            if not target.exists() or (is_lost and place not in places(target)):
                yield problem(path, f"dead link {link}", "correct it", cell.id)


def undefined_references(path):
    """Yield @eq- and @fig- references without a definition on their page."""
    text = re.sub(r"`[^`]*`", "", "\n".join(cell.source for cell in prose(path)))
    labels = "\n".join(cell.source for cell in code(path))
    defined = set(re.findall(r"#((?:eq|fig|tbl)-[\w-]+)", text))
    defined |= set(re.findall(r"^#\| *label: *(\S+)", labels, re.M))
    for name in sorted(set(re.findall(r"@((?:eq|fig|tbl)-[\w-]*\w)", text)) - defined):
        yield problem(path, f"@{name} is not defined", "define it or correct its name")


def sidebar_pages():
    """Yield pages that the sidebar lacks, and entries without a page."""
    from frame import api

    listed = {page for _, section in sidebar() for page in section}
    written = {path.relative_to(NBS).as_posix() for path in pages()}
    written |= {f"api/{name}.md" for name in ("names", *api.CHAPTERS)}
    for name in sorted(written - listed):
        yield Problem("_quarto.yml", f"the sidebar lacks {name}", "list it")
    for name in sorted(listed - written):
        yield Problem("_quarto.yml", f"{name} does not exist", "remove it from the sidebar")


def site_settings():
    """Yield settings of the site that differ from those of settings.ini."""
    site = yaml.safe_load((NBS / "_quarto.yml").read_text())["website"]
    own = settings()
    expected = {
        "title": own["title"],
        "site-url": own["doc_host"] + own["doc_baseurl"],
        "repo-url": own["git_url"],
    }
    for key, value in expected.items():
        if site[key] != value:
            message = f"{key} is {site[key]}, in settings.ini it is {value}"
            yield Problem("_quarto.yml", message, "make them equal")


def script_of_the_api():
    """Yield a problem if Quarto does not run the script that writes the API."""
    script = ROOT / "tests" / "frame" / "api.py"
    project = yaml.safe_load((NBS / "_quarto.yml").read_text())["project"]
    if (NBS / project["pre-render"]).resolve() != script:
        yield Problem(
            "_quarto.yml", f"pre-render is {project['pre-render']}", f"name {script.name}"
        )


# Code of pages


def packages_of(*extras):
    """Return the modules that the package and some of its extras install."""
    keys = ["requirements", *(f"{extra}_requirements" for extra in extras)]
    names = [re.match(r"[\w-]+", word)[0] for key in keys for word in settings()[key].split()]
    return {"fabinterp"}.union(*(MODULES_OF.get(name, {name}) for name in names))


def page_imports(path):
    """Yield imports, outside exported cells, of packages that the extra `pages` does not install."""
    allowed = packages_of("pages") | sys.stdlib_module_names
    for cell in code(path):
        if "#| export" in cell.source:
            continue
        for node in nodes(cell.source):
            for name in top_packages(node):
                if name not in allowed:
                    remedy = "add it to pages_requirements of settings.ini"
                    yield problem(path, f"imports {name}", remedy, cell.id)


def top_packages(node):
    """Return the packages that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module.split(".")[0]]
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    return []


def named_files(path):
    """Yield relative paths in code that do not lead to a file below nbs."""
    for cell in code(path):
        for node in nodes(cell.source):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if re.fullmatch(r"\.\.?/\S*", node.value):
                place = (path.parent / node.value).resolve()
                if not (place.exists() and place.is_relative_to(NBS)):
                    remedy = "name a file below nbs"
                    yield problem(path, f"{node.value} is no file below nbs", remedy, cell.id)


# How-tos and the gallery


def how_tos():
    """Return the how-to pages in the order of the sidebar."""
    listed = [page for _, section in sidebar() for page in section]
    return [NBS / page for page in listed if re.match(r"guide/(?!00|01|02|2\d)\d\d_", page)]


def plain_how_tos():
    """Yield how-tos that are long, check nothing, or use more than public names."""
    for path in how_tos():
        text = "\n".join(cell.source for cell in code(path))
        if len(read_cells(path)) > 15:
            yield problem(path, f"a how-to of {len(read_cells(path))} cells", "at most 15")
        if "assert " not in text:
            yield problem(path, "a how-to without an assert", "check its result")
        for name in re.findall(r"^ *(?:from|import) (fabinterp\.\S+|urllib|requests)", text, re.M):
            yield problem(path, f"a how-to imports {name}", "import public names only")


def how_tos_in_the_readme():
    """Yield how-tos without a link in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in [GALLERY, *how_tos()]:
        if f"(nbs/guide/{path.name})" not in text:
            yield problem(path, "the README has no link to it", "add one in nbs/index.ipynb")


def called(source):
    """Return the names of the functions that a cell calls."""
    return {ast.unparse(node.func) for node in nodes(source) if isinstance(node, ast.Call)}


def gallery():
    """Yield plots and views that the gallery does not show, each by at most ten lines."""
    from frame.names import PUBLIC

    plots = [name for name in PUBLIC if name.startswith("plot.")]
    kinds = dict.fromkeys(plots, "image/png") | dict.fromkeys(VIEWS, "text/html")
    for name, kind in kinds.items():
        cells = [cell for cell in code(GALLERY) if name in called(cell.source)]
        outputs = [output for cell in cells for output in cell.outputs]
        if not any(kind in output.get("data", {}) for output in outputs):
            yield problem(GALLERY, f"does not show {name}", "add a cell")
        if name in plots and len(cells) > 1:
            yield problem(GALLERY, f"{len(cells)} cells show {name}", "keep one")
        for cell in cells:
            if len(cell.source.splitlines()) > 10:
                yield problem(GALLERY, "a cell of more than ten lines", "shorten it", cell.id)


def headings_of_the_gallery():
    """Yield headings that the list at the head of the gallery lacks, or has more than once."""
    text = "\n".join(cell.source for cell in read_cells(GALLERY))
    listed = Counter(re.findall(r"\]\(#([\w-]+)\)", text))
    titles = re.findall(r"^## (.+)$", text, re.M)
    anchors = {re.sub(r"[^\w]+", "-", title.lower()).strip("-") for title in titles}
    for name in sorted(anchors | listed.keys()):
        if name not in anchors or listed[name] != 1:
            message = f"the list of headings has #{name} {listed[name]} times"
            yield problem(GALLERY, message, "list each heading once")


PAGE_CHECKS = [
    cell_ids,
    first_cell,
    stored_outputs,
    forbidden_statements,
    import_cells,
    share_of_prose,
    page_name,
    mentions_of_pages,
    mentions_of_subjects,
    dead_links,
    undefined_references,
    page_imports,
    named_files,
]
CHECKS = [
    unique_page_names,
    sidebar_pages,
    site_settings,
    script_of_the_api,
    plain_how_tos,
    how_tos_in_the_readme,
    gallery,
    headings_of_the_gallery,
]
