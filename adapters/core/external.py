"""Adapters outside of this package: their errors, and checks of the nodes that they emit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

from opshift.model.errors import CannotConvert, OpshiftError
from opshift.model.node import Emitted, Node, Tensor
from opshift.registry.steps import Allow

if TYPE_CHECKING:
    from opshift.adapters.core.rewriter import Output, Rewriter

PACKAGE = "opshift."


def is_external(function: Callable[..., object]) -> bool:
    """Return whether a function is not part of this package."""
    return not getattr(function, "__module__", "").startswith(PACKAGE)


def error_line(error: BaseException, path: Path | str) -> int:
    """Return the line of the innermost frame in a file, or of its syntax error."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    frames = walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == str(path)]
    return lines[-1] if lines else 1


def checked_adapter(adapter: Callable[[Node, Rewriter], None]) -> Callable[[Node, Rewriter], None]:
    """Return an adapter that refuses the node if the given one raises an exception or emits invalid nodes."""

    def checked(node: Node, out: Rewriter) -> None:
        workspace = out.workspace
        out.workspace = names = _RecordedNames(workspace)
        try:
            adapter(node, out)
        except OpshiftError:
            raise
        except Exception as error:
            code = getattr(adapter, "__code__", None)
            file = code.co_filename if code else ""
            place = f"{file}:{error_line(error, file)}" if file else repr(adapter)
            reason = f"its adapter raises {type(error).__name__}: {error} ({place})"
            raise CannotConvert(reason, remedy="correct the adapter") from error
        finally:
            out.workspace = workspace
        problem = _problem(node, out, names.created)
        if problem:
            code = getattr(adapter, "__code__", None)
            place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(adapter)
            raise CannotConvert(f"its adapter {problem} ({place})", remedy="correct the adapter")

    return checked


def _problem(node: Node, out: Rewriter, created: set[str]) -> str:
    """Return the first problem of the emitted nodes; empty if they are valid."""
    if not out.emitted:
        return "emits no node"
    known, produced = {"", *node.inputs, *created}, set[str]()
    for emitted in out.emitted:
        results = emitted.node.outputs
        reason = _wrong_name(emitted.node, known, {"", *node.outputs, *created} - produced)
        reason = reason or _wrong_count(emitted, node, out)
        if reason:
            return f"emits {emitted.node.op_type} with {reason}"
        produced.update(filter(None, results))
        known.update(results)
    missing = [name for name in node.outputs if name not in produced and out.is_used(name)]
    return f"does not compute the output {missing[0]!r}" if missing else ""


def _wrong_name(node: Node, known: set[str], new: set[str]) -> str:
    for name in (*node.inputs, *node.outputs):
        if not isinstance(name, str):
            return f"the value {name!r}, which is not a name"
    unknown = [f"the unknown input {name!r}" for name in node.inputs if name not in known]
    unknown += [f"the output {name!r}, which is not a new name" for name in node.outputs if name not in new]
    return next(iter(unknown), "")


def _wrong_count(emitted: Emitted, node: Node, out: Rewriter) -> str:
    """Check the number of inputs of the new version; other operators are checked by their definitions."""
    key = emitted.node.op_type, emitted.node.domain, emitted.opset
    if out.target is None or key != (node.op_type, node.domain, out.opset):
        return ""
    count = len(emitted.node.inputs)
    # trailing empty names denote omitted inputs, so they may exceed the maximum
    is_valid = out.target.min_input <= count and not any(emitted.node.inputs[out.target.max_input :])
    return "" if is_valid else f"{count} inputs, which {out.target.id} does not accept"


class _RecordedNames:
    """Output of an adapter that records the names that it creates."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.created: set[str] = set()

    def fresh(self, hint: str) -> str:
        name = self._output.fresh(hint)
        self.created.add(name)
        return name

    def add_constant(self, tensor: Tensor) -> str:
        name = self._output.add_constant(tensor)
        self.created.add(name)
        return name

    def allow(self, kind: Allow, reason: str) -> bool:
        return self._output.allow(kind, reason)
