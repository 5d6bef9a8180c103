"""Values that are the same in every run, which runtimes compute in advance, and how models store them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from opshift.inference.evaluator.element_facts import defining_scope
from opshift.inference.facts import InferenceScope
from opshift.inference.function_scope import CallScope
from opshift.inference.scope import Scope
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.messages import TensorProto
from opshift.model.node import Node
from opshift.model.offloaded_tensors import EXTERNAL
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.models import OperatorVersion
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.inlined_values import called_scopes, calling_scope, source_of

SIZED_BY_VALUES: Final = frozenset(
    {
        "Compress", "NonMaxSuppression", "NonZero", "OneHot", "Range", "Resize", "StringSplit", "Unique",
        "Upsample",
    }
)  # fmt: skip
"""Operators with output sizes that depend on elements of inputs of any type, not only of integers."""

SIZE_OPERATORS: Final = ("Shape", "Size")
"""Operators with results that depend only on sizes of inputs."""

TYPED_ATTRIBUTES: Final = frozenset(
    {"value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"}
)
"""Attributes of Constant that runtimes turn into tensors with elements in a field such as `int64_data`."""

INTEGERS: Final = ("int32", "int64")
"""Element types of inputs, such as `shape` of Reshape, whose elements may determine output sizes."""


class _Question(NamedTuple):
    """Question whether a value, or only its shape, is the same in every run; see `ConstantValues.contain`."""

    scope: InferenceScope
    name: str
    is_about_sizes: bool
    knows_sizes: bool
    allows_defaults: bool


class SingleConstant(NamedTuple):
    """Constant with one element."""

    element_type: str
    rank: int
    value: object


Count = Callable[[Scope], Counter[tuple[SingleConstant, str]]]
"""Function that counts nodes of one scope, by the constant that they read and by operator."""


Unfolded = frozenset[tuple[Scope, str]]
"""Results of nodes and of calls of functions that a runtime computes in each run from constants."""


class ConstantValues:
    """Cache of the answers whether values of a model are the same in every run.

    Args:
        has_defaults: whether callers can override initializers that are graph inputs, unlike before IR
            version 4.
        unfolded: constant results that are not computed before the first run. They, and all values that
            depend on them or on defaults of graph inputs, do not count as constants. With `None`, all
            constant results are computed before the first run.
    """

    def __init__(self, *, has_defaults: bool = True, unfolded: Unfolded | None = None) -> None:
        self._unfolded = unfolded
        self._variants: dict[Unfolded, ConstantValues] = {}
        self._answers: dict[_Question, bool] = {}
        self._totals: dict[tuple[Scope, str], Counter[tuple[SingleConstant, str]]] = {}
        self._outputs: dict[Scope, frozenset[str]] = {}
        self._foldable_functions: dict[int, bool] = {}
        self._has_defaults = has_defaults

    def contain(
        self, scope: InferenceScope, name: str, *, knows_sizes: bool = False, allows_defaults: bool = True
    ) -> bool:
        """Return whether a value is the same in every run.

        A constant value depends only on constants and on sizes that are known before a run. With
        `knows_sizes`, all sizes count as known; with `allows_defaults`, defaults of graph inputs are
        constants.
        """
        allows_defaults = allows_defaults or not self._has_defaults
        asked = _Question(scope, name, False, knows_sizes, allows_defaults)
        if asked not in self._answers:
            self._answer(asked)
        return self._answers[asked]

    def without(self, unfolded: Unfolded) -> ConstantValues:
        """Return the answers for the same model and a runtime that computes `unfolded` in each run."""
        if unfolded not in self._variants:
            self._variants[unfolded] = ConstantValues(has_defaults=self._has_defaults, unfolded=unfolded)
        return self._variants[unfolded]

    def is_output(self, scope: Scope, name: str) -> bool:
        """Return whether a value is an output of its graph or function."""
        if scope not in self._outputs:  # a set, because each search in a list of many outputs takes long
            self._outputs[scope] = frozenset(scope.outputs)
        return name in self._outputs[scope]

    def reads(self, scope: Scope, constant: SingleConstant, op_type: str) -> int:
        """Return how many nodes of an operator read a constant equal to a given one.

        Optimizers store equal constants once. The nodes of all functions that runtimes inline into the same
        graph count; the nodes of subgraphs do not.
        """
        return self.total(scope, "", _reads_of_constants)[constant, op_type]

    def total(self, scope: Scope, key: str, count: Count) -> Counter[tuple[SingleConstant, str]]:
        """Return the sum of the counts of nodes in all scopes that runtimes inline into the same graph.

        Args:
            scope: one of these scopes.
            key: key of the cache, unique for each function `count`.
            count: a function that counts nodes of one scope, by the constant that they read and by operator.
        """
        return self._total(calling_scope(scope), key, count)

    def _total(self, scope: Scope, key: str, count: Count) -> Counter[tuple[SingleConstant, str]]:
        if (scope, key) not in self._totals:
            found = count(scope)
            for each in called_scopes(scope):
                found.update(self._total(each, key, count))
            self._totals[scope, key] = found
        return self._totals[scope, key]

    def _answer(self, asked: _Question) -> None:
        """Answer a question and the questions that it depends on; stop at the first negative answer."""
        answers = self._answers
        pending = [(asked, self._needed(asked))]
        while pending:
            question, needed = pending[-1]
            first = None if needed is None else next((each for each in needed if not answers.get(each)), None)
            if needed is None or first in answers:
                # Each pending question depends on the next one, so the answer to all of them is no.
                answers.update((each, False) for each, _ in pending)
                return
            if first is None:
                answers[question] = True
                pending.pop()
            else:
                pending.append((first, self._needed(first)))

    def _needed(self, question: _Question) -> Iterator[_Question] | None:
        """Return the questions that must have the answer yes for a yes; `None` if a yes is impossible."""
        name, is_about_sizes, knows_sizes, allows_defaults = question[1:]
        scope = defining_scope(question.scope, name)
        if scope is None:
            return None
        if is_about_sizes and (knows_sizes or has_known_sizes(scope, name)):
            return iter(())
        # Most kernels accept the defaults of graph inputs as constants; constant folding does not.
        is_initializer = scope.initializer(name) is not None
        if is_initializer and not allows_defaults and scope.is_overridable(name):
            return None
        if is_initializer:
            return iter(())
        question = question._replace(scope=scope)
        if self._unfolded is None:
            is_constant = scope.constant(name) is not None
            return iter(()) if is_constant else self._about_producer(question, SIZE_OPERATORS)
        if not is_about_sizes and (scope, name) in self._unfolded:
            return None
        question = question._replace(allows_defaults=not self._has_defaults)
        # constant folding of Size, unlike that of Shape, needs the elements of the input
        return self._about_producer(question, ("Shape",))

    def _about_producer(
        self, question: _Question, size_operators: Collection[str]
    ) -> Iterator[_Question] | None:
        """Return the questions about inputs of the node or the call that produces a value; see `_needed`.

        `size_operators` are the operators with results that depend only on sizes.
        """
        scope, name = question.scope, question.name
        producer = scope.producer(name)
        if producer is not None:
            if not _is_foldable(producer.operator):
                return None
            return _questions_about(producer.node, question, size_operators)
        arguments = [*scope.arguments(name)]
        if arguments:
            return (question._replace(scope=outer, name=each) for outer, each in arguments)
        call = self._foldable_call(scope, name)
        if call is None:
            return None
        # in a function, even sizes may depend on the elements of inputs of any type
        return (question._replace(name=each, is_about_sizes=False) for each in filter(None, call.inputs))

    def _foldable_call(self, scope: InferenceScope, name: str) -> Node | None:
        """Return the call of a function with only foldable operators that computes a value, or `None`."""
        record = scope.producing_records.get(name)
        if record is None or not isinstance(scope, CallScope):
            return None
        node = scope.node_of(record)
        index = scope.functions.find(node)
        if index is None:
            return None
        if index not in self._foldable_functions:  # many calls may share a large function
            self._foldable_functions[index] = _is_foldable_function(scope, index)
        return node if self._foldable_functions[index] else None


def _is_foldable(operator: OperatorVersion | None) -> bool:
    """Return whether an operator is known, has no subgraphs, and computes outputs from its inputs alone."""
    return operator is not None and not operator.holds_graphs and operator.determinism == "deterministic"


def _is_foldable_function(scope: CallScope, index: int) -> bool:
    """Return whether the function at `index` has only foldable operators."""
    functions, opsets = scope.functions, scope.functions.opsets(index)
    for each in functions.protos[index].node:
        domain = canonical_domain(each.domain)
        # a call of another function, which may hide an operator, is not examined
        if functions.has_name(each.op_type, domain):
            return False
        if not _is_foldable(scope.registry.known_at(each.op_type, opsets.get(domain, 0), domain)):
            return False
    return True


def _questions_about(node: Node, question: _Question, size_operators: Collection[str]) -> Iterator[_Question]:
    """Yield the questions about inputs of a node on which a question about its output depends."""
    for each in filter(None, node.inputs):
        wanted = [node.op_type in size_operators]
        if question.is_about_sizes:
            element_type = question.scope.element_type(each)
            depends_on_elements = node.op_type in SIZED_BY_VALUES or element_type in INTEGERS
            wanted = [True, False] if depends_on_elements else [True]
        for is_about_sizes in wanted:
            yield question._replace(name=each, is_about_sizes=is_about_sizes)


def _stored(scope: InferenceScope, name: str) -> TensorProto | Node | None:
    """Return the initializer or the Constant node that defines a value; `None` for other values."""
    owner = defining_scope(scope, name)
    if owner is None:
        return None
    tensor, producer = owner.initializer(name), owner.producer(name)
    if tensor is not None or producer is None:
        return tensor
    node = producer.node
    is_constant = node.op_type == "Constant" and canonical_domain(node.domain) == DEFAULT_DOMAIN
    return node if is_constant else None


def is_stored(scope: InferenceScope, name: str) -> bool:
    """Return whether a value is an initializer or the result of a Constant node."""
    return _stored(scope, name) is not None


def _reads_of_constants(scope: Scope) -> Counter[tuple[SingleConstant, str]]:
    """Count the nodes that read a constant with one element, by the constant and by the operator."""
    found: Counter[tuple[SingleConstant, str]] = Counter()
    for record in scope.node_records:
        _, domain, op_type, inputs, _ = record
        if canonical_domain(domain) == DEFAULT_DOMAIN and not scope.is_call(record):
            constants = (single_constant(scope, each) for each in {*filter(None, inputs)})
            found.update((each, op_type) for each in constants if each is not None)
    return found


def single_constant(scope: InferenceScope, name: str) -> SingleConstant | None:
    """Return a stored constant of shape [] or [1]; `None` for other values.

    Nodes that return the constant unchanged are skipped, because optimizers remove them.
    """
    if scope.shape(name) not in ((), (1,)):
        return None
    scope, name, _ = source_of(scope, name)
    if not is_stored(scope, name):
        return None
    constant, element_type = scope.constant(name), scope.element_type(name)
    if constant is None or element_type is None:
        return None
    return SingleConstant(element_type, len(constant.dims), constant.values[0])


def has_typed_data(scope: InferenceScope, name: str) -> bool:
    """Return whether a value is stored, and not as raw bytes, but in a field such as `int32_data`."""
    stored = _stored(scope, name)
    if isinstance(stored, Node):
        if not TYPED_ATTRIBUTES.isdisjoint(stored.attributes):
            return True
        # A reference without a function has no value. A parameter of a function has a `Tensor` as its value,
        # and the field in which the caller stores the elements is unknown.
        value = None if stored.has_attribute_references else stored.attribute("value")
        stored = value if hasattr(value, "raw_data") else None
    return stored is not None and has_typed_field(stored)


def has_typed_field(tensor: TensorProto) -> bool:
    """Return whether a tensor has neither raw bytes nor external data, but a field such as `int32_data`."""
    return not tensor.HasField("raw_data") and tensor.data_location != EXTERNAL


def is_misread(tensor: TensorProto, runtime: Runtime) -> bool:
    """Return whether a runtime changes the shape or element type of a tensor that has no elements."""
    element_type = NAME_BY_NUMBER.get(tensor.data_type)
    if element_type is None or 0 not in tensor.dims:
        return False
    # A runtime reads elements of `raw_types` only from raw bytes, and an empty tensor has none.
    is_read = runtime.reads_empty_constants and element_type not in runtime.raw_types
    # OpenVINO reads vectors of int64 correctly as sizes and axes, which most of them are.
    return not is_read and not (len(tensor.dims) == 1 and element_type == "int64")


def has_known_sizes(scope: InferenceScope, name: str) -> bool:
    """Return whether all sizes of a value are known before a run."""
    shape = scope.shape(name)
    return shape is not None and None not in shape
