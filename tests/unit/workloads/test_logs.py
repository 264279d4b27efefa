import base64
import gzip
import re
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.placement import LogsProfile
from ebbtide.work.errors import WorkloadError
from ebbtide.work.logs import log_link, log_query
from tests.unit.workloads.clusters import DEV, DEV_AKS

_STEP = "pipeline/runid=0b1c"


def test_one_pod_on_gke() -> None:
    """The profile's own query, for that pod."""
    lines = log_query(DEV, namespace="vision", pod="train-x7k2p").splitlines()
    assert lines[-2:] == [
        'resource.labels.namespace_name="vision"',
        'resource.labels.pod_name="train-x7k2p"',
    ]


def test_a_job_and_a_step_on_gke() -> None:
    """By their pods' labels, whose dots Cloud Logging writes as underscores."""
    job = log_query(DEV, namespace="vision", job="train")
    assert job.endswith('labels."k8s-pod/batch_kubernetes_io/job-name"="train"')
    assert "pod_name" not in job
    step = log_query(DEV, namespace="kubeflow", label=_STEP)
    assert step.endswith('labels."k8s-pod/pipeline/runid"="0b1c"')


def test_a_job_on_aks() -> None:
    """By the names that the Job controller gives its pods, and those of no other Job."""
    query = log_query(DEV_AKS, namespace="vision", job="train")
    match = re.search(r'PodName matches regex @"([^"]+)"', query)
    assert match is not None
    assert [name for name in ("train-x7k2p", "train-12-x7k2p") if re.search(match[1], name)]
    assert not re.search(match[1], "train-large-x7k2p")
    assert "| project TimeGenerated, PodName, ContainerName, LogMessage" in query


def test_a_pod_and_a_step_on_aks() -> None:
    """A pod by its name, a step by a label of its pod."""
    assert 'PodName == "train-x7k2p"' in log_query(DEV_AKS, namespace="vision", pod="train-x7k2p")
    step = log_query(DEV_AKS, namespace="kubeflow", label=_STEP)
    assert 'tostring(parse_json(tostring(KubernetesMetadata.podLabels))["pipeline/runid"]) == "0b1c"' in step


_NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.sampled_from(["pod", "job"]), _NAMES, _NAMES)
def test_the_link_carries_the_query(kind: str, name: str, namespace: str) -> None:
    """The page that it leads to shows what the query says, for the last week."""
    chosen = {kind: name}
    address = urlsplit(log_link(DEV, namespace=namespace, **chosen))
    query = unquote(address.path.partition(";query=")[2].removesuffix(";duration=P7D"))
    assert query == log_query(DEV, namespace=namespace, **chosen)
    assert (address.netloc, address.query) == ("console.cloud.google.com", "project=acme-ml")


def test_the_link_on_aks_needs_the_workspace() -> None:
    """Without it there is none; with it the query is packed as the portal packs it."""
    assert log_link(DEV_AKS, namespace="vision", job="train") == ""
    workspace = "/subscriptions/1/resourceGroups/g/providers/Microsoft.OperationalInsights/workspaces/w"
    link = log_link(DEV_AKS, namespace="vision", job="train", workspace=workspace)
    resource, _, packed = link.partition("/resourceId/")[2].partition(
        "/source/LogsBlade.AnalyticsShareLinkToQuery/q/"
    )
    assert unquote(resource) == workspace
    query = gzip.decompress(base64.b64decode(unquote(packed))).decode()
    assert query == log_query(DEV_AKS, namespace="vision", job="train")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Name one of pod, job and label"),
        ({"pod": "a", "job": "b"}, "Name one of pod, job and label"),
        ({"pod": 'x" OR "'}, "which is not a valid pod name"),
        ({"job": "A"}, "job is 'A', which is not a valid Job name."),
        ({"label": "key"}, "label is 'key'; write it as key=value"),
        ({"label": 'a="b"'}, "write it as key=value"),
        ({"pod": "a", "namespace": ""}, "namespace is '', which is not a valid namespace name."),
    ],
)
def test_invalid_arguments(given: dict[str, str], message: str) -> None:
    """And nothing that is no name gets into a query."""
    with pytest.raises(WorkloadError, match=re.escape(message)):
        log_query(DEV, **{"namespace": "vision"} | given)


def test_a_query_that_is_not_known() -> None:
    """A profile with a query of another form still finds pods, and says that it finds no more."""
    other = replace(DEV, logs=LogsProfile(query="{namespace}/{pod}", link=""))
    assert log_query(other, namespace="vision", pod="a") == "vision/a"
    with pytest.raises(WorkloadError, match="supports only a single pod"):
        log_query(other, namespace="vision", job="a")
