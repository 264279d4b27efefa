"""Charts and kustomizations: each of their objects is a resource of its own.

Names and dependencies are those that Pulumi's provider gives them: `PREFIX:NAMESPACE/NAME`, or `PREFIX:NAME`
for what is in no namespace. Source: pulumi-kubernetes 4.32, provider/pkg/provider/yaml/v2/yaml.go
(`Register`), helm/v4/chart.go and kustomize/v2/directory.go.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final

from ebbtide_rehearsal.cloud.kubernetes import helm, kubeconfig
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.manifests import parsed, placed
from ebbtide_rehearsal.cloud.kubernetes.objects import Object, annotated, annotation, has_unknown, identity
from ebbtide_rehearsal.cloud.kubernetes.ordering import ordered
from ebbtide_rehearsal.cloud.kubernetes.registering import Child, Monitor, monitor_of
from ebbtide_rehearsal.cloud.kubernetes.sources import Sources
from ebbtide_rehearsal.cloud.kubernetes.waiting import SKIP
from ebbtide_rehearsal.cloud.provider import Constructed, Construction, Properties, RefusedError

CHART: Final = "kubernetes:helm.sh/v4:Chart"
DIRECTORY: Final = "kubernetes:kustomize/v2:Directory"

_POLICY: Final = "helm.sh/resource-policy"


def children(manifests: Sequence[Object], prefix: str, *, skip_await: bool, chart: bool) -> list[Child]:
    """Objects as resources, in the order in which they are made.

    Args:
        manifests: the objects, with their namespaces.
        prefix: of their names; empty for none.
        skip_await: whether none of them is waited for.
        chart: whether they are a chart's, whose policy may be to keep an object.
    """
    return [
        Child(
            f"{prefix}:{identity(manifest)}" if prefix else identity(manifest),
            annotated(manifest, SKIP, "true") if skip_await else manifest,
            tuple(needs),
            keep=chart and annotation(manifest, _POLICY) == "keep",
        )
        for manifest, needs in ordered(manifests)
    ]


def construct(
    cluster: Callable[[], Cluster], sources: Sources, variables: Properties, construction: Construction
) -> Constructed:
    """Make a chart or a kustomization. Nothing is rendered as long as an input is not known.

    Raises:
        RefusedError: it cannot be rendered, or the engine does not make one of its objects.
    """
    if construction.type not in (CHART, DIRECTORY):
        raise RefusedError(f'unknown resource type "{construction.type}"')
    inputs = construction.inputs
    with monitor_of(construction) as monitor:
        urn = monitor.component()
        if has_unknown(dict(inputs)):
            return Constructed(urn)
        there = cluster()
        manifests = placed(
            parsed(_rendered(there, sources, variables, construction)),
            str(inputs.get("namespace") or ""),
            there,
        )
        prefix = inputs.get("resourcePrefix")
        found = children(
            manifests,
            construction.name if prefix is None else str(prefix),
            skip_await=inputs.get("skipAwait") is True,
            chart=construction.type == CHART,
        )
        return Constructed(urn, _made(monitor, there, construction, urn, found))


def _made(
    monitor: Monitor, cluster: Cluster, construction: Construction, urn: str, found: Sequence[Child]
) -> Properties:
    if construction.preview:
        return monitor.made(urn, found)
    name, count = construction.name, len(found)
    cluster.store.say("install-begins", f"{count} objects of {name} are to be installed.", urn=urn)
    state = monitor.made(urn, found)
    cluster.store.say("installed", f"{count} objects of {name} are installed.", urn=urn, objects=count)
    return state


def _rendered(cluster: Cluster, sources: Sources, variables: Properties, construction: Construction) -> str:
    inputs = construction.inputs
    if construction.type == DIRECTORY:
        return sources.kustomization(str(inputs["directory"]))
    config = json.dumps(kubeconfig.loaded(str(variables["kubeconfig"])))
    return helm.rendered(sources, cluster, config, str(inputs.get("name") or construction.name), inputs)
