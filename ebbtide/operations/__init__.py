"""Operations on a stack of a project on disk, through the user's own `pulumi` and backend."""
