"""The book as a site, built from the committed notebooks: once, however many processes test it."""

import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

import make_notebooks as notebooks
from address import ROOT, address
from fingerprint import fingerprint, sources

OWN = ROOT / "_build" / "tests"  # where the tests build a site, if that of `make book` is old
STAMP = ".fingerprint"


@dataclass
class Site:
    folder: Path

    @functools.cached_property
    def pages(self) -> dict[Path, str]:
        """Every page of the book with its text, by path from the site's folder."""
        paths = sorted({*self.folder.rglob("*.html")} - {*self.folder.glob("_static/**/*.html")})
        return {path.relative_to(self.folder): path.read_text("utf-8") for path in paths}


@functools.cache
def site() -> Site:
    """The book as it is now, by `make book` or built here."""
    OWN.parent.mkdir(exist_ok=True)
    with FileLock(OWN.with_suffix(".lock")):
        wanted = fingerprint()
        for folder in (ROOT / "_build" / "html", OWN / "_build" / "html"):
            stamp = folder / STAMP
            if stamp.is_file() and stamp.read_text().strip() == wanted:
                return Site(folder)
        shutil.rmtree(OWN, ignore_errors=True)
        built, _ = build(copy(OWN))
        (built.folder / STAMP).write_text(wanted)
        return built


def copy(root: Path) -> Path:
    """Copy what the book is built from, the repository's address included, to an empty folder."""
    for name in sources():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    config = (root / "_config.yml").read_text()
    url = f'  url: "{address().url}"'
    (root / "_config.yml").write_text(config.replace('  url: ""', url))
    return root


def build(root: Path) -> tuple[Site, str]:
    """Build the book in a folder that has its sources; return the site and the build's output."""
    notebooks.stage(root)
    result = subprocess.run(
        [Path(sys.executable).with_name("jb"), "build", "--all", "-W", "-n", "--keep-going", "."],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "book")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    faults = re.findall(r".*(?:WARNING|ERROR|Error).*", result.stdout)
    assert result.returncode == 0, "\n".join(faults or [result.stdout])
    return Site(root / "_build" / "html"), result.stdout
