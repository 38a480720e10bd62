"""``make notebooks``: the pictures that stand outside of chapters, from the committed weights.

On the book's first page and in the README, the first test image of each digit and what the decoder
draws of it; at the head of the chapters, a strip of what the network makes of one seven.
"""

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image

from address import ROOT
from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.files import write_atomically
from capsnet.functional import dynamic_routing
from capsnet_book import ledger
from capsnet_book.figures.macros import css_name
from capsnet_book.figures.network import fullest, sheet
from capsnet_lab.figures.predictions import contact_sheet
from capsnet_lab.figures.style import QUANTITIES

STATIC = ROOT / "book" / "_static"
PICTURE, STRIP = STATIC / "reconstructions.png", STATIC / "strip.svg"
PITCH, SIDE = 100, 44  # of the strip's stages, and of their pictures, in the strip's units


def draw() -> bytes:
    """The reconstructions as PNG."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    test = load("mnist", train=False, download=False)
    first = torch.stack([(test.labels == digit).nonzero()[0, 0] for digit in range(10)])
    labels, images = test.labels[first], test.images[first]
    with torch.no_grad():
        out = model(to_float(images), labels)
    cells = zip(images, out.reconstruction, strict=True)
    figure = contact_sheet([(image, drawn, "", "", True) for image, drawn in cells])
    return figure.png()


@torch.no_grad()
def strip() -> str:
    """What the network makes of the first test image, a seven, in seven stages, as SVG.

    Each is a group of class ``stage``, so that a page's style can light one of them. Text has the
    page's colour, a quantity that of the page's variable ``--q-…``.
    """
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    image = to_float(load("mnist", train=False, download=False).images[:1])
    maps = F.relu(model.conv(image))
    u = model.primary(maps)
    u_hat = model.digits.predict(u)
    v = dynamic_routing(u_hat, model.digits.routing_iterations)
    _, lengths, drawing = model.read_out(v)
    longest = int(lengths.argmax())
    assert drawing is not None  # these weights have a decoder

    grey = sheet(fullest(maps[0].numpy(), 6), 3)
    by_type = sheet(u[0].norm(dim=1).unflatten(0, (-1, 6, 6)).numpy(), 8)
    some = u_hat[0, ::48, longest].abs().T.numpy()  # 24 children
    kept = v[0, longest].abs().tolist()
    bars = "".join(
        f'<rect x="{8 * j}" y="{SIDE * (1 - length):.1f}" width="6" height="{SIDE * length:.1f}" '
        f'fill="{colour("v") if j == longest else "currentColor"}"/>'
        for j, length in enumerate(lengths[0].tolist())
    )
    cell = SIDE / len(lengths[0])
    row = "".join(
        f'<rect x="{cell * d:.1f}" y="{cell * longest:.1f}" width="{cell}" height="{cell}" '
        f'fill="{colour("v")}" opacity="{number / max(kept):.2f}"/>'
        for d, number in enumerate(kept)
    )
    dark = f'<rect width="{cell * len(kept):.1f}" height="{SIDE}" opacity=".25"/>'
    pictures = {
        "image": (SIDE, pixels(image[0, 0].numpy(), SIDE)),
        "maps": (66, pixels(grey / np.nanmax(grey), 66)),
        "capsules": (88, tinted(by_type, 88, "u")),
        "votes": (66, tinted(some / some.max(), 66, "u_hat")),
        "lengths": (78, bars),
        "mask": (cell * len(kept), dark + row),
        "drawing": (SIDE, pixels(drawing[0, 0].numpy(), SIDE)),
    }
    stages = "".join(
        f'<g class="stage" data-stage="{name}" transform="translate({PITCH * i} 0)">'
        f'<g transform="translate({(PITCH - width) / 2:.1f} 2)">{drawn}</g>'
        f'<text x="{PITCH // 2}" y="64">{name}</text></g>\n'
        for i, (name, (width, drawn)) in enumerate(pictures.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PITCH * len(pictures)} 70" '
        f'fill="currentColor" font-size="16" text-anchor="middle">\n{stages}</svg>\n'
    )


def colour(quantity: str) -> str:
    """Of a quantity: the page's, or its own."""
    return f"var(--q-{css_name(quantity)}, {QUANTITIES[quantity].colour})"


def pixels(values: NDArray[np.floating], width: float) -> str:
    """Numbers in 0 … 1 as grey pixels, a nan as a transparent one."""
    height = width * values.shape[0] / values.shape[1]
    buffer = io.BytesIO()
    grey = np.uint8(255 * np.nan_to_num(values).round(2))
    drawn = Image.fromarray(grey)
    if np.isnan(values).any():
        drawn.putalpha(Image.fromarray(np.uint8(255 * ~np.isnan(values))))
    drawn.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<image width="{width}" height="{height:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def tinted(values: NDArray[np.floating], width: float, quantity: str) -> str:
    """Numbers in 0 … 1 as pixels in a quantity's colour, transparent where they are 0."""
    height = width * values.shape[0] / values.shape[1]
    name = f"strip-{css_name(quantity)}"
    return (
        f'<mask id="{name}">{pixels(values, width)}</mask><rect width="{width}" '
        f'height="{height:.1f}" fill="{colour(quantity)}" mask="url(#{name})"/>'
    )


EMBEDDED = r"data:image/png;base64,([^\"]+)"
DECIMAL = r"\d+\.\d+"


def same_png(one: bytes, other: bytes) -> bool:
    """Whether two PNGs differ by no more than another machine's rounding."""
    a, b = (np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"), float) for png in (one, other))
    return a.shape == b.shape and np.abs(a - b).mean() < 1  # of 255


def same_strip(one: bytes, other: bytes) -> bool:
    """Whether two strips differ by no more than another machine's rounding."""
    texts = [re.sub(EMBEDDED, "", svg.decode()) for svg in (one, other)]
    if len({re.sub(DECIMAL, "", text) for text in texts}) > 1:
        return False
    numbers = [np.array(re.findall(DECIMAL, text), dtype=float) for text in texts]
    pictures = [map(base64.b64decode, re.findall(EMBEDDED, svg.decode())) for svg in (one, other)]
    return np.allclose(numbers[0], numbers[1], rtol=0, atol=0.11) and all(
        same_png(a, b) for a, b in zip(*pictures, strict=True)
    )


def update(path: Path, drawn: bytes, same: Callable[[bytes, bytes], bool]) -> None:
    """Write a picture, unless the committed file shows the same one."""
    if not path.exists() or not same(path.read_bytes(), drawn):
        write_atomically(path, drawn)


if __name__ == "__main__":
    update(PICTURE, draw(), same_png)
    update(STRIP, strip().encode(), same_strip)
