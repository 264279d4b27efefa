"""Rendering a chart with the real helm.

Source: pulumi-kubernetes 4.32, provider/pkg/provider/helm/v4/chart.go: hooks are left out, definitions of
kinds come along, the cluster's version and kinds are those that a chart asks for, and `lookup` finds what is
in it.
"""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import yaml

from ebbtide.recording.values import Plain
from ebbtide_rehearsal.cloud.kubernetes.cluster import Cluster
from ebbtide_rehearsal.cloud.kubernetes.objects import words
from ebbtide_rehearsal.cloud.kubernetes.sources import Sources, run
from ebbtide_rehearsal.cloud.provider import Properties, RefusedError

_TAKEN: Final = words(
    """
    chart name namespace postRenderer repositoryOpts resourcePrefix skipAwait skipCrds valueYamlFiles values
    version
    """
)
_NO_EFFECT: Final = ("includeHooks",)  # the real provider only warns of it


def rendered(sources: Sources, cluster: Cluster, kubeconfig: str, release: str, inputs: Properties) -> str:
    """The objects of a chart, as YAML.

    Args:
        sources: where the chart and helm are.
        cluster: that it is for.
        kubeconfig: text of the cluster's.
        release: name of the release.
        inputs: of the `Chart` in the program.

    Raises:
        RefusedError: it cannot be rendered, or asks for what a rehearsal does not have.
    """
    for name, value in inputs.items():
        if name not in (*_TAKEN, *_NO_EFFECT) and value:
            raise RefusedError(f'The rehearsal renders charts without "{name}".')
    chart = sources.chart(str(inputs["chart"]), str(inputs.get("version") or ""))
    with tempfile.TemporaryDirectory(prefix="ebbtide-chart-") as place:
        directory = Path(place)
        (directory / "kubeconfig").write_text(kubeconfig, "utf-8")
        files = _values_files(directory, inputs)
        command = (
            *(str(sources.helm), "template", release, str(chart)),
            *("--namespace", str(inputs.get("namespace") or cluster.namespace)),
            "--no-hooks",
            *(() if inputs.get("skipCrds") is True else ("--include-crds",)),
            "--dry-run=server",
            *("--kube-version", cluster.discovery.version()),
            *("--api-versions", ",".join(cluster.discovery.api_versions())),
            *(part for file in files for part in ("--values", str(file))),
            *_post_renderer(inputs.get("postRenderer")),
        )
        return run(command, {**os.environ, "KUBECONFIG": str(directory / "kubeconfig")})


def _post_renderer(value: Plain) -> Sequence[str]:
    """Return helm's options for a chart's post-renderer."""
    if not isinstance(value, dict):
        return ()
    arguments = value.get("args") or []
    listed = arguments if isinstance(arguments, list) else [arguments]
    return (
        *("--post-renderer", str(value["command"])),
        *(f"--post-renderer-args={item}" for item in listed),
    )


def _values_files(directory: Path, inputs: Properties) -> Sequence[Path]:
    """Files of values, later ones over earlier ones. A value that is null takes a chart's default away."""
    given = inputs.get("valueYamlFiles") or []
    texts = [_asset(item) for item in given] if isinstance(given, list) else []
    texts.append(yaml.safe_dump(json.loads(json.dumps(_expanded(inputs.get("values") or {})))))
    files = [directory / f"values-{index}.yaml" for index in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, "utf-8")
    return files


def _is_asset(value: Any) -> bool:
    return isinstance(value, dict) and list(cast("dict[str, Any]", value)) == ["asset"]


def _expanded(value: Plain) -> Any:
    """Values with the contents of assets in their place."""
    if _is_asset(value):
        return _asset(value)
    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    return value


def _asset(value: Plain) -> str:
    found = cast("dict[str, dict[str, Any]]", value)["asset"] if _is_asset(value) else {}
    if found.get("text"):
        return str(found["text"])
    if found.get("path"):
        try:
            return Path(str(found["path"])).read_text("utf-8")
        except OSError as error:
            raise RefusedError(f'failed to read file "{found["path"]}": {error}') from None
    raise RefusedError("The rehearsal takes assets for charts from texts and files alone.")
