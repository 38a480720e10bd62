"""The package as a whole: what importing it needs, and that its imports run one way."""

import ast
import subprocess
import sys
from pathlib import Path

from helpers import ROOT

PACKAGE = ROOT / "capsnet"

# Each module may import those before it, and nothing else of the package.
ORDER = [
    "functional", "layers", "model", "__init__",
    "fast.allocator", "fast.convolution", "fast.kernels", "fast.fused",
    "fast.routing", "fast",
    "text", "files", "checkpoint", "data.imageset", "data.archives", "data.augment",
    "data.pictures", "data.folders", "data", "figures.style", "figures.predictions", "figures",
    "predict", "device", "training.loss", "training.config", "training.evaluation",
    "training.run", "training.graph", "training.step", "training.loop", "training",
    "routings.em", "routings.self_attention", "routings.attention",
    "routings.uniform", "routings.fast", "routings.network", "routings",
    "wild.parts", "wild.fast", "wild.deviations", "wild.network", "wild.implementations",
    "wild.subject", "wild.evidence", "wild.evidence_of_primary", "wild.evidence_of_loss",
    "wild.evidence_of_routing", "wild.check", "wild",
    "wild.plugin",
    "export", "bench", "cli.given", "cli.commands", "cli", "__main__",
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


def test_the_fast_arrangement_imports_nothing_heavy() -> None:
    """PyTorch's compiler takes longer to import than PyTorch, and few programs compile."""
    code = (
        "import sys, torch; before = set(sys.modules)\n"
        "import capsnet.fast; new = set(sys.modules) - before\n"
        "print(len(new), 'torch._dynamo' in new)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, compiler = done.stdout.split()
    assert int(modules) <= 10 and compiler == "False"


def test_imports_run_one_way() -> None:
    names = {path: name_of(path) for path in PACKAGE.rglob("*.py")}
    assert set(names.values()) == set(ORDER)
    for path, name in names.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):  # `from` alone says what is taken
                assert not any(a.name.split(".")[0].startswith("capsnet") for a in node.names), path
            if not isinstance(node, ast.ImportFrom):
                continue
            assert node.level == 0 and node.module, f"{path} has a relative import"
            assert not node.module.startswith("torch._"), f"{path} imports what torch may rename"
            package, _, module = node.module.partition(".")
            assert package != "capsnet_book", f"{path} imports what only the book uses"
            if package != "capsnet":
                continue
            for alias in node.names:
                inner = f"{module}.{alias.name}".strip(".")
                target = inner if inner in ORDER else module or "__init__"
                assert ORDER.index(target) < ORDER.index(name), f"{path} imports {target}"


def name_of(path: Path) -> str:
    """capsnet/fast/__init__.py → "fast"; capsnet/__init__.py → "__init__"."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
