"""The network in one strip at the head of a chapter: where the chapter stands is lit.

It shows what the committed weights make of the first test image, a seven, in seven stages. Text
has the page's colour, a quantity that of the page's variable ``--q-…``.
"""

import base64
import io
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from sphinx.application import Sphinx

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.functional import dynamic_routing
from capsnet_book import ledger
from capsnet_book.figures.tensors import fullest, sheet

# What of the network a chapter is about, and where each stage is explained.
STAGES = {
    "why": "image",
    "squash": "capsules lengths",
    "routing": "votes",
    "layers": "maps capsules",
    "margin": "lengths",
    "decoder": "mask reconstruction",
    "training": "",
    "reading": "lengths reconstruction",
    "routed": "votes",
    "agree": "capsules votes",
    "inside": "lengths reconstruction",
    "annotated": "",
    "converging": "votes",
    "routings": "votes",
}
CHAPTER = {
    "image": "why",
    "maps": "layers",
    "capsules": "layers",
    "votes": "routing",
    "lengths": "margin",
    "mask": "decoder",
    "reconstruction": "decoder",
}
PITCH, SIDE = 100, 44  # of the stages, and of their pictures, in the strip's units


@cache
@torch.no_grad()
def pictures() -> dict[str, tuple[float, str]]:
    """The width of each stage's picture, and the picture as SVG."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    image = to_float(load("mnist", train=False, download=False).images[:1])
    maps = F.relu(model.conv(image))
    u = model.primary(maps)
    u_hat = model.digits.predict(u)
    v = dynamic_routing(u_hat, model.digits.routing_iterations)
    _, lengths, reconstruction = model.read_out(v)
    longest = int(lengths.argmax())
    assert reconstruction is not None  # these weights have a decoder

    grey = sheet(fullest(maps[0].numpy(), 6), 3)
    by_type = sheet(u[0].norm(dim=1).unflatten(0, (-1, 6, 6)).numpy(), 8)
    some = u_hat[0, ::48, longest].abs().T.numpy()  # 24 children
    kept = v[0, longest].abs().tolist()
    bars = "".join(
        f'<rect x="{8 * j}" y="{SIDE * (1 - length):.1f}" width="6" height="{SIDE * length:.1f}" '
        f'fill="{"var(--q-v)" if j == longest else "currentColor"}"/>'
        for j, length in enumerate(lengths[0].tolist())
    )
    cell = SIDE / len(lengths[0])
    row = "".join(
        f'<rect x="{cell * d:.1f}" y="{cell * longest:.1f}" width="{cell}" height="{cell}" '
        f'fill="var(--q-v)" opacity="{number / max(kept):.2f}"/>'
        for d, number in enumerate(kept)
    )
    dark = f'<rect width="{cell * len(kept):.1f}" height="{SIDE}" opacity=".25"/>'
    return {
        "image": (SIDE, pixels(image[0, 0].numpy(), SIDE)),
        "maps": (66, pixels(grey / np.nanmax(grey), 66)),
        "capsules": (88, tinted(by_type, 88, "u")),
        "votes": (66, tinted(some / some.max(), 66, "uhat")),
        "lengths": (78, bars),
        "mask": (cell * len(kept), dark + row),
        "reconstruction": (SIDE, pixels(reconstruction[0, 0].numpy(), SIDE)),
    }


def pixels(values: NDArray[np.floating], width: float) -> str:
    """Numbers in 0 … 1 as grey pixels, a nan as a transparent one."""
    height = width * values.shape[0] / values.shape[1]
    grey_and_opaque = np.dstack([np.nan_to_num(values).round(2), ~np.isnan(values)])
    buffer = io.BytesIO()
    Image.fromarray(np.uint8(255 * grey_and_opaque)).save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<image width="{width}" height="{height:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def tinted(values: NDArray[np.floating], width: float, quantity: str) -> str:
    """Numbers in 0 … 1 as pixels in a quantity's colour, transparent where they are 0."""
    height = width * values.shape[0] / values.shape[1]
    return (
        f'<mask id="strip-{quantity}">{pixels(values, width)}</mask><rect width="{width}" '
        f'height="{height:.1f}" fill="var(--q-{quantity})" mask="url(#strip-{quantity})"/>'
    )


def add_strip(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    chapter = page.removeprefix("book/")
    if chapter not in STAGES:
        return
    stages = "".join(
        f'<a href="{context["pathto"](f"book/{CHAPTER[name]}")}" aria-label="{name}">'
        f'<g class="stage{" here" if name in STAGES[chapter].split() else ""}" '
        f'transform="translate({PITCH * i} 0)">'
        f'<g transform="translate({(PITCH - width) / 2:.1f} 2)">{drawn}</g>'
        f'<text x="{PITCH // 2}" y="64">{name}</text></g></a>\n'
        for i, (name, (width, drawn)) in enumerate(pictures().items())
    )
    context["body"] = (
        f'<nav class="strip" aria-label="The stages of the network">'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PITCH * len(CHAPTER)} 70" '
        f'fill="currentColor" font-size="13" text-anchor="middle">\n{stages}</svg>\n</nav>'
    ) + context["body"]


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", add_strip, priority=450)
