"""What is done to a stack of a project on disk, over the user's own `pulumi` and backend."""
