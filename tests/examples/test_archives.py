"""Archives of the spot story that are not what they should be."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.examples.workloads import module

_TABLE = b"day,station,celsius\n2026-04-01,hill,1.0\n"


def _tar(*members: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member in members:
            if member.isreg():
                member.size = len(_TABLE)
            archive.addfile(member, io.BytesIO(_TABLE))
    return packed.getvalue()


def _link(kind: bytes) -> bytes:
    link = tarfile.TarInfo("table.csv")
    link.type, link.linkname = kind, "/etc/passwd"
    return _tar(link)


def _zip(name: str, mode: int = 0) -> bytes:
    packed = io.BytesIO()
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(entry, _TABLE)
    return packed.getvalue()


def _download(archive: bytes, folder: Path, **limits: int) -> int:
    """Run the step's own function on an archive."""
    (folder / "archive").write_bytes(archive)
    download: Callable[..., int] = module("aks-spot", "pipelines").download.python_func
    tables = SimpleNamespace(path=str(folder / "in" / "tables"))
    return download((folder / "archive").as_uri(), tables, **limits)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (_tar(tarfile.TarInfo("../../outside.csv")), "leads out of the archive"),
        (_tar(tarfile.TarInfo("/outside.csv")), "leads out of the archive"),
        (_zip("../outside.csv"), "leads out of the archive"),
        (_zip("/outside.csv"), "leads out of the archive"),
        (_link(tarfile.SYMTYPE), "is a link or a device"),
        (_link(tarfile.LNKTYPE), "is a link or a device"),
        (_link(tarfile.CHRTYPE), "is a link or a device"),
        (_zip("table.csv", stat.S_IFLNK | 0o777), "is a link or a device"),
        (_zip("table.txt"), "has no CSV file"),
    ],
)
def test_what_could_reach_other_files_is_refused(archive: bytes, message: str, tmp_path: Path) -> None:
    """A path that leads out, and a link, end the step; nothing is written beside the tables."""
    with pytest.raises(ValueError, match=message):
        _download(archive, tmp_path)
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == {"archive"}


@pytest.mark.parametrize("archive", [_tar(*map(tarfile.TarInfo, "ab")), _zip("a.csv")])
@pytest.mark.parametrize(
    ("limits", "message"),
    [({"max_files": 0}, "more than 0 files"), ({"max_bytes": 10}, "more than 10 bytes")],
)
def test_an_archive_has_limits(archive: bytes, limits: dict[str, int], message: str, tmp_path: Path) -> None:
    """More files or bytes than expected end the step, with the parameter that allows more."""
    with pytest.raises(ValueError, match=message):
        _download(archive, tmp_path, **limits)


@pytest.mark.parametrize("compress", [True, False])
def test_a_bomb_ends_early(compress: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """An archive that is small as downloaded and large once unpacked is not unpacked."""
    packed, size = io.BytesIO(), 2**24
    if compress:
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            bomb = tarfile.TarInfo("bomb.csv")
            bomb.size = size
            archive.addfile(bomb, io.BytesIO(bytes(size)))
    else:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.csv", bytes(size))
    assert len(packed.getvalue()) < 2**20
    with pytest.raises(ValueError, match=f"unpacks to over {2**20} bytes"):
        _download(packed.getvalue(), tmp_path, max_bytes=2**20)
    assert not list(tmp_path.rglob("*.csv"))


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    """An error page in place of an archive ends the step."""
    with pytest.raises(tarfile.ReadError):
        _download(b"<html>404</html>", tmp_path)


def test_tables_of_one_name_stay_apart(tmp_path: Path) -> None:
    """Two directories of an archive may have a file of the same name."""
    members: list[Any] = [tarfile.TarInfo("2026/01.csv"), tarfile.TarInfo("2027/01.csv")]
    assert _download(_tar(*members), tmp_path) == 2
    assert len(list((tmp_path / "in").rglob("01.csv"))) == 2


@pytest.mark.parametrize(
    ("second", "header", "message"),
    [
        ("1,2,3\n", False, r"2\.csv:1 has the columns \['1', '2', '3'\], and the first row \['a', 'b'\]"),
        ("a,c\n", True, r"2\.csv:1 has the columns \['a', 'c'\], and the first row \['a', 'b'\]"),
        ("a,b\n1\n", True, r"2\.csv:2 has the columns \['1'\], and the first row \['a', 'b'\]"),
    ],
)
def test_tables_with_other_columns_are_refused(
    second: str,
    header: bool,  # noqa: FBT001
    message: str,
    tmp_path: Path,
) -> None:
    """A table with another number of columns, or another header, ends the step with file and line."""
    (tmp_path / "1.csv").write_text("a,b\n")
    (tmp_path / "2.csv").write_text(second)
    merge: Callable[..., int] = module("aks-spot", "pipelines").merge.python_func
    tables, merged = SimpleNamespace(path=str(tmp_path)), SimpleNamespace(path=str(tmp_path / "merged"))
    with pytest.raises(ValueError, match=message):
        merge(tables, merged, header=header)
