"""Models of onnx_ir: recognition, types, and messages for functions that read models.

A caller with such a model has imported onnx_ir, so recognizing one needs no import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import ParamSpec, Protocol, TypeGuard, TypeVar

from opshift.model.messages import ModelProto

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Argument = TypeVar("Argument")


class OnnxIrModel(Protocol):
    """An `onnx_ir.Model`."""

    @property
    def graph(self) -> object:
        """The main graph."""

    @property
    def opset_imports(self) -> object:
        """The opset imports by domain."""


class OnnxProgram(Protocol):
    """A `torch.onnx.ONNXProgram`."""

    @property
    def model(self) -> object:
        """The `onnx_ir.Model`."""

    @property
    def exported_program(self) -> object:
        """The program that was exported."""

    def release(self) -> None:
        """End the session that runs the model."""


def is_onnx_ir(model: object) -> TypeGuard[OnnxIrModel | OnnxProgram]:
    """Return whether an object is a model of onnx_ir, or a program with one."""
    package = sys.modules.get("onnx_ir")
    held = getattr(model, "model", None) if hasattr(model, "exported_program") else model
    return package is not None and isinstance(held, package.Model)


def reading_onnx_ir(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Pass messages with placeholders to a function that reads models, for arguments of onnx_ir."""

    @wraps(function)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with ExitStack() as stack:
            given = [message_of(each, stack) for each in args]
            named = {name: message_of(each, stack) for name, each in kwargs.items()}
            return function(*given, **named)  # type: ignore[arg-type]

    return wrapper


def message_of(argument: Argument, stack: ExitStack) -> Argument | ModelProto:
    """Return the message of a model of onnx_ir, which is valid while the stack is open, or the argument."""
    if not is_onnx_ir(argument):
        return argument
    from opshift.model.onnx_ir.message import OnnxIrMessage  # few models need it

    return stack.enter_context(OnnxIrMessage(argument)).proto
