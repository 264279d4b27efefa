"""Fakes of kubectl, gcloud, docker and make, which need no cluster and no cloud.

Run as `cloud_tools.py NAME WORDS…`. `CLOUD_TOOLS` is the directory in which every call is recorded.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import yaml

RECORD = "CLOUD_TOOLS"


def calls(directory: Path) -> list[list[str]]:
    """Return the recorded calls, in their order."""
    return [json.loads(line) for line in (directory / "calls").read_text().splitlines()]


def _after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def _kubectl(words: list[str], record: Path) -> None:
    if "port-forward" in words:
        _forward(int(words[-1].partition(":")[0]), record)
    for file in (_after(words[number:], "-f") for number, word in enumerate(words) if word == "-f"):
        assert all(item["kind"] for item in yaml.safe_load_all(Path(file).read_text()))


def _forward(port: int, record: Path) -> None:
    """Serve Kubeflow Pipelines' API after a second, as a port that is being forwarded, until the end."""
    from tests.pipelines_api import PipelinesApi, serving  # noqa: PLC0415 - needs kfp

    time.sleep(1)
    api = PipelinesApi()

    def end(*_: Any) -> None:
        (record / "unfinished").write_text(json.dumps(api.runs))
        (record / "unfinished").rename(record / "runs")
        sys.exit()

    signal.signal(signal.SIGTERM, end)
    with serving(api, port):
        signal.pause()


def _docker(words: list[str], record: Path) -> None:
    match words:
        case ["build", *options, context]:
            file = Path(_after(options, "--file")) if "--file" in options else Path(context) / "Dockerfile"
            contexts = {"": Path(context)}
            if "--build-context" in options:
                name, _, directory = _after(options, "--build-context").partition("=")
                contexts[name] = Path(directory)
            for line in file.read_text().splitlines():
                if line.startswith("COPY "):
                    parts = line.split()[1:-1]
                    origin = next((part[7:] for part in parts if part.startswith("--from=")), "")
                    sources = [part for part in parts if not part.startswith("--")]
                    assert all(list(contexts[origin].glob(source)) for source in sources), line
        case ["push", image]:
            assert any(call[:2] == ["docker", "build"] and image in call for call in calls(record)), image
        case _:
            raise SystemExit(f"unknown: docker {words}")


def _gcloud(words: list[str], _record: Path) -> None:
    match words:
        case ["auth", "configure-docker", _]:
            pass
        case ["storage", "cp", "--recursive", *sources, bucket]:
            assert bucket.startswith("gs://")
            assert all(Path(source).is_dir() for source in sources)
        case _:
            raise SystemExit(f"unknown: gcloud {words}")


def _make(words: list[str], _record: Path) -> None:
    assert words == ["wheel"]
    Path("dist").mkdir()
    Path("dist/ebbtide-0.1.0-py3-none-any.whl").touch()


TOOLS = {"kubectl": _kubectl, "docker": _docker, "gcloud": _gcloud, "make": _make}


if __name__ == "__main__":
    tool, *arguments = sys.argv[1:]
    directory = Path(os.environ[RECORD])
    TOOLS[tool](arguments, directory)
    with (directory / "calls").open("a") as file:
        file.write(json.dumps([tool, *arguments]) + "\n")
