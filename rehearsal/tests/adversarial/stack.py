"""The objects of a stack as the engine would create them: its own, and those of its charts and
kustomizations after the program's transforms."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pulumi
import yaml
from pulumi_kubernetes import helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from ebbtide.values.paths import Object
from ebbtide_rehearsal.addons import REHEARSED
from ebbtide_rehearsal.tools.find import Tools
from rehearsal.tests.control_plane.commands import run
from tests.declarations import Declaration
from tests.manifests import KATIB, PIPELINES, PIPELINES_CLUSTER, RELEASED, upstream
from tests.running import manifest
from tests.synth import synth_anew

_GENERATED = "Z2VuZXJhdGVk"
"""A value that the engine knows later, such as a generated password; base64, for Secrets."""

TOOLS = ("kubectl", "helm", "kueue-chart", "trainer-chart", "trainer-manifests")
"""Names of the tools that render charts and kustomizations."""

MANIFESTS = (PIPELINES_CLUSTER, PIPELINES, KATIB)
"""Names of the released manifests."""


@dataclass(frozen=True, slots=True)
class Part:
    """Objects that are created together: those of a chart or a kustomization, or one of the stack's own."""

    name: str
    objects: tuple[Object, ...]


def parts(declaration: Declaration, tools: Tools, directory: Path) -> Iterator[Part]:
    """Yield a stack's objects, in the order in which the engine creates them.

    Args:
        declaration: of a stack whose drivers the cloud installs.
        tools: those in `TOOLS`.
        directory: for the charts' values.
    """
    with _sources() as sources:
        recording = synth_anew(declaration)
    for item in recording:
        if not item.type.startswith("kubernetes:"):
            continue
        inputs = manifest(item)
        if item.name not in sources:
            yield Part(item.name, (inputs,))
            continue
        source = sources[item.name]
        rendered = (
            _kustomized(inputs["directory"], tools)
            if "directory" in inputs
            else _templated(inputs, tools, directory)
        )
        yield Part(item.name, tuple(_transformed(each, source) for each in rendered))


@contextmanager
def _sources() -> Generator[dict[str, pulumi.ResourceOptions]]:
    """Collect the options of charts and kustomizations, whose transforms a recording does not call."""
    options: dict[str, pulumi.ResourceOptions] = {}

    def collecting(kind: type[pulumi.Resource]) -> Any:
        constructor: Any = kind.__init__

        def init(self: Any, name: str, /, *args: Any, **fields: Any) -> None:
            options[name] = fields["opts"]
            constructor(self, name, *args, **fields)

        return mock.patch.object(kind, "__init__", init)

    with collecting(helm.v4.Chart), collecting(kustomize.Directory):
        yield options


def _transformed(item: Object, options: pulumi.ResourceOptions) -> Object:
    props: Mapping[str, Any] = item
    for transform in options.transforms or ():
        group = item["apiVersion"] if "/" in item["apiVersion"] else f"core/{item['apiVersion']}"
        args = pulumi.ResourceTransformArgs(
            custom=True,
            type_=f"kubernetes:{group}:{item['kind']}",
            name=item["metadata"]["name"],
            props=dict(props),
            opts=pulumi.ResourceOptions(),
        )
        result: Any = transform(args)
        props = props if result is None else result.props
    return _known(props)


def _known(value: Any) -> Any:
    match value:
        case pulumi.Output():
            return _GENERATED
        case dict():
            return {key: _known(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_known(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _kustomized(address: str, tools: Tools) -> list[Object]:
    """Return the objects of a released kustomization, or render one of the tools' manifests."""
    released = {item.address: name for name, item in RELEASED.items()}
    if address in released:
        return upstream(released[address])
    path = address.partition("?")[0]
    (inside,) = (
        tools.path(name) / path.removeprefix(base)
        for add_on in REHEARSED.values()
        for name, (revision, root) in add_on.directories.items()
        if path.startswith(base := f"{revision.repository}/{root}/")
    )
    return _objects(run(tools.path("kubectl"), "kustomize", inside))


def _templated(inputs: Mapping[str, Any], tools: Tools, directory: Path) -> list[Object]:
    charts = {address: name for add_on in REHEARSED.values() for address, name in add_on.charts.items()}
    namespace, values = inputs["namespace"], directory / f"{inputs['name']}.yaml"
    values.write_text(yaml.safe_dump(inputs["values"]), encoding="utf-8")
    command = (tools.path("helm"), "template", inputs["name"], tools.path(charts[inputs["chart"]]))
    objects = _objects(run(*command, "--include-crds", "--no-hooks", "-n", namespace, "-f", values))
    return [_placed(item, namespace) for item in objects]


def _objects(text: str) -> list[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [item for item in yaml.load_all(text, loader) if item]


_CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "APIService")
_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "PriorityClass")


def _placed(item: Object, namespace: str) -> Object:
    """Set the release's namespace where a chart omits it."""
    if item["kind"] in (*_CLUSTER_SCOPED, *_CONFIGURATIONS) or "namespace" in item["metadata"]:
        return item
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}
