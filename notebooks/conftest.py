"""What nbval must know to verify the notebooks, on a slow machine and with many workers too."""

import os
from typing import Any

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # more threads than cores would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cells = [item for item in items if item.path.suffix == ".ipynb"]
    if not cells:
        return
    config.option.nbval_kernel_startup_timeout = 300  # seconds, of 60
    for cell in cells:
        cell.output_timeout = 120  # seconds from a cell's end to its output, of 5
    for notebook in {cell.parent for cell in cells}:
        # Drawings are pictures, as PNGs are, and are not compared byte by byte.
        notebook.skip_compare += ("image/svg+xml",)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all cells of a notebook to one worker, whatever ``--dist`` says.

    They share a kernel: the second half of a notebook fails where the first did not run.
    """
    if not getattr(config.option, "nbval", False):
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Notebooks(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0] if ".ipynb::" in nodeid else nodeid

    return Notebooks(config, log)
