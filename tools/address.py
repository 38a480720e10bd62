"""Write the repository's address into _config.yml, the only place where it stands.

The links to Colab and to sources, and the first cell of every notebook, follow with `make book`;
nothing is executed for it.

    python tools/address.py https://github.com/somebody/something main
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES = r"(?m)^(repository:\n  url: )(\S+)(.*\n  branch: )(\S+)"


def fill_in(config: str, url: str, branch: str) -> str:
    """The text of _config.yml with this address.

    Raises:
        ValueError: the address is none that Colab opens, or _config.yml has no place for it.
    """
    url = url.removesuffix("/").removesuffix(".git")
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise ValueError(f"expected https://github.com/<owner>/<repository>, got {url!r}")
    if not re.fullmatch(r"[\w./-]+", branch):
        raise ValueError(f"expected the name of a branch, got {branch!r}")
    text, count = re.subn(LINES, rf"\g<1>{url}\g<3>{branch}", config)
    if count != 1:
        raise ValueError("_config.yml has no lines repository: url: and branch: to fill in")
    return text


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path = ROOT / "_config.yml"
    try:
        path.write_text(fill_in(path.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8")
    except ValueError as error:
        sys.exit(str(error))
