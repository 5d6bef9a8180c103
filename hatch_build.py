"""Build hooks: compiled definitions and routes, and their data, in the wheel; README.md in the metadata."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION: Final = "version.txt"

FILES: Final = (
    "registry/compiled.json",
    "registry/descriptions.json",
    "rewriting/compiled.json",
    "converter/recognition/compiled.json",
    "data/operators.json",
    "data/schema.json",
    VERSION,
)

PATTERNS: Final = "opshift/patterns"
"""Folder of the user's cache with texts that take a minute, in files named after the contents of sources."""


class CompiledFilesHook(BuildHookInterface[Any]):
    """Add the compiled files to a wheel; an editable installation compiles on first use."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the files into a temporary folder."""
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.mkdtemp()
        # A separate process leaves no modules of this source tree behind in the build frontend.
        # Its cache is temporary, too, and has only what depends on the contents of the source tree.
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        with suppress(OSError):
            shutil.copytree(Path(cache, PATTERNS), Path(self._folder, PATTERNS))
        environment = {**os.environ, "XDG_CACHE_HOME": self._folder}
        script = Path(self.root, "hatch_build.py")
        command = [sys.executable, str(script), self._folder, str(self.metadata.version)]
        subprocess.run(command, check=True, env=environment)
        for name in FILES:
            build_data["force_include"][str(Path(self._folder, name))] = f"opshift/{name}"
        # PEP 770: hatchling copies it to the folder `sboms` of the metadata
        self.build_config.target_config["sbom-files"] = [str(Path(self._folder, "opshift.cdx.json"))]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Compress the wheel again, as hatchling has no option for it, and remove the temporary folder."""
        if hasattr(self, "_folder"):
            smaller = Path(self._folder, "smaller.whl")
            with ZipFile(artifact_path) as wheel, ZipFile(smaller, "w") as target:
                for each in wheel.infolist():
                    target.writestr(each, wheel.read(each), compresslevel=9)
            shutil.copyfile(smaller, artifact_path)
            shutil.rmtree(self._folder)


class ReadmeHook(MetadataHookInterface):
    """Use README.md, with absolute links, as the text of the package index."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field `readme`."""
        text = Path(self.root, "README.md").read_text("utf-8")
        readme = package_readme(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def package_readme(text: str, repository: str) -> str:
    """Return README.md with links to a repository, without diagrams, which package indexes do not draw."""
    text = re.sub(r"^```mermaid\n.*?^```\n\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'\b(src|srcset)="(?!https?:)', rf'\1="{repository}/raw/main/', text)
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{repository}/raw/main/", text)
    return re.sub(r"(?<!!)(\[[^]]*\]\()(?!https?:|#)", rf"\1{repository}/blob/main/", text)


def compile_into(folder: Path, version: str) -> None:
    """Write the compiled files of this source tree, and the version of the package, into a folder."""
    root = Path(__file__).resolve().parent
    # An sdist has no links from `src/opshift` to the packages at its top.
    package = root / "src" / "opshift"
    spec = spec_from_file_location(
        "opshift", package / "__init__.py", submodule_search_locations=[str(package), str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["opshift"] = opshift = module_from_spec(spec)
    spec.loader.exec_module(opshift)
    from opshift.catalogue.data_package import data_files
    from opshift.catalogue.software_bill import NAME, software_bill
    from opshift.converter.compile_files import compile_files

    compile_files(folder)
    (folder / VERSION).write_text(version, "ascii")
    (folder / NAME).write_text(software_bill(version), "ascii")
    (folder / "data").mkdir()
    for name, content in data_files(opshift.default_registry(), version).items():
        (folder / name).write_text(content, "ascii")


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]), sys.argv[2])
