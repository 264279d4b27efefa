"""Patches of upstream's objects: pure functions from manifest to manifest, tested on upstream's real objects,
and the Pulumi transform that applies them to each child of a chart or directory."""

import base64
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pulumi

from ebbtide.placement.profile import SAFE_TO_EVICT
from ebbtide.values.paths import Object

from .add_on import SystemPlacement
from .manifest import has_cloud_resources
from .post_renderer import without_descriptions

Patch = Callable[[Object], Object]
"""Function that returns a patched object; it returns objects that it does not concern unchanged, and never
modifies its argument."""

_WITH_PODS = ("Deployment", "StatefulSet", "Job")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")

_BYTES = 24

IGNORED_CHANGES = ("data",)
"""Paths of a Secret whose values stay as created."""

SKIP_AWAIT = "pulumi.com/skipAwait"
EVERYONE = "system:authenticated"
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

CONTROL_PLANE_PORT = 10250
"""Port on which the control plane of a private GKE cluster reaches any pod without a firewall rule: 443 and
10250 are open, 8443 and 9443 are not (GKE docs, private-clusters, firewall rules, 2026). A webhook that fails
closed on another port blocks every request that it intercepts."""


def kind_of(manifest: Mapping[str, Any]) -> str:
    """Return the kind of an object."""
    return str(manifest.get("kind", ""))


def name_of(manifest: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str(manifest.get("metadata", {}).get("name", ""))


def is_(manifest: Mapping[str, Any], kind: str, *names: str) -> bool:
    """Check the kind of an object, and its name if names are given."""
    return kind_of(manifest) == kind and (not names or name_of(manifest) in names)


def patched(manifest: Object, patches: Iterable[Patch]) -> Object:
    """Apply all patches to an object, in order."""
    for patch in patches:
        manifest = patch(manifest)
    return manifest


def updated(manifest: Object, path: tuple[str, ...], value: object) -> Object:
    """Return a copy of an object with a new value at a path; missing mappings are created."""
    head, *rest = path
    inner = updated(manifest.get(head) or {}, tuple(rest), value) if rest else value
    return {**manifest, head: inner}


def data_of(manifest: Mapping[str, Any]) -> Object:
    """Return the data of a ConfigMap or Secret; empty if it has none."""
    data: Object = manifest.get("data") or {}
    return data


def has_pods(manifest: Mapping[str, Any]) -> bool:
    """Check that an object creates pods for the system pool; a DaemonSet is for all nodes."""
    return kind_of(manifest) in _WITH_PODS


def pod_spec(manifest: Mapping[str, Any]) -> Object:
    """Return the pod spec of a workload object; empty if it has none."""
    spec: Object = manifest.get("spec", {}).get("template", {}).get("spec", {}) if has_pods(manifest) else {}
    return spec


def with_pod_spec(manifest: Object, spec: Object) -> Object:
    """Return an object with another pod spec."""
    return updated(manifest, ("spec", "template", "spec"), spec)


def containers(manifest: Mapping[str, Any]) -> Iterator[Object]:
    """Yield the containers of an object's pods, including init containers."""
    spec = pod_spec(manifest)
    yield from spec.get("initContainers", ())
    yield from spec.get("containers", ())


def each_container(manifest: Object, change: Callable[[Object], Object]) -> Object:
    """Return an object with a change applied to every container of its pods."""
    spec = pod_spec(manifest)
    lists = {
        field: [change(container) for container in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return with_pod_spec(manifest, {**spec, **lists}) if lists else manifest


def generated() -> pulumi.Output[str]:
    """Generate a password of 48 hexadecimal digits as a Secret's `data`: in base64, and secret in Pulumi.

    Each run of the program generates a new one; `ignore_changes` on the Secret (paths in `KEPT`) keeps the
    first. This needs no provider of random values, and no declaration. If a Secret is deleted manually while
    the volume of its database remains, the new password does not open the database: restore the old value
    from a backup of the state.
    """
    return pulumi.Output.secret(encoded(secrets.token_hex(_BYTES)))


def encoded(text: str) -> str:
    """Encode a text for a Secret's `data`: in base64."""
    return base64.b64encode(text.encode()).decode()


def on_system_pool(placement: SystemPlacement) -> Patch:
    """Place pods on the system pool, with the priority of controllers: a work pool with a controller would
    never scale to zero."""

    def patch(manifest: Object) -> Object:
        if not has_pods(manifest):
            return manifest
        spec = dict(pod_spec(manifest))
        if placement.node_selector:
            spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **placement.node_selector}
        if placement.tolerations:
            own = [item for item in spec.get("tolerations", ()) if item not in placement.tolerations]
            spec["tolerations"] = [*own, *placement.tolerations]
        spec["priorityClassName"] = placement.priority_class
        return with_pod_spec(manifest, spec)

    return patch


def with_requests(default: Mapping[str, str], named: Mapping[str, Mapping[str, str]]) -> Patch:
    """Add CPU and memory requests to every container, for the sizing of the system pool and for the
    scheduler.

    Args:
        default: `cpu` and `memory` of a container without requests.
        named: the same, by container name.
    """

    def requesting(container: Object) -> Object:
        existing = container.get("resources", {}).get("requests", {})
        requests = {**named.get(str(container["name"]), default), **existing}
        return updated(container, ("resources", "requests"), requests)

    def patch(manifest: Object) -> Object:
        return each_container(manifest, requesting) if has_pods(manifest) else manifest

    return patch


def movable(manifest: Object) -> Object:
    """Mark pods as safe to evict, so that a system pool can scale down.

    No disruption budget is created: with one replica, a budget would keep its node indefinitely.
    """
    if not has_pods(manifest):
        return manifest
    own = manifest["spec"]["template"].get("metadata", {}).get("annotations", {})
    path = ("spec", "template", "metadata", "annotations")
    return updated(manifest, path, {**own, SAFE_TO_EVICT: "true"})


def for_readers(readers: Sequence[Object]) -> Patch:
    """Narrow bindings to all authenticated users to the readers: on GKE that is any Google account, and
    clusters that disable insecure bindings reject them."""

    def patch(manifest: Object) -> Object:
        if kind_of(manifest) not in _BINDINGS:
            return manifest
        bound: list[Object] = manifest.get("subjects") or []
        named = [item for item in bound if item.get("name") != EVERYONE]
        return manifest if named == bound else {**manifest, "subjects": [*named, *readers]}

    return patch


def narrowed(verbs: Mapping[str, Sequence[str]], written: Mapping[str, Sequence[str]]) -> Patch:
    """Narrow the rules of ClusterRoles.

    Args:
        verbs: verbs in place of upstream's, by resource; none removes the rule.
        written: names of the only objects that may be changed, by resource.
    """

    def parts(rule: Object) -> Iterator[Object]:
        resources: list[str] = rule.get("resources", [])
        others = [name for name in resources if name not in verbs and name not in written]
        if others == resources or "resourceNames" in rule:
            yield rule
            return
        if others:
            yield {**rule, "resources": others}
        for name in (name for name in resources if name not in others):
            allowed = verbs.get(name, rule["verbs"])
            changes = [verb for verb in allowed if name in written and verb in ("update", "patch", "delete")]
            rest = [verb for verb in allowed if verb not in changes]
            if rest:
                yield {**rule, "resources": [name], "verbs": rest}
            if changes:
                yield {**rule, "resources": [name], "verbs": changes, "resourceNames": list(written[name])}

    def patch(manifest: Object) -> Object:
        if not is_(manifest, "ClusterRole") or not manifest.get("rules"):
            return manifest
        return {**manifest, "rules": [part for rule in manifest["rules"] for part in parts(rule)]}

    return patch


def without_rights(*accounts: str) -> Patch:
    """Remove service accounts from bindings: their pods, which others could create, may do nothing."""

    def patch(manifest: Object) -> Object:
        if kind_of(manifest) not in _BINDINGS:
            return manifest
        bound: list[Object] = manifest.get("subjects") or []
        return {**manifest, "subjects": [item for item in bound if item["name"] not in accounts]}

    return patch


def _of(kind: str, *names: str) -> Callable[[Patch], Patch]:
    """Return a decorator that limits a patch to the objects of a kind, and of names if any are given."""
    return lambda change: lambda manifest: change(manifest) if is_(manifest, kind, *names) else manifest


def left_out(*deployments: str) -> Patch:
    """Scale Deployments to zero: an object of a kustomization cannot be skipped."""

    @_of("Deployment", *deployments)
    def patch(manifest: Object) -> Object:
        return _annotated(updated(manifest, ("spec", "replicas"), 0), {SKIP_AWAIT: "true"})

    return patch


def unawaited_claims(manifest: Object) -> Object:
    """Wait for claims neither at creation nor at deletion.

    A claim binds when its first pod exists, and is deleted after its last pod: waiting for either before the
    next object may never end. It is deleted with its namespace, which is awaited.
    """
    if not is_(manifest, "PersistentVolumeClaim"):
        return manifest
    return _annotated(manifest, {SKIP_AWAIT: "true"})


def annotated(kind: str, names: tuple[str, ...], annotations: Mapping[str, Any]) -> Patch:
    """Add annotations to objects of a kind and names."""
    return _of(kind, *names)(lambda manifest: _annotated(manifest, annotations))


def _annotated(manifest: Object, annotations: Mapping[str, Any]) -> Object:
    existing = manifest["metadata"].get("annotations", {})
    return updated(manifest, ("metadata", "annotations"), {**existing, **annotations})


def labelled_namespaces(labels: Mapping[str, str]) -> Patch:
    """Add labels to namespaces."""

    def patch(manifest: Object) -> Object:
        if not labels or not is_(manifest, "Namespace"):
            return manifest
        existing = manifest["metadata"].get("labels", {})
        return updated(manifest, ("metadata", "labels"), {**existing, **labels})

    return patch


def holding(name: str, data: Mapping[str, Any]) -> Patch:
    """Replace a Secret's data, including the values that upstream publishes.

    Args:
        data: in base64, as in `data`.
    """
    return _of("Secret", name)(lambda manifest: {**_without(manifest, "stringData"), "data": dict(data)})


def filled_in_the_cluster(name: str) -> Patch:
    """Omit the data of a Secret that a controller fills: a key in both is a server-side apply conflict after
    a refresh, and every update writes an empty `data` again."""
    return _of("Secret", name)(lambda manifest: _without(manifest, "data", "stringData"))


def with_config(name: str, data: Mapping[str, Any]) -> Patch:
    """Set values of a ConfigMap."""
    return _of("ConfigMap", name)(lambda manifest: {**manifest, "data": {**data_of(manifest), **data}})


def without_config(name: str, *keys: str) -> Patch:
    """Remove keys of a ConfigMap."""
    return _of("ConfigMap", name)(lambda manifest: {**manifest, "data": _without(data_of(manifest), *keys)})


def _without(fields: Object, *keys: str) -> Object:
    return {key: value for key, value in fields.items() if key not in keys}


def webhook_ports() -> Patch:
    """Serve webhooks on a port that the control plane reaches: change container ports called `webhook`, and
    Services that target such a port by number.

    Each add-on's own setting for the server's port must have the same value.
    """

    def on_port(container: Object) -> Object:
        ports = [
            {**item, "containerPort": CONTROL_PLANE_PORT} if item.get("name") == "webhook" else item
            for item in container.get("ports", ())
        ]
        return {**container, "ports": ports} if ports else container

    def patch(manifest: Object) -> Object:
        if has_pods(manifest):
            return each_container(manifest, on_port)
        if not is_(manifest, "Service"):
            return manifest
        ports = [
            {**item, "targetPort": CONTROL_PLANE_PORT}
            if item.get("name") == "webhook" and isinstance(item.get("targetPort"), int | float)
            else item
            for item in manifest["spec"].get("ports", ())
        ]
        return updated(manifest, ("spec", "ports"), ports)

    return patch


def is_deleted_with_cluster(manifest: Object) -> bool:
    """Check that an object can be deleted with its cluster, without its own deletion.

    A claim and a load balancer cannot, since the cloud would keep their disk or address. Nor can a namespace:
    its deletion removes pods before their claims, and is awaited until all of its contents are deleted.
    """
    return not (is_(manifest, "Namespace") or has_cloud_resources(kind_of(manifest), manifest))


def patch_transform(
    patches: Sequence[Patch], deleted_with: pulumi.Resource | None, generated_secrets: Sequence[str] = ()
) -> pulumi.ResourceTransform:
    """Return a transform that applies patches to the objects of a chart or directory, and sets how they are
    deleted.

    A preview without an engine does not run it; the patches have separate tests on upstream's objects.

    Args:
        patches: in the order in which they are applied.
        deleted_with: the cluster if the stack created it.
        generated_secrets: names of Secrets whose values are generated once and kept.
    """

    def transform(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not args.custom or not args.type_.startswith("kubernetes:"):
            return None
        manifest = patched(without_descriptions(dict(args.props)), patches)
        is_generated = is_(manifest, "Secret", *generated_secrets) if generated_secrets else False
        options = pulumi.ResourceOptions(
            deleted_with=deleted_with if is_deleted_with_cluster(manifest) else None,
            ignore_changes=list(IGNORED_CHANGES) if is_generated else None,
        )
        return pulumi.ResourceTransformResult(
            props=manifest, opts=pulumi.ResourceOptions.merge(args.opts, options)
        )

    return transform
