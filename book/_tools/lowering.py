"""Lower a chapter's prose from MyST to plain Markdown, which Colab and Jupyter show as it is meant.

What :class:`Prose` does not know is an error, never passed through half-understood: to use another
directive, role or kind of block in a chapter, say here what it becomes.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from markdown_it.token import Token
from sphinx.util.nodes import split_explicit_title

import myst
from capsnet_book.figures.macros import MACROS
from myst import ChapterError
from notes import Listings, lines_and_tests, location, read_notes

# Blocks that Jupyter knows too: what they hold is lowered.
CONTAINERS = {
    "paragraph", "heading", "bullet_list", "ordered_list", "list_item", "blockquote",
    "table", "thead", "tbody", "tr",
}  # fmt: skip
LINK = re.compile(r"!?\[(?P<text>.*)\]\(<?(?P<target>[^\s>]+?)>?(?:\s.*)?\)", re.DOTALL)


class Prose:
    """Lowers the Markdown cells of one chapter.

    ``notebooks`` has the notebook of every chapter, this one included; ``glued`` the values that
    its cells glued, by name.
    """

    def __init__(
        self, chapter: Path, root: Path, notebooks: Mapping[Path, Path], glued: Mapping[str, str]
    ) -> None:
        self.chapter, self.root, self.notebooks, self.glued = chapter, root, notebooks, glued
        self.sources = references(root / "book" / "references.bib")
        self.directives: dict[str, Callable[[myst.Directive], str]] = {
            **dict.fromkeys(myst.ADMONITIONS, self.admonition),
            "annotate": self.annotate,
            "computed": self.computed,
        }
        self.roles: dict[str, Callable[[str], str]] = {
            "term": lambda text: split_explicit_title(text)[1],
            "glue:text": self.glue,
            "cite:p": lambda text: f"({self.cite(text, '{}, {}')})",
            "cite:t": lambda text: self.cite(text, "{} ({})"),
        }

    def error(self, message: str) -> ChapterError:
        return ChapterError(f"{self.chapter.name}: {message}")

    def lower(self, text: str) -> str:
        """Lower the blocks that only MyST understands, and keep the text between them."""
        lines, lowered, done = text.splitlines(), list[str](), 0
        for token in myst.parse(text, self.chapter.name):
            if token.map is None or token.map[0] < done:
                continue  # another cell of a row that is done
            first, end = token.map
            block = self.block(token, "\n".join(lines[first:end]))
            if block is not None:
                lowered += [*lines[done:first], block]
                done = end
        return "\n".join([*lowered, *lines[done:]]).strip()

    def block(self, token: Token, source: str) -> str | None:
        """The Markdown of a block; None leaves it to the blocks within it."""
        if token.type.removesuffix("_open") in CONTAINERS:
            return None
        if token.type == "inline":
            return self.inline(source)
        if token.type == "math_block":
            return colour_quantities(source)
        if token.type == "myst_target":
            return source.replace(f"({token.content})=", f'<a id="{token.content}"></a>')
        directive = myst.directive(token, self.chapter.name)
        if directive and directive.name in self.directives and token.level == 0:
            return self.directives[directive.name](directive)
        if directive or token.type not in ("fence", "code_block"):
            line = source.splitlines()[0]
            raise self.error(f"a block has no plain Markdown yet; add it here: {line!r}")
        return source

    def admonition(self, directive: myst.Directive) -> str:
        title, text = directive.name.capitalize(), f"{directive.argument}\n{directive.content}"
        if directive.name == "admonition":
            title, text = directive.argument, directive.content
        quoted = self.lower(f"**{title}**\n\n{text.strip()}").splitlines()
        return "\n".join(f"> {line}".rstrip() for line in quoted)

    @cached_property
    def notes(self) -> Listings:
        return read_notes(self.chapter, self.root)

    def annotate(self, directive: myst.Directive) -> str:
        return "\n\n".join(
            f'<a id="{listing.anchor}"></a><sub>{Path(listing.file).name} {listing.lines}</sub>\n\n'
            f"```python\n{listing.code}\n```\n\n{self.lower(listing.note or '')}".strip()
            for listing in self.notes[directive.argument, directive.content.strip()]
        )

    def computed(self, directive: myst.Directive) -> str:
        groups, tests = lines_and_tests(self.notes, self.root, directive.argument)
        where = [
            f"  - `{group[0].within}`, {location(group)}"
            + ", ".join(f"[{listing.lines}](#{listing.anchor})" for listing in group)
            for group in groups
        ]
        checks = [f"  - `{test}`" for test in tests]
        return "\n".join(["- Computed by", *where, "- Tested by", *checks])

    def inline(self, text: str) -> str:
        for start, end, lowered in sorted(self.edits(text), reverse=True):  # from the end
            text = text[:start] + lowered + text[end:]
        return text

    def edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, replacement) for each part of a block that is replaced."""
        for token in myst.parse_inline(text):
            start, end = token.meta.get("span", (0, 0))
            if token.type == "myst_role":
                name = token.meta["name"]
                if name not in self.roles:
                    raise self.error(f"role {{{name}}} has no plain Markdown yet; add it here")
                yield start, end, self.roles[name](token.content)
            elif token.type == "math_inline":
                yield start, end, colour_quantities(text[start:end])
            elif token.type == "image" or (token.type == "link_open" and token.info != "auto"):
                link = LINK.fullmatch(text[start:end])
                if link is None or not link["text"]:
                    raise self.error(f"expected [text](target), got {text[start:end]!r}")
                first, last = link.span("target")
                yield start + first, start + last, self.path(link["target"])

    def path(self, target: str) -> str:
        """A path as seen from the notebook: chapters are notebooks, other files stay in book/."""
        if re.match(r"[a-z]+:|#", target):
            return target
        name, mark, anchor = target.partition("#")
        file = (self.chapter.parent / name).resolve()
        if not file.exists():
            raise self.error(f"there is no {name}")
        start = self.notebooks[self.chapter].parent
        return os.path.relpath(self.notebooks.get(file, file), start) + mark + anchor

    def glue(self, name: str) -> str:
        if name not in self.glued:
            raise self.error(f"no cell glues {name!r}")
        return self.glued[name]

    def cite(self, names: str, form: str) -> str:
        keys = re.split(r"\s*,\s*", names)
        for name in keys:
            if name not in self.sources:
                raise self.error(f"book/references.bib has no {name!r}")
        return "; ".join(form.format(*self.sources[name]) for name in keys)


def colour_quantities(text: str) -> str:
    r"""Write the book's macros out: ``\qv`` becomes a coloured v, which MathJax anywhere shows."""
    return re.sub(rf"\\({'|'.join(MACROS)})(?![A-Za-z])", lambda match: MACROS[match[1]], text)


@cache
def references(bibliography: Path) -> dict[str, tuple[str, str]]:
    """Authors and year of each source, as the text cites them, by the source's name."""
    from pybtex.database import parse_file

    cited = {}
    for name, entry in parse_file(str(bibliography)).entries.items():
        last = [" ".join(person.last_names) for person in entry.persons["author"]]
        shown = " and ".join(last) if len(last) < 3 else f"{last[0]} et al."
        cited[name] = (shown, entry.fields["year"])
    return cited
