"""Small language models as tools write them: a quantized decoder, and an encoder before its optimization."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.execution import Array, Feeds

MICROSOFT = "com.microsoft"
VOCABULARY, HIDDEN, HEADS, SHARED, SIZE, BLOCK, POSITIONS = 40, 64, 4, 2, 16, 32, 32
LAYERS = 2


class _Builder:
    """Collects nodes and random initializers of a model."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, name: str, array: Array) -> str:
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, *shape: int) -> str:
        return self.constant(name, (self._random.normal(size=shape) * 0.3).astype(np.float32))

    def node(
        self, op_type: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any
    ) -> str:
        names = list(outputs) or [f"{op_type}_{len(self.nodes)}"]
        name = f"node_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, names, name, domain=domain, **attributes))
        return names[0]

    def packed(self, name: str, columns: int, rows: int, rank: int = 3) -> list[str]:
        """Return weights of 4 bits with scales and zero points; a table has rank 2."""
        blocks = rows // BLOCK
        numbers = self._random.integers(0, 256, (columns, blocks, BLOCK // 2)).astype(np.uint8)
        if rank == 2:
            numbers = numbers.reshape(columns, -1)
        zeros = self._random.integers(0, 256, (columns, -(-blocks // 2))).astype(np.uint8)
        scales = self._random.uniform(0.005, 0.02, (columns, blocks)).astype(np.float32)
        arrays: dict[str, Array] = {"weight": numbers, "scales": scales, "zeros": zeros}
        return [self.constant(f"{name}.{part}", array) for part, array in arrays.items()]

    def product(self, value: str, name: str, columns: int, rows: int, *outputs: str) -> str:
        inputs = [value, *self.packed(name, columns, rows)]
        sizes = {"N": columns, "K": rows, "block_size": BLOCK, "bits": 4, "accuracy_level": 1}
        return self.node("MatMulNBits", inputs, *outputs, domain=MICROSOFT, **sizes)

    def model(
        self, inputs: dict[str, tuple[int, list[Any]]], outputs: list[str], opsets: dict[str, int]
    ) -> onnx.ModelProto:
        values = [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()]
        results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "test", values, results, self.initializers)
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def decoder(opset: int = 18) -> onnx.ModelProto:
    """Return a decoder with quantized weights and a cache, in the form that builders for onnxruntime write.

    The first layer rotates in its attention node, the second one in separate nodes.
    """
    build = _Builder()
    angles = np.outer(np.arange(POSITIONS), 0.5 ** np.arange(SIZE // 2))
    tables = [
        build.constant(name, f(angles).astype(np.float32)) for name, f in (("cos", np.cos), ("sin", np.sin))
    ]
    one = build.constant("one", np.array(1))
    sums = build.node("ReduceSum", ["attention_mask", build.constant("axis", np.array([1]))], keepdims=0)
    lasts = build.node("Cast", [build.node("Sub", [sums, one])], to=onnx.TensorProto.INT32)
    length = build.node("Gather", [build.node("Shape", ["attention_mask"]), one])
    total = build.node("Cast", [length], to=onnx.TensorProto.INT32)
    rows, *scales = build.packed("embedding", VOCABULARY, HIDDEN, rank=2)
    residual = build.node(
        "GatherBlockQuantized", [rows, "input_ids", *scales],
        domain=MICROSOFT, bits=4, block_size=BLOCK, gather_axis=0, quantize_axis=1,
    )  # fmt: skip
    norm = build.node("SimplifiedLayerNormalization", [residual, build.weight("norm", HIDDEN)], epsilon=1e-6)
    outputs = []
    for layer in range(LAYERS):
        query, key, value = (
            build.product(norm, f"{layer}.{name}", columns * SIZE, HIDDEN)
            for name, columns in (("q", HEADS), ("k", SHARED), ("v", SHARED))
        )
        attributes = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": int(not layer)}
        caches = tables
        if layer:
            caches = ["", ""]
            query, key = (
                build.node(
                    "RotaryEmbedding", [each, "position_ids", *tables], domain=MICROSOFT, num_heads=heads
                )
                for each, heads in ((query, HEADS), (key, SHARED))
            )
        past = [f"past.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        outputs += present
        attention = build.node(
            "GroupQueryAttention", [query, key, value, *past, lasts, total, *caches],
            f"attention_{layer}", *present, domain=MICROSOFT, **attributes,
        )  # fmt: skip
        projected = build.product(attention, f"{layer}.o", HIDDEN, HIDDEN)
        norm, residual = _skip_normalize(build, residual, projected, f"{layer}.attention")
        gate, up = (build.product(norm, f"{layer}.{name}", 2 * HIDDEN, HIDDEN) for name in ("gate", "up"))
        gated = build.node("Mul", [build.node("Mul", [gate, build.node("Sigmoid", [gate])]), up])
        down = build.product(gated, f"{layer}.down", HIDDEN, 2 * HIDDEN)
        norm, residual = _skip_normalize(build, residual, down, f"{layer}.layer")
    build.product(norm, "head", VOCABULARY, HIDDEN, "logits")
    tokens: tuple[int, list[Any]] = (onnx.TensorProto.INT64, ["batch", "sequence"])
    cache: tuple[int, list[Any]] = (onnx.TensorProto.FLOAT, ["batch", SHARED, "past", SIZE])
    inputs = {
        "input_ids": tokens,
        "attention_mask": (onnx.TensorProto.INT64, ["batch", "total"]),
        "position_ids": tokens,
    }
    inputs |= {name.replace("present", "past"): cache for name in outputs}
    return build.model(inputs, ["logits", *outputs], {"": opset, MICROSOFT: 1})


def _skip_normalize(build: _Builder, value: str, skip: str, name: str) -> list[str]:
    """Return the normalized sum, and the sum."""
    outputs = [f"{name}.normalized", f"{name}.sum"]
    inputs = [value, skip, build.weight(f"{name}.norm", HIDDEN)]
    build.node(
        "SkipSimplifiedLayerNormalization",
        inputs,
        outputs[0],
        "",
        "",
        outputs[1],
        domain=MICROSOFT,
        epsilon=1e-6,
    )
    return outputs


def decoder_feeds(new: int, past: int, lengths: list[int]) -> Feeds:
    """Return feeds of a decoder: new tokens after a cache, and the number of all tokens of each sequence."""
    random, batch, total = np.random.default_rng(new), len(lengths), max(lengths)
    mask = np.arange(total) < np.array(lengths)[:, None]
    starts = np.maximum(np.array(lengths) - new, 0)[:, None]
    caches = {
        f"past.{layer}.{part}": random.normal(size=(batch, SHARED, past, SIZE)).astype(np.float32)
        for layer in range(LAYERS)
        for part in ("key", "value")
    }
    return {
        "input_ids": random.integers(0, VOCABULARY, (batch, new)),
        "attention_mask": mask.astype(np.int64),
        "position_ids": starts + np.arange(new),
        **caches,
    }


def encoder(opset: int = 12) -> onnx.ModelProto:
    """Return a BERT encoder in the operators of opset 12, which onnxruntime's optimizer recognises."""
    build, size, width = _Builder(), 8, 32

    def scalar(name: str, number: float) -> str:
        return build.constant(name, np.array(number, np.float32))

    def normalize(value: str, name: str) -> str:
        centered = build.node("Sub", [value, build.node("ReduceMean", [value], axes=[-1])])
        squares = build.node("Pow", [centered, scalar(f"{name}.two", 2.0)])
        variance = build.node(
            "Add", [build.node("ReduceMean", [squares], axes=[-1]), scalar(f"{name}.e", 1e-12)]
        )
        scaled = build.node("Div", [centered, build.node("Sqrt", [variance])])
        weighted = build.node("Mul", [scaled, build.weight(f"{name}.gamma", width)])
        return build.node("Add", [weighted, build.weight(f"{name}.beta", width)])

    def dense(value: str, name: str, rows: int, columns: int) -> str:
        product = build.node("MatMul", [value, build.weight(f"{name}.weight", rows, columns)])
        return build.node("Add", [product, build.weight(f"{name}.bias", columns)])

    def heads(value: str, name: str, perm: list[int]) -> str:
        shape = build.constant(f"{name}.shape", np.array([0, 0, HEADS, size]))
        split = build.node("Reshape", [dense(value, name, width, width), shape])
        return build.node("Transpose", [split], perm=perm)

    words, kinds, places = (
        build.node("Gather", [build.weight(f"table.{name}", 32, width), name])
        for name in ("input_ids", "token_type_ids", "position_ids")
    )
    data = normalize(build.node("Add", [build.node("Add", [words, kinds]), places]), "embedding")
    mask = build.node("Unsqueeze", [build.node("Unsqueeze", ["attention_mask"], axes=[1])], axes=[2])
    inverted = build.node("Sub", [scalar("one", 1.0), build.node("Cast", [mask], to=onnx.TensorProto.FLOAT)])
    mask = build.node("Mul", [inverted, scalar("low", -10000.0)])
    for layer in range(LAYERS):
        query, key, value = (
            heads(data, f"{layer}.{name}", [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]) for name in "qkv"
        )
        scores = build.node("Div", [build.node("MatMul", [query, key]), scalar(f"{layer}.root", size**0.5)])
        weights = build.node("Softmax", [build.node("Add", [scores, mask])], axis=3)
        joined = build.node("Transpose", [build.node("MatMul", [weights, value])], perm=[0, 2, 1, 3])
        joined = build.node("Reshape", [joined, build.constant(f"{layer}.join", np.array([0, 0, width]))])
        data = normalize(build.node("Add", [dense(joined, f"{layer}.o", width, width), data]), f"{layer}.1")
        inner = dense(data, f"{layer}.up", width, 2 * width)
        error = build.node("Erf", [build.node("Div", [inner, scalar(f"{layer}.sqrt2", 2**0.5)])])
        error = build.node("Add", [error, scalar(f"{layer}.one", 1.0)])
        active = build.node("Mul", [build.node("Mul", [inner, error]), scalar(f"{layer}.half", 0.5)])
        data = normalize(
            build.node("Add", [dense(active, f"{layer}.down", 2 * width, width), data]), f"{layer}.2"
        )
    build.node("Identity", [data], "last_hidden_state")
    tokens = (onnx.TensorProto.INT64, ["batch", "sequence"])
    names = ("input_ids", "token_type_ids", "position_ids", "attention_mask")
    return build.model(dict.fromkeys(names, tokens), ["last_hidden_state"], {"": opset})
