"""Lower a chapter's prose from MyST to plain Markdown, which Colab and Jupyter show as it is meant.

What the table in :class:`Prose` does not know is an error, never passed through half-understood: to
use another directive or role in a chapter, say here what it becomes.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from notes import Listing, NotesError, annotated, checked_by, computed, place


class ChapterError(ValueError):
    """A chapter cannot become a notebook; the message says which and why."""


ADMONITIONS = {
    "note", "tip", "hint", "important", "warning", "caution", "danger", "attention", "seealso",
    "admonition", "dropdown",
}  # fmt: skip
FENCE = re.compile(r"^( *)(`{3,}|~{3,}|:{3,})(.*)$")
DIRECTIVE = re.compile(r"^\{([\w:.-]+)\}\s*(.*)$")
ROLE_OR_CODE = re.compile(r"\{([\w:.-]+)\}(`+)(.+?)(?<!`)\2(?!`)|(`+).+?(?<!`)\4(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\]\n]|\n(?!\n))*)\]\(([^)\s]+)\)")


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
        self.pieces: list[list[Listing]] | None = None  # of the directives `annotate`
        self.shown = 0  # so many of them
        self.directives: dict[str, Callable[[str, dict[str, str], str], str]] = {
            "math": self.math,
            "figure": self.figure,
            "image": self.figure,
            "bibliography": self.bibliography,
            "annotate": self.annotate,
            "computed": self.computed,
        }
        self.roles: dict[str, Callable[[str], str]] = {
            "math": lambda text: f"${colour_quantities(text)}$",
            "term": lambda text: split_target(text)[0],
            "doc": self.document,
            "glue:text": self.glue,
            "cite": lambda text: f"({self.cite(text)})",
            "cite:p": lambda text: f"({self.cite(text)})",
            "cite:t": lambda text: self.cite(text, "{} ({})"),
        }

    def error(self, message: str) -> ChapterError:
        return ChapterError(f"{self.chapter.name}: {message}")

    def lower(self, text: str) -> str:
        """Lower block by block: fences first, what is between them line by line."""
        blocks: list[str] = []
        lines = iter(text.splitlines())
        for line in lines:
            fence = FENCE.match(line)
            if fence is None:
                blocks.append(line)
                continue
            indent, ticks, info = fence.groups()
            body = list(up_to_end(lines, ticks))
            directive = DIRECTIVE.match(info.strip())
            if directive is not None:
                dedented = [inner.removeprefix(indent) for inner in body]
                blocks.append(self.directive(directive[1], directive[2], dedented))
            elif ticks[0] == ":":
                raise self.error(f"a ::: fence must name a directive, got {line!r}")
            else:  # a plain listing stays as it is, and out of the inline pass below
                listing = "\n".join([line, *body, indent + ticks])
                blocks.append(KEEP.join(["", listing, ""]))
        parts = "\n".join(blocks).split(KEEP)
        parts[0::2] = [self.inline(part) for part in parts[0::2]]
        return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()

    def directive(self, name: str, argument: str, body: list[str]) -> str:
        options, content = split_options(body)
        if name in ADMONITIONS:
            titled = name in ("admonition", "dropdown")
            title = argument if titled else {"seealso": "See also"}.get(name, name.capitalize())
            text = content if titled else f"{argument}\n{content}".strip()
            quoted = self.lower(f"**{title}**\n\n{text}").splitlines()
            return KEEP.join(["", "\n".join(f"> {line}".rstrip() for line in quoted), ""])
        if name not in self.directives:
            raise self.error(f"directive {{{name}}} has no plain Markdown yet; add it here")
        return KEEP.join(["", self.directives[name](argument, options, content), ""])

    def math(self, argument: str, options: dict[str, str], content: str) -> str:
        if "label" in options:
            raise self.error(r"an equation carries the paper's number: \tag{1}, not a label")
        return "$$\n" + colour_quantities(f"{argument}\n{content}".strip()) + "\n$$"

    def figure(self, argument: str, options: dict[str, str], content: str) -> str:
        if not options.get("alt"):
            raise self.error(f"figure {argument} needs an alternative text (:alt:)")
        picture = f"![{options['alt']}]({self.path(argument)})"
        return f"{picture}\n\n*{self.lower(content)}*" if content else picture

    def bibliography(self, argument: str, options: dict[str, str], content: str) -> str:
        return "\n".join(f"- {self.sources[name][1]}" for name in sorted(self.cited))

    def notes(self) -> list[list[Listing]]:
        if self.pieces is None:
            try:
                self.pieces = annotated(self.chapter, self.root)
            except NotesError as error:
                raise self.error(str(error)) from None
        return self.pieces

    def annotate(self, argument: str, options: dict[str, str], content: str) -> str:
        self.shown += 1
        return "\n\n".join(
            f'<a id="{listing.anchor}"></a><sub>{Path(argument).name} {listing.lines}</sub>\n\n'
            f"```python\n{listing.code}\n```\n\n{self.lower(listing.note or '')}".strip()
            for listing in self.notes()[self.shown - 1]
        )

    def computed(self, argument: str, options: dict[str, str], content: str) -> str:
        try:
            groups = computed(self.notes(), argument)
            tests = checked_by(self.root, argument)
        except NotesError as error:
            raise self.error(str(error)) from None
        where = [
            f"`{group[0].within}`, {place(group)}"
            + ", ".join(f"[{listing.lines}](#{listing.anchor})" for listing in group)
            for group in groups
        ]
        parts = ["- Computed by", *where, "- Tested by", *(f"`{test}`" for test in tests)]
        return "\n".join(part if part.startswith("- ") else f"  - {part}" for part in parts)

    def inline(self, text: str) -> str:
        text = re.sub(r"^%.*\n?", "", text, flags=re.MULTILINE)
        text = re.sub(r"^\(([\w-]+)\)=$", r'<a id="\1"></a>', text, flags=re.MULTILINE)
        if re.search(r"\$\$ *\([\w-]+\)", text):
            raise self.error(r"an equation carries the paper's number: \tag{1}, not a label")
        if re.search(r"\[\^[\w-]+\]", text):
            raise self.error("footnotes are not shown by Jupyter; say it in the text")
        pieces, end = [], 0
        for match in ROLE_OR_CODE.finditer(text):
            pieces.append(self.plain(text[end : match.start()]))
            pieces.append(self.role(match) if match[1] else match[0])
            end = match.end()
        return "".join([*pieces, self.plain(text[end:])])

    def role(self, match: re.Match[str]) -> str:
        if match[1] not in self.roles:
            raise self.error(f"role {{{match[1]}}} has no plain Markdown yet; add it here")
        return self.roles[match[1]](match[3])

    def plain(self, text: str) -> str:
        return LINK.sub(self.link, colour_quantities(text))

    def link(self, match: re.Match[str]) -> str:
        image, label, target = match.groups()
        if not label:
            raise self.error(f"the link to {target} needs a text")
        return f"{image}[{label}]({self.path(target)})"

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
        label, target = split_target(text)
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


KEEP = "\0"  # stands around text that is finished


def up_to_end(lines: Iterator[str], ticks: str) -> Iterator[str]:
    """The lines up to the fence that closes ``ticks``, which is dropped."""
    for line in lines:
        closing = line.strip()
        if len(closing) >= len(ticks) and set(closing) == {ticks[0]}:
            return
        yield line
    raise ChapterError(f"a {ticks} fence is not closed")


def split_options(body: list[str]) -> tuple[dict[str, str], str]:
    """A directive's leading ``:name: value`` lines, and the rest."""
    options: dict[str, str] = {}
    count = 0
    for line in body:
        match = re.match(r"^:([\w-]+):\s*(.*)$", line)
        if match is None:
            break
        options[match[1]] = match[2]
        count += 1
    return options, "\n".join(body[count:]).strip()


def split_target(text: str) -> tuple[str, str]:
    """``text <target>`` → (text, target); plain ``target`` stands for both."""
    match = re.match(r"^(.*?)\s*<([^>]+)>$", text, re.DOTALL)
    return (match[1], match[2]) if match else (text, text)


def colour_quantities(text: str) -> str:
    r"""Write the book's macros out: ``\qv`` becomes a coloured v, which MathJax anywhere shows."""
    from capsnet_book.figures import MACROS

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
