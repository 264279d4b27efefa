"""Import of the existing resources that a stack adopts.

The resources keep their parents and providers, which `pulumi import` of a file does not achieve: a provider
below a component leaves an invalid state (tried with pulumi 3.259, 2026-11).
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pulumi
from pulumi.runtime import register_stack_transformation

from ebbtide.declaration.project.adopt_file import (
    IMPORT_ONLY,
    AdoptFileError,
    read_adopt_file,
    unknown_resources,
)
from ebbtide.declaration.project.configuration import NAMESPACE
from ebbtide.declaration.providers.constraints import PATCH_FORCE

_KUBERNETES: Final = "kubernetes:"


@contextmanager
def importing(file: Path) -> Generator[None]:
    """Import the resources of a file that are created in this context.

    In a run with `ebbtide:importOnly`, they have the inputs that were read, whatever the program declares.
    Otherwise the engine updates them after their import; it refuses to replace one while its id is set.
    Server-side apply takes over the fields of Kubernetes objects, whose other field manager would conflict.
    A resource that the state has with the same id is not imported again (pulumi 3.259, step_generator.go).

    Raises:
        pulumi.RunError: the file is invalid, or has a resource that was not created.
    """
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    try:
        resources = read_adopt_file(shown)
    except AdoptFileError as error:
        raise pulumi.RunError(str(error)) from None
    ids = {item.key: item.id for item in resources}
    forced = {item.key for item in resources if item.type.startswith(_KUBERNETES)}
    ignored = ["*"] if pulumi.Config(NAMESPACE).get_bool(IMPORT_ONLY) else None
    created: set[tuple[str, str]] = set()

    def adopted(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        key = (args.type_, args.name)
        created.add(key)
        if key not in ids:
            return None
        props = _forced(args.props) if key in forced else args.props
        own = pulumi.ResourceOptions(import_=ids[key], ignore_changes=ignored)
        return pulumi.ResourceTransformationResult(props, pulumi.ResourceOptions.merge(args.opts, own))

    register_stack_transformation(adopted)
    yield
    if error := unknown_resources(shown, resources, created):
        raise pulumi.RunError(str(error))


def _forced(props: Any) -> dict[str, Any]:
    """Return a manifest that takes over the fields of other field managers."""
    manifest = cast("Mapping[str, Any]", props)
    metadata: Mapping[str, Any] = manifest["metadata"]
    annotations: dict[str, Any] = {**metadata.get("annotations", {}), PATCH_FORCE: "true"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}
