"""Stores of files: a folder, or a bucket of the S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config

from zoos.generator import GeneratedModel

THREADS = 4


class FileStore(Protocol):
    """Files by their relative paths."""

    location: str

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def paths(self) -> list[str]:
        """Return the paths of all files."""

    def unfinished(self) -> list[str]:
        """Return the temporary files, or the multipart uploads that are neither complete nor aborted."""


class Folder:
    """Local folder."""

    def __init__(self, location: Path) -> None:
        self.location = str(location)
        self._root = location

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return (self._root / path).read_bytes()

    def paths(self) -> list[str]:
        """Return the paths of all files."""
        return [file.relative_to(self._root).as_posix() for file in self._root.rglob("*") if file.is_file()]

    def unfinished(self) -> list[str]:
        """Return the temporary files."""
        return [path for path in self.paths() if ".opshift-" in path]


class Bucket:
    """Bucket of the server that the environment names."""

    def __init__(self, name: str) -> None:
        self.location = f"s3://{name}/"
        self._name = name
        self._client: Any = boto3.client("s3", config=Config(max_pool_connections=THREADS))
        self._client.create_bucket(Bucket=name)

    def write(self, path: str, data: bytes) -> None:
        """Write an object."""
        self._client.put_object(Bucket=self._name, Key=path, Body=data)

    def read(self, path: str) -> bytes:
        """Return the content of an object."""
        return bytes(self._client.get_object(Bucket=self._name, Key=path)["Body"].read())

    def paths(self) -> list[str]:
        """Return the keys of all objects."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def unfinished(self) -> list[str]:
        """Return the multipart uploads that are neither complete nor aborted."""
        found = self._client.list_multipart_uploads(Bucket=self._name)
        return [f"upload of {each['Key']}" for each in found.get("Uploads", ())]


def fill(store: FileStore, models: Iterator[GeneratedModel]) -> None:
    """Write models and their data files."""

    def write(model: GeneratedModel) -> None:
        store.write(model.path, model.content)
        if model.data:
            store.write(model.data_path, model.data)

    with ThreadPoolExecutor(THREADS) as pool:
        waiting = []
        for model in models:
            waiting.append(pool.submit(write, model))
            if len(waiting) > 4 * THREADS:  # few models in memory
                waiting.pop(0).result()
        for each in waiting:
            each.result()
