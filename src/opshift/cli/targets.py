"""`opshift targets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opshift.cli.options import Format, FormatOption, registry_with
from opshift.cli.output import Column, emit

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.releases import Release


def targets(form: FormatOption = Format.TEXT) -> None:
    """List the releases that --target can name.

    These are ONNX's and onnxruntime's, each with its opsets and IR version.
    """
    releases = registry_with(None).releases
    products = {"onnx": releases.onnx, "onnxruntime": releases.onnxruntime}

    def write(page: Page) -> None:
        for position, (product, known) in enumerate(products.items()):
            (page.heading if position else page.title)(product)
            _write_releases(page, product, known)

    emit(form, {product: _releases(product, known) for product, known in products.items()}, write)


def _write_releases(page: Page, product: str, known: Mapping[str, Release]) -> None:
    domains = list(dict.fromkeys(domain for release in known.values() for domain in release.opsets))
    columns = [Column("target", style="cyan"), Column("IR version", is_number=True)]
    columns += [Column(domain, is_number=True) for domain in domains]
    rows = [
        (f"{product}-{version}", release.ir_version, *(release.opsets.get(each, "") for each in domains))
        for version, release in known.items()
    ]
    page.table(columns, rows)


def _releases(product: str, known: Mapping[str, Release]) -> list[dict[str, Any]]:
    return [{"target": f"{product}-{version}", **release.model_dump()} for version, release in known.items()]
