"""Texts of amounts of money, and of their changes."""

import pytest

from ebbtide.declaration.catalog.amounts import Amount


@pytest.mark.parametrize(
    ("amount", "marked", "words"),
    [
        (Amount(), "0.00", "$0.00"),
        (Amount(0.042), "0.042", "$0.042"),
        (Amount(1.5, estimated=("b",)), "~1.50", "about $1.50"),
        (Amount(1.5, unknown=("a",)), ">1.50", "at least $1.50"),
        (Amount(1.5, unknown=("a",), estimated=("b",)), ">~1.50", "at least about $1.50"),
        (Amount(unknown=("a",)), "?", "unknown"),
    ],
)
def test_an_unknown_price_is_never_zero(amount: Amount, marked: str, words: str) -> None:
    """Sums without all prices are lower bounds, and an amount without any price is unknown."""
    assert (amount.marked(), amount.words()) == (marked, words)


_MONTHLY = {"+$0.50": "+$365", "−$0.75": "−$548", "": "+$0.73"}  # noqa: RUF001


@pytest.mark.parametrize(("usd", "words"), [(1.5, "+$0.50"), (0.25, "−$0.75"), (1.001, "")])  # noqa: RUF001
def test_changes_of_less_than_a_cent_are_none(usd: float, words: str) -> None:
    """The change has a sign; less than a cent an hour is not a change, but one of the month's bill."""
    assert Amount(usd).change_from(Amount(1)) == words
    assert Amount(usd).change_from(Amount(1), monthly=True) == _MONTHLY[words]
    assert Amount(1).change_from(Amount(1), monthly=True) == ""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((), ("gpu",), "more by an unknown amount"),
        (("gpu",), (), "less by an unknown amount"),
        (("gpu",), ("tpu",), "an unknown change"),
        (("gpu",), ("gpu",), ""),
    ],
)
def test_a_change_of_an_unknown_price_is_not_none(
    before: tuple[str, ...], after: tuple[str, ...], words: str
) -> None:
    """A pool without a known price that comes or goes changes the cost, though the known sum is the same."""
    assert Amount(1, after).change_from(Amount(1, before)) == words


def test_a_change_with_an_unknown_price_is_a_bound() -> None:
    """The known part of a change is its least, or its most."""
    assert Amount(2, ("gpu",)).change_from(Amount(1)) == "at least +$1.00"
    assert Amount(2).change_from(Amount(1, ("gpu",))) == "at most +$1.00"
