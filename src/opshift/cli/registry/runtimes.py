"""`opshift runtimes`: operators, versions and types that runtimes implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opshift.cli import completion, options
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.registry.operator_text import domains_with, parse_operator
from opshift.model.errors import UsageError
from opshift.model.message_text import did_you_mean
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.record import to_plain_data

if TYPE_CHECKING:
    from opshift.registry.runtimes.runtime import Runtime

RuntimeArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUNTIME",
        autocompletion=completion.complete_runtime,
        help="A name such as onnxruntime-1.31, or a YAML file that describes a runtime.",
    ),
]

KernelsArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="OPERATOR",
        autocompletion=completion.complete_operator,
        help="Conv, or ai.onnx.ml.LabelEncoder: show all its versions.",
    ),
]


def runtimes(
    name: RuntimeArgument = None, operator: KernelsArgument = None, form: options.FormatOption = Format.TEXT
) -> None:
    """List runtimes, the kernels of one runtime, or its kernels of one operator.

    A kernel implements some versions of an operator for some types. A version without a kernel also runs if
    the runtime replaces its nodes by the function body of the operator, and has kernels of the nodes in it.
    """
    from opshift.registry.runtimes.files import get_runtime, runtime_files

    if name is None:
        _print_all([get_runtime(each) for each in runtime_files()], form)
    elif operator is None:
        _print_runtime(get_runtime(name), form)
    else:
        _print_operator(get_runtime(name), operator, form)


def _print_all(found: list[Runtime], form: Format) -> None:
    domains = sorted({domain for each in found for domain in each.opsets})

    def write(page: Page) -> None:
        page.title("Runtimes with data about their kernels, and their newest opsets")
        columns = [
            Column("runtime", "cyan"),
            Column("device"),
            *map(number, ("IR version", *domains, "operators")),
        ]
        rows = [
            (
                each.name,
                each.provider,
                each.ir_version or "",
                *(each.opsets.get(domain, "") for domain in domains),
                len(each.operators),
            )
            for each in found
        ]
        page.table(columns, rows)

    print_result(form, {"runtimes": [_runtime_data(each) for each in found]}, write)


def _runtime_data(runtime: Runtime) -> dict[str, object]:
    facts = to_plain_data(runtime, exclude={"operators", "extends"})
    return {"name": runtime.name, **facts}


def _print_runtime(runtime: Runtime, form: Format) -> None:
    from opshift.catalogue.kernels import kernel_types, versions_without_kernel
    from opshift.registry.runtimes.runtime import versions_text

    missing = list(versions_without_kernel(runtime, registry_with(None)))

    def write(page: Page) -> None:
        page.title(f"{runtime.name}, {runtime.provider}")
        for domain, opset in runtime.opsets.items():
            page.line(f"{domain}: opsets up to {opset}")
        if runtime.ir_version:
            page.line(f"IR versions up to {runtime.ir_version}")
        for narrow, wide in runtime.computes_in.items():
            page.line(f"without a kernel for {narrow}, it computes in {wide}")
        if runtime.falls_back:
            page.line(f"nodes without a kernel run on {runtime.falls_back}")
        page.line(f"source: {runtime.evidence.source}, {runtime.evidence.date}")
        page.heading("Kernels")
        page.table(
            (Column("operator", "cyan"), "versions", "types"),
            [
                (name, versions_text(kernel.versions), kernel_types(kernel))
                for name, kernels in runtime.operators.items()
                for kernel in kernels
            ],
        )
        page.heading("Current operators without a kernel")
        page.table(
            (Column("version", "cyan"), ""),
            [(each.operator, cell) for each in missing for cell in each.cells],
        )
        _write_notes(page, runtime.notes)

    kernels = to_plain_data(runtime)["operators"]
    data = {
        **_runtime_data(runtime),
        "operators": kernels,
        "without_kernel": [each.as_dict() for each in missing],
    }
    print_result(form, data, write)


def _write_notes(page: Page, notes: dict[str, str]) -> None:
    if notes:
        page.heading("Restrictions and errors of kernels")
        page.table((Column("operator", "cyan"), ""), list(notes.items()))


def _print_operator(runtime: Runtime, text: str, form: Format) -> None:
    from opshift.catalogue.kernels import VersionKernels

    registry = registry_with(None)
    named = parse_operator(text, None, None)
    domains = [named.domain] if named.domain else [*domains_with(named.op_type, registry), DEFAULT_DOMAIN]
    domain = next((each for each in domains if f"{each}.{named.op_type}" in runtime.operators), domains[0])
    key = f"{domain}.{named.op_type}"
    operator = registry.operator(named.op_type, domain)
    if operator is not None:
        versions = [VersionKernels.of(each, runtime) for each in operator.versions]
    elif key in runtime.operators:
        kernels = runtime.operators[key]
        versions = [VersionKernels(f"{key}:{each.versions[0]}", (each,), False) for each in kernels]
    else:
        names = [*runtime.operators, *registry.names(domain)]
        remedy = did_you_mean(text, names, f"`opshift runtimes {runtime.name}` lists all")
        raise UsageError(f"neither ONNX nor {runtime.name} has an operator {text!r}", remedy=remedy)
    notes = {each: note for each, note in runtime.notes.items() if each.partition(":")[0] == key}

    def write(page: Page) -> None:
        page.title(f"{key} in {runtime.name}")
        rows = [(each.operator, cell) for each in versions for cell in each.cells]
        page.table((Column("version", "cyan"), "types"), rows)
        _write_notes(page, notes)

    data = {
        "runtime": runtime.name,
        "operator": key,
        "versions": [each.as_dict() for each in versions],
        "notes": notes,
    }
    print_result(form, data, write)
