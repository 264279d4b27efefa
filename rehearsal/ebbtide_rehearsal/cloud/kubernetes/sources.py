"""Where the charts and kustomizations of a program are on this machine, and the programs that render them."""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from ebbtide_rehearsal.cloud.provider import RefusedError

INDEX: Final = "index.yaml"
"""A file in a directory of rendered kustomizations: from addresses, as programs give them, to files beside
it."""

_MINUTES: Final = 5 * 60


def indexed(directory: Path) -> dict[str, Path]:
    """The kustomizations of a directory with an index.

    Raises:
        RefusedError: it has no index, or one that cannot be read.
    """
    try:
        found: dict[str, str] = yaml.safe_load((directory / INDEX).read_text("utf-8"))
        return {address: directory / name for address, name in found.items()}
    except (OSError, AttributeError, TypeError, yaml.YAMLError) as error:
        raise RefusedError(
            f"{directory} has no {INDEX} from addresses of kustomizations to files: {error}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where charts and kustomizations are.

    Attributes:
        helm: the program.
        kubectl: the program.
        charts: directories of charts by their address, such as `oci://registry.k8s.io/kueue/charts/kueue`.
        chart_directories: directories with a directory for each of more charts, called as the chart is.
        kustomizations: by address, as programs give it: a file with the rendered objects, or a directory to
            render them from. Others are rendered from their address, which takes git and the network.
    """

    helm: Path
    kubectl: Path
    charts: Mapping[str, Path] = field(default_factory=dict[str, Path])
    chart_directories: Sequence[Path] = ()
    kustomizations: Mapping[str, Path] = field(default_factory=dict[str, Path])

    def chart(self, reference: str, version: str) -> Path:
        """The directory of a chart.

        Args:
            reference: its address, its name in a repository, or a directory.
            version: which one; empty for whatever is there.

        Raises:
            RefusedError: it is not there, or in another version.
        """
        name = reference.rstrip("/").rpartition("/")[2]
        places = [place for place in (self.charts.get(reference), Path(reference)) if place is not None]
        places += [directory / name for directory in self.chart_directories]
        found = next((place for place in places if (place / "Chart.yaml").is_file()), None)
        wanted = f"chart {reference}" + (f" {version}" if version else "")
        if found is None:
            raise RefusedError(
                f"There is no {wanted} on this machine: unpack it (`helm pull --untar {reference}`) into a "
                "directory of charts, and name that directory with `--charts`."
            )
        has = str(yaml.safe_load((found / "Chart.yaml").read_text("utf-8")).get("version"))
        if version and has.removeprefix("v") != version.removeprefix("v"):
            raise RefusedError(f"The program asks for {wanted}; what is in {found} is version {has}.")
        return found

    def kustomization(self, address: str) -> str:
        """The rendered objects of a kustomization, as YAML.

        Raises:
            RefusedError: it cannot be rendered.
        """
        known = self.kustomizations.get(address)
        if known is not None and known.is_file():
            return known.read_text("utf-8")
        options = ("--load-restrictor=LoadRestrictionsNone", "--enable-helm", f"--helm-command={self.helm}")
        try:
            return run((str(self.kubectl), "kustomize", str(known or address), *options))
        except RefusedError as error:
            raise RefusedError(
                f"The kustomization {address} cannot be rendered here ({error}): it takes git and the way to "
                f"its host, or its rendered objects in a directory with an {INDEX}, named with `--manifests`."
            ) from None


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What a program prints.

    Raises:
        RefusedError: it fails; with the last of what it says.
    """
    try:
        done = subprocess.run(  # noqa: S603 - programs of ours, with arguments of the program that is rehearsed
            list(command),
            env=dict(environment) if environment is not None else None,
            capture_output=True,
            text=True,
            timeout=_MINUTES,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RefusedError(f"`{shlex.join(command[:3])}`: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RefusedError(f"`{shlex.join(command[:3])}`: {''.join(said)}")
    return done.stdout
