"""Subjects that RBAC lets become more than they are: each has a written reason."""

import pytest

from ebbtide.declaration.model.addons import ADD_ONS
from rehearsal.tests.adversarial import stack
from rehearsal.tests.adversarial.escalation import POWERS, holders, reasons

pytestmark = [pytest.mark.rehearsal, pytest.mark.released(*stack.MANIFESTS)]


def test_every_power_has_a_reason(parts: list[stack.Part]) -> None:
    """The powers of all subjects of all add-ons are those of escalation.yaml, and in its namespaces."""
    objects = [item for part in parts for item in part.objects]
    system = {"kube-system", *(add_on.spec.namespace for add_on in ADD_ONS.values())} - {""}
    written: dict[str, dict[str, str]] = {}
    for reason in reasons():
        assert reason.power in POWERS
        written.setdefault(reason.subject, {})[reason.power] = reason.scope
    assert holders(objects, system) == written
