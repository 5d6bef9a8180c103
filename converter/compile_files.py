"""Compile all definitions, conversion routes and patterns, for a wheel and for the web page of the converter.

`python -m opshift.converter.compile_files FOLDER` writes the files. Run the command in a new process: texts
that are already in memory are not recorded.
"""

import sys
from pathlib import Path
from typing import Final

from opshift.converter.element_types.requested_types import kept_operators
from opshift.registry import precompiled
from opshift.registry.explanations import refusal_causes
from opshift.registry.ir_versions import ir_versions
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.registry import default_registry
from opshift.rewriting import routes

DEFINITIONS: Final = "registry/compiled.json"
DESCRIPTIONS: Final = "registry/descriptions.json"
ROUTES: Final = "rewriting/compiled.json"
PATTERNS: Final = "converter/recognition/compiled.json"


def compile_files(folder: Path) -> None:
    """Write the compiled files of this source tree into a folder, in subfolders as in the package."""
    compiled = {
        DEFINITIONS: precompiled.DEFINITIONS.record(),
        DESCRIPTIONS: precompiled.DESCRIPTIONS.record(),
        ROUTES: routes.ROUTES.record(),
    }
    # Imported after `record()`, because this import reads definitions and routes, which have to be recorded.
    from opshift.converter.recognition import load

    compiled[PATTERNS] = load.PATTERNS.record()
    ir_versions()
    onnx_defs()
    refusal_causes()
    kept_operators()
    default_registry().newest_opset()
    default_registry().types.names()
    for version in default_registry().get_all_schemas_with_history():
        assert version.doc, version.id
    routes.routes_text()
    for op_type in load.operator_names(default_registry()):
        load.patterns_text(op_type)
    for name, texts in compiled.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(precompiled.packaged_file(texts), "ascii")


if __name__ == "__main__":
    compile_files(Path(sys.argv[1]))
