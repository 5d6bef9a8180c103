"""Files that the conversion page of the site loads: Pyodide, opshift and its dependencies."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from opshift.catalogue.software_bill import NAME as SOFTWARE_BILL
from opshift.catalogue.software_bill import Component, component, installed_component, software_bill
from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.registry.runtimes.files import RUNTIMES, compiled_runtimes

PYODIDE_VERSION: Final = "314.0.7"
PYODIDE_URL: Final = f"https://registry.npmjs.org/pyodide/-/pyodide-{PYODIDE_VERSION}.tgz"
PYODIDE_SHA512: Final = (
    "d18bd7c4485f11da4b7dbfd790cd8114078c44eab488c517d9bcf31fda4eb6dc"
    "8c716930abe1db139bb2b860fcd8b37bcb6abe48dbe2ffa579244b0e943d91d4"
)

FOLDER: Final = "converter"
"""Folder in the site for the files that the page loads."""

STATIC: Final = Path(__file__).parent / "static"

PLAIN: Final = ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip")
"""Files of Pyodide that are copied. `COMPRESSED` is stored compressed, as not every host compresses it."""

LOCK: Final = "pyodide-lock.json"
"""Lock file of Pyodide; its list of packages is emptied, because the site hosts none of these packages."""

COMPRESSED: Final = "pyodide.asm.wasm"

IMPORTED: Final = ("google.protobuf", "markdown_it", "mdurl")
"""Packages that the page always imports. They are pure Python, or have a pure Python implementation."""

ON_DEMAND: Final = ("networkx",)
"""Packages that the page loads only for the few models that need them."""

DISTRIBUTIONS: Final = ("protobuf", "markdown-it-py", "mdurl", "networkx")
"""Distributions of the packages in `IMPORTED` and `ON_DEMAND`."""

UNUSED: Final = (
    "analysis/verification/",
    "batch/",
    "catalogue/",
    "cli/",
    "compat/",
    "docs/",
    "proposals/",
    "data/",
    "opsets/runtimes/",
    "opsets/examples.yaml",
)
"""Prefixes of the paths of opshift files that `packages.bin` omits, except for the page's own modules."""

PATTERNS: Final = "opshift/converter/recognition/compiled.json"
"""Compiled patterns of subgraphs, which only conversions with the option `recognize` read."""


def converter_files(version: str) -> dict[str, bytes]:
    """Return the files of the page by path; `version` is the version of opshift, for the software bill.

    Raises:
        UsageError: Pyodide cannot be downloaded.
    """
    files = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    with tarfile.open(fileobj=io.BytesIO(_pyodide_archive())) as archive:
        for name in (*PLAIN, LOCK, COMPRESSED):
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            files[name] = member.read()
    files[f"{COMPRESSED}.bin"] = _compress_content(files.pop(COMPRESSED))
    files[LOCK] = json.dumps({**json.loads(files[LOCK]), "packages": {}}).encode()
    packages = {path: content for name in IMPORTED for path, content in _package_files(name)}
    own = dict(_opshift_files())
    files["patterns.bin"] = _pack_files({PATTERNS: own.pop(PATTERNS)})
    files["packages.bin"] = _pack_files({**packages, **own})
    files |= {f"{name}.bin": _pack_files(dict(_package_files(name))) for name in ON_DEMAND}
    files["runtimes.bin"] = _pack_files(_runtime_files())
    files[SOFTWARE_BILL] = software_bill(version, _components(json.loads(files[LOCK]))).encode()
    return {f"{FOLDER}/{name}": content for name, content in files.items()}


def _components(lock: Mapping[str, Any]) -> list[Component]:
    """Return the components of the software bill besides opshift: Pyodide, Python and packages."""
    python = str(lock["info"]["python"])
    return [
        {
            **component("pyodide", PYODIDE_VERSION, "MPL-2.0", f"pkg:npm/pyodide@{PYODIDE_VERSION}"),
            "hashes": [{"alg": "SHA-512", "content": PYODIDE_SHA512}],
        },
        component("cpython", python, "PSF-2.0", f"pkg:generic/cpython@{python}"),
        *map(installed_component, DISTRIBUTIONS),
    ]


def digest(files: Mapping[str, bytes]) -> str:
    """Return a digest of the paths and contents of files."""
    found = hashlib.sha256()
    for path, content in sorted(files.items()):
        found.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return found.hexdigest()[:16]


def _pyodide_archive() -> bytes:
    """Return the archive of Pyodide from the user's cache, or download and cache it."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(base, "opshift", PYODIDE_URL.rpartition("/")[2])
    content = path.read_bytes() if path.exists() else b""
    if _is_pyodide(content):
        return content
    remedy = "check the connection, or build the site without the page that converts"
    try:
        with urlopen(PYODIDE_URL, timeout=60) as response:
            content = bytes(response.read())
    except OSError as error:
        raise UsageError(f"cannot be downloaded: {error}", place=PYODIDE_URL, remedy=remedy) from error
    if not _is_pyodide(content):
        raise UsageError("does not have the expected content", place=PYODIDE_URL, remedy=remedy)
    write_files({path: content})
    return content


def _is_pyodide(content: bytes) -> bool:
    return hashlib.sha512(content).hexdigest() == PYODIDE_SHA512


def _opshift_files() -> Mapping[str, bytes]:
    """Return the files of opshift that the page needs, with compiled definitions, by path."""
    root = Path(__file__).parents[2]
    needed = {
        "catalogue/__init__.py",
        *(f"catalogue/browser/{each.name}" for each in STATIC.parent.glob("*.py")),
    }
    files = {
        path: content for path, content in _files_below(root) if path in needed or not path.startswith(UNUSED)
    }
    with tempfile.TemporaryDirectory() as folder:
        # a source checkout has no compiled files: compile them
        if not (root / "registry" / "compiled.json").exists():
            command = [sys.executable, "-m", "opshift.converter.compile_files", folder]
            subprocess.run(command, check=True)
        compiled = dict(_files_below(Path(folder)))
    files |= {path: content for path, content in compiled.items() if not path.startswith(UNUSED)}
    return {f"opshift/{path}": content for path, content in files.items()}


def _runtime_files() -> Mapping[str, bytes]:
    """Return the files about runtimes by path, which the page loads only for `runs` and `fit`."""
    files = {f"opshift/opsets/runtimes/{path}": content for path, content in _files_below(RUNTIMES)}
    return files | {"opshift/registry/runtimes/compiled.json": compiled_runtimes().encode()}


def _package_files(name: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(name)
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        for path, content in _files_below(Path(folder)):
            yield f"{name.replace('.', '/')}/{path}", content


def _files_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the sources and data below a folder, without `__pycache__` and tests."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(each for each in folders if each not in ("__pycache__", "tests"))
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix in (".py", ".json", ".yaml", ".binpb", ".css"):
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _pack_files(files: Mapping[str, bytes]) -> bytes:
    """Pack files into one compressed file, in the format that `static/converter.js` reads."""
    index = json.dumps([(path, len(content)) for path, content in files.items()]).encode()
    return _compress_content(b"".join([len(index).to_bytes(4, "little"), index, *files.values()]))


def _compress_content(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
