"""Fake of either cloud's provider: resources in the store, by the tables of rules, previews and reviews.

Ids and outputs are the assumed answers of previews (`ebbtide.analysis.recording.assumed_*`), constraints of
inputs and what is fixed come from `constraints_of`, differences and replacements from `field_changes`, and
references from `references.py`. What clusters and node pools are beside that is in `hosting.py`.
"""

import re
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any, Final

from ebbtide.analysis.changes import azure, google
from ebbtide.analysis.changes.azure import RANDOMLY_NAMED
from ebbtide.analysis.changes.inputs import field_changes, is_deleted_first, is_fixed
from ebbtide.analysis.changes.property_path import replaced, top_level, values_at, with_defaults
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.gke import read_period
from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording.assumption_tables import Question, is_assumed, overlaid
from ebbtide.analysis.recording.record import ASSUMPTIONS
from ebbtide.analysis.recording.values import UNKNOWN, Plain
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.declaration.providers.schema import properties, properties_of, word
from ebbtide.values.paths import child_path, value_at
from ebbtide_rehearsal.cloud import hosting, ids
from ebbtide_rehearsal.cloud.ids import (
    AGENT_POOL,
    AZURE,
    BUCKET,
    EVENTS,
    FUTURE_RESERVATION,
    GCP,
    GROUP,
    NODE_POOL,
    OBJECT,
    POOLS_OF,
)
from ebbtide_rehearsal.cloud.provider import (
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
from ebbtide_rehearsal.cloud.references import TAKEN, Reference, is_of, referred, referring
from ebbtide_rehearsal.cloud.schema import SchemaViolation, schema_violations
from ebbtide_rehearsal.cloud.store import Resource, Store

TEMPLATES: Final = {**assumed_gcp.RESOURCES, **assumed_azure.RESOURCES}
"""Types that the fake clouds have."""
_API_VERSION: Final = "azureApiVersion"
_AKS_API: Final = "2025-09-01"
_LOCKS: Final = "Microsoft.Authorization/locks"

_ANSWERS: Final[Mapping[tuple[str, str], Callable[[Any], Any]]] = {
    # Cloud Storage API, buckets: location in capitals (2026)
    (BUCKET, "location"): str.upper,
    # hashicorp/terraform-provider-google#25388; vllm-project/ci-infra#547 (2026)
    (NODE_POOL, "placementPolicy"): lambda policy: (
        {**policy, "type": ""} if policy.get("policyName") else policy
    ),
}
"""Values that a cloud answers otherwise than they were sent."""


def as_answered(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as its cloud answers it: with the values that it fills in."""
    result = with_defaults(state, constraints_of(token).fills)
    for (type_, path), change in _ANSWERS.items():
        result = replaced(result, path, change) if type_ == token else result
    return result


def lock(store: Store, scope: str) -> None:
    """Put a lock with the level `CanNotDelete` on a scope of Azure, as an administrator would."""
    identity = f"{scope}/providers/{_LOCKS}/do-not-delete"
    store.put(Resource(AZURE, identity, _LOCKS, state={"level": "CanNotDelete", "scope": scope}))


def locks(store: Store, identity: str) -> list[str]:
    """Return the locked scopes that keep a resource: above it, or within it.

    Source: learn.microsoft.com, azure-resource-manager/management/lock-resources (2026).
    """
    scopes = [str(item.state["scope"]) for item in store.resources(AZURE, _LOCKS)]
    return [scope for scope in scopes if ids.within(identity, scope) or ids.within(scope, identity)]


def put_object(store: Store, bucket: str, name: str, size: int = 0) -> None:
    """Put an object of `size` bytes into a bucket, as a pipeline does, so that the bucket is not empty."""
    state = {"bucket": bucket, "name": name, "size": str(size)}
    store.put(Resource(GCP, f"b/{bucket}/o/{name}", OBJECT, state=state))


@dataclass(frozen=True, slots=True)
class FakeProvider:
    """A provider whose resources are in the store.

    Attributes:
        package: `gcp` or `azure-native`.
        store: store of the resources.
        clusters: the control planes.
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
        names = _names(call.type)
        is_gcp = self.package == GCP
        if is_gcp and "name" in names and "name" not in inputs:
            inputs["name"] = old.get("name") or f"{call.name}-{secrets.token_hex(4)[:7]}"
        elif not is_gcp:
            if names[-1] not in inputs:
                is_uuid = call.type.endswith(":RoleAssignment")
                random = str(uuid.uuid4()) if is_uuid else f"{call.name}{secrets.token_hex(4)}"
                inputs |= {names[-1]: old.get(names[-1]) or random, RANDOMLY_NAMED: True}
            if "location" in properties(call.type) and "location" in self.settings:
                inputs.setdefault("location", old.get("location") or self.settings["location"])
            inputs.setdefault(_API_VERSION, _AKS_API)
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
            if _is_own(call.type, key)
            else _read_back(call.type, key, value, resource.state.get(key))
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
            return {**existing.state, **self._state(call, identity, new, existing)}
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
        if is_kept and any(referring(self.store, resource, "content")):
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
        parts = [part for use in ("part", "content") for part in referring(self.store, resource, use)]
        for item in (*parts, *below):
            hosting.end(self.store, self.clusters, item)
            self.store.remove(self.package, item.id)
            self._log(item, "deleted")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """See `Provider.invoke`: the result of a function about a type is that of an existing resource."""
        type_ = _type_of(token)
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
            state = _as_data_source(properties(type_), state)
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
        answer: Any = overlaid(dict(inputs), _unknown(dict(self._outputs(call, None, inputs))))
        return answer

    def _state(
        self, call: Call, identity: str, inputs: Properties, old: Resource | None = None
    ) -> dict[str, Any]:
        """Return the state for inputs: computed and fixed properties keep their values if they are
        omitted."""
        constraints = constraints_of(call.type)
        own = {_API_VERSION, RANDOMLY_NAMED, *(() if self.package == GCP else _names(call.type))}
        sent: Any = _pruned(
            {key: value for key, value in inputs.items() if key not in own}, _unknowns(call.type, inputs)
        )
        kept = {
            path: value_at(old.state if old else {}, path)
            for path in (*constraints.computed, *constraints.fixed)
        }
        known = with_defaults(sent, {path: value for path, value in kept.items() if value is not None})
        state: Any = overlaid(known, dict(self._outputs(call, identity, inputs)))
        return as_answered(call.type, state)

    def _put(self, call: Call, identity: str, inputs: Properties, old: Resource | None) -> Properties:
        state = self._state(call, identity, inputs, old)
        resource = Resource(self.package, identity, call.type, call.urn, inputs, state)
        resource = hosting.completed(self.store, resource, old)
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
        for path in _unknowns(call.type, inputs) if self.package != GCP else ():
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
            state = self._state(call, identity, inputs, old)
            resource = Resource(self.package, identity, call.type, "", inputs, state)
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


def _names(token: str) -> tuple[str, ...]:
    """Return the inputs in a type's id, the resource's name last."""
    names = re.findall(r"\{(\w+)", TEMPLATES[token].id)
    return tuple(name for name in names if name != "subscriptionId")


def _segments(template: str) -> list[str]:
    return re.sub(r"\{[^}]*\}", "*", template).split("/")


def parent_of(token: str, identity: str) -> str:
    """Return the id of the resource that a resource is in; empty for none."""
    own = _segments(TEMPLATES[token].id)
    lengths = (
        len(other)
        for other in map(_segments, (template.id for template in TEMPLATES.values()))
        if 1 < len(other) < len(own) and own[: len(other)] == other and other[-2] != "*"
    )
    length = max(lengths, default=0)
    return "/".join(identity.split("/")[:length])


def _type_of(token: str) -> str | None:
    """Return the type of the resources that a function is about; None for none."""
    package, module, name = token.split(":")
    about = re.sub("^(get|list)", "", name)
    for type_ in TEMPLATES:
        of, within, own = type_.split(":")
        is_same = (of, within.partition("/")[0]) == (package, module.partition("/")[0])
        if is_same and about.startswith(own):
            return type_
    return None


def _unknowns(token: str, inputs: Properties) -> list[str]:
    """Return the paths of the properties that are not in a type's schema."""
    return [
        item.path
        for item in schema_violations(token, inputs)
        if item.problem == "unknown" and item.path != _API_VERSION
    ]


def _pruned(value: Any, omitted: Sequence[str], path: str = "") -> Any:
    """Return a value without the omitted paths."""
    if isinstance(value, dict):
        below = {key: child_path(path, key) for key in value}
        return {
            key: _pruned(value[key], omitted, where) for key, where in below.items() if where not in omitted
        }
    if isinstance(value, list):
        return [_pruned(item, omitted, child_path(path, index)) for index, item in enumerate(value)]
    return value


def _unknown(value: Plain) -> Plain:
    """Return a value whose scalars are unknown."""
    if isinstance(value, dict):
        return {key: _unknown(item) for key, item in value.items()}
    return [_unknown(item) for item in value] if isinstance(value, list) else UNKNOWN


def _is_own(token: str, name: str) -> bool:
    """Return whether an input is the provider's own, which its cloud does not have."""
    return name in (_API_VERSION, RANDOMLY_NAMED) or (not token.startswith(GCP) and name in _names(token))


def _read_back(token: str, path: str, given: Plain, now: Plain) -> Plain:
    """Return an input as read: the cloud's value where it differs."""
    if isinstance(given, dict) and isinstance(now, dict):
        keys = {**given, **now} if _is_map(token, path) else given
        both = {key: _read_back(token, f"{path}.{key}", given.get(key), now.get(key)) for key in keys}
        return {key: item for key, item in both.items() if item is not None}
    if isinstance(given, list) and isinstance(now, dict):
        return given if {*map(str, given)} == now.keys() else [*now]
    if isinstance(given, list) and isinstance(now, list) and len(given) == len(now):
        return [_read_back(token, path, before, after) for before, after in zip(given, now, strict=True)]
    is_gcp = token.startswith(GCP)
    is_same = google.is_same(token, path, now, given) if is_gcp else azure.is_same(path, now, given)
    return given if is_same else now


def _is_map(token: str, path: str) -> bool:
    """Return whether a property is a map of names that users choose, such as labels."""
    known = properties(token)
    *above, name = path.split(".")
    for key in above:
        hint = known[key].hint if key in known else None
        if word(hint) != "object":
            return False
        known = properties_of(hint)
    return name in known and word(known[name].hint) == "map"


def _as_data_source(known: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as a data source of Terraform does: a nested object is a list of one."""
    result: dict[str, Any] = {}
    for key, item in state.items():
        hint = known[key].hint if key in known else None
        if isinstance(item, dict) and word(hint) == "object":
            result[f"{key}s"] = [_as_data_source(properties_of(hint), item)]
        else:
            result[key] = item
    return result
