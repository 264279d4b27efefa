"""Tables of assumed cloud responses.

Inputs are always echoed; everything that a table adds is recorded as an assumption. A type without a table
entry gets only an id, and its other outputs stay unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbtide.analysis.recording.assumed_values import WORD
from ebbtide.analysis.recording.values import Plain, at, leaves, revealed


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
