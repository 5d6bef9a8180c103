"""Page that converts models, and the targets that it offers."""

from collections.abc import Mapping
from typing import Final

from opshift.catalogue.browser.session import ALL_RUNTIMES
from opshift.catalogue.paths import CONVERTER
from opshift.catalogue.rendering import Pages, Renderer
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import runtime_files
from opshift.registry.steps import Allow

ALLOWED: Final[Mapping[Allow, str]] = {
    "approximate": "results may differ in rounding",
    "assume-nonnegative": "indices are not negative",
    "assume-nonempty": "dimensions are not 0",
    "large": "many nodes or large constants in place of one node",
    "interface-types": "inputs and outputs have wider types",
    "drop-metadata": "metadata that the IR version lacks is lost",
    "drop-training": "training information that the IR version lacks is lost",
    "drop-devices": "device configurations that the IR version lacks are lost",
}


def converter_page(renderer: Renderer, digest: str) -> Pages:
    """Yield the page and its copy; `digest` is that of the files which it loads."""
    registry = default_registry()  # that of the page, also if the site has further domains
    opsets = range(registry.newest_opset(), 0, -1)
    targets = {"Opset of ai.onnx": [(f"opset {each}", str(each)) for each in opsets]}
    for product, releases in registry.releases.products.items():
        names = [f"{product}-{each}" for each in reversed(list(releases))]
        targets[product] = [(each, each) for each in names]
    runtimes: dict[str, list[tuple[str, str]]] = {}
    for each in reversed(list(runtime_files())):
        runtimes.setdefault(each.rpartition("-")[0], []).append((each, each))
    return renderer.page(
        "convert.html",
        CONVERTER,
        "Convert a model",
        targets=targets,
        opsets=opsets,
        runtimes=dict(sorted(runtimes.items())),
        all_runtimes=ALL_RUNTIMES,
        chosen=str(registry.releases.released_opset(DEFAULT_DOMAIN)),
        allow=ALLOWED,
        digest=digest,
    )
