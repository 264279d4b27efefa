"""Review what `declared.py` records: cost, quotas and policy, as Markdown for a pull request."""

import sys

from declared import recording

from ebbtide.analysis.review.build_review import review_of
from ebbtide.analysis.review.markdown import render

_LONGEST = 65_536
"""Characters of a comment on GitHub, at most."""

text = render(review_of(recording))
if len(text) > _LONGEST:
    sys.exit(f"The comment has {len(text)} characters.")
