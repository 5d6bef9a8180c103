"""The page for platform teams: its commands convert a bucket, and the example prints its table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zoos.file_stores import Bucket, fill
from zoos.generator import GeneratedModel, Mixture, generate
from zoos.s3_server import Server, s3_server

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "platform-teams.md").read_text("utf-8")
MIXTURE = Mixture(
    medium=0.02, large=0.0, broken=0.1, refused=0.1, external=0.1, medium_bytes=(1 << 20, 2 << 20)
)
EXIT_CODES = {"plan": 1, "convert": 1, "check": 0}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "requests.jsonl") as started:
        yield started


def models() -> Iterator[GeneratedModel]:
    return generate(40, 1, MIXTURE)


@pytest.fixture(scope="module")
def folder(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill the bucket, and return the folder in which the commands have run."""
    found = tmp_path_factory.mktemp("commands")
    fill(Bucket("zoo"), models())
    Bucket("zoo-17")
    program = f'opshift() {{ "{sys.executable}" -m opshift "$@"; }}\n'
    for block in blocks("sh"):
        done = subprocess.run(["bash", "-c", program + block], cwd=found, capture_output=True, text=True)
        assert done.returncode == EXIT_CODES[block.split()[1]], block + done.stdout + done.stderr
    return found


def run_python(block: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-c", block]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.full
def test_commands_convert_the_bucket(folder: Path) -> None:
    expected = {model.path for model in models() if model.expected == "converted"}
    assert {path for path in Bucket("zoo-17").paths() if path.endswith(".onnx")} == expected
    lines = (folder / "plan.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[-1])["summary"]["models"] == 40


def test_code_prints_causes_and_failures(folder: Path) -> None:
    causes, failures = (each for each in blocks("python") if "json" in each)
    assert "type.unsupported" in run_python(causes, folder)
    failed = sum(model.expected != "converted" for model in models())
    assert len(run_python(failures, folder).splitlines()) == failed


def test_table_is_that_of_the_example() -> None:
    command = [sys.executable, str(ROOT / "examples" / "estimate_batch.py")]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert table in PAGE


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE))
def test_links_exist(link: str) -> None:
    assert link.startswith("https://") or (ROOT / "docs" / link).exists()
