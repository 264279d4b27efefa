"""Recording of a project's program for a stack."""

from collections.abc import Iterator
from pathlib import Path

from ebbtide.analysis.preview.stack_files import StackFiles, read_stack
from ebbtide.analysis.recording.record import Updates, record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.project.source import Source
from ebbtide.errors import EbbtideError


def record_stack(
    files: StackFiles, updates: Updates | None = None, *, deployed: Recording | None = None
) -> Recording:
    """Run a stack's program offline, with the stack's configuration.

    Args:
        files: files of the stack.
        updates: the updates that the program's hooks are called with.
        deployed: the deployed stack, whose inputs are kept for ignored changes.

    Raises:
        ProgramError: the program fails.
    """
    return record(
        files.program,
        project=files.project,
        stack=files.stack,
        config=files.config,
        secret_keys=files.secret_keys,
        root=files.root,
        updates=updates,
        deployed=deployed,
    )


def broken_extensions(files: StackFiles) -> Iterator[tuple[Path, Source | None, EbbtideError]]:
    """Record the other stacks that extend a stack's file, and yield those that are invalid with it: the file,
    the source of its declaration, and the error."""
    for stack, path in files.extending():
        source = None
        try:
            other = read_stack(files.root, stack, config_file=path)
            source = other.source
            other.policy()
            record_stack(other)
        except EbbtideError as error:
            yield path, source, error
