"""What lies behind the signature: opsets, IR version, graph, weights and metadata."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from opshift.converter.comparison.result import Change
from opshift.converter.opsets import opset_imports

EXTERNAL = 1
"""`TensorProto.DataLocation`: the values are in another file."""
IMAGE = "image."
"""The keys of `metadata_props` that tell what images look like start so, in any case (MetadataProps)."""
COMPUTED = ("node", "sparse_initializer", "quantization_annotation")


Folders = tuple[Path | None, Path | None]
"""Where the two models are, if they are files."""


def content_changes(old: Any, new: Any, folders: Folders) -> Iterator[Change]:
    """All differences but those of the signature."""
    yield from _dependencies(old, new)
    yield from _meanings(old, new)
    if not _same_graph(old, new):
        yield Change("GRAPH_CHANGED", "graph")
    if _may_differ(_files(old) & _files(new), folders):
        yield Change("WEIGHTS_UNKNOWN", "weights")
    if not _same_metadata(old, new):
        yield Change("METADATA_CHANGED", "metadata")


def _dependencies(old: Any, new: Any) -> Iterator[Change]:
    before, after = _imports(old), _imports(new)
    for domain in {**before, **after}:
        one, other = before.get(domain, 0), after.get(domain, 0)
        if one != other:
            kind = "RAISED" if other > one else "LOWERED"
            yield Change(f"OPSET_{kind}", domain, str(one or ""), str(other or ""))
    if old.ir_version != new.ir_version:
        kind = "RAISED" if new.ir_version > old.ir_version else "LOWERED"
        yield Change(f"IR_VERSION_{kind}", "IR version", str(old.ir_version), str(new.ir_version))


def _imports(model: Any) -> dict[str, int]:
    """The highest opset of each domain that the model or one of its functions imports."""
    found = opset_imports(model.opset_import, model.ir_version)
    for function in model.functions:
        for domain, opset in opset_imports(function.opset_import or model.opset_import).items():
            found[domain] = max(opset, found.get(domain, 0))
    return found


def _meanings(old: Any, new: Any) -> Iterator[Change]:
    before, after = _images(old), _images(new)
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            yield Change("MEANING_CHANGED", f"metadata {key}", before[key], after[key])


def _images(model: Any) -> dict[str, str]:
    """What the model says of images; keys and values have no case."""
    props = {each.key.lower(): each.value.lower() for each in model.metadata_props}
    return {key: value for key, value in props.items() if key.startswith(IMAGE)}


def _files(model: Any) -> set[str]:
    """The files that hold weights of the main graph."""
    tensors = (each for each in model.graph.initializer if each.data_location == EXTERNAL)
    return {entry.value for each in tensors for entry in each.external_data if entry.key == "location"}


def _may_differ(names: set[str], folders: Folders) -> bool:
    """Whether files of the same names may hold something else beside the one model than beside the other."""
    one, other = folders
    if one is None or other is None:
        return bool(names)
    try:
        return not all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)
    except OSError:
        return True


def _same_graph(old: Any, new: Any) -> bool:
    signature = {value.name for graph in (old.graph, new.graph) for value in graph.input}
    weights, others = (
        [each for each in graph.initializer if each.name not in signature] for graph in (old.graph, new.graph)
    )
    return (
        _same(weights, others)
        and all(_same(getattr(old.graph, field), getattr(new.graph, field)) for field in COMPUTED)
        and _same(old.functions, new.functions)
        and _same(old.training_info, new.training_info)
        and _same(old.configuration, new.configuration)
    )


def _same_metadata(old: Any, new: Any) -> bool:
    texts = ("producer_name", "producer_version", "domain", "doc_string")
    return (
        all(getattr(old, field) == getattr(new, field) for field in texts)
        and (old.graph.name, old.graph.doc_string) == (new.graph.name, new.graph.doc_string)
        and _same(old.metadata_props, new.metadata_props)
        and _same(old.graph.metadata_props, new.graph.metadata_props)
        and _same(old.graph.value_info, new.graph.value_info)
        and _same_texts(old, new)
    )


def _same_texts(old: Any, new: Any) -> bool:
    """Whether the same is said, without consequence, of the inputs and outputs that are in both."""
    one, other = (
        {
            (role, value.name): (value.doc_string, value.type.denotation, _props(value))
            for role, values in enumerate((model.graph.input, model.graph.output))
            for value in values
        }
        for model in (old, new)
    )
    return all(one[each] == other[each] for each in one.keys() & other.keys())


def _props(message: Any) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in message.metadata_props]


def _same(old: Iterable[Any], new: Iterable[Any]) -> bool:
    """Whether two lists of messages are equal, of whatever classes they are."""
    return all(
        one is not None
        and other is not None
        and one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
        for one, other in zip_longest(old, new)
    )
