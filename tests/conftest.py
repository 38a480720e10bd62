"""What every test shares: markers, seeds, and a few fixtures."""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from capsnet.fast.convolution import cached_transform
from capsnet.fast.routing import has_triton
from helpers import Refuses

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# The same examples in every run: a red build means that the code changed, not the dice.
hypothesis.settings.register_profile("capsnet", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("capsnet")

# The tensors of the tests are tiny: threads that wait for each other cost more than they bring.
torch.set_num_threads(1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    torch.manual_seed(0)


@pytest.fixture
def refuses() -> Refuses:
    """``with refuses("expected", "got")``: a ValueError of one line that contains every part."""

    @contextmanager
    def check(*parts: object) -> Iterator[None]:
        with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
            yield
        message = str(caught.value)
        for part in parts:
            assert str(part) in message

    return check


@pytest.fixture
def inductor() -> Iterator[None]:
    """Skip where torch.compile finds no C++ compiler; leave no compiled code behind."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++")):
        pytest.skip("torch.compile needs a C++ compiler: none of $CXX, g++, clang++ was found")
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device that the module supports; a missing one is skipped aloud."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    return torch.device(request.param)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: this machine's, or the one that Playwright installs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, (*BROWSERS, own))), None)
        if found is None:
            missing = f"no Chromium: the pages are NOT tested (tried {BROWSERS}, {own})"
            assert not os.environ.get("CI"), missing
            pytest.skip(missing)
        # A camera that shows a test picture, which no page has to ask for.
        flags = ["--no-sandbox", "--disable-gpu", "--use-fake-device-for-media-stream"]
        flags += ["--use-fake-ui-for-media-stream"]
        chromium = playwright.chromium.launch(executable_path=found, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """CUDA on any machine: fake tensors have a device and a shape, and no values.

    Operations that mix devices raise, and so does a read of a value by the host, which on a GPU
    waits until everything before it is computed.
    """
    # Weights are drawn with a look at their values, and fake tensors have no memory to pin.
    monkeypatch.setattr(nn.init, "trunc_normal_", lambda weight, **_: weight)
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr("capsnet.fast.fast_capsnet.fast_equals_plain", lambda: True)
    if importlib.util.find_spec("triton") is not None:
        monkeypatch.setattr("capsnet.fast.fused.triton_works", lambda: True)
    has_triton.cache_clear()
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield torch.device("cuda", 0)
    for kept in (cached_transform, has_triton):  # of this device that is none
        kept.cache_clear()
