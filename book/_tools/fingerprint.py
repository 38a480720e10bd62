"""Print a hash of all that the site is built from, so that tests know whether a site is current."""

import hashlib
import subprocess

from address import ROOT, address


def fingerprint() -> str:
    """Hash the files that git tracks or would track, but for the experiments, and the address."""
    digest = hashlib.sha256(repr(address()).encode())
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed += [".", ":!experiments"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in sorted({*names.split("\0")}):
        if (ROOT / name).is_file():
            content = (ROOT / name).read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(fingerprint())
