"""Models in stores that a command line names."""

from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile

from opshift.model.errors import UsageError
from opshift.stores.find_models import FoundModel, find_models, is_file_name
from zoos.s3_server import Server

FILES = ("b.onnx", "a/model.onnx", "a/readme.md", "a/deep/er/x.onnx", "a.onnx", "c/model.onnx")


@pytest.fixture(params=["s3", "memory"])
def zoo(request: pytest.FixtureRequest) -> str:
    if request.param == "s3":
        url = f"{request.getfixturevalue('bucket')}/zoo"
    else:
        request.getfixturevalue("memory")
        url = "memory://zoo"
    for name in FILES:
        fsspec.open(f"{url}/{name}", "wb").fs.pipe_file(f"{url}/{name}", b"x")
    return url


def relative(*names: str) -> list[str]:
    return [each.relative for each in find_models(names)]


def test_lists_folders_in_a_fixed_order(zoo: str) -> None:
    found = ["a.onnx", "a/deep/er/x.onnx", "a/model.onnx", "b.onnx", "c/model.onnx"]
    assert sorted(relative(zoo)) == sorted(relative(f"{zoo}/")) == found
    assert relative(zoo) == relative(zoo)
    locations = [each.location for each in find_models([zoo])]
    assert sorted(locations) == [f"{zoo}/{name}" for name in found]


def test_takes_a_named_object(zoo: str) -> None:
    assert list(find_models([f"{zoo}/a/readme.md"])) == [FoundModel(f"{zoo}/a/readme.md", "readme.md")]
    assert is_file_name(f"{zoo}/a.onnx")
    assert not is_file_name(f"{zoo}/a")
    assert not is_file_name(f"{zoo}/*.onnx")


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.onnx", ["a.onnx", "b.onnx"]),
        ("*/*.onnx", ["a/model.onnx", "c/model.onnx"]),
        ("**/model.*", ["a/model.onnx", "c/model.onnx"]),
        ("a/**", ["deep/er/x.onnx", "model.onnx", "readme.md"]),
    ],
)
def test_expands_globs(zoo: str, glob: str, found: list[str]) -> None:
    assert relative(f"{zoo}/{glob}") == found


def test_reads_lists(zoo: str) -> None:
    lines = [f"{zoo}/a/model.onnx\n", "https://host/x/y.onnx?token=1\n", f"{zoo}/c/\n"]
    below = f"{zoo}/a/model.onnx".partition("://")[2].partition("/")[2]
    assert list(find_models(["-"], lines=lines)) == [
        FoundModel(f"{zoo}/a/model.onnx", below),
        FoundModel("https://host/x/y.onnx?token=1", "x/y.onnx"),
        FoundModel(f"{zoo}/c/model.onnx", "model.onnx"),
    ]


@pytest.mark.parametrize(
    ("url", "relative"),
    [
        ("https://host/dl/?id=5", "dl/"),
        ("https://host/dl/?Signature=ab/", "dl/"),
        ("https://host/m.onnx?Signature=ab/", "m.onnx"),
        ("https://host/dl/#m.onnx", "dl/"),
        ("s3://zoo/dl/?versionId=5", "dl/"),
    ],
)
def test_listed_url_with_a_query_is_not_a_folder(url: str, relative: str) -> None:
    assert list(find_models(["-"], lines=[url])) == [FoundModel(url, relative)]


@pytest.mark.parametrize("name", ["nothing*.onnx", "a/deep/er/*.md"])
def test_refuses_globs_without_models(zoo: str, name: str) -> None:
    with pytest.raises(UsageError, match="matches no files"):
        list(find_models([f"{zoo}/{name}"]))


def test_refuses_folders_that_do_not_exist(zoo: str) -> None:
    with pytest.raises(UsageError, match=r"does not exist|matches no files"):
        list(find_models([f"{zoo}/nowhere/*.onnx"]))


def test_refuses_missing_buckets_and_wildcards_in_buckets(server: Server) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        list(find_models(["s3://no-such-bucket/*.onnx"]))
    with pytest.raises(UsageError, match="wildcard in the bucket name"):
        list(find_models(["s3://zoo-*/a.onnx"]))


@pytest.mark.full
def test_lists_pages_as_they_are_read(bucket: str, server: Server) -> None:
    store = fsspec.filesystem("s3")
    store.pipe({f"{bucket}/{number:04}.onnx": b"x" for number in range(1_100)})
    server.log.write_text("")
    found = find_models([bucket])
    assert next(found).relative == "0000.onnx"
    assert [each.kind for each in server.requests()].count("LIST") <= 2  # one shows that this is a folder
    assert sum(1 for _ in found) == 1_099


def test_finds_keys_with_unusual_parts(bucket: str) -> None:
    store: Any = fsspec.filesystem("s3")
    for key in ("a//b.onnx", "c d/[x]é.onnx", "m/"):
        store.call_s3("put_object", Bucket=bucket.removeprefix("s3://"), Key=key, Body=b"x")
    assert relative(bucket) == ["a//b.onnx", "c d/[x]é.onnx"]
    assert relative(f"{bucket}/c d/[x]é.onnx") == ["[x]é.onnx"]


UNUSUAL = {
    "an empty part": (("/abs.onnx", "ok.onnx"), ["/abs.onnx", "ok.onnx"]),
    "two empty parts": (("a/file:///b.onnx", "ok.onnx"), ["a/file:///b.onnx", "ok.onnx"]),
    "an object and a folder of one name": (("a.onnx", "a.onnx/b.onnx"), ["a.onnx", "a.onnx/b.onnx"]),
}


@pytest.mark.parametrize(("names", "found"), UNUSUAL.values(), ids=UNUSUAL)
def test_finds_all_keys_in_memory(names: tuple[str, ...], found: list[str], memory: Any) -> None:
    for name in names:
        memory.store[f"/zoo/{name}"] = MemoryFile(memory, f"/zoo/{name}", b"x")
    assert relative("memory://zoo/") == found
    assert relative("memory://zoo/*") == [each for each in found if "/" not in each]
