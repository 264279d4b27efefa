"""Katib, for hyperparameter tuning: its component, the policy on trials, and the patches of its
kustomization."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import pulumi
import yaml
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.declaration.model.addons import Katib as Declared
from ebbtide.declaration.model.addons import remote_inputs

from .add_on import AddOnArgs, AddOnComponent, SystemPlacement, system_placement
from .manifest import obj
from .patches import (
    CONTROL_PLANE_PORT,
    WEBHOOKS,
    Object,
    Patch,
    each_container,
    filled_in_the_cluster,
    generated,
    holding,
    is_,
    labelled_namespaces,
    movable,
    narrowed,
    on_system_pool,
    patch_transform,
    unawaited_claims,
    updated,
    webhook_ports,
    with_requests,
)
from .security import labeled, namespaces, own_namespace, pod_security, policy, ports

_SOURCE = "github.com/kubeflow/katib/manifests/v1beta1/installs/katib-standalone"

NAMESPACE: Final = Declared.spec.namespace

_UPSTREAM = "kubeflow"
DATABASE_SECRET = "katib-mysql-secrets"  # noqa: S105 - a Secret's name
_CERTIFICATE = "katib-webhook-cert"
"""The Secret that Katib's controller fills (0.19.0, pkg/certgenerator/v1beta1)."""
CONFIG = "katib-config"

(INJECTED,) = Declared.spec.namespace_labels

_COMPONENT: Final = "katib.kubeflow.org/component"
_METRICS: Final = 8080
_API: Final = 6789
"""Ports of metrics and of the database manager (Katib 0.19.0)."""

_GROUPS: Final = {
    "Job": "batch",
    "JobSet": "jobset.x-k8s.io",
    "TrainJob": "trainer.kubeflow.org",
} | dict.fromkeys(("TFJob", "PyTorchJob", "MPIJob", "XGBoostJob"), "kubeflow.org")
"""Kinds of trials, with their API groups: those that Katib watches by default (0.19.0, `trialResources`), and
JobSet. Katib's documentation also names Tekton's and Argo's, for which its role would have to be extended."""
_JOBSET: Final = "JobSet.v1alpha2.jobset.x-k8s.io"

TRIALS_POLICY: Final = "ebbtide-trials"
"""Name of the policy and its binding."""

_READ: Final = ("get", "list", "watch")
_VERBS: Final = {
    # For suggestions' volumes, of which none is configured (0.19.0, `persistentVolumeSpec`).
    "persistentvolumes": _READ,
    "cronjobs": (),
    "jobsets": (*_READ, "create", "delete"),
    # The UI may write all.
    "configmaps": _READ,
    "namespaces": _READ,
}
_WRITTEN: Final = {"secrets": (_CERTIFICATE,), **dict.fromkeys(WEBHOOKS, ("katib.kubeflow.org",))}
"""Names of the objects that the controller writes (0.19.0, pkg/certgenerator)."""

_REQUESTS = {"cpu": "20m", "memory": "128Mi"}
_DATABASE = {"katib-mysql": {"cpu": "100m", "memory": "512Mi"}}
"""Estimates, since upstream requests nothing (0.19.0); the database's from the idle usage of MySQL 8."""


class Katib(AddOnComponent):
    """Katib from its standalone kustomization, patched: in a separate namespace, with a generated password,
    narrower roles and resource requests, on the system pool; and the admission policy of trials.

    Namespaces for experiments depend on `ready`, and so are deleted before Katib: a finalizer holds an
    experiment until the controller has counted it. The database's claim of 10 GiB is deleted with the
    namespace, which gets its own deletion. Sources: kubeflow/katib 0.19.0, manifests/v1beta1 and
    pkg/controller.v1beta1/experiment.

    In Pulumi, its objects keep the names `kubeflow/…`, after upstream's namespace: another name would change
    their URNs, and so replace them (docs/decisions/0010).
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        credentials = {DATABASE_SECRET: {"MYSQL_ROOT_PASSWORD": generated()}}
        release = (args.declaration.addons.katib or Declared()).release
        directory = f"{_SOURCE}?ref={release.commit}"
        manifest_patches = patches(system_placement(args.declaration), credentials)
        before = args.depends_on
        for manifest in trials_policy():
            role = f"{name}-{manifest['kind'].lower()}"
            before = (*before, self._create(role, manifest, before))
        objects = kustomize.Directory(
            f"{name}-objects",
            directory=directory,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=before,
                transforms=[patch_transform(manifest_patches, args.deleted_with, tuple(credentials))],
            ),
        )
        self._network_policies(network_policies(), objects)
        self.ready = (objects,)
        self.register_outputs(remote_inputs({"directory": directory}))


def _configured(manifest: Object) -> Object:
    """Configure the controller: webhooks on a port that a private cluster's control plane reaches, the
    trial's security context for the metrics collector, and JobSets as trials."""
    if not is_(manifest, "ConfigMap", CONFIG):
        return manifest
    key = "katib-config.yaml"
    config: Object = yaml.safe_load(manifest["data"][key])
    changed = updated(config, ("init", "controller", "webhookPort"), CONTROL_PLANE_PORT)
    changed = updated(changed, ("init", "controller", "injectSecurityContext"), value=True)
    kinds: list[str] = config["init"]["controller"]["trialResources"]
    changed = updated(changed, ("init", "controller", "trialResources"), [*kinds, _JOBSET])
    return updated(manifest, ("data",), {**manifest["data"], key: yaml.safe_dump(changed, sort_keys=False)})


def trials_policy(name: str = TRIALS_POLICY, namespaces: Sequence[str] = ()) -> tuple[Object, Object]:
    """Return the ValidatingAdmissionPolicy of trials, and its binding, for some namespaces or for all.

    Katib creates an object of any kind that a trial has, with its own rights, and shows a template of any
    namespace in its errors. A template in a ConfigMap is known only once the Trial has it, so both kinds are
    checked (Katib 0.19.0, pkg/controller.v1beta1; Kubernetes docs, ValidatingAdmissionPolicy).
    """
    kinds = [f"{kind}.{group}" for kind, group in _GROUPS.items()]
    spec, template, run = "dyn(object).spec", "variables.template", "variables.run"
    variables = {
        "template": f"has({spec}.trialTemplate) ? {spec}.trialTemplate : dyn({{}})",
        "run": f"has({spec}.runSpec) ? {spec}.runSpec : "
        f"(has({template}.trialSpec) ? {template}.trialSpec : dyn({{}}))",
    }
    validations = {
        f"size({run}) == 0 || (has({run}.kind) && has({run}.apiVersion) && "
        f"{run}.kind + '.' + {run}.apiVersion.split('/')[0] in {kinds})": (
            "has a trial of a kind that does not train, which Katib would create with its own rights: "
            f"use one of {', '.join(_GROUPS)}"
        ),
        f"!has({run}.metadata) || !has({run}.metadata.namespace) || "
        f"{run}.metadata.namespace == request.namespace": (
            "has a trial in another namespace: omit metadata.namespace of the trial"
        ),
        f"!has({template}.configMap) || (has({template}.configMap.configMapNamespace) && "
        f"{template}.configMap.configMapNamespace == request.namespace)": (
            "has a template in another namespace: copy the ConfigMap into the namespace of the experiment, "
            "and name it in trialTemplate.configMap.configMapNamespace"
        ),
    }
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["*"], "resources": ["experiments", "trials"]}
    # Experiments that are older than the policy can still be finished and removed.
    changed = "request.operation == 'CREATE' || object.spec != oldObject.spec"
    version = "admissionregistration.k8s.io/v1"
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    within = {"matchResources": {"namespaceSelector": {"matchExpressions": [names]}}} if namespaces else {}
    return (
        obj(
            version,
            "ValidatingAdmissionPolicy",
            name,
            spec={
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE", "UPDATE"]}]},
                "matchConditions": [{"name": "changed", "expression": changed}],
                "variables": [{"name": name, "expression": value} for name, value in variables.items()],
                "validations": [
                    {"expression": expression, "message": message, "reason": "Forbidden"}
                    for expression, message in validations.items()
                ],
            },
        ),
        obj(
            version,
            "ValidatingAdmissionPolicyBinding",
            name,
            spec={"policyName": name, "validationActions": ["Deny"], **within},
        ),
    )


def _only_with_password(manifest: Object) -> Object:
    """Remove the empty root password that upstream's database accepts."""

    def strict(container: Object) -> Object:
        if "env" not in container:
            return container
        variables = [item for item in container["env"] if item["name"] != "MYSQL_ALLOW_EMPTY_PASSWORD"]
        return {**container, "env": variables}

    return each_container(manifest, strict) if is_(manifest, "Deployment", "katib-mysql") else manifest


def patches(placement: SystemPlacement, credentials: Mapping[str, Mapping[str, Any]]) -> tuple[Patch, ...]:
    """Return the patches of Katib's objects.

    Args:
        placement: placement of its controller, database and UI. The pods that suggest trials run in the
            experiment's namespace without tolerations; they run on the system pool because it has no taint.
        credentials: data of each Secret, in base64, replacing the values that upstream publishes.
    """
    return (
        # With the label, an experiment in this namespace would be deleted at the same time as the controller
        # that removes its finalizer.
        with_namespace(_UPSTREAM, NAMESPACE, (INJECTED,)),
        labelled_namespaces(pod_security("restricted")),
        on_system_pool(placement),
        with_requests(_REQUESTS, _DATABASE),
        movable,
        _configured,
        narrowed(_VERBS, _WRITTEN),
        webhook_ports(),
        filled_in_the_cluster(_CERTIFICATE),
        unawaited_claims,
        *(holding(name, data) for name, data in credentials.items()),
        _only_with_password,
    )


def network_policies() -> tuple[Object, ...]:
    """Return the network policies of its namespace. Trials report to the database manager, and cannot reach
    the database or the UI, which needs no password."""
    reports = {"from": [namespaces(Declared.spec.namespace_labels)], **ports(_API)}
    controller, manager = (labeled(_COMPONENT, name) for name in ("controller", "db-manager"))
    return (
        own_namespace(NAMESPACE),
        policy("controller", NAMESPACE, [ports(CONTROL_PLANE_PORT, _METRICS)], controller),
        policy("db-manager", NAMESPACE, [reports], manager),
    )


def with_namespace(old: str, new: str, without_labels: tuple[str, ...] = ()) -> Patch:
    """Move objects, and references to them, into another namespace.

    Two add-ons of one project use the same namespace: declared by both, it would be deleted with the first,
    along with the other add-on.

    Args:
        old: upstream's namespace.
        new: Ebbtide's namespace.
        without_labels: labels that are not copied to the new namespace.
    """

    def patch(manifest: Object) -> Object:
        changed = _replaced(manifest, old, new)
        if is_(changed, "Namespace", old):
            labels = changed["metadata"].get("labels", {})
            remaining = {key: value for key, value in labels.items() if key not in without_labels}
            return updated(changed, ("metadata",), {**changed["metadata"], "name": new, "labels": remaining})
        return changed

    return patch


def _replaced(value: Any, old: str, new: str) -> Any:
    """Replace the old namespace in each `namespace` field, and in service accounts within expressions."""
    match value:
        case dict():
            items = cast("Object", value)
            return {
                key: new if key == "namespace" and item == old else _replaced(item, old, new)
                for key, item in items.items()
            }
        case list():
            return [_replaced(item, old, new) for item in cast("list[Any]", value)]
        case str():
            return value.replace(f"system:serviceaccount:{old}:", f"system:serviceaccount:{new}:")
        case _:
            return value
