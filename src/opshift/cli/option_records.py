"""Options that several commands have: a command has one record of them as a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple, get_type_hints


def expand_records(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: a parameter whose type is a NamedTuple becomes the options in its fields.

    The command line has these options at the place of the parameter, and the command gets the record. A field
    without a default gets the name of the command.
    """
    parameters = signature(command, eval_str=True).parameters.values()
    records = {each.name: each.annotation for each in parameters if _is_record(each.annotation)}
    expanded = [option for each in parameters for option in _options(each)]

    @wraps(command)
    def run(**arguments: Any) -> None:
        for name, record in records.items():
            values = {
                field: arguments.pop(field) if field in record._field_defaults else command.__name__
                for field in record._fields
            }
            arguments[name] = record(**values)
        command(**arguments)

    vars(run)["__signature__"] = Signature(expanded)  # which typer reads
    return run


def _is_record(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def _options(parameter: Parameter) -> Iterator[Parameter]:
    record: type[NamedTuple] = parameter.annotation
    if not _is_record(record):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    types = get_type_hints(record, include_extras=True)
    for name, default in record._field_defaults.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
