"""Print a hash of all that the site is built from, so that tests know whether a site is current."""

import hashlib

from address import ROOT
from notes import contracts

# What a checkout may hold besides the site's sources.
OTHER = {"_build", "build", "experiments", "mutants", "runs", "tests"}


def source_files() -> set[str]:
    """The files of the checkout, but for what is made from them, the experiments and the tests."""
    tops = [top for top in ROOT.iterdir() if top.name[0] != "." and top.name not in OTHER]
    paths = [path for top in tops for path in (top, *top.rglob("*")) if path.suffix != ".pyc"]
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_file()}


def fingerprint() -> str:
    """Hash what the site is built from: files and their contents, and the names of the tests that a
    page lists under an equation.
    """
    digest = hashlib.sha256(repr(contracts(ROOT)).encode())
    for name in sorted(source_files()):
        content = (ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(fingerprint())
