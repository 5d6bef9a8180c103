"""Parts of locations: folders, files next to a model, and names of outputs."""

import pytest

from opshift.stores.find_models import FoundModel, base_name, find_models
from opshift.stores.locations import folder_prefix, join, with_data

DATA = {
    "zoo/m.onnx": "zoo/w.bin",
    "m.onnx": "w.bin",
    "/m.onnx": "/w.bin",
    "s3://zoo/m.onnx": "s3://zoo/w.bin",
    "s3://zoo/a/m.onnx?versionId=x": "s3://zoo/a/w.bin",
    "s3://zoo/a?b/m.onnx": "s3://zoo/a?b/w.bin",
    "s3://zoo/a#b/m.onnx": "s3://zoo/a#b/w.bin",
    "memory://m.onnx": "memory://w.bin",
    "memory:///m.onnx": "memory:///w.bin",
    "memory://zoo/m.onnx": "memory://zoo/w.bin",
    "hdfs:///m.onnx": "hdfs:///w.bin",
    "https://host/m.onnx": "https://host/w.bin",
    "https://host/zoo/m.onnx?Signature=ab/cd": "https://host/zoo/w.bin",
    "HTTPS://host/zoo/m.onnx?Signature=ab/cd": "HTTPS://host/zoo/w.bin",
    "https://host/zoo/m.onnx#a/b": "https://host/zoo/w.bin",
}


@pytest.mark.every_case
@pytest.mark.parametrize(("model", "data"), DATA.items(), ids=DATA)
def test_names_data_files_in_the_folder_of_a_model(model: str, data: str) -> None:
    assert with_data(model, ["w.bin"]) == [model, data]


JOINED = {
    ("https://host/zoo", "w#2.bin"): "https://host/zoo/w%232.bin",
    ("https://host/zoo/", "a%20b/w?.bin"): "https://host/zoo/a%2520b/w%3F.bin",
    ("s3://zoo", "w#2.bin"): "s3://zoo/w#2.bin",
    ("s3://zoo/", "./a%20b//w.bin"): "s3://zoo/a%20b/w.bin",
    ("memory://", "a/w.bin"): "memory://a/w.bin",
    ("memory:///", "w.bin"): "memory:///w.bin",
}


@pytest.mark.parametrize(("parts", "joined"), JOINED.items(), ids=map(str, JOINED))
def test_joins_a_folder_and_a_name(parts: tuple[str, str], joined: str) -> None:
    assert join(*parts) == joined


PREFIXES = {
    "zoo": "zoo/",
    "/": "/",
    "s3://zoo/": "s3://zoo/",
    "memory://zoo": "memory://zoo/",
    "memory://": "memory://",
}


@pytest.mark.parametrize(("folder", "prefix"), PREFIXES.items(), ids=PREFIXES)
def test_prefix_of_a_folder_ends_with_a_slash(folder: str, prefix: str) -> None:
    assert folder_prefix(folder) == prefix


NAMES = {
    "zoo/m.onnx": ("zoo/m.onnx", "m.onnx"),
    "s3://zoo/a/m.onnx?versionId=x": ("a/m.onnx", "m.onnx"),
    "s3a://zoo/a/m.onnx?versionId=x": ("a/m.onnx", "m.onnx"),
    "s3://zoo/a?b/m?.onnx": ("a?b/m?.onnx", "m?.onnx"),
    "gs://zoo/m.onnx?versionId=x": ("m.onnx?versionId=x", "m.onnx?versionId=x"),
    "https://host/a/m.onnx?Signature=ab/cd/": ("a/m.onnx", "m.onnx"),
    "HTTPS://host/a/m.onnx?v=1": ("a/m.onnx", "m.onnx"),
}


@pytest.mark.parametrize(("location", "names"), NAMES.items(), ids=NAMES)
def test_names_of_outputs_have_no_query_or_version(location: str, names: tuple[str, str]) -> None:
    assert list(find_models(["-"], lines=[location])) == [FoundModel(location, names[0])]
    assert base_name(location) == names[1]
