"""Generate files from definitions, adapters and rules: pages and the JSON Schema.

python tools/generate.py            write outdated files
python tools/generate.py --check    write nothing; exit with 1 if a file is outdated
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from generated import changes, commands, downgrades, options, refusals, rules, runtimes, schema, tool_errors

ROOT: Final = Path(__file__).resolve().parent.parent
GENERATORS = (schema, changes, commands, downgrades, options, refusals, rules, runtimes, tool_errors)


def stale(root: Path) -> Mapping[Path, str]:
    """Return the new content of each generated file that is missing or outdated, by its path below `root`."""
    wanted = {path: text for each in GENERATORS for path, text in each.files().items()}
    return {path: text for path, text in wanted.items() if not _has_text(root / path, text)}


def _has_text(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Write or check the files and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file is outdated"
    )
    check: bool = parser.parse_args(arguments).check
    outdated = stale(root)
    for path, text in outdated.items():
        if not check:
            (root / path).write_text(text, "utf-8")
        print("stale:" if check else "wrote:", path)
    return 1 if check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
