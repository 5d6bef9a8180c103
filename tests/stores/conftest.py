"""An S3 server on loopback, and a store in memory."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import fsspec
import pytest

from zoos.s3_server import Server, s3_server

BUCKETS = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "requests.jsonl") as started:
        yield started


@pytest.fixture
def bucket(server: Server) -> str:
    """The URL of an empty bucket; requests that were made before are not counted."""
    name = f"zoo-{next(BUCKETS)}"
    fsspec.filesystem("s3").mkdir(name)
    server.log.write_text("")
    return f"s3://{name}"


@pytest.fixture
def memory() -> Iterator[Any]:
    """Return an empty store in memory."""
    store = fsspec.filesystem("memory")
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]
