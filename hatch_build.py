"""Build hook that compiles definitions and routes into the wheel, see `registry/precompiled.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DEFINITIONS: Final = "registry/compiled.json"
DESCRIPTIONS: Final = "registry/descriptions.json"
ROUTES: Final = "converter/rewrite/compiled.json"


class CompiledFilesHook(BuildHookInterface[Any]):
    """Add the compiled files to a wheel; an editable installation compiles on first use."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the files into a temporary folder."""
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.mkdtemp()
        # A separate process leaves no modules of this source tree behind in the build frontend.
        # Its cache is temporary, too: the build depends on the source tree only.
        environment = {**os.environ, "XDG_CACHE_HOME": self._folder}
        script = Path(self.root, "hatch_build.py")
        subprocess.run([sys.executable, script, self._folder], check=True, env=environment)
        for name in (DEFINITIONS, DESCRIPTIONS, ROUTES):
            build_data["force_include"][str(Path(self._folder, name))] = f"opshift/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def compile_into(folder: Path) -> None:
    """Write the compiled files of this source tree into a folder."""
    root = Path(__file__).resolve().parent
    sys.path.insert(0, str(root / "src"))
    import opshift

    # An sdist has no links from `src/opshift` to the packages at the top of the tree.
    opshift.__path__.append(str(root))
    from opshift.converter.rewrite import routes
    from opshift.registry import precompiled
    from opshift.registry.explanations.refusal_causes import refusal_causes
    from opshift.registry.ir_versions import ir_versions
    from opshift.registry.onnx_defs import onnx_defs
    from opshift.registry.registry import default_registry

    # Reading definitions and routes records them.
    compiled = {
        DEFINITIONS: precompiled.DEFINITIONS.record(),
        DESCRIPTIONS: precompiled.DESCRIPTIONS.record(),
        ROUTES: routes.ROUTES.record(),
    }
    ir_versions()
    onnx_defs()
    refusal_causes()
    default_registry().newest_opset()
    for version in default_registry().get_all_schemas_with_history():
        assert version.doc, version.id
    routes.routes_text()
    for name, texts in compiled.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(precompiled.packaged_file(texts), "ascii")


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]))
