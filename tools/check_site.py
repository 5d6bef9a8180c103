"""Build the site, and check its size, search, accessibility and conversions in Chromium.

`python tools/check_site.py` needs Node.js, npm and Chromium. It installs two packages into a temporary
folder. `--models FOLDER` also converts models of a folder under Node.js and compares the results with
the command line; `--large` converts a model of 3 GB in Chromium.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import hashlib
import json
import posixpath
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import onnx
from onnx import parser

import opshift
from opshift.analysis.model_diff.diff import diff_model
from opshift.analysis.pages.write_report import write_report
from opshift.catalogue.browser.bundle import converter_files, digest
from opshift.catalogue.site import build_site, site_images
from opshift.converter.report import Report
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.atomic_files import write_files
from opshift.model.errors import OpshiftError
from opshift.model.wire_format import field_head
from opshift.proposals.page import review_page
from opshift.registry.registry import default_registry

SCRIPTS: Final = Path(__file__).parent / "site_checks"

PROPOSAL: Final = Path(__file__).parents[1] / "src" / "opshift" / "proposals" / "examples" / "squareplus"

PACKAGES: Final = ("playwright-core@1.65.1", "axe-core@4.14.1")
"""Packages of npm that the check in Chromium needs."""

TARGET: Final = 11

WEIGHT_BYTES: Final = 1_000_000_000
"""Bytes of each of the three weights of the large model."""

MAX_MEMORY: Final = 100_000_000
"""Maximum growth of the resident memory of a browser that converts the large model, in bytes."""

MAX_SECONDS: Final = 60
"""Maximum CPU time of a build, in seconds."""

MAX_BYTES: Final = {
    "index.html": 60_000,
    "operators/*/*/index.html": 40_000,
    "runtimes/*.html": 60_000,
    "*.html": 90_000,
}
"""Maximum compressed size of a page with its style and scripts, by pattern of the path, in bytes."""

MODEL: Final = """
<ir_version: 8, opset_import: ["" : 17]>
example (float[N, 4] x) => (float[N, 1] y) {
    axes = Constant <value = int64[1] {1}> ()
    a = Clip (x)
    b = HardSwish (a)
    y = ReduceMean <axes = [1]> (b)
}
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Handler of requests that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def handle(self) -> None:
        """Handle the requests of a connection; a browser that leaves a page closes it early."""
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""
    with ThreadingHTTPServer(("localhost", 0), partial(QuietHandler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def write_site(folder: Path) -> None:
    """Build the site, and check the duration of the build and the sizes of its pages.

    Raises:
        SystemExit: the build takes too long, or a page is too large.
    """
    started = time.process_time()
    loaded = converter_files(opshift.__version__)
    files = build_site(default_registry(), opshift.__version__, converter=digest(loaded))
    seconds = time.process_time() - started
    write_files({folder / path: text for path, text in files.items()})
    write_files({folder / path: content for path, content in (loaded | site_images()).items()})
    print(f"built {len(files):,} files in {seconds:.1f} s of CPU time")
    if seconds > MAX_SECONDS:
        raise SystemExit(f"the build takes longer than {MAX_SECONDS} s")
    sizes = dict(first_loads(files))
    for pattern, most in MAX_BYTES.items():
        path = max(fnmatch.filter(sizes, pattern), key=sizes.__getitem__)
        print(f"{pattern}: at most {sizes[path]:,} bytes ({path})")
        if sizes[path] > most:
            raise SystemExit(f"{path} loads more than {most:,} bytes")


def first_loads(files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield each page with the compressed size of the page and of the files that it loads at once."""
    sizes = {path: len(gzip.compress(text.encode(), mtime=0)) for path, text in files.items()}
    for path, text in files.items():
        if path.endswith(".html"):
            loaded = re.findall(r'<(?:script src|link rel="(?:stylesheet|icon)" href)="([^"]*)"', text)
            names = (posixpath.normpath(posixpath.join(posixpath.dirname(path), each)) for each in loaded)
            yield path, sizes[path] + sum(sizes.get(each, 0) for each in names)


def write_reports(folder: Path) -> None:
    """Write a plan, differences of models and a review page, which share the design of the site."""
    model = parser.parse_model(MODEL)
    write_report(Report.of(opshift.plan_version(model, 9)), folder / "reports" / "plan.html")
    converted = opshift.convert_version(model, TARGET)
    write_report(diff_model(model, converted), folder / "reports" / "diff.html")
    review = review_page(PROPOSAL, default_registry())
    write_files({folder / "reports" / "review.html": review.html()})


def write_large_model(path: Path) -> None:
    """Write a model with weights that are holes in its file."""
    names = "uvw"
    nodes = [onnx.helper.make_node("HardSwish", [name], [name * 2]) for name in names]
    nodes.append(onnx.helper.make_node("Sum", [name * 2 for name in names], ["y"]))
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "large", [], [output]).SerializeToString()
    payload = field_head(onnx.TensorProto.RAW_DATA_FIELD_NUMBER, WEIGHT_BYTES)
    heads = []
    for name in names:
        tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[WEIGHT_BYTES // 4])
        fields = tensor.SerializeToString() + payload
        number = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
        heads.append(field_head(number, len(fields) + WEIGHT_BYTES) + fields)
    model = onnx.ModelProto(ir_version=8)
    model.opset_import.add(version=17)
    size = len(graph) + sum(map(len, heads)) + len(heads) * WEIGHT_BYTES
    with path.open("wb") as file:
        file.write(model.SerializeToString() + field_head(onnx.ModelProto.GRAPH_FIELD_NUMBER, size) + graph)
        for head in heads:
            file.write(head)
            file.seek(WEIGHT_BYTES, 1)
        file.truncate()


def compare_models(site: Path, folder: Path, count: int, scratch: Path) -> None:
    """Convert models under Node.js and with the command line's function, and compare the bytes."""
    models = sorted(folder.rglob("*.onnx"))
    models = models[:: max(1, len(models) // count)][:count]
    script = [shutil.which("node") or "node", str(SCRIPTS / "convert_models.mjs"), str(site), str(TARGET)]
    names = "".join(f"{each}\n" for each in models)
    found = subprocess.run(script, input=names, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(found.stderr[-2000:])
    expected = [_digest_of_conversion(each, scratch / "expected.onnx") for each in models]
    differing = [
        str(path)
        for path, one, other in zip(models, found.stdout.split(), expected, strict=True)
        if one != other
    ]
    print(f"compared {len(models):,} models under Node.js, refused {expected.count('refused'):,}")
    if differing:
        raise SystemExit("different results: " + ", ".join(differing[:20]))


def _digest_of_conversion(path: Path, out: Path) -> str:
    try:
        convert_file(path, out, TARGET, external="keep")
    except OpshiftError:
        return "refused"
    return hashlib.sha256(out.read_bytes()).hexdigest()


def browse(address: str, scratch: Path, chromium: str, *, large: bool) -> None:
    """Check the served site in Chromium."""
    install = ["npm", "install", "--silent", "--no-save", "--prefix", str(scratch), *PACKAGES]
    subprocess.run(install, check=True)
    model, expected = scratch / "model.onnx", scratch / "expected.onnx"
    model.write_bytes(parser.parse_model(MODEL).SerializeToString())
    convert_file(model, expected, TARGET)
    arguments: list[str | Path] = [
        address,
        scratch,
        scratch / "node_modules",
        chromium,
        model,
        expected,
    ]
    if large:
        large_model = scratch / "large-model.onnx"
        write_large_model(large_model)
        convert_file(large_model, f"{large_model}.expected", TARGET)
        arguments.append(large_model)
    completed = subprocess.run(
        ["node", SCRIPTS / "browse.mjs", *arguments], check=False, stdout=subprocess.PIPE, text=True
    )
    if completed.returncode:
        raise SystemExit("the check in Chromium failed")
    figures = json.loads(completed.stdout)
    print(", ".join(f"{name} {value:,}" for name, value in figures.items()))
    if large and figures["memory"] > MAX_MEMORY:
        raise SystemExit(f"the large model needed {figures['memory']:,} bytes of memory")


def main() -> None:
    """Run the checks."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=Path, help="a folder of models to convert under Node.js")
    options.add_argument("--count", type=int, default=500, help="number of models to convert")
    options.add_argument("--large", action="store_true", help="convert a model of 3 GB in Chromium")
    options.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site, scratch = Path(folder, "site"), Path(folder, "scratch")
        scratch.mkdir()
        write_site(site)
        write_reports(site)
        if given.models:
            compare_models(site, given.models, given.count, scratch)
        with serving(site) as address:
            browse(address, scratch, given.chromium, large=given.large)


if __name__ == "__main__":
    main()
