"""Assumed answers as templates: most of what a cloud answers is made, by a rule, of what it was asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ebbtide.recording.asking import Answer, InvokeRule, Question, ResourceRule
from ebbtide.recording.marks import WORD, uuid_for
from ebbtide.recording.values import Plain

Template: TypeAlias = "str | bool | Mapping[str, Template] | Sequence[Template]"
"""JSON whose strings name facts: `projects/{project}/zones/{zone}`."""

Derivation = Callable[["Facts"], str | None]
"""How a fact follows from others; None where it does not."""


class Text(str):
    """A fact in a template. `{cluster:last}` is the end of a path, `{location:region}` a zone's region."""

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
    """What a template may name.

    In this order: an input, a part of the id of the existing resource, a setting of the provider, what the
    cloud's table derives, and else an assumed word. `{uuid_anything}` is an assumed UUID, a different one for
    each name.
    """

    def __init__(self, question: Question, derivations: Mapping[str, Derivation]) -> None:
        super().__init__()
        self.question = question
        self._derivations = derivations
        self._parts = _parts(question.id)

    def known(self, key: str) -> str | None:
        """A fact that is given, not assumed."""
        return self.question.text(key) or self._parts.get(key) or self.question.setting(key)

    def __missing__(self, key: str) -> str:
        if key.startswith("uuid_"):
            return uuid_for(f"{key} {self.question.token} {self.question.name} {self.question.id}")
        derive = self._derivations.get(key)
        text = self.known(key) or (derive(self) if derive else None) or f"{WORD}-{key.lower()}"
        return self.setdefault(key, Text(text))


# The words before the names in an id, and what the tables call those names.
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
    """What the id of an existing resource says: `projects/p/locations/l/clusters/c` has a project, a
    location, a name.
    """
    if not id_:
        return {}
    words = id_.split("/")
    parts = {_PARTS[word]: words[i + 1] for i, word in enumerate(words[:-1]) if word in _PARTS}
    return {**parts, "name": words[-1]}


def rendered(template: Template, facts: Facts) -> Plain:
    """A template with its facts filled in."""
    if isinstance(template, str):
        return template.format_map(facts)
    if isinstance(template, bool):
        return template
    if isinstance(template, Mapping):
        return {key: rendered(item, facts) for key, item in template.items()}
    return [rendered(item, facts) for item in template]


def rendered_properties(templates: Mapping[str, Template], facts: Facts) -> dict[str, Plain]:
    """The properties of one resource, filled in."""
    return {key: rendered(item, facts) for key, item in templates.items()}


def resource_rule(
    derivations: Mapping[str, Derivation], id_: str, outputs: Mapping[str, Template]
) -> ResourceRule:
    """A rule that fills in templates for the id and the outputs."""

    def rule(question: Question) -> Answer:
        facts = Facts(question, derivations)
        return Answer(id_.format_map(facts), rendered_properties(outputs, facts))

    return rule


def invoke_rule(derivations: Mapping[str, Derivation], result: Mapping[str, Template]) -> InvokeRule:
    """A rule that fills in templates for a function's result."""

    def rule(question: Question) -> dict[str, Plain]:
        return rendered_properties(result, Facts(question, derivations))

    return rule
