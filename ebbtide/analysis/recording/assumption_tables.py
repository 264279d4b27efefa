"""Assumed cloud responses, which let a program run to its end without a cloud: values, tables, templates.

Inputs are always echoed; everything that a table adds is recorded as an assumption. A type without a table
entry gets only an id, and its other outputs stay unknown. Programs concatenate, serialize and encode assumed
values: their marker is part of the text, in a form that is valid for its type (a host name, a UUID, an
address), so that parsers accept it.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ebbtide.analysis.recording.values import Plain, at, leaves, revealed

WORD: Final = "assumed"
"""Part of every assumed name; valid in a DNS label, an e-mail address, a path and a cloud's resource name."""

_UUID_PREFIX: Final = "a550ed00-0000-4000-8000-"
ADDRESS: Final = "192.0.2.10"
"""An assumed IP address, from a block reserved for documentation (RFC 5737)."""

_CHARACTER: Final = r"[\w.@:/-]"
_PATTERN: Final = re.compile(
    # A search begins only at the start of a word: from each of its characters, a long word takes minutes.
    rf"(?<!{_CHARACTER}){_CHARACTER}*{WORD}{_CHARACTER}*|{_UUID_PREFIX}[0-9a-f]{{12}}|{re.escape(ADDRESS)}"
)

# Generated once for this file (`openssl req -x509 -newkey ec`, private key discarded), so that code that
# decodes a cluster's certificate works. It signs nothing.
CERTIFICATE: Final = """\
-----BEGIN CERTIFICATE-----
MIIBqTCCAU+gAwIBAgIUUHYL7WFczHt2wwkcmvFWtwfNs44wCgYIKoZIzj0EAwIw
KTEnMCUGA1UEAwweYXNzdW1lZCBieSB0aGUgRWJidGlkZSBwcmV2aWV3MCAXDTI2
MTEyMTEyNDg1OFoYDzIxMjYxMDI4MTI0ODU4WjApMScwJQYDVQQDDB5hc3N1bWVk
IGJ5IHRoZSBFYmJ0aWRlIHByZXZpZXcwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQ77xPsJzMFPmagRDRgf4gpzyXLUjZbECdfm2b5ovXsCRYLZ0FavBqGB66uWd8p
BW9dXnzzc73VHlZmbh+Ea9ulo1MwUTAdBgNVHQ4EFgQUEaWOuvZJniXDFnvVde4Q
p5Ymz3EwHwYDVR0jBBgwFoAUEaWOuvZJniXDFnvVde4Qp5Ymz3EwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBXuOVF/gOoTq4ASEmDc1OUzoz4Vvsn
BROTCtrsVoQaegIhAPBLZWI8Z2YzXNYQMt8yvC7mQhVouMqytkMrduCESf1l
-----END CERTIFICATE-----
"""

CERTIFICATE_BASE64: Final = base64.b64encode(CERTIFICATE.encode()).decode()
"""`CERTIFICATE` in the clouds' encoding."""
Template: TypeAlias = "str | bool | Mapping[str, Template] | Sequence[Template]"
"""JSON whose strings reference facts: `projects/{project}/zones/{zone}`."""
Derivation = Callable[["Facts"], str | None]
"""Derive a fact from others; None if impossible."""
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


def uuid_for(seed: str) -> str:
    """Return an assumed UUID, deterministic for the seed, so that previews are reproducible."""
    return _UUID_PREFIX + hashlib.sha256(seed.encode()).hexdigest()[:12]


def is_assumed(text: str) -> bool:
    """Return whether any part of a text is assumed."""
    return _PATTERN.search(text) is not None or text == CERTIFICATE_BASE64


def assumed_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each assumed word in a text, for highlighting."""
    return [match.span() for match in _PATTERN.finditer(text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A resource registration or function call that a cloud would answer.

    Attributes:
        token: type token of the resource, or token of the function.
        inputs: inputs of the resource, or arguments of the function.
        provider: inputs of its provider; for a default provider, the stack's configuration.
        name: the resource's logical name; empty for a function.
        id: id of the existing resource that is read or imported, if any.
    """

    token: str
    inputs: Mapping[str, Plain]
    provider: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    name: str = ""
    id: str | None = None

    def text(self, key: str) -> str | None:
        """Return an input as text; None if it is absent, unknown or not a scalar."""
        return _text(self.inputs.get(key))

    def setting(self, key: str) -> str | None:
        """Return a provider setting as text."""
        return _text(self.provider.get(key))


def _text(value: Plain) -> str | None:
    value = revealed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) and value != "" else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The assumed response of a cloud for a resource.

    Attributes:
        id: assumed id, in the cloud's format.
        outputs: outputs to merge over the inputs, dictionaries by key and lists by item.
    """

    id: str
    outputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])


ResourceRule = Callable[[Question], Answer]
InvokeRule = Callable[[Question], dict[str, Plain]]


class UnansweredInvokeError(Exception):
    """A function call for which no table has a response."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(
            f"The program calls {token}, for which the preview has no assumed response. Declare the value "
            "instead, or pass an assumption for that token to record()."
        )


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Tables of assumed responses.

    Attributes:
        resources: responses by type token.
        packages: responses by package (`kubernetes`), for types without an entry.
        invokes: results by function token.
    """

    resources: Mapping[str, ResourceRule] = field(default_factory=dict[str, ResourceRule])
    packages: Mapping[str, ResourceRule] = field(default_factory=dict[str, ResourceRule])
    invokes: Mapping[str, InvokeRule] = field(default_factory=dict[str, InvokeRule])

    def answer(self, question: Question) -> Answer:
        """Return the assumed response for a resource; at least an id."""
        rule = self.resources.get(question.token) or self.packages.get(question.token.partition(":")[0])
        answer = rule(question) if rule else Answer(f"{question.name}-{WORD}-id")
        return Answer(question.id, answer.outputs) if question.id else answer

    def invoke(self, question: Question) -> dict[str, Plain]:
        """Return the assumed result of a function.

        Raises:
            UnansweredInvokeError: no table has the function.
        """
        rule = self.invokes.get(question.token)
        if rule is None:
            raise UnansweredInvokeError(question.token)
        return rule(question)

    def __or__(self, other: "Assumptions") -> "Assumptions":
        """Merge both sets of tables; the right operand's entries take precedence."""
        return Assumptions(
            {**self.resources, **other.resources},
            {**self.packages, **other.packages},
            {**self.invokes, **other.invokes},
        )


def overlaid(inputs: Plain, answer: Plain) -> Plain:
    """Merge an answer over the inputs: inputs are kept, new values come from the answer.

    A secret or unknown input is kept: an assumption must not reveal it. For a list input with an object in
    the answer, such as Azure's identities, the answer is used, because the SDK rejects the list.
    """
    if isinstance(inputs, dict) and isinstance(answer, dict):
        merged = dict(inputs)
        for key, item in answer.items():
            merged[key] = overlaid(inputs[key], item) if key in inputs else item
        return merged
    if isinstance(inputs, list) and isinstance(answer, list):
        pairs = zip(inputs, answer, strict=False)
        return [overlaid(old, new) for old, new in pairs] + inputs[len(answer) :] + answer[len(inputs) :]
    if isinstance(inputs, list) and isinstance(answer, dict):
        return answer
    return answer if inputs is None else inputs


def assumed_paths(question: Question, answer: Answer) -> tuple[str, ...]:
    """Return the paths in an answer, and `id`, that neither the inputs, the provider nor the existing id
    determine.

    A name that the cloud returns unchanged is not an assumption. An id derived from the name is one.
    """
    inputs = dict(question.inputs)
    known_values = {leaf for _, leaf in leaves(inputs) if isinstance(leaf, str)}
    known_values.update(value for value in question.provider.values() if isinstance(value, str))
    known_values.update((question.id or "").split("/"))
    paths = tuple(
        path
        for path, leaf in leaves(dict(answer.outputs))
        if not (isinstance(leaf, str) and leaf in known_values) and at(inputs, path) is None
    )
    return paths if question.id else ("id", *paths)


class ResourceTemplate(NamedTuple):
    """A cloud's response for a resource.

    Attributes:
        outputs: templates of the outputs that are not inputs; everything else stays unknown.
    """

    id: str
    outputs: Mapping[str, Template] = {}


class Text(str):
    """A fact in a template. `{cluster:last}` is the last segment of a path, `{location:region}` a zone's
    region, `{service:label}` the first label of a host name, `{project:path}` a domain's project in a path.
    """

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        match spec:
            case "last":
                return self.rpartition("/")[2]
            case "region":
                head, _, tail = self.rpartition("-")
                return head if len(tail) == 1 else str(self)
            case "path":
                return self.replace(":", "/")
            case "label":
                return self.partition(".")[0]
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
