"""How the tables of assumed answers are asked.

Inputs are always echoed; what a table adds is an assumption, and is recorded as one. A type that no table
lists gets an id and nothing else: its other outputs stay unknown, which is the honest answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbtide.recording.marks import WORD
from ebbtide.recording.values import Plain, at, leaves, revealed


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is known when the cloud would be asked.

    Attributes:
        token: type token of the resource, or token of the function.
        inputs: inputs of the resource, or arguments of the function.
        provider: inputs of the provider that would do it; the ambient configuration for a default provider.
        name: the resource's logical name; empty for a function.
        id: of the existing resource that is read or imported, where there is one.
    """

    token: str
    inputs: Mapping[str, Plain]
    provider: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    name: str = ""
    id: str | None = None

    def text(self, key: str) -> str | None:
        """An input as text; None where it is absent, unknown or no scalar."""
        return _text(self.inputs.get(key))

    def setting(self, key: str) -> str | None:
        """A setting of the provider as text."""
        return _text(self.provider.get(key))


def _text(value: Plain) -> str | None:
    value = revealed(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) and value != "" else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a cloud is assumed to answer for a resource.

    Attributes:
        id: in the form that the cloud's ids have.
        outputs: laid over the inputs, dictionaries key by key and lists item by item.
    """

    id: str
    outputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])


ResourceRule = Callable[[Question], Answer]
InvokeRule = Callable[[Question], dict[str, Plain]]


class UnansweredInvokeError(Exception):
    """The program asked a cloud something that no table has an answer for."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(
            f"The program calls {token}, which asks a cloud, and the preview has no assumed answer for it. "
            "Declare the value instead of asking for it, or give record() an assumption for that token."
        )


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The tables that are asked.

    Attributes:
        resources: by type token.
        packages: by package (`kubernetes`), for types that have no entry of their own.
        invokes: by token of the function.
    """

    resources: Mapping[str, ResourceRule] = field(default_factory=dict[str, ResourceRule])
    packages: Mapping[str, ResourceRule] = field(default_factory=dict[str, ResourceRule])
    invokes: Mapping[str, InvokeRule] = field(default_factory=dict[str, InvokeRule])

    def answer(self, question: Question) -> Answer:
        """What is assumed of a resource; at least an id."""
        rule = self.resources.get(question.token) or self.packages.get(question.token.partition(":")[0])
        answer = rule(question) if rule else Answer(f"{question.name}-{WORD}-id")
        return Answer(question.id, answer.outputs) if question.id else answer

    def invoke(self, question: Question) -> dict[str, Plain]:
        """What is assumed of a function's result.

        Raises:
            UnansweredInvokeError: when no table has it.
        """
        rule = self.invokes.get(question.token)
        if rule is None:
            raise UnansweredInvokeError(question.token)
        return rule(question)

    def __or__(self, other: "Assumptions") -> "Assumptions":
        """Both sets of tables; where both have an entry, the right one's counts."""
        return Assumptions(
            {**self.resources, **other.resources},
            {**self.packages, **other.packages},
            {**self.invokes, **other.invokes},
        )


def overlaid(inputs: Plain, answer: Plain) -> Plain:
    """An answer laid over the inputs: what was asked for stays, what is new comes from the answer.

    A secret or unknown input stays as it is: an assumption must not make it known. Where a list is asked for
    and an object answered, as with Azure's identities, the answer counts: the SDK would not take the list.
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
    """The paths in an answer, and `id`, that were not given: by the inputs, the provider or the id that is
    read.

    A name that the cloud repeats is no assumption; an id that it makes of the name by a rule is, though a
    safe one.
    """
    inputs = dict(question.inputs)
    given = {leaf for _, leaf in leaves(inputs) if isinstance(leaf, str)}
    given.update(value for value in question.provider.values() if isinstance(value, str))
    given.update((question.id or "").split("/"))
    paths = tuple(
        path
        for path, leaf in leaves(dict(answer.outputs))
        if not (isinstance(leaf, str) and leaf in given) and at(inputs, path) is None
    )
    return paths if question.id else ("id", *paths)
