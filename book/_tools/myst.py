"""The book's pages as tokens, from the parser that the book is built with."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from docutils.parsers.rst.directives.misc import TestDirective
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

from address import ROOT

PARSE = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["parse"]
EXTENSIONS = set(PARSE["myst_enable_extensions"])
FENCES = {"fence", "colon_fence"}
ADMONITIONS = {"note", "tip", "important", "warning", "admonition"}
NO_PROSE = {"code-cell", "bibliography", "computed", "math", "tableofcontents"}


class ChapterError(ValueError):
    """A page is wrong, or cannot become a notebook; the message says which and why."""


@dataclass(frozen=True)
class Directive:
    name: str
    argument: str
    options: dict[str, Any]
    content: str
    line: int  # where the content begins, in lines from the top of the text, from 0


def located(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """A rule that also stores where in the text it found a token; markdown-it's own do not."""

    def run(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        matches = rule(state, silent)
        for token in state.tokens[count:] if matches and not silent else []:
            token.meta.setdefault("span", (start, state.pos))
        return matches

    return run


PARSER = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), RendererHTML)
RULES = PARSER.inline.ruler
for name, rule in zip(RULES.get_active_rules(), RULES.getRules(""), strict=True):
    RULES.at(name, located(rule))


@cache
def front_matter(text: str) -> dict[str, Any]:
    """The YAML between the lines ``---`` at the top of a page; empty if there is none."""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        return (yaml.safe_load(head[1]) if head else None) or {}
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        wrong = text.splitlines()[line].strip()
        raise ChapterError(f"front matter, line {line + 1}: {error.problem}: {wrong!r}") from None


def parse(text: str, page: str) -> list[Token]:
    """The blocks of a text. Refuse a fence that is not closed, and a link's target elsewhere."""
    definitions: dict[str, Any] = {}
    tokens, lines = PARSER.parse(text, definitions), text.splitlines()
    for name in definitions.get("references", {}):
        raise ChapterError(f"{page}: expected [text](target), got a line [{name.lower()}]: …")
    for token in tokens:
        if token.type in FENCES and token.map:
            first, end = token.map
            if end - first < 2 or not lines[end - 1].lstrip(" >").startswith(token.markup):
                raise ChapterError(f"{page}: {lines[first]!r} is not closed by {token.markup}")
    return tokens


def parse_inline(text: str) -> list[Token]:
    """Tokens within a block; ``meta["span"]`` has their places, except for text."""
    tokens: list[Token] = []
    PARSER.inline.parse(text, PARSER, {}, tokens)
    return tokens


def directive(token: Token, page: str) -> Directive | None:
    """The directive that a block is, or None."""
    match = re.fullmatch(r"\{([^\s}]+)\}\s*(.*)", token.info.strip())
    if token.type not in FENCES or not match or not token.map:
        return None
    name, argument = match.groups()
    # A cell's options are YAML, as MyST-NB reads them; those of all others are plain texts.
    plain = name != "code-cell"
    read = parse_directive_text(TestDirective, argument, token.content, validate_options=plain)
    if read.warnings:
        raise ChapterError(f"{page}: directive {{{name}}} {argument}: {read.warnings[0].msg}")
    line = token.map[0] + 1 + read.body_offset
    return Directive(name, argument, read.options, "\n".join(read.body), line)


def walk(
    text: str, page: str = "a page", line: int = 0
) -> Iterator[tuple[Token, Directive | None]]:
    """The blocks of a page and of its directives of prose, titles included.

    Their ``map`` counts the page's lines; the text begins on line ``line``, from 0.
    """
    for token in parse(text, page):
        token.map = [number + line for number in token.map or [0]]
        block = directive(token, page)
        yield token, block
        if block and block.name not in NO_PROSE:
            if block.name in ADMONITIONS:
                yield from walk(block.argument, page, token.map[0])
            yield from walk(block.content, page, block.line)


def directives(text: str, page: str = "a page") -> list[Directive]:
    """The directives of a page, those within others included."""
    return [block for _, block in walk(text, page) if block]
