"""URLs without a model: stores that need arguments, servers that refuse, buckets and long names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.small_models import save
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.stores.find_models import find_models
from zoos.s3_server import Server

NEEDS_ARGUMENTS = ("asyncwrapper", "dir", "generic", "jlab", "jupyter", "reference", "tar", "zip")


@pytest.mark.parametrize("scheme", [*NEEDS_ARGUMENTS, "zz"])
def test_refuses_stores_that_need_more_than_a_url(scheme: str) -> None:
    url = f"{scheme}://h/x.onnx"
    with pytest.raises(UsageError, match="is not a usable URL") as raised:
        opshift.plan_version(url, 17)
    assert str(raised.value.place) == url
    result = CliRunner().invoke(app, ["plan", url, "-t", "17"])
    assert result.exit_code == 2
    assert f"error: {url}: is not a usable URL: " in result.stderr


def test_names_a_server_that_refuses_a_connection() -> None:
    with pytest.raises(InvalidModel, match="cannot be opened: Connection refused") as raised:
        opshift.plan_version("ftp://127.0.0.1:1/x.onnx", 17)
    assert str(raised.value.place) == "ftp://127.0.0.1:1/x.onnx"


MISSING = {
    "bucket and slash": ("s3://no-such-bucket/", "does not exist"),
    "bucket": ("s3://no-such-bucket", "does not exist"),
    "folder": ("BUCKET/nowhere/", r"contains no \*.onnx files"),
    "empty bucket": ("BUCKET", r"contains no \*.onnx files"),
    "empty bucket and slash": ("BUCKET/", r"contains no \*.onnx files"),
    "folder in memory": ("memory://nowhere/", "does not exist"),
}


@pytest.mark.parametrize(("url", "reason"), MISSING.values(), ids=MISSING)
def test_names_buckets_and_folders_without_models(url: str, reason: str, bucket: str, memory: Any) -> None:
    with pytest.raises(UsageError, match=reason):
        list(find_models([url.replace("BUCKET", bucket)]))


OPENED = {
    "missing bucket": ("s3://no-such-bucket/", "object does not exist"),
    "bucket": ("BUCKET", "is a folder"),
}


@pytest.mark.parametrize(("url", "reason"), OPENED.values(), ids=OPENED)
def test_opens_no_buckets(url: str, reason: str, bucket: str, server: Server) -> None:
    with pytest.raises(InvalidModel, match=reason):
        opshift.plan_version(url.replace("BUCKET", bucket), 17)


LONG = f"{'n' * 300}.onnx"

CALLS: dict[str, Callable[[str, Path], object]] = {
    "convert_version": lambda name, _: opshift.convert_version(name, 17),
    "plan_version": lambda name, _: opshift.plan_version(name, 17),
    "read_model": lambda name, _: opshift.read_model(name),
    "fit": lambda name, _: opshift.fit(name, "onnxruntime-1.20.1"),
    "convert_file": lambda name, folder: opshift.convert_file(name, folder / "out.onnx", 17),
    "convert_file to it": lambda name, folder: opshift.convert_file(save(folder / "m.onnx"), name, 17),
    "convert_many": lambda name, folder: list(opshift.convert_many(name, 17, folder / "out")),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_reports_names_that_are_too_long(call: Callable[[str, Path], object], tmp_path: Path) -> None:
    with pytest.raises(OpshiftError, match=r"File name too long|file does not exist"):
        call(LONG, tmp_path)


def test_checks_no_file_with_a_name_that_is_too_long() -> None:
    assert [each.reason for each in opshift.check(LONG)] == ["cannot be read: File name too long"]


COMMANDS = (
    "plan {} -t 17",
    "convert {} out.onnx -t 17",
    "check {}",
    "inspect {}",
    "fit {} -r onnxruntime-1.20.1",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [LONG, "missing.onnx"], ids=["long", "missing"])
def test_commands_treat_long_names_as_missing_files(command: str, name: str) -> None:
    result = CliRunner().invoke(app, command.format(name).split())
    assert (result.exit_code, "file does not exist" in result.stderr) == (2, True)
