"""Logs of deleted pods: the query, and the address of a page with its results."""

import base64
import gzip
import re
from typing import Final
from urllib.parse import quote

from ebbtide.placement import Profile
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.names import is_label, is_subdomain

_KEY: Final = re.compile(r"(?:[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?")
_PORTAL: Final = (
    "https://portal.azure.com/#blade/Microsoft_OperationsManagementSuite_Workspace/Logs.ReactView/resourceId/"
)


def log_query(profile: Profile, *, namespace: str, pod: str = "", job: str = "", label: str = "") -> str:
    """Return the query for pods' logs in the language of the cloud's log store, including deleted pods. It
    has no time range: the page or the command that runs it adds one.

    Args:
        profile: the cluster.
        namespace: namespace of the pods.
        pod: name of a pod.
        job: name of a Job or a sweep, for all of its pods.
        label: label of pods, `key=value`: of a pipeline run (`pipeline/runid=…`), or of a labelled step. On
            AKS, the agent must collect pod labels, which it does not by default (azure-monitor docs,
            container-insights-logs-schema).

    Raises:
        WorkloadError: not exactly one of pod, job and label is given, or it is malformed.
    """
    _check(namespace, pod, job, label)
    query = profile.logs.query
    if not pod:
        template, chosen = _clause(profile, job, label)
        if template not in query:
            raise WorkloadError(
                "The profile's query supports only a single pod: write the profile again with `ebbtide "
                "profile`, or name a pod."
            )
        query = query.replace(template, chosen).replace(
            "project TimeGenerated,", "project TimeGenerated, PodName,"
        )
    return query.replace("{namespace}", namespace).replace("{pod}", pod)


def log_link(
    profile: Profile, *, namespace: str, pod: str = "", job: str = "", label: str = "", workspace: str = ""
) -> str:
    """Return the URL of a page with pods' logs.

    Args:
        profile: the cluster.
        namespace: as in `log_query`.
        pod: as in `log_query`.
        job: as in `log_query`.
        label: as in `log_query`.
        workspace: on AKS, resource id of the Log Analytics workspace, which the profile does not have. The
            form of the address is undocumented; it is that of the portal's own sharing (2026).

    Returns:
        The address; empty on AKS without `workspace`.

    Raises:
        WorkloadError: as in `log_query`.
    """
    query = log_query(profile, namespace=namespace, pod=pod, job=job, label=label)
    if profile.logs.link:
        return profile.logs.link.replace(quote(profile.logs.query, safe="{}"), quote(query, safe=""))
    if not workspace:
        return ""
    packed = base64.b64encode(gzip.compress(query.encode(), mtime=0)).decode()
    shared = f"LogsBlade.AnalyticsShareLinkToQuery/q/{quote(packed, safe='')}"
    return f"{_PORTAL}{quote(workspace, safe='')}/source/{shared}"


def _check(namespace: str, pod: str, job: str, label: str) -> None:
    problems = Problems()
    problems.check(sum(map(bool, (pod, job, label))) == 1, "Name one of pod, job and label.")
    problems.check(is_label(namespace), f"namespace is {namespace!r}, which is not a valid namespace name.")
    problems.check(not pod or is_subdomain(pod), f"pod is {pod!r}, which is not a valid pod name.")
    problems.check(not job or is_label(job), f"job is {job!r}, which is not a valid Job name.")
    key, _, value = label.partition("=")
    problems.check(
        not label or (_KEY.fullmatch(key) and _VALUE.fullmatch(value)),
        f"label is {label!r}; write it as key=value.",
    )
    problems.end()


def _clause(profile: Profile, job: str, label: str) -> tuple[str, str]:
    """Return the query's condition on a pod, and its replacement.

    Cloud Logging has pods' labels, with `_` for each dot of a key (GKE's own entries, 2024). Container
    insights has none by default, so a Job's pods are selected by name, which the Job controller generates:
    `<job>-<5 characters>`, with the index in between for a sweep.
    """
    key, _, value = (label or f"batch.kubernetes.io/job-name={job}").partition("=")
    if profile.cloud == "gke":
        return 'resource.labels.pod_name="{pod}"', f'labels."k8s-pod/{key.replace(".", "_")}"="{value}"'
    template = 'PodName == "{pod}"'
    if job:
        return template, f'PodName matches regex @"^{re.escape(job)}(-[0-9]+)?-[a-z0-9]{{5}}$"'
    return template, f'tostring(parse_json(tostring(KubernetesMetadata.podLabels))["{key}"]) == "{value}"'
