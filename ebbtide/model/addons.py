"""Add-ons: software on the cluster besides its pools. Each is a class with its fields and the facts about it,
and a field of `Addons`; see `AddOnSpec` for what is derived."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field

from ebbtide.model.add_on import READ, WORK, AddOn, AddOnSpec, Right
from ebbtide.model.base import Declared, Names, default

__all__ = ["Addons", "Katib", "Kueue", "Logs", "Pipelines", "Trainer"]

DriverMode = Literal["managed", "daemonset", "gpu-operator", "none"]
"""Installer of the driver on GPU nodes whose pool does not have the cloud's."""


class Kueue(AddOn):
    """Kueue, which admits work to the pools. There by itself where queues or a queued pool are declared."""

    spec: ClassVar = AddOnSpec(
        name="kueue",
        title="Kueue",
        namespace="kueue-system",
        rights=(
            Right("kueue.x-k8s.io", ("localqueues", "workloads"), READ),
            Right("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)),
        ),
    )

    replicas: Annotated[int, Field(strict=True, ge=1, le=3)] = 1
    """Controllers. Several are spread over the system nodes where there are several, and the webhooks go on
    answering while one of those is replaced; each takes room there."""
    frameworks: Names = default(())
    """Kinds of work that are queued besides Jobs, pods and what the declared add-ons bring, as Kueue names
    them (`ray.io/rayjob`)."""

    @property
    def copies(self) -> int:
        """Number of controllers."""
        return self.replicas


class Pipelines(AddOn):
    """Kubeflow Pipelines."""

    spec: ClassVar = AddOnSpec(
        name="pipelines",
        title="Kubeflow Pipelines",
        # Fixed in many places of its manifests (kubeflow/pipelines 2.17.0).
        namespace="kubeflow",
        runs_work=True,
        # They take no tolerations of their task (kubeflow/pipelines 2.17.0, argocompiler).
        untolerating="the drivers of Kubeflow Pipelines",
    )

    existing: bool = False
    """True for an existing cluster with Kubeflow Pipelines 2.15.0 or later: nothing is
    installed, and `retry` is set in the environment of its API server alone; it is unset again on destroy."""
    retry: Literal["disruptions", "any"] = "disruptions"
    """Failures that a step's retries cover: the loss of its node only, or also a failure of the step
    itself."""
    artifacts: Literal["cluster", "bucket"] = "cluster"
    """Store of the steps' artifacts: a disk in the cluster, or on GKE a bucket, which has no size limit and
    survives a permanent cluster."""

    @property
    def is_installed(self) -> bool:
        """False for an existing installation."""
        return not self.existing


class Trainer(AddOn):
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
    )


class Katib(AddOn):
    """Katib, for hyperparameter tuning."""

    spec: ClassVar = AddOnSpec(
        name="katib",
        title="Katib",
        # Upstream's is `kubeflow`, which Kubeflow Pipelines brings, too.
        namespace="katib",
        rights=(
            Right("kubeflow.org", ("experiments",), WORK),
            Right("kubeflow.org", ("trials", "suggestions"), READ),
        ),
        # By it Katib's webhook sees the pods of a namespace, and trials are measured there (katib 0.19.0).
        namespace_labels={"katib.kubeflow.org/metrics-collector-injection": "enabled"},
        # What suggests the next trial runs in the experiment's namespace (katib 0.19.0,
        # pkg/controller.v1beta1/suggestion), with no tolerations (SuggestionConfig).
        calls="katib.kubeflow.org/deployment",
        untolerating="Katib's suggestions",
    )


class Logs(AddOn):
    """AKS: logs of pods, those that are gone among them, and audit logs of the control plane, in a Log
    Analytics workspace. Billed by the GiB. GKE has both in Cloud Logging by itself."""

    spec: ClassVar = AddOnSpec(name="logs", title="Container insights")

    retention_days: Annotated[int, Field(strict=True, ge=30, le=730)] = 30
    """Days that they are kept; the first 30 cost nothing more."""
    daily_gib: Annotated[float, Field(ge=0.023)] | None = None
    """The most that is taken in on a day, GiB; what comes after it is lost. Default: no limit."""


class Addons(Declared):
    """Add-ons; each is there when it is named, `{}` for its defaults."""

    drivers: DriverMode = "managed"
    """Installer of the drivers of GPU nodes. `managed`: the cloud. `daemonset`: Google's installer, on
    Container-Optimized OS and Ubuntu. `gpu-operator`: NVIDIA's operator, on Ubuntu. `none`: something else;
    nothing is created for them. In every mode, a pool whose `accelerator.driver` is `default` or `latest` has
    the cloud's."""
    kueue: Kueue | None = None
    pipelines: Pipelines | None = None
    trainer: Trainer | None = None
    katib: Katib | None = None
    logs: Logs | None = None

    @property
    def declared(self) -> tuple[AddOn, ...]:
        """Every declared add-on."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, AddOn))

    @property
    def installed_pipelines(self) -> Pipelines | None:
        """Kubeflow Pipelines, if the stack installs it."""
        return self.pipelines if self.pipelines is not None and not self.pipelines.existing else None


def _classes() -> Mapping[str, type[AddOn]]:
    """Return the types of the optional fields of `Addons`."""
    types = (kind for field in Addons.model_fields.values() for kind in get_args(field.annotation))
    classes = [kind for kind in types if isinstance(kind, type) and issubclass(kind, AddOn)]
    return {kind.spec.name: kind for kind in classes}


ADD_ONS: Final = dict(_classes())
"""Every add-on by its name."""
