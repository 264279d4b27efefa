"""Policy rules, in a module for each subject."""
