"""What is wrong with a profile, for whoever reads one."""


class ProfileError(ValueError):
    """A profile that cannot be read, or that does not know what was asked of it; the message says what to
    do."""
