"""Assumed responses as templates: most of a cloud's response is derived from the request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ebbtide.analysis.recording.assumed_values import WORD, uuid_for
from ebbtide.analysis.recording.assumption_tables import Answer, InvokeRule, Question, ResourceRule
from ebbtide.analysis.recording.values import Plain

Template: TypeAlias = "str | bool | Mapping[str, Template] | Sequence[Template]"
"""JSON whose strings reference facts: `projects/{project}/zones/{zone}`."""


class ResourceTemplate(NamedTuple):
    """A cloud's response for a resource.

    Attributes:
        id: template of the id.
        outputs: templates of the outputs that are not inputs; everything else stays unknown.
    """

    id: str
    outputs: Mapping[str, Template] = {}


Derivation = Callable[["Facts"], str | None]
"""Derive a fact from others; None if impossible."""


class Text(str):
    """A fact in a template. `{cluster:last}` is the last segment of a path, `{location:region}` a zone's
    region.
    """

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        match spec:
            case "last":
                return self.rpartition("/")[2]
            case "region":
                head, _, tail = self.rpartition("-")
                return head if len(tail) == 1 else str(self)
            case "lower":
                return self.lower()
            case _:
                return super().__format__(spec)


class Facts(dict[str, str]):
    """The facts that a template may reference.

    In order of precedence: inputs, parts of an existing resource's id, provider settings, the cloud's
    derivations, and an assumed word. `{uuid_anything}` is an assumed UUID, different for each name.
    """

    def __init__(self, question: Question, derivations: Mapping[str, Derivation]) -> None:
        super().__init__()
        self.question = question
        self._derivations = derivations
        self._parts = _parts(question.id)

    def known(self, key: str) -> str | None:
        """Return a fact that is not assumed."""
        return self.question.text(key) or self._parts.get(key) or self.question.setting(key)

    def __missing__(self, key: str) -> str:
        if key.startswith("uuid_"):
            return uuid_for(f"{key} {self.question.token} {self.question.name} {self.question.id}")
        derive = self._derivations.get(key)
        text = self.known(key) or (derive(self) if derive else None) or f"{WORD}-{key.lower()}"
        return self.setdefault(key, Text(text))


# Path segments that precede names in an id, and the tables' terms for those names.
_PARTS: Final = {
    "projects": "project",
    "locations": "location",
    "regions": "region",
    "zones": "zone",
    "clusters": "cluster",
    "subscriptions": "subscriptionId",
    "resourceGroups": "resourceGroupName",
    "managedClusters": "resourceName",
    "virtualNetworks": "virtualNetworkName",
}


def _parts(id_: str | None) -> dict[str, str]:
    """Parse an existing resource's id: `projects/p/locations/l/clusters/c` has a project, a location, a
    name.
    """
    if not id_:
        return {}
    segments = id_.split("/")
    parts = {_PARTS[segment]: segments[i + 1] for i, segment in enumerate(segments[:-1]) if segment in _PARTS}
    return {**parts, "name": segments[-1]}


def rendered(template: Template, facts: Mapping[str, str]) -> Plain:
    """Fill in a template."""
    if isinstance(template, str):
        return template.format_map(facts)
    if isinstance(template, bool):
        return template
    if isinstance(template, Mapping):
        return {key: rendered(item, facts) for key, item in template.items()}
    return [rendered(item, facts) for item in template]


def rendered_properties(templates: Mapping[str, Template], facts: Mapping[str, str]) -> dict[str, Plain]:
    """Fill in the templates of a resource's properties."""
    return {key: rendered(item, facts) for key, item in templates.items()}


def resource_rule(
    derivations: Mapping[str, Derivation], id_: str, outputs: Mapping[str, Template]
) -> ResourceRule:
    """Build a rule from templates for the id and the outputs."""

    def rule(question: Question) -> Answer:
        facts = Facts(question, derivations)
        return Answer(id_.format_map(facts), rendered_properties(outputs, facts))

    return rule


def invoke_rule(derivations: Mapping[str, Derivation], result: Mapping[str, Template]) -> InvokeRule:
    """Build a rule from templates for a function's result."""

    def rule(question: Question) -> dict[str, Plain]:
        return rendered_properties(result, Facts(question, derivations))

    return rule
