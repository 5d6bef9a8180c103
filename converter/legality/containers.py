"""The model, its graphs and its functions, as rules see them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.converter.concessions import Concessions
from opshift.converter.names import Names
from opshift.converter.scope import Scope
from opshift.registry.catalogue import Registry
from opshift.registry.errors import ResolveError
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.converter.legality.subjects import Node

Key = tuple[str, str, str]
"""What identifies a function: its domain, as the registry spells it, its name and its overload."""


class Source(NamedTuple):
    """What is to be checked, if it could not be read, or not to its end."""

    place: str
    error: str = ""
    is_text: bool = True


class Model:
    """A ModelProto.

    Attributes:
        opsets: its opset imports; of a domain that is imported twice, the first.
        functions: its functions by key; of two with the same key, the first.
        calls: by function, the functions that its body calls; complete when everything else is checked.
        folder: where its external data are, if that is known.
        clean: forms of nodes, attributes and calls that are found to be right.
    """

    place = "model"

    def __init__(self, proto: Any, registry: Registry, folder: Path | None = None) -> None:
        self.proto = proto
        self.registry = registry
        self.folder = folder
        self.ir_version: int = proto.ir_version
        self.opsets = opsets_of(proto.opset_import) or ({DEFAULT_DOMAIN: 1} if self.ir_version < 3 else {})
        self.functions: dict[Key, Any] = {}
        for each in proto.functions:
            self.functions.setdefault(function_key(each), each)
        self.calls: dict[Key, set[Key]] = {key: set() for key in self.functions}
        self.clean: set[Hashable] = set()
        self._imports: dict[frozenset[tuple[str, int]], int] = {}
        self._sizes: dict[Path, int] = {}

    def number_of(self, opsets: Mapping[str, int]) -> int:
        """A number for opset imports; the same imports have the same."""
        return self._imports.setdefault(frozenset(opsets.items()), len(self._imports))

    @cached_property
    def redefines_operators(self) -> bool:
        """Whether a function takes the place of an operator, so that types do not follow from operators."""
        domains = self.registry.domains()
        return any(
            self.registry.operator(name, domain) for domain, name, _ in self.functions if domain in domains
        )

    @cached_property
    def all_opsets(self) -> Mapping[str, int]:
        """The opset imports of the model, and of its functions where the model has none."""
        found = dict(self.opsets)
        for each in self.proto.functions:
            found = {**opsets_of(each.opset_import), **found}
        return found

    def size_of(self, file: Path) -> int:
        """How many bytes a file has; each file is asked once."""
        if file not in self._sizes:
            self._sizes[file] = file.stat().st_size
        return self._sizes[file]


class Resolved(NamedTuple):
    """What a node is: an operator, a function of the model, or neither, and then why if that is wrong."""

    operator: OperatorVersion | None = None
    function: Any = None
    error: ResolveError | None = None


class Container:
    """A graph or function.

    Attributes:
        proto: the GraphProto or FunctionProto.
        place: how messages call it.
        opsets, imports: its opset imports, and a number that stands for them.
        parent: the graph around it.
        scope: its values; those of its nodes are known up to the one that is looked at.
        key: of a function, and of the graphs within, what identifies it.
        used: the names that its nodes, and the graphs within, read.
        is_broken: whether a node up to the one that is looked at breaks a rule, here, within or around.
    """

    def __init__(
        self, proto: Any, place: str, model: Model, opsets: Mapping[str, int], parent: Container | None = None
    ) -> None:
        self.proto = proto
        self.place = place
        self.model = model
        self.opsets = opsets
        self.imports = model.number_of(opsets)
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.key: Key | None = parent.key if parent else None
        self.scope: Scope = (
            parent.scope.child(proto)
            if parent
            else Scope(proto, opsets, model.registry, Names(), Concessions(), {})
        )
        self.used: set[str] = set()
        self.is_broken: bool = parent.is_broken if parent else model.redefines_operators
        self._resolved: dict[Key, Resolved] = {} if parent is None else parent._resolved

    def functions(self) -> Iterator[Function]:
        """The function that it is, or lies in."""
        return (each for each in self.around() if isinstance(each, Function))

    def around(self) -> Iterator[Container]:
        """This one, and those around it."""
        current: Container | None = self
        while current is not None:
            yield current
            current = current.parent

    def mark_broken(self) -> None:
        """Note that a node breaks a rule, so that types cannot be told any more."""
        for each in self.around():
            each.is_broken = True

    @cached_property
    def made(self) -> frozenset[str]:
        """The names that nodes make, anywhere in it."""
        return frozenset(name for node in self.proto.node for name in node.output[:] if name)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of its inputs."""
        return frozenset(each.name for each in self.proto.input)

    def add(self, node: Node) -> None:
        """Go past a node: what it makes is known from here on."""
        self.used.update(node.inputs)
        self.scope.known.update(node.outputs)
        if node.function is not None and self.key in self.model.calls:
            self.model.calls[self.key].add(called_key(node.proto))

    def resolve(self, proto: Any) -> Resolved:
        """What a node is; asked once for all nodes that say the same."""
        key = called_key(proto)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(key)
        return self._resolved[key]

    def _resolve(self, key: Key) -> Resolved:
        function = self.model.functions.get(key)
        domain, op_type, _ = key
        if function is not None:
            return Resolved(function=function)
        registry, opset = self.model.registry, self.opsets.get(domain)
        if opset is None or domain not in registry.domains() or opset > registry.newest_opset(domain):
            return Resolved()
        try:
            return Resolved(registry.get_schema(op_type, opset, domain))
        except ResolveError as error:
            return Resolved(error=error.with_traceback(None))


class Graph(Container):
    """A GraphProto.

    Attributes:
        is_top: whether it is the model's own or one for training, not that of a node.
        is_main: whether it is the model's own.
    """

    def __init__(
        self,
        proto: Any,
        place: str,
        model: Model,
        opsets: Mapping[str, int],
        parent: Container | None = None,
        *,
        is_top: bool = False,
    ) -> None:
        super().__init__(proto, place, model, opsets, parent)
        self.is_top = is_top
        self.is_main = is_top and parent is None

    @cached_property
    def initializers(self) -> list[str]:
        """The names of its initializers, dense and sparse."""
        sparse = (each.values.name for each in self.proto.sparse_initializer)
        return [*(each.name for each in self.proto.initializer), *sparse]

    @cached_property
    def stated(self) -> Mapping[str, Any]:
        """Name to TypeProto, of inputs, outputs and what `value_info` lists."""
        values = (*self.proto.value_info, *self.proto.output, *self.proto.input)
        return {value.name: value.type for value in values}


class Function(Container):
    """A FunctionProto."""

    def __init__(self, proto: Any, model: Model) -> None:
        opsets = opsets_of(proto.opset_import)
        place = f"function {canonical_domain(proto.domain)}.{proto.name}"
        super().__init__(proto, f"{place}:{proto.overload}" if proto.overload else place, model, opsets)
        self.key = function_key(proto)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of its inputs."""
        return frozenset(self.proto.input)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names of its attributes, with a default and without."""
        return frozenset((*self.proto.attribute, *(each.name for each in self.proto.attribute_proto)))


def opsets_of(imports: Any) -> dict[str, int]:
    """Domain, as the registry spells it, to opset version; of two imports of one, the first."""
    found: dict[str, int] = {}
    for each in imports:
        found.setdefault(canonical_domain(each.domain), each.version)
    return found


def function_key(function: Any) -> Key:
    """What identifies a function."""
    return canonical_domain(function.domain), function.name, function.overload


def called_key(node: Any) -> Key:
    """What identifies the function that a node calls, if it calls one."""
    return canonical_domain(node.domain), node.op_type, node.overload
