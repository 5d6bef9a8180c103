"""`opshift list`, `opshift resolve` and `opshift targets`: list operators, versions and releases."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self, cast

import typer

from opshift.cli import completion, options
from opshift.cli.errors import names_in_arguments
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.registry.operator_text import find_version, parse_operator
from opshift.model.message_text import count_text
from opshift.registry.models import OperatorVersion
from opshift.registry.record import to_plain_data
from opshift.registry.registry import Registry
from opshift.registry.releases import Consumer, Release, Releases
from opshift.registry.selection import STATUSES, Status, Versions, opsets_at, status_at


@names_in_arguments()
def resolve(
    operator: options.OperatorArgument,
    opset: options.OpsetOption = None,
    domain: options.DomainOption = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Print the version of an operator at an opset."""
    registry = registry_with(folders)
    named = parse_operator(operator, domain, opset)
    found = find_version(named, registry)
    entry = _ListedVersion.of(found, registry, named.opset or registry.newest_opset(found.domain))
    # not with `page.line`, which folds a long name in a narrow terminal
    print_result(form, entry._asdict(), lambda page: typer.echo(found.id))


@names_in_arguments()
def list_operators(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=completion.complete_operator,
            help="The name of an operator, or a pattern such as 'Reduce*'.",
        ),
    ] = "*",
    domain: options.DomainOption = None,
    opset: options.OpsetOption = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            autocompletion=completion.complete_status,
            help="The status at the opset: active, preview, deprecated or removed. May be repeated.",
        ),
    ] = None,
    accepts: Annotated[
        str | None,
        typer.Option(
            "--accepts",
            metavar="TYPE",
            autocompletion=completion.complete_type,
            help="A type of an input: int8, or 'seq(tensor(int8))'.",
        ),
    ] = None,
    produces: Annotated[
        str | None,
        typer.Option(
            "--produces",
            metavar="TYPE",
            autocompletion=completion.complete_type,
            help="A type of an output, written as for --accepts.",
        ),
    ] = None,
    parameter: Annotated[
        str | None,
        typer.Option(
            "--parameter",
            metavar="NAME",
            help="The name of an input or output; with --accepts or --produces, of one with this type.",
        ),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option("--attribute", metavar="NAME", help="The name of an attribute of the operator."),
    ] = None,
    function: Annotated[
        bool | None, typer.Option("--function/--no-function", help="Only functions, or only other operators.")
    ] = None,
    changed: Annotated[
        tuple[int, int] | None,
        typer.Option(
            "--changed",
            metavar="OLD NEW",
            help="Only operators that were added, changed or removed.",
        ),
    ] = None,
    versions: Annotated[
        str,
        typer.Option(
            "--versions",
            metavar="current|first|all",
            help="The version in effect at the opset, the first version that matches the filters, or all "
            "versions up to the opset.",
        ),
    ] = "current",
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """List the operators of an opset that match all filters.

    Without --domain, all domains are listed: ai.onnx at --opset, and the other domains at the opsets of the
    ONNX release that introduced this opset. In each domain, removed operators are last.
    """
    registry = registry_with(folders)
    at = changed[1] if changed and opset is None else opset
    selected = registry.select(
        name,
        domain=domain,
        opset=at,
        versions=cast("Versions", versions),
        status=cast("list[Status]", status) or STATUSES,
        accepts=accepts,
        produces=produces,
        parameter=parameter,
        attribute=attribute,
        function=function,
        changed=changed,
    )
    opsets = opsets_at(registry, domain, at)
    found = {
        each: [
            _ListedVersion.of(version, registry, opsets[each])
            for version in selected
            if version.domain == each
        ]
        for each in opsets
    }

    def write(page: Page) -> None:
        noun = "operator" if versions == "current" else "version"
        for position, (each, entries) in enumerate(found.items()):
            removed = sum(entry.status == "removed" for entry in entries)
            count = count_text(len(entries) - removed, noun) + (f", {removed} removed" if removed else "")
            (page.heading if position else page.title)(f"{each}, opset {opsets[each]}: {count}")
            if entries:
                page.table(
                    OPERATOR_COLUMNS, [(entry.op_type, entry.operator, entry.note) for entry in entries]
                )

    data = [
        {"domain": each, "opset": opsets[each], "operators": [entry._asdict() for entry in entries]}
        for each, entries in found.items()
    ]
    print_result(form, {"domains": data}, write)


OPERATOR_COLUMNS = ("operator", Column("version", "cyan"), Column("note", "bold magenta"))


class _ListedVersion(NamedTuple):
    """Operator version at an opset; the field names are the keys in JSON."""

    operator: str
    domain: str
    op_type: str
    since_version: int
    status: Status
    deprecated: bool
    removed_in: int | None
    replaced_by: str | None

    @classmethod
    def of(cls, version: OperatorVersion, registry: Registry, opset: int) -> Self:
        operator = registry.operator(version.name, version.domain)
        assert operator is not None
        status = status_at(opset, version, operator)
        removal = operator.versions[-1].removal if status == "removed" else None
        successor = removal or version.deprecation
        return cls(
            operator=str(version.id),
            domain=version.domain,
            op_type=version.name,
            since_version=version.since_version,
            status=status,
            deprecated=version.deprecated,
            removed_in=removal.removed_in if removal else None,
            replaced_by=" and ".join(successor.replacements) or None if successor else None,
        )

    @property
    def note(self) -> str:
        """Remark on the status, such as `deprecated, use Resize`; empty if the version is active."""
        event = f"removed in opset {self.removed_in}" if self.removed_in else self.status
        replacement = f", use {self.replaced_by}" if self.replaced_by else ""
        return "" if self.status == "active" else event + replacement


SOURCE_URLS = {
    "onnx": "https://github.com/onnx/onnx/blob/main/docs/Versioning.md",
    "onnxruntime": "https://onnxruntime.ai/docs/reference/compatibility.html",
}


def targets(
    product: Annotated[
        str | None,
        typer.Argument(
            metavar="PRODUCT",
            autocompletion=completion.complete_product,
            help="A product such as tensorrt: list only its releases, with the source of each.",
        ),
    ] = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """List the releases that --target accepts.

    These are releases of ONNX, onnxruntime and other programs that read models, each with the newest opsets
    and IR version that it supports. JSON, and the list of one product, have the source of these numbers.
    Names that `opshift runtimes` lists are targets, too. A folder given with --opsets can add releases in a
    file consumers.yaml.
    """
    found = registry_with(folders).releases
    listed = found.products if product is None else {found.product_named(product): found.versions_of(product)}

    def write(page: Page) -> None:
        for position, (title, group) in enumerate(found.grouped_products().items()):
            if position:
                page.blank()
            page.prose(f"{title}: {', '.join(group)}", style="bold")
            for each in group:
                page.heading(each)
                _write_releases(page, each, found)
        page.blank()
        page.prose("Programs that document no newest opset: give an opset instead", style="bold")
        for program, fact in found.undocumented.items():
            page.prose(f"{program}: {fact}")
        page.blank()
        page.line("sources: opshift targets PRODUCT, or --format json")

    def write_product(page: Page) -> None:
        for each in listed:
            page.title(each)
            _write_releases(page, each, found, with_sources=True)

    data = {each: _releases_data(each, releases) for each, releases in listed.items()}
    print_result(form, data, write if product is None else write_product)


def _write_releases(page: Page, product: str, found: Releases, *, with_sources: bool = False) -> None:
    releases = found.versions_of(product)
    domains = dict.fromkeys(domain for release in releases.values() for domain in release.opsets)
    columns: dict[Column, list[object]] = {
        Column("target", "cyan"): [f"{product}-{version}" for version in releases],
        number("IR version"): [release.ir_version or "" for release in releases.values()],
        **{number(each): [release.opsets.get(each, "") for release in releases.values()] for each in domains},
        Column("note"): [_release_remark(release) for release in releases.values()],
    }
    sources = [_source_text(product, release) for release in releases.values()]
    if with_sources and len(set(sources)) > 1:
        columns[Column("source")] = [*sources]
    shown = {column: cells for column, cells in columns.items() if any(cells)}
    page.table(list(shown), zip(*shown.values(), strict=True))
    if with_sources and len(set(sources)) == 1:
        page.line(f"source: {sources[0]}")
    variants = [each for each, original in found.variants.items() if original == product]
    if variants:
        page.prose(f"the same versions of these packages are targets, too: {', '.join(variants)}")


def _source_text(product: str, release: Release | Consumer) -> str:
    return release.source if isinstance(release, Consumer) else SOURCE_URLS.get(product, "")


def _release_remark(release: Release | Consumer) -> str:
    if isinstance(release, Consumer):
        return release.note
    return "" if release.released else "not released"


def _releases_data(product: str, releases: Mapping[str, Release | Consumer]) -> list[dict[str, object]]:
    return [
        {"target": f"{product}-{version}", **to_plain_data(each), "source": _source_text(product, each)}
        for version, each in releases.items()
    ]
