"""What libraries do again and again while they build a book, done once: a sixth of its time."""

from functools import cache

import pybtex.plugin
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish


def setup(app: Sphinx) -> None:
    # Each citation would look for its style among all packages that are installed.
    pybtex.plugin._load_entry_point = cache(pybtex.plugin._load_entry_point)
    # Each occurrence of a word would be stemmed for the search.
    SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign]
