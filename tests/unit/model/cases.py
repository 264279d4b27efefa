"""The declarations of these tests: two good ones, and edits of them that lie beside this file as data."""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import yaml
from pydantic import BaseModel

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import MachineShape, Pool
from ebbtide.declaration.model.tenancy import Team
from ebbtide.values.paths import Key, path_keys

HERE = Path(__file__).parent
_PARTS: Final[Mapping[str, type[BaseModel]]] = {
    "Cluster": Cluster,
    "MachineShape": MachineShape,
    "Pool": Pool,
    "Team": Team,
}
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Case:
    """A declaration and what is said of it.

    Attributes:
        name: what is the matter with it.
        written: the declaration.
        faults: what is said, in order.
    """

    name: str
    written: Any
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def _derived(match: re.Match[str]) -> str:
    """The fields of a part of the declaration, or the version or commit of a pin."""
    what, of = match.groups()
    if what == "fields":
        return ", ".join(field.alias or name for name, field in _PARTS[of].model_fields.items())
    return getattr(PINS[of], what)


@cache
def _read(file: str) -> Any:
    """Return a file, with `{fields of Pool}`, `{version of kueue}` and `{commit of katib}` replaced."""
    text = re.sub(
        r"\{(fields|version|commit) of ([\w-]+)\}", _derived, (HERE / file).read_text(encoding="utf-8")
    )
    return yaml.load(text, _LOADER)  # noqa: S506 - it is a safe one


def base(cloud: str) -> Any:
    """The good declaration of a cloud."""
    return copy.deepcopy(_read(f"bases/{cloud}.yaml"))


def _place(whole: Any, path: str) -> tuple[Any, Key]:
    """Return the container of the value at a path, and its key there; create mappings on the way."""
    *way, last = (*path_keys("it"), *path_keys(path))
    for key in way:
        if key not in whole and isinstance(key, str):
            whole[key] = {}
        whole = whole[key]
    return whole, last


def edited(written: Any, changes: dict[str, Any], drops: list[str]) -> Any:
    """A declaration with values put at some paths, and others taken away.

    The path one past a list's end adds to it; the empty path is the whole.
    """
    whole = {"it": copy.deepcopy(written)}
    for path, value in changes.items():
        place, key = _place(whole, path)
        if isinstance(key, int) and key == len(place):
            place.append(None)
        place[key] = copy.deepcopy(value)
    for path in drops:
        place, key = _place(whole, path)
        del place[key]
    return whole["it"]


def aks_pools(number: int) -> Any:
    """A declaration on AKS with a number of pools."""
    aks = base("aks")
    spare = [
        {"name": f"cpu{index}", "machine": "Standard_D8as_v5", "nodes": {"max": 1}}
        for index in range(number - len(aks["pools"]))
    ]
    return {**aks, "pools": [*aks["pools"], *spare]}


def many_tags(count: int) -> Any:
    """A declaration whose work pool has a number of network tags, one of them of the cluster."""
    tags = [f"tag-{number}" for number in range(count)]
    return edited(base("gke"), {"cloud.networkTags": tags[:1], "pools[1].networkTags": tags}, [])


def many_ranges(count: int) -> Any:
    """A declaration whose API server lies in a subnet and has a number of authorized ranges."""
    ranges = [f"203.0.{number // 256}.{number % 256}/32" for number in range(count)]
    integration = {"cloud.overrides": {"apiServerAccessProfile": {"enableVnetIntegration": True}}}
    return edited(base("aks"), {"cloud.access.networks": ranges, **integration}, [])


def many_pools(count: int) -> Any:
    """A declaration with a number of CPU pools, which would be long to read as data."""
    pools = [
        {"name": f"cpu-{number}", "machine": "n2-standard-8", "capacity": "spot", "nodes": {"max": 1}}
        for number in range(count)
    ]
    gke = base("gke")
    return {**gke, "pools": [gke["pools"][0], *pools], "queues": [], "teams": [], "addons": {"kueue": {}}}


def _large_cases() -> list[Case]:
    """Declarations with one item too many, which would be long to read as data."""
    pools, disks = many_pools(65), base("gke")
    names = [pool["name"] for pool in pools["pools"][1:]]
    disks["pools"][1]["secondaryBootDisks"] = [
        {"diskImage": f"global/images/data-{number}"} for number in range(128)
    ]
    of_queue = ("The queue cpu has 65 pools.", "Kueue supports at most 64 flavors in a queue.")
    rows: list[tuple[str, Any, str, tuple[str, str], str]] = [
        (
            "queues: too many pools",
            {**pools, "queues": [{"name": "cpu", "pools": names}]},
            "queues[0].pools",
            of_queue,
            "Split the queue into several.",
        ),
        (
            "queues: too many pools in the default queue",
            pools,
            "pools",
            of_queue,
            "Write queues, each with fewer pools.",
        ),
        (
            "aks_pools: too many pools",
            aks_pools(101),
            "pools",
            (
                "A cluster on AKS has at most 100 node pools, and 101 are declared.",
                "The last ones could not be created.",
            ),
            "Declare fewer pools, or a second cluster.",
        ),
        (
            "nodes: too many network tags",
            many_tags(65),
            "pools[1].networkTags",
            (
                "A node of cpu-spot has 65 network tags, and Compute Engine supports at most 64.",
                "The node pool could not be created.",
            ),
            "Remove some of them.",
        ),
        (
            "preloading: too many disks",
            disks,
            "pools[1].secondaryBootDisks",
            ("The pool has 128 secondary boot disks.", "GKE refuses to create the node pool."),
            "Write at most 127.",
        ),
    ]
    return [Case(name, written, (Fault(path, *texts, fix),)) for name, written, path, texts, fix in rows]


def bad_cases() -> list[Case]:
    """Declarations that are refused."""
    return [*cases("bad"), *_large_cases()]


def cases(directory: str) -> list[Case]:
    """The cases of a directory, file by file."""
    return [
        Case(
            name=f"{path.stem}: {row['case']}",
            written=edited(_read(f"bases/{row['base']}.yaml"), row.get("set", {}), row.get("drop", [])),
            faults=tuple(Fault(**fault) for fault in row.get("faults", [])),
        )
        for path in sorted((HERE / directory).glob("*.yaml"))
        for row in _read(f"{directory}/{path.name}")
    ]


def paths(value: Any, keys: tuple[Key, ...] = ()) -> list[tuple[Key, ...]]:
    """The keys of every place in a declaration."""
    inside: list[tuple[Key, Any]] = []
    if isinstance(value, dict):
        inside = list(cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        inside = list(enumerate(cast("list[Any]", value)))
    return [keys, *(path for key, item in inside for path in paths(item, (*keys, key)))]


def put(written: Any, keys: tuple[Key, ...], value: Any) -> Any:
    """A copy of a declaration with a value in some place; without the place where the value is `...`."""
    whole = {"it": copy.deepcopy(written)}
    *way, last = ("it", *keys)
    place: Any = whole
    for key in way:
        place = place[key]
    if value is ... and keys:
        del place[last]
    else:
        place[last] = None if value is ... else value
    return whole["it"]
