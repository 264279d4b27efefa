"""Assumed cloud responses, which let a program run to its end without a cloud.

Each cloud's table has its own module; `assumption_tables` defines their classes.
"""

from typing import Final

from ebbtide.recording import assumed_azure, assumed_gcp, assumed_kubernetes
from ebbtide.recording.assumed_values import uuid_for
from ebbtide.recording.assumption_tables import Answer, Assumptions, Question, UnansweredInvokeError

__all__ = ["ASSUMPTIONS", "Answer", "Assumptions", "Question", "UnansweredInvokeError"]


def _provider(question: Question) -> Answer:
    """A provider's id is a random UUID of the engine; provider references contain it."""
    return Answer(uuid_for(f"{question.token} {question.name}"))


ASSUMPTIONS: Final = (
    assumed_gcp.TABLES
    | assumed_azure.TABLES
    | assumed_kubernetes.TABLES
    | Assumptions(packages={"pulumi": _provider})
)
"""The tables of Google Cloud, Azure and Kubernetes together."""
