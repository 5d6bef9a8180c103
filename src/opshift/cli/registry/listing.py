"""`opshift list` and `opshift resolve`."""

from collections.abc import Mapping

import typer

from opshift.cli import options
from opshift.cli.options import Format, registry_with
from opshift.cli.output import count_text, print_result
from opshift.cli.page import Column, Page, number
from opshift.cli.registry.operator_text import find_version, parse_operator
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.releases import Consumer, Release


def resolve(
    operator: options.OperatorArgument,
    opset: options.OpsetOption = None,
    domain: options.DomainOption = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Print the version of an operator at an opset."""
    found = find_version(parse_operator(operator, domain, opset), registry_with(folders))
    # not `page.line`, which folds the name in a narrow terminal
    print_result(form, {**_entry(found), "status": found.status}, lambda page: typer.echo(found.id))


def list_operators(
    domain: options.DomainOption = None,
    opset: options.OpsetOption = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """List the operators of an opset.

    Without --domain, all domains are listed: ai.onnx at --opset, and the other domains at the opsets of the
    ONNX release that introduced this opset.
    """
    registry = registry_with(folders)
    opsets = _opsets(registry, domain, opset)
    found = {}
    for each, at in opsets.items():
        versions = (registry.at(name, at, each) for name in registry.names(each))
        found[each] = [version for version in versions if version]

    def write(page: Page) -> None:
        for position, (each, versions) in enumerate(found.items()):
            title = f"{each}, opset {opsets[each]}: {count_text(len(versions), 'operator')}"
            (page.heading if position else page.title)(title)
            page.table(OPERATOR_COLUMNS, [(version.name, version.id, _note(version)) for version in versions])

    data = [
        {"domain": each, "opset": opsets[each], "operators": [_entry(version) for version in versions]}
        for each, versions in found.items()
    ]
    print_result(form, {"domains": data}, write)


OPERATOR_COLUMNS = ("operator", Column("version", "cyan"), Column("note", "yellow"))


def _opsets(registry: Registry, domain: str | None, opset: int | None) -> dict[str, int]:
    """Return the opset of each domain to list."""
    from opshift.converter.options import read_target

    canonical = canonical_domain(domain or "")
    if opset is not None:
        read_target({canonical: opset}, registry)
    if domain is not None:
        return {canonical: opset or registry.newest_opset(canonical)}
    newest = {each: registry.newest_opset(each) for each in registry.domains()}
    release = registry.releases.first_release_with(DEFAULT_DOMAIN, opset) if opset else None
    if opset is None or release is None:
        return newest
    # domains that no ONNX release contains have no opset at that time: list the newest
    released = {each for onnx_release in registry.releases.onnx.values() for each in onnx_release.opsets}
    added = {each: at for each, at in newest.items() if each not in released}
    return {**release.opsets, DEFAULT_DOMAIN: opset, **added}


def _entry(version: OperatorVersion) -> dict[str, object]:
    return {
        "operator": str(version.id),
        "domain": version.domain,
        "op_type": version.name,
        "since_version": version.since_version,
        "deprecated": version.deprecated,
    }


def _note(version: OperatorVersion) -> str:
    if version.deprecation:
        instead = version.deprecation.replaced_by
        return f"deprecated, use {instead}" if instead else "deprecated"
    return "experimental" if version.status == "EXPERIMENTAL" else ""


SOURCE_URLS = {
    "onnx": "https://github.com/onnx/onnx/blob/main/docs/Versioning.md",
    "onnxruntime": "https://onnxruntime.ai/docs/reference/compatibility.html",
}


def targets(folders: options.DefinitionsOption = None, form: options.FormatOption = Format.TEXT) -> None:
    """List the releases that --target accepts.

    These are releases of ONNX, onnxruntime and other programs that read models, each with the newest opsets
    and IR version that it supports, and the source of these numbers. A folder given with --opsets can add
    releases in a file consumers.yaml.
    """
    products = registry_with(folders).releases.products

    def write(page: Page) -> None:
        for position, (product, releases) in enumerate(products.items()):
            (page.heading if position else page.title)(product)
            _write_releases(page, product, releases)

    data = {product: _releases(product, releases) for product, releases in products.items()}
    print_result(form, data, write)


def _write_releases(page: Page, product: str, releases: Mapping[str, Release | Consumer]) -> None:
    domains = list(dict.fromkeys(domain for release in releases.values() for domain in release.opsets))
    columns = [Column("target", "cyan"), number("IR version"), *map(number, domains)]
    if any(getattr(release, "source", "") for release in releases.values()):
        columns += [Column("note"), Column("source", "dim")]
    rows = []
    for version, release in releases.items():
        opsets = (release.opsets.get(each, "") for each in domains)
        remarks = (getattr(release, "note", ""), getattr(release, "source", ""))
        row = (f"{product}-{version}", release.ir_version or "unknown", *opsets, *remarks)
        rows.append(row[: len(columns)])
    page.table(columns, rows)
    if product in SOURCE_URLS:
        page.line(f"source: {SOURCE_URLS[product]}", style="dim")


def _releases(product: str, releases: Mapping[str, Release | Consumer]) -> list[dict[str, object]]:
    from opshift.registry.record import to_plain_data

    source = {"source": SOURCE_URLS[product]} if product in SOURCE_URLS else {}
    return [
        {"target": f"{product}-{version}", **to_plain_data(release), **source}
        for version, release in releases.items()
    ]
