"""The report of a rehearsal: a timeline as text and as JSON."""
