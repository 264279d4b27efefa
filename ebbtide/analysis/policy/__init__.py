"""The policy of a stack: levels, limits, exceptions and rules, and the check of its recorded resources."""
