"""Write the kernels of a release of onnxruntime from its page docs/OperatorKernels.md.

    git show v1.20.1:docs/OperatorKernels.md > kernels.md      # in a clone of microsoft/onnxruntime
    python tools/import_kernel_tables.py 1.20.1 kernels.md --provider cuda --provider dml

Each provider is a runtime, such as `onnxruntime-cuda`. Existing files are not changed.
Then run tools/write_fingerprints.py. Wheels list kernels for the CPU in more detail: see import_kernels.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from runtime_files import ANY_LATER_VERSION, file_text, new_path, onnxruntime_facts, onnxruntime_rows

PROVIDERS: Final = {"cpu": "CPU", "cuda": "CUDA", "dml": "Dml"}
"""Providers by name, with their names in headings."""

SOURCE: Final = "https://github.com/microsoft/onnxruntime/blob/v{}/docs/OperatorKernels.md"

Listed = tuple[str, str, tuple[int, int], dict[str, list[str]]]
"""Domain, operator, range of versions, and types by type variable."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("version", help="release of onnxruntime")
    parser.add_argument("page", type=Path, help="copy of docs/OperatorKernels.md of the release")
    parser.add_argument("--provider", action="append", required=True, choices=PROVIDERS)
    options = parser.parse_args(arguments)
    for provider in options.provider:
        runtime = "onnxruntime" if provider == "cpu" else f"onnxruntime-{provider}"
        path = new_path(runtime, options.version)
        facts = onnxruntime_facts(options.version, provider)
        rows = onnxruntime_rows(
            listed_kernels(options.page.read_text("utf-8"), provider), facts["opsets"]["ai.onnx"]
        )
        # onnxruntime generates this page from its list of kernels
        evidence = ("kernel_registry", SOURCE.format(options.version))
        text = file_text(runtime, options.version, facts, rows, evidence, is_complete=False)
        path.write_text(text, "utf-8")
        print(f"wrote {path}")


def listed_kernels(page: str, provider: str) -> Iterator[Listed]:
    """Yield the kernels of a provider that a page lists."""
    heading = f"## Operators implemented by {PROVIDERS[provider]}ExecutionProvider\n"
    section = page.partition(heading)[2].partition("\n## ")[0]
    domain = name = ""
    for line in section.splitlines():
        found = re.search(r"Operator Domain:\*\* \*(.+?)\*", line)
        if found:
            domain = found[1]
        # The columns are operator, parameters, versions, types; a row without an operator continues the
        # previous one.
        elif len(cells := line.split("|")) == 6 and re.search(r"\d", cells[3]):
            name = cells[1] or name
            first, last = _versions(cells[3])
            types = re.findall(r"\*\*(\w+)\*\* = (.*?)(?:<br/>|$)", cells[4])
            yield domain, name, (first, last), {key: each.strip().split(", ") for key, each in types}


def _versions(text: str) -> tuple[int, int]:
    """Return a range of versions: `[7, 12]`, `13`, or `14+`, which needs exactly the first version."""
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    return numbers[0], ANY_LATER_VERSION if text.endswith("+") else numbers[-1]


if __name__ == "__main__":
    main()
