"""`tools/stub_libraries.py`: libraries that replace those of a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stub_libraries import build_stubs

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not all(map(shutil.which, ("gcc", "nm", "readelf"))), reason="needs binutils"
)

CALL = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).count())"


def _compile(library: Path, source: str, *options: str) -> None:
    library.with_suffix(".c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(library), str(library.with_suffix(".c")), *options]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("version", ["", "libcutest.so "])
def test_a_library_loads_with_stubs(tmp_path: Path, version: str) -> None:
    (tmp_path / "versions").write_text(f"{version}{{ global: *; }};\n")
    _compile(
        tmp_path / "libcutest.so",
        "int cutestDevices() { return 7; }",
        "-Wl,-soname,libcutest.so",
        f"-Wl,--version-script={tmp_path / 'versions'}",
    )
    provider = tmp_path / "provider.so"
    _compile(provider, "int count() { return cutestDevices() + 1; }", f"-L{tmp_path}", "-lcutest")
    counts = []
    for folder in (tmp_path, tmp_path / "stubs"):
        if folder != tmp_path:
            folder.mkdir()
            build_stubs([provider], folder)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        command = [sys.executable, "-c", CALL, str(provider)]
        counts.append(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert counts == [b"8\n", b"1\n"]


def test_a_library_without_a_gpu_needs_no_stubs(tmp_path: Path) -> None:
    plain = tmp_path / "plain.so"
    _compile(plain, "int count() { return 1; }")
    build_stubs([plain], tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plain.c", "plain.so"]
