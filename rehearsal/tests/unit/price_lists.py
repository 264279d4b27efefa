"""Excerpts of the clouds' price lists, in the form of their APIs.

Rates: Google's published SKU prices in the Americas (2025-08 to 2026-08, as in catalog/data/prices.csv),
Azure's retail prices in eastus (2026-08).
"""

from typing import Any, Final


def sku(
    description: str, rate: float, usage: str = "OnDemand", unit: str = "h", **fields: Any
) -> dict[str, Any]:
    """Return a SKU of Compute Engine; fields replace its own."""
    tiers = fields.pop("tiers", [rate])
    rates = [
        {
            "startUsageAmount": 30 * number,
            "unitPrice": {"currencyCode": "USD", "units": str(int(tier)), "nanos": round(tier % 1 * 1e9)},
        }
        for number, tier in enumerate(tiers)
    ]
    expression = {"usageUnit": unit, "displayQuantity": 1, "tieredRates": rates}
    return {
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": "CPU",
            "usageType": usage,
        },
        "serviceRegions": ["us-central1", "us-east1", "us-west1"],
        "pricingInfo": [{"pricingExpression": expression, "effectiveTime": "2026-08-20T04:22:45Z"}],
        **fields,
    }


SKUS: Final = [
    sku("E2 Instance Core running in Americas", 0.02181159),
    sku("E2 Instance Ram running in Americas", 0.00292353, unit="GiBy.h"),
    sku("Spot Preemptible E2 Instance Core running in Americas", 0.01308696, "Preemptible"),
    sku("Spot Preemptible E2 Instance Ram running in Americas", 0.00175412, "Preemptible", "GiBy.h"),
    sku("E2 Instance Core running in Netherlands", 0.024, serviceRegions=["europe-west4"]),
    sku("E2 Instance Ram running in Netherlands", 0.0032, unit="GiBy.h", serviceRegions=["europe-west4"]),
    sku("Nvidia Tesla T4 GPU running in Americas", 0.35),
    sku("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Americas", 0.1814, "Preemptible"),
    sku("Nvidia H100 80GB GPU running in Americas", 9.796552),
    sku("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas", 4.200761),
    sku("DWS Defined Duration A3 Core running in Americas", 0.010934),
    sku("DWS Defined Duration A3 Ram running in Americas", 0.000952, unit="GiBy.h"),
    sku("DWS Defined Duration SSD backed Local Storage running in Americas", 0.080, unit="GiBy.mo"),
    sku("SSD backed Local Storage attached to Spot Preemptible VMs", 0.048, "Preemptible", "GiBy.mo"),
    sku("SSD backed Local Storage", 0.08, unit="GiBy.mo"),
    sku("A3Plus Instance Core running in Americas", 0.026924),
    sku("A3Plus Instance Ram running in Americas", 0.002344, unit="GiBy.h"),
    sku("Nvidia H100 80GB Plus GPU running in Americas", 10.344276),
    sku("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", 4.841121),
    sku("A4 Nvidia B200 (1 gpu slice) running in Americas", 16.11),
    sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", 4.9542),
    sku("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) in Americas", 11.28),
    sku("TpuV6e running in Columbus", 2.7, serviceRegions=["us-east5"]),
    sku("DWS Defined Duration V6e running in Columbus", 1.35, serviceRegions=["us-east5"]),
    sku("Capacity Optimized TpuV6e running in Columbus", 2.6, serviceRegions=["us-east5"]),
    sku("Commitment v1: TpuV6e running in Columbus", 1.89, "Commit1Yr", serviceRegions=["us-east5"]),
    sku("Storage PD Capacity", 0.04, unit="GiBy.mo", tiers=[0, 0.04]),
    sku("Balanced PD Capacity", 0.1, unit="GiBy.mo"),
    sku("Balanced PD Capacity in Iowa", 0.11, unit="GiBy.mo"),
    sku("Regional Balanced PD Capacity", 0.2, unit="GiBy.mo"),
    sku("SSD backed PD Capacity", 0.17, unit="GiBy.d"),
]


def item(size: str, name: str, price: float, **fields: Any) -> dict[str, Any]:
    """Return an item of the Retail Prices API for a machine size; fields replace its own."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "effectiveStartDate": "2026-08-01T00:00:00Z",
        "meterName": name,
        "productName": "Virtual Machines NCasT4 v3 Series",
        "skuName": name,
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
        **fields,
    }


_T4: Final = "Standard_NC4as_T4_v3"
_DISK: Final[dict[str, Any]] = {
    "serviceName": "Storage",
    "productName": "Premium SSD Managed Disks",
    "skuName": "P4 LRS",
    "unitOfMeasure": "1/Month",
}
ITEMS: Final = [
    item(_T4, "NC4as T4 v3", 0.526),
    item(_T4, "NC4as T4 v3", 0.5, effectiveStartDate="2024-01-01T00:00:00Z"),
    item(_T4, "NC4as T4 v3 Spot", 0.2209),
    item(_T4, "NC4as T4 v3 Low Priority", 0.105),
    item(_T4, "NC4as T4 v3", 0.71, productName="Virtual Machines NCasT4 v3 Series Windows"),
    item(_T4, "NC4as T4 v3", 0.3, type="DevTestConsumption"),
    item(_T4, "NC4as T4 v3", 0.6, armRegionName="westeurope"),
    item("Standard_D8as_v5", "D8as v5", 0.344),
    item("Standard_D4as_v5", "D4as v5", 0.172),
    item("Standard_D4as_v5", "D4as v5", 0.175),
    item("", "P4 LRS Disk", 5.2795, **_DISK),
    item("", "P4 LRS Disk Mount", 1.0, **_DISK),
]
