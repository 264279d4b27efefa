"""Measure the user's commands on an unchanged stack, with the real Pulumi engine and fake clouds.

`pulumi preview` as shipped is compared with the same without the engine's log of provider traffic, which no
option disables, and `ebbtide up` with `pulumi preview`. Each figure is CPU time of the command and its child
processes, the median of several runs: other work on the machine changes it less than the time by the clock.
The second stack has every add-on that can be installed without the network.
"""

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.preview import HERE, ROUNDS, measured_in
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide_rehearsal import rehearse
from ebbtide_rehearsal.stay import stay
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narration
from tests.repository import declaration
from tests.running import EVERYTHING

ROOT = HERE.parent
STACK = "bench"
FROM_NETWORK = ("pipelines",)
"""Add-ons whose manifests are fetched from GitHub."""


def stacks() -> Mapping[str, dict[str, Any]]:
    """Return the stack `dev`, and the same with every add-on."""
    dev = declaration(ROOT / "Pulumi.dev.yaml")
    addons = {name: value for name, value in EVERYTHING.items() if name not in FROM_NETWORK}
    system = {"name": "system", "role": "system", "machine": "e2-standard-8", "nodes": {"min": 1, "max": 6}}
    pools = [system, *(pool for pool in dev["pools"] if pool["name"] != "system")]
    return {"dev": dev, "every add-on": {**dev, "addons": addons, "pools": pools}}


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands on a stack that stays as declared.

    Attributes:
        project: their directory.
    """

    environment: dict[str, str]
    project: Path

    @property
    def logs(self) -> Path:
        """Directory of the engine's logs."""
        return Path(self.environment["PULUMI_HOME"], "logs")

    def cpu(self, *command: str, log: bool = True) -> float:
        """CPU seconds of a command; without the engine's log if a file is in the place of its directory."""
        if self.logs.is_dir():
            shutil.rmtree(self.logs)
        self.logs.unlink(missing_ok=True)
        if not log:
            self.logs.touch()
        return measured_in(self.project, self.environment, *command)[0]

    def round(self) -> tuple[float, float, float, float]:
        """CPU seconds of a preview, with its log in MB, without it, and of an update."""
        preview = ("pulumi", "preview", "--stack", STACK)
        shipped = self.cpu(*preview)
        size = sum(file.stat().st_size for file in self.logs.rglob("*") if file.is_file()) / 1e6
        return shipped, size, self.cpu(*preview, log=False), self.cpu("ebbtide", "up", STACK, "--yes")


@contextmanager
def running(declared: dict[str, Any]) -> Generator[Commands]:
    """Create a stack, which ends with the block."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, f"Pulumi.{STACK}.yaml")
        file.write_text(json.dumps({"config": {"ebbtide:cluster": declared}}), encoding="utf-8")
        files = read_stack(ROOT, STACK, config_file=file)
        with narration(Console(stderr=True)) as say:
            needed = rehearse.needs(files, rehearse.scenario_of(files), ROOT)
            with stay(files, ensure(needed, on_step=say), say) as up:
                if up.create():
                    sys.exit("The stack could not be created.")
                yield Commands(up.shell.environment(), up.project)


def main() -> None:
    """Print a row for each stack: medians, and the median ratios of pairs."""
    print(f"{'stack':<14} {'preview':>8} {'its log':>8} {'without':>8} {'ratio':>6} {'up':>8} {'ratio':>6}")
    for name, declared in stacks().items():
        with running(declared) as commands:
            rounds = [commands.round() for _ in range(ROUNDS)]
        rows = [(*row, row[0] / row[2], row[3] / row[0]) for row in rounds]
        columns = [statistics.median(column) for column in zip(*rows, strict=True)]
        shipped, size, without, update, to_silent, to_preview = columns
        seconds = f"{shipped:>6.1f} s {size:>5.1f} MB {without:>6.1f} s {to_silent:>6.2f}"
        print(f"{name:<14} {seconds} {update:>6.1f} s {to_preview:>6.2f}")


if __name__ == "__main__":
    main()
