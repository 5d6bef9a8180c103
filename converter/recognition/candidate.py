"""Check whether one node of an operator can replace the nodes that a pattern matches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from math import inf, prod
from typing import Any, Final, NamedTuple

from opshift.converter.recognition.expansion import Call, ExactGraph, InputFact
from opshift.converter.recognition.expansion_cache import Expansions
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.matching import Match, Matcher
from opshift.converter.recognition.patterns import BODY, InputRef, NodeRef, Pattern
from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.symbols import is_symbol
from opshift.model.graphs import NodeRecord
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import can_pack_tensor, has_inexact_nan
from opshift.model.types import SMALLEST_SYMBOL, Shape
from opshift.registry.models import OperatorVersion

MAX_PASSED_ELEMENTS = 64
"""Maximum number of elements of an integer input that an expansion gets as a constant."""

POSITIVE_ATTRIBUTES: Final = frozenset({(DEFAULT_DOMAIN, "Attention", "scale")})
"""Attributes that must be positive and finite in a new node.

The definition of Attention multiplies by the square root of `scale`, and onnxruntime refuses a `scale` of 0.
"""

DIFFERENT_NODES: Final = "a constant or an attribute differs from the definition of the operator"
"""Reason to keep nodes that differ from the expansion of the operator."""


class Replacement(NamedTuple):
    """New node that replaces the nodes that a pattern matches.

    Attributes:
        operator: operator version of the new node.
        position: position of the matched node that computes the first output, and of the new node.
        inputs, outputs, attributes: names of inputs and outputs, and attribute values, of the new node.
        nodes: records of all nodes that the new node replaces.
        matched: records of `nodes`, and of matched nodes that compute sizes.
        approximate: sentence about the difference in rounding; empty if the results are equal.
        flattened: one-dimensional constants that replace inputs of the new node, by input position.
    """

    operator: OperatorVersion
    position: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    nodes: tuple[NodeRecord, ...]
    matched: tuple[NodeRecord, ...]
    approximate: str
    flattened: Mapping[int, Tensor]

    def read_names(self) -> Iterator[str]:
        """Yield the names in `inputs` that remain inputs of the new node."""
        return (each for index, each in enumerate(self.inputs) if each and index not in self.flattened)


class Rejected(Exception):
    """A pattern matches nodes that the operator cannot replace; the argument is the reason."""


class Candidate:
    """Checks of one pattern at one node; `record` is the node that computes the pattern's first output."""

    def __init__(
        self,
        pattern: Pattern,
        operator: OperatorVersion,
        record: NodeRecord,
        view: GraphView,
        expansions: Expansions,
    ) -> None:
        self._pattern, self._operator, self._record = pattern, operator, record
        self._view, self._scope = view, view.scope
        self._expansions = expansions
        self._anchor = record[4][pattern.outputs[0].output]
        self._key: Hashable = None

    def replacement(self, match: Match, *, is_relaxed: bool) -> Replacement:
        """Return the node that replaces matched nodes.

        `is_relaxed` is `Matcher.is_relaxed` after the match.

        Raises:
            Rejected: the operator cannot replace the nodes.
        """
        protos = map(self._scope.proto_of, match.nodes.values())
        if any(getattr(proto, "device_configurations", ()) for proto in protos):
            raise Rejected("a node has device configurations, which name its values")
        inputs = self._inputs(match)
        self._require_type(inputs)
        match = match._replace(attributes={**match.attributes, **self._sizes(match)})
        attributes = self._attributes(match)
        call = self._call(inputs, attributes)
        outputs = {0: self._anchor}
        if self._pattern.is_form:
            if self._operator.has_function:
                self._expansion_of(call, BODY)  # raises Rejected if the new node would be invalid
            size_nodes: frozenset[int] = frozenset()
            self._add_outputs(match, self._pattern.outputs, outputs)
        else:
            graph, match, is_relaxed = self._verified(call, match)
            size_nodes = graph.size_nodes()
            outputs |= self._required_outputs(match, graph.outputs)
        nodes = {index: record for index, record in match.nodes.items() if index not in size_nodes}
        leaks = set(self._leaks(nodes, outputs))
        is_short = len(outputs) < self._operator.min_output
        for wanted in self._with_outputs(call) if (leaks or is_short) and not self._pattern.is_form else ():
            extended, found = self._extended(wanted, match)
            if extended is None or found is None:
                continue
            new_outputs = {0: self._anchor, **self._required_outputs(found, extended.outputs)}
            self._add_outputs(found, extended.outputs, new_outputs)
            size_nodes = extended.size_nodes()
            nodes = {index: record for index, record in found.nodes.items() if index not in size_nodes}
            if not any(self._leaks(nodes, new_outputs)):
                leaks, match, outputs, attributes = set(), found, new_outputs, dict(wanted.attributes)
                break
        if leaks:
            raise Rejected(f"{min(leaks)!r} is also read by other nodes")
        call = call._replace(outputs=tuple(map(outputs.__contains__, range(len(call.outputs)))))
        self._require_valid(call, nodes, inputs, outputs)
        if is_relaxed:
            self._require_ranks(call, outputs)
        if not self._pattern.shapes:  # the shapes of a form determine the shape of its result
            self._require_shape(call, inputs, is_relaxed=is_relaxed)
        count = max(self._operator.min_output, max(outputs) + 1)
        return Replacement(
            self._operator,
            self._record[0],
            inputs,
            tuple(outputs.get(position, "") for position in range(count)),
            attributes,
            tuple(nodes.values()),
            tuple(match.nodes.values()),
            self._pattern.approximate,
            {position: self._flattened(inputs[position]) for position in self._pattern.flattened},
        )

    def _require_valid(
        self, call: Call, nodes: Mapping[int, NodeRecord], inputs: Iterable[str], outputs: Mapping[int, str]
    ) -> None:
        """Check that the new node is in no cycle, has distinct outputs, and meets its requirements."""
        computed = {name for record in nodes.values() for name in record[4]}
        if len(outputs) > 1 and not computed.isdisjoint(inputs):
            # The node that computes this input stays, and may read an output of the new node.
            raise Rejected("an input of the operator depends on the matched nodes")
        if len({*outputs.values()}) < len(outputs):
            raise Rejected("two outputs of the operator are the same value")
        violated = self._expansions.violated_requirement(call)
        if violated is not None:
            raise Rejected(f"the operator requires {violated}")

    def _flattened(self, name: str) -> Tensor:
        """Return the elements of a constant as a tensor with one dimension, or raise Rejected."""
        value = self._view.constant(name)
        if value is None or self._scope.is_function or not can_pack_tensor(value):
            raise Rejected(f"{name!r} is not a constant of a graph")
        if has_inexact_nan(value):
            raise Rejected(f"{name!r} has a NaN")
        return value._replace(dims=(len(value.values),))

    def _require_type(self, inputs: tuple[str, ...]) -> None:
        types = self._pattern.types
        if types and self._scope.element_type(inputs[0]) not in types:
            raise Rejected(f"the pattern applies only to {' and '.join(types)}")

    def _sizes(self, match: Match) -> dict[str, int]:
        """Check the dimensions in `Pattern.shapes`; return the sizes that become attributes, by name."""
        names = [
            match.inputs[ref.position] if isinstance(ref, InputRef) else match.nodes[ref.node][4][ref.output]
            for ref, _ in self._pattern.shapes
            if not isinstance(ref, InputRef) or ref.position in match.inputs
        ]
        expected = [
            dims
            for ref, dims in self._pattern.shapes
            if not isinstance(ref, InputRef) or ref.position in match.inputs
        ]
        known: dict[str, int] = {}
        for name, dims in zip(names, expected, strict=True):
            shape = self._scope.symbolic_shape(name)
            if shape is None:
                raise Rejected(f"the rank of {name!r} is unknown")
            optional = sum(str(each).endswith("?") for each in dims)
            if not len(dims) - optional <= len(shape) <= len(dims):
                raise Rejected(f"the rank of {name!r} is {len(shape)}, which the form does not allow")
            for size, term in zip(reversed(shape), reversed(dims), strict=False):
                if isinstance(term, str) and term.endswith("?"):
                    if size != 1:
                        self._require_size(name, size, term[:-1], known)
                elif term != "_":
                    self._require_size(name, size, term, known)
        found = {name: size for name, size in known.items() if name in self._operator.attributes}
        unknown = next((name for name, size in found.items() if is_symbol(size)), None)
        if unknown is not None:
            raise Rejected(f"the size that the attribute {unknown!r} has to equal is unknown")
        return found

    def _require_size(self, name: str, size: int | None, term: int | str, known: dict[str, int]) -> None:
        """Check that a size equals a number, a name such as `H`, or `H * E`; add a new name to `known`."""
        if size is None:
            raise Rejected(f"a size of {name!r} is unknown")
        if isinstance(term, str) and "*" in term:
            factors = [known.get(each.strip(), 0) for each in term.split("*")]
            expected = prod(factors)
        else:
            expected = term if isinstance(term, int) else known.setdefault(term, size)
        if size != expected and max(size, expected) >= SMALLEST_SYMBOL:  # a symbol, or a product with one
            raise Rejected(f"a size of {name!r} may differ at run time from the size that the form requires")
        if size != expected:
            raise Rejected(f"a size of {name!r} is {size}, not {expected}")

    def _attributes(self, match: Match) -> dict[str, Any]:
        """Return the attributes of the new node, except defaults; raise Rejected for invalid values."""
        found = {**self._pattern.attributes, **match.attributes}
        copies = self._pattern.copies.items()
        found |= {name: found[other] for name, other in copies if other in found}
        for quotient in [each for each in found if " / " in each]:
            name, _, divisor = quotient.partition(" / ")
            found[name] = found.pop(quotient) * found[divisor]
        result = {}
        for name, value in found.items():
            attribute = self._operator.attributes.get(name)
            if attribute is None:
                raise Rejected(f"{self._operator.id} has no attribute {name}")
            is_positive = (self._operator.domain, self._operator.name, name) in POSITIVE_ATTRIBUTES
            if is_positive and not 0 < value < inf:
                raise Rejected(f"attribute {name} of the new node cannot be {value!r}")
            default = attribute.default
            if value != (default.encode() if isinstance(default, str) else default):
                result[name] = value
            for each in value if isinstance(value, tuple) else (value,):
                if not attribute.allows(each.decode() if isinstance(each, bytes) else each):
                    raise Rejected(f"attribute {name} of the new node cannot be {each!r}")
        return dict(sorted(result.items()))

    def _inputs(self, match: Match) -> tuple[str, ...]:
        """Return the inputs of the new node, and check their types."""
        count = max(match.inputs, default=-1) + 1
        inputs = tuple(match.inputs.get(position, "") for position in range(count))
        if count < self._operator.min_input:
            raise Rejected("a required input is missing")
        known: dict[str, str] = {}
        for formal, name in zip(self._operator.inputs, inputs, strict=False):
            if not name:
                if formal.option != "optional":
                    raise Rejected("a required input is missing")
                continue
            element_type = self._scope.element_type(name)
            if element_type is None:
                raise Rejected(f"the element type of {name!r} is unknown")
            if f"tensor({element_type})" not in self._operator.types_of(formal):
                raise Rejected(f"{self._operator.id} does not support {element_type}")
            if known.setdefault(formal.type, element_type) != element_type:
                raise Rejected(f"the element type of {name!r} is {element_type}, not {known[formal.type]}")
        return inputs

    def _call(self, inputs: tuple[str, ...], attributes: Mapping[str, Any]) -> Call:
        """Return the new node as a `Call`; raise Rejected if an earlier pattern for this call failed."""
        # Patterns that differ only in constants lead to the same call, and to the same expansion.
        kind = self._operator.domain, self._operator.name, self._pattern.is_form, self._pattern.variant
        self._key = *kind, self._anchor, inputs, tuple(attributes.items())
        if self._key in self._view.refuted:
            raise Rejected(DIFFERENT_NODES)
        given = [name for name in inputs if name]
        by_name = dict(zip(given, self._scope.comparable_shapes(given), strict=True))
        facts: list[InputFact | Tensor | None] = []
        for name in inputs:
            if not name:
                facts.append(None)
                continue
            element_type = self._scope.element_type(name)
            assert element_type is not None
            value = self._view.constant(name) if element_type in INTEGER_RANGES else None
            is_small = value is not None and len(value.values) <= MAX_PASSED_ELEMENTS
            facts.append(value if is_small else InputFact(element_type, by_name[name]))
        outputs = tuple(each.option != "optional" for each in self._operator.outputs)
        opset = self._scope.opset_of("")
        return Call(self._operator, opset, tuple(attributes.items()), tuple(facts), outputs)

    def _expansion_of(self, call: Call, variant: int) -> ExactGraph:
        graph = self._expansions.graph(call, variant)
        if graph is None:
            raise Rejected("the operator cannot be expanded with these attributes")
        return graph

    def _verified(self, call: Call, match: Match) -> tuple[ExactGraph, Match, bool]:
        """Return the expansion of the call, its match, and `is_relaxed`; raise Rejected if nodes differ."""
        graph = self._expansion_of(call, self._pattern.variant)
        matcher = Matcher(self._view, graph.nodes, graph.outputs, self._operator, is_complete=True)
        found = matcher.match(self._anchor, match.inputs)
        if found is None or found.inputs != match.inputs:
            self._view.refuted.add(self._key)
            raise Rejected(DIFFERENT_NODES)
        return graph, found, matcher.is_relaxed

    def _with_outputs(self, call: Call) -> Iterator[Call]:
        """Yield the call with all outputs, then with other values of modes like `qk_matmul_output_mode`."""
        wanted = call._replace(outputs=(True,) * len(call.outputs))
        yield wanted
        known = {name for name, _ in call.attributes}
        for name, attribute in self._operator.attributes.items():
            for value in attribute.values or () if name not in known and attribute.type == "INT" else ():
                if value != attribute.default:
                    yield wanted._replace(attributes=tuple(sorted([*call.attributes, (name, value)])))

    def _extended(self, call: Call, match: Match) -> tuple[ExactGraph | None, Match | None]:
        """Return the expansion of a call with several outputs, and its match; either may be `None`."""
        graph = self._expansions.graph(call, self._pattern.variant)
        if graph is None or len(graph.outputs) == 1:
            return None, None
        matcher = Matcher(self._view, graph.nodes, graph.outputs, self._operator, is_complete=True)
        found = matcher.match(self._anchor, match.inputs)
        for ref in graph.outputs.values() if found is not None else ():
            if found is not None and ref.node not in found.nodes:
                found = self._reader(ref, graph, matcher, found)
        return graph, found if found is None or found.inputs == match.inputs else None

    def _reader(self, ref: NodeRef, graph: ExactGraph, matcher: Matcher, match: Match) -> Match:
        """Extend a match by a node that computes the output `ref` from matched values, if one exists."""
        for each in graph.nodes[ref.node].slots.values():
            if not isinstance(each, NodeRef) or each.node not in match.nodes:
                continue
            for reader in self._scope.readers(match.nodes[each.node][4][each.output]):
                found = matcher.extended(match, ref, reader)
                if found is not None:
                    return found
        return match

    def _required_outputs(self, match: Match, refs: Mapping[int, NodeRef]) -> dict[int, str]:
        """Return the names of the values for required outputs after the first one, by output position."""
        return {
            position: match.nodes[ref.node][4][ref.output]
            for position, ref in refs.items()
            if 0 < position < self._operator.min_output and ref.node in match.nodes
        }

    def _add_outputs(self, match: Match, refs: Mapping[int, NodeRef], outputs: dict[int, str]) -> None:
        """Add each output after the first one that is read outside of the match, or returned by the graph."""
        for position, ref in refs.items():
            if position and ref.node in match.nodes:
                name = match.nodes[ref.node][4][ref.output]
                inner = {record[0] for record in match.nodes.values()}
                readers = {record[0] for record in self._scope.readers(name)}
                if readers - inner or name in self._scope.outputs or self._view.capturing_nodes(name):
                    outputs[position] = name

    def _leaks(self, nodes: Mapping[int, NodeRecord], outputs: Mapping[int, str]) -> Iterator[str]:
        """Yield values that are still needed, but that the new node computes too late or not at all."""
        inner = {record[0] for record in nodes.values()}
        for record in nodes.values():
            for name in record[4]:
                if not name or name == self._anchor:
                    continue
                outside = [each for each in self._scope.readers(name) if each[0] not in inner]
                readers = [each for each in outside if not self._view.unread_nodes(each)]
                if name in outputs.values():
                    if self._is_read_early(name, [each[0] for each in readers]):
                        yield name
                elif self._is_kept(name, inner) or not all(self._is_private(each, inner) for each in readers):
                    yield name

    def _is_private(self, record: NodeRecord, inner: Set[int]) -> bool:
        """Return whether a node computes constants or sizes, and only matched nodes depend on it."""
        pending, seen = [record], {record[0]}
        for each in pending:
            names = [name for name in each[4] if name]
            read = [name for name in names if self._scope.readers(name)]
            if any(self._is_kept(name, inner) for name in names) or not any(
                map(self._view.is_auxiliary, read)
            ):
                return False
            readers = [reader for name in read for reader in self._scope.readers(name)]
            pending += [reader for reader in readers if reader[0] not in inner and reader[0] not in seen]
            seen.update(reader[0] for reader in readers)
        return True

    def _is_read_early(self, name: str, readers: Iterable[int]) -> bool:
        """Return whether one of `readers`, or a node with a subgraph, reads a value before the new node."""
        return any(position < self._record[0] for position in (*readers, *self._view.capturing_nodes(name)))

    def _is_kept(self, name: str, inner: Set[int] = frozenset()) -> bool:
        """Return whether a value is in `fixed`, or is read by a subgraph of a node outside of `inner`."""
        return name in self._view.fixed or not self._view.capturing_nodes(name) <= inner

    def _without_passed(self, call: Call) -> Call:
        """Return a call without integer inputs that pattern nodes read only in an input of the same name.

        For example, `axes` of a reduction does not broadcast with the data. At least one input remains.
        """
        slots: dict[int, set[str]] = {}
        for node in self._pattern.nodes:
            for slot, ref in node.slots.items():
                if isinstance(ref, InputRef):
                    slots.setdefault(ref.position, set()).add(slot)
        inputs = [
            None
            if fact and fact.element_type in INTEGER_RANGES and slots.get(index) == {formal.name}
            else fact
            for index, (fact, formal) in enumerate(zip(call.inputs, self._operator.inputs, strict=False))
        ]
        return call if all(each is None for each in inputs) else call._replace(inputs=tuple(inputs))

    def _require_ranks(self, call: Call, outputs: Mapping[int, str]) -> None:
        """Check that constants with one element do not add dimensions to outputs, or raise Rejected."""
        shapes = self._expansions.shapes(call)
        for position, name in outputs.items():
            shape = shapes[position]
            if shape is None or self._scope.rank(name) != len(shape):
                raise Rejected(f"the rank of {name!r} may change")

    def _require_shape(self, call: Call, inputs: tuple[str, ...], *, is_relaxed: bool) -> None:
        """Check that broadcasting between the inputs does not change the shape of the result.

        `is_relaxed` is `Matcher.is_relaxed` after the match.

        Raises:
            Rejected: the shape changes, or a shape is unknown.
        """
        values = [each for each in self._without_passed(call).inputs if each is not None]
        is_scalar = all(each.dims == () for each in values)
        if (len(values) == 1 or is_scalar) and not is_relaxed:
            return
        if not is_relaxed and self._expansions.is_surely_valid(call):
            return  # the expansion has the shape of the result
        actual = self._scope.comparable_shapes([*filter(None, inputs), self._anchor])[-1]
        found = self._expansions.shapes(call)[0]
        if actual is not None and None not in actual and found == actual:
            return
        if len(values) == 1 and actual is not None and found is not None and 0 < len(found) == len(actual):
            # Broadcasting with constants of one element changes no dimension if the rank stays the same.
            return
        if _keeps_first_shape(call, found, actual):
            return
        if found is None or actual is None or None in actual or None in found:
            raise Rejected("a shape is unknown")
        raise Rejected("broadcasting changes the shape")


def _keeps_first_shape(call: Call, found: Shape | None, actual: Shape | None) -> bool:
    """Return whether `found` is the first input's shape, with the rank of `actual`, and fits all inputs."""
    first, *others = [each for each in call.inputs if each is not None]
    dims = first.dims
    if dims is None or found != dims or actual is None or len(actual) != len(dims):
        return False
    return all(
        other.dims is not None
        and len(other.dims) <= len(dims)
        and all(
            size is not None and size in (1, own)
            for size, own in zip(reversed(other.dims), reversed(dims), strict=False)
        )
        for other in others
    )
