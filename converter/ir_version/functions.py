"""Rewrites of local functions for older IR versions: attribute defaults, inlining, value_info, overloads."""

from collections.abc import Iterable, Iterator
from graphlib import CycleError

from opshift.checker.ir_features.contents import Contents, Use
from opshift.checker.ir_features.finders import attribute_defaults
from opshift.converter.functions.inlining import inline_functions, inlining_obstacles
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    opset_imports,
)


def write_default_attributes(contents: Contents) -> None:
    """Write the defaults of attributes (IR version 9) into the calls that omit the attributes."""
    defaults = attribute_defaults(contents)
    for (_, call, *_), _ in contents.calls:
        present = {attribute.name for attribute in call.attribute}
        for name, default in defaults.get(called_function(call), {}).items():
            if name not in present:
                call.attribute.add().CopyFrom(default)
    for _, function in contents.functions:
        function.attribute.extend(attribute.name for attribute in function.attribute_proto)
        function.ClearField("attribute_proto")


MAX_WRITTEN_DEFAULTS, MAX_WRITTEN_BYTES = 100_000, 16 << 20
"""Maximum number of defaults that are written into calls, and maximum size beyond that of the model: calls of
a function with many or large defaults would make a small model huge."""


def _has_too_many_defaults(contents: Contents) -> bool:
    """Return whether writing the defaults into the calls would exceed a maximum."""
    defaults = attribute_defaults(contents)
    if not defaults:  # as in most models: do not collect the calls
        return False
    sizes = {name: sum(each.ByteSize() for each in found.values()) for name, found in defaults.items()}
    called = [name for (_, call, *_), _ in contents.calls if (name := called_function(call)) in defaults]
    size = sum(sizes[name] for name in called)
    is_large = size > MAX_WRITTEN_BYTES + contents.model.ByteSize()
    return is_large or sum(len(defaults[name]) for name in called) > MAX_WRITTEN_DEFAULTS


RECURSION = "it calls itself, directly or through other functions, and cannot be inlined"


def inline_all_functions(contents: Contents) -> None:
    """Replace every call by the nodes of its function."""
    inline_functions(contents.model, targets=contents.targets)


TOO_MANY_DEFAULTS = "the calls omit too many attributes with defaults, which each call would have to contain"
DEFAULTS_REMEDY = "remove the defaults that no node of the function reads"
FUNCTIONS_REMEDY = "inline the functions in the exporter"


def with_obstacles(uses: Iterable[Use], contents: Contents) -> Iterator[Use]:
    """Yield the uses of IR features; set `obstacle` for function features that cannot be rewritten."""
    obstacles = _inlining_obstacles(contents) if contents.functions else {}
    functions = {path: function_id(function) for path, function in contents.functions}
    has_too_many_defaults = _has_too_many_defaults(contents)
    for use in uses:
        if use.feature == "functions":
            yield use._replace(obstacle=obstacles.get(functions[use.place], ""), remedy=FUNCTIONS_REMEDY)
        elif use.feature == "attribute_defaults" and has_too_many_defaults:
            yield use._replace(obstacle=TOO_MANY_DEFAULTS, remedy=DEFAULTS_REMEDY)
        else:
            yield use


def _inlining_obstacles(contents: Contents) -> dict[LocalFunction, str]:
    model = contents.model
    opsets = opset_imports(model.opset_import, model.ir_version)
    try:
        obstacles = inlining_obstacles(model, opsets, contents.targets, contents.registry)
        return {function_id(function): reason for function, reason in obstacles}
    except CycleError as error:
        return dict.fromkeys(error.args[1], RECURSION)


def move_function_value_info(contents: Contents) -> None:
    """Move the value_info of every function to the main graph, with the name `domain::function/value`."""
    values = contents.model.graph.value_info
    for _, function in contents.functions:
        for value in function.value_info:
            values.append(value)
            values[-1].name = f"{function.domain}::{function.name}/{value.name}"
        function.ClearField("value_info")


def rename_overloads(contents: Contents) -> None:
    """Give each overloaded function a unique name, and update its calls."""
    names = _new_names(contents)
    for _, function in contents.functions:
        if function.overload:
            function.name = names[function_id(function)]
            function.ClearField("overload")
    for call in contents.nodes_with("overload"):
        node = call.proto
        called = LocalFunction(canonical_domain(node.domain), node.op_type, node.overload)
        node.op_type = names.get(called, node.op_type)
        node.ClearField("overload")


def _new_names(contents: Contents) -> dict[LocalFunction, str]:
    functions = [function_id(function) for _, function in contents.functions]
    nodes = (node for _, nodes in contents.node_lists for node in nodes)
    # A function that has the name of an operator would replace the operator.
    used = {(canonical_domain(node.domain), node.op_type) for node in nodes}
    for domain in {function.domain for function in functions}:
        used.update((domain, name) for name in contents.registry.names(domain))
    used.update((function.domain, function.name) for function in functions)
    new_names: dict[LocalFunction, str] = {}
    for function in functions:
        if not function.overload:
            continue
        name = f"{function.name}_{function.overload}"
        while (function.domain, name) in used:
            name += "_"
        used.add((function.domain, name))
        new_names[function] = name
    return new_names
