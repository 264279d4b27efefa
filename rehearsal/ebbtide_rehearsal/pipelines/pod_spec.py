"""The patch that KFP's driver writes for the pod of a step, field by field (driver/driver.go,
initPodSpecPatch; driver/k8s.go, extendPodSpecPatch; 2.17.0)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ebbtide.kubernetes_api.parts import part, parts, text, words

Object = dict[str, Any]
Config = Mapping[str, Any]
Source = Callable[[Config], Any]

LAUNCHER: Final = "/kfp-launcher/launch"
_INPUT: Final = re.compile(r"\{\{\$\.inputs\.parameters\['(.+?)'\]\}\}")


def resolved(value: str, parameters: Mapping[str, Any]) -> str:
    """Replace the placeholders of input parameters in a text."""
    return _INPUT.sub(lambda found: str(parameters[found[1]]), value)


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
            {"name": each["name"], "value": str(each.get("value", ""))} for each in parts(container, "env")
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
    if tolerations := [_toleration(each) for each in parts(config, "tolerations")]:
        spec["tolerations"] = tolerations
    if secrets := [_named(each, "secretName", source) for each in parts(config, "imagePullSecret")]:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    if affinity := _affinity(config):
        spec["affinity"] = {"nodeAffinity": affinity}
    if deadline := int(config.get("activeDeadlineSeconds") or 0):
        spec["activeDeadlineSeconds"] = deadline
    return spec


def _resources(given: Config, parameters: Mapping[str, Any]) -> Object:
    """Return limits and requests: the fields with placeholders, or else the older numbers."""

    def amount(field: str, older: str, unit: str) -> str:
        if asked := text(given, field):
            return resolved(asked, parameters)
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
    for each in parts(config, "pvcMount"):
        name = _named(each, "pvcName", source)
        mount = {"name": name, "mountPath": each["mountPath"]}
        if path := text(each, "subPath"):
            mount["subPath"] = path
        yield {"name": name, "persistentVolumeClaim": {"claimName": name}}, mount
    for field, kind, key in (
        ("secretAsVolume", "secret", "secretName"),
        ("configMapAsVolume", "configMap", "configMapName"),
    ):
        for each in parts(config, field):
            name = _named(each, key, source)
            made = {
                "secretName" if kind == "secret" else "name": name,
                "optional": bool(each.get("optional")),
            }
            yield {"name": name, kind: made}, {"name": name, "mountPath": each["mountPath"]}
    for each in parts(config, "emptyDirMounts"):
        made = {key: each[key] for key in ("medium", "sizeLimit") if each.get(key)}
        name = text(each, "volumeName")
        yield {"name": name, "emptyDir": made}, {"name": name, "mountPath": each["mountPath"]}


def _environment(config: Config, source: Source) -> Iterator[Object]:
    for field, reference, key, of in (
        ("secretAsEnv", "secretKeyRef", "secretKey", "secretName"),
        ("configMapAsEnv", "configMapKeyRef", "configMapKey", "configMapName"),
    ):
        for each in parts(config, field):
            optional = {"optional": each["optional"]} if "optional" in each else {}
            for pair in parts(each, "keyToEnv"):
                made = {"name": _named(each, of, source), "key": pair[key], **optional}
                yield {"name": pair["envVar"], "valueFrom": {reference: made}}
    for each in parts(config, "fieldPathAsEnv"):
        yield {"name": each["name"], "valueFrom": {"fieldRef": {"fieldPath": each["fieldPath"]}}}


def _named(each: Config, field: str, source: Source) -> str:
    """Return a name from an input parameter's specification, or from the older fields."""
    if given := part(each, f"{field}Parameter"):
        return str(source(given))
    if "taskOutputParameter" in each or "componentInputParameter" in each:
        return str(source(each))
    return text(each, field) or text(each, "constant")


def _toleration(toleration: Config) -> Object:
    found: Object = {
        key: toleration[key]
        for key in ("key", "operator", "value", "effect")
        if toleration.get(key) not in (None, "")
    }
    if "tolerationSeconds" in toleration:
        found["tolerationSeconds"] = int(toleration["tolerationSeconds"])
    return found


def _affinity(config: Config) -> Object:
    """Return required terms, of which one must match, and preferred terms with weights."""
    required: list[Object] = []
    preferred: list[Object] = []
    for term in parts(config, "nodeAffinity"):
        found = {
            key: [dict(each) for each in parts(term, key)]
            for key in ("matchExpressions", "matchFields")
            if parts(term, key)
        }
        if not found:
            continue
        if "weight" in term:
            preferred.append({"weight": int(term["weight"]), "preference": found})
        else:
            required.append(found)
    affinity: Object = {}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity
