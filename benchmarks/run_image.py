"""Measure `ebbtide run` of a folder of 1 MB, from its start to the created Job, with the code in an image.

Each figure is a fresh process against a real API server and the real distribution registry on this machine:
with code that has changed, and with code that the registry has. The base image is in the registry. Other work
on the machine lengthens the time by the clock: its lowest figure is shown, and the median of the CPU time.
"""

import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.preview import HERE, ROUNDS
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide.placement.profile import TeamProfile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import NAMES
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.control_plane.cluster import namespace
from rehearsal.tests.registry import put_image, registry
from tests.repository import ROOT, declaration

FILES = 100
SIZE = 10_000
NAMESPACE = "bench"


def started(environment: dict[str, str], folder: Path, image: str) -> tuple[float, float]:
    """Wall and CPU seconds until the Job is created; the process is then ended."""
    words = ("run", "--pool", "cpu-spot", "-n", NAMESPACE, "--code", str(folder), "--image", image)
    command = [sys.executable, "-m", "ebbtide", *words, "--", "python", "train.py"]
    begun = time.perf_counter()
    process = subprocess.Popen(command, cwd=HERE.parent, env=environment, stdout=subprocess.PIPE, text=True)
    if not any(line.startswith("Job ") for line in process.stdout or ()):
        sys.exit(f"exit status {process.wait()}")
    elapsed = time.perf_counter() - begun
    process.kill()
    _, _, usage = os.wait4(process.pid, 0)
    return elapsed, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a row each for changed and unchanged code: lowest time by the clock, median CPU time."""
    tools = narrated([*NAMES, "kubectl"])
    settings = ControlPlaneSettings(name="bench", cloud="gke")
    with (
        tempfile.TemporaryDirectory() as directory,
        registry(Path(directory)) as address,
        ControlPlane.start(Path(directory, "plane"), tools, settings) as control_plane,
    ):
        namespace(control_plane.api, NAMESPACE)
        made = profile(declare(declaration(ROOT / "Pulumi.dev.yaml"), default_name="dev"))
        team = TeamProfile("bench", NAMESPACE, registry=f"{address}/bench")
        environment = os.environ | {
            "KUBECONFIG": str(control_plane.plan.kubeconfig),
            "EBBTIDE_PROFILE": replace(made, teams=(team,)).json(),
        }
        base = f"{address}/bases/python:3"
        put_image(base, {"etc/base": "base"})
        folder = Path(directory, "code")
        folder.mkdir()
        (folder / "train.py").write_text("print('trained')", encoding="utf-8")
        rows: dict[str, list[tuple[float, float]]] = {"changed": [], "unchanged": []}
        for _ in range(ROUNDS):
            for number in range(FILES):
                (folder / f"{number}.bin").write_bytes(secrets.token_bytes(SIZE))
            for figures in rows.values():
                figures.append(started(environment, folder, base))
    print(f"{'code':<10} {'seconds':>8} {'CPU':>8}")
    for name, figures in rows.items():
        elapsed, cpu = zip(*figures, strict=True)
        print(f"{name:<10} {min(elapsed):>6.2f} s {statistics.median(cpu):>6.2f} s")


if __name__ == "__main__":
    main()
