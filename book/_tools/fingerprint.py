"""Print a hash of all that the site is built from, so that tests know whether a site is current."""

import hashlib
import subprocess

from address import ROOT, address

NOT_READ = ("experiments/",)


def sources() -> list[str]:
    """The names of the files that a site may depend on, of those that git tracks or would track."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(
        name
        for name in set(names.split("\0"))
        if not name.startswith(NOT_READ) and (ROOT / name).is_file()
    )


def fingerprint() -> str:
    digest = hashlib.sha256(repr(address()).encode())
    for name in sources():
        content = (ROOT / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(fingerprint())
