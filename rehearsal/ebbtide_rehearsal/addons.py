"""Add-ons in a rehearsal: the programs, charts and manifests of each, and what a program that really runs
needs as a local process for a pod."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.control_plane.plan import LOCALHOST
from ebbtide_rehearsal.control_plane.processes import ControlPlaneError
from ebbtide_rehearsal.control_plane.volumes import inside
from ebbtide_rehearsal.tools.items import Condition, Data, Item, Part, SourcePatch, Tool, from_module

_WEBHOOK, _METRICS, _HEALTH = 9443, 8443, 8081

SERVERS: Final = 3
"""Number of a controller manager's ports: webhooks, metrics, health."""
_VISIBILITY = 8082
_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 # a path in the container
# Defaults of Kueue 0.19.2: apis/config/v1beta2/defaults.go, charts/kueue.
_TRAINER_MODULE: Final = "github.com/kubeflow/trainer/v2"
_CERTIFICATE_PATHS: Final = tuple(
    SourcePatch("pkg/util/cert/cert.go", f'"{path}"', f'".{path}"')
    for path in (_CERTIFICATES, "/var/run/secrets/kubernetes.io/serviceaccount/namespace")
)
"""Paths of certificates and of the namespace that Trainer and JobSet have, in a container whose root is
below where they run."""
_KATIB_WEBHOOK, _KATIB_METRICS, _KATIB_HEALTH = 8443, 8080, 18080
"""Katib's default ports."""
_ARGO_MODULE: Final = "github.com/argoproj/argo-workflows/v4"
_ARGO_VERSION: Final = f"v{PINS['argo-workflows'].version}"
_FROM_ARGO: Final = (
    "base/crds/minimal",
    "base/workflow-controller",
    "namespace-install/workflow-controller-rbac",
)


@dataclass(frozen=True, slots=True)
class Listening:
    """The local addresses of a process, and its ports in the pod.

    Attributes:
        health: the local port of its readiness probe, `/readyz`.
        ports: pod ports mapped to local ports.
    """

    health: int
    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The environment of a pod's process.

    Attributes:
        ports: free local ports, as many as the program listens on.
        root: the directory that serves as its container's root.
    """

    ports: tuple[int, ...]
    root: Path
    namespace: str


OutOfCluster: TypeAlias = Callable[[Mapping[str, Any], Assignment], tuple[dict[str, Any], Listening]]
"""A pure function that converts the configuration that a pod mounts to the process's, with the minimum of
changes, and returns its addresses, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that runs while a pod of it is scheduled on a node.

    Attributes:
        tool: its name among the tools.
        labels: labels that identify its pods.
        flag: the flag for its configuration file.
        ports: the number of ports it listens on.
        out_of_cluster: its configuration outside of a cluster.
    """

    tool: str
    labels: Mapping[str, str]
    flag: str = "--config"
    ports: int = SERVERS
    out_of_cluster: OutOfCluster

    @property
    def selector(self) -> str:
        """The label selector of its pods."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    def configuration(self, arguments: Sequence[str]) -> str:
        """Return the path of its configuration in the container.

        Raises:
            ControlPlaneError: its arguments have none.
        """
        for word in arguments:
            if self._names_configuration(word):
                return word.partition("=")[2]
        raise ControlPlaneError(f"{self.tool} is given no {self.flag}=FILE")

    def arguments(self, given: Sequence[str], configuration: Path, kubeconfig: Path) -> list[str]:
        """Return the pod's arguments with replaced files."""
        remaining = [word for word in given if not self._names_configuration(word)]
        return [f"{self.flag}={configuration}", f"--kubeconfig={kubeconfig}", *remaining]

    def _names_configuration(self, word: str) -> bool:
        return word.startswith(f"{self.flag}=")


def managed(configuration: Mapping[str, Any], assignment: Assignment) -> tuple[dict[str, Any], Listening]:
    """Convert a controller manager's configuration, as several projects share it: addresses, and the
    namespace of its lease, which it would read from its service account.

    The controller still creates its certificates, stores them in a Secret, and writes the authority into its
    webhooks. See `Outside`; defaults of Kueue 0.19.2, Trainer 2.3.0 and JobSet 0.12.0 (their
    SetDefaults_Configuration).
    """
    settings = deepcopy(dict(configuration))
    webhook, metrics, health = (
        section(settings, "webhook"),
        section(settings, "metrics"),
        section(settings, "health"),
    )
    inside = (
        int(webhook.get("port") or _WEBHOOK),
        port_of(metrics.get("bindAddress"), _METRICS),
        port_of(health.get("healthProbeBindAddress"), _HEALTH),
    )
    webhook |= {"host": LOCALHOST, "port": assignment.ports[0]}
    metrics["bindAddress"] = f"{LOCALHOST}:{assignment.ports[1]}"
    health["healthProbeBindAddress"] = f"{LOCALHOST}:{assignment.ports[2]}"
    elected = section(settings, "leaderElection")
    elected["resourceNamespace"] = elected.get("resourceNamespace") or assignment.namespace
    return settings, Listening(assignment.ports[2], dict(zip(inside, assignment.ports, strict=False)))


def section(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a mutable section of a configuration; created if missing."""
    value: dict[str, Any] = configuration.get(name) or {}
    configuration[name] = value
    return value


def port_of(address: str | None, otherwise: int) -> int:
    """Parse the port of an address such as `:8443`."""
    return int(address.rpartition(":")[2]) if address else otherwise


@dataclass(frozen=True, slots=True)
class Revision:
    """A git repository, as `github.com/kubeflow/katib`, at a tag or a commit."""

    repository: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """An add-on in a rehearsal.

    Attributes:
        tools: its programs.
        data: its charts and manifests.
        programs: those of its programs that really run, while a pod of them is on a node.
        charts: names of its data by the addresses of charts in the component.
        directories: repository and directory that its data is, by the data's name.
    """

    tools: tuple[Tool, ...] = ()
    data: tuple[Data, ...] = ()
    programs: tuple[Program, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict[str, str])
    directories: Mapping[str, tuple[Revision, str]] = field(default_factory=dict[str, tuple[Revision, str]])

    @property
    def items(self) -> tuple[Item, ...]:
        """Data and programs."""
        return (*self.data, *self.tools)


_KUEUE_REVISION: Final = Revision("github.com/kubernetes-sigs/kueue", f"v{PINS['kueue'].version}")


def kueue_out_of_cluster(
    configuration: Mapping[str, Any], assignment: Assignment
) -> tuple[dict[str, Any], Listening]:
    """Convert Kueue's configuration for a process outside of a cluster: as for any controller manager, with
    the visibility server and Kueue's namespace. That server's certificates are in `visibility` below the
    working directory, a path fixed at build time. API config.kueue.x-k8s.io/v1beta2."""
    settings, listening = managed(configuration, assignment)
    visibility = section(settings, "visibilityServer")
    port = int(visibility.get("bindPort") or _VISIBILITY)
    visibility |= {"bindAddress": LOCALHOST, "bindPort": assignment.ports[SERVERS]}
    webhook = section(settings, "webhook")
    webhook["certDir"] = str(inside(assignment.root, webhook.get("certDir") or _CERTIFICATES))
    settings["namespace"] = assignment.namespace
    return settings, Listening(listening.health, {**listening.ports, port: assignment.ports[SERVERS]})


_KUEUE_PROGRAM = Program(
    tool="kueue",
    # From the chart of Kueue 0.19.2.
    labels={"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"},
    ports=SERVERS + 1,
    out_of_cluster=kueue_out_of_cluster,
)

_KUEUE: Final = Rehearsed(
    data=(
        from_module("kueue-chart", "kueue", "sigs.k8s.io/kueue", "kueue", "charts/kueue"),
        from_module(
            "provisioning-request-crds",
            "kueue",
            "k8s.io/autoscaler/cluster-autoscaler/apis",
            "provisioning-request",
            "config/crd",
        ),
        from_module(
            "kueue-crds", "kueue", "sigs.k8s.io/kueue", "kueue", "config/components/crd", Condition.BY_NAME
        ),
    ),
    tools=(
        Tool(
            name="kueue",
            group="kueue",
            module="sigs.k8s.io/kueue",
            package="sigs.k8s.io/kueue/cmd/kueue",
            pin="kueue",
            minutes=1.5,
            stamps=(
                ("sigs.k8s.io/kueue/pkg/version.GitVersion", f"v{PINS['kueue'].version}"),
                # The default is at the root of the file system, which only a container owns.
                ("sigs.k8s.io/kueue/pkg/visibility.certDir", "visibility"),
            ),
            unoptimized="all",
        ),
        Tool(
            name="kueue-replay",  # its scheduler and reconciler on a virtual clock, for replays of traces
            group="kueue-replay",
            module="sigs.k8s.io/kueue",
            package="ebbtide.dev/tools/kueue-replay",
            pin="kueue",
            minutes=4,
            when=Condition.BY_NAME,
        ),
    ),
    programs=(_KUEUE_PROGRAM,),
    charts={f"oci://registry.k8s.io/kueue/charts/kueue@{PINS['kueue'].digest}": "kueue-chart"},
    directories={"kueue-crds": (_KUEUE_REVISION, "config/components/crd")},
)
"""Kueue, which every rehearsal has."""


_TRAINER_REVISION: Final = Revision("github.com/kubeflow/trainer", PINS["trainer"].commit)

_TRAINER_PROGRAM = Program(
    tool="trainer-controller-manager",
    # From the chart of Trainer 2.3.0.
    labels={"app.kubernetes.io/name": "kubeflow-trainer", "app.kubernetes.io/component": "manager"},
    out_of_cluster=managed,
)

JOBSET = Program(
    tool="jobset",
    # From the chart of JobSet 0.12.0.
    labels={"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"},
    out_of_cluster=managed,
)

_TRAINER: Final = Rehearsed(
    data=(
        Data(
            name="trainer-chart",
            group="kubeflow",
            parts=(
                Part(module=_TRAINER_MODULE, pin="trainer", source="charts/kubeflow-trainer"),
                Part(
                    module="sigs.k8s.io/jobset",
                    pin="jobset",
                    source="charts/jobset",
                    into="charts/jobset",
                ),
                Part(
                    module="sigs.k8s.io/lws",
                    pin="leaderworkerset",
                    source="charts/lws",
                    into="charts/lws",
                ),
            ),
            when=Condition.DECLARED,
        ),
        from_module(
            "trainer-manifests", "kubeflow", _TRAINER_MODULE, "trainer", "manifests", Condition.DECLARED
        ),
    ),
    tools=(
        Tool(
            name="trainer-controller-manager",
            group="trainer",
            module=_TRAINER_MODULE,
            package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
            pin="trainer",
            minutes=1,
            when=Condition.DECLARED,
            changes=_CERTIFICATE_PATHS,
        ),
        Tool(
            name="jobset",
            group="trainer",
            module="sigs.k8s.io/jobset",
            package="sigs.k8s.io/jobset",
            pin="jobset",
            minutes=0.2,
            when=Condition.DECLARED,
            stamps=(("sigs.k8s.io/jobset/pkg/version.GitVersion", f"v{PINS['jobset'].version}"),),
            changes=_CERTIFICATE_PATHS,
        ),
    ),
    programs=(_TRAINER_PROGRAM, JOBSET),
    charts={"oci://ghcr.io/kubeflow/charts/kubeflow-trainer": "trainer-chart"},
    directories={"trainer-manifests": (_TRAINER_REVISION, "manifests")},
)
"""Kubeflow Trainer, and JobSet, which its chart includes."""


_KATIB_REVISION: Final = Revision("github.com/kubeflow/katib", PINS["katib"].commit)


def _katib_out_of_cluster(
    configuration: Mapping[str, Any], assignment: Assignment
) -> tuple[dict[str, Any], Listening]:
    """Convert Katib's configuration for a process outside of a cluster. The webhook address and certificate
    path are patched at build time.

    API config.kubeflow.org/v1beta1; defaults of Katib 0.19.0 (pkg/apis/config/v1beta1/defaults.go).
    """
    settings = deepcopy(dict(configuration))
    controller = section(section(settings, "init"), "controller")
    inside = (
        int(controller.get("webhookPort") or _KATIB_WEBHOOK),
        port_of(controller.get("metricsAddr"), _KATIB_METRICS),
        port_of(controller.get("healthzAddr"), _KATIB_HEALTH),
    )
    webhook, metrics, health = assignment.ports
    controller |= {
        "webhookPort": webhook,
        "metricsAddr": f"{LOCALHOST}:{metrics}",
        "healthzAddr": f"{LOCALHOST}:{health}",
    }
    return settings, Listening(health, dict(zip(inside, assignment.ports, strict=True)))


_KATIB_PROGRAM = Program(
    tool="katib-controller",
    # From the kustomization of Katib 0.19.0.
    labels={"katib.kubeflow.org/component": "controller"},
    flag="--katib-config",
    out_of_cluster=_katib_out_of_cluster,
)

_KATIB: Final = Rehearsed(
    data=(
        from_module(
            "katib-manifests",
            "kubeflow",
            "github.com/kubeflow/katib",
            "katib",
            "manifests/v1beta1",
            Condition.DECLARED,
        ),
    ),
    tools=(
        Tool(
            name="katib-controller",
            group="katib",
            module="github.com/kubeflow/katib",
            package="github.com/kubeflow/katib/cmd/katib-controller/v1beta1",
            pin="katib",
            minutes=1.5,
            when=Condition.DECLARED,
            changes=(
                SourcePatch("pkg/controller.v1beta1/consts/const.go", '"/tmp/cert"', '"./tmp/cert"'),
                # The configuration has no listen address; here it must be the loopback interface.
                SourcePatch(
                    "cmd/katib-controller/v1beta1/main.go",
                    "webhook.NewServer(webhook.Options{",
                    'webhook.NewServer(webhook.Options{Host: "127.0.0.1",',
                ),
            ),
        ),
    ),
    programs=(_KATIB_PROGRAM,),
    directories={"katib-manifests": (_KATIB_REVISION, "manifests/v1beta1")},
)


_PIPELINES: Final = Rehearsed(
    data=(
        from_module(
            "argo-crds",
            "argo",
            _ARGO_MODULE,
            "argo-workflows",
            "manifests/base/crds/minimal",
            Condition.BY_NAME,
        ),
        Data(
            name="argo-manifests",
            group="argo",
            parts=tuple(
                Part(module=_ARGO_MODULE, pin="argo-workflows", source=f"manifests/{path}", into=path)
                for path in _FROM_ARGO
            ),
            when=Condition.BY_NAME,
        ),
        from_module(
            "pipelines-manifests",
            "pipelines",
            "github.com/kubeflow/pipelines",
            "pipelines-module",
            "manifests/kustomize",
            Condition.BY_NAME,
        ),
    ),
    tools=(
        Tool(
            name="workflow-controller",
            group="argo",
            module=_ARGO_MODULE,
            package=f"{_ARGO_MODULE}/cmd/workflow-controller",
            pin="argo-workflows",
            minutes=3,
            when=Condition.BY_NAME,
            stamps=(
                (f"{_ARGO_MODULE}.version", _ARGO_VERSION),
                (f"{_ARGO_MODULE}.gitTag", _ARGO_VERSION),
                (f"{_ARGO_MODULE}.gitTreeState", "clean"),
            ),
        ),
    ),
    directories={
        "argo-manifests": (Revision("github.com/argoproj/argo-workflows", _ARGO_VERSION), "manifests"),
        "pipelines-manifests": (
            Revision("github.com/kubeflow/pipelines", PINS["pipelines"].commit),
            "manifests/kustomize",
        ),
    },
)
"""Kubeflow Pipelines: Argo Workflows' controller, for scenarios that run a pipeline, and the manifests of
both, for tests. A stack's manifests are fetched from GitHub or the user's (`--manifests`)."""

REHEARSED: Final = {
    "kueue": _KUEUE,
    "trainer": _TRAINER,
    "katib": _KATIB,
    "pipelines": _PIPELINES,
    "costs": Rehearsed(),  # the cost recorder is a part of Ebbtide and runs as a process
}
"""The add-ons that run on the cluster, by name."""
