"""Page that converts models, and the targets that it offers."""

from collections.abc import Mapping
from typing import Final

from opshift.catalogue.browser.session import ALL_RUNTIMES
from opshift.catalogue.paths import CONVERTER
from opshift.catalogue.rendering import Pages, Renderer
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime, runtime_files
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


COMMANDS: Final[Mapping[str, str]] = {
    "convert": "Convert the model to the target.",
    "plan": "List what a conversion to the target would change, or what prevents it.",
    "reach": "List the opsets to which the model can be converted.",
    "runs": "List the runtimes that run the model.",
    "fit": "Convert the model so that one runtime implements all nodes.",
    "inspect": "Show opsets, operators, inputs and outputs.",
    "check": "List the rules of the ONNX specification that the model breaks.",
}
"""Commands with a sentence for each."""

MIN_SHARE: Final = 0.75
"""Share of runtimes that support the default target."""

SAMPLE: Final = """\
<ir_version: 8, opset_import: ["" : 17]>
sample (float[N, 4] x, float[4] scale, float[4] bias) => (float[N, 4] y) {
    normal = LayerNormalization <axis = -1> (x, scale, bias)
    active = HardSwish (normal)
    y = Softmax <axis = -1> (active)
}
"""
"""A model to try the page with."""


def _common_opset() -> int:
    """Return the newest opset of ai.onnx that most runtimes support in their newest release."""
    newest = {name.rpartition("-")[0]: name for name in runtime_files()}  # the newest release is the last
    opsets = sorted(get_runtime(name).opsets.get(DEFAULT_DOMAIN, 0) for name in newest.values())
    return opsets[int((1 - MIN_SHARE) * len(opsets))]


def converter_page(renderer: Renderer, digest: str) -> Pages:
    """Yield the page and its copy; `digest` is the digest of the files that the page loads."""
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
        description="Convert an ONNX model to another opset in the browser, without uploading it.",
        targets=targets,
        opsets=opsets,
        runtimes=dict(sorted(runtimes.items())),
        all_runtimes=ALL_RUNTIMES,
        chosen=str(_common_opset()),
        newest=str(registry.releases.released_opset(DEFAULT_DOMAIN)),
        commands=COMMANDS,
        sample=SAMPLE,
        allow=ALLOWED,
        digest=digest,
    )
