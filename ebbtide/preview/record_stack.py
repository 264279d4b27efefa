"""Recording of a project's program for a stack."""

from ebbtide.preview.stack_files import StackFiles
from ebbtide.recording.record import record
from ebbtide.recording.recording import Recording


def record_stack(files: StackFiles, before: Recording | None = None) -> Recording:
    """Run a stack's program offline, with the stack's configuration.

    Args:
        files: the stack's files.
        before: an earlier recording of the stack, to be updated.

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
        before=before,
    )
