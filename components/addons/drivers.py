"""Drivers of GPU nodes that the cloud does not install."""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import helm

from ebbtide.declaration.catalog import PINS, CloudKind
from ebbtide.declaration.model import Cluster
from ebbtide.declaration.model.tenants import OPERATOR_NAMESPACE
from ebbtide.values.remote_inputs import remote_inputs

from .deletion import leaf_options
from .driver_objects import (
    device_plugins,
    has_operator,
    installers,
    operator_quota,
    operator_values,
)
from .manifest import Manifest
from .pod_security import driver_namespace
from .system_placement import system_placement

_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriversArgs:
    """Arguments of drivers.

    Attributes:
        declaration: the whole declaration; pools and `addons.drivers` are read from it.
        depends_on: Kueue, if it is installed.
        deleted_with: the cluster, if its deletion deletes them.
    """

    declaration: Cluster
    depends_on: tuple[pulumi.Resource, ...] = ()
    deleted_with: pulumi.Resource | None = None


def has_drivers(declaration: Cluster) -> bool:
    """Check that a declaration has GPU nodes that need a driver installation."""
    return bool(installers(declaration) or device_plugins(declaration) or has_operator(declaration))


class Drivers(pulumi.ComponentResource):
    """Google's installers, the device plugin for AKS, or NVIDIA's operator, each only on its GPU pools.

    Exactly one source installs the driver of a pool: the cloud, an installer, or the operator. The rules of
    the declaration ensure that.
    """

    def __init__(self, name: str, args: DriversArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Drivers", name, {}, opts)
        for manifest in [*installers(args.declaration), *device_plugins(args.declaration)]:
            role = manifest["metadata"]["name"].removeprefix("ebbtide-nvidia-")
            Manifest(f"{name}-{role}", manifest, leaf_options(self, args.deleted_with, args.depends_on))
        operator = self._operator(name, args) if has_operator(args.declaration) else {}
        self.register_outputs(operator)

    def _operator(self, name: str, args: DriversArgs) -> dict[str, str]:
        """Install NVIDIA's operator; return its outputs."""
        namespace = Manifest(
            f"{name}-operator-namespace",
            driver_namespace(OPERATOR_NAMESPACE),
            leaf_options(self, args.deleted_with, args.depends_on),
        )
        first: list[pulumi.Resource] = [namespace]
        if args.declaration.site.cloud is CloudKind.GKE:
            quota = operator_quota(args.declaration)
            first.append(
                Manifest(f"{name}-operator-quota", quota, leaf_options(self, args.deleted_with, [namespace]))
            )
        inputs: dict[str, Any] = {
            "chart": "gpu-operator",
            "repository_opts": {"repo": _REPOSITORY},
            "version": PINS["gpu-operator"].version,
            "name": "gpu-operator",
            "namespace": OPERATOR_NAMESPACE,
            "values": operator_values(args.declaration, system_placement(args.declaration)),
        }
        helm.v4.Chart(
            f"{name}-operator",
            **inputs,
            opts=leaf_options(self, args.deleted_with, first),
        )
        return remote_inputs(inputs)
