"""Lower a chapter's prose from MyST to plain Markdown, which Colab and Jupyter show as it is meant.

What the tables in :class:`Prose` do not know is an error, never passed through half-understood: to
use another directive or role in a chapter, say here what it becomes.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from markdown_it.token import Token

import myst
from capsnet.figures.style import MACROS
from myst import ChapterError as ChapterError
from notes import Listing, annotated, checked_by, computed, place

LABEL = r"an equation carries the paper's number: \tag{1}, not a label"
LINK = re.compile(r"!?\[(?P<text>.*)\]\(<?(?P<target>[^\s>]+?)>?(?:\s.*)?\)", re.DOTALL)


class Prose:
    """Lowers the Markdown cells of one chapter.

    Args:
        chapter: the page.
        bibliography: the file of sources.
        notebooks: the notebook of every chapter, this one included.
        glued: the values that its cells glued, by name.
    """

    def __init__(
        self,
        chapter: Path,
        bibliography: Path,
        notebooks: Mapping[Path, Path],
        glued: Mapping[str, str],
    ) -> None:
        self.chapter, self.notebooks, self.glued = chapter, notebooks, glued
        self.root = bibliography.parent.parent
        self.sources = references(bibliography)
        self.cited: list[str] = []
        self.directives: dict[str, Callable[[str, dict[str, Any], str], str]] = {
            "math": self.math,
            "figure": self.figure,
            "image": self.figure,
            "bibliography": self.bibliography,
            "annotate": self.annotate,
            "computed": self.computed,
        }
        self.roles: dict[str, Callable[[str], str]] = {
            "math": lambda text: f"${colour_quantities(text)}$",
            "term": lambda text: myst.split_target(text)[0],
            "doc": self.document,
            "glue:text": self.glue,
            "cite": lambda text: f"({self.cite(text)})",
            "cite:p": lambda text: f"({self.cite(text)})",
            "cite:t": lambda text: self.cite(text, "{} ({})"),
        }

    def error(self, message: str) -> ChapterError:
        return ChapterError(f"{self.chapter.name}: {message}")

    def lower(self, text: str) -> str:
        """Lower the blocks that only MyST understands; what is between them stays as it is."""
        lines, lowered, done = text.splitlines(), list[str](), 0
        for token in myst.parse(text, self.chapter.name):
            if token.map is None or token.map[0] < done:
                continue  # another cell of a row that is done
            first, end = token.map
            block = self.block(token, "\n".join(lines[first:end]))
            if block is not None:
                lowered += [*lines[done:first], *block]
                done = end
        kept = [""]
        for piece in [*lowered, *lines[done:]]:
            if piece.strip() or kept[-1]:  # one empty line in a row
                kept.append(piece)
        return "\n".join(kept).strip()

    def block(self, token: Token, source: str) -> list[str] | None:
        """What becomes of a block's lines; None leaves them to the blocks within it."""
        if token.type == "inline":
            return self.inline(source).split("\n")
        if token.type == "math_block":
            return [colour_quantities(source)]
        if token.type == "math_block_label":
            raise self.error(LABEL)
        if token.type == "myst_target":
            return [source.replace(f"({token.content})=", f'<a id="{token.content}"></a>')]
        if token.type == "myst_line_comment":
            return []
        if token.type not in myst.FENCES:
            return None
        found = myst.directive(token, self.chapter.name)
        if found is None and token.type == "colon_fence":
            raise self.error(f"a ::: fence must name a directive, got {source!r}")
        if found is None:
            return [source]
        before = source[: source.index(token.markup)]  # of a list or a quotation
        below = "\n" + re.sub(r"[^>\s]", " ", before)
        return [before + self.directive(found).replace("\n", below)]

    def directive(self, found: myst.Directive) -> str:
        name, argument, content = found.name, found.argument, found.content.strip()
        if name in myst.ADMONITIONS:
            titled = name in ("admonition", "dropdown")
            title = argument if titled else {"seealso": "See also"}.get(name, name.capitalize())
            text = content if titled else f"{argument}\n{content}".strip()
            quoted = self.lower(f"**{title}**\n\n{text}").splitlines()
            return "\n".join(f"> {line}".rstrip() for line in quoted)
        if name not in self.directives:
            raise self.error(f"directive {{{name}}} has no plain Markdown yet; add it here")
        return self.directives[name](argument, found.options, content)

    def math(self, argument: str, options: dict[str, Any], content: str) -> str:
        if "label" in options:
            raise self.error(LABEL)
        return "$$\n" + colour_quantities(f"{argument}\n{content}".strip()) + "\n$$"

    def figure(self, argument: str, options: dict[str, Any], content: str) -> str:
        if not options.get("alt"):
            raise self.error(f"figure {argument} needs an alternative text (:alt:)")
        picture = f"![{options['alt']}]({self.path(argument)})"
        return f"{picture}\n\n*{self.lower(content)}*" if content else picture

    def bibliography(self, argument: str, options: dict[str, Any], content: str) -> str:
        return "\n".join(f"- {self.sources[name][1]}" for name in sorted(self.cited))

    @cached_property
    def notes(self) -> dict[tuple[str, str], list[Listing]]:
        return annotated(self.chapter, self.root)

    def annotate(self, argument: str, options: dict[str, Any], content: str) -> str:
        return "\n\n".join(
            f'<a id="{listing.anchor}"></a><sub>{Path(argument).name} {listing.lines}</sub>\n\n'
            f"```python\n{listing.code}\n```\n\n{self.lower(listing.note or '')}".strip()
            for listing in self.notes[argument, content]
        )

    def computed(self, argument: str, options: dict[str, Any], content: str) -> str:
        where = [
            f"  - `{group[0].within}`, {place(group)}"
            + ", ".join(f"[{listing.lines}](#{listing.anchor})" for listing in group)
            for group in computed(self.notes, argument)
        ]
        tests = [f"  - `{test}`" for test in checked_by(self.root, argument)]
        return "\n".join(["- Computed by", *where, "- Tested by", *tests])

    def inline(self, text: str) -> str:
        pieces, done = [], 0
        for start, end, lowered in sorted(self.edits(text)):
            pieces += [self.plain(text[done:start]), lowered]
            done = end
        return "".join([*pieces, self.plain(text[done:])])

    def plain(self, text: str) -> str:
        if re.search(r"\[\^[\w-]+\]", text):
            raise self.error("footnotes are not shown by Jupyter; say it in the text")
        return text

    def edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        """What is replaced within a block: from where to where, and by what."""
        for token in myst.parse_inline(text):
            start, end = token.meta.get("span", (0, 0))
            if token.type == "myst_role":
                yield start, end, self.role(token.meta["name"], token.content)
            elif token.type == "math_inline":
                yield start, end, colour_quantities(text[start:end])
            elif token.type == "code_inline":
                yield start, end, text[start:end]
            elif token.type == "image" or (token.type == "link_open" and token.info != "auto"):
                link = LINK.fullmatch(text[start:end])
                if link is None:
                    raise self.error(f"expected [text](target), got {text[start:end]!r}")
                if not link["text"]:
                    raise self.error(f"the link to {link['target']} needs a text")
                first, last = link.span("target")
                yield start + first, start + last, self.path(link["target"])

    def role(self, name: str, text: str) -> str:
        if name not in self.roles:
            raise self.error(f"role {{{name}}} has no plain Markdown yet; add it here")
        return self.roles[name](text)

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

    def document(self, text: str) -> str:
        label, target = myst.split_target(text)
        if label == target:
            raise self.error(f"{{doc}}`{target}` needs a text: {{doc}}`text <{target}>`")
        return f"[{label}]({self.path(target + '.md')})"

    def glue(self, name: str) -> str:
        if name not in self.glued:
            raise self.error(f"no cell glues {name!r}")
        return self.glued[name]

    def cite(self, names: str, form: str = "{}, {}") -> str:
        labels = []
        for name in re.split(r"\s*,\s*", names):
            if name not in self.sources:
                raise self.error(f"book/references.bib has no {name!r}")
            if name not in self.cited:
                self.cited.append(name)
            labels.append(form.format(*self.sources[name][0]))
        return "; ".join(labels)


def colour_quantities(text: str) -> str:
    r"""Write the book's macros out: ``\qv`` becomes a coloured v, which MathJax anywhere shows."""
    return re.sub(rf"\\({'|'.join(MACROS)})(?![A-Za-z])", lambda match: MACROS[match[1]], text)


@cache
def references(bibliography: Path) -> dict[str, tuple[tuple[str, str], str]]:
    """The sources by name: (who, when), as the text cites one, and its line in a list."""
    from pybtex.database import parse_file

    entries = {}
    for name, entry in parse_file(str(bibliography)).entries.items():
        people = [
            " ".join([*person.first_names, *person.middle_names, *person.last_names])
            for person in entry.persons["author"]
        ]
        last = [" ".join(person.last_names) for person in entry.persons["author"]]
        shown = " and ".join(last) if len(last) < 3 else f"{last[0]} et al."
        fields = entry.fields
        where = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished", "")
        line = f"{', '.join(people)}. *{fields['title']}*. {where}, {fields['year']}."
        if "url" in fields:
            line += f" {fields['url']}"
        entries[name] = ((shown, fields["year"]), re.sub(r"[{}]", "", line))
    return entries
