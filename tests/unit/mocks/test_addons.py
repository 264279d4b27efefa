"""Add-ons that exist on a cluster, on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any, Final

import pytest
import yaml

from components.addons.addons import Addons, AddonsArgs
from components.addons.existing import ExistingAddOn, ExistingAddOnError, check_served
from components.addons.pipeline_retries import ExistingPipelines
from components.addons.teams import TeamResources
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.model.addons import Pipelines as DeclaredPipelines
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.kueue_settings import CONFIG_KEY
from tests.contract.flips import GKE_EXISTING
from tests.declarations import changed
from tests.unit.mocks.mocked import Mocks


def _no_resources(_team: Any) -> TeamResources:
    return TeamResources(annotations={})


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
    mocks.run(lambda: ExistingPipelines("existing", DeclaredPipelines(existing=True)))
    (patch,) = mocks.of_type("kubernetes:apps/v1:DeploymentPatch")
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in container["env"]] == ["COMPILED_PIPELINE_SPEC_PATCH"]
