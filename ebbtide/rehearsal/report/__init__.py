"""What came of a rehearsal: a timeline for people, the same as JSON for programs."""
