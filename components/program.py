"""A program that deploys a cluster: its declaration, the resources of its cloud, and the stack's outputs."""

from pathlib import Path
from typing import Any, Protocol

import pulumi

from ebbtide.declaration.model import expiry
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import advice, declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.project.configuration import (
    NAMESPACE,
    answer,
    completed,
    merged,
    parsed,
    project_directory,
    with_defaults,
)
from ebbtide.errors import ExtendsError
from ebbtide.placement.derive import profile
from ebbtide.text import and_list

from .topology import Topology


def declared(written: object, **defaults: Any) -> Cluster:
    """Validate a declaration and log its warnings.

    Args:
        written: the parsed YAML or JSON of the declaration; `extends` is the file of another declaration. The
            default of `name` is `<project>-<stack>`.
        defaults: values for omitted fields, such as `owner`; for an object (`cloud`), for each of its fields.

    Raises:
        pulumi.RunError: the declaration is invalid; the message lists all errors, with their positions if the
            stack's file is found.
    """
    try:
        name = f"{pulumi.get_project()}-{pulumi.get_stack()}"
        declaration, _ = merged(written, project_directory(Path.cwd()))
        cluster = declare(with_defaults(declaration, defaults), default_name=name)
    except ExtendsError as error:
        raise pulumi.RunError(str(error)) from None
    except DeclarationError as error:
        # An update of a valid declaration does without these modules.
        from ebbtide.declaration.project.diagnostics import declaration_text  # noqa: PLC0415
        from ebbtide.declaration.project.source import find_source  # noqa: PLC0415

        source = find_source(Path.cwd(), pulumi.get_stack())
        raise pulumi.RunError(declaration_text(error, source)) from None
    for warning in advice(cluster):
        pulumi.log.warn(str(warning))
    return cluster


def configured() -> Cluster:
    """Return the cluster that the stack declares under `ebbtide:cluster`; its warnings are logged.

    Defaults are the answers to `ebbtide init` and `pulumi new`: the settings `ebbtide:owner`, and
    `ebbtide:location` with `ebbtide:project` on GKE or `ebbtide:subscription` on AKS.

    Raises:
        pulumi.RunError: no cluster is declared, or it is invalid; the message lists all errors.
    """
    config = pulumi.Config(NAMESPACE)
    written = config.get("cluster")
    if written is None:
        from ebbtide.declaration.project.source import find_misplaced  # noqa: PLC0415 - for errors alone

        stack = pulumi.get_stack()
        hints = " ".join(str(key) for key in find_misplaced(Path.cwd(), stack))
        write = f"Write one under `ebbtide:cluster` in Pulumi.{stack}.yaml; README.md has an example."
        raise pulumi.RunError(f"The stack {stack} declares no cluster. {hints or write}")
    root = project_directory(Path.cwd())
    try:
        return declared(completed(*merged(parsed(written), root), config.get, root))
    except ExtendsError as error:
        raise pulumi.RunError(str(error)) from None


class _Settings(Protocol):
    """The stack's configuration with the namespace `ebbtide`."""

    def get(self, key: str) -> str | None: ...


def settings(config: _Settings, *names: str) -> dict[str, str]:
    """Return settings of the stack, such as `owner`: its own, or those of a file that it extends. Programs
    that an earlier `ebbtide init` wrote call it; new ones call `configured`.

    Args:
        config: the stack's configuration, `pulumi.Config("ebbtide")`.
        names: the settings' keys.

    Raises:
        pulumi.RunError: a file that is extended cannot be used, or no file has a setting; the message has
            every missing one.
    """
    root = project_directory(Path.cwd())
    try:
        _, bases = merged(parsed(config.get("cluster") or ""), root)
        found = {name: answer(name, config.get, bases, root) for name in names}
    except ExtendsError as error:
        raise pulumi.RunError(str(error)) from None
    missing = [f"{NAMESPACE}:{name}" for name, value in found.items() if not value]
    if missing:
        commands = and_list([f"`pulumi config set {key} VALUE`" for key in missing])
        raise pulumi.RunError(f"The stack has no {and_list(missing)}. Run {commands}.")
    return {name: value for name, value in found.items() if value}


def deploy(declaration: Cluster, parent: pulumi.Resource | None = None, providers: Any = None) -> Topology:
    """Create the declared cluster, and all that is declared to run on it, on the declared cloud.

    The provider of the other cloud is not loaded.

    Args:
        parent: the component that contains them. Default: the stack.
        providers: providers of the parent; without the cloud's own, one is created for the declared account.

    Raises:
        pulumi.RunError: the file of adopted resources is invalid, or has one that is not created here.
    """
    if declaration.adopt is None:
        return _deployed(declaration, parent, providers)
    from .adoption import importing  # noqa: PLC0415 - for stacks that adopt alone

    with importing(project_directory(Path.cwd()) / declaration.adopt):
        return _deployed(declaration, parent, providers)


def _deployed(declaration: Cluster, parent: pulumi.Resource | None, providers: Any) -> Topology:
    own, inside = providers or (), pulumi.ResourceOptions(parent=parent)
    match declaration.cloud:
        case Gke():
            from . import gke  # noqa: PLC0415

            new = "gcp" not in own
            google = gke.provider(f"{declaration.name}-gcp", declaration, inside) if new else None
            return gke.deploy(declaration, google, parent)
        case Aks():
            from . import aks  # noqa: PLC0415

            new = "azure-native" not in own
            azure = aks.provider(f"{declaration.name}-azure", declaration, inside) if new else None
            return aks.deploy(declaration, azure, parent)


def outputs(declaration: Cluster, topology: Topology) -> dict[str, pulumi.Input[object]]:
    """Return the stack's outputs: `clusterName`, `kubeconfig` (a secret), `placementProfile`; for an
    ephemeral cluster `expires`; on AKS also `aksClusterInputs`, without which the next preview after a
    refresh shows work pools as removed."""
    return {
        "clusterName": topology.cluster_name,
        "kubeconfig": topology.kubeconfig,
        "placementProfile": profile(declaration).output(),
        **({} if topology.expires is None else {expiry.OUTPUT: topology.expires}),
        **topology.own_outputs,
    }
