"""A tenant of the cluster."""

from dataclasses import dataclass
from typing import Any

import pulumi

from ebbtide.declaration.model import Cluster, Team
from ebbtide.placement.profile import Profile
from ebbtide.placement.quotas import Flavor

from . import team_objects
from .deletion import leaf_options
from .manifest import Manifest
from .team_resources import TeamResources


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantArgs:
    """Arguments of `Tenant`.

    Attributes:
        declaration: the whole declaration.
        team: the tenant.
        profile: the placement profile for workloads in its namespace.
        flavors: the flavors of its queues.
        resources: its cloud resources; None for a namespace without a team, such as `default`.
        depends_on: Kueue, whose webhooks intercept requests in the namespace.
        namespace_made_with: the add-on that creates the namespace with its labels, if any.
        accounts_made_with: the add-on that creates its service accounts, if any.
        deleted_with: the cluster, if its deletion deletes the tenant.
    """

    declaration: Cluster
    team: Team
    profile: Profile
    flavors: tuple[Flavor, ...] = ()
    resources: TeamResources | None = None
    depends_on: tuple[pulumi.Resource, ...] = ()
    namespace_made_with: tuple[pulumi.Resource, ...] = ()
    accounts_made_with: tuple[pulumi.Resource, ...] = ()
    deleted_with: pulumi.Resource | None = None


class Tenant(pulumi.ComponentResource):
    """A namespace, created or existing, with its members' permissions, queues, limits and identity.

    An existing namespace is never created or deleted, and gets no limits, unless they are declared, and no
    network policy, since it may have other workloads. It has the label that enables queueing while the team
    is declared.
    """

    namespace: tuple[pulumi.Resource, ...]
    """Prerequisites of every object in the namespace."""
    bucket: pulumi.Input[str] | None
    """Address of the team's bucket; None if it has none."""

    def __init__(self, name: str, args: TenantArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ebbtide:addons:Tenant", name, {}, opts)
        declaration, team = args.declaration, args.team
        ours = team.creates_namespace

        def create(manifest: dict[str, Any], *needs: pulumi.Resource, patch: bool = False) -> Manifest:
            role = f"{manifest['kind'].lower()}-{manifest['metadata']['name']}"
            return Manifest(
                f"{name}-{role}", manifest, leaf_options(self, args.deleted_with, needs), patch=patch
            )

        self.namespace = args.namespace_made_with or (
            create(team_objects.namespace(declaration, team), *args.depends_on, patch=not ours),
        )
        self.bucket = args.resources.bucket if args.resources else None
        created = ours or bool(args.namespace_made_with)
        profile = team_objects.profile_map(args.profile, team, created=created)
        options = leaf_options(self, args.deleted_with, self.namespace)
        # Otherwise Pulumi prints a changed profile with a line for each value, for each team.
        options.hide_diffs = ["data"]
        Manifest(f"{name}-configmap-{profile['metadata']['name']}", profile, options)
        if ours:
            for manifest in team_objects.network_policies(declaration, team):
                create(manifest, *self.namespace)
            create(team_objects.nothing_left_behind(team), *self.namespace)
            limits = team_objects.limits(args.flavors, team)
            if limits is not None:
                create(limits, *self.namespace)
        objects = team_objects.objects(declaration, team)
        if objects is not None:
            create(objects, *self.namespace)
        roles = (*team_objects.members(declaration, team), *team_objects.attempts_readers(declaration, team))
        for manifest in roles:
            create(manifest, *self.namespace)
        if args.resources is not None:
            ready = (*self.namespace, *args.resources.grants)
            create(team_objects.account(team, args.resources), *ready)
            for account in args.resources.adopted:
                adopted = team_objects.adopted(account, team, args.resources)
                create(adopted, *ready, *args.accounts_made_with, patch=True)
            if args.resources.disk is not None:
                self._share(name, args, args.resources)
        self.register_outputs({"bucket": self.bucket})

    def _share(self, name: str, args: TenantArgs, resources: TeamResources) -> None:
        """Create the shared volume and its claim. The claim is deleted with the namespace if the stack
        created the namespace: a separate deletion would wait for the pods that use the claim."""
        declaration, team, disk = args.declaration, args.team, resources.disk
        if disk is None:
            return
        needs = [*self.namespace, *resources.grants]
        if disk.credentials:
            secret = team_objects.mount_secret(declaration.name, team, disk.credentials)
            needs.append(
                Manifest(f"{name}-mount", secret, leaf_options(self, args.deleted_with, self.namespace))
            )
        volume = Manifest(
            f"{name}-volume",
            team_objects.volume(declaration.name, team, disk),
            leaf_options(self, args.deleted_with, needs),
        )
        ours = team.creates_namespace
        Manifest(
            f"{name}-claim",
            team_objects.claim(declaration.name, team, disk),
            leaf_options(self, args.deleted_with or (self.namespace[0] if ours else None), [volume]),
        )
