"""The cost recorder."""

import pulumi

from .add_on import AddOnArgs, AddOnComponent
from .costs_objects import NAMESPACE, objects
from .deletion import leaf_options
from .manifest import Manifest


class Costs(AddOnComponent):
    """A CronJob that records what attempts and nodes have cost, as ConfigMaps in its namespace.

    They are deleted with the cluster, or with the add-on.
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        namespace = self._system_namespace(NAMESPACE, args.deleted_with, args.depends_on)
        needs = (namespace, *args.depends_on)
        created: list[pulumi.Resource] = []
        for manifest in objects(args.declaration):
            kind, object_name = manifest["kind"].lower(), manifest["metadata"]["name"]
            namespace = manifest["metadata"].get("namespace", "")
            role = f"{name}-{kind}-{object_name}{'-default' if namespace == 'default' else ''}"
            created.append(Manifest(role, manifest, leaf_options(self, args.deleted_with, needs)))
        self.ready = (*needs, *created)
        self.register_outputs({})
