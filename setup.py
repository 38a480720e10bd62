"""What pyproject.toml cannot say of the package: its readme, and the weights that it brings."""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

shutil.rmtree("build/lib", ignore_errors=True)  # it keeps modules that were removed since


class WithWeights(build_py):
    """Brings the small network, which a checkout has in the ledger: see capsnet/pretrained.py."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            weights = Path(self.build_lib, "capsnet", "mnist-small.safetensors")
            self.copy_file("results/page/weights.safetensors", str(weights))


readme = Path("README.md").read_text(encoding="utf-8")
readme = re.sub(r'<img src="(?!https:)[^>]*>', "", readme)
readme = re.sub(r"\[([^]]*)\]\((?!https:)[^)]*\)", r"\1", readme)  # to files of the checkout

setup(
    cmdclass={"build_py": WithWeights},
    long_description=readme,
    long_description_content_type="text/markdown",
)
