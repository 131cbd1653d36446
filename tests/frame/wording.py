"""Count words and turns of phrase to avoid in the README, the command line, docstrings and pages.

`python tests/frame/wording.py [PART…]` prints each hit in the files whose path contains one of the parts.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from frame import PACKAGE, ROOT, nodes, pages, prose  # noqa: E402

# Matched in any case
PATTERNS = [
    r"\bbesides?\b",
    r"\btold\b|\btells? (of|whether|how|what|where|which|who|it|a person)\b|\btelling\b",
    r"\b(is|are|was|were|be|been) said\b|\bwhat is said\b|\bsays so\b|\bsaid of\b",
    r"\b(nobody|somebody|whoever|no one here)\b",
    r"\bparted\b|\bparts? (from|most|by|where)\b|\bthey part\b|\bdo they part\b|\bboth part\b",
    r"\basks? (about|of|for|the|no|whether|which|a)\b|\basked (about|of)\b",
    r"\banswer(s|ed)? (with|for|by|of|with one)\b|\bwhat (it|they) answers?\b|\bits answer\b",
    r"\bstands? (in|on|at|beside|there|here|behind|below|above|once|where|first)\b"
    r"|\bstood (in|on|at|there)\b",
    r"\bdear(er|est)?\b",
    r"\bstrangers?\b",
    r"\bglossed\b",
    r"\ba hair\b",
    r"\bn[oa]ught\b",
    r"\bfor ever\b",
    r"\bshall\b",
    r"\bin vain\b",
    r"\bnext to nothing\b",
    r"\bhardly (ever|any)\b|\bever a\b",
    r"\bkept within\b",
    r"\bpromis(e|es|ed)\b",
    r"\bthe (most|least|fewest) (rows|rules|leaves|terms|questions|conditions|that|it|so)\b",
    r"\b(at (most|least) )?so (many|much) (rows|rules|leaves|columns|terms|as|of)?\b",
    r", for (it|they|the|a|an|no|there|each|every|in|what|this|that|one|all|its|their|where|then|of) ",
    r"\bslips?\b",
    r"\b(there (is|are) none|where there (is|are) no)\b",
    r"\b(trifles?|cousins?|tolls?|ballots?|haste)\b",
    r"\bUsed as a\b",
]
# Matched at the start of a sentence
STARTS = [
    r"(^|[.;:] )(What|Whether|How far|How often|That) [^.?!]{0,60}\b(is|are|stands|was)\b",
    r"(^|[.;:] )Of (the|all|several|many|its|these|those|both|two|what|a|each) ",
]
COMPILED = [re.compile(pattern, re.I | re.M) for pattern in PATTERNS]
COMPILED += [re.compile(pattern, re.M) for pattern in STARTS]
COMMAND_LINE = ("cli", "commands", "terminal", "files")
GROUPS = ("README", "command line", "docstrings and messages", "pages")


def texts():
    """Yield group, path and prose of the README, of each page and of each module."""
    path = ROOT / "README.md"
    readme = re.sub(r"```.*?```", " ", path.read_text(encoding="utf-8"), flags=re.S)
    yield "README", path, re.sub(r"^    .*$", " ", readme, flags=re.M)
    for path in pages():
        yield "pages", path, "\n\n".join(cell.source for cell in prose(path))
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "_modidx.py":
            is_command = path.stem in COMMAND_LINE or path.parent.name == "cli"
            group = "command line" if is_command else "docstrings and messages"
            yield group, path, module_text(path.read_text(encoding="utf-8"))


def module_text(source):
    """Return the docstrings, texts of four words or more, and comments of a module."""
    strings = [
        node.value
        for node in nodes(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith(("# %%", "#|"))
    ]
    return "\n\n".join([text for text in strings if text.count(" ") >= 3] + comments)


def plain(text):
    """Return Markdown with a word in place of each formula and each name in code type."""
    text = re.sub(r"\$\$.*?\$\$", " FORMULA ", text, flags=re.S)
    text = re.sub(r"\$[^$\n]+\$", " x ", text)
    text = re.sub(r"`[^`\n]*`", " name ", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def count_words(text):
    """Return the number of words of a text."""
    return len(re.findall(r"[A-Za-z]{2,}", text))


def hits_in(text):
    """Return the matches of what should be avoided in a text."""
    return [match for pattern in COMPILED for match in pattern.finditer(text)]


def hits_per_thousand():
    """Return the hits per 1000 words of each group, to a tenth."""
    hits = Counter()
    words = Counter()
    for group, _, text in texts():
        text = plain(text)
        hits[group] += len(hits_in(text))
        words[group] += count_words(text)
    return {group: round(1000 * hits[group] / max(words[group], 1), 1) for group in GROUPS}


def print_hits(parts):
    """Print each hit with its surroundings, in the files whose path contains one of the parts."""
    for _, path, text in texts():
        name = path.relative_to(ROOT).as_posix()
        if not any(part in name for part in parts):
            continue
        text = plain(text)
        for match in hits_in(text):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            print(f"{name}: {' '.join(around.split())}")


if __name__ == "__main__":
    print_hits(sys.argv[1:] or [""])
