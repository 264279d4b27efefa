"""Everything that is installed on the cluster, in the order of its dependencies."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any

import pulumi

from ebbtide.declaration.model.addons import AddOn, Kueue
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement import member_policy, queue_policy
from ebbtide.placement.derive import tenant_profiles
from ebbtide.placement.member_policy import controllers_class
from ebbtide.placement.profile import Profile
from ebbtide.placement.queue_objects import fallback_objects
from ebbtide.placement.queueing import Flavor, object_name, queueing

from .add_on import AddOnArgs, AddOnComponent, ArtifactStore, Ready
from .drivers import Drivers, gpu_direct, has_drivers
from .manifest import InCluster
from .queues import Queues, QueuesArgs
from .teams import CreateTeamResources, Tenant, TenantArgs

Install = Callable[[str, AddOnArgs, pulumi.ResourceOptions], AddOnComponent]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonsArgs:
    """Arguments of add-ons.

    Attributes:
        create_resources: creates the cloud resources of a team.
        pools: the node pools.
        pool_names: the names of work pools in the cloud, by declared name.
        artifacts: the store of pipelines' artifacts; None if they are stored in the cluster.
        managed_kueue: the extension that installs Kueue; None without it.
        deleted_with: the cluster, if its deletion deletes everything on it.
    """

    declaration: Cluster
    create_resources: CreateTeamResources
    pools: tuple[pulumi.Resource, ...] = ()
    pool_names: Mapping[str, pulumi.Output[str]] = field(default_factory=dict[str, pulumi.Output[str]])
    artifacts: ArtifactStore | None = None
    managed_kueue: pulumi.CustomResource | None = None
    deleted_with: pulumi.Resource | None = None


def add_ons(args: AddonsArgs, kubernetes: pulumi.ProviderResource, parent: pulumi.Resource | None) -> None:
    """Create the add-ons, if anything besides pools is declared.

    Args:
        kubernetes: the cluster's provider.
        parent: the component that contains them. Default: the stack.
    """
    if _has_add_ons(args.declaration):
        options = pulumi.ResourceOptions(parent=parent, providers=[kubernetes])
        Addons(f"{args.declaration.name}-addons", args, options)


def _has_add_ons(declaration: Cluster) -> bool:
    return (
        bool(declaration.tenants)
        or declaration.addons.pipelines is not None
        or any(add_on.spec.namespace for add_on in declaration.installed)
        or bool(declaration.gpu_networks)
        or has_drivers(declaration)
        or bool(_monitors(declaration))
    )


def _monitors(declaration: Cluster) -> list[dict[str, Any]]:
    """Return the sources of metrics on the cluster."""
    if declaration.addons.metrics is None:
        return []
    from .monitors import monitors  # noqa: PLC0415 - with the add-on alone

    return monitors(declaration)


def component(add_on: AddOn) -> Install:
    """Return the component class of an add-on, found by the add-on's name.

    It is imported on demand, as is the provider's module for charts or kustomizations.
    """
    module = import_module(f".{add_on.spec.name}", __package__)
    return getattr(module, type(add_on).__name__)


class _Stage(Enum):
    """Stage of the installation."""

    ADMITTED = "kinds of work that Kueue admits"
    KUEUE = "Kueue"
    OTHERS = "everything else"
    WITH_WORK = "namespaces that work runs in"


def _stage(add_on: AddOn) -> _Stage:
    if add_on.spec.runs_work:
        return _Stage.WITH_WORK
    if isinstance(add_on, Kueue):
        return _Stage.KUEUE
    return _Stage.ADMITTED if add_on.spec.frameworks else _Stage.OTHERS


class Addons(InCluster):
    """Add-ons, tenants and queues of a cluster.

    Created in this order: the add-ons whose kinds Kueue admits; Kueue; drivers and the other add-ons; add-ons
    whose namespaces run workloads; the tenants' namespaces; and the queues.

    Kueue comes before the tenants' namespaces, since its webhooks intercept what is created there, and fail
    closed; and after the kinds that it admits. On an existing cluster, the order of deletion is the opposite:
    workloads before their controllers, and controllers before their kinds. The Kubernetes provider is passed
    in `opts`.
    """

    tenants: dict[str, Tenant]
    """Tenants by team name."""

    def __init__(self, name: str, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Addons", name, opts, args.deleted_with)
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self)
        declaration = args.declaration
        admission, fallbacks = queueing(declaration), fallback_objects(declaration)
        flavors, profiles = admission.flavors_by_namespace(), tenant_profiles(declaration)
        priority, policies = controllers_class(declaration), member_policy.objects(declaration)
        guards = queue_policy.layers(declaration)
        has_controllers = any(add_on.spec.namespace for add_on in declaration.installed)
        self._before = (self._create(f"{name}-controllers", priority),) if has_controllers else ()
        admitted = self._kinds(_Stage.ADMITTED)
        kueue = self._kinds(_Stage.KUEUE, admitted)
        self._drivers(kueue)
        self._monitors(kueue)
        kinds = (*admitted, *kueue, *self._kinds(_Stage.OTHERS, kueue))
        hosts = self._installed(_Stage.WITH_WORK, kinds)
        self._existing_pipelines()
        self._existing_katib()
        for subject, policy in policies.items():
            for manifest in policy:
                self._create(f"{name}-{manifest['kind'].lower()}-{subject}", manifest)
        self.tenants = dict(self._tenants(kinds, hosts, profiles, flavors))
        if declaration.has_kueue:
            queues = QueuesArgs(
                fallbacks=fallbacks,
                queueing=admission,
                policy=guards,
                kueue=kueue,
                pools=args.pools,
                pool_names=args.pool_names,
                namespaces={
                    team.namespace_name: self.tenants[team.name].namespace for team in declaration.tenants
                },
                deleted_with=args.deleted_with,
            )
            Queues(f"{name}-queues", queues, self._inside)
        self.register_outputs({})

    def _kinds(self, stage: _Stage, depends_on: Ready = ()) -> Ready:
        """Install the declared add-ons of a stage, read the existing ones, and return the prerequisites of
        their kinds."""
        installed = self._installed(stage, depends_on).values()
        return (*(resource for add_on in installed for resource in add_on.ready), *self._existing(stage))

    def _installed(self, stage: _Stage, depends_on: Ready = ()) -> dict[str, AddOnComponent]:
        """Install the declared add-ons of a stage; return them by namespace."""
        args = AddOnArgs(
            declaration=self._args.declaration,
            artifacts=self._args.artifacts,
            depends_on=(*self._before, *depends_on),
            deleted_with=self._args.deleted_with,
        )
        return {
            add_on.spec.namespace: component(add_on)(f"{self._name}-{add_on.spec.name}", args, self._inside)
            for add_on in self._args.declaration.installed
            if add_on.spec.namespace and _stage(add_on) is stage
        }

    def _drivers(self, kueue: Ready) -> None:
        """Create the networks and DaemonSets of pools with GPUDirect, and the drivers of others."""
        declaration = self._args.declaration
        for manifest in gpu_direct(declaration):
            self._create(self._role(manifest), manifest, (*kueue, *self._args.pools))
        if has_drivers(declaration):
            Drivers(f"{self._name}-drivers", declaration, kueue, self._args.deleted_with, self._inside)

    def _role(self, manifest: Mapping[str, Any]) -> str:
        """Return the resource name of an object of kind and name."""
        return f"{self._name}-{manifest['kind'].lower()}-{manifest['metadata']['name']}"

    def _monitors(self, kueue: Ready) -> None:
        """Create the sources of metrics, one after another: Kubernetes deletes a token whose service account
        does not exist."""
        before = kueue
        for manifest in _monitors(self._args.declaration):
            before = (self._create(self._role(manifest), manifest, before),)

    def _existing(self, stage: _Stage) -> Ready:
        """Read the existing add-ons of a stage, and compare them with what the stack needs."""
        declaration, ready = self._args.declaration, list[pulumi.Resource]()
        for add_on in declaration.addons.declared:
            if not add_on.is_installed and add_on.spec.definitions and _stage(add_on) is stage:
                from .existing import ExistingAddOn  # noqa: PLC0415 - with the add-on alone

                name = f"{self._name}-{add_on.spec.name}"
                installed_by = self._args.managed_kueue if stage is _Stage.KUEUE else None
                ready += ExistingAddOn(name, add_on.spec, declaration, self._inside, installed_by).ready
        return tuple(ready)

    def _existing_pipelines(self) -> None:
        """Set the retry strategy of an existing Kubeflow Pipelines."""
        declared = self._args.declaration.addons.pipelines
        if declared is not None and declared.existing:
            from .pipeline_retries import ExistingPipelines  # noqa: PLC0415 - with the add-on alone

            ExistingPipelines(f"{self._name}-pipelines", declared, self._inside)

    def _existing_katib(self) -> None:
        """Create the policy of trials for the teams' namespaces, whose members may create experiments."""
        declaration = self._args.declaration
        declared, teams = declaration.addons.katib, [team.namespace_name for team in declaration.teams]
        if declared is not None and declared.existing and teams:
            from .katib import TRIALS_POLICY, trials_policy  # noqa: PLC0415 - with the add-on alone

            for manifest in trials_policy(f"{TRIALS_POLICY}-{object_name(declaration)}", teams):
                self._create(f"{self._name}-katib-{manifest['kind'].lower()}", manifest)

    def _tenants(
        self,
        kinds: Ready,
        hosts: Mapping[str, AddOnComponent],
        profiles: Mapping[str, Profile],
        flavors: Mapping[str, tuple[Flavor, ...]],
    ) -> Iterator[tuple[str, Tenant]]:
        """Create the tenants; only declared teams have cloud resources.

        Args:
            kinds: prerequisites of their namespaces.
            hosts: the add-ons that some of their namespaces are created with, by namespace.
            profiles: the placement profile of each, by name.
            flavors: those of the queues of each namespace.

        Yields:
            The name of each team with its tenant.
        """
        declaration = self._args.declaration
        declared = {team.name for team in declaration.teams}
        for team in declaration.tenants:
            host = hosts.get(team.namespace_name)
            args = TenantArgs(
                declaration=declaration,
                team=team,
                profile=profiles[team.name],
                flavors=flavors.get(team.namespace_name, ()),
                resources=self._args.create_resources(team) if team.name in declared else None,
                depends_on=kinds,
                namespace_made_with=host.namespace if host else (),
                accounts_made_with=host.ready if host else (),
                deleted_with=self._args.deleted_with,
            )
            yield team.name, Tenant(f"{self._name}-team-{team.name}", args, self._inside)
