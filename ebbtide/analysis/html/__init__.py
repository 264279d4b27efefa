"""Self-contained HTML pages: one style sheet and one escaping for all of them."""
