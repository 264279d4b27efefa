"""What azure-native 3.29 does with every type."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import changes, checking, ids
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import no_parent, refused
from ebbtide_rehearsal.cloud.azure.functions import answered
from ebbtide_rehearsal.cloud.azure.kind import Kind, Wish
from ebbtide_rehearsal.cloud.azure.kinds import kind_of
from ebbtide_rehearsal.cloud.azure.locks import refuse_locked
from ebbtide_rehearsal.cloud.azure.operations import Operations
from ebbtide_rehearsal.cloud.azure.previewing import previewed
from ebbtide_rehearsal.cloud.azure.refreshing import imported, refreshed
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Change,
    Failure,
    Made,
    Properties,
    Read,
    RefusedError,
)
from ebbtide_rehearsal.cloud.store import Resource, Store

_NOT_FOUND: Final = 404


class AzureProvider:
    """See `Provider`."""

    package = CLOUD
    version = metadata.version("pulumi-azure-native")

    def __init__(self, store: Store, clusters: Clusters, arm: Arm | None = None) -> None:
        """Stand in for azure-native.

        Args:
            store: where resources are kept.
            clusters: where control planes are.
            arm: Azure as a provider resource is signed in to it; left out, without a subscription.
        """
        self._arm = arm or Arm(store, clusters, Operations())

    def configured(self, variables: Properties) -> "AzureProvider":
        """See `Provider.configured`."""
        subscription, location = variables.get("subscriptionId"), variables.get("location")
        arm = replace(
            self._arm,
            subscription=subscription if isinstance(subscription, str) else "",
            location=location if isinstance(location, str) else "",
        )
        return AzureProvider(arm.store, arm.clusters, arm)

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """See `Provider.check_config`: azure-native takes anything."""
        del variables
        return ()

    def change_config(self, old: Properties, new: Properties) -> Change:
        """See `Provider.change_config`: azure-native replaces nothing for it."""
        return Change(tuple(name for name in {**old, **new} if old.get(name) != new.get(name)))

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """See `Provider.check`."""
        kind = kind_of(call.type)
        inputs = checking.completed(kind, self._arm, call.name, old, new)
        return inputs, checking.failures(kind, inputs)

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> Change:
        """See `Provider.diff`."""
        del identity
        return changes.change(kind_of(call.type), old, new)

    def create(self, call: Call, inputs: Properties) -> Made:
        """See `Provider.create`."""
        kind = kind_of(call.type)
        if call.preview:
            return Made("", previewed(kind, inputs))
        identity = self._identity(kind, inputs)
        if self._arm.find(identity) is not None:
            raise RefusedError(f"cannot create already existing resource '{identity}'")
        self._refuse_orphan(kind, identity, inputs)
        wish = Wish(identity, call.urn, self._sent(kind, call, inputs))
        return Made(identity, self._put(kind, wish))

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`."""
        kind = kind_of(call.type)
        resource = self._arm.find(identity)
        if resource is None:
            return None
        state = self._state(kind, resource)
        inputs = refreshed(kind, call.asked, known, state) if call.asked else imported(kind, identity, state)
        return Read(resource.id, inputs, state)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """See `Provider.update`."""
        kind = kind_of(call.type)
        if call.preview:
            return previewed(kind, new, old.state)
        was = self._arm.find(identity)
        self._refuse_orphan(kind, identity, new)
        return self._put(kind, Wish(identity, call.urn, self._sent(kind, call, new), was))

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """See `Provider.delete`. What is below goes with it."""
        del known
        kind, resource = kind_of(call.type), self._arm.find(identity)
        if resource is None:
            return
        refuse_locked(self._arm, resource.id)
        kind.leaving(self._arm, resource)
        for one in self._arm.below(resource.id):
            self._arm.store.remove(CLOUD, one.id)
        self._arm.store.remove(CLOUD, resource.id)
        self._say(kind, resource.id, "deleted")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`."""
        return answered(self._arm, token, arguments)

    def identity(self, token: str, inputs: Properties) -> str:
        """The id of what inputs of a type ask for."""
        return self._identity(kind_of(token), inputs)

    def _identity(self, kind: Kind, inputs: Properties) -> str:
        if not self._arm.subscription and "{subscriptionId}" in kind.path:
            raise RefusedError(
                "no subscription ID: set azure-native:subscriptionId, or subscriptionId on the provider."
            )
        return ids.identity(kind.path, self._arm.subscription, inputs)

    def _refuse_orphan(self, kind: Kind, identity: str, inputs: Properties) -> None:
        """Refuse what belongs to something that is not there."""
        if kind.parent:
            parent = self._identity(kind_of(kind.parent), inputs)
            if self._arm.find(parent) is None:
                raise no_parent("write", ids.azure_type(kind.path), parent)
        group = ids.group_of(identity)
        if "resourceGroupName" in inputs and not ids.same(group, identity) and self._arm.find(group) is None:
            raise refused(
                "ResourceGroupNotFound",
                f"Resource group '{ids.last(group)}' could not be found.",
                status=_NOT_FOUND,
            )

    def _sent(self, kind: Kind, call: Call, inputs: Properties) -> dict[str, Any]:
        """What reaches Azure of inputs; what does not is said."""
        left_out = checking.unknown(kind, inputs)
        for path in left_out:
            self._arm.store.say(
                "property-ignored",
                f"azure-native knows no property {path} of {call.type}, and leaves it out of {call.name}.",
                property=path,
                urn=call.urn,
            )
        return checking.sent(inputs, left_out)

    def _put(self, kind: Kind, wish: Wish) -> Properties:
        for rule in kind.refusals:
            refusal = rule.says(self._arm, wish)
            if refusal is not None:
                raise refusal
        given = {key: value for key, value in wish.inputs.items() if key not in ids.names(kind.path)}
        name = ids.last(wish.id)
        state = {**kind.defaults, **given, "name": name, "type": ids.azure_type(kind.path)}
        made = Resource(
            CLOUD, wish.id, kind.token, wish.urn, wish.inputs, {**state, **kind.outputs(self._arm, wish)}
        )
        self._arm.store.put(made)
        try:
            kind.happens(self._arm, wish, made)
        except BaseException:
            if wish.was is None:
                self._arm.store.remove(CLOUD, wish.id)
            else:
                self._arm.store.put(wish.was)
            raise
        self._say(kind, wish.id, "created" if wish.was is None else "changed")
        return self._state(kind, self._arm.find(wish.id) or made)

    def _say(self, kind: Kind, identity: str, what: str) -> None:
        if kind.events:
            text = f"The {kind.events} {ids.last(identity)} was {what}."
            self._arm.store.say(f"{kind.events}-{what}", text, id=identity)

    def _state(self, kind: Kind, resource: Resource) -> dict[str, Any]:
        return {**kind.seen(self._arm, resource), checking.API_VERSION: kind.api_version}
