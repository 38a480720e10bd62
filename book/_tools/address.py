"""The repository's public address, for the book's links and for who runs its notebooks.

``_config.yml`` says it (``repository: url:``). Where that is empty there is none, and nothing
pretends that there is.
"""

from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]


class Address(NamedTuple):
    url: str  # https://HOST/OWNER/NAME, or empty where there is none
    branch: str

    def site(self) -> str:
        """Where GitHub or GitLab publishes the pages of the repository; empty if on neither."""
        owner, _, name = self.url.partition("//")[2].partition("/")[2].partition("/")
        forge = "gitlab" if "gitlab" in self.url else "github"
        host = f"{owner}.{forge}.io"
        return f"https://{host}/{name}/".replace(f"/{host}/{host}/", f"/{host}/") if owner else ""

    def hosts(self, notebook: str) -> dict[str, str]:
        """The services that run a notebook, each with its address; none if not on GitHub."""
        github = "https://github.com/"
        if not self.url.startswith(github):
            return {}
        name, file = self.url.removeprefix(github), f"{self.branch}/{notebook}"
        return {
            "Colab": f"https://colab.research.google.com/github/{name}/blob/{file}",
            "Kaggle": f"https://www.kaggle.com/kernels/welcome?src={self.url}/blob/{file}",
            "Binder": f"https://mybinder.org/v2/gh/{name}/{self.branch}?urlpath=lab/tree/{notebook}",
        }


def address(root: Path = ROOT) -> Address:
    """The address of the checkout at ``root``."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    return Address(config["url"].removesuffix("/"), config["branch"])
