"""CIS Benchmark items for GKE and AKS that depend on a declaration, the properties that satisfy them, and a
rule for each item that a recorded property decides.

The numbers are those of CIS GKE Benchmark 1.9.0 and CIS AKS Benchmark 1.8.0, as listed in cfg/gke-1.9.0 and
cfg/aks-1.8 of aquasecurity/kube-bench@a73ce378 (2026-06); the subjects are paraphrased.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from ebbtide.analysis.policy.rules.rule import Reviewed, Rule, RuleFinding
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.recording.values import UNKNOWN, at, masked, revealed
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.in_pods.cost_recorder import NAMESPACE as RECORDER


@dataclass(frozen=True, slots=True)
class Expected:
    """Required value of a property.

    Attributes:
        text: the value as text.
        holds: returns whether a value is accepted; None is an unset property.
    """

    text: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class RequiredProperty:
    """A required property of every resource of a type that a stack creates.

    Attributes:
        type: Pulumi type of the resource; `Job` for a Job that Ebbtide creates.
        expected: required value.
        unless: property paths; a resource that has one, other than false, is exempt.
    """

    type: str
    path: str
    expected: Expected
    unless: tuple[str, ...] = ()

    def exempts(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether a resource is exempt, by its inputs."""
        return any(at(dict(inputs), path) not in (None, False) for path in self.unless)


def is_(value: Any) -> Expected:
    """Expect one value."""
    text = value if isinstance(value, str) else json.dumps(value)
    return Expected(f"`{text}`", lambda actual: actual == value)


def one_of(*values: str) -> Expected:
    """Expect one of several values."""
    return Expected(" or ".join(f"`{value}`" for value in values), lambda actual: actual in values)


def without(*words: str) -> Expected:
    """Expect Role rules that contain none of these verbs and resources."""

    def holds(rules: Any) -> bool:
        named = {word for rule in rules for part in ("verbs", "resources") for word in rule[part]}
        return bool(rules) and named.isdisjoint(words)

    return Expected("without " + ", ".join(f"`{word}`" for word in words), holds)


def _reads_no_secrets(rules: Any) -> bool:
    verbs = {verb for rule in rules if "secrets" in rule["resources"] for verb in rule["verbs"]}
    # The API server answers a change with the object.
    return verbs.isdisjoint({"get", "list", "watch", "update", "patch", "deletecollection", "*"})


def _creates_no_pods(rules: Any) -> bool:
    return all("create" not in rule["verbs"] for rule in rules if "pods" in rule["resources"])


SET: Final = Expected("set", lambda actual: actual is not None)
NOT_SET: Final = Expected("not set; off is the cloud's default", lambda actual: actual in (None, False))
_METADATA_SERVER: Final = Expected("`GKE_METADATA`", lambda mode: mode in (None, "GKE_METADATA"))
NO_SECRETS: Final = Expected("no reading of `secrets`", _reads_no_secrets)
NO_PODS: Final = Expected("no creating of `pods`", _creates_no_pods)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a benchmark.

    Attributes:
        subject: short form of the requirement.
        default: what a stack sets by default.
        option: field of the declaration, or option of `ebbtide job`, that enables it.
        note: exceptions, or why it is not covered.
    """

    number: str
    subject: str
    default: RequiredProperty | None = None
    option: str = ""
    note: str = ""


_WRITERS: Final = tuple(
    f"roles/{name}"
    for name in (
        "artifactregistry.writer",
        "artifactregistry.repoAdmin",
        "artifactregistry.admin",
        "editor",
        "owner",
    )
)
_CLUSTER: Final = "gcp:container/cluster:Cluster"
_POOL: Final = "gcp:container/nodePool:NodePool"
_AKS: Final = "azure-native:containerservice:ManagedCluster"
_AKS_POOL: Final = "azure-native:containerservice:AgentPool"
_ROLE: Final = "kubernetes:rbac.authorization.k8s.io/v1:Role"
_RESTRICTED: Final = "`podSecurity: restricted` on a team's namespace forbids it for all pods."
_UPSTREAM: Final = "Other roles come from the cloud and from the add-ons."
_POWERS: Final = "Of a team's members. Those of add-ons are listed below."


def _gke(path: str, expected: Expected) -> RequiredProperty:
    return RequiredProperty(_CLUSTER, path, expected)


def _pool(path: str, expected: Expected) -> RequiredProperty:
    return RequiredProperty(_POOL, path, expected)


def _aks(path: str, expected: Expected) -> RequiredProperty:
    return RequiredProperty(_AKS, path, expected)


def _rules(expected: Expected) -> RequiredProperty:
    return RequiredProperty(_ROLE, "rules", expected)


def _job(path: str, expected: Expected) -> RequiredProperty:
    return RequiredProperty("Job", f"spec.template.spec.{path}", expected)


_NAMESPACE: Final = RequiredProperty(
    "kubernetes:core/v1:Namespace",
    'metadata.labels["pod-security.kubernetes.io/enforce"]',
    one_of("baseline", "restricted"),
)
_POLICIES: Final = RequiredProperty(
    "kubernetes:networking.k8s.io/v1:NetworkPolicy", "spec.policyTypes[0]", one_of("Ingress", "Egress")
)
_NO_LOAD_BALANCER: Final = RequiredProperty(
    "kubernetes:core/v1:ResourceQuota",
    'spec.hard["services.loadbalancers"]',
    is_("0"),
    # The other quota of a team counts objects.
    unless=("spec.hard.pods",),
)


def _has_identity_in_azure(metadata: Any) -> bool:
    if not isinstance(metadata, Mapping):
        return False
    has = cast("Mapping[str, Any]", metadata)
    return (
        "azure.workload.identity/client-id" in has.get("annotations", {}) or has.get("namespace") == RECORDER
    )


_UNLESS_DECLARED: Final = "Teams' namespaces admit no load balancers, unless `loadBalancers` is declared."
_TOKENS: Final = _job("automountServiceAccountToken", is_(value=False))
_PRIVILEGED: Final = "Except in `gpu-operator`, and in existing namespaces without `podSecurity`."
_SECRETS: Final = _rules(NO_SECRETS)
_SECCOMP: Final = _job("securityContext.seccompProfile.type", is_("RuntimeDefault"))
_ESCALATION: Final = _job("containers[0].securityContext.allowPrivilegeEscalation", is_(value=False))
_WILDCARDS: Final = _rules(without("*"))
_GRANTS: Final = _rules(without("bind", "impersonate", "escalate"))

_POLICIES_OF_BOTH: Final[Mapping[str, Item]] = {
    item.subject: item
    for item in (
        Item("", "read Secrets", _SECRETS, note=_POWERS),
        Item("", "no wildcards in roles", _WILDCARDS, note=f"Of a team's members. {_UPSTREAM}"),
        Item("", "no work as a default service account", _TOKENS, note="It has no permissions and no token."),
        Item("", "tokens only where needed", _TOKENS, note="Unless a Job names a service account."),
        Item("", "no granting of rights", _GRANTS, note=_POWERS),
        Item("", "network policies in all namespaces", _POLICIES, note="Of those that the stack creates."),
        Item("", "secrets as files", option="--secret-volume", note="`--secret-env` is the alternative."),
        Item("", "an external secret store", note="Kubernetes Secrets are used."),
        Item("", "namespaces as boundaries", option="teams", note="A namespace for each team."),
        Item("", "security contexts", _ESCALATION, note=_RESTRICTED),
        Item("", "no work in `default`", option="teams", note="Without teams, queues lead from `default`."),
    )
}


def _both(number: str, subject: str) -> Item:
    policy = _POLICIES_OF_BOTH[subject]
    return Item(number, subject, policy.default, policy.option, policy.note)


GKE: Final = (
    Item("4.1.1", "who is cluster-admin", note=f"IAM decides, in the project. {_UPSTREAM}"),
    _both("4.1.2", "read Secrets"),
    _both("4.1.3", "no wildcards in roles"),
    _both("4.1.4", "no work as a default service account"),
    _both("4.1.5", "tokens only where needed"),
    Item(
        "4.1.6",
        "no user in system:masters",
        _gke("masterAuth", NOT_SET),
        note="No client certificate exists.",
    ),
    _both("4.1.7", "no granting of rights"),
    Item(
        "4.1.8",
        "no bindings to anonymous users",
        _gke("rbacBindingConfig.enableInsecureBindingSystemUnauthenticated", is_(value=False)),
    ),
    Item(
        "4.1.9",
        "no bindings to unauthenticated users",
        _gke("rbacBindingConfig.enableInsecureBindingSystemUnauthenticated", is_(value=False)),
    ),
    Item(
        "4.1.10",
        "no bindings to all authenticated users",
        _gke("rbacBindingConfig.enableInsecureBindingSystemAuthenticated", is_(value=False)),
    ),
    Item("4.2.1", "Pod Security `baseline` in all namespaces", _NAMESPACE, note=_PRIVILEGED),
    Item("4.3.1", "network policies are enforced", _gke("datapathProvider", is_("ADVANCED_DATAPATH"))),
    _both("4.3.2", "network policies in all namespaces"),
    _both("4.4.1", "secrets as files"),
    _both("4.4.2", "an external secret store"),
    Item("4.5.1", "image provenance", note="Binary Authorization is not set up."),
    _both("4.6.1", "namespaces as boundaries"),
    Item("4.6.2", "seccomp profile RuntimeDefault", _SECCOMP, note="TrainJobs get it from their runtimes."),
    _both("4.6.3", "security contexts"),
    _both("4.6.4", "no work in `default`"),
    Item("5.1.1", "scan images for vulnerabilities", note="A setting of the project."),
    Item(
        "5.1.2",
        "who may push images",
        RequiredProperty(
            "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
            "role",
            one_of("roles/artifactregistry.writer", "roles/artifactregistry.reader"),
        ),
        note="A team's members, to its own `registry`.",
    ),
    Item(
        "5.1.3",
        "nodes only read images",
        RequiredProperty(
            "gcp:projects/iAMMember:IAMMember",
            "role",
            Expected("none that writes images", lambda role: role not in _WRITERS),
        ),
    ),
    Item("5.1.4", "only trusted images", note="Binary Authorization is not set up."),
    Item(
        "5.2.1",
        "no default account on nodes",
        _pool("nodeConfig.serviceAccount", SET),
        note="On existing clusters by `pools[].serviceAccount`.",
    ),
    Item("5.2.2", "Workload Identity", _gke("workloadIdentityConfig.workloadPool", SET)),
    Item("5.3.1", "encrypt Secrets with a key of Cloud KMS", option="cloud.keys.secrets"),
    Item(
        "5.4.1",
        "the metadata server",
        _pool("nodeConfig.workloadMetadataConfig.mode", _METADATA_SERVER),
        note="On existing clusters without teams GKE decides, by the cluster's Workload Identity.",
    ),
    Item(
        "5.5.1",
        "Container-Optimized OS",
        _pool("nodeConfig.imageType", is_("COS_CONTAINERD")),
        note="Except pools with `image: ubuntu`.",
    ),
    Item(
        "5.5.2",
        "auto-repair",
        RequiredProperty(
            _POOL,
            "management.autoRepair",
            is_(value=True),
            ("nodeConfig.flexStart", "queuedProvisioning.enabled"),
        ),
        note="Except flex-start and queued pools, which GKE does not support.",
    ),
    Item("5.5.3", "auto-upgrade", _pool("management.autoUpgrade", is_(value=True))),
    Item(
        "5.5.4",
        "a release channel",
        _gke("releaseChannel.channel", one_of("RAPID", "REGULAR", "STABLE", "EXTENDED")),
    ),
    Item("5.5.5", "shielded nodes", _gke("enableShieldedNodes", is_(value=True))),
    Item(
        "5.5.6",
        "integrity monitoring",
        _pool("nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring", is_(value=True)),
    ),
    Item(
        "5.5.7",
        "secure boot",
        _pool("nodeConfig.shieldedInstanceConfig.enableSecureBoot", is_(value=True)),
        note="Except GPU pools on Ubuntu, or whose driver the cloud does not install.",
    ),
    Item("5.6.1", "flow logs and intranode visibility", note="Both are billed by log volume."),
    Item("5.6.2", "VPC-native", _gke("networkingMode", is_("VPC_NATIVE"))),
    Item(
        "5.6.3",
        "who reaches the control plane's address",
        _gke("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled", is_(value=False)),
        option="cloud.access.networks",
        note="It has no address, unless networks are declared.",
    ),
    Item(
        "5.6.4",
        "no public endpoint",
        option="cloud.access.private",
        note="By default, the DNS endpoint is reachable from anywhere, and protected by IAM.",
    ),
    Item("5.6.5", "private nodes", _gke("privateClusterConfig.enablePrivateNodes", is_(value=True))),
    Item(
        "5.6.6",
        "firewall rules for nodes",
        option="cloud.networkTags",
        note="The rules belong to the network.",
    ),
    Item(
        "5.6.7",
        "TLS on load balancers",
        _NO_LOAD_BALANCER,
        note=_UNLESS_DECLARED,
    ),
    Item(
        "5.7.1",
        "logging and monitoring",
        _gke("loggingConfig.enableComponents", is_(["SYSTEM_COMPONENTS", "WORKLOADS"])),
    ),
    Item("5.7.2", "auditd on nodes", note="It needs a privileged DaemonSet."),
    Item("5.8.1", "no client certificates", _gke("masterAuth", NOT_SET)),
    Item("5.8.2", "Google Groups", option="teams[].members", note="As `group:NAME`."),
    Item("5.8.3", "no ABAC", _gke("enableLegacyAbac", NOT_SET)),
    Item("5.9.1", "keys of your own for volumes", note="They are encrypted with Google's keys."),
    Item("5.9.2", "keys of your own for boot disks", option="cloud.keys.disks"),
    Item("5.10.1", "no web interface", _gke("addonsConfig.kubernetesDashboard", NOT_SET)),
    Item("5.10.2", "no alpha clusters", _gke("enableKubernetesAlpha", NOT_SET)),
    Item("5.10.3", "GKE Sandbox", note="It is not set up: it does not run with every GPU."),
    Item("5.10.4", "security posture", note="It is not set up."),
)

AKS: Final = (
    Item("2.1.1", "audit logs", option="addons.logs", note="Of what changes something, and of sign-ins."),
    Item(
        "4.1.1",
        "who is cluster-admin",
        option="cloud.access.admins",
        note="By default the deployer.",
    ),
    _both("4.1.2", "read Secrets"),
    _both("4.1.3", "no wildcards in roles"),
    Item(
        "4.1.4",
        "create pods",
        _rules(NO_PODS),
        option="teams[].interactive",
        note="Members create Jobs; `interactive` lets them create pods. Permissions of add-ons are listed "
        "below.",
    ),
    _both("4.1.5", "no work as a default service account"),
    _both("4.1.6", "tokens only where needed"),
    _both("4.1.7", "no granting of rights"),
    Item("4.1.8", "create volumes", _rules(without("persistentvolumes")), note=_POWERS),
    Item("4.1.9", "proxy to nodes", _rules(without("nodes", "nodes/proxy")), note=_POWERS),
    Item(
        "4.1.10", "approve certificates", _rules(without("certificatesigningrequests/approval")), note=_POWERS
    ),
    Item(
        "4.1.11",
        "configure webhooks",
        _rules(without("validatingwebhookconfigurations", "mutatingwebhookconfigurations")),
        note=_POWERS,
    ),
    Item("4.1.12", "create tokens", _rules(without("serviceaccounts/token")), note=_POWERS),
    Item("4.2.1", "privileged containers", _NAMESPACE, note=_PRIVILEGED),
    Item("4.2.2", "the host's process ids", _NAMESPACE, note=_PRIVILEGED),
    Item("4.2.3", "the host's IPC", _NAMESPACE, note=_PRIVILEGED),
    Item("4.2.4", "the host's network", _NAMESPACE, note=_PRIVILEGED),
    Item("4.2.5", "privilege escalation", _ESCALATION, note=_RESTRICTED),
    Item("4.4.1", "the newest network plugin", note="AKS upgrades it with the cluster."),
    _both("4.4.2", "network policies in all namespaces"),
    _both("4.5.1", "secrets as files"),
    _both("4.5.2", "an external secret store"),
    _both("4.6.1", "namespaces as boundaries"),
    _both("4.6.2", "security contexts"),
    _both("4.6.3", "no work in `default`"),
    Item(
        "5.1.1",
        "scan images for vulnerabilities",
        note="Defender for Cloud is a setting of the subscription.",
    ),
    Item(
        "5.1.2",
        "who may push images",
        RequiredProperty("azure-native:containerregistry:Registry", "adminUserEnabled", is_(value=False)),
        note="A team's members, to its own `registry`, with the role AcrPush.",
    ),
    Item(
        "5.1.3",
        "nodes only read images",
        RequiredProperty("azure-native:containerregistry:Registry", "adminUserEnabled", is_(value=False)),
        note="The nodes' identity has the role AcrPull.",
    ),
    Item("5.1.4", "only approved registries", note="Azure Policy is not set up."),
    Item(
        "5.2.1",
        "service accounts of your own",
        RequiredProperty(
            "kubernetes:core/v1:ServiceAccount",
            "metadata",
            Expected(
                "with `azure.workload.identity/client-id`, or the cost recorder's", _has_identity_in_azure
            ),
        ),
        note="The cost recorder's account has no access to Azure.",
    ),
    Item("5.3.1", "encrypt Secrets with a key of Key Vault", option="cloud.keys.secrets"),
    Item(
        "5.4.1",
        "who reaches the control plane",
        option="cloud.access.networks",
        note="By default, it is reachable from anywhere, and protected by Entra ID.",
    ),
    Item("5.4.2", "no public endpoint", option="cloud.access.private"),
    Item("5.4.3", "private nodes", RequiredProperty(_AKS_POOL, "enableNodePublicIP", is_(value=False))),
    Item("5.4.4", "network policies are enforced", _aks("networkProfile.networkPolicy", is_("cilium"))),
    Item(
        "5.4.5",
        "TLS on load balancers",
        _NO_LOAD_BALANCER,
        note=_UNLESS_DECLARED,
    ),
    Item("5.5.1", "users of Entra", _aks("disableLocalAccounts", is_(value=True))),
    Item("5.5.2", "Azure RBAC", _aks("aadProfile.enableAzureRBAC", is_(value=True))),
)

BENCHMARKS: Final[Mapping[str, tuple[Item, ...]]] = {
    "CIS GKE Benchmark 1.9.0": GKE,
    "CIS AKS Benchmark 1.8.0": AKS,
}


_COVERED: Final = {"CIS GKE Benchmark 1.9.0": {"5.6.3", "5.6.5"}, "CIS AKS Benchmark 1.8.0": {"5.4.3"}}
"""Items covered by rules in protection.py, which check more fields than the benchmark."""

_JOB: Final = "Job"
"""Jobs are created by `ebbtide job`, not by a stack."""

_REASON: Final = (
    "An item of a security benchmark that a new cluster satisfies. Advisory, since an organization decides "
    "which items it adopts."
)


def _findings(stack: Reviewed, cloud: CloudKind, property_: RequiredProperty) -> Iterator[RuleFinding]:
    if cloud not in stack.clouds:
        return
    for resource in stack.created(property_.type):
        if property_.exempts(resource.inputs):
            continue
        value = at(dict(resource.inputs), property_.path)
        if value is UNKNOWN or property_.expected.holds(revealed(value)):
            continue
        message = f"{property_.path} is {_value_text(masked(value))}; expected: {property_.expected.text}."
        yield RuleFinding(stack.subject(resource), message)


def _value_text(value: object) -> str:
    if value is None:
        return "not set"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else "another value"


_LONGEST: Final = 40


def _rule(benchmark: str, item: Item, property_: RequiredProperty) -> Rule:
    family, cloud, *_ = benchmark.lower().split()
    return Rule(
        id=f"{family}-{cloud}-{item.number}",
        title=f"{item.subject[0].upper()}{item.subject[1:]}.",
        level=Level.ADVISORY,
        reason=_REASON,
        source=f"{benchmark}, {item.number}",
        check=partial(_findings, cloud=CloudKind(cloud), property_=property_),
    )


BENCHMARK_RULES: Final = tuple(
    _rule(benchmark, item, item.default)
    for benchmark, items in BENCHMARKS.items()
    for item in items
    if item.default and item.default.type != _JOB and item.number not in _COVERED[benchmark]
)
