"""Fake of either cloud's provider: resources in the store, by the tables of rules, previews and reviews.

Ids and outputs are the assumed answers of previews (`ebbtide.analysis.recording.assumed_*`), constraints of
inputs and what is fixed come from `constraints_of`, differences and replacements from `field_changes`, and
references from `ids.py`. What clusters and node pools are beside that is in `hosting.py`.
"""

import secrets
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ebbtide.analysis.changes.azure import API_VERSION, RANDOMLY_NAMED
from ebbtide.analysis.changes.inputs import field_changes, is_deleted_first, is_fixed
from ebbtide.analysis.changes.property_path import top_level, values_at, with_defaults
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_period
from ebbtide.analysis.recording.assumption_tables import Question, is_assumed, overlaid
from ebbtide.analysis.recording.record import ASSUMPTIONS
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import properties
from ebbtide.values.paths import value_at
from ebbtide_rehearsal.cloud import hosting, ids
from ebbtide_rehearsal.cloud.ids import (
    AGENT_POOL,
    AZURE,
    BUCKET,
    EVENTS,
    FUTURE_RESERVATION,
    GCP,
    GROUP,
    OBJECT,
    POOLS_OF,
    TAKEN,
    Reference,
    is_of,
    referred,
    referring,
)
from ebbtide_rehearsal.cloud.node_pools.pod_containers import BUCKETS
from ebbtide_rehearsal.cloud.node_pools.pod_processes import PROCESSES
from ebbtide_rehearsal.cloud.properties import (
    AKS_API,
    TEMPLATES,
    SchemaViolation,
    as_answered,
    as_data_source,
    is_own,
    names,
    parent_of,
    pruned,
    read_back,
    schema_violations,
    type_of,
    unknown,
    unknown_paths,
)
from ebbtide_rehearsal.cloud.provider import (
    BEHIND,
    CLUSTER,
    Call,
    Clusters,
    Created,
    DiffResult,
    Failure,
    Properties,
    Read,
    RefusedError,
    UnfinishedError,
)
from ebbtide_rehearsal.cloud.store import Resource, Store

LOCKS: Final = "Microsoft.Authorization/locks"


def locks(store: Store, identity: str) -> list[str]:
    """Return the locked scopes that keep a resource: above it, or within it.

    Source: learn.microsoft.com, azure-resource-manager/management/lock-resources (2026).
    """
    scopes = [str(item.state["scope"]) for item in store.resources(AZURE, LOCKS)]
    return [scope for scope in scopes if ids.within(identity, scope) or ids.within(scope, identity)]


def objects(store: Store, bucket: str) -> list[Resource]:
    """Return the objects of a bucket, and the files that pods on this machine have written to it."""
    stored = [item for item in store.resources(GCP, OBJECT) if item.state["bucket"] == bucket]
    files = {
        str(file.relative_to(mounted)): str(file.stat().st_size)
        for mounted in _mounted(store, bucket)
        for file in mounted.rglob("*")
        if file.is_file()
    }
    states = [{"bucket": bucket, "name": name, "size": size} for name, size in files.items()]
    return [
        *stored,
        *(Resource(GCP, f"b/{bucket}/o/{state['name']}", OBJECT, state=state) for state in states),
    ]


def _mounted(store: Store, bucket: str) -> list[Path]:
    """Return the directories of a bucket that pods of clusters on this machine mount."""
    planes = [Path(item.state["kubeconfig"]).parent for item in store.resources(BEHIND, CLUSTER)]
    return [plane / PROCESSES / BUCKETS / bucket for plane in planes]


@dataclass(frozen=True, slots=True)
class FakeProvider:
    """A provider whose resources are in the store.

    Attributes:
        package: `gcp` or `azure-native`.
        settings: inputs of the provider resource.
    """

    package: str
    store: Store
    clusters: Clusters
    settings: Properties = field(default_factory=dict[str, Plain])

    @property
    def version(self) -> str:
        """See `Provider`."""
        return metadata.version(f"pulumi-{self.package}")

    def configured(self, variables: Properties) -> "FakeProvider":
        """See `Provider.configured`."""
        return replace(self, settings=variables)

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """See `Provider.check_config`: unknown settings are rejected."""
        text = 'Invalid or unknown key. An argument named "{}" is not expected here.'
        return [
            Failure(violation.path, text.format(violation.path))
            for violation in schema_violations(f"pulumi:providers:{self.package}", variables)
            if violation.problem == "unknown" and violation.path != "version"
        ]

    def change_config(self, old: Properties, new: Properties) -> DiffResult:
        """See `Provider.change_config`: nothing is replaced, since resources keep their own project or id."""
        return DiffResult(tuple(key for key in sorted({*old, *new}) if old.get(key) != new.get(key)))

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """See `Provider.check`."""
        self._check_type(call.type)
        given = {key: value for key, value in new.items() if value is not None}
        inputs = with_defaults(given, constraints_of(call.type).defaults)
        own = names(call.type)
        is_gcp = self.package == GCP
        if is_gcp and "name" in own and "name" not in inputs:
            inputs["name"] = old.get("name") or f"{call.name}-{secrets.token_hex(4)[:7]}"
        elif not is_gcp:
            if own[-1] not in inputs:
                is_uuid = call.type.endswith(":RoleAssignment")
                random = str(uuid.uuid4()) if is_uuid else f"{call.name}{secrets.token_hex(4)}"
                inputs |= {own[-1]: old.get(own[-1]) or random, RANDOMLY_NAMED: True}
            if "location" in properties(call.type) and "location" in self.settings:
                inputs.setdefault("location", old.get("location") or self.settings["location"])
            inputs.setdefault(API_VERSION, old.get(API_VERSION) or AKS_API)
        return inputs, list(self._failures(call, inputs))

    def _check_type(self, token: str) -> None:
        if token not in TEMPLATES:
            raise RefusedError(f"The fake cloud does not implement resources of type {token}.")

    def _failures(self, call: Call, inputs: Mapping[str, Any]) -> Iterator[Failure]:
        """Yield the refusals of completed inputs by the provider's schema. azure-native drops properties that
        its schema does not have."""
        constraints = constraints_of(call.type)
        required = (name for name in constraints.required if inputs.get(name) is None)
        missing = (SchemaViolation(name, "missing") for name in required)
        for violation in (*schema_violations(call.type, inputs), *missing):
            if violation.problem != "unknown" or self.package == GCP:
                wrong = f"no {violation.expected}" if violation.problem == "type" else violation.problem
                yield Failure(violation.path, f"{call.name}: {violation.path} is {wrong}")
        for limit in constraints.limits:
            for where, value in values_at(dict(inputs), limit.path):
                if not limit.allows(value):
                    reason = f"{call.name}: {where} is {value}, against its limit: {limit.name} {limit.value}"
                    yield Failure(where, reason)

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """See `Provider.diff`. An omitted property has the cloud's value, with which a given one is
        compared."""
        del identity
        computed = {
            name: old.state[name]
            for name in constraints_of(call.type).computed
            if name not in old.inputs and not isinstance(old.state.get(name), dict | None)
        }
        before: Properties = {**computed, **old.inputs}
        changed: dict[str, bool] = {}
        for item in field_changes(call.type, before, new, ignored=call.ignored):
            top = top_level(item.path)
            is_answered = item.old is None and old.state.get(item.path) == item.new
            changed[top] = changed.get(top, False) or (item.replaces and not is_answered)
        replaces = tuple(top for top, is_replaced in changed.items() if is_replaced)
        first = bool(replaces) and is_deleted_first(call.type, old.inputs, new)
        return DiffResult(tuple(changed), replaces, delete_first=first)

    def create(self, call: Call, inputs: Properties) -> Created:
        """See `Provider.create`."""
        self._check_type(call.type)
        if call.preview:
            return Created("", self._previewed(call, inputs))
        identity = self.identity(call.type, inputs)
        # A member of a policy that exists is the same.
        if self.find(identity) is not None and "{role}" not in TEMPLATES[call.type].id:
            raise self._error(409, "alreadyExists", f"Already exists: {identity}")
        self._refuse(call, identity, inputs)
        self._start(call, identity)
        state = self._put(call, identity, inputs, None)
        resource = self.find(identity)
        if resource is not None and (message := hosting.missing_nodes(self.store, resource)):
            raise UnfinishedError(message, identity, state)
        return Created(identity, state)

    def seed(self, token: str, inputs: Properties) -> str:
        """Create a resource outside of any stack, although resources that it refers to may not exist; return
        its id."""
        call = Call(token, "existing", "")
        inputs, _ = self.check(call, {}, inputs)
        identity = self.identity(token, inputs)
        if self.find(identity) is None:
            self._start(call, identity)
            self._put(call, identity, inputs, None)
        return identity

    def _start(self, call: Call, identity: str) -> None:
        """Start the control plane of a new cluster."""
        if pools := POOLS_OF.get(call.type):
            self.clusters.create(identity, pools.kind)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`. The next update is compared with the result."""
        del known
        resource = self.find(identity)
        if resource is None:
            return None
        resource = resource.having(**hosting.current(self.store, resource))
        self.store.put(resource)
        given = {**resource.inputs, **call.inputs}
        inputs = {
            key: value
            if is_own(call.type, key)
            else read_back(call.type, key, value, resource.state.get(key))
            for key, value in given.items()
        }
        return Read(
            resource.id, {key: item for key, item in inputs.items() if item is not None}, resource.state
        )

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """See `Provider.update`."""
        del old
        existing = self.find(identity)
        if existing is None:
            raise self._error(404, "notFound", f"The resource '{identity}' was not found")
        if call.preview:
            return {**existing.state, **self._resource(call, identity, new, existing).state}
        self._refuse(call, existing.id, new, existing)
        return self._put(call, existing.id, new, existing)

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """See `Provider.delete`. Guards are the provider's own, in the engine's state."""
        del call
        resource = self.find(identity)
        if resource is None:
            return
        for user in referring(self.store, resource, "uses"):
            message = f"The resource '{resource.id}' is already being used by '{user.id}'"
            raise self._error(400, "resourceInUseByAnotherResource", message)
        guards = {**resource.inputs, **known}
        message = self._guard(resource, guards) or hosting.refuses_delete(self.store, resource)
        if message:
            raise RefusedError(message)
        self.remove(resource)

    def _guard(self, resource: Resource, guards: Properties) -> str:
        """Return why a resource is protected from deletion; empty if it is not."""
        if guards.get("deletionPolicy") == "PREVENT":
            return (
                f"cannot destroy {resource.id} because deletion_policy is set to PREVENT. Set it to DELETE "
                "to proceed."
            )
        if guards.get("deletionProtection"):
            return (
                "Cannot destroy cluster because deletion_protection is set to true. Set it to false to "
                "proceed with cluster deletion."
            )
        is_kept = resource.type == BUCKET and not guards.get("forceDestroy")
        if is_kept and objects(self.store, resource.id):
            return f"Error trying to delete bucket {resource.id} without `force_destroy` set to true"
        if resource.type == FUTURE_RESERVATION:
            # Compute Engine docs, future-reservations-calendar-mode-overview (2026)
            _, (_, end) = read_period(Inputs(dict(resource.inputs)))
            if self.store.clock.started + self.store.clock.now() < end.timestamp():
                return f"The future reservation {resource.id} cannot be deleted before its end."
        if scopes := locks(self.store, resource.id):
            return (
                f"Code=\"ScopeLocked\" The scope '{resource.id}' cannot perform delete operation because "
                f"following scope(s) are locked: '{', '.join(scopes)}'. Please remove the lock and try again."
            )
        return ""

    def remove(self, resource: Resource) -> None:
        """Remove a resource, what is below it, and its parts, whatever program made them."""
        below = [item for item in self.store.resources(self.package) if ids.within(item.id, resource.id)]
        left = [ids.last(item.id) for item in below if item.urn and item.id != resource.id]
        if resource.type == GROUP and left:
            text = f"Resource group {ids.last(resource.id)} is deleted with what is still in it: "
            self.store.log_event("group-deleted", f"{text}{', '.join(left)}.", group=resource.id)
        parts = referring(self.store, resource, "part")
        for directory in _mounted(self.store, resource.id) if resource.type == BUCKET else ():
            shutil.rmtree(directory, ignore_errors=True)
        for item in (*parts, *below):
            hosting.end(self.store, self.clusters, item)
            self.store.remove(self.package, item.id)
            self._log(item, "deleted")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`: the result of a function about a type is that of an existing resource."""
        type_ = type_of(token)
        if type_ is None:
            if token not in ASSUMPTIONS.invokes:
                raise RefusedError(f"The fake cloud does not implement the function {token}.")
            return self._assumed(token, arguments)
        identity = self.identity(type_, arguments)
        resource = self.find(identity)
        if resource is None:
            if ids.last(identity) != "default":  # every project has a default network
                raise RefusedError(f"{identity} was not found")
            return self._assumed(token, arguments)
        if token.endswith("Credentials"):
            return hosting.credentials(self.clusters, resource, token)
        state = {**resource.state, **hosting.current(self.store, resource), "id": resource.id}
        if self.package == GCP:
            state = as_data_source(properties(type_), state)
        return {**self._assumed(token, arguments, resource.id), **state}

    def _assumed(self, token: str, arguments: Properties, identity: str | None = None) -> Properties:
        if token not in ASSUMPTIONS.invokes:
            return {}
        question = Question(token=token, inputs=arguments, provider=self.settings, id=identity)
        return ASSUMPTIONS.invoke(question)

    def find(self, identity: str) -> Resource | None:
        """Return the resource of an id, which Azure compares without case."""
        known = self.store.get(self.package, identity)
        if known is not None or self.package == GCP:
            return known
        others = self.store.resources(self.package)
        return next((item for item in others if ids.same(item.id, identity)), None)

    def identity(self, token: str, inputs: Properties) -> str:
        """Return the id of the resource with these inputs; raises RefusedError if something of it is
        missing."""
        question = Question(token=token, inputs=inputs, provider=self.settings)
        identity = ASSUMPTIONS.answer(question).id
        if is_assumed(identity):
            message = f"Neither the resource nor the provider sets the names of {TEMPLATES[token].id}"
            raise self._error(400, "invalid", f"{message}, such as a project or a subscription")
        return identity

    def _outputs(self, call: Call, identity: str | None, inputs: Properties) -> Mapping[str, Any]:
        """Return what the cloud adds to inputs, with the address of a cluster's control plane."""
        facts = dict(self.settings)
        if call.type in POOLS_OF and identity is not None:
            facts |= hosting.address(self.clusters, identity, inputs)
        question = Question(token=call.type, inputs=inputs, provider=facts, id=identity)
        return ASSUMPTIONS.answer(question).outputs

    def _previewed(self, call: Call, inputs: Properties) -> dict[str, Any]:
        """Return inputs, with unknown values for what only the cloud knows."""
        answer: Any = overlaid(dict(inputs), unknown(dict(self._outputs(call, None, inputs))))
        return answer

    def _resource(
        self, call: Call, identity: str, inputs: Properties, old: Resource | None = None
    ) -> Resource:
        """Return the resource with inputs: computed and fixed properties keep their values if they are
        omitted."""
        constraints = constraints_of(call.type)
        own = {key: value for key, value in inputs.items() if not is_own(call.type, key)}
        sent: Any = pruned(own, unknown_paths(call.type, inputs))
        kept = {
            path: value_at(old.state if old else {}, path)
            for path in (*constraints.computed, *constraints.fixed)
        }
        known = with_defaults(sent, {path: value for path, value in kept.items() if value is not None})
        state: Any = overlaid(known, dict(self._outputs(call, identity, inputs)))
        return Resource(self.package, identity, call.type, call.urn, inputs, as_answered(call.type, state))

    def _put(self, call: Call, identity: str, inputs: Properties, old: Resource | None) -> Properties:
        resource = hosting.completed(self.store, self._resource(call, identity, inputs, old), old)
        self.store.put(resource)
        try:
            self._put_inline(resource)
        except RefusedError:
            if old is None:
                self.remove(resource)
            else:
                self.store.put(old)
            raise
        hosting.begin(self.store, resource, old)
        self._log(resource, "created" if old is None else "changed")
        for path in unknown_paths(call.type, inputs) if self.package != GCP else ():
            text = f"azure-native knows no property {path} of {call.type}, and omits it from {call.name}."
            self.store.log_event("property-ignored", text, property=path, urn=call.urn)
        return {**resource.state, **hosting.current(self.store, resource)}

    def _put_inline(self, cluster: Resource) -> None:
        """Create or change the pools in a cluster's inputs."""
        for name, inputs in hosting.inline_pools(cluster):
            identity = f"{cluster.id}{POOLS_OF[cluster.type].below}{name}"
            existing = self.find(identity)
            call = Call(AGENT_POOL, name, existing.urn if existing else "")
            self._refuse(call, identity, inputs, existing)
            self._put(call, identity, inputs, existing)

    def _log(self, resource: Resource, change: str) -> None:
        if noun := EVENTS.get(resource.type):
            text = f"The {noun.replace('-', ' ')} {ids.last(resource.id)} was {change}."
            self.store.log_event(f"{noun}-{change}", text, id=resource.id)

    def _refuse(self, call: Call, identity: str, inputs: Properties, old: Resource | None = None) -> None:
        """Reject what the tables do not allow: missing parents and references, taken names, fixed
        properties; and what no machines exist for."""
        parent = parent_of(call.type, identity)
        if old is None and parent and self.find(parent) is None:
            message = f"The resource '{parent}', in which {ids.last(identity)} is, was not found"
            raise self._error(404, "parentResourceNotFound", message)
        existing = set(referred(call.type, old.inputs if old else {}))
        for reference, text in referred(call.type, inputs):
            if (reference, text) not in existing and self.lacks(reference, text, inputs):
                raise self._error(404, "notFound", f"The resource '{text}' was not found")
        for change in field_changes(call.type, old.inputs, inputs) if old else ():
            if is_fixed(call.type, change):
                message = f"Changing property '{change.path}' is not allowed"
                raise self._error(400, "propertyChangeNotAllowed", message)
        own = [str(inputs.get(name)).lower() for name in TAKEN.get(call.type, ())]
        for other in self.store.resources(self.package, call.type) if own else ():
            values = [str(other.inputs.get(name)).lower() for name in TAKEN[call.type]]
            if own == values and not ids.same(other.id, identity):
                code = "roleAssignmentExists" if call.type.endswith(":RoleAssignment") else "conflict"
                message = f"Another resource already exists with the same {', '.join(TAKEN[call.type])}"
                raise self._error(409, code, f"{message}: {other.id}")
        if old is not None or call.type not in POOLS_OF:
            resource = self._resource(call, identity, inputs, old)
            if message := hosting.refuses(self.store, resource, old):
                raise RefusedError(message)

    def lacks(self, reference: Reference, text: str, inputs: Properties) -> bool:
        """Return whether a referenced resource is known not to exist: others' resource groups, and the
        default network of a project, have everything."""
        group = ids.group_of(text)
        if ids.last(text) == "default" or (self.package != GCP and (not group or self.find(group) is None)):
            return False
        known = self.store.resources(self.package, reference.target or None)
        if reference.item:
            within = str(inputs.get(reference.within))
            known = [item for item in known if is_of(within, item.id)]
            return bool(known) and all(
                text != name for item in known for _, name in values_at(dict(item.state), reference.item)
            )
        return not any(is_of(text, item.id) for item in known)

    def _error(self, status: int, code: str, message: str) -> RefusedError:
        """Return an error in the form of the cloud's client."""
        if self.package == GCP:
            return RefusedError(f"googleapi: Error {status}: {message}, {code}")
        return RefusedError(f'Status={status} Code="{code[0].upper()}{code[1:]}" Message="{message}."')
