"""An ML cluster on GKE, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program
from ebbtide.components.gke import deploy, provider

settings = pulumi.Config("ebbtide")
cluster = program.declared(
    settings.require_object("cluster"),
    owner=program.setting(settings, "owner"),
    cloud={
        "kind": "gke",
        "project": program.setting(settings, "project"),
        "location": program.setting(settings, "location"),
    },
)
topology = deploy(cluster, provider("gcp", cluster))
for name, value in program.outputs(cluster, topology).items():
    pulumi.export(name, value)
