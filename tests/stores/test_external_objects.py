"""Models in stores with weights in separate files."""

from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import external_data_helper
from support.remote_models import model_bytes, s3
from support.small_models import save
from typer.testing import CliRunner

import opshift
from opshift.cli.main import app
from opshift.model.errors import InvalidModel, UsageError
from zoos.s3_server import Server

WEIGHTS = "weights/m.data"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A folder with a model and its data file."""
    model = onnx.load_from_string(model_bytes(4, 500_000))
    external_data_helper.convert_model_to_external_data(model, location=WEIGHTS)
    folder = tmp_path / "local"
    (folder / "weights").mkdir(parents=True)
    onnx.save(model, folder / "m.onnx")
    return folder


@pytest.fixture(params=["s3", "memory"])
def zoo(request: pytest.FixtureRequest, local: Path) -> str:
    """The URL of a folder in a store with the same files."""
    url: str = request.getfixturevalue("bucket") if request.param == "s3" else "memory://zoo"
    request.getfixturevalue("memory")
    for name in ("m.onnx", WEIGHTS):
        write(f"{url}/{name}", (local / name).read_bytes())
    return url


def store_of(url: str) -> Any:
    return fsspec.filesystem(url.partition("://")[0], use_listings_cache=False)


def write(url: str, content: bytes) -> None:
    store_of(url).pipe_file(url, content)


def read(url: str) -> bytes:
    return bytes(store_of(url).cat_file(url))


def test_copies_data_files_in_a_store(zoo: str, local: Path, tmp_path: Path) -> None:
    opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17)
    assert read(f"{zoo}/new/{WEIGHTS}") == (local / WEIGHTS).read_bytes()
    opshift.convert_file(local / "m.onnx", tmp_path / "expected.onnx", 17)
    assert read(f"{zoo}/new/out.onnx") == (tmp_path / "expected.onnx").read_bytes()


def test_copies_data_files_to_and_from_a_store(zoo: str, local: Path, tmp_path: Path) -> None:
    opshift.convert_file(f"{zoo}/m.onnx", tmp_path / "out.onnx", 17)
    onnx.checker.check_model(tmp_path / "out.onnx", full_check=True)
    assert (tmp_path / WEIGHTS).read_bytes() == (local / WEIGHTS).read_bytes()
    opshift.convert_file(local / "m.onnx", f"{zoo}/up/out.onnx", 17)
    assert read(f"{zoo}/up/{WEIGHTS}") == (local / WEIGHTS).read_bytes()


def test_copies_data_files_to_and_from_the_root_of_a_store(memory: Any, tmp_path: Path) -> None:
    source = save(tmp_path / "in" / "m.onnx", fill=3, data="w.bin")
    opshift.convert_file(source, "memory://m.onnx", 17)
    assert memory.find("/") == ["/m.onnx", "/w.bin"]
    assert [(each.source, each.status) for each in opshift.convert_many("memory://", 18, "memory://out")] == [
        ("memory://m.onnx", "converted")
    ]
    moved = opshift.convert_many("memory://out/", 19, "memory://", force=True)
    assert [(each.output, each.status) for each in moved] == [("memory://m.onnx", "converted")]
    opshift.convert_file("memory://m.onnx", tmp_path / "m.onnx", 20)
    results = [
        onnxruntime.InferenceSession(each).run(None, {"x": np.arange(-3, 3, dtype=np.float32)})[0].tolist()
        for each in (source, tmp_path / "m.onnx")
    ]
    assert results == [[3, 3, 3, 3, 4, 5]] * 2


def test_store_copies_large_data_files(bucket: str, local: Path, server: Server) -> None:
    for name in ("m.onnx", WEIGHTS):
        write(f"{bucket}/{name}", (local / name).read_bytes())
    for attempt in range(2):  # the data file is copied once
        server.log.write_text("")
        opshift.convert_file(f"{bucket}/m.onnx", f"{bucket}/new/out.onnx", 17)
        made = list(server.requests())
        assert [each.kind for each in made].count("UploadPartCopy") == 1 - attempt
        assert sum(each.sent for each in made) < 300_000


def test_refuses_to_replace_other_data_files(zoo: str, local: Path) -> None:
    write(f"{zoo}/new/{WEIGHTS}", b"different")
    with pytest.raises(UsageError, match="already exists"):
        opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17)
    assert not store_of(zoo).exists(f"{zoo}/new/out.onnx")
    opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17, force=True)
    assert read(f"{zoo}/new/{WEIGHTS}") == (local / WEIGHTS).read_bytes()


def test_keeps_data_files_where_they_are(zoo: str) -> None:
    opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/other/out.onnx", 17, external="keep")
    assert not store_of(zoo).exists(f"{zoo}/other/{WEIGHTS}")
    opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/m.onnx", 17)


def test_refuses_missing_and_short_data_files(zoo: str) -> None:
    write(f"{zoo}/{WEIGHTS}", bytes(1000))
    with pytest.raises(InvalidModel, match=r"has 1,000 bytes, but the weights"):
        opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17)
    store_of(zoo).rm(f"{zoo}/{WEIGHTS}")
    with pytest.raises(InvalidModel, match="cannot be the external data of the model: object does not exist"):
        opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17)
    assert not store_of(zoo).exists(f"{zoo}/new")


@pytest.mark.some_cases(3)
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../secret", "s3://other/secret"])
def test_stays_in_the_folder_of_the_model(location: str, zoo: str, tmp_path: Path) -> None:
    model = onnx.load_from_string(model_bytes(1, 1000))
    external_data_helper.set_external_data(model.graph.initializer[0], location=location, length=4000)
    model.graph.initializer[0].ClearField("raw_data")
    model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    write(f"{zoo}/sub/m.onnx", model.SerializeToString())
    write(f"{zoo}/secret", np.zeros(1000, np.float32).tobytes())
    for out in f"{zoo}/out/m.onnx", str(tmp_path / "m.onnx"):
        with pytest.raises(InvalidModel, match=r"outside the model's folder|object does not exist"):
            opshift.convert_file(f"{zoo}/sub/m.onnx", out, 17)


def test_refuses_links_and_outputs_that_are_data_files(zoo: str, local: Path) -> None:
    with pytest.raises(UsageError, match="cannot hold links"):
        opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", 17, external="link")
    with pytest.raises(UsageError, match="weights of the input model"):
        opshift.convert_file(f"{zoo}/m.onnx", f"{zoo}/{WEIGHTS}", 17)
    with (
        (local / "m.onnx").open("rb") as file,
        pytest.raises(InvalidModel, match="the folder of the model is unknown"),
    ):
        opshift.convert_file(file, f"{zoo}/x/out.onnx", 17)


def test_converts_from_the_command_line(zoo: str) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "-t", "17"])
        return f"{result.exit_code} {result.output}"

    assert run("convert", f"{zoo}/m.onnx", f"{zoo}/new/out.onnx").startswith("0")
    assert "already exists" in run("convert", f"{zoo}/m.onnx", f"{zoo}/new/out.onnx")
    assert run("convert", f"{zoo}/m.onnx", f"{zoo}/new/out.onnx", "--force").startswith("0")
    assert "is the input file" in run("convert", f"{zoo}/m.onnx", f"{zoo}/m.onnx", "--force")
    assert "is a folder" in run("convert", f"{zoo}/m.onnx", f"{zoo}/new/")
    assert run("convert", f"{zoo}/m.onnx", "--in-place").startswith("0")
    assert opshift.read_model(f"{zoo}/m.onnx").opset_import[0].version == 17


def test_refuses_to_convert_the_types_of_data_files(zoo: str) -> None:
    for command in (["plan", f"{zoo}/m.onnx"], ["convert", f"{zoo}/m.onnx", f"{zoo}/out.onnx"]):
        result = CliRunner().invoke(app, [*command, "--types", "float=double"])
        assert result.exit_code == 2
        assert "converted only for local files" in result.stderr


def test_verifies_models_in_stores(bucket: str) -> None:
    write(f"{bucket}/m.onnx", model_bytes(2, 1000))
    result = CliRunner().invoke(
        app, ["convert", f"{bucket}/m.onnx", f"{bucket}/out.onnx", "-t", "17", "--verify"]
    )
    assert result.exit_code == 0, result.output
    assert s3().exists(f"{bucket}/out.onnx")
