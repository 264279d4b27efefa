"""Three pipelines from the same two steps: `python pipelines.py` writes a file for each. The placement
profile is the one that EBBTIDE_PROFILE names."""

from kfp import compiler, dsl

from ebbtide.workloads.pipelines import every_step, retry_disruptions, use_pool

IMAGE = "python:3.12"
POOL = "spotnodepool"


@dsl.component(base_image=IMAGE)
def download(url: str, tables: dsl.Output[dsl.Dataset]) -> int:
    """Fetch an archive of CSV files, and unpack those; how many there are."""
    import io
    import pathlib
    import urllib.request
    import zipfile

    folder = pathlib.Path(tables.path)
    folder.mkdir(parents=True, exist_ok=True)
    with urllib.request.urlopen(url, timeout=60) as response:
        archive = zipfile.ZipFile(io.BytesIO(response.read()))
    names = [name for name in archive.namelist() if name.endswith(".csv")]
    for name in names:
        # The name alone: an archive may say ../../etc.
        (folder / pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
    return len(names)


@dsl.component(base_image=IMAGE)
def merge(tables: dsl.Input[dsl.Dataset], merged: dsl.Output[dsl.Dataset]) -> int:
    """Write the rows of all tables into one; how many there are."""
    import csv
    import pathlib

    header: list[str] = []
    rows = 0
    with pathlib.Path(merged.path).open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        for file in sorted(pathlib.Path(tables.path).glob("*.csv")):
            with file.open(newline="", encoding="utf-8") as source:
                reader = csv.reader(source)
                columns = next(reader)
                if not header:
                    header = columns
                    writer.writerow(header)
                if columns != header:
                    raise ValueError(f"{file.name} has the columns {columns}, and the first had {header}.")
                for row in reader:
                    writer.writerow(row)
                    rows += 1
    return rows


def _merged(url: str) -> int:
    tables = download(url=url).outputs["tables"]
    return merge(tables=tables).outputs["Output"]


@dsl.pipeline(name="merge-csv")
def plain(url: str) -> int:
    """Every task lands on the default pool."""
    return _merged(url)


@dsl.pipeline(name="merge-csv-spot")
@every_step(use_pool, POOL)
def spot(url: str) -> int:
    """Every task lands on a spot node, and knows nothing of it."""
    return _merged(url)


@dsl.pipeline(name="merge-csv-spot-retries")
@every_step(use_pool, POOL)
@every_step(retry_disruptions, 5, backoff="5m")
def spot_with_retries(url: str) -> int:
    """A task whose node is taken away is run again, five times, after five minutes each."""
    return _merged(url)


PIPELINES = (plain, spot, spot_with_retries)

if __name__ == "__main__":
    for pipeline in PIPELINES:
        compiler.Compiler().compile(pipeline, f"{pipeline.name}.yaml")
