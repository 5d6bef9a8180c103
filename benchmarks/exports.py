"""Models that the exporters of PyTorch write for the networks, in a cache folder.

Exporting takes minutes and needs PyTorch, so a separate process does it once: `python exports.py FOLDER`.
To export with another version of PyTorch, delete the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import HERE

OPSETS = {"TorchScript": (9, 10, 11, 12), "dynamo": (18, 23)}
"""Exporter to the opsets of its models."""


def exports() -> list[Path]:
    """Return the exported models; export them if the cache does not contain them."""
    sources = b"".join((HERE / name).read_bytes() for name in ("exports.py", "networks.py"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "opshift-benchmarks" / hashlib.sha256(sources).hexdigest()[:16]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            models = Path(temporary) / "models"
            models.mkdir()
            command = [sys.executable, __file__, str(models)]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f"{done.stderr}cannot export models; install opshift with the extra 'benchmark'")
            models.rename(folder)  # an export that was interrupted leaves no incomplete folder
    return sorted(folder.iterdir())


def main() -> None:
    """Export each network with each exporter and opset."""
    import torch

    from networks import NETWORKS

    for exporter, opsets in OPSETS.items():
        for opset in opsets:
            for name, network in NETWORKS.items():
                torch.manual_seed(0)
                torch.onnx.export(
                    network.build().eval(),
                    network.inputs,
                    str(Path(sys.argv[1], f"{name}, {exporter} {opset:02}.onnx")),
                    input_names=list(network.dynamic),
                    dynamic_axes=network.dynamic,
                    opset_version=opset,
                    dynamo=exporter == "dynamo",
                    external_data=False,
                )


if __name__ == "__main__":
    main()
