"""What the clouds would answer, so that a program goes on past its first question without one.

The tables stand in a module for each cloud; `asking` has the terms in which they are written.
"""

from typing import Final

from ebbtide.recording import assumed_azure, assumed_gcp, assumed_kubernetes
from ebbtide.recording.asking import Answer, Assumptions, Question, UnansweredInvokeError
from ebbtide.recording.marks import uuid_for

__all__ = ["ASSUMPTIONS", "Answer", "Assumptions", "Question", "UnansweredInvokeError"]


def _provider(question: Question) -> Answer:
    """The engine gives a provider a random UUID; a reference to a provider holds it."""
    return Answer(uuid_for(f"{question.token} {question.name}"))


ASSUMPTIONS: Final = (
    assumed_gcp.TABLES
    | assumed_azure.TABLES
    | assumed_kubernetes.TABLES
    | Assumptions(packages={"pulumi": _provider})
)
"""The tables of Google Cloud, Azure and Kubernetes together."""
