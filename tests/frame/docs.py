"""Build the site as plain HTML and fail on what a reader would stumble over.

Notebooks and the API go through pandoc (MathML) into the frame of `site/`, so the check needs no
quarto. It reports what only the built site shows: formulas that do not parse, brackets that a browser draws
too low, dead links, places that a page names twice, pages and public names without a link. `--out FOLDER`
keeps the pages.
"""

import posixpath
import shutil
import sys
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.serve import chromium  # noqa: E402

from frame import NBS, ROOT, api, contents, pages, search, settings  # noqa: E402
from frame.layout import SCRIPT, STYLE, Site, plain  # noqa: E402
from frame.sources import from_markdown, from_notebook  # noqa: E402


class Page(HTMLParser):
    """The links of a page, what it loads, and the places in it that a link may point to."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.loaded = []
        self.places = set()
        self.ids = Counter()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[key] for key in ("href", "src") if attrs.get(key)]
        self.loaded += [attrs[key] for key in ("href", "src") if attrs.get(key) and tag != "a"]
        self.places |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self.ids.update([attrs["id"]] if attrs.get("id") else [])


def build(out):
    """Write the site into `out`; return the problems found."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.rglob("*.html"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        public = api.write(Path(folder))
        generated = [
            from_markdown(path, Path(folder)) for path in sorted(Path(folder).rglob("*.md"))
        ]
    notebooks = [from_notebook(path, NBS) for path in pages()]
    sources = {source.name: source for source in [*notebooks, *generated]}
    site = Site(sources, contents(), public, settings()["title"], repository())
    for file in (STYLE, SCRIPT):
        shutil.copy(file, out)
    built = {}
    texts = {}
    problems = []
    for source in sources.values():
        text, complaints = site.write(source, out)
        built[source.page] = Page(text)
        texts[source.page] = text
        problems += [f"{source.name}: {line}" for line in complaints]
    titles = {source.page: plain(source.title) for source in sources.values()}
    (out / "search.js").write_text(search.index(titles, texts, public), encoding="utf-8")
    problems += link_problems(built, out) + outside_problems(built) + double_places(built)
    return problems + lost_pages(built) + lost_names(built, public)


def repository():
    """Return where links to files of the repository begin."""
    cfg = settings()
    return f"{cfg['git_url']}/blob/{cfg['branch']}"


def lost_pages(built):
    """Name the pages that no way of links leads to from the first."""
    found = set()
    new = {"index.html"}
    while new:
        found |= new
        new = {target for name in new for target in local_targets(name, built[name])}
        new = (new & built.keys()) - found
    return [f"{name}: no link leads to it" for name in sorted(built.keys() - found)]


def outside_problems(built):
    """Name what pages load from elsewhere: the site needs nothing but itself."""
    return [
        f"{name}: loads {link}"
        for name, page in built.items()
        for link in page.loaded
        if urlsplit(link).netloc
    ]


def double_places(built):
    """Name the places that two elements of a page claim."""
    return [
        f"{name}: {count} elements are #{place}"
        for name, page in built.items()
        for place, count in page.ids.items()
        if count > 1
    ]


def local_targets(name, page):
    """Return the files of the site that a page links to."""
    parts = [urlsplit(link) for link in page.links]
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(part.path)))
        for part in parts
        if part.path and not part.scheme and not part.netloc
    }


def lost_names(built, public):
    """Name the public names without a place in the API.

    public: the page that holds each, by name.
    """
    from frame.names import PUBLIC

    return [
        f"{name}: the API does not have it"
        for name in PUBLIC
        if name not in public or name.lower() not in built[public[name]].places
    ]


def link_problems(built, out):
    """Follow every link that stays on the site, or points into the repository."""
    cfg = settings()
    problems = []
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    source = f"{repository()}/"
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
            base = "" if local != link else posixpath.dirname(name)
            path = posixpath.join(base, unquote(parts.path))
            target = posixpath.normpath(path) if parts.path else name
            place = unquote(parts.fragment)
            missing = target not in built and not (out / target).is_file()
            if missing or (place and target in built and place not in built[target].places):
                problems.append(f"{name}: dead link {link}")
    return problems


# Brackets of \\big and \\Big: those that pandoc makes as high as each other, as they are drawn
HEIGHTS = """[...document.querySelectorAll("mo[minsize]")].map(bracket => [
    bracket.closest("math").textContent.trim(),
    bracket.getAttribute("minsize"),
    bracket.getBoundingClientRect().height / parseFloat(getComputedStyle(bracket).fontSize),
])"""


def bracket_problems(out):
    """Name the formulas in which a browser draws a bracket lower than it was set."""
    problems = []
    with chromium() as browser:
        page = browser.new_page()
        for path in sorted(out.rglob("*.html")):
            if "minsize=" not in path.read_text(encoding="utf-8"):
                continue
            page.goto(path.as_uri())
            name = path.relative_to(out).as_posix()
            problems += [
                f"{name}: a bracket is {height:.2f} em high, not {least}: {formula}"
                for formula, least, height in page.evaluate(HEIGHTS)
                if height < 0.95 * float(least.removesuffix("em"))
            ]
    return problems


def main(arguments):
    """Check; keep the pages if asked."""
    if not shutil.which("pandoc"):
        sys.exit("the docs check needs pandoc (apt-get install pandoc)")
    if not shutil.which("chromium"):
        sys.exit("the docs check needs chromium (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(arguments[1]).resolve() if arguments[:1] == ["--out"] else Path(folder)
        problems = build(out) + bracket_problems(out)
        n_pages = sum(not path.parent.name.endswith("_files") for path in out.rglob("*.html"))
        print(*(problems or [f"{n_pages} pages, no problems"]), sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
