"""Write opsets/schema.json, the JSON Schema of an operator file, from the models in registry/.

python tools/write_schema.py            write it if it is stale
python tools/write_schema.py --check    write nothing, exit 1 if it is stale
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opshift.registry.json_schema import schema_text

ROOT: Final = Path(__file__).resolve().parent.parent
SCHEMA: Final = ROOT / "opsets" / "schema.json"


def stale(path: Path = SCHEMA) -> bool:
    """Whether the file is missing or not what the models give now."""
    return not path.exists() or path.read_text("utf-8") != schema_text()


def main(arguments: Sequence[str] | None = None, path: Path = SCHEMA) -> int:
    """Write or check the file; the exit code."""
    parser = argparse.ArgumentParser(description="Write opsets/schema.json.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if the file is stale")
    check: bool = parser.parse_args(arguments).check
    outdated = stale(path)
    if outdated:
        if not check:
            path.write_text(schema_text(), "utf-8")
        print("stale:" if check else "wrote:", path.name)
    return 1 if check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
