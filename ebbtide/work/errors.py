"""Errors of workloads, reported together, and of a cluster that rejects them or does not respond."""

import http
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from ebbtide.clients.kubernetes import ApiError
from ebbtide.errors import EbbtideError

_KUBECTL: Final = "check that `kubectl get namespaces` works"


class WorkloadError(EbbtideError, ValueError):
    """A workload that cannot run as described.

    Attributes:
        problems: a sentence or two for each problem, with the correction.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Problems:
    """A list of problems that are raised as one error."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    def add(self, problem: str) -> None:
        """Add a problem."""
        self._problems.append(problem)

    def check(self, holds: object, problem: str) -> None:
        """Add a problem unless a condition holds."""
        if not holds:
            self.add(problem)

    @contextmanager
    def collecting(self, *others: type[EbbtideError]) -> Generator[None]:
        """Add the problems of a block instead of raising them; those of `others`, too."""
        try:
            yield
        except WorkloadError as error:
            self._problems += error.problems
        except others as error:
            self.add(str(error))

    def error(self, *more: str) -> WorkloadError:
        """Return one error with these and further problems, without duplicates."""
        return WorkloadError(*dict.fromkeys((*self._problems, *more)))

    def end(self) -> None:
        """Raise the problems, if there are any.

        Raises:
            WorkloadError: with all of them.
        """
        if self._problems:
            raise self.error()

    @property
    def all(self) -> tuple[str, ...]:
        """The problems, in order."""
        return tuple(self._problems)


class ClusterError(WorkloadError):
    """The cluster is unreachable, or rejects the request; the message contains the correction."""


def explained(error: ApiError) -> str:
    """Return the API server's error in terms of the submitted workload."""
    match error.status:
        case 0:
            return f"{error}: {_KUBECTL} from this machine."
        case http.HTTPStatus.UNAUTHORIZED:
            return (
                "The API server rejects your credentials: log in to the cloud again, or get new credentials "
                f"for the cluster, and {_KUBECTL}."
            )
        case status if error.unanswered:
            return f"The API server could not answer (status {status}): {error}"
        case _:
            return f"The API server refused: {error}"


@contextmanager
def answered(explain: Callable[[ApiError], str] = explained) -> Generator[None]:
    """Explain the errors of the API server in a block.

    Raises:
        ClusterError: the API server rejects a request, or does not answer.
    """
    try:
        yield
    except ApiError as error:
        raise ClusterError(explain(error)) from None
