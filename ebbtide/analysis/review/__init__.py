"""Review of a change: the difference between two recordings of a stack, its consequences, and renderings."""
