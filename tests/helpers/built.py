"""The book as a site, built from the committed notebooks: once for all tests."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import notebooks

ROOT = notebooks.ROOT
FOLDERS: list[tempfile.TemporaryDirectory] = []  # removed when the tests end


@dataclass
class Site:
    folder: Path
    log: str
    seconds: float  # of processor time that the build took

    @functools.cached_property
    def pages(self) -> dict[Path, str]:
        """Every page of the book with its text, by path from the site's folder."""
        paths = sorted({*self.folder.rglob("*.html")} - {*self.folder.glob("_static/**/*.html")})
        return {path.relative_to(self.folder): path.read_text("utf-8") for path in paths}


def build(root: Path) -> Site:
    """Build the book in an empty folder, from what git tracks or would track."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if not name.startswith(("data/", "benchmarks/")) and (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    before = os.times()
    notebooks.stage(root)
    jb = Path(sys.executable).with_name("jb")
    result = subprocess.run(
        [jb, "build", "--all", "-W", "-n", "--keep-going", "."],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    told = re.findall(r".*(?:WARNING|ERROR|Error).*", result.stdout)
    assert result.returncode == 0, "\n".join(told or [result.stdout])
    seconds = sum(os.times()[:4]) - sum(before[:4])
    return Site(root / "_build" / "html", result.stdout, seconds)


@functools.cache
def site() -> Site:
    """The book, built when the first test asks for it."""
    return build(new_folder("site"))


def new_folder(name: str) -> Path:
    FOLDERS.append(tempfile.TemporaryDirectory(prefix=f"capsnet-{name}-"))
    return Path(FOLDERS[-1].name)
