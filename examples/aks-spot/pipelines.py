"""Three pipelines from the same two steps: `python pipelines.py` writes a file for each. The placement
profile is read from EBBTIDE_PROFILE."""

from typing import IO, TYPE_CHECKING

from kfp import compiler, dsl

from ebbtide.work.pipelines import every_step, retry_disruptions, use_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "python:3.12"
POOL = "spotnodepool"


def fetch(url: str, file: IO[bytes], max_bytes: int) -> None:
    """Download a URL into a file.

    Raises:
        ValueError: the content exceeds `max_bytes`.
    """
    import urllib.request

    with urllib.request.urlopen(url, timeout=60) as response:
        while chunk := response.read(2**20):
            file.write(chunk)
            if file.tell() > max_bytes:
                raise ValueError(f"{url} has more than {max_bytes} bytes: raise max_bytes if it may.")


def files_of(archive: IO[bytes]) -> "Iterator[tuple[str, int, IO[bytes] | None]]":
    """Yield name, size and content of the files of a zip or tar archive; no content for links and devices.

    In both formats the content of a file is never longer than its declared size.
    """
    import stat
    import tarfile
    import zipfile

    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for item in opened.infolist():
                if not item.is_dir():
                    # The upper half is the file's mode if the archive was created on Unix, else 0.
                    regular = stat.S_IFMT(item.external_attr >> 16) in (0, stat.S_IFREG)
                    yield item.filename, item.file_size, opened.open(item) if regular else None
        return
    archive.seek(0)
    with tarfile.open(fileobj=archive) as opened:
        for item in opened:
            if not item.isdir():
                yield item.name, item.size, opened.extractfile(item) if item.isreg() else None


@dsl.component(base_image=IMAGE, additional_funcs=[fetch, files_of])
def download(
    url: str, tables: dsl.Output[dsl.Dataset], max_files: int = 10_000, max_bytes: int = 2**30
) -> int:
    """Download a .tar.gz or .zip archive, and extract its CSV files.

    Args:
        url: URL of the archive.
        tables: directory to extract the CSV files into, with their own directories.
        max_files: maximum number of files of any kind in the archive.
        max_bytes: maximum size in bytes of the archive, and of its extracted content.

    Returns:
        The number of CSV files.
    """
    import pathlib
    import shutil
    import tempfile

    folder = pathlib.Path(tables.path)
    folder.mkdir(parents=True, exist_ok=True)
    count = unpacked = 0
    with tempfile.TemporaryFile() as archive:
        fetch(url, archive, max_bytes)
        for number, (name, size, content) in enumerate(files_of(archive), start=1):
            path = pathlib.PurePosixPath(name)
            unpacked += size
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{name} in {url} leads out of the archive: none of it is trusted.")
            if content is None:
                raise ValueError(f"{name} in {url} is a link or a device: none of it is trusted.")
            if number > max_files:
                raise ValueError(f"{url} has more than {max_files} files: raise max_files if it may.")
            if unpacked > max_bytes:
                raise ValueError(f"{url} unpacks to over {max_bytes} bytes: raise max_bytes if it may.")
            # macOS adds a hidden file for each file.
            if path.suffix == ".csv" and not path.name.startswith("."):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with content, target.open("wb") as destination:
                    shutil.copyfileobj(content, destination)
                count += 1
    if not count:
        raise ValueError(f"{url} has no CSV file.")
    return count


@dsl.component(base_image=IMAGE)
def merge(tables: dsl.Input[dsl.Dataset], merged: dsl.Output[dsl.Dataset], header: bool = False) -> int:
    """Write the rows of all tables into one.

    Args:
        tables: directory of the CSV files.
        merged: the merged table.
        header: whether each file begins with the same header, of which the merged table has one.

    Returns:
        The number of rows.
    """
    import csv
    import pathlib

    first: list[str] = []
    count = 0
    folder = pathlib.Path(tables.path)
    files = sorted(folder.rglob("*.csv"))
    with pathlib.Path(merged.path).open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, lineterminator="\n")
        for file in files:
            with file.open(newline="", encoding="utf-8") as source:
                reader = csv.reader(source)
                for row in filter(None, reader):
                    is_header = header and reader.line_num == 1
                    if first and (row != first if is_header else len(row) != len(first)):
                        place = f"{file.relative_to(folder)}:{reader.line_num}"
                        raise ValueError(f"{place} has the columns {row}, and the first row {first}.")
                    if not is_header or not first:
                        writer.writerow(row)
                    first = first or row
                    count += not is_header
    print(f"{len(files)} files, {count} rows")
    return count


def _merged(url: str, header: bool) -> int:
    downloaded = download(url=url)
    # The content at a URL may change, but a merge of the same tables is always the same.
    downloaded.set_caching_options(enable_caching=False)
    return merge(tables=downloaded.outputs["tables"], header=header).outputs["Output"]


@dsl.pipeline(name="merge-csv")
def plain(url: str, header: bool = False) -> int:
    """Run every task on the default pool."""
    return _merged(url, header)


@dsl.pipeline(name="merge-csv-spot")
@every_step(use_pool, POOL)
def spot(url: str, header: bool = False) -> int:
    """Run every task on a spot node, without changes to the tasks."""
    return _merged(url, header)


@dsl.pipeline(name="merge-csv-spot-retries")
@every_step(use_pool, POOL)
@every_step(retry_disruptions, 5, backoff="5m")
def spot_with_retries(url: str, header: bool = False) -> int:
    """Retry tasks that lose their node, up to five times, after five minutes each."""
    return _merged(url, header)


PIPELINES = (plain, spot, spot_with_retries)

if __name__ == "__main__":
    for pipeline in PIPELINES:
        compiler.Compiler().compile(pipeline, f"{pipeline.name}.yaml")
