"""Archives that someone else made, the hostile ones among them."""

import io
import os
import stat
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from ebbtide.work.runs.archives import ArchiveError, extract

_LONG = "x" * 300


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A directory with a file and a link of its user, beside a directory of others."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/.bashrc").write_text("victim")
    directory = tmp_path / "target"
    directory.mkdir()
    (directory / "train.py").write_text("my own")
    (directory / "data").symlink_to(tmp_path / "victim")
    return directory


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, link, mode
    return entry


def _archive(*entries: tarfile.TarInfo, content: bytes = b"hostile") -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            entry.size = len(content) if entry.type == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def _chain() -> list[tarfile.TarInfo]:
    """Return the entries of CVE-2025-4517: a link that `os.path.realpath` cannot follow to its end."""
    entries: list[tarfile.TarInfo] = []
    path, directory = PurePosixPath(), "d" * 247
    for letter in "abcdefghijklmnop":
        entries += [_entry(str(path / directory), tarfile.DIRTYPE)]
        entries += [_entry(str(path / letter), tarfile.SYMTYPE, directory)]
        path /= directory
    through = f"{'/'.join('abcdefghijklmnop')}/{'l' * 254}"
    return [
        *entries,
        _entry(through, tarfile.SYMTYPE, "../" * 16),
        _entry("escape", tarfile.SYMTYPE, f"{through}/../victim"),
        _entry("escape/.bashrc"),
    ]


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([_entry("../victim/.bashrc")], id="parent"),
        pytest.param([_entry("a/../../victim/.bashrc")], id="parent within"),
        pytest.param([_entry("{root}/victim/.bashrc")], id="absolute"),
        pytest.param([_entry("out", tarfile.SYMTYPE, "../victim"), _entry("out/.bashrc")], id="link"),
        pytest.param(
            [_entry("out", tarfile.SYMTYPE, "{root}/victim"), _entry("out/.bashrc")], id="absolute link"
        ),
        pytest.param(_chain(), id="chain"),
        pytest.param(
            [
                _entry("a", tarfile.SYMTYPE, "."),
                _entry("a/b", tarfile.SYMTYPE, ".."),
                _entry("a/b/victim/.bashrc"),
            ],
            id="links through links",
        ),
        pytest.param([_entry("hard", tarfile.LNKTYPE, "../victim/.bashrc"), _entry("hard")], id="hard link"),
        pytest.param(
            [
                _entry("soft", tarfile.SYMTYPE, "{root}/victim/.bashrc"),
                _entry("hard", tarfile.LNKTYPE, "soft"),
                _entry("hard"),
            ],
            id="hard link to a link",
        ),
        pytest.param([_entry("data/.bashrc")], id="the user's own link"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_written_outside(
    target: Path, entries: list[tarfile.TarInfo], *, links: bool, overwrite: bool
) -> None:
    """Parents, absolute paths, and links of every kind lead nowhere."""
    for entry in entries:
        entry.name = entry.name.replace("{root}", str(target.parent))
        entry.linkname = entry.linkname.replace("{root}", str(target.parent))
    extract(_archive(*entries), target, links=links, overwrite=overwrite)
    assert (target.parent / "victim/.bashrc").read_text() == "victim"
    assert sorted(path.name for path in (target.parent / "victim").iterdir()) == [".bashrc"]
    leading_out = [
        path
        for path in target.rglob("*")
        if path.is_symlink() and path.name != "data" and not path.resolve().is_relative_to(target)
    ]
    assert leading_out == []


def test_links_that_lead_through_later_ones(target: Path) -> None:
    """A link that leads within the directory by itself, and out of it once another exists, is removed."""
    made = extract(
        _archive(
            _entry("p/q/up", tarfile.SYMTYPE, "deep/../../.."),
            _entry("p/q/deep", tarfile.SYMTYPE, "../.."),
            _entry("inside", tarfile.SYMTYPE, "p/q"),
        ),
        target,
        links=True,
    )
    assert made.skipped == ("p/q/up is a link that leads out of the directory",)
    assert (target / "inside").readlink() == Path("p/q")


@pytest.mark.parametrize(
    "name",
    [
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/module/.Git/hooks/post-checkout",
        ".git",
        ".git./config",
        ".git /config",
        "git~1/config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config",
    ],
)
def test_nothing_is_written_into_a_repository(target: Path, name: str) -> None:
    """`.git` is refused at every depth, as case-insensitive and other file systems read it; similar names are
    not."""
    made = extract(_archive(_entry(name), _entry(".gitignore"), _entry("a.git/x")), target, overwrite=True)
    assert (made.files, made.skipped_count) == (2, 1)
    assert made.skipped[0].endswith(" is part of a Git repository")
    assert sorted(path.name for path in target.iterdir()) == [".gitignore", "a.git", "data", "train.py"]


def test_existing_files(target: Path) -> None:
    """A file stays as it is, its mode too, unless it is to be replaced; nothing replaces a directory, and a
    link is replaced itself."""
    (target / "folder").mkdir()
    (target / "train.py").chmod(0o600)
    entries = [_entry(name, mode=0o777) for name in ("train.py", "folder", "data", "train.py/x")]
    kept = extract(_archive(*entries), target)
    assert kept.skipped == (
        "train.py exists with other content",
        "folder exists as a directory",
        "data exists with other content",
        f"train.py/x would be in {target / 'train.py'}, which is not a directory",
    )
    assert ((target / "train.py").read_text(), (target / "train.py").stat().st_mode & 0o777) == (
        "my own",
        0o600,
    )
    replaced = extract(_archive(*entries), target, overwrite=True)
    assert (replaced.files, replaced.skipped_count) == (2, 2)
    assert (target / "train.py").read_text() == (target / "data").read_text() == "hostile"
    assert (target.parent / "victim/.bashrc").read_text() == "victim"


def test_the_same_content(target: Path) -> None:
    """An existing file with the same content is not a loss, and one of the same length is."""
    made = extract(_archive(_entry("train.py"), content=b"my own"), target)
    assert (made.files, made.skipped) == (1, ())
    assert extract(_archive(_entry("train.py"), content=b"my OWN"), target).skipped_count == 1
    os.mkfifo(target / "pipe")
    assert extract(_archive(_entry("pipe")), target).skipped == ("pipe exists with other content",)


def test_a_name_twice(target: Path) -> None:
    """The first of two entries counts; on Linux, names that differ in case only are two files."""
    made = extract(_archive(_entry("a"), _entry("a"), _entry("./a"), _entry("A")), target, overwrite=True)
    assert made.skipped == ("a is in the archive twice", "./a is in the archive twice")
    assert {path.name for path in target.iterdir()} >= {"a"}


def test_modes(target: Path) -> None:
    """A file has the mode of the user's new files, and may stay executable; a directory has that of new
    directories."""
    before = os.umask(0o027)
    try:
        extract(
            _archive(
                _entry("file", mode=0o7666),
                _entry("program", mode=0o6755),
                _entry("folder", tarfile.DIRTYPE, mode=0o1000),
            ),
            target,
        )
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in target.iterdir()}
    assert (modes["file"], modes["program"], modes["folder"]) == (0o640, 0o750, 0o750)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"])
def test_devices(target: Path, kind: bytes) -> None:
    """Devices, pipes and unknown kinds are skipped, and what follows them is written."""
    made = extract(_archive(_entry("device", kind), _entry("after")), target)
    assert made.skipped == ("device is neither a file nor a directory",)
    assert (target / "after").read_text() == "hostile"


def test_sparse_files(target: Path) -> None:
    """A file of a terabyte in a kilobyte is skipped."""
    entry = _entry("sparse")
    entry.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(10**12),
    }
    made = extract(_archive(entry), target)
    assert made.skipped == ("sparse is neither a file nor a directory",)


def test_names(target: Path) -> None:
    """Names that no file can have are skipped; messages have them short, without control characters."""
    entries = [
        _entry(name) for name in (_LONG, "a/" * 3000 + "b", "\x1b[31mred", ".", b"\xff".decode("latin1"))
    ]
    made = extract(_archive(*entries), target)
    assert made.skipped[0].startswith("xxx")
    assert made.skipped[0].endswith("... cannot be written (File name too long)")
    assert made.skipped[1].endswith("... is more than 100 directories deep")
    assert made.skipped[2:] == (". has no name",)
    other = extract(_archive(_entry("\x1b[31mred")), target, overwrite=False)
    assert other.skipped == ()
    changed = extract(_archive(_entry("\x1b[31mred"), content=b"!"), target)
    assert changed.skipped == ("\\u001b[31mred exists with other content",)


def test_many_skipped_entries(target: Path) -> None:
    """The first hundred are named, and all are counted."""
    made = extract(_archive(*(_entry(f"../{number}") for number in range(150))), target)
    assert (len(made.skipped), made.skipped_count) == (100, 150)


def _header(name: str, kind: bytes, size: int) -> bytes:
    entry = _entry(name, kind)
    entry.size = size
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no archive" * 100, id="text"),
        pytest.param(b"", id="empty"),
        pytest.param(_header("a", tarfile.REGTYPE, 10_000) + b"x" * 512, id="cut off"),
        pytest.param(_header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 1 << 33) + b"x" * 512, id="name"),
        pytest.param(_header("a", tarfile.XHDTYPE, 1 << 33) + b"x" * 512, id="extended header"),
        pytest.param(
            _header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 2 << 20)
            + b"x" * (2 << 20)
            + _header("a", tarfile.REGTYPE, 0),
            id="whole name",
        ),
        pytest.param(_header("a", tarfile.REGTYPE, -1024), id="negative size"),
        pytest.param(
            (_header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 1) + b"x".ljust(512, b"\0")) * 5000,
            id="headers of headers",
        ),
    ],
)
def test_malformed_archives(target: Path, content: bytes) -> None:
    """Text, a part of an archive, and headers that would fill memory or the stack end with an error."""
    with pytest.raises(ArchiveError):
        extract(io.BytesIO(content), target)
    assert sorted(path.name for path in target.iterdir()) == ["data", "train.py"]


def test_ignored_entries(target: Path) -> None:
    """An entry that its caller ignores is neither written nor named."""
    made = extract(_archive(_entry("a"), _entry("b")), target, ignored=lambda name: name == "a")
    assert (made.files, made.skipped) == (1, ())
