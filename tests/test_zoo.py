"""Generated collections of models, and batches and gates over them that are killed or interrupted."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import onnx
import onnxruntime
import pytest

import opshift
from zoos.generator import Mixture, generate

TOOL = Path(__file__).parents[1] / "tools" / "zoo.py"
SMALL = Mixture(medium=0.0, large=0.0, broken=0.1, refused=0.1)


def test_collection_depends_on_the_seed_only() -> None:
    models = list(generate(20, 3, SMALL))
    assert models == list(generate(20, 3, SMALL))
    assert models != list(generate(20, 4, SMALL))
    assert len({each.path for each in models}) == 20


def test_collection_has_the_sizes_of_the_mixture() -> None:
    mixture = Mixture(medium=0.02, large=0.01, medium_bytes=(100_000, 200_000), large_bytes=300_000)
    sizes = [len(each.content) for each in generate(100, 0, mixture)]
    assert sum(size >= 290_000 for size in sizes) == 1
    assert sum(95_000 <= size < 290_000 for size in sizes) >= 2
    assert sum(size < 110_000 for size in sizes) >= 97


def test_outcomes_are_those_of_the_manifest() -> None:
    expected, found = [], []
    for model in generate(150, 1, SMALL):
        expected.append(model.expected)
        try:
            opshift.convert_version(model.content, 17)
        except opshift.ConversionRefused:
            found.append("refused")
        except opshift.InvalidModel:
            found.append("broken")
        else:
            found.append("converted")
    assert found == expected
    assert len(Counter(found)) == 3


@pytest.mark.full
def test_models_run() -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for model in generate(40, 2, SMALL._replace(broken=0.0, external=0.0)):
        onnx.checker.check_model(model.content)
        onnxruntime.InferenceSession(model.content, options)


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    [
        (
            "batch",
            "--models",
            "200",
            "--kills",
            "2",
            "--large-bytes",
            "80000000",
            "--local",
            "--executor",
            "processes",
        ),
        # a worker that is killed while it converts the large model has received 5 MB of it
        ("batch", "--models", "120", "--kills", "2", "--large-bytes", "250000000"),
        # a busy machine starts processes slowly
        ("gate", "--models", "200", "--large-bytes", "80000000", "--longest-wait", "60"),
    ],
    ids=["folder to folder", "bucket to bucket in a cluster", "gate"],
)
def test_nothing_is_lost(options: tuple[str, ...]) -> None:
    command = [sys.executable, str(TOOL), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
