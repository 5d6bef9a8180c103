"""Models in the output folder: results of earlier runs are left out, and all other models have an outcome."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.small_models import save

from opshift.batch.convert_many import Batch
from opshift.batch.settings import Settings
from opshift.stores.find_models import LIST, FoundModel, find_models

SOURCES: dict[str, Callable[[], list[FoundModel]]] = {
    "folder": lambda: [*find_models(["in"])],
    "glob": lambda: [*find_models(["in/**/*.onnx"])],
    "list": lambda: [*find_models([LIST], lines=sorted(map(str, Path("in").rglob("*.onnx"))))],
    "list of absolute paths": lambda: [
        *find_models([LIST], lines=sorted(str(each.absolute()) for each in Path("in").rglob("*.onnx")))
    ],
}


@pytest.fixture(params=SOURCES)
def convert(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], dict[str, str]]:
    """Write `in/z.onnx`, and return a function that converts the models below `in` into `in/out`."""
    monkeypatch.chdir(tmp_path)
    save(Path("in/z.onnx"))

    def run() -> dict[str, str]:
        """Return the status, or the reason of the error, of each model, by its path."""
        found = Batch(iter(SOURCES[request.param]()), "in/out", Settings(target=("17",))).run()
        return {
            Path(each.source).absolute().relative_to(tmp_path).as_posix(): (
                each.error.reason if each.error else each.status
            )
            for each in found
        }

    return run


def test_results_of_earlier_runs_are_no_sources(convert: Callable[[], dict[str, str]]) -> None:
    assert convert() == {"in/z.onnx": "converted"}
    assert convert() == {"in/z.onnx": "skipped"}


def test_other_models_in_the_output_folder_fail(convert: Callable[[], dict[str, str]]) -> None:
    other = save(Path("in/out/sub/b.onnx"))
    before = other.read_bytes()
    reason = "is in the output folder, and no run with this ledger wrote it"
    assert convert() == {"in/out/sub/b.onnx": reason, "in/z.onnx": "converted"}
    assert convert() == {"in/out/sub/b.onnx": reason, "in/z.onnx": "skipped"}
    assert other.read_bytes() == before
    assert len(list(Path("in/out").rglob("*.onnx"))) == 2
