"""Add-ons: software on the cluster besides its pools. Each is a class with its fields and facts, and a field
of `Addons`; see `AddOnSpec` for what is derived."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import Field

from ebbtide.declaration.catalog.resources import Footprint, footprint
from ebbtide.declaration.catalog.versions import PINS, Pin
from ebbtide.declaration.model.base import Declared, Name, Names, default

READ: Final = ("get", "list", "watch")
WORK: Final = (*READ, "create", "update", "patch", "delete")
DriverMode = Literal["managed", "daemonset", "gpu-operator", "none"]
"""Installer of the driver on GPU nodes whose pool does not use the cloud's driver."""
REMOTE_INPUTS: Final = "remoteInputs"
"""Output of the component around Helm charts and kustomizations: the fingerprint of their inputs. Their
provider creates their objects, and the engine keeps no inputs of such a component (pulumi 3.259); with it, a
plan against a state knows if they change."""


@dataclass(frozen=True, slots=True)
class Right:
    """A rule of a Kubernetes Role.

    Attributes:
        group: API group.
        resources: resources of the group.
        verbs: allowed verbs.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOnSpec:
    """Facts about an add-on, from which the rest of its setup is derived.

    The name is also the key of its version and minimum Kubernetes version (`catalog/versions.py`, NAME and
    NAME-kubernetes), its requests and disks (`catalog/data/footprints.csv`, NAME, and NAME-node for its
    DaemonSets), its component (`components/addons/NAME.py`), and its programs and manifests in a rehearsal
    (`ebbtide_rehearsal/addons.py`).

    Attributes:
        name: name of its field in the declaration.
        title: display name.
        namespace: namespace that is created for it; empty if the cloud runs the add-on.
        runs_work: True if work runs in that namespace, which is then treated as a tenant's.
        frameworks: its Kueue frameworks (integrations). The add-on is installed before Kueue.
        rights: rights of a team's members in their namespace.
        namespace_labels: labels of the namespaces that its work runs in.
        calls: label key of pods in teams' namespaces that its controller connects to; empty for none.
        upstream_namespace: namespace of its own manifests, which an existing installation may be in, if it is
            another one; empty for none.
        untolerating: name of its pods that tolerate no taint, for messages; empty for none.
        definitions: CustomResourceDefinitions that an existing installation has, with the version of each
            that Ebbtide and members' work use.
    """

    name: str
    title: str
    namespace: str = ""
    runs_work: bool = False
    frameworks: tuple[str, ...] = ()
    rights: tuple[Right, ...] = ()
    namespace_labels: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: str = ""
    upstream_namespace: str = ""
    untolerating: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def footprint(self) -> Footprint:
        """Requests, disks and webhooks of its cluster-wide workloads."""
        return footprint(self.name)

    @property
    def least_kubernetes(self) -> str | None:
        """Minimum Kubernetes version; None if it runs on every supported version."""
        pin = PINS.get(f"{self.name}-kubernetes")
        return pin.version if pin else None


class AddOn(Declared):
    """An add-on as declared: its fields, and the facts about it."""

    spec: ClassVar[AddOnSpec]

    @property
    def is_installed(self) -> bool:
        """True if the stack installs it."""
        return True

    @property
    def copies(self) -> int:
        """Number of instances, each with the requests of its footprint."""
        return 1

    @property
    def least_kubernetes(self) -> str | None:
        """Minimum Kubernetes version; None if it runs on every supported version."""
        return self.spec.least_kubernetes


class ReleasedAddOn(AddOn):
    """An add-on of a pinned release, which alone was tested. A declaration may name a newer one."""

    version: Name | None = None
    """A newer version than the pinned one, with its `digest`. It was not tested with Ebbtide. Default: the
    pinned version."""
    digest: Name | None = None
    """Digest of the version's chart for Kueue (`sha256:…`); for the others, the commit of the version's
    tag."""
    existing: bool = False
    """True for an existing cluster that has the add-on: nothing is installed. Each preview reads the versions
    of its kinds, and of Kueue the configuration."""

    @property
    def is_installed(self) -> bool:
        """False for an existing installation."""
        return not self.existing

    @property
    def pin(self) -> Pin:
        """The release that was tested."""
        return PINS[self.spec.name]

    @property
    def is_tested(self) -> bool:
        """True if the release that was tested is installed."""
        return self.version is None

    @property
    def release(self) -> Pin:
        """The release to install."""
        if self.version is None:
            return self.pin
        digest = self.digest or ""
        kind = {"digest": digest} if self.pin.digest else {"commit": digest}
        return replace(self.pin, version=self.version, **kind)


class Kueue(ReleasedAddOn):
    """Kueue, which admits work to the pools. Installed by default with queues or a queued pool."""

    spec: ClassVar = AddOnSpec(
        name="kueue",
        title="Kueue",
        namespace="kueue-system",
        rights=(
            Right("kueue.x-k8s.io", ("localqueues", "workloads"), READ),
            Right("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)),
        ),
        # v1beta2 since 0.15 (Kueue, CHANGELOG-0.15.md). Its webhook leads to the controller.
        definitions={"localqueues.kueue.x-k8s.io": "v1beta2"},
    )

    install: Literal["chart", "managed"] = "chart"
    """AKS: `managed` installs Kueue as AKS' managed extension (preview, Kubernetes 1.34 or later, in a few
    regions), which AKS configures. Each preview compares its settings, as those of an existing Kueue."""
    replicas: Annotated[int, Field(strict=True, ge=1, le=3)] = 1
    """Controller replicas. Several are spread over the system nodes, and the webhooks stay available while
    one replica is replaced; each replica adds to the requests on the system pool."""
    frameworks: Names = default(())
    """Kueue frameworks to queue besides Jobs, pods and those of the declared add-ons (`ray.io/rayjob`). An
    existing Kueue must have all of them."""

    @property
    def is_managed(self) -> bool:
        """True if AKS installs and configures it."""
        return self.install == "managed"

    @property
    def is_installed(self) -> bool:
        """False for an existing installation, and for the extension of AKS."""
        return super().is_installed and not self.is_managed

    @property
    def least_kubernetes(self) -> str | None:
        """Minimum Kubernetes version of AKS' extension; None for the chart."""
        return PINS["kueue-managed-kubernetes"].version if self.is_managed else super().least_kubernetes

    @property
    def copies(self) -> int:
        """Number of controller replicas."""
        return self.replicas


class Pipelines(ReleasedAddOn):
    """Kubeflow Pipelines."""

    spec: ClassVar = AddOnSpec(
        name="pipelines",
        title="Kubeflow Pipelines",
        # Hard-coded in many of its manifests (kubeflow/pipelines 2.17.0).
        namespace="kubeflow",
        runs_work=True,
        # They do not inherit the tolerations of their task (kubeflow/pipelines 2.17.0, argocompiler).
        untolerating="the drivers of Kubeflow Pipelines",
    )

    existing: bool = False
    """True for an existing cluster with Kubeflow Pipelines 2.15.0 or later: nothing is installed. Only
    `retry` is set, in the environment of its API server, and is unset again on destroy."""
    retry: Literal["disruptions", "any"] = "disruptions"
    """Failures that a step's retries cover: only the loss of its node, or also a failure of the step
    itself."""
    artifacts: Literal["cluster", "bucket"] = "cluster"
    """Artifact store: a disk in the cluster, or on GKE a bucket, which has no size limit and outlives a
    permanent cluster."""


class Trainer(ReleasedAddOn):
    """Kubeflow Trainer, for distributed training, with its runtimes for PyTorch, JAX and others."""

    spec: ClassVar = AddOnSpec(
        name="trainer",
        title="Kubeflow Trainer",
        namespace="kubeflow-system",
        frameworks=("jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"),
        rights=(
            Right("trainer.kubeflow.org", ("trainjobs",), WORK),
            Right("trainer.kubeflow.org", ("trainingruntimes",), READ),
            Right("jobset.x-k8s.io", ("jobsets",), READ),
        ),
        definitions={"trainjobs.trainer.kubeflow.org": "v1alpha1", "jobsets.jobset.x-k8s.io": "v1alpha2"},
    )


class Katib(ReleasedAddOn):
    """Katib, for hyperparameter tuning."""

    spec: ClassVar = AddOnSpec(
        name="katib",
        title="Katib",
        namespace="katib",
        # That of Kubeflow Pipelines.
        upstream_namespace="kubeflow",
        rights=(
            Right("kubeflow.org", ("experiments",), WORK),
            Right("kubeflow.org", ("trials", "suggestions"), READ),
        ),
        # Katib's webhook selects namespaces by this label, and measures trials there (katib 0.19.0).
        namespace_labels={"katib.kubeflow.org/metrics-collector-injection": "enabled"},
        # The suggestion service runs in the experiment's namespace (katib 0.19.0,
        # pkg/controller.v1beta1/suggestion), without tolerations (SuggestionConfig).
        calls="katib.kubeflow.org/deployment",
        untolerating="Katib's suggestions",
        definitions={"experiments.kubeflow.org": "v1beta1"},
    )


class Logs(AddOn):
    """AKS: logs of current and deleted pods, and audit logs of the control plane, in a Log Analytics
    workspace. Billed by the GiB. GKE sends both to Cloud Logging by default."""

    spec: ClassVar = AddOnSpec(name="logs", title="Container insights")

    retention_days: Annotated[int, Field(strict=True, ge=30, le=730)] = 30
    """Retention in days; the first 30 days are free of charge."""
    daily_gib: Annotated[float, Field(ge=0.023)] | None = None
    """Maximum ingestion per day, GiB; anything beyond it is dropped. Default: no limit."""


class Metrics(AddOn):
    """Managed Prometheus: the utilization of GPUs by pod, and Kueue's queues. On GKE in Cloud Monitoring, on
    AKS in an Azure Monitor workspace. Billed by the sample."""

    spec: ClassVar = AddOnSpec(name="metrics", title="managed Prometheus")


class Costs(AddOn):
    """A record of what finished work and nodes that left have cost, by team, user, Job and pool, for
    `ebbtide cost`. A CronJob writes it to ConfigMaps; members read those of all teams."""

    spec: ClassVar = AddOnSpec(name="costs", title="the cost recorder", namespace="ebbtide-costs")


class Addons(Declared):
    """Add-ons. Naming one installs it, `{}` with its defaults."""

    drivers: DriverMode = "managed"
    """Installer of the drivers of GPU nodes. `managed`: the cloud. `daemonset`: Google's installer, on
    Container-Optimized OS and Ubuntu. `gpu-operator`: NVIDIA's operator, on Ubuntu. `none`: nothing is
    installed, and the nodes need another installer; on AKS, another device plugin as well. In every mode, a
    pool whose `accelerator.driver` is `default` or `latest` uses the cloud's driver."""
    kueue: Kueue | None = None
    pipelines: Pipelines | None = None
    trainer: Trainer | None = None
    katib: Katib | None = None
    logs: Logs | None = None
    metrics: Metrics | None = None
    costs: Costs | None = None

    @property
    def declared(self) -> tuple[AddOn, ...]:
        """Every declared add-on."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, AddOn))

    @property
    def installed_pipelines(self) -> Pipelines | None:
        """Kubeflow Pipelines if the stack installs it, else None."""
        return self.pipelines if self.pipelines is not None and not self.pipelines.existing else None


def _classes() -> Mapping[str, type[AddOn]]:
    """Return the types of the optional fields of `Addons`."""
    types = (kind for field in Addons.model_fields.values() for kind in get_args(field.annotation))
    classes = [kind for kind in types if isinstance(kind, type) and issubclass(kind, AddOn)]
    return {kind.spec.name: kind for kind in classes}


ADD_ONS: Final = dict(_classes())
"""Every add-on class by its name."""


def remote_inputs(*inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the output of the component around charts and kustomizations with these inputs."""
    text = json.dumps(inputs, sort_keys=True)
    return {REMOTE_INPUTS: hashlib.sha256(text.encode()).hexdigest()}
