"""Each add-on on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any, Final

import pulumi
import pytest
import yaml

from components.addons.add_on import AddOnArgs
from components.addons.addons import Addons, AddonsArgs
from components.addons.costs import Costs
from components.addons.drivers import Drivers, DriversArgs
from components.addons.existing import ExistingAddOn, ExistingAddOnError, check_served
from components.addons.katib import Katib
from components.addons.kueue import Kueue
from components.addons.pipeline_retries import ExistingPipelines, ExistingPipelinesArgs
from components.addons.pipelines import Pipelines
from components.addons.queues import Queues, QueuesArgs
from components.addons.teams import TeamResources, Tenant, TenantArgs
from components.addons.trainer import Trainer
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.model.addons import Pipelines as DeclaredPipelines
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import queue_policy
from ebbtide.placement.derive import profile
from ebbtide.placement.kueue_settings import CONFIG_KEY
from ebbtide.placement.queue_objects import fallback_objects
from ebbtide.placement.queueing import queueing
from tests.contract.flips import GKE_EXISTING
from tests.declarations import changed, pool
from tests.running import full
from tests.unit.mocks.mocked import AKS, GKE, Mocks, team

_CHART = "kubernetes:helm.sh/v4:Chart"
_KUSTOMIZATION = "kubernetes:kustomize/v2:Directory"
_RBAC = "kubernetes:rbac.authorization.k8s.io/v1"
_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"


def _no_resources(_team: Any) -> TeamResources:
    return TeamResources(annotations={})


def test_addons(mocks: Mocks) -> None:
    """Every declared add-on is installed, and each team has a namespace."""
    mocks.run(lambda: Addons("addons", AddonsArgs(declaration=GKE, create_resources=_no_resources)))
    made = {args.typ.rpartition(":")[2] for args in mocks.resources if args.typ.startswith("ebbtide:addons:")}
    assert made == {"Addons", "Trainer", "Kueue", "Katib", "Costs", "Pipelines", "Tenant", "Queues"}


@pytest.mark.parametrize(
    ("declaration", "name"),
    [
        (declare(full("gke", drivers="daemonset")), "ebbtide-nvidia-installer-cos"),
        (AKS, "ebbtide-nvidia-device-plugin"),
    ],
    ids=["gke", "aks"],
)
def test_drivers(mocks: Mocks, declaration: Cluster, name: str) -> None:
    """The DaemonSet of drivers or the device plugin runs on the GPU pools alone, and tolerates the taints of
    their nodes."""
    mocks.run(lambda: Drivers("drivers", DriversArgs(declaration=declaration)))
    daemon_sets = {item["metadata"]["name"]: item for item in mocks.of_type("kubernetes:apps/v1:DaemonSet")}
    pod = daemon_sets[name]["spec"]["template"]["spec"]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    pools = [pool for pool in declaration.resolved_pools if pool.name in term["values"]]
    assert "t4" in term["values"]
    assert not {"system", "cpu"} & set(term["values"])
    taints = [taint for pool in pools for taint in pool.labels_and_taints.all_taints]
    tolerated = {(item["key"], item["value"], item["effect"]) for item in pod["tolerations"]}
    assert taints
    assert {(taint.key, taint.value, taint.effect) for taint in taints} <= tolerated


def test_costs(mocks: Mocks) -> None:
    """The recorder runs every five minutes, one at a time, as an account that reads no Secrets."""
    mocks.run(lambda: Costs("costs", AddOnArgs(declaration=GKE)))
    (schedule,) = mocks.of_type("kubernetes:batch/v1:CronJob")
    assert (schedule["spec"]["schedule"], schedule["spec"]["concurrencyPolicy"]) == ("*/5 * * * *", "Forbid")
    roles = (*mocks.of_type(f"{_RBAC}:Role"), *mocks.of_type(f"{_RBAC}:ClusterRole"))
    assert {resource for role in roles for rule in role["rules"] for resource in rule["resources"]} == {
        "nodes",
        "events",
        "configmaps",
    }


def test_katib(mocks: Mocks) -> None:
    """Katib comes from its kustomization in the pinned version."""
    mocks.run(lambda: Katib("katib", AddOnArgs(declaration=GKE)))
    (objects,) = mocks.of_type(_KUSTOMIZATION)
    assert objects["directory"].endswith(f"?ref={PINS['katib'].commit}")


def test_kueue(mocks: Mocks) -> None:
    """Kueue comes from its chart, with the declared number of replicas."""
    mocks.run(lambda: Kueue("kueue", AddOnArgs(declaration=GKE)))
    (chart,) = mocks.of_type(_CHART)
    assert chart["version"] == PINS["kueue"].version
    assert chart["values"]["controllerManager"]["replicas"] == 2


def test_pipelines(mocks: Mocks) -> None:
    """Kubeflow Pipelines comes from two kustomizations of the pinned version."""
    mocks.run(lambda: Pipelines("pipelines", AddOnArgs(declaration=GKE)))
    sources = [item["directory"] for item in mocks.of_type(_KUSTOMIZATION)]
    assert [source.rpartition("=")[2] for source in sources] == [PINS["pipelines"].commit] * 2


@pytest.mark.parametrize(
    ("cloud", "label"),
    [("gke", "cloud.google.com/gke-nodepool"), ("aks", "kubernetes.azure.com/agentpool")],
)
def test_queues(mocks: Mocks, cloud: str, label: str) -> None:
    """A team has a local queue for each queue that it may use, and a flavor has the labels of its pool's
    nodes, with the pool's name in the cloud, under a name of its own as well."""
    written = full(cloud)
    pool(written, "t4")["resourceFlavor"] = "theirs"
    declaration = declare(written)

    @pulumi.runtime.test
    def program() -> None:
        args = QueuesArgs(
            fallbacks=fallback_objects(declaration),
            queueing=queueing(declaration),
            policy=queue_policy.layers(declaration),
            kueue=(),
            pool_names={"t4": pulumi.Output.from_input("t4-new")},
        )
        Queues("queues", args)

    program()
    names = {
        item["metadata"]["name"]
        for item in mocks.of_type(_QUEUE)
        if item["metadata"]["namespace"] == "vision"
    }
    assert names == {"gpus", "cpu"}
    flavors = {
        item["metadata"]["name"]: item["spec"]["nodeLabels"]
        for item in mocks.of_type("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor")
    }
    for name, own, in_cloud in (("theirs", "t4", "t4-new"), ("cpu", "cpu", "cpu")):
        assert {"ebbtide.dev/pool": own, label: in_cloud}.items() <= flavors[name].items()


def test_tenant(mocks: Mocks) -> None:
    """A team's namespace holds the profile and a service account without a token."""
    args = TenantArgs(declaration=GKE, team=team(GKE), resources=_no_resources(None), profile=profile(GKE))
    mocks.run(lambda: Tenant("vision", args))
    (config_map,) = mocks.of_type("kubernetes:core/v1:ConfigMap")
    (account,) = mocks.of_type("kubernetes:core/v1:ServiceAccount")
    assert list(config_map["data"]) == ["profile.json"]
    assert account["automountServiceAccountToken"] is False


def test_trainer(mocks: Mocks) -> None:
    """Trainer comes from its chart, and its runtimes from its kustomization."""
    mocks.run(lambda: Trainer("trainer", AddOnArgs(declaration=GKE)))
    version = PINS["trainer"].version
    assert [chart["version"] for chart in mocks.of_type(_CHART)] == [version]
    (runtimes,) = mocks.of_type(_KUSTOMIZATION)
    assert runtimes["directory"].endswith(f"?ref={PINS['trainer'].commit}")


_CRD: Final = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"


def _definition(
    *versions: str, webhook: str = "kueue-webhook-service", namespace: str = "kueue-system"
) -> Any:
    """A CustomResourceDefinition as an API server has it, with the webhook that converts its kind."""
    service = {"name": webhook, "namespace": namespace, "path": "/convert"}
    return {
        "spec": {
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}},
            "versions": [{"name": version, "served": True} for version in versions],
        }
    }


def test_existing_kueue(mocks: Mocks) -> None:
    """An installation of any name that suits the queues is read alone; one that does not ends the program."""
    config = {"integrations": {"frameworks": ["batch/job"]}}
    image = f"registry.k8s.io/kueue/kueue:v{PINS['kueue'].version}"
    spec = {"template": {"spec": {"containers": [{"image": image}]}}}
    mocks.existing[_CRD] = _definition(
        "v1beta1", "v1beta2", webhook="jobs-kueue-webhook-service", namespace="ml"
    )
    mocks.existing["kubernetes:apps/v1:Deployment"] = {"spec": spec}
    mocks.existing["kubernetes:core/v1:ConfigMap"] = {"data": {CONFIG_KEY: yaml.safe_dump(config)}}
    declaration = declare(changed(GKE_EXISTING, addons={"kueue": {"existing": True}}))
    mocks.run(lambda: ExistingAddOn("existing", ADD_ONS["kueue"].spec, declaration))
    assert mocks.read[0] == "localqueues.kueue.x-k8s.io"
    assert sorted(mocks.read[1:]) == ["ml/jobs-kueue-controller-manager", "ml/jobs-kueue-manager-config"]
    assert not {args.typ for args in mocks.resources if args.custom}
    config["integrations"]["frameworks"] = ["pod"]
    mocks.existing["kubernetes:core/v1:ConfigMap"] = {"data": {CONFIG_KEY: yaml.safe_dump(config)}}
    with pytest.raises(ExistingAddOnError, match=r"-manager in ml\):\n.*batch/job is off"):
        mocks.run(lambda: ExistingAddOn("existing", ADD_ONS["kueue"].spec, declaration))


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        ("kueue", "localqueues.kueue.x-k8s.io", "v1beta2"),
        ("trainer", "trainjobs.trainer.kubeflow.org", "v1alpha1"),
        ("trainer", "jobsets.jobset.x-k8s.io", "v1alpha2"),
        ("katib", "experiments.kubeflow.org", "v1beta1"),
    ],
)
def test_existing_kinds(mocks: Mocks, name: str, kind: str, version: str) -> None:
    """The kinds of an existing add-on are read; one without the version that the stack uses is refused."""
    spec = ADD_ONS[name].spec
    mocks.existing |= {_CRD: {}, "kubernetes:apps/v1:Deployment": {}, "kubernetes:core/v1:ConfigMap": {}}
    declaration = declare(changed(GKE_EXISTING, addons={name: {"existing": True}}))
    mocks.run(lambda: Addons("addons", AddonsArgs(declaration=declaration, create_resources=_no_resources)))
    assert kind in mocks.read
    assert check_served(spec, kind, _definition("v1", version)["spec"]).versions == ("v1", version)
    with pytest.raises(ExistingAddOnError, match=f"does not serve {version} of {kind}, only v1:"):
        check_served(spec, kind, _definition("v1")["spec"])


def test_existing_pipelines(mocks: Mocks) -> None:
    """One variable of the API server is set, and nothing else of its Deployment."""
    api_server = {
        "name": "ml-pipeline-api-server",
        "image": f"ghcr.io/kubeflow/kfp-api-server:{PINS['pipelines'].version}",
        "env": [{"name": "COMPILED_PIPELINE_SPEC_PATCH", "value": "{}"}],
    }
    spec = {"template": {"spec": {"containers": [api_server]}}}
    mocks.existing["kubernetes:apps/v1:Deployment"] = {"spec": spec}
    mocks.run(
        lambda: ExistingPipelines(
            "existing", ExistingPipelinesArgs(declared=DeclaredPipelines(existing=True))
        )
    )
    (patch,) = mocks.of_type("kubernetes:apps/v1:DeploymentPatch")
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in container["env"]] == ["COMPILED_PIPELINE_SPEC_PATCH"]
