"""Recording of a project's program for a stack."""

from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.update_hooks import Updates


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
