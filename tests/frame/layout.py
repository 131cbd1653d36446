"""The site's frame around a page: sidebar, previous and next, contents; links between the pages."""

import html
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from string import Template

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from fabinterp.rules.html_format import keep_thousands
from frame import ROOT, chapters, listed
from frame.equations import citation
from frame.search import with_places
from frame.sources import new_target, way

HERE = Path(__file__).parent / "site"
STYLE = HERE / "style.css"
SCRIPT = HERE / "site.js"
PAGE = Template((HERE / "page.html").read_text(encoding="utf-8"))
BODY = "<!-- body -->"
TOKEN = re.compile(r"(<[^>]*>)")
MATH = re.compile(r'<math display="block".*?</math>', re.S)
OUTPUT = re.compile(r'<pre class="output"><code>(.*?)</code></pre>', re.S)
CELL = re.compile(r"<(t[dh])( style=\"[^\"]*\")?>(.*?)</\1>", re.S)
PROSE = 30  # characters of a cell from which its column should not shrink to a word
REFERENCE = re.compile(r"\([A-Z][\w&. -]* \d[\w.]*\)")  # (Hara 7)
CODE = re.compile(r'<pre\s+class="(python|sh|sql|json|html|r)"><code>(.*?)</code></pre>', re.S)
ACCENTS = {"\u0302": "^", "\u0303": "~"}  # combining ones stand beside the letter, or nowhere
LETTERS = re.compile(r'<mstyle mathvariant="normal">((?:<mi>[^<]*</mi>)+)</mstyle>')
TALL = re.compile(r'minsize="([\d.]+)" maxsize="[\d.]+" stretchy="false"')  # \big, \Big
RAISED = re.compile(r"(<m(?:sub|sup|subsup)>)(<mo [^>]*minsize[^>]*>[^<]*</mo>)")  # \big)^u
TOC_NAME = re.compile(r">(\w+)</a>")
NUMBER = re.compile(r'<mtext mathvariant="normal">⟦(.*?)\|(.*?)⟧</mtext>')
SILENT = ("a", "pre", "math", "script", "style", "h1", "h2", "h3", "h4", "summary")


class Site:
    """All pages: their order and titles, and where words, names and equations are explained.

    sources: the pages by name, as the sidebar lists them; contents: the sidebar of _quarto.yml;
    public: names whose mention leads to the API, and the page that holds each; repository: where links to
    files of the repository begin.
    """

    def __init__(self, sources, contents, public, title, repository=""):
        self.repository = repository
        self.sources = sources
        self.contents = contents
        self.title = title
        self.pages = {name: source.page for name, source in sources.items()}
        self.order = [name for name in listed(chapters(contents)) if name in sources]
        defined = {name: source for source in sources.values() for name in source.definitions}
        self.places = {
            name: f"{source.page}#{source.anchor(name)}" for name, source in defined.items()
        }
        self.places |= {name: f"{page}#{name.lower()}" for name, page in public.items()}
        self.equations = {
            number: f"{source.page}#eq-{number}"
            for source in sources.values()
            for number in re.findall(r"⟦[^|]*\|([^⟧]*)⟧", source.text)
        }
        self.cited = citation({number.partition(".")[0] for number in self.equations})

    def write(self, source, out):
        """Write a page and its images; return its text and what pandoc complained about."""
        page = out / source.page
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.notebook:
            shutil.copy(source.notebook, page.parent)
        for image, data in source.images.items():
            (page.parent / image).parent.mkdir(parents=True, exist_ok=True)
            (page.parent / image).write_bytes(data)
        text = f"::: claim\n{source.claim}\n:::\n\n{source.text}"
        toc, body, complaints = pandoc(self._with_links(source, text))
        text = PAGE.substitute(
            window_title=html.escape(window_title(plain(source.title), self.title)),
            description=html.escape(plain(source.claim)),
            root=way(source.page, ".") + "/",
            site=self.title,
            title=inline(source.title),
            tools=self._tools(source),
            sidebar=self._menu(self.contents, source),
            crumbs=" › ".join(self._crumbs(chapters(self.contents), source.name) or []),
            toc=TOC_NAME.sub(_breakable, toc),
            body=with_places(source.page, wrapped(self.mentions(source, equations(body)))),
            steps=self._steps(source),
        )
        page.write_text(text, encoding="utf-8")
        return text, complaints

    def _tools(self, source):
        """Return the links to a copy of the notebook beside the page, and to its source in the repository."""
        if source.notebook:
            download = f'<a href="{source.notebook.name}" download>Download the notebook</a>'
            return download + self._source_link(f"nbs/{source.name}")
        folder = f"fabinterp/{Path(source.name).stem}"
        return self._source_link(folder if (ROOT / folder).exists() else "fabinterp/__init__.py")

    def _source_link(self, path):
        return f'<a href="{self.repository}/{path}">View its source</a>'

    def _with_links(self, source, text):
        """Point links to notebooks and to pages of Markdown at the pages of the site."""
        return re.sub(
            r"\]\(((?!\w+:)[\w./-]+\.(?:ipynb|md)(?:#[\w.-]+)?)\)",
            lambda match: f"]({new_target(match[1], source, self.pages)})",
            text,
        )

    def mentions(self, source, body):
        """Link names in code type to where they are documented, and cited equations to where they stand.

        Numbers in prose and tables keep their groups on one line.
        """
        parts = []
        depth = 0  # how many elements are open in which nothing is linked
        for part in TOKEN.split(body):
            tag = re.match(r"<(/?)(\w+)", part)
            if tag and tag[2] in SILENT:
                depth += -1 if tag[1] else 1
            if not tag and not depth:
                part = self._link_text(source, part, parts[-1:] == ["<code>"])
            parts.append(part)
        return "".join(parts)

    def _link_text(self, source, text, is_code):
        if is_code:
            place = self.places.get(mentioned(text))
            found = place and place.partition("#")[0] != source.page
            return f'<a href="{way(source.page, place)}">{text}</a>' if found else text
        return self.cited.sub(
            lambda match: (
                f'<a href="{way(source.page, self.equations[match[1]])}">{match[1]}</a>'
                if match[1] in self.equations
                else match[0]
            ),
            keep_thousands(text),
        )

    def _menu(self, contents, source):
        """Return the sidebar from this page: sections open where it stands, itself marked."""
        items = []
        for entry in contents:
            if isinstance(entry, dict):
                is_open = " open" if source.name in listed([entry]) else ""
                inner = self._menu(entry["contents"], source)
                summary = f"<summary>{entry['section']}</summary>"
                items.append(f"<li><details{is_open}>{summary}{inner}</details></li>")
            elif entry in self.sources:
                here = ' aria-current="page"' if entry == source.name else ""
                link = way(source.page, self.pages[entry])
                items.append(f'<li><a href="{link}"{here}>{self._short(entry)}</a></li>')
        return f"<ul>{''.join(items)}</ul>"

    def _short(self, name):
        """Return the title of a page as the sidebar has it: up to a colon, if that tells it from others."""
        title = self.sources[name].title
        short = title.split(": ")[0]
        others = [source.title.split(": ")[0] for source in self.sources.values()]
        return inline(short if others.count(short) == 1 else title)

    def _crumbs(self, contents, name):
        """Return the sections in which a page stands, None if it is in none."""
        for entry in contents:
            if isinstance(entry, str):
                if entry == name:
                    return []
            elif (inner := self._crumbs(entry["contents"], name)) is not None:
                return [entry["section"], *inner]
        return None

    def _steps(self, source):
        """Return the links to the page before and the page after."""
        if source.name not in self.order:
            return ""
        position = self.order.index(source.name)
        around = {"Previous": position - 1, "Next": position + 1}
        return "".join(
            f'<a href="{way(source.page, self.pages[self.order[i]])}" rel="{word[:4].lower()}">'
            f"<small>{word}</small>{self._short(self.order[i])}</a>"
            for word, i in around.items()
            if 0 <= i < len(self.order)
        )


def _breakable(match):
    """Return the name of a class at the end of a link, free to break between its words."""
    return f">{re.sub('(?<=[a-z])(?=[A-Z])', '<wbr>', match[1])}</a>"


def mentioned(code):
    """Return the name that words in code type mention; a plain word is one only if it is called."""
    found = re.fullmatch(r"(fabinterp\.)?((?:plot\.)?\w+)(\(.*\))?", code)
    if not found:
        return None
    is_name = found[1] or found[3] or not re.fullmatch("[a-z]+", found[2])
    return found[2] if is_name else None


def pandoc(text):
    """Turn Markdown into HTML; return the table of contents, the body, and the complaints."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.html"
        template.write_text(f"$toc$\n{BODY}\n$body$")
        done = subprocess.run(
            ["pandoc", "--from=markdown-citations-implicit_figures-tex_math_single_backslash",
             "--to=html", "--mathml", "--toc", "--toc-depth=2", "--wrap=preserve",
             "--no-highlight", "--metadata=pagetitle:page", f"--template={template}"],
            input=text, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"pandoc failed: {done.stderr}")
    toc, body = done.stdout.split(BODY)
    return toc, body, [line for line in done.stderr.splitlines() if line.strip()]


def wrapped(body):
    """Colour code, give tables a box to scroll in; a heading wins where code has its place's name."""
    for place in re.findall(r'<h\d id="(.*?)"', body):
        body = body.replace(f'<a id="{place}"></a>', "")
    body = CODE.sub(_coloured, body)
    body = OUTPUT.sub(_with_sentences, body)
    body = CELL.sub(_with_prose, body)
    body = re.sub(r"<colgroup>.*?</colgroup>", "", body, flags=re.S)
    body = re.sub(r'<table( style="width: *100%;?")?', _box, body)
    body = re.sub(r"<code>(--[\w-]+)</code>", r'<code class="whole">\1</code>', body)
    return body.replace("</table>", "</table></div>")


def _with_sentences(match):
    """Return a text that code wrote with its sentences free to break; tables keep their lines."""
    lines = match[1].split("\n")
    shown = [
        f'<span class="sentence">{keep_thousands(line)}</span>'
        if is_sentence(html.unescape(line))
        else f"{line}\n"
        for line in lines
    ]
    scrolls = any(len(html.unescape(line)) > 100 and line.endswith("\n") for line in shown)
    focus = ' tabindex="0"' if scrolls else ""
    return f'<pre class="output"{focus}><code>{"".join(shown).rstrip()}</code></pre>'


BRANCHES = ("│", "├", "└")  # a tree keeps its lines


def is_sentence(line):
    """Say whether a line of text that code wrote is prose: long, without columns, letters rather than numbers."""
    line = line.strip()
    if line[:1] in BRANCHES:
        return False
    marks = [character for character in line if not character.isspace()]
    n_letters = sum(character.isalpha() for character in marks)
    return len(line) > 45 and "  " not in line and n_letters > 0.45 * len(marks)


def _box(match):
    """Return the start of a table in a box that scrolls, marked if its columns are too many for paper."""
    table = match.string[match.end() :].partition("</table>")[0]
    n_columns = max(len(re.findall(r"<t[dh]\b", row)) for row in table.split("</tr>"))
    kind = "scroll many" if n_columns > 12 else "scroll"
    return f'<div class="{kind}" tabindex="0"><table'


def _with_prose(match):
    """Return a cell of a table, marked if it holds more than a few words or an equation's number."""
    tag, style, inside = match.groups()
    words = html.unescape(re.sub(r"<[^>]*>", "", inside)).strip()
    kind = ""
    if tag == "td" and (REFERENCE.fullmatch(words) or len(words) > PROSE):
        kind = ' class="prose"' if len(words) > PROSE else ' class="reference"'
    return f"<{tag}{kind}{style or ''}>{inside}</{tag}>"


def _coloured(match):
    """Return a block of code in colour; pandoc would need seconds a page for it."""
    code = highlight(
        html.unescape(match[2]), get_lexer_by_name(match[1]), HtmlFormatter(nowrap=True)
    )
    return f'<pre class="code"><code>{code}</code></pre>'


def equations(body):
    """Set long formulas in a box that scrolls, the numbers of those displayed to the right of it."""
    body = re.sub(r"<annotation .*?</annotation>", "", body, flags=re.S)
    body = readable(body)
    in_a_line = r'(<math display="inline".*?</math>)([,.;:?!)]*)'
    body = re.sub(in_a_line, _with_its_mark, body, flags=re.S)
    return MATH.sub(_equation, body)


def readable(body):
    """Return formulas in words that browsers take: marks above letters, upright names, tall brackets."""
    for combining, plain_mark in ACCENTS.items():
        body = body.replace(f"{combining}</mo>", f"{plain_mark}</mo>")
    body = LETTERS.sub(
        lambda match: f'<mi mathvariant="normal">{re.sub("<[^>]*>", "", match[1])}</mi>', body
    )
    body = RAISED.sub(r"\1<mrow>\2</mrow>", body)  # alone in its row a bracket keeps its height
    return TALL.sub(r'minsize="\1em" maxsize="\1em" stretchy="true"', body)


def _with_its_mark(match):
    """Return a formula in a line of text, a long one in a box; the mark behind a short one stays with it."""
    formula, mark = match.groups()
    if is_long(formula):
        return f'<span class="long" tabindex="0">{formula}</span>{mark}'
    return f'<span class="whole">{formula}{mark}</span>' if mark else formula


def is_long(formula):
    """Say whether a formula may be wider than a phone: no browser breaks its line."""
    return n_characters(formula) > 24


def n_characters(formula):
    """Count what a formula shows, a measure of its width."""
    return len("".join(re.sub(r"<[^>]*>", "", formula).split()))


def _equation(match):
    numbers = NUMBER.findall(match[0])
    inside = NUMBER.sub("", match[0])
    kind = "formula wide" if n_characters(inside) > 75 else "formula"
    formula = f'<span class="{kind}">{inside}</span>'
    if not numbers:
        return f'<span class="equation">{formula}</span>'
    paper, number = numbers[0]
    shown = f"<span>{paper}</span>" if paper else ""
    return (
        f'<span class="equation" id="eq-{number}">{formula}'
        f'<span class="number">{shown}<span>({number})</span></span></span>'
    )


def window_title(title, site):
    """Return what a window with a page is called; the first page is called as the site is."""
    return site if title == site else f"{title} · {site}"


def inline(text):
    """Return a title as HTML: code in backticks is all the Markdown it may hold."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))


def plain(text):
    """Return a line of Markdown without its marks."""
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).translate(str.maketrans("", "", "`*$"))
