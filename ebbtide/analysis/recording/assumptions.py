"""Assumed cloud responses, which let a program run to its end without a cloud.

Each cloud's table has its own module; `assumption_tables` defines their classes.
"""

from typing import Final

from ebbtide.analysis.recording import assumed_azure, assumed_gcp
from ebbtide.analysis.recording.assumed_values import WORD, uuid_for
from ebbtide.analysis.recording.assumption_tables import Answer, Assumptions, Question, UnansweredInvokeError
from ebbtide.analysis.recording.values import revealed

__all__ = ["ASSUMPTIONS", "Answer", "Assumptions", "Question", "UnansweredInvokeError"]

_STASH: Final = "pulumi:index:Stash"
"""A resource whose first value the engine keeps in the state (pulumi 3.259, deploy/builtins.go)."""


def _object(question: Question) -> Answer:
    """Return the id of a Kubernetes object: `namespace/name`, or its name if it is cluster-scoped.

    An object without a name gets the logical name and eight random letters (pulumi-kubernetes 4.34).
    """
    metadata = revealed(question.inputs.get("metadata"))
    declared = metadata if isinstance(metadata, dict) else {}
    name, namespace = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str):
        name = question.id.rpartition("/")[2] if question.id else f"{question.name}-{WORD}"
    return Answer(f"{namespace}/{name}" if isinstance(namespace, str) else name, {"metadata": {"name": name}})


def _provider(question: Question) -> Answer:
    """Return a provider's id, a random UUID of the engine; provider references contain it."""
    return Answer(uuid_for(f"{question.token} {question.name}"))


def _stash(question: Question) -> Answer:
    """Return a stash's output, its input; the program ignores changes of it."""
    return Answer(uuid_for(f"{question.token} {question.name}"), {"output": question.inputs.get("input")})


ASSUMPTIONS: Final = (
    assumed_gcp.TABLES
    | assumed_azure.TABLES
    | Assumptions(resources={_STASH: _stash}, packages={"kubernetes": _object, "pulumi": _provider})
)
"""The combined tables of Google Cloud, Azure and Kubernetes."""
