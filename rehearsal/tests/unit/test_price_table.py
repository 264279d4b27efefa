"""The price table and the lists that it follows."""

import json
from collections.abc import Collection

from ebbtide.declaration.catalog.prices import Price
from ebbtide.declaration.catalog.tables import rows
from ebbtide.values.cloud_kind import CloudKind
from rehearsal import prices

_LIST = {
    "us-central1": {
        "on_demand": {"e2-standard-2": 0.07, "e2-standard-4": 0.134012, "unheard-of": 1.0},
        "spot": {"e2-standard-2": 0.03, "e2-standard-4": 0.053604},
    },
    "nowhere-east1": {"on_demand": {"e2-standard-2": 0.07}, "spot": {}},
}


def _read(address: str) -> str:
    if "commits" in address:
        return json.dumps(
            [{"sha": "0123456789ab", "commit": {"committer": {"date": "2027-01-04T06:00:00Z"}}}]
        )
    return json.dumps({"prices": _LIST})


def test_the_table_is_written_as_it_is_read() -> None:
    """A run without a change writes the same file: sorted, with every cell in place."""
    changes = list(prices.merged(rows("prices"), {}))
    assert prices.text([row for _, row in changes]) == prices.TABLE.read_text(encoding="utf-8")
    assert prices.report(changes) == "0 prices changed, 0 are new.\n"


def test_only_changed_prices_change() -> None:
    """A changed price has the list's date and commit; an equal or unlisted one keeps its own."""
    new = dict(prices.google(_read))
    assert {item for _, _, item in new} == {"e2-standard-2", "e2-standard-4"}
    table = [
        _row("e2-standard-2", "0.067006", "0.026802"),
        _row("e2-standard-4", "0.134012", "0.053604"),
        _row("e2-standard-8", "0.268024", "0.107208"),
    ]
    changes = list(prices.merged(table, new))
    assert [row for old, row in changes if old is not row] == [
        {
            **_row("e2-standard-2", "0.07", "0.03"),
            "as_of": "2027-01",
            "source": "cloudpilot-ai/karpenter-provider-gcp@01234567 initial-prices.json",
        }
    ]
    assert prices.report(changes).splitlines() == [
        "2 prices changed, 0 are new.",
        "",
        "The largest changes:",
        "",
        "| cloud | region | item | capacity | before | now |",
        "|---|---|---|---|---|---|",
        "| gke | us-central1 | e2-standard-2 | spot | 0.026802 | 0.03 |",
        "| gke | us-central1 | e2-standard-2 | on-demand | 0.067006 | 0.07 |",
    ]


class _Azure:
    """Azure's list, which sells one machine in one region."""

    name = "Azure Retail Prices API"

    def prices(self, region: str, items: Collection[str]) -> dict[str, Price]:
        assert "Standard_D4s_v5" in items
        price = Price(0.2, None, None, "", "2027-01-05", self.name)
        return {"Standard_D4s_v5": price} if region == "westeurope" else {}


def test_a_rate_that_a_list_lacks_stays() -> None:
    """A spot price outlives an answer without one, beside the new price on demand."""
    row = _row("Standard_D4s_v5", "0.23", "0.05") | {"cloud": "aks", "region": "westeurope"}
    ((old, new),) = prices.merged([row], dict(prices.azure(_Azure())))
    assert (old, new["usd_per_hour_on_demand"], new["usd_per_hour_spot"]) == (row, "0.2", "0.05")
    assert (new["as_of"], new["cloud"]) == ("2027-01-05", CloudKind.AKS)


def _row(item: str, on_demand: str, spot: str) -> dict[str, str]:
    rates = {"usd_per_hour_on_demand": on_demand, "usd_per_hour_spot": spot, "usd_per_hour_flex": ""}
    named = {"cloud": "gke", "region": "us-central1", "item": item}
    return {**named, **rates, "note": "", "as_of": "2026-08", "source": "a list"}
