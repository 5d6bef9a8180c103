"""Identities of operators and functions, names of domains, and opset imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from opshift.model.errors import InvalidModel, OpshiftError, UsageError

if TYPE_CHECKING:
    from opshift.model.messages import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto
    from opshift.model.node import Node


IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Pattern of a C identifier, which ONNX's IR specification requires for names."""


class NodeLike(Protocol):
    """Fields of a node that `Registry.resolve` reads; every NodeProto has them."""

    @property
    def op_type(self) -> str:
        """The operator's name."""
        ...

    @property
    def domain(self) -> str:
        """The operator's domain."""
        ...


class LocalFunction(NamedTuple):
    """Identity of a function that is defined in the model itself: (domain, name, overload)."""

    domain: str
    name: str
    overload: str = ""

    def __str__(self) -> str:
        return f"{self.domain}.{self.name}" + (f":{self.overload}" if self.overload else "")


def function_id(function: FunctionProto) -> LocalFunction:
    """Return the domain, name and overload of a function."""
    return LocalFunction(canonical_domain(function.domain), function.name, overload_of(function))


def called_function(node: Node | NodeProto) -> LocalFunction:
    """Return the identity of a local function that a node calls; the model need not have the function."""
    return LocalFunction(canonical_domain(node.domain), node.op_type, overload_of(node))


def overload_of(owner: object) -> str:
    """Return the overload of a function or node; empty if the message class has no such field."""
    # Messages of older `onnx` releases, and emitted nodes, have no overload.
    overload: str = getattr(owner, "overload", "")
    return overload


def function_label(function: FunctionProto) -> str:
    """Return the label of a function for messages: `com.example.Scale`, or `com.example.Scale:overload`."""
    return str(function_id(function))


DEFAULT_DOMAIN = "ai.onnx"
"""The default domain, which models usually write as the empty string."""


def canonical_domain(domain: str) -> str:
    """Return the registry's spelling of a domain: `""` and `ai.onnx` are the same domain."""
    return domain or DEFAULT_DOMAIN


def model_domain(domain: str) -> str:
    """Return the spelling of a domain in models: the default domain is the empty string."""
    return "" if domain == DEFAULT_DOMAIN else domain


def short_label(label: str) -> str:
    """Return the label of an operator without the default domain: `Clip:6` for `ai.onnx.Clip:6`."""
    name = label.removeprefix(f"{DEFAULT_DOMAIN}.")
    # A dot in the rest shows another domain, such as ai.onnx.ml.
    return label if "." in name else name


PATH_NAME = re.compile(r"\w[\w+-]*(?:\.[\w+-]+)*")
"""Pattern of domain and operator names: no path separators, no `..` and no control characters."""

MAX_PATH_NAME = 200
"""Maximum size of a domain or operator name in bytes; file systems limit file names to 255 bytes."""


def is_path_name(text: str) -> bool:
    """Return whether the name of a domain or an operator can be a part of a file's path.

    Definitions are files `<domain>/<operator>.yaml`, so a name must not lead to another folder.
    """
    try:
        return PATH_NAME.fullmatch(text) is not None and len(text.encode()) <= MAX_PATH_NAME
    except UnicodeEncodeError:  # the name contains a lone surrogate
        return False


REVERSED_DNS_NAME = re.compile(r"[A-Za-z][\w-]*(?:\.[\w-]+)*", re.ASCII)
"""Pattern of domains such as `com.example`: a DNS name has one owner, so no two parties use the same domain.

Domains without a dot match, too: many models use them for local functions.
"""


def require_path_names(*names: str) -> None:
    """Raise UsageError for a domain or an operator's name that cannot be a part of a file's path."""
    for name in names:
        if not is_path_name(name):
            raise UsageError(f"{name!r} is not a valid name of a domain or operator", remedy=PATH_NAME_REMEDY)


PATH_NAME_REMEDY = "use letters, digits, `_`, `-`, `+`, and single dots between them"


class OperatorId(NamedTuple):
    """Identity of an operator version: `ai.onnx.Softmax:13` is Softmax as introduced in opset 13."""

    domain: str
    op_type: str
    since_version: int

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type}:{self.since_version}"

    @classmethod
    def parse(cls, text: str) -> OperatorId:
        """Parse `ai.onnx.Softmax:13` or `Softmax:13`.

        Raises:
            OpshiftError: the text has no version, or no name.
        """
        qualified, _, version = text.rpartition(":")
        domain, _, op_type = qualified.rpartition(".")
        if not op_type or not version.isdecimal():
            reason = f"{text!r} is not an operator version"
            raise OpshiftError(reason, remedy="write it as ai.onnx.Softmax:13")
        return cls(canonical_domain(domain), op_type, int(version))


def without_version(operator: str) -> str:
    """Return `ai.onnx.Softmax` for `ai.onnx.Softmax:13`; a name without a version stays unchanged."""
    return operator.rpartition(":")[0] or operator


def declared_opsets(imports: Iterable[OperatorSetIdProto], ir_version: int = 3) -> dict[str, int]:
    """Return the imported version by canonical domain; the first import of a domain counts.

    In a model with an IR version below 3, missing imports mean opset 1.
    """
    found: dict[str, int] = {}
    for each in imports:
        found.setdefault(canonical_domain(each.domain), each.version)
    return found or ({DEFAULT_DOMAIN: 1} if ir_version < 3 else {})


def opset_imports(imports: Iterable[OperatorSetIdProto], ir_version: int = 3) -> dict[str, int]:
    """Return opset imports as a mapping from canonical domain to version.

    In a model with an IR version below 3, missing imports mean opset 1.

    Raises:
        InvalidModel: a domain is imported with two versions, or required imports are missing.
    """
    found: dict[str, int] = {}
    for each in imports:
        domain = canonical_domain(each.domain)
        if found.setdefault(domain, each.version) != each.version:
            reason = f"domain {domain} is imported twice, as opset {found[domain]} and {each.version}"
            raise InvalidModel(reason, remedy="keep the opset of the nodes, or use opshift doctor --fix")
    if not found and ir_version >= 3:
        remedy = "add one for each domain in use, such as ai.onnx 17, or use opshift doctor --fix"
        raise InvalidModel("the model has no opset import", remedy=remedy)
    return found or {DEFAULT_DOMAIN: 1}


def imported_default_opset(model: ModelProto) -> int | None:
    """Return the opset of the default domain that a model imports, or else the newest one of its functions.

    The imports of a model and of its functions have to agree, so this is the opset for a graph or function
    without an import of the default domain. The result is `None` without any import.
    """
    own = declared_opsets(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN)
    others = (declared_opsets(each.opset_import).get(DEFAULT_DOMAIN) for each in model.functions)
    return own or max(filter(None, others), default=None)


def functions_with_opsets(model: ModelProto) -> Iterator[tuple[FunctionProto, Mapping[str, int]]]:
    """Yield each local function with its opset imports; a function without imports gets the model's.

    Raises:
        InvalidModel: see `opset_imports`.
    """
    of_model = opset_imports(model.opset_import, model.ir_version) if model.functions else {}
    for each in model.functions:
        yield each, opset_imports(each.opset_import) if each.opset_import else of_model
