"""Functions of a model (IR version 8); for older versions, they are inlined."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError

from opshift.converter.functions import identity
from opshift.converter.inlining import inline_functions, inlining_obstacles
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.converter.opsets import opset_imports
from opshift.registry.catalogue import LocalFunction

REMEDY = "inline the functions in the tool that exports the model"
CIRCLE = "it calls itself, directly or through other functions, and cannot be inlined"


def find(contents: Contents) -> Iterator[Use]:
    """Yield every function, with the reason why its calls cannot be inlined."""
    if not contents.functions:
        return
    obstacles = _obstacles(contents)
    for path, function in contents.functions:
        yield Use("functions", path, obstacles.get(identity(function), ""), REMEDY)


def inline(contents: Contents) -> None:
    """Replace every call by the nodes of its function."""
    inline_functions(contents.model)


def _obstacles(contents: Contents) -> dict[LocalFunction, str]:
    model = contents.model
    opsets = opset_imports(model.opset_import, model.ir_version)
    try:
        obstacles = inlining_obstacles(model, opsets, contents.targets, contents.registry)
        return {identity(function): reason for function, reason in obstacles}
    except CycleError as error:
        return dict.fromkeys(error.args[1], CIRCLE)
