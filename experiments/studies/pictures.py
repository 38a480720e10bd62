"""How many photographed digits does the committed network classify correctly?

    python -m experiments.studies.pictures

Twenty of MNIST's test digits are printed on made-up photographs in hard light. The network sees
each as `capsnet predict` prepares it ("now"), and cropped, scaled and centred by mass, nothing else
("naive"). The record has more sets of pictures, and how the reader did before it was made for soft
ones; those counts are kept as they are.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.files import write_json
from capsnet_book import ledger
from capsnet_book.photographs import LIGHTS, photograph
from capsnet_lab.pictures import border, place, read_picture
from experiments.running import LEDGER

RECORD = LEDGER / "pictures" / "readings.json"
COUNT = 20  # digits


def crop_and_centre(path: Path) -> Tensor:
    """Cropped to the ink, scaled to 20 pixels, centred by mass, and nothing else."""
    grey = np.asarray(Image.open(path).convert("L")).astype(float)
    ink = np.abs(grey - np.median(border(grey)))
    cropped = Image.fromarray(ink.astype(np.uint8)).crop(
        Image.fromarray(ink > 0.1 * ink.max()).getbbox()
    )
    method = Image.Resampling.BICUBIC if max(cropped.size) < 20 else Image.Resampling.BOX
    width, height = (max(1, round(20 * side / max(cropped.size))) for side in cropped.size)
    small = np.asarray(cropped.resize((width, height), method))
    top, left = (round(13.5 - middle) for middle in ndimage.center_of_mass(small))
    return torch.from_numpy(place(small, top, left, 28, 28)).unsqueeze(0)


@torch.no_grad()
def main() -> None:
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    test = load("mnist", train=False).subset(slice(COUNT))
    document = json.loads(RECORD.read_text())
    recorded = {found["pictures"]: found for found in document["sets"]}
    for light in LIGHTS.keys() & recorded:
        seen: dict[str, list[Tensor]] = {"naive": [], "now": []}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "digit.jpg")
            for digit in test.images[:, 0]:
                photograph(Image.fromarray(digit.numpy()), light).save(path, quality=75)
                seen["naive"].append(crop_and_centre(path))
                seen["now"].append(read_picture(path, (1, 28, 28), "digit"))
        for way, images in seen.items():
            answers = model(to_float(torch.stack(images))).lengths.argmax(dim=1)
            recorded[light][way] = int((answers == test.labels).sum())
        print(light, recorded[light]["naive"], recorded[light]["now"], flush=True)
    write_json(RECORD, document, indent=None)


if __name__ == "__main__":
    main()
