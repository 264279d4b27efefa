"""The patch that KFP's driver writes for the pod of a step, field by field (driver/driver.go,
initPodSpecPatch; driver/k8s.go, extendPodSpecPatch; 2.17.0)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts, text, words
from ebbtide.values.paths import Object

Config = Mapping[str, Any]
Source = Callable[[Config], Any]

LAUNCHER: Final = "/kfp-launcher/launch"
_INPUT: Final = re.compile(r"\{\{\$\.inputs\.parameters\['(.+?)'\]\}\}")


def resolved(value: str, parameters: Mapping[str, Any]) -> str:
    """Replace the placeholders of input parameters in a text."""
    return _INPUT.sub(lambda match: str(parameters[match[1]]), value)


def pod_spec_patch(
    container: Config,
    config: Config,
    parameters: Mapping[str, Any],
    launcher_arguments: list[str],
    source: Source,
) -> Object:
    """Return the strategic merge patch for a step's pod.

    Args:
        container: the executor's container.
        config: the executor's Kubernetes configuration.
        parameters: the step's input parameters.
        launcher_arguments: the launcher's arguments before the step's own command.
        source: the value of an input parameter's specification, by which the configuration names objects.
    """
    main: Object = {
        "name": "main",
        "image": resolved(text(container, "image"), parameters),
        "command": [LAUNCHER, *launcher_arguments, "--"],
        "args": [
            resolved(word, parameters) for word in (*words(container, "command"), *words(container, "args"))
        ],
        "env": [
            {"name": variable["name"], "value": str(variable.get("value", ""))}
            for variable in parts(container, "env")
        ],
        "resources": _resources(part(container, "resources"), parameters),
    }
    spec: Object = {"containers": [main]}
    volumes = list(_volumes(config, source))
    if volumes:
        spec["volumes"] = [volume for volume, _ in volumes]
        main["volumeMounts"] = [mount for _, mount in volumes]
    main["env"] += _environment(config, source)
    if policy := text(config, "imagePullPolicy"):
        main["imagePullPolicy"] = policy
    if labels := part(config, "nodeSelector", "labels"):
        spec["nodeSelector"] = dict(labels)
    if tolerations := [_toleration(toleration) for toleration in parts(config, "tolerations")]:
        spec["tolerations"] = tolerations
    if secrets := [_named(secret, "secretName", source) for secret in parts(config, "imagePullSecret")]:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    if affinity := _affinity(config):
        spec["affinity"] = {"nodeAffinity": affinity}
    if deadline := int(config.get("activeDeadlineSeconds") or 0):
        spec["activeDeadlineSeconds"] = deadline
    return spec


def _resources(given: Config, parameters: Mapping[str, Any]) -> Object:
    """Return limits and requests: the fields with placeholders, or else the older numbers."""

    def amount(field: str, older: str, unit: str) -> str:
        if quantity := text(given, field):
            return resolved(quantity, parameters)
        return f"{given[older]:g}{unit}" if given.get(older) else ""

    accelerator = part(given, "accelerator")
    kind = resolved(text(accelerator, "resourceType") or text(accelerator, "type"), parameters)
    count = resolved(text(accelerator, "resourceCount") or text(accelerator, "count"), parameters)
    limits = {
        "memory": amount("resourceMemoryLimit", "memoryLimit", "G"),
        "cpu": amount("resourceCpuLimit", "cpuLimit", ""),
    } | ({kind: count} if kind else {})
    requests = {
        "memory": amount("resourceMemoryRequest", "memoryRequest", "G"),
        "cpu": amount("resourceCpuRequest", "cpuRequest", ""),
    }
    return {
        kind: {name: value for name, value in amounts.items() if value}
        for kind, amounts in (("limits", limits), ("requests", requests))
    }


def _volumes(config: Config, source: Source) -> Iterator[tuple[Object, Object]]:
    """Yield volumes with their mounts: claims, Secrets, ConfigMaps, empty directories."""
    for claim in parts(config, "pvcMount"):
        name = _named(claim, "pvcName", source)
        mount = {"name": name, "mountPath": claim["mountPath"]}
        if path := text(claim, "subPath"):
            mount["subPath"] = path
        yield {"name": name, "persistentVolumeClaim": {"claimName": name}}, mount
    for field, kind, key in (
        ("secretAsVolume", "secret", "secretName"),
        ("configMapAsVolume", "configMap", "configMapName"),
    ):
        for item in parts(config, field):
            name = _named(item, key, source)
            volume = {
                "secretName" if kind == "secret" else "name": name,
                "optional": bool(item.get("optional")),
            }
            yield {"name": name, kind: volume}, {"name": name, "mountPath": item["mountPath"]}
    for directory in parts(config, "emptyDirMounts"):
        volume = {key: directory[key] for key in ("medium", "sizeLimit") if directory.get(key)}
        name = text(directory, "volumeName")
        yield {"name": name, "emptyDir": volume}, {"name": name, "mountPath": directory["mountPath"]}


def _environment(config: Config, source: Source) -> Iterator[Object]:
    for field, reference, key, of in (
        ("secretAsEnv", "secretKeyRef", "secretKey", "secretName"),
        ("configMapAsEnv", "configMapKeyRef", "configMapKey", "configMapName"),
    ):
        for item in parts(config, field):
            optional = {"optional": item["optional"]} if "optional" in item else {}
            for pair in parts(item, "keyToEnv"):
                selector = {"name": _named(item, of, source), "key": pair[key], **optional}
                yield {"name": pair["envVar"], "valueFrom": {reference: selector}}
    for field_path in parts(config, "fieldPathAsEnv"):
        yield {"name": field_path["name"], "valueFrom": {"fieldRef": {"fieldPath": field_path["fieldPath"]}}}


def _named(specification: Config, field: str, source: Source) -> str:
    """Return a name from an input parameter's specification, or from the older fields."""
    if given := part(specification, f"{field}Parameter"):
        return str(source(given))
    if "taskOutputParameter" in specification or "componentInputParameter" in specification:
        return str(source(specification))
    return text(specification, field) or text(specification, "constant")


def _toleration(toleration: Config) -> Object:
    copied: Object = {
        key: toleration[key]
        for key in ("key", "operator", "value", "effect")
        if toleration.get(key) not in (None, "")
    }
    if "tolerationSeconds" in toleration:
        copied["tolerationSeconds"] = int(toleration["tolerationSeconds"])
    return copied


def _affinity(config: Config) -> Object:
    """Return required terms, of which one must match, and preferred terms with weights."""
    required: list[Object] = []
    preferred: list[Object] = []
    for term in parts(config, "nodeAffinity"):
        terms = {
            key: [dict(expression) for expression in parts(term, key)]
            for key in ("matchExpressions", "matchFields")
            if parts(term, key)
        }
        if not terms:
            continue
        if "weight" in term:
            preferred.append({"weight": int(term["weight"]), "preference": terms})
        else:
            required.append(terms)
    affinity: Object = {}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity
