"""`tools/import_kernel_tables.py`: kernels listed on a page of onnxruntime."""

from __future__ import annotations

import pytest

from import_kernel_tables import listed_kernels
from opshift.registry.runtimes.files import get_runtime
from runtime_files import ANY_LATER_VERSION, file_text, onnxruntime_facts, onnxruntime_rows

PAGE = """\
## Operators implemented by CPUExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Add|*in* A:**T**<br> *out* C:**T**|14+|**T** = tensor(float)|

## Operators implemented by CUDAExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|And|*in* A:**T**<br> *out* C:**T1**|7+|**T** = tensor(bool)<br/> **T1** = tensor(bool)|
|Cast|*in* input:**T1**<br><br>or<br><br>*in* x:**T1**|13|**T1** = tensor(float), tensor(int8)|
|||[6, 12]|**T1** = tensor(float)|
|**Operator Domain:** *ai.onnx.ml*||||
|ZipMap|*in* X:**tensor(float)**<br> *out* Z:**T**|1+|**T** = seq(map(int64,tensor(float)))|
| |
"""


def test_reads_the_kernels_of_one_provider() -> None:
    assert list(listed_kernels(PAGE, "cuda")) == [
        ("ai.onnx", "And", (7, ANY_LATER_VERSION), {"T": ["tensor(bool)"], "T1": ["tensor(bool)"]}),
        ("ai.onnx", "Cast", (13, 13), {"T1": ["tensor(float)", "tensor(int8)"]}),
        ("ai.onnx", "Cast", (6, 12), {"T1": ["tensor(float)"]}),
        ("ai.onnx.ml", "ZipMap", (1, ANY_LATER_VERSION), {"T": ["seq(map(int64,tensor(float)))"]}),
    ]
    assert [kernel[1] for kernel in listed_kernels(PAGE, "cpu")] == ["Add"]
    assert list(listed_kernels(PAGE, "dml")) == []


def test_nodes_without_a_kernel_of_a_provider_run_on_the_cpu() -> None:
    facts = onnxruntime_facts("1.20.1", "cuda")
    assert (facts["provider"], facts["falls_back"]) == ("cuda", "onnxruntime-1.20.1")
    assert "computes_in" not in facts


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_page_does_not_remove_what_it_cannot_list(is_complete: bool) -> None:
    facts = onnxruntime_facts("1.16.3", "cpu")
    one_hot = get_runtime("onnxruntime-1.16.3").operators["ai.onnx.OneHot"]
    variables = {name: sorted({t for k in one_hot for t in k.types[name]}) for name in ("T1", "T2", "T3")}
    rows = onnxruntime_rows([("", "OneHot", (9, 10), variables), ("", "OneHot", (11, 11), variables)], 19)
    text = file_text("onnxruntime", "1.16.4", facts, rows, ("documentation", "page"), is_complete=is_complete)
    assert ("ai.onnx.OneHot:" in text, "NonMaxSuppression: []" in text) == (is_complete, is_complete)
    assert "ai.onnx.Abs: []" in text


def test_describes_cuda_and_directml() -> None:
    for provider in "cuda", "dml":
        runtime = get_runtime(f"onnxruntime-{provider}-1.22.1")
        assert runtime.falls_back == "onnxruntime-1.22.1"
        assert "tensor(float16)" in runtime.operators["ai.onnx.Conv"][-1].types["T"]
    assert not get_runtime("onnxruntime-cuda-1.22.1").operators.keys() & {
        "ai.onnx.StringSplit",
        "ai.onnx.Det",
    }


def test_describes_combinations_of_types_of_cuda() -> None:
    one_hot = get_runtime("onnxruntime-cuda-1.31").operators["ai.onnx.OneHot"]
    assert len(one_hot) > 1
    assert all(len(kernel.types["T1"]) == 1 for kernel in one_hot)
