"""Policy rules over recorded resources: each has a stack that breaks it, and one that does not."""

import copy
import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from ebbtide.analysis.policy.check import BY_ID, EXCEPTIONS, LOOSENED, RULES, Earlier, Finding, policy_of
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.recording.recording import Resource
from ebbtide.analysis.recording.values import UNKNOWN, Secret
from tests.unit.policy.stacks_in_memory import AKS, AKS_POOL, GKE, GKE_POOL, findings, resource, system_pool

_CHART = "kubernetes:helm.sh/v4:Chart"
_DEPLOYMENT = "kubernetes:apps/v1:Deployment"
_STATEFUL_SET = "kubernetes:apps/v1:StatefulSet"
_KUSTOMIZATION = "kubernetes:kustomize/v2:Directory"
_PIPELINES = "ebbtide:addons:Pipelines"


def _gke(**changes: Any) -> Resource:
    return resource(GKE, {path.replace("__", "."): value for path, value in changes.items()})


def _pod(type_: str, **spec: Any) -> Resource:
    return resource(type_, {"spec.template.spec": spec})


def _image(image: object) -> tuple[Resource, ...]:
    return (_pod(_DEPLOYMENT, containers=[{"image": image}]),)


def _life(hours: int) -> Resource:
    return resource("ebbtide:stack:Lifetime", {"hours": hours}, custom=False)


_TOLERATIONS = [{"key": "cloud.google.com/gke-spot", "operator": "Exists"}]
_CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
_SYSTEM, _SPOT_SYSTEM, _POOL = system_pool(), system_pool(spot=True), resource(GKE_POOL)


def _login(login: object) -> Resource:
    plugin = {"command": "kubelogin", "args": ["get-token", "--login", login]}
    kubeconfig = json.dumps({"users": [{"user": {"exec": plugin}}]})
    return resource("pulumi:providers:kubernetes", {"kubeconfig": Secret(kubeconfig)})


_LIMITS: dict[str, Any] = {
    "workload-identity-login": {"ci": True},
    "idle-cost": {"idleUsdPerHour": 0.01},
    "maximum-cost": {"maximumUsdPerHour": 0.5},
    "approved-regions": {"regions": ["europe-*"]},
    "approved-machines": {"machines": ["e2-*", "standard_d*"]},
    "lifetime": {"ephemeralStacks": ["dev*"]},
    "longest-lifetime": {"lifetimeHours": 8},
}

_BROKEN: dict[str, list[tuple[Resource, ...]]] = {
    "idle-cost": [(_gke(), _SYSTEM)],
    "maximum-cost": [(_gke(), _POOL)],
    "approved-regions": [
        (_gke(),),
        (_gke(location="europe-west1"), resource(GKE_POOL, {"nodeLocations": ["us-east1-b"]})),
        (resource(AKS),),
    ],
    "approved-machines": [(_POOL,), (resource(AKS_POOL, {"vmSize": "Standard_NC4as_T4_v3"}),)],
    "lifetime": [(_gke(resourceLabels=None),), (resource(AKS, {"tags": None}),)],
    "longest-lifetime": [(_gke(), _life(9))],
    "work-pools-tainted": [
        (resource(GKE_POOL, {"nodeConfig.taints": None}),),
        (resource(AKS_POOL, {"nodeTaints": []}),),
        (_SYSTEM, resource(GKE_POOL, {"nodeConfig.taints": None, "autoscaling.totalMinNodeCount": 1})),
    ],
    "work-pools-from-zero": [
        (resource(GKE_POOL, {"autoscaling.totalMinNodeCount": 1}),),
        (resource(GKE_POOL, {"autoscaling": None, "nodeCount": 2}),),
        (resource(AKS_POOL, {"enableAutoScaling": False, "count": 1}),),
    ],
    "spot-system": [(_SPOT_SYSTEM,), (system_pool(preemptible=True),)],
    "spot-stateful": [
        (_SPOT_SYSTEM, _pod(_STATEFUL_SET)),
        (_SPOT_SYSTEM, _pod(_DEPLOYMENT, volumes=_CLAIM)),
        (_SPOT_SYSTEM, resource(_PIPELINES, custom=False)),
        (_POOL, _pod(_STATEFUL_SET, tolerations=_TOLERATIONS)),
        (_POOL, _pod(_STATEFUL_SET, tolerations=[{"operator": "Exists"}])),
        (
            _POOL,
            _pod(_STATEFUL_SET, tolerations=_TOLERATIONS, nodeSelector={"ebbtide.dev/pool": "cpu"}),
        ),
    ],
    "private-nodes": [
        (_gke(privateClusterConfig__enablePrivateNodes=False),),
        (_gke(privateClusterConfig=None),),
        (_gke(), resource(GKE_POOL, {"networkConfig.enablePrivateNodes": False})),
        (resource(AKS_POOL, {"enableNodePublicIP": True}),),
        (resource(AKS, {"agentPoolProfiles": [{"name": "system", "enableNodePublicIP": True}]}),),
    ],
    "control-plane-access": [
        (_gke(controlPlaneEndpointsConfig=None),),
        (
            _gke(
                controlPlaneEndpointsConfig=None,
                masterAuthorizedNetworksConfig__cidrBlocks=[{"cidrBlock": "0.0.0.0/0"}],
            ),
        ),
        (resource(AKS, {"apiServerAccessProfile": None}),),
        (resource(AKS, {"apiServerAccessProfile.authorizedIPRanges": ["203.0.113.0/24", "0.0.0.0/0"]}),),
    ],
    "workload-identity-login": [(_login("azurecli"),)],
    "permanent-protected": [
        (_gke(resourceLabels=None, deletionProtection=False),),
        (resource(AKS, {"tags": None}),),
    ],
    "fixed-versions": [
        *map(_image, ("busybox", "busybox:latest", "registry.acme.example:5000/tool", Secret("tool"))),
        (_pod("kubernetes:batch/v1:Job", initContainers=[{"image": "a:main"}]),),
        (resource("kubernetes:core/v1:Pod", {"spec.containers": [{"image": "a"}]}),),
        (resource(_CHART, {"chart": "kueue"}),),
        (resource(_CHART, {"chart": "kueue", "version": "^1.2"}),),
        (resource("kubernetes:helm.sh/v3:Release", {"chart": "kueue", "version": "1.x"}),),
        (resource(_KUSTOMIZATION, {"directory": "https://github.com/a/b/c"}),),
        (resource(_KUSTOMIZATION, {"directory": "https://github.com/a/b/c?ref=main"}),),
    ],
}

_KEPT: dict[str, list[tuple[Resource, ...]]] = {
    "idle-cost": [(_POOL,)],
    "maximum-cost": [(_gke(), _SYSTEM)],
    "approved-regions": [
        (_gke(location="europe-west1-b"), resource(GKE_POOL, {"location": "europe-west1-b"})),
        (resource(AKS_POOL, {"availabilityZones": ["1", "2"]}),),
    ],
    "approved-machines": [(_SYSTEM,), (resource(AKS_POOL),)],
    "lifetime": [(_gke(),), (resource(AKS),)],
    "workload-identity-login": [
        (_login("workloadidentity"),),
        (resource("pulumi:providers:kubernetes", {"kubeconfig": UNKNOWN}),),
    ],
    "longest-lifetime": [(_gke(),), (_gke(), _life(8))],
    "work-pools-tainted": [
        (_gke(), _SYSTEM, _POOL),
        (resource(AKS), resource(AKS_POOL)),
        (resource(AKS_POOL, {"nodeTaints": ["a=b:PreferNoSchedule"]}),),
        (resource(GKE_POOL, {"nodeConfig.taints": None, "nodeConfig.machineType": "a2-highgpu-1g"}),),
    ],
    "work-pools-from-zero": [(_SYSTEM, _POOL), (resource(AKS), resource(AKS_POOL))],
    "spot-system": [(_SYSTEM, _POOL), (resource(AKS), resource(AKS_POOL, {"scaleSetPriority": "Spot"}))],
    "spot-stateful": [
        (_SYSTEM, _POOL, _pod(_STATEFUL_SET), resource(_PIPELINES, custom=False)),
        (_SPOT_SYSTEM, _pod(_DEPLOYMENT)),
        (_POOL, _pod(_STATEFUL_SET, tolerations=[{"key": "other", "operator": "Exists"}])),
        (_POOL, _pod(_STATEFUL_SET, tolerations=[{**_TOLERATIONS[0], "effect": "NoExecute"}])),
        (
            _POOL,
            _pod(_STATEFUL_SET, tolerations=_TOLERATIONS, nodeSelector={"ebbtide.dev/pool": "other"}),
        ),
    ],
    "private-nodes": [
        (_gke(), _POOL),
        (_gke(privateClusterConfig=None, networkConfig__defaultEnablePrivateNodes=True),),
        (resource(AKS), resource(AKS_POOL)),
    ],
    "control-plane-access": [
        (_gke(),),
        (_gke(controlPlaneEndpointsConfig=None, privateClusterConfig__enablePrivateEndpoint=True),),
        (
            _gke(
                controlPlaneEndpointsConfig=None,
                masterAuthorizedNetworksConfig__cidrBlocks=[{"cidrBlock": "203.0.113.0/24"}],
            ),
        ),
        (resource(AKS),),
        (resource(AKS, {"apiServerAccessProfile": {"enablePrivateCluster": True}}),),
    ],
    "permanent-protected": [
        (_gke(deletionProtection=False), resource(AKS)),
        (_gke(resourceLabels=None),),
        (resource(AKS, {"tags": None}, protect=True),),
    ],
    "fixed-versions": [
        *map(_image, ("busybox:1.37", "a@sha256:0a", "registry.acme.example:5000/tool:1", UNKNOWN)),
        (resource(_DEPLOYMENT, {"spec.template.spec.containers": [{"image": "a"}]}, read=True),),
        (resource(_CHART, {"chart": "kueue", "version": "0.19.2"}), resource(_CHART, {"chart": "./kueue"})),
        (resource(_CHART),),
        (resource(_KUSTOMIZATION, {"directory": "https://github.com/a/b/c?ref=v1.2"}),),
        (resource(_KUSTOMIZATION, {"directory": "manifests"}),),
    ],
}


def _cases(table: dict[str, list[tuple[Resource, ...]]]) -> Iterator[Any]:
    for rule, stacks in table.items():
        for number, stack in enumerate(stacks):
            yield pytest.param(rule, stack, id=f"{rule}-{number}")


def _of(rule: str, resources: tuple[Resource, ...]) -> list[Any]:
    limits = _LIMITS.get(rule, {"ephemeralStacks": []})
    return [item for item in findings(*resources, policy={"limits": limits}) if item.rule.id == rule]


@pytest.mark.parametrize(("rule", "stack"), list(_cases(_BROKEN)))
def test_a_broken_rule_is_found(rule: str, stack: tuple[Resource, ...]) -> None:
    """Once, at its default level, and with no secret in its message."""
    (finding,) = _of(rule, stack)
    assert finding.level is BY_ID[rule].level
    assert finding.message.endswith((".", "?"))
    assert "Secret(" not in finding.message


@pytest.mark.parametrize(("rule", "stack"), list(_cases(_KEPT)))
def test_a_kept_rule_is_silent(rule: str, stack: tuple[Resource, ...]) -> None:
    """On the stack that differs from a broken one in what the rule is about."""
    assert _of(rule, stack) == []


def test_every_rule_has_both_cases() -> None:
    """The rules about the policy itself, and those of a change, have theirs below."""
    expected = (
        {rule.id for rule in RULES}
        - {EXCEPTIONS.id, LOOSENED.id}
        - {rule.id for rule in RULES if rule.is_of_change}
    )
    assert set(_BROKEN) == set(_KEPT) == expected


def test_levels_of_the_stack() -> None:
    """Replace the defaults; a disabled rule is not run."""
    broken = _BROKEN["spot-system"][0]
    levels = [
        [item.level for item in findings(*broken, policy={"levels": {"spot-system": level}})]
        for level in ("mandatory", "disabled")
    ]
    assert levels == [[Level.MANDATORY], []]


_TODAY = date(2027, 1, 31)


def _excepted(stack: tuple[Resource, ...], **exception: Any) -> list[tuple[str, str]]:
    written = {"rule": "work-pools-tainted", "resource": "cpu", "reason": "a test", **exception}
    policy = {"exceptions": [written]}
    return [(item.rule.id, item.exception) for item in findings(*stack, policy=policy, today=_TODAY)]


@pytest.mark.parametrize(
    "resource_name", ["cpu", "pool cpu", "nodepool", f"urn:pulumi:dev::ebbtide::{GKE_POOL}::nodepool"]
)
def test_an_exception_is_shown_with_its_reason(resource_name: str) -> None:
    """An exception names a resource by its cloud name, logical name or URN, and includes its last day."""
    stack = _BROKEN["work-pools-tainted"][0]
    shown = "a test (until 2027-01-31)"
    assert _excepted(stack, resource=resource_name, until="2027-01-31") == [("work-pools-tainted", shown)]
    assert _excepted(stack, resource=resource_name) == [("work-pools-tainted", "a test")]


def test_an_expired_exception_excuses_nothing() -> None:
    """The finding stays, and the exception is reported."""
    stack = _BROKEN["work-pools-tainted"][0]
    assert _excepted(stack, until="2027-01-30") == [("work-pools-tainted", ""), (EXCEPTIONS.id, "")]


def test_an_unused_exception_is_reported() -> None:
    """Unless that rule is disabled."""
    stack = _KEPT["work-pools-tainted"][0]
    assert _excepted(stack) == [(EXCEPTIONS.id, "")]
    exception = {"rule": "lifetime", "resource": "stack", "reason": "a test"}
    policy = {"exceptions": [exception], "levels": {EXCEPTIONS.id: "disabled"}}
    assert findings(*stack, policy=policy) == ()


def test_the_whole_stack_is_excepted_by_name() -> None:
    """Cost has no resource."""
    policy = {
        "limits": _LIMITS["idle-cost"],
        "exceptions": [{"rule": "idle-cost", "resource": "stack", "reason": "a test"}],
    }
    (finding,) = findings(*_BROKEN["idle-cost"][0], policy=policy)
    assert (finding.exception, finding.is_refused) == ("a test", False)


@pytest.mark.parametrize("name", ["idle", "maximum"])
def test_a_month_has_730_hours(name: str) -> None:
    """A limit per month is compared with the cost of 730 hours, and broken by the same stacks."""
    resources = _BROKEN[f"{name}-cost"][0]

    def found(limit: str, usd: float) -> list[str]:
        policy = {"limits": {f"{name}UsdPer{limit}": usd}}
        return [
            item.message for item in findings(*resources, policy=policy) if item.rule.id == f"{name}-cost"
        ]

    (message,) = found("Hour", 0.01)
    hourly = float(message.partition(" USD")[0].split()[-1].lstrip("~"))
    assert found("Month", (hourly + 0.01) * 730) == []
    (monthly,) = found("Month", (hourly - 0.01) * 730)
    assert "USD per month" in monthly


def test_an_unknown_price_leaves_a_limit_undecided() -> None:
    """The known part is compared; a sum below the limit is not called within it."""
    unknown = resource(GKE_POOL, {"nodeConfig.machineType": "z9-standard-8"})
    messages = {
        limit: [
            (item.level, item.message)
            for item in findings(unknown, _SYSTEM, policy={"limits": {"maximumUsdPerHour": limit}})
        ]
        for limit in (0.01, 100)
    }
    ((level, message),) = messages[0.01]
    assert level is Level.MANDATORY
    assert "at least" in message
    ((level, message),) = messages[100]
    assert level is Level.ADVISORY
    assert "z9-standard-8" in message


_STRICT: dict[str, Any] = {
    "levels": {"spot-system": "mandatory"},
    "limits": {
        "maximumUsdPerHour": 0.01,
        "regions": ["us-central1"],
        "ephemeralStacks": ["pr", "pr-*", "dev"],
        "ci": True,
    },
    "exceptions": [{"rule": "private-nodes", "resource": "cpu", "reason": "a test", "until": "2027-01-31"}],
}
_LOOSE: dict[str, tuple[dict[str, Any], str]] = {
    "level": ({"levels": {"spot-system": "advisory"}}, "spot-system is advisory, and was mandatory"),
    "limit raised": ({"limits.maximumUsdPerHour": 20}, "limits.maximumUsdPerHour is 20.0, and was 0.01"),
    "limit removed": (
        {"limits.maximumUsdPerHour": None},
        "limits.maximumUsdPerHour is not set, and was 0.01",
    ),
    "regions": (
        {"limits.regions": ["us-central1", "*"]},
        "limits.regions is [us-central1, *], and was [us-central1]",
    ),
    "ephemeral stacks": (
        {"limits.ephemeralStacks": ["pr-*", "other"]},
        "limits.ephemeralStacks is [pr-*, other], and was [pr, pr-*, dev]",
    ),
    "ci": ({"limits.ci": False}, "limits.ci is false, and was true"),
    "exception": (
        {
            "exceptions": [
                *_STRICT["exceptions"],
                {"rule": "lifetime", "resource": "stack", "reason": "a test"},
            ]
        },
        "an exception to lifetime for stack is valid without an end, and is new (reason: a test)",
    ),
    "longer exception": (
        {"exceptions": [{**_STRICT["exceptions"][0], "until": "2027-02-01"}]},
        "an exception to private-nodes for cpu is valid until 2027-02-01, and was valid until 2027-01-31",
    ),
}
_TIGHT: dict[str, dict[str, Any]] = {
    "the same": {},
    "level": {"levels": {"spot-system": "mandatory", "work-pools-from-zero": "mandatory"}},
    "limit lowered": {"limits.maximumUsdPerHour": 0.001},
    "limit added": {"limits.idleUsdPerHour": 1},
    "regions": {"limits.regions": []},
    "ephemeral stacks": {"limits.ephemeralStacks": ["pr", "pr-*", "dev", "test-*"]},
    "exception": {"exceptions": []},
}


def _changed_policy(changes: dict[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = copy.deepcopy(_STRICT)
    for path, value in changes.items():
        *parents, key = path.split(".")
        (policy[parents[0]] if parents else policy)[key] = value
    return policy


def _against(earlier: object, policy: object, *stack: Resource, **facts: Any) -> list[Finding]:
    found = findings(*stack, policy=policy, earlier=Earlier(policy_of(earlier), **facts), today=_TODAY)
    return [item for item in found if item.rule != EXCEPTIONS]


@pytest.mark.parametrize(("changes", "part"), _LOOSE.values(), ids=_LOOSE)
def test_a_loosened_policy_is_a_finding(changes: dict[str, Any], part: str) -> None:
    """Each part of it, even if nothing violates it."""
    (finding,) = _against(_STRICT, _changed_policy(changes))
    assert (finding.rule, finding.level) == (LOOSENED, Level.ADVISORY)
    assert finding.message.startswith(f"The change loosens the policy: {part}")


@pytest.mark.parametrize("changes", _TIGHT.values(), ids=_TIGHT)
def test_a_tightened_policy_is_none(changes: dict[str, Any]) -> None:
    """Nor is one that stays."""
    assert _against(_STRICT, _changed_policy(changes)) == []


def test_a_limit_that_was_off_is_not_loosened() -> None:
    """A limit may then be omitted or set."""
    for limits in ({}, {"ci": True}):
        assert _against({"limits": {"ci": False}}, {"limits": limits}) == []


def test_of_two_equal_findings_the_new_policy_has_itsfindings() -> None:
    """With its own limit, and without the words about the earlier policy."""
    stack = (*_BROKEN["maximum-cost"][0], _life(1))
    found = _against(_STRICT, _changed_policy({"limits.maximumUsdPerHour": 0.02}), *stack)
    (message,) = [item.message for item in found if item.rule.id == "maximum-cost"]
    assert "the limit is 0.02." in message
    assert "decides" not in message


def test_a_change_cannot_allow_itself_to_loosen_the_policy() -> None:
    """The stricter level of that rule counts as well."""
    earlier = {"levels": {LOOSENED.id: "mandatory"}}
    (finding,) = _against(earlier, {"levels": {LOOSENED.id: "disabled"}})
    assert finding.is_refused


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": {}},
        {"limits.maximumUsdPerHour": 1000},
        {"levels": {"maximum-cost": "disabled"}},
        {"exceptions": [{"rule": "maximum-cost", "resource": "stack", "reason": "mine"}]},
    ],
)
def test_the_stricter_policy_decides(changes: dict[str, Any]) -> None:
    """A violation of the earlier policy is refused once, whatever the new one permits; and in a policy that
    becomes stricter, the new one decides."""
    stack = (*_BROKEN["maximum-cost"][0], _life(1))
    for before, after in ((_STRICT, _changed_policy(changes)), (_changed_policy(changes), _STRICT)):
        (finding,) = [item for item in _against(before, after, *stack) if item.rule.id == "maximum-cost"]
        assert finding.is_refused
        assert "the limit is 0.01." in finding.message
        assert ("before this change decide" in finding.message) == (before is _STRICT)


_EXPIRED = {
    "rule": "maximum-cost",
    "resource": "stack",
    "reason": "a benchmark",
    "until": "2026-01-31",
}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"limits.maximumUsdPerHour": 1000}, "limits.maximumUsdPerHour is 1000.0, and was 0.01"),
        (
            {"exceptions": [{**_EXPIRED, "until": "2027-01-31"}]},
            "maximum-cost for stack is valid until 2027-01-31, and was valid until 2026-01-31",
        ),
        ({"limits": {}}, "limits.maximumUsdPerHour is not set, and was 0.01"),
        ({"levels": {"maximum-cost": "disabled"}}, "maximum-cost is disabled, and was mandatory"),
    ],
)
def test_a_policy_alone_is_not_refused_by_itself(changes: dict[str, Any], part: str) -> None:
    """If the stack violates the earlier policy, a change of the policy alone is a warning that says what
    it loosens, until when, by whose commits, and what it permits."""
    stack = (*_BROKEN["maximum-cost"][0], _life(1))
    earlier = _changed_policy({"exceptions": [_EXPIRED], "levels": {LOOSENED.id: "mandatory"}})
    later = _changed_policy({"exceptions": [_EXPIRED], **changes})
    found = _against(earlier, later, *stack, decides=False, authors=("Ada", "Bob"))
    assert not any(item.is_refused for item in found)
    messages = [item.message for item in found if item.rule == LOOSENED]
    assert "The change by Ada and Bob loosens the policy: " in " ".join(messages)
    assert part in " ".join(messages)
    assert all("Nothing else changes:" in text or "permits what fails" in text for text in messages)
    assert any(text.startswith("The change permits what fails maximum-cost today: ") for text in messages)
    assert any(item.is_refused for item in _against(earlier, later, *stack))


def test_a_policy_alone_permits_no_more_than_it_says() -> None:
    """A violation of both policies is refused by the new one, with its own limit."""
    stack = (*_BROKEN["maximum-cost"][0], _life(1))
    later = _changed_policy({"limits.maximumUsdPerHour": 0.02})
    refused = [item for item in _against(_STRICT, later, *stack, decides=False) if item.is_refused]
    assert ["the limit is 0.02." in item.message for item in refused] == [True]
