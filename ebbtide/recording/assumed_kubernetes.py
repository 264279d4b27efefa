"""What a Kubernetes API server is assumed to answer, whatever the kind.

Source: pulumi-kubernetes 4.34: the id of an object is `namespace/name`, or its name where the kind has no
namespace; an object without a name gets the logical one and eight random letters.
"""

from typing import Final

from ebbtide.recording.asking import Answer, Assumptions, Question
from ebbtide.recording.marks import WORD
from ebbtide.recording.values import revealed


def _object(question: Question) -> Answer:
    metadata = revealed(question.inputs.get("metadata"))
    given = metadata if isinstance(metadata, dict) else {}
    name, namespace = given.get("name"), given.get("namespace")
    if not isinstance(name, str):
        name = question.id.rpartition("/")[2] if question.id else f"{question.name}-{WORD}"
    return Answer(f"{namespace}/{name}" if isinstance(namespace, str) else name, {"metadata": {"name": name}})


TABLES: Final = Assumptions(packages={"kubernetes": _object})
"""What is known of Kubernetes."""
