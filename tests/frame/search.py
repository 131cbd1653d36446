"""Write the index of the site's search: titles, headings, public names, and the entries of the glossary.

It is a script (`search.js`) because a browser reads no other file from a page that it opened from disk.
"""

import html
import json
import re
from textwrap import shorten

NAME, PAGE, ENTRY, HEADING = range(4)  # the kinds of entries, as site.js has them
LONGEST = 90  # characters of an entry of the glossary
GLOSSARY = "guide/glossary.html"
HEADINGS = re.compile(r'<h[23] id="([^"]+)">(.*?)</h[23]>', re.S)
MEMBERS = re.compile(
    r'<div id="([\w.]+)" class="member">\s*<pre class="code"><code>(.*?)</code>', re.S
)
ROWS = re.compile(r'<tr id="(word-\d+)"[^>]*>\s*<td.*?>(.*?)</td>\s*<td.*?>(.*?)</td>', re.S)


def index(titles, texts, public):
    """Return the text of the script.

    titles, texts: the title and the HTML of each page by its file; public: the page of each public name.
    """
    files = list(titles)
    entries = [[PAGE, i, "", titles[file]] for i, file in enumerate(files)]
    entries += [[NAME, files.index(page), name.lower(), name] for name, page in public.items()]
    for i, file in enumerate(files):
        names = {name.lower() for name, page in public.items() if page == file}
        entries += [[NAME, i, *member] for member in members(texts[file])]
        entries += [
            [HEADING, i, place, words(title)]
            for place, title in HEADINGS.findall(texts[file])
            if place not in names
            and not re.match(r"(example|parameters|attributes|methods)", place)
        ]
    if GLOSSARY in files:
        i = files.index(GLOSSARY)
        entries += [[ENTRY, i, *entry] for entry in glossary_entries(texts[GLOSSARY])]
    pages = [[file, titles[file]] for file in files]
    found = {"pages": pages, "entries": entries}
    return f"const SEARCH = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n"


def words(fragment):
    """Return HTML as the text that it shows."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", fragment)).split())


def members(text):
    """Return the places of the methods on a page of the API, and their names with those of their classes."""
    heads = {place: title for place, title in HEADINGS.findall(text)}
    return [
        (place, f"{words(heads[place.partition('.')[0]])}.{words(call).partition('(')[0]}")
        for place, call in MEMBERS.findall(text)
    ]


def glossary_entries(text):
    """Return the places of the glossary's words, and what the search shows of each."""
    return [
        (place, shorten(words(word) or words(symbol), LONGEST, placeholder=" …"))
        for place, word, symbol in ROWS.findall(text)
    ]


def with_places(file, text):
    """Return the HTML of a page; each line of the glossary's table of words has a place that a link leads to."""
    if file != GLOSSARY:
        return text
    before, mark, table = text.partition('id="terms"')
    counter = iter(range(len(table)))
    lines = re.sub(
        r"(<tbody>.*?</tbody>)", lambda match: _numbered(match[1], counter), table, flags=re.S
    )
    return before + mark + lines


def _numbered(body, counter):
    return re.sub(r"<tr\b", lambda match: f'<tr id="word-{next(counter)}"', body)
