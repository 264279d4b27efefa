"""What is wrong with a piece of work, all of it at once."""

from collections.abc import Generator
from contextlib import contextmanager


class WorkloadError(ValueError):
    """Work that cannot run as it is described.

    Attributes:
        problems: one sentence or two for each thing that is wrong, with what to write instead.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Problems:
    """What was found wrong so far."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem."""
        self._found.append(problem)

    def check(self, holds: object, problem: str) -> None:
        """Note a problem where something does not hold."""
        if not holds:
            self.add(problem)

    @contextmanager
    def collecting(self) -> Generator[None]:
        """Note what is wrong in the block, and go on after it."""
        try:
            yield
        except WorkloadError as error:
            self._found += error.problems

    def error(self, *more: str) -> WorkloadError:
        """All of it, and more, as one error; what was found twice is said once."""
        return WorkloadError(*dict.fromkeys((*self._found, *more)))

    def end(self) -> None:
        """Stop here if anything was found.

        Raises:
            WorkloadError: with all of it.
        """
        if self._found:
            raise self.error()

    @property
    def found(self) -> tuple[str, ...]:
        """What was found, in order."""
        return tuple(self._found)
