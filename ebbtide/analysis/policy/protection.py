"""Rules for protection (deletion, public addresses, the control plane's address and login), and for
floating versions of images, charts and kustomizations."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Final, assert_never

from ebbtide.analysis.policy.rule import Reviewed, Rule, RuleFinding, Subject, of_cluster, of_pool, pod_spec
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.reading import gke
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import SECRET_TEXT, leaves
from ebbtide.declaration.model.expiry import LABEL
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_ANYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})
_NODE_NETWORK: Final = "networkConfig.enablePrivateNodes"


_CONTROL_PLANE_REASON: Final = (
    "A public address exposes the cluster to a stolen credential or a vulnerability. Advisory, since IAM or "
    "Entra ID still checks every request. GKE's DNS endpoint has no authorized networks: IAM protects it."
)
DATA: Final = {
    "gcp:storage/bucket:Bucket": ("bucket", "name"),
    "gcp:filestore/instance:Instance": ("file share", "name"),
    "gcp:artifactregistry/repository:Repository": ("registry", "repositoryId"),
    "azure-native:storage:StorageAccount": ("storage account", "accountName"),
    "azure-native:containerregistry:Registry": ("registry", "registryName"),
}
"""Resources that contain people's data: the noun for each, and the input with its name."""
_FLOATING: Final = frozenset({"", "latest", "main", "master", "stable", "edge", "nightly"})
_CHARTS: Final = (
    "kubernetes:helm.sh/v3:Release",
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
)
_KUSTOMIZATION: Final = "kubernetes:kustomize/v2:Directory"
_REMOTE: Final = re.compile(r"^(https?://|git@|git::|github\.com/)")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def is_ephemeral(cluster: Resource) -> bool:
    """Return whether a cluster has a lifetime."""
    inputs = Inputs(cluster.inputs)
    return LABEL in {**inputs.labels("resourceLabels"), **inputs.labels("tags")}


@partial(
    Rule,
    id="private-nodes",
    title="Nodes have no public addresses.",
    level=Level.MANDATORY,
    reason="A node with a public address can be reached without passing a load balancer or a network policy.",
    source="CIS GKE Benchmark 1.9.0, 5.6.5; CIS AKS Benchmark 1.8.0, 5.4.3",
)
def _private_nodes(stack: Reviewed) -> Iterator[RuleFinding]:
    for resource in stack.created(gke.CLUSTER):
        inputs = Inputs(resource.inputs)
        paths = ("privateClusterConfig.enablePrivateNodes", "networkConfig.defaultEnablePrivateNodes")
        if not any(inputs.flag(path) for path in paths):
            cluster = gke.read_cluster(resource)
            yield RuleFinding(of_cluster(cluster), "Its nodes have public addresses by default.")
    for pool in stack.pools:
        inputs = Inputs(stack.recording[pool.urn].inputs)
        match pool.site.cloud:
            case CloudKind.GKE:
                is_public = not pool.inline and inputs.is_false(_NODE_NETWORK)
            case CloudKind.AKS if pool.inline:
                profiles = inputs.parts("agentPoolProfiles")
                is_public = any(
                    profile.flag("enableNodePublicIP")
                    for profile in profiles
                    if profile.text("name") == pool.name
                )
            case CloudKind.AKS:
                is_public = inputs.flag("enableNodePublicIP")
            case _:
                assert_never(pool.site.cloud)
        if is_public:
            yield RuleFinding(of_pool(pool), "Its nodes have public addresses. Keep private nodes enabled.")


@partial(
    Rule,
    id="control-plane-access",
    title="The control plane's address is restricted to authorized networks.",
    level=Level.ADVISORY,
    reason=_CONTROL_PLANE_REASON,
    source="CIS GKE Benchmark 1.9.0, 5.6.3; CIS AKS Benchmark 1.8.0, 5.4.1",
)
def _control_plane(stack: Reviewed) -> Iterator[RuleFinding]:
    for cluster in stack.clusters:
        inputs = Inputs(stack.recording[cluster.urn].inputs)
        networks = by_cloud(gke=_gke_networks, aks=_aks_networks)[cluster.cloud](inputs)
        if networks is None or (networks and _ANYWHERE.isdisjoint(networks)):
            continue
        message = "Its control plane is reachable from any address. Declare cloud.access.networks or private."
        yield RuleFinding(of_cluster(cluster), message)


def _gke_networks(inputs: Inputs) -> tuple[str, ...] | None:
    """Return the networks that can reach the control plane's address; None if it has no public address."""
    if inputs.is_false("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"):
        return None
    if inputs.flag("privateClusterConfig.enablePrivateEndpoint"):
        return None
    blocks = inputs.parts("masterAuthorizedNetworksConfig.cidrBlocks")
    return tuple(block.text("cidrBlock") for block in blocks)


def _aks_networks(inputs: Inputs) -> tuple[str, ...] | None:
    """Return the networks that can reach the control plane's address; None if it has no public address."""
    profile = "apiServerAccessProfile"
    return (
        None
        if inputs.flag(f"{profile}.enablePrivateCluster")
        else inputs.texts(f"{profile}.authorizedIPRanges")
    )


@partial(
    Rule,
    id="workload-identity-login",
    title="A cluster that CI deploys has the login workloadidentity.",
    level=Level.ADVISORY,
    reason="The identity token of a job on GitHub's runners is valid for ten minutes, and `az login` "
    "cannot renew it: the first update of a new AKS cluster takes longer, and then cannot get a "
    "token. kubelogin requests a new one. Advisory, because it has no effect outside of CI.",
    source="Azure/azure-cli#28708 (2024, open); kubelogin 0.2.22, provider.go (2026)",
)
def _login(stack: Reviewed) -> Iterator[RuleFinding]:
    if not stack.limits.ci:
        return
    for provider in stack.recording.of_type("pulumi:providers:kubernetes"):
        for user in _users(Inputs(provider.inputs).text("kubeconfig")):
            if user.text("user.exec.command") == "kubelogin" and "azurecli" in user.texts("user.exec.args"):
                yield RuleFinding(
                    stack.subject(provider),
                    "Its login is azurecli, whose token a CI job cannot renew. Declare cloud.access.login: "
                    "workloadidentity, or set AAD_LOGIN_METHOD=workloadidentity in the job.",
                )


def _users(kubeconfig: str) -> tuple[Inputs, ...]:
    """Return the users of a kubeconfig in JSON; none if it is unknown or encrypted."""
    try:
        return Inputs(json.loads(kubeconfig)).parts("users")
    except (ValueError, TypeError):
        return ()


@partial(
    Rule,
    id="permanent-protected",
    title="A cluster without a lifetime is protected from deletion.",
    level=Level.MANDATORY,
    reason="Deleting a cluster ends all its work and releases its addresses and identities.",
    source="pulumi.com/docs, protect (2026); pulumi-gcp 10.2, deletionProtection",
)
def _permanent_protected(stack: Reviewed) -> Iterator[RuleFinding]:
    for cluster in stack.clusters:
        resource = stack.recording[cluster.urn]
        if is_ephemeral(resource) or resource.protect:
            continue
        # The provider's own deletion protection is on by default (pulumi-gcp 10.2, Cluster).
        if cluster.cloud is CloudKind.GKE and not Inputs(resource.inputs).is_false("deletionProtection"):
            continue
        message = "It has no lifetime, and nothing prevents its deletion. Protect it, or declare a lifetime."
        yield RuleFinding(of_cluster(cluster), message)


@partial(
    Rule,
    id="data-kept",
    title="A change deletes nothing that contains people's data.",
    level=Level.MANDATORY,
    reason="Outputs of Jobs, checkpoints and images cannot be created again. An exception, also in the "
    "change itself, says that the deletion is meant.",
    source="the earlier version, with `ebbtide review --against` and `ebbtide up`",
    is_of_change=True,
)
def _deleted_data(stack: Reviewed) -> Iterator[RuleFinding]:
    for resource in stack.deleted:
        if resource.type in DATA:
            kind, key = DATA[resource.type]
            name = str(resource.inputs.get(key) or resource.name)
            yield RuleFinding(
                Subject("", name, resource.urn),
                f"The {kind} {name} is deleted, with everything in it. Keep its declaration; a renamed team "
                "keeps its storage with `storageName: FORMER-NAME`. Or copy what is needed and declare an "
                f"exception to data-kept for {name}.",
            )


def _shown(resource: Resource, text: str) -> str:
    """Format a text of a resource's inputs; `[secret]` if it does not occur in plain text."""
    return text if any(leaf == text for _, leaf in leaves(dict(resource.inputs))) else SECRET_TEXT


def _is_floating_image(image: str) -> bool:
    if "@" in image:
        return False
    return image.rpartition("/")[2].partition(":")[2] in _FLOATING


def _images(stack: Reviewed) -> Iterator[RuleFinding]:
    for resource in stack.recording:
        spec = None if resource.read else pod_spec(resource)
        containers = [item for name in _CONTAINERS for item in spec.parts(name)] if spec else []
        for image in dict.fromkeys(container.text("image") for container in containers):
            if image and _is_floating_image(image):
                message = (
                    f"The image {_shown(resource, image)} has no fixed version. Write a tag or a digest."
                )
                yield RuleFinding(stack.subject(resource), message)


def _is_floating_chart(inputs: Inputs) -> bool:
    """Return whether a chart's version floats. Version ranges float; a chart in a directory or an archive is
    fixed.

    The engine has no inputs for a chart whose provider creates its objects.
    """
    chart, version = inputs.text("chart"), inputs.text("version")
    if not chart or chart.startswith((".", "/")) or chart.endswith(".tgz") or "@sha256:" in chart:
        return False
    return version in _FLOATING or any(character in version for character in "^~*<>|") or ".x" in version


def _charts(stack: Reviewed) -> Iterator[RuleFinding]:
    for type_ in _CHARTS:
        for resource in stack.created(type_):
            inputs = Inputs(resource.inputs)
            if _is_floating_chart(inputs):
                chart = _shown(resource, inputs.text("chart"))
                message = f"The chart {chart} has no fixed version. Write its version."
                yield RuleFinding(stack.subject(resource), message)


def _kustomizations(stack: Reviewed) -> Iterator[RuleFinding]:
    for resource in stack.created(_KUSTOMIZATION):
        directory = Inputs(resource.inputs).text("directory")
        if not _REMOTE.match(directory):
            continue
        ref = re.search(r"[?&](?:ref|version)=([^&]+)", directory)
        if (ref[1] if ref else "") in _FLOATING:
            message = f"The kustomization {_shown(resource, directory)} has no fixed version. Add ?ref=TAG."
            yield RuleFinding(stack.subject(resource), message)


@partial(
    Rule,
    id="fixed-versions",
    title="Images, charts and kustomizations have a fixed version.",
    level=Level.MANDATORY,
    reason="A floating version changes what runs without a reviewed change.",
    source="kubernetes.io/docs, images: avoid the tag latest (2026)",
)
def _fixed_versions(stack: Reviewed) -> Iterator[RuleFinding]:
    yield from _images(stack)
    yield from _charts(stack)
    yield from _kustomizations(stack)
