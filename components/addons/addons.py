"""Everything that runs on the cluster, in the order in which it can."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from ebbtide.model import Cluster, Team
from ebbtide.model.tenants import PIPELINES_NAMESPACE, tenants_of

from .artifact_store import ArtifactStore
from .backing import MakeBacking
from .drivers import Drivers, DriversArgs, has_drivers
from .existing_pipelines import ExistingPipelines, ExistingPipelinesArgs
from .home import home
from .katib import Katib, KatibArgs
from .kueue import Kueue, KueueArgs
from .members import readers
from .pipelines import Pipelines, PipelinesArgs
from .queues import Queues, QueuesArgs
from .team_objects import namespace_labels
from .tenant import Tenant, TenantArgs
from .trainer import Trainer, TrainerArgs

Ready = tuple[pulumi.Resource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonsArgs:
    """Arguments of add-ons.

    Attributes:
        declaration: the whole declaration.
        backing: creates the cloud resources of a team.
        pools: the node pools.
        artifacts: the store of pipelines; None for one in the cluster.
        deleted_with: the cluster, if its deletion deletes everything on it.
    """

    declaration: Cluster
    backing: MakeBacking
    pools: tuple[pulumi.Resource, ...] = ()
    artifacts: ArtifactStore | None = None
    deleted_with: pulumi.Resource | None = None


def wanted(declaration: Cluster) -> bool:
    """Check that anything besides pools is declared."""
    addons = declaration.addons
    return (
        declaration.has_kueue
        or has_drivers(declaration)
        or bool(tenants_of(declaration))
        or any((addons.pipelines, addons.trainer, addons.katib))
    )


class Addons(pulumi.ComponentResource):
    """Trainer; Kueue; then drivers and what else brings kinds of work; then the tenants' namespaces; then
    pipelines; and last the queues that lead from the namespaces to the pools.

    Kueue is before the tenants' namespaces, since its webhooks see what is made there, and fail closed; and
    after the kinds of work that it is to admit. On a cluster that stays, all of it goes in the opposite
    order: work before its controllers, and those before their kinds. The provider for Kubernetes comes
    through `opts`.
    """

    tenants: dict[str, Tenant]
    """By name of the team."""

    def __init__(self, name: str, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Addons", name, {}, opts)
        self._name = name
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self)
        trainer = self._trainer()
        kueue = self._kueue(trainer)
        self._drivers(kueue)
        kinds = (*trainer, *kueue, *self._katib(kueue))
        self._pipelines_ready: Ready = ()
        pipelines = self._pipelines(kinds)
        self.tenants = {
            team.name: self._tenant(
                team, kinds, pipelines if team.namespace_name == PIPELINES_NAMESPACE else ()
            )
            for team in tenants_of(args.declaration)
        }
        self._queues(
            kueue,
            {team.namespace_name: self.tenants[team.name].namespace for team in tenants_of(args.declaration)},
        )
        self.register_outputs({})

    def _trainer(self) -> Ready:
        if self._args.declaration.addons.trainer is None:
            return ()
        declaration, deleted_with = self._args.declaration, self._args.deleted_with
        args = TrainerArgs(home=home(declaration), readers=readers(declaration), deleted_with=deleted_with)
        return Trainer(f"{self._name}-trainer", args, self._inside).ready

    def _kueue(self, trainer: Ready) -> Ready:
        declaration, deleted_with = self._args.declaration, self._args.deleted_with
        if not declaration.has_kueue:
            return ()
        args = KueueArgs(declaration=declaration, depends_on=trainer, deleted_with=deleted_with)
        return Kueue(f"{self._name}-kueue", args, self._inside).ready

    def _drivers(self, kueue: Ready) -> None:
        declaration, deleted_with = self._args.declaration, self._args.deleted_with
        if has_drivers(declaration):
            args = DriversArgs(declaration=declaration, depends_on=kueue, deleted_with=deleted_with)
            Drivers(f"{self._name}-drivers", args, self._inside)

    def _katib(self, kueue: Ready) -> Ready:
        if self._args.declaration.addons.katib is None:
            return ()
        placement = home(self._args.declaration)
        args = KatibArgs(home=placement, depends_on=kueue, deleted_with=self._args.deleted_with)
        return Katib(f"{self._name}-katib", args, self._inside).ready

    def _pipelines(self, kinds: Ready) -> Ready:
        """Kubeflow Pipelines, and with them their namespace; for an existing installation its retries."""
        declared = self._args.declaration.addons.pipelines
        if declared is None:
            return ()
        if declared.existing:
            existing = ExistingPipelinesArgs(declared=declared)
            ExistingPipelines(f"{self._name}-pipelines", existing, self._inside)
            return ()
        team = next(
            team for team in tenants_of(self._args.declaration) if team.namespace_name == PIPELINES_NAMESPACE
        )
        args = PipelinesArgs(
            declared=declared,
            home=home(self._args.declaration),
            readers=readers(self._args.declaration),
            namespace_labels=namespace_labels(self._args.declaration, team),
            store=self._args.artifacts,
            depends_on=kinds,
            deleted_with=self._args.deleted_with,
        )
        pipelines = Pipelines(f"{self._name}-pipelines", args, self._inside)
        self._pipelines_ready = pipelines.ready
        return pipelines.namespace

    def _tenant(self, team: Team, kinds: Ready, made_with: Ready) -> Tenant:
        """Create a tenant; only a declared team has resources in the cloud."""
        declared = team in self._args.declaration.teams
        args = TenantArgs(
            declaration=self._args.declaration,
            team=team,
            backing=self._args.backing(team) if declared else None,
            depends_on=kinds,
            namespace_made_with=made_with,
            accounts_made_with=self._pipelines_ready if made_with else (),
            deleted_with=self._args.deleted_with,
        )
        return Tenant(f"{self._name}-team-{team.name}", args, self._inside)

    def _queues(self, kueue: Ready, namespaces: Mapping[str, Ready]) -> None:
        if not kueue:
            return
        args = QueuesArgs(
            declaration=self._args.declaration,
            kueue=kueue,
            pools=self._args.pools,
            namespaces=namespaces,
            deleted_with=self._args.deleted_with,
        )
        Queues(f"{self._name}-queues", args, self._inside)
