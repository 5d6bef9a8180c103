"""Rules for initializers: their names, and what a graph states of them."""

from __future__ import annotations

from opshift.converter.ir_version import INITIALIZERS_STAND_ALONE
from opshift.converter.legality.containers import Graph
from opshift.converter.legality.findings import ERROR, INFO, WARNING
from opshift.converter.legality.names import repeated, some
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.types import element_type_of, shape_of
from opshift.registry.element_types import BY_NUMBER


@rule(
    "initializer.name",
    ERROR,
    source="onnx.proto: GraphProto.initializer",
    remedy="give it the name that nodes read it by, or remove it",
)
def initializer_name(graph: Graph) -> Flaws:
    """Every initializer has a name."""
    nameless = sum(not each for each in graph.initializers)
    if nameless:
        yield f"{nameless} of {len(graph.initializers)} initializers have no name"


@rule("initializer.unique", ERROR, source="onnx.proto: GraphProto.initializer", remedy="keep one of them")
def initializer_unique(graph: Graph) -> Flaws:
    """Initializers, dense and sparse, have names of their own."""
    yield from repeated("initializer", graph.initializers)


@rule(
    "initializer.is-input",
    ERROR,
    source="IR: Names Within a Graph; onnx.proto: Version",
    remedy="list it among the graph's inputs, or raise ir_version to 4",
)
def initializer_is_input(graph: Graph) -> Flaws:
    """Below IR version 4 every initializer is an input too."""
    if graph.model.ir_version < INITIALIZERS_STAND_ALONE:
        for each in graph.initializers:
            if each and each not in graph.inputs:
                yield f"initializer {each!r} is no input"


@rule(
    "initializer.is-no-input",
    WARNING,
    source="IR: Names Within a Graph",
    remedy="remove it from the inputs, or from the initializers",
)
def initializer_is_no_input(graph: Graph) -> Flaws:
    """From IR version 4 on an initializer of a node's graph is none of that graph's inputs."""
    if not graph.is_top and graph.model.ir_version >= INITIALIZERS_STAND_ALONE:
        for each in graph.initializers:
            if each in graph.inputs:
                yield f"{each!r} is an initializer and an input"


@rule(
    "initializer.type",
    ERROR,
    source="IR: Graphs",
    remedy="correct the stated type, or the initializer",
)
def initializer_type(graph: Graph) -> Flaws:
    """An initializer has the element type that the graph states of it."""
    for each in graph.proto.initializer:
        stated = graph.stated.get(each.name)
        if stated is None or each.data_type not in BY_NUMBER:
            continue
        found, wanted = BY_NUMBER[each.data_type].name, element_type_of(stated)
        if wanted is not None and wanted != found:
            yield f"initializer {each.name!r} is {found}, and stated to be {wanted}"


@rule(
    "initializer.shape",
    ERROR,
    source="IR: Graphs",
    remedy="correct the stated shape, or the initializer",
)
def initializer_shape(graph: Graph) -> Flaws:
    """An initializer has the shape that the graph states of it."""
    for each in graph.proto.initializer:
        stated = graph.stated.get(each.name)
        wanted = shape_of(stated) if stated is not None else None
        if wanted is not None and not _fits(tuple(each.dims), wanted):
            yield f"initializer {each.name!r} is {list(each.dims)}, and stated to be {_shown(wanted)}"


@rule("initializer.unused", INFO, source="IR: Graphs", remedy="remove it")
def initializer_unused(graph: Graph) -> Flaws:
    """Something reads every initializer."""
    read = graph.used.union(each.name for each in graph.proto.output)
    unused = [each for each in graph.initializers if each not in read]
    if unused and not graph.model.proto.training_info:
        yield f"nothing reads {some(unused)}"


def _fits(dims: tuple[int, ...], stated: tuple[int | None, ...]) -> bool:
    return len(dims) == len(stated) and all(
        b is None or b < 0 or a == b for a, b in zip(dims, stated, strict=True)
    )


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if each is None else str(each) for each in shape)}]"
