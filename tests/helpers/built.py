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
from address import ROOT
from fingerprint import fingerprint

OWN = ROOT / "_build" / "tests"  # where the tests build a site, if that of `make book` is old


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
            stamp = folder / ".fingerprint"
            if stamp.is_file() and stamp.read_text().strip() == wanted:
                return Site(folder)
        shutil.rmtree(OWN, ignore_errors=True)
        notebooks.stage()
        jb = [Path(sys.executable).with_name("jb"), "build", "--all", "-W", "-n", "--keep-going"]
        result = subprocess.run(
            [*jb, "--path-output", OWN, ROOT],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "book")])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        faults = re.findall(r".*(?:WARNING|ERROR|Error).*", result.stdout)
        assert result.returncode == 0, "\n".join(faults or [result.stdout])
        assert "Executing notebook" not in result.stdout
        stamp.write_text(wanted)
        return Site(folder)
