"""Files of any size get other element types without loading their weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift import ConversionRefused, ModelProto, Report, UsageError, convert_file
from opshift.converter.convert import convert_with
from opshift.converter.options import Options
from opshift.converter.streaming.convert_file import converting
from opshift.model.progress import Progress
from opshift.model.tensor_pieces import BLOCK

Make = Callable[..., Path]

WEIGHT = np.random.default_rng(0).normal(size=(700, 600)).astype(np.float32)
TABLE = np.arange(300, dtype=np.int64)
TYPES = {"float": "float16"}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes a model with weights in the file, or in a data file of a name."""

    def write(data: str = "", weight: np.ndarray = WEIGHT, name: str = "model.onnx") -> Path:
        x, y = (
            helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, size])
            for each, size in (("x", 700), ("y", 600))
        )
        rows = helper.make_tensor_value_info("r", TensorProto.INT64, [300])
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Identity", ["t"], ["r"])]
        tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(TABLE, "t")]
        graph = helper.make_graph(nodes, "g", [x], [y, rows], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = tmp_path / name
        onnx.save(model, path, save_as_external_data=bool(data), location=data or None, size_threshold=0)
        return path

    return write


def assert_converted(path: Path, weight: np.ndarray = WEIGHT) -> None:
    onnx.checker.check_model(path, full_check=True)
    first, second = map(numpy_helper.to_array, onnx.load(path).graph.initializer)
    np.testing.assert_array_equal(first, weight.astype(np.float16))
    np.testing.assert_array_equal(second, TABLE)


def test_converts_weights_in_the_file_block_by_block(make: Make, tmp_path: Path) -> None:
    assert WEIGHT.nbytes > BLOCK
    convert_file(make(), tmp_path / "out.onnx", types=TYPES, allow="approximate")
    assert_converted(tmp_path / "out.onnx")


@pytest.mark.parametrize("data", ["", "w.bin"])
def test_progress_counts_converted_weights(make: Make, tmp_path: Path, data: str) -> None:
    progress, options = Progress(), Options.of(None, types=TYPES, allow="approximate", inplace=True)

    def convert_in_place(loaded: ModelProto) -> Report:
        return Report.of(convert_with(loaded, options)[1])

    with converting(
        make(data), tmp_path / "out.onnx", convert_in_place, progress=progress, rewrites_data=bool(data)
    ):
        pass
    assert progress.done == progress.total >= WEIGHT.nbytes // 2


def test_converts_and_upgrades(make: Make, tmp_path: Path) -> None:
    convert_file(make(), tmp_path / "out.onnx", 18, types=TYPES, allow="approximate")
    assert_converted(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").opset_import[0].version == 18


def test_writes_external_weights_to_a_new_file(make: Make, tmp_path: Path) -> None:
    source = make("weights.bin")
    (tmp_path / "out").mkdir()
    report = convert_file(source, tmp_path / "out" / "half.onnx", types=TYPES, allow="approximate")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["half.onnx", "half.onnx.data"]
    assert_converted(tmp_path / "out" / "half.onnx")
    assert report.repairs == ("element types: float to float16 in 3 values, with 0 casts",)


@pytest.mark.parametrize("data", ["model.onnx.data", "weights.bin"])
def test_converts_external_weights_in_place(make: Make, tmp_path: Path, data: str) -> None:
    source = make(data)
    convert_file(source, source, types=TYPES, allow="approximate")
    assert_converted(source)


def test_does_not_replace_another_data_file(make: Make, tmp_path: Path) -> None:
    source = make("out.onnx.data")
    before = (tmp_path / "out.onnx.data").read_bytes()
    with pytest.raises(UsageError, match="is also the path of a file with weights of the model"):
        convert_file(source, tmp_path / "out.onnx", types=TYPES, allow="approximate", force=True)
    (tmp_path / "new.onnx.data").write_text("precious")
    with pytest.raises(UsageError, match="already exists, and weights of the model would replace it"):
        convert_file(source, tmp_path / "new.onnx", types=TYPES, allow="approximate")
    assert (tmp_path / "new.onnx.data").read_text() == "precious"
    assert (tmp_path / "out.onnx.data").read_bytes() == before
    assert not (tmp_path / "out.onnx").exists()
    convert_file(source, tmp_path / "new.onnx", types=TYPES, allow="approximate", force=True)
    assert_converted(tmp_path / "new.onnx")


def test_refuses_to_keep_external_weights_where_they_are(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="need a new file in the folder of the output"):
        convert_file(make("w.bin"), tmp_path / "o.onnx", types=TYPES, allow="approximate", external="keep")


@pytest.mark.parametrize("data", ["", "weights.bin"])
def test_refuses_weights_out_of_range_before_writing(make: Make, tmp_path: Path, data: str) -> None:
    weight = WEIGHT.copy()
    weight[-1, -1] = 70_000
    source = make(data, weight)
    with pytest.raises(ConversionRefused) as caught:
        convert_file(source, tmp_path / "out.onnx", types=TYPES, allow="approximate")
    assert [each.place for each in caught.value.refusals] == ["graph, tensor 'w'"]
    assert not (tmp_path / "out.onnx").exists()
    convert_file(source, tmp_path / "out.onnx", types=TYPES, allow=("approximate", "clamp"))
    weight[-1, -1] = 65_504
    assert_converted(tmp_path / "out.onnx", weight)
