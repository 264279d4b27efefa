"""Causes of a workload with reserved quota that waits for the cloud's capacity by an admission check."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from ebbtide.kubernetes_api.parts import parts, text
from ebbtide.runs.pending.cause import Actor, Cause
from ebbtide.runs.pending.evidence import Evidence, clock_time
from ebbtide.workloads.objects import Object, condition

_NONE: Mapping[str, Any] = MappingProxyType({})


def provisioning(evidence: Evidence, workload: Object) -> Cause:
    """Return the open admission check of a workload."""
    checks = parts(workload, "status", "admissionChecks")
    open_: Mapping[str, Any] = next((check for check in checks if check.get("state") != "Ready"), _NONE)
    name, state, message = (text(open_, key) for key in ("name", "state", "message"))
    request = evidence.request
    if failed := condition(request, "Failed"):
        return _stock_out(open_, text(failed, "message") or message)
    if state == "Retry":
        return _stock_out(open_, message)
    if state == "Rejected":
        return Cause(
            reason="CheckRejected",
            message=f"admission check {name} rejected it: {message.rstrip('.') or 'it gives no reason'}",
            remedy="its owner can submit it again once that is corrected",
            actor=Actor.OWNER,
        )
    detail = text(condition(request, "Provisioned", "False"), "message") or message
    return Cause(
        reason="WaitingForCapacity",
        message=(
            f"admission check {name} has requested its nodes from the cloud"
            f"{': ' if detail else ''}{detail.rstrip('.')}"
        ),
        remedy="it starts when the cloud has provisioned them",
        actor=Actor.CLOUD,
    )


def _stock_out(check: Mapping[str, Any], message: str) -> Cause:
    since, after = text(check, "lastTransitionTime"), check.get("requeueAfterSeconds")
    until = datetime.fromisoformat(since) + timedelta(seconds=int(str(after))) if since and after else None
    again = f"Kueue requests them again at {clock_time(until)}" if until else "Kueue requests them again"
    return Cause(
        reason="StockOut",
        message=f"the cloud did not provision its nodes: {message.rstrip('.')}",
        remedy=f"{again}; its owner can choose another queue",
        actor=Actor.CLOUD,
        until=until,
    )
