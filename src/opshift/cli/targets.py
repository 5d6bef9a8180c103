"""`opshift targets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opshift.cli.options import FoldersOption, Format, FormatOption, registry_with
from opshift.cli.output import Column, emit

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.releases import Consumer, Release

SOURCES = {
    "onnx": "https://github.com/onnx/onnx/blob/main/docs/Versioning.md",
    "onnxruntime": "https://onnxruntime.ai/docs/reference/compatibility.html",
}


def targets(folders: FoldersOption = None, form: FormatOption = Format.TEXT) -> None:
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

    emit(form, {product: _releases(product, releases) for product, releases in products.items()}, write)


def _write_releases(page: Page, product: str, releases: Mapping[str, Release | Consumer]) -> None:
    domains = list(dict.fromkeys(domain for release in releases.values() for domain in release.opsets))
    columns = [Column("target", style="cyan"), Column("IR version", is_number=True)]
    columns += [Column(domain, is_number=True) for domain in domains]
    sources = {getattr(release, "source", "") for release in releases.values()}
    if sources != {""}:
        columns += [Column("note"), Column("source", style="dim")]
    rows = [_row(f"{product}-{version}", release, domains) for version, release in releases.items()]
    page.table(columns, [row[: len(columns)] for row in rows])
    if product in SOURCES:
        page.line(f"source: {SOURCES[product]}", style="dim")


def _row(name: str, release: Release | Consumer, domains: list[str]) -> tuple[object, ...]:
    opsets = (release.opsets.get(each, "") for each in domains)
    remarks = (getattr(release, "note", ""), getattr(release, "source", ""))
    return (name, release.ir_version or "unknown", *opsets, *remarks)


def _releases(product: str, releases: Mapping[str, Release | Consumer]) -> list[dict[str, Any]]:
    from opshift.registry.record import plain

    source = {"source": SOURCES[product]} if product in SOURCES else {}
    return [
        {"target": f"{product}-{version}", **plain(release), **source}
        for version, release in releases.items()
    ]
