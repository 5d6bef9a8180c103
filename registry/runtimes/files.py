"""Find, read and compile the files of runtimes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from opshift.model.errors import UsageError
from opshift.model.message_text import did_you_mean
from opshift.opsets import OPSETS
from opshift.registry.definition_files import RUNTIMES as FOLDER
from opshift.registry.definition_files import TYPES
from opshift.registry.errors import InvalidDefinition
from opshift.registry.precompiled import (
    DEFINITIONS,
    CompiledFile,
    load_precompiled,
    packaged_entry,
    packaged_file,
)
from opshift.registry.record import from_file_content, to_plain_data
from opshift.registry.registry import Registry, default_registry
from opshift.registry.releases import version_numbers
from opshift.registry.runtimes.runtime import Runtime

RUNTIMES: Final = OPSETS / FOLDER

COMPILED: Final = CompiledFile(Path(__file__).with_name("compiled.json"), [RUNTIMES], DEFINITIONS)
"""Compiled runtimes with inherited keys; wheels lack this file, because most users need few runtimes."""

FINGERPRINTS: Final = OPSETS / "runtime_fingerprints.yaml"
"""File with the fingerprint of each runtime, which detects changes of published runtime files."""

IMPROVED_KEYS: Final = {
    "constant_types", "evidence", "expands_outdated_bodies", "falls_back", "folds", "folds_functions",
    "imports", "inexact_types",
    "internal_operators", "may_count_omitted_inputs", "may_need_input_sizes", "misorders_functions_in",
    "needs_input_ranks", "needs_names", "raw_types", "reads_empty_constants", "refuses_sizes_after",
    "restrictions", "schemas", "slow_kernels", "unfolded", "unread_types", "unsized", "validates_nodes",
    "wrong",
}  # fmt: skip
"""Keys that may be improved after publication, so fingerprints exclude them."""

OWN_KEYS: Final = frozenset({"runtime", "version", "extends", "evidence"})
"""Keys that a file does not inherit."""

MERGED_KEYS: Final = ("internal_operators", "operators", "restrictions", "schemas", "slow_kernels", "wrong")
"""Mappings whose entries are inherited one by one; an empty entry removes an inherited entry."""

YAML_SUFFIX: Final = ".yaml"
"""Suffix of files that describe runtimes."""

NEVER_RUN: Final = "ai.onnx.Constant"
"""Operator that needs no kernel: runtimes turn its nodes into initializers when they load a model."""


@cache
def runtime_files() -> Mapping[str, Path]:
    """Return the file of each runtime by name, such as `onnxruntime-1.31.1`; versions are oldest first."""
    files = sorted(RUNTIMES.glob("*/*.yaml"), key=lambda path: (path.parent.name, version_numbers(path.stem)))
    return MappingProxyType({f"{path.parent.name}-{path.stem}": path for path in files})


RuntimeLike = Runtime | str | os.PathLike[str]
"""Types that name a runtime: the runtime, its name, or the path of a YAML file."""


def runtime_of(runtime: RuntimeLike) -> Runtime:
    """Return a `Runtime` unchanged, or load it by name or from a file, see `get_runtime`.

    Raises:
        UsageError: the argument is neither a Runtime, a name nor a path, or there is no data or file for it.
        DefinitionError: the file cannot be read, or is invalid.
    """
    if isinstance(runtime, Runtime):
        return runtime
    if isinstance(runtime, str | os.PathLike):
        return get_runtime(runtime)
    reason = f"expected a Runtime, its name or the path of a YAML file, got {type(runtime).__name__}"
    raise UsageError(reason, remedy="pass a name such as onnxruntime-1.31.1")


def get_runtime(name: str | os.PathLike[str]) -> Runtime:
    """Return a runtime by name or from a file; a `Path`, or a name that ends with `.yaml`, denotes a file.

    If the version or its last number is missing, as in `onnxruntime-coreml` or `onnxruntime-1.31`, the newest
    matching runtime is returned. A name may also start with an execution provider, as in `coreml`, or its
    package, as in `onnxruntime-gpu-1.20`.

    Raises:
        UsageError: there is no data about this version, or no such file.
        DefinitionError: the file cannot be read, or is invalid.
    """
    if not isinstance(name, str) or name.endswith(YAML_SUFFIX):
        path = Path(name)
        if not path.exists():
            raise UsageError("file does not exist", place=str(path), remedy="correct the path")
        return read_runtime(path, default_registry())
    files = runtime_files()
    products = {each: each.rpartition("-")[0] for each in files}
    name = _name_of_runtime(name)
    found = find_runtime(name) or next((each for each in reversed([*files]) if products[each] == name), None)
    if found is None:
        versions = [each for each in files if products[each] in (name.rpartition("-")[0], name)]
        newest = {product: each for each, product in products.items()}.values()
        known = f"known: {', '.join(versions or newest)}, or the path of a YAML file"
        if default_registry().releases.find(name):
            known += f"; `opshift convert --target {name}` only needs the opset"
        names = [*files, *(each.rpartition(".")[0] for each in files)]
        remedy = known if versions else did_you_mean(name, names, known)
        raise UsageError(f"no data about the runtime {name!r}", remedy=remedy)
    return _own_runtime(found)


def _name_of_runtime(name: str) -> str:
    """Replace an execution provider or its package in a name by the runtime with the provider's kernels."""
    names = default_registry().releases.runtime_names
    if name.lower() in names:
        return names[name.lower()]
    product, _, version = name.rpartition("-")
    return f"{names[product.lower()]}-{version}" if product.lower() in names else name


def find_runtime(name: str) -> str | None:
    """Return the full name of a runtime, such as `onnxruntime-1.31.1` for `onnxruntime-1.31`, or `None`."""
    found = [each for each in runtime_files() if name in (each, each.rpartition(".")[0])]
    return found[-1] if found else None


@cache
def _own_runtime(name: str) -> Runtime:
    path = runtime_files()[name]
    return load_precompiled(path, [OPSETS / TYPES], lambda: load_runtime(path), COMPILED)


def compiled_runtimes() -> str:
    """Return the compiled copies of all runtimes in the format of `packaged_file`."""
    files = runtime_files().items()
    entries = (packaged_entry(path, [OPSETS / TYPES], get_runtime(name)) for name, path in files)
    return packaged_file(dict(entries))


def read_runtime(path: Path, registry: Registry) -> Runtime:
    """Read and lint the file of a runtime, with the keys and operators that it inherits.

    Raises:
        DefinitionError: the file cannot be read, or is invalid.
    """
    # imported here: compiled runtimes are valid
    from opshift.registry.lint.runtimes import runtime_findings

    runtime = load_runtime(path)
    findings = runtime_findings(runtime, path, registry)
    if findings:
        raise InvalidDefinition(findings)
    return runtime


def load_runtime(path: Path) -> Runtime:
    """Read the file of a runtime without linting it.

    Raises:
        DefinitionError: the file cannot be read, has the wrong format, or names an unknown runtime.
    """
    from opshift.registry.yaml_files import load_yaml  # imported here: compiled runtimes need no YAML parser

    data = load_yaml(path)
    if isinstance(data, dict):
        for key in data.keys() & {"extends", "falls_back"}:
            _require_runtime(path, key, data[key])
        if "extends" in data:
            data = _complete(data, _own_runtime(data["extends"]))
    return from_file_content(Runtime, data, path)


def _require_runtime(path: Path, key: str, name: object) -> None:
    if not isinstance(name, str) or name not in runtime_files():
        from opshift.registry.yaml_files import error_at

        remedy = did_you_mean(str(name), runtime_files(), f"known: {', '.join(runtime_files())}")
        raise error_at(path, (key,), f"no data about the runtime {name!r}", remedy)


def _complete(data: dict[str, object], base: Runtime) -> dict[str, object]:
    """Return the content of a file, with the keys and operators inherited from `base`."""
    complete = {key: value for key, value in vars(base).items() if key not in OWN_KEYS} | data
    for key in MERGED_KEYS:
        own = data.get(key, {})
        if isinstance(own, dict):
            merged = {**getattr(base, key), **own}
            complete[key] = {name: each for name, each in sorted(merged.items()) if each not in ([], "", {})}
    return complete


def runtime_fingerprints() -> dict[str, str]:
    """Return the fingerprint of each runtime by name, with inherited keys and without `IMPROVED_KEYS`."""
    from opshift.registry.fingerprints import digest  # imported here: `hashlib` takes long to import

    found = {name: get_runtime(name) for name in runtime_files()}
    return {name: digest(to_plain_data(each, exclude=IMPROVED_KEYS)) for name, each in found.items()}


def without_fallback(runtime: Runtime) -> Runtime:
    """Return a copy of a runtime that does not fall back to another runtime for nodes without a kernel.

    A runtime without `falls_back`, such as TensorRT, is returned unchanged.
    """
    if not runtime.falls_back:
        return runtime
    other = get_runtime(runtime.falls_back)
    # The fallback still loads the model, so its schemas and its limits on imports apply.
    newest = {name: other.newest_import(name) for name in {**other.opsets, **other.imports}}
    imports = {name: each for name, each in newest.items() if each is not None and name not in runtime.opsets}
    constants = {NEVER_RUN: other.operators.get(NEVER_RUN, ())}
    return replace(
        runtime,
        falls_back="",
        imports={**imports, **runtime.imports},
        schemas=other.schemas,
        validates_nodes=other.validates_nodes,
        operators={**constants, **runtime.operators},
    )
