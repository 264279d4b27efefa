"""Assumed responses of a Kubernetes API server, for every kind.

Source: pulumi-kubernetes 4.34: an object's id is `namespace/name`, or its name for a cluster-scoped kind; an
object without a name gets the logical name and eight random letters.
"""

from typing import Final

from ebbtide.recording.assumed_values import WORD
from ebbtide.recording.assumption_tables import Answer, Assumptions, Question
from ebbtide.recording.values import revealed


def _object(question: Question) -> Answer:
    metadata = revealed(question.inputs.get("metadata"))
    declared = metadata if isinstance(metadata, dict) else {}
    name, namespace = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str):
        name = question.id.rpartition("/")[2] if question.id else f"{question.name}-{WORD}"
    return Answer(f"{namespace}/{name}" if isinstance(namespace, str) else name, {"metadata": {"name": name}})


TABLES: Final = Assumptions(packages={"kubernetes": _object})
"""Assumed responses of Kubernetes."""
