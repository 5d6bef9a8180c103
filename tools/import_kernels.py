"""Write the kernels of releases of onnxruntime for the CPU, or for CUDA, to `opsets/runtimes/`.

    python tools/import_kernels.py 1.30.0 1.31.1
    python tools/import_kernels.py --provider cuda 1.31.1

Each wheel is installed from PyPI into a temporary folder, and a separate process lists its kernels.
Releases before 1.16 cannot, nor those of onnxruntime-gpu before 1.23. CUDA needs gcc, readelf and nm, but no
GPU: see stub_libraries.py.
A file contains the differences from the newest older release that has a file. Existing files are not changed.
Then run tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from opshift.registry.releases import version_numbers
from runtime_files import file_text, new_path, onnxruntime_facts, onnxruntime_rows
from stub_libraries import build_stubs

LIST_KERNELS: Final = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
kernels = state.get_all_opkernel_def()
print(json.dumps([(k.provider, (k.domain, k.op_name, k.version_range, k.type_constraints)) for k in kernels]))
"""

NUMPY: Final = "numpy<2"
"""NumPy versions that releases before 1.19 require, and that newer releases accept."""


class Source(NamedTuple):
    """Origin of the kernels of a provider."""

    runtime: str
    package: str
    provider: str
    """Name of the provider in onnxruntime."""


SOURCES: Final = {
    "cpu": Source("onnxruntime", "onnxruntime", "CPUExecutionProvider"),
    "cuda": Source("onnxruntime-cuda", "onnxruntime-gpu", "CUDAExecutionProvider"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="+", help="releases of onnxruntime")
    parser.add_argument("--provider", choices=SOURCES, default="cpu")
    options = parser.parse_args(arguments)
    for version in sorted(options.versions, key=version_numbers):
        path = new_path(SOURCES[options.provider].runtime, version)
        listed = installed_kernels(version, options.provider)
        path.write_text(kernel_file_text(version, listed, options.provider), "utf-8")
        print(f"wrote {path}")


def kernel_file_text(version: str, listed: Iterable[Any], provider: str = "cpu") -> str:
    """Return the content of the file of a release, given its kernels for one provider."""
    runtime, package, _ = SOURCES[provider]
    facts = onnxruntime_facts(version, provider)
    source = f"https://pypi.org/project/{package}/{version}/"
    rows = onnxruntime_rows(listed, facts["opsets"]["ai.onnx"])
    return file_text(runtime, version, facts, rows, ("kernel_registry", source))


def installed_kernels(version: str, provider: str) -> list[Any]:
    """Install a release into a temporary folder, and return its kernels for a provider."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"{SOURCES[provider].package}=={version}", NUMPY], check=True)
        build_stubs(Path(folder, "onnxruntime", "capi").glob("libonnxruntime_providers_*.so"), Path(folder))
        return list_kernels({**os.environ, "PYTHONPATH": folder, "LD_LIBRARY_PATH": folder}, provider)


def list_kernels(environment: Mapping[str, str], provider: str = "cpu") -> list[Any]:
    """Return the kernels of the onnxruntime that a new process imports in this environment."""
    command = [sys.executable, "-c", LIST_KERNELS]
    result = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    return [kernel for name, kernel in json.loads(result.stdout) if name == SOURCES[provider].provider]


if __name__ == "__main__":
    main()
