"""The version of the package comes from tags, also in archives, source distributions and shallow clones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from support.unmeasured import unmeasured

from opshift import version

ROOT = Path(__file__).parents[1]
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.com")
FILES = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".git_archival.txt", ".gitattributes")
"""Files that the metadata and the version depend on."""

PRINT_VERSION = """
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
print(ProjectMetadata(".", PluginManager()).version)
"""

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def copy_files(folder: Path) -> Path:
    folder.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def repository(folder: Path, *tags: str) -> Path:
    """Create a repository with a commit for each tag, and one more for the tag `-`."""
    copy_files(folder)
    git(folder, "init", "--quiet")
    for tag in tags:
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "Change")
        if tag != "-":
            git(folder, "tag", tag)
    return folder


def without_git(folder: Path) -> Path:
    return copy_files(folder)


def tagged(folder: Path) -> Path:
    return repository(folder, "v1.2.0")


def after_a_tag(folder: Path) -> Path:
    return repository(folder, "v1.2.0", "-")


def without_tags(folder: Path) -> Path:
    return repository(folder, "-")


def shallow(folder: Path) -> Path:
    source = repository(folder.with_name("source"), "v1.2.0", "-")
    git(folder.parent, "clone", "--quiet", "--depth", "1", source.as_uri(), str(folder))
    return folder


def archive_of(source: Path, folder: Path) -> Path:
    path = folder.with_suffix(".tar")
    git(source, "archive", "--output", str(path), "HEAD")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder


def archive(folder: Path) -> Path:
    return archive_of(repository(folder.with_name("source"), "v1.2.0"), folder)


def archive_without_tags(folder: Path) -> Path:
    return archive_of(repository(folder.with_name("source"), "-"), folder)


def source_distribution(folder: Path) -> Path:
    build = "from hatchling import build; build.build_sdist('dist')"
    source = repository(folder.with_name("source"), "v1.2.0")
    subprocess.run([sys.executable, "-c", build], cwd=source, env=unmeasured(), check=True)
    (path,) = (source / "dist").iterdir()
    with tarfile.open(path) as packed:
        packed.extractall(folder, filter="data")
    (content,) = folder.iterdir()
    return content


@pytest.mark.parametrize(
    ("create", "expected"),
    [
        (tagged, r"1\.2\.0"),
        (after_a_tag, r"1\.2\.1\.dev1\+g[0-9a-f]+"),
        (archive, r"1\.2\.0"),
        (source_distribution, r"1\.2\.0"),
        (without_git, r"0\.1\.0\.dev0"),
        (archive_without_tags, r"0\.1\.0\.dev0"),
        (without_tags, r"0\.\S*dev1\+g[0-9a-f]+"),
        (shallow, r"0\.\S*dev1\+g[0-9a-f]+"),
    ],
)
def test_version_of_a_build(create: Callable[[Path], Path], expected: str, tmp_path: Path) -> None:
    folder = create(tmp_path / "opshift")
    done = subprocess.run(
        [sys.executable, "-c", PRINT_VERSION],
        cwd=folder,
        env=unmeasured(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.fullmatch(expected, done.stdout.strip()), done.stdout + done.stderr


@pytest.fixture
def uncached() -> Iterator[None]:
    version.package_version.cache_clear()
    yield
    version.package_version.cache_clear()


@pytest.mark.usefixtures("uncached")
def test_checkout_has_the_version_of_its_installation() -> None:
    assert version.__version__ == metadata.version("opshift")


@pytest.mark.usefixtures("uncached")
def test_wheel_has_the_version_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version.txt").write_text("1.2.3", "ascii")
    monkeypatch.setattr(version, "VERSION_FILE", tmp_path / "version.txt")
    assert version.__version__ == "1.2.3"


@pytest.mark.usefixtures("uncached")
def test_sources_that_are_not_installed_have_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert version.__version__ == version.UNKNOWN


def test_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'release'"):
        _ = version.release
