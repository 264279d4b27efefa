"""kwok's stages for nodes and pods: its own, and additional ones for pods that end.

kwok 0.8 ends the pods of Jobs at once, or after a delay that supports success only. Here annotations
determine a pod's duration and exit status.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

RUNS = "rehearsal.ebbtide.dev/runs"
"""Pod annotation: `process` to run its command on this machine."""

RUNS_FOR = "rehearsal.ebbtide.dev/runs-for"
"""Pod annotation: seconds until the pod ends; at least so long if its command runs on this machine."""

EXIT_CODE = "rehearsal.ebbtide.dev/exit-code"
"""Pod annotation: the exit status of a pod's containers; 0 by default."""

KUBELET, FAKE = "kwok.x-k8s.io/node", "fake"
"""Node annotation for kwok's nodes; without it a node appears to have a silent kubelet."""

SECONDS = 3
"""Default duration of work."""

_DURATION = (
    f'(.metadata.annotations["{RUNS_FOR}"] // (.spec.containers[0]'
    " | [(.command // [])[], (.args // [])[]]"
    ' | if length == 2 and .[0] == "sleep" and (.[1] | test("^[0-9]+s?$")) then .[1] else null end))'
    ' | select(. != null) | sub("s$"; "") + "s"'
)
"""The pod's annotation, else the argument of its command `sleep`."""

Stage = dict[str, Any]

_READY = "pod/fast/pod-ready.yaml"
_DELETED = "pod/fast/pod-delete.yaml"
_NODES = ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml")
_CONTAINERS = """
{{ $now := Now }}
{{ $code := or (index (or .metadata.annotations dict) "%s") "0" }}
{{ $statuses := .status.containerStatuses }}
containerStatuses:
{{ range $index, $container := .spec.containers }}
{{ $status := index $statuses $index }}
{{ $began := or $status.state.running.startedAt $now }}
- name: {{ $container.name | Quote }}
  image: {{ $container.image | Quote }}
"""
_ENDED = """
    terminated:
      exitCode: {{ $code }}
      reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $began | Quote }}
      finishedAt: {{ $now | Quote }}
"""
_FINISHED = f"""{_CONTAINERS % EXIT_CODE}
  ready: false
  started: false
  restartCount: {{{{ or $status.restartCount 0 }}}}
  state:
{_ENDED}
{{{{ end }}}}
conditions:
- type: Ready
  status: "False"
  reason: {{{{ if eq $code "0" }}}}PodCompleted{{{{ else }}}}PodFailed{{{{ end }}}}
  lastTransitionTime: {{{{ $now | Quote }}}}
- type: ContainersReady
  status: "False"
  reason: {{{{ if eq $code "0" }}}}PodCompleted{{{{ else }}}}PodFailed{{{{ end }}}}
  lastTransitionTime: {{{{ $now | Quote }}}}
phase: {{{{ if eq $code "0" }}}}Succeeded{{{{ else }}}}Failed{{{{ end }}}}
"""
_RESTARTED = f"""{_CONTAINERS % EXIT_CODE}
  ready: true
  started: true
  restartCount: {{{{ add 1 (or $status.restartCount 0) }}}}
  state:
    running:
      startedAt: {{{{ $now | Quote }}}}
  lastState:
{_ENDED}
{{{{ end }}}}
phase: Running
"""


def _matches(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def _selection(excluded: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Select kwok's pods: exclude pods with another kubelet, by their labels."""
    same = " or ".join(
        " and ".join(f'.["{label}"] == "{value}"' for label, value in labels.items()) for labels in excluded
    )
    return [
        _matches(f'.metadata.annotations["{RUNS}"]', "NotIn", "process"),
        *([_matches(f".metadata.labels | select({same}) | keys", "DoesNotExist")] if same else []),
    ]


def _ending(name: str, expressions: list[dict[str, Any]], status: str) -> Stage:
    """Build a stage that ends a running pod after its seconds."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    _matches(".metadata.deletionTimestamp", "DoesNotExist"),
                    _matches(".status.phase", "In", "Running"),
                    *expressions,
                ]
            },
            "delay": {
                "durationMilliseconds": SECONDS * 1000,
                "durationFrom": {"expressionFrom": _DURATION},
            },
            "next": {"statusTemplate": status},
        },
    }


def _endings() -> list[Stage]:
    code = f'.metadata.annotations["{EXIT_CODE}"]'
    fails = [_matches(code, "Exists"), _matches(code, "NotIn", "0")]
    succeeds = [_matches(f'{code} | select(. != null and . != "0")', "DoesNotExist")]
    policy = ".spec.restartPolicy"
    return [
        _ending("work-succeeds", [_matches(policy, "NotIn", "Always"), *succeeds], _FINISHED),
        _ending("work-fails", [_matches(policy, "In", "Never"), *fails], _FINISHED),
        _ending("work-restarts", [_matches(policy, "In", "OnFailure"), *fails], _RESTARTED),
    ]


def _read(file: Path) -> Stage:
    return yaml.safe_load(file.read_text())


def stages(directory: Path, others: Iterable[Mapping[str, str]]) -> list[Stage]:
    """Return all stages.

    Args:
        directory: kwok's own stages (`kustomize/stage` of its module).
        others: labels of the pods whose program really runs.
    """
    pods = [*(_read(directory / file) for file in (_READY, _DELETED)), *_endings()]
    left_alone = _selection(others)
    for stage in pods:
        stage["spec"]["selector"]["matchExpressions"] += left_alone
    nodes = [_read(directory / file) for file in _NODES]
    for stage in nodes:
        kubelet = _matches(f'.metadata.annotations["{KUBELET}"]', "In", FAKE)
        stage["spec"]["selector"].setdefault("matchExpressions", []).append(kubelet)
    return [*nodes, *pods]
