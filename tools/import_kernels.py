"""Write the kernels of releases of onnxruntime for the CPU to `opsets/runtimes/onnxruntime/`.

    python tools/import_kernels.py 1.30.0 1.31.1

Each wheel is installed from PyPI into a temporary folder, and a separate process lists its kernels.
Releases before 1.16 cannot. A file contains the differences from the newest older release that has a file.
Existing files are not changed. Then run tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opshift.registry.runtimes.files import version_numbers
from runtime_files import file_text, new_path, onnxruntime_facts, onnxruntime_rows

LIST_KERNELS: Final = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
kernels = [each for each in state.get_all_opkernel_def() if each.provider == "CPUExecutionProvider"]
print(json.dumps([(k.domain, k.op_name, k.version_range, k.type_constraints) for k in kernels]))
"""

NUMPY: Final = "numpy<2"
"""Releases before 1.19 need it, and newer ones accept it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="+", help="releases of onnxruntime")
    versions: list[str] = parser.parse_args(arguments).versions
    for version in sorted(versions, key=version_numbers):
        path = new_path("onnxruntime", version)
        path.write_text(cpu_file_text(version, installed_kernels(version)), "utf-8")


def cpu_file_text(version: str, listed: Iterable[Any]) -> str:
    """Return the content of the file of a release for the CPU, given its kernels."""
    facts = onnxruntime_facts(version, "cpu")
    source = f"https://pypi.org/project/onnxruntime/{version}/"
    rows = onnxruntime_rows(listed, facts["opsets"]["ai.onnx"])
    return file_text("onnxruntime", version, facts, rows, ("kernel_registry", source))


def installed_kernels(version: str) -> list[Any]:
    """Install a release into a temporary folder, and return its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"onnxruntime=={version}", NUMPY], check=True)
        return list_kernels({**os.environ, "PYTHONPATH": folder})


def list_kernels(environment: Mapping[str, str]) -> list[Any]:
    """Return the kernels of the onnxruntime that a new process with this environment imports."""
    command = [sys.executable, "-c", LIST_KERNELS]
    result = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    return list(json.loads(result.stdout))


if __name__ == "__main__":
    main()
