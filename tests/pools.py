"""Node pools as the program made them, read field by field from recorded resources, alike for both clouds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.analysis.recording.recording import Recording

_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


@dataclass(frozen=True)
class MadeTaint:
    """A taint on a made pool, in Kubernetes' spelling."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}"


@dataclass(frozen=True)
class MadePool:
    """A node pool that the program made; `inline` where it is part of the cluster's own resource."""

    urn: str
    name: str
    role: str
    minimum: int | None
    maximum: int | None
    initial: int | None
    labels: Mapping[str, str]
    taints: tuple[MadeTaint, ...]
    inline: bool


def pools_made(recording: Recording) -> list[MadePool]:
    """Every node pool of a recording."""
    return [*_gke(recording), *_aks(recording)]


def _gke(recording: Recording) -> Iterator[MadePool]:
    for resource in recording.of_type("gcp:container/nodePool:NodePool"):
        inputs: Any = resource.inputs
        scaling = inputs.get("autoscaling", {})
        name = inputs["name"]
        yield MadePool(
            urn=resource.urn,
            name=name,
            role="system" if name == "system" else "work",
            minimum=scaling.get("totalMinNodeCount"),
            maximum=scaling.get("totalMaxNodeCount"),
            initial=inputs.get("nodeCount", inputs.get("initialNodeCount")),
            labels=inputs["nodeConfig"]["labels"],
            taints=tuple(
                MadeTaint(taint["key"], taint["value"], _EFFECTS[taint["effect"]])
                for taint in inputs["nodeConfig"].get("taints", ())
            ),
            inline=False,
        )


def _aks(recording: Recording) -> Iterator[MadePool]:
    for cluster in recording.of_type("azure-native:containerservice:ManagedCluster"):
        inputs: Any = cluster.inputs
        for profile in inputs["agentPoolProfiles"]:
            yield _agent_pool(cluster.urn, profile, profile["name"], inline=True)
    for resource in recording.of_type("azure-native:containerservice:AgentPool"):
        inputs = resource.inputs
        yield _agent_pool(resource.urn, inputs, str(inputs["agentPoolName"]), inline=False)


def _agent_pool(urn: str, inputs: Any, name: str, *, inline: bool) -> MadePool:
    taints = [text.partition("=") for text in inputs.get("nodeTaints", ())]
    split = [(key, *rest.rpartition(":")[::2]) if sep else _bare(key) for key, sep, rest in taints]
    return MadePool(
        urn=urn,
        name=name,
        role="system" if inputs["mode"] == "System" else "work",
        minimum=inputs.get("minCount"),
        maximum=inputs.get("maxCount"),
        initial=inputs.get("count"),
        labels=inputs.get("nodeLabels", {}),
        taints=tuple(MadeTaint(*parts) for parts in split),
        inline=inline,
    )


def _bare(text: str) -> tuple[str, str, str]:
    key, _, effect = text.rpartition(":")
    return key, "", effect
