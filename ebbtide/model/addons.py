"""Add-ons: software on the cluster besides its pools."""

from typing import Annotated, Literal

from pydantic import Field

from ebbtide.model.base import Declared, Names, default

DriverMode = Literal["managed", "daemonset", "gpu-operator", "none"]
"""Installer of the driver on GPU nodes whose pool does not have the cloud's."""


class Kueue(Declared):
    """Kueue, which admits work to the pools. There by itself where queues or a queued pool are declared."""

    replicas: Annotated[int, Field(strict=True, ge=1, le=3)] = 1
    """Controllers. Several are spread over the system nodes where there are several, and the webhooks go on
    answering while one of those is replaced; each takes room there."""
    frameworks: Names = default(())
    """Kinds of work that are queued besides Jobs, pods and what the declared add-ons bring, as Kueue names
    them (`ray.io/rayjob`)."""


class Pipelines(Declared):
    """Kubeflow Pipelines."""

    existing: bool = False
    """True for an existing cluster with Kubeflow Pipelines 2.15.0 or later: nothing is
    installed, and `retry` is set in the environment of its API server alone; it is unset again on destroy."""
    retry: Literal["disruptions", "any"] = "disruptions"
    """Failures that a step's retries cover: the loss of its node only, or also a failure of the step
    itself."""
    artifacts: Literal["cluster", "bucket"] = "cluster"
    """Store of the steps' artifacts: a disk in the cluster, or on GKE a bucket, which has no size limit and
    survives a permanent cluster."""


class Trainer(Declared):
    """Kubeflow Trainer, for distributed training, with its runtimes for PyTorch, JAX and others."""


class Katib(Declared):
    """Katib, for hyperparameter tuning."""


class Logs(Declared):
    """AKS: logs of pods, those that are gone among them, and audit logs of the control plane, in a Log
    Analytics workspace. Billed by the GiB. GKE has both in Cloud Logging by itself."""

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
    def installed_pipelines(self) -> Pipelines | None:
        """Kubeflow Pipelines, if the stack installs it."""
        return self.pipelines if self.pipelines is not None and not self.pipelines.existing else None
