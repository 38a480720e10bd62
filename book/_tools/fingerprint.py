"""Print a hash of all that the site is built from, so that tests know whether a site is current."""

import hashlib
import subprocess

from address import ROOT, address

# What an archive, which is no git repository, may hold besides the repository's files.
MADE = {"_build", "build", "mutants", "runs"}


def names() -> set[str]:
    """The files that git tracks or would track, but for the experiments."""
    if (ROOT / ".git").exists():  # else git would look in the folders above
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed += [".", ":!experiments"]
        output = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return {*output.split("\0")}
    found: set[str] = set()
    for top in ROOT.iterdir():
        if not top.name.startswith(".") and top.name not in MADE | {"experiments"}:
            paths = [top, *top.rglob("*")]
            found |= {str(path.relative_to(ROOT)) for path in paths if path.suffix != ".pyc"}
    return found


def fingerprint() -> str:
    """Hash what the site is built from: :func:`names` with their contents, and the address."""
    digest = hashlib.sha256(repr(address()).encode())
    for name in sorted(names()):
        if (ROOT / name).is_file():
            content = (ROOT / name).read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(fingerprint())
