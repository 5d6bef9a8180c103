"""Build libraries whose functions do nothing, in place of those of a GPU, to list kernels without one."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

GPU_LIBRARY: Final = re.compile(r"lib(cu|nv)")
"""Start of the names of libraries of CUDA and TensorRT."""

DEFINED_ELSEWHERE: Final = re.compile(r"_ITM_|__gcov|__gmon|Provider_GetHost")
"""Start of the names of symbols without a version that no GPU library defines."""


def build_stubs(targets: Iterable[Path], folder: Path) -> None:
    """Build the GPU libraries that some libraries need, with gcc, in a folder.

    Each function returns 0, which stands for success in CUDA.
    """
    functions: dict[str, set[str]] = defaultdict(set)
    versioned = set()
    for target in targets:
        needed = re.findall(r"NEEDED.*\[(.+)\]", _run_command("readelf", "-d", str(target)))
        libraries = [each for each in needed if GPU_LIBRARY.match(each)]
        for line in _run_command("nm", "-D", "--undefined-only", str(target)).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if version in libraries:
                versioned.add(version)
                functions[version].add(name)
            elif not version and libraries and not DEFINED_ELSEWHERE.match(name):
                # the loader finds a symbol without a version in any library
                functions[libraries[0]].add(name)
        for each in libraries:
            functions[each] |= set()
    for library, names in functions.items():
        _build_library(folder / library, names, f"{library} " if library in versioned else "")


def _build_library(library: Path, functions: Iterable[str], version: str) -> None:
    source, script = library.with_name(f"{library.name}.c"), library.with_name(f"{library.name}.map")
    source.write_text("".join(f"long {name}() {{ return 0; }}\n" for name in sorted(functions)))
    script.write_text(f"{version}{{ global: *; }};\n")
    names = [f"-Wl,-soname,{library.name}", f"-Wl,--version-script={script}"]
    _run_command("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", str(library), str(source), *names)


def _run_command(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
