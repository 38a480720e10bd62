"""The package as a whole: what importing it needs, and that its imports run one way."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "capsnet"

# Each file may import those before it, and nothing else of the package.
ORDER = [
    "functional", "layers", "model", "__init__", "memory", "ledger", "intervals", "fourier",
    "routing", "fast",
    "pictures", "data", "figures", "checkpoint", "evaluation", "machine", "run", "training",
    "export", "bench", "cli", "__main__",
]  # fmt: skip


def test_import_needs_torch_only() -> None:
    """In an interpreter that refuses every other package of pyproject.toml."""
    others = (
        "torchvision", "safetensors", "lightning_fabric", "tensorboard", "tqdm", "PIL",
        "matplotlib", "onnx", "onnxruntime", "onnxscript",
    )  # fmt: skip
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({others!r}))\n"  # None makes an import fail
        "import torch\n"
        "from capsnet import CapsNet, PrimaryCapsules, CapsuleLayer, Decoder\n"
        "from capsnet.functional import squash\n"
        "print(CapsNet()(torch.zeros(1, 1, 28, 28)).lengths.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch.Size([1, 10])\n"


def test_imports_run_one_way() -> None:
    paths = {
        path: path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for path in PACKAGE.rglob("*.py")
    }
    assert set(paths.values()) == set(ORDER)
    for path, name in paths.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):  # `from` alone says what is taken
                assert not any(a.name.split(".")[0] == "capsnet" for a in node.names), path
            if not isinstance(node, ast.ImportFrom):
                continue
            assert node.level == 0 and node.module, f"{path} has a relative import"
            if node.module == "capsnet":
                targets = [a.name if a.name in ORDER else "__init__" for a in node.names]
            elif node.module.startswith("capsnet."):
                targets = [node.module.split(".")[1]]
            else:
                continue
            for target in targets:
                within = (
                    target == name and path.stem != name
                )  # figures/results.py imports figures/style.py
                assert within or ORDER.index(target) < ORDER.index(name), f"{path} imports {target}"
