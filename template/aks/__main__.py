"""An ML cluster on AKS, as this stack's configuration declares it."""

import pulumi
from ebbtide.components import program
from ebbtide.components.aks import deploy, provider

settings = pulumi.Config("ebbtide")
cluster = program.declared(
    settings.require_object("cluster"),
    owner=program.setting(settings, "owner"),
    cloud={
        "kind": "aks",
        "subscription": program.setting(settings, "subscription"),
        "location": program.setting(settings, "location"),
    },
)
topology = deploy(cluster, provider("azure", cluster))
for name, value in program.outputs(cluster, topology).items():
    pulumi.export(name, value)
