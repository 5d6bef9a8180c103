"""Variants of a network that tools of onnxruntime make: optimized, quantized, and in float16."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16

from measurement.networks import Feeds, NetworkModel, random_network

LEVELS = ort.GraphOptimizationLevel

SECONDS = 10
"""Maximum duration of the variants of a model in seconds, because quantize_static may not end."""

Variant = Callable[[NetworkModel, Random], NetworkModel]


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Input values of a network, in three magnitudes."""

    def __init__(self, feeds: Feeds) -> None:
        self._left = iter(
            [
                {name: each * scale for name, each in feeds.items()}
                for scale in (np.float32(0.5), np.float32(1), np.float32(2))
            ]
        )

    def get_next(self) -> Any:
        return next(self._left, None)


def random_variants(count: int, seed: int) -> Iterator[NetworkModel]:
    """Yield a number of random variants of random networks."""
    random = Random(seed)
    ort.set_default_logger_severity(4)
    logging.disable(logging.WARNING)
    while count:
        network = random_network(random)
        variants = random.sample(VARIANTS, random.choice([1, 1, 2]))
        try:
            with deadline(SECONDS):
                for each in variants:
                    network = each(network, random)
        # The tools of onnxruntime have no common base class of errors, and refuse some networks.
        except Exception:
            continue
        count -= 1
        yield network


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after some seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def optimized(network: NetworkModel, random: Random) -> NetworkModel:
    """Let onnxruntime fuse operators into its own."""
    level = random.choice([LEVELS.ORT_ENABLE_BASIC, LEVELS.ORT_ENABLE_EXTENDED, LEVELS.ORT_ENABLE_ALL])
    with TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(Path(folder, "model.onnx"))
        ort.InferenceSession(network.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        model = onnx.load(options.optimized_model_filepath)
    return network._replace(name=f"{network.name}, {level.name}", model=model)


def quantized(network: NetworkModel, random: Random) -> NetworkModel:
    """Quantize with constant scales."""
    settings = {
        "quant_format": random.choice([QuantFormat.QDQ, QuantFormat.QDQ, QuantFormat.QOperator]),
        "activation_type": random.choice(
            [QuantType.QUInt8, QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16, QuantType.QInt16]
        ),
        "weight_type": random.choice([QuantType.QInt8, QuantType.QUInt8, QuantType.QInt4]),
        "per_channel": random.random() < 0.4,
    }
    extra = {"UseQDQContribOps": random.random() < 0.5, "WeightSymmetric": random.random() < 0.5}

    def write(path: Path) -> None:
        samples = _Samples(network.feeds)
        quantize_static(network.model, str(path), samples, **settings, extra_options=extra)

    return _reload_written(network, write, ", ".join(map(str, [*settings.values(), *extra.values()])))


def dynamically_quantized(network: NetworkModel, random: Random) -> NetworkModel:
    """Quantize with scales that nodes compute."""
    weight_type, per_channel = random.choice([QuantType.QInt8, QuantType.QUInt8]), random.random() < 0.5

    def write(path: Path) -> None:
        quantize_dynamic(network.model, str(path), weight_type=weight_type, per_channel=per_channel)

    return _reload_written(network, write, f"dynamic {weight_type}, {per_channel}")


def in_blocks(network: NetworkModel, random: Random) -> NetworkModel:
    """Store the weights of products in blocks, with 2 to 8 bits per number."""
    settings = {
        "bits": random.choice([4, 4, 4, 8]),
        "block_size": random.choice([16, 32]),
        "is_symmetric": random.random() < 0.5,
        "accuracy_level": random.choice([None, 1, 4]),
    }
    quantizer = MatMulNBitsQuantizer(_copy_model(network.model), **settings)
    quantizer.process()
    name = f"{network.name}, MatMulNBits {settings}"
    return network._replace(name=name, model=quantizer.model.model)


def in_float16(network: NetworkModel, random: Random) -> NetworkModel:
    """Convert to float16, except for some operators."""
    kinds = sorted({each.op_type for each in network.model.graph.node})
    blocked = random.sample(kinds, random.randint(0, len(kinds) // 2)) if random.random() < 0.5 else []
    keeps_interface = random.random() < 0.5
    model = convert_float_to_float16(
        _copy_model(network.model),
        keep_io_types=keeps_interface,
        op_block_list=blocked,
        disable_shape_infer=False,
    )
    types = {each.name: each.type.tensor_type.elem_type for each in model.graph.input}
    feeds = {
        name: each.astype(np.float16) if types[name] == onnx.TensorProto.FLOAT16 else each
        for name, each in network.feeds.items()
    }
    return NetworkModel(f"{network.name}, float16 except {blocked}", model, feeds)


def in_double(network: NetworkModel, random: Random) -> NetworkModel:
    """Convert to double, except for the scales of Resize, which are always float."""
    model = _copy_model(network.model)
    sizes = {each.input[2] for each in model.graph.node if each.op_type == "Resize"}
    for each in model.graph.initializer:
        if each.data_type == onnx.TensorProto.FLOAT and each.name not in sizes:
            wide = numpy_helper.to_array(each).astype(np.float64)
            each.CopyFrom(numpy_helper.from_array(wide, each.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    feeds = {name: each.astype(np.float64) for name, each in network.feeds.items()}
    return NetworkModel(f"{network.name}, double", model, feeds)


def in_other_type(network: NetworkModel, random: Random) -> NetworkModel:
    """Compute one random node in double, bfloat16 or float16, between casts."""
    number = random.choice([onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16])
    model = _copy_model(network.model)
    nodes = list(model.graph.node)
    position = random.randrange(len(nodes))
    node = nodes[position]
    floats = {
        "x",
        *(each.name for each in model.graph.initializer if each.data_type == onnx.TensorProto.FLOAT),
    }
    produced = {name for each in nodes[:position] for name in each.output}
    casts = []
    for index, name in enumerate(node.input):
        if name in floats or (name in produced and nodes[position].op_type != "Where"):
            casts.append(onnx.helper.make_node("Cast", [name], [f"cast_{index}"], to=number))
            node.input[index] = f"cast_{index}"
    backs = []
    for index, name in enumerate(node.output):
        node.output[index] = f"back_{index}"
        backs.append(onnx.helper.make_node("Cast", [f"back_{index}"], [name], to=onnx.TensorProto.FLOAT))
    nodes[position : position + 1] = [*casts, node, *backs]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return network._replace(name=f"{network.name}, {node.op_type} in type {number}", model=model)


VARIANTS: tuple[Variant, ...] = (
    optimized, optimized, quantized, quantized, quantized, dynamically_quantized, in_blocks, in_float16,
    in_float16, in_double, in_other_type,
)  # fmt: skip


def _reload_written(network: NetworkModel, write: Callable[[Path], None], text: str) -> NetworkModel:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        write(path)
        return network._replace(name=f"{network.name}, {text}", model=onnx.load(path))


def _copy_model(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy
