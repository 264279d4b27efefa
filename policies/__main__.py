"""The policy rules of `ebbtide/analysis/policy`, as a Pulumi policy pack.

Levels, limits and exceptions come from the stack's file, under `ebbtide:policy`; the pack has one policy for
each level, since a policy's level is fixed before the engine passes the stack's name.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from ebbtide.analysis.charges import charges
from ebbtide.analysis.policy.check import Finding, check
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import UNKNOWN, Plain
from ebbtide.errors import EbbtideError


def plain(value: Any) -> Plain:
    """Convert properties, which raise an error when an unknown value is read."""
    if isinstance(value, Mapping):
        return {str(key): _item(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_item(value, index) for index in range(len(value))]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _item(values: Any, key: Any) -> Plain:
    try:
        return plain(values[key])
    except UnknownValueError:
        return UNKNOWN


class Inputs:
    """Inputs of the resources of an update, by URN.

    The engine analyzes each resource with its inputs, and the whole stack with outputs, which include
    additions by the cloud: AKS also lists separate node pools in the cluster. Existing resources that are
    only read are not analyzed one by one.
    """

    def __init__(self) -> None:
        self._by_urn: dict[str, dict[str, Plain]] = {}

    def collect(self, args: ResourceValidationArgs, _: ReportViolation) -> None:
        """Keep the inputs of a resource."""
        self._by_urn[args.urn] = dict(plain(args.props))  # pyright: ignore[reportArgumentType] - a mapping

    def resource(self, analyzed: PolicyResource) -> Resource:
        """Return a resource in the form in which a preview records it."""
        inputs = self._by_urn.get(analyzed.urn)
        return Resource(
            urn=analyzed.urn,
            type=analyzed.resource_type,
            name=analyzed.name,
            parent=analyzed.parent.urn if analyzed.parent else None,
            protect=analyzed.opts.protect,
            read=inputs is None,
            inputs=inputs or {},
        )


def findings(inputs: Inputs, resources: Sequence[PolicyResource]) -> tuple[Finding, ...]:
    """Check a stack against the policy of its file.

    Raises:
        EbbtideError: the stack's file is missing or invalid.
    """
    stack, project = resources[0].urn.removeprefix("urn:pulumi:").split("::")[:2]
    recorded = tuple(map(inputs.resource, resources))
    recording = Recording(project=project, stack=stack, resources=recorded)
    clusters, pools = read_clusters(recording), read_pools(recording)
    policy = read_stack(Path.cwd(), stack).policy()
    return check(recording, clusters, pools, charges(recording, clusters, pools), policy)


def _text(finding: Finding) -> str:
    text = f"{finding.rule.id}, {finding.subject}: {finding.message}"
    return f"{text} Excepted: {finding.exception}" if finding.exception else f"{text} {finding.rule.reason}"


def policies() -> list[ResourceValidationPolicy | StackValidationPolicy]:
    """Return the policies of the pack."""
    inputs = Inputs()

    def validate(args: StackValidationArgs, report: ReportViolation, *, refused: bool) -> None:
        if not args.resources:
            return
        try:
            for finding in findings(inputs, args.resources):
                if finding.is_refused is refused:
                    report(_text(finding), finding.subject.urn or None)
        except EbbtideError as error:
            if refused:
                report(str(error), None)

    return [
        ResourceValidationPolicy(
            name="inputs",
            description="Collects the inputs that the other policies check.",
            validate=inputs.collect,
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
        StackValidationPolicy(
            name="mandatory",
            description="A mandatory rule is broken.",
            validate=lambda args, report: validate(args, report, refused=True),
            enforcement_level=EnforcementLevel.MANDATORY,
        ),
        StackValidationPolicy(
            name="advisory",
            description="An advisory rule is broken, or an exception is in force.",
            validate=lambda args, report: validate(args, report, refused=False),
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
    ]


NAME: Final = "ebbtide"

if __name__ == "__main__":
    PolicyPack(NAME, policies())
