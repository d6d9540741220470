"""The cited peak memory bandwidth of the GPU that is present."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbs.common.errors import KoptError

if TYPE_CHECKING:
    from evaluator.receipt.timing import CitedPeak
    from kbs.index.store import Store
    from kopt.services.engine import Engine

_MAKER = re.compile(r"^(?:nvidia|amd|tesla|geforce|\s)+", re.IGNORECASE)
_METRIC = "hbm_bandwidth"


def cited_peak(engine: Engine, device_name: str) -> CitedPeak | None:
    """Of the one product that the driver's name of the device, such as `NVIDIA H200`, is a name of, whole.

    None where it is a name of none or of several, or no page states its bandwidth; never a similar product's.
    """
    product = product_of(engine, device_name)
    if not product:
        return None
    try:
        return engine.with_store(lambda store: _stated(engine, store, product), vectors=False)
    except KoptError as error:
        engine.warnings.append(f"no cited peak: {error.message}")
        return None


def product_of(engine: Engine, device_name: str) -> str:
    """The one product that the driver's name of a device is a name of, whole; empty for none and for several."""
    products = engine.terms.resolve("product", _MAKER.sub("", device_name))
    return products[0] if len(products) == 1 else ""


def _stated(engine: Engine, store: Store, product: str) -> CitedPeak | None:
    from evaluator.receipt.timing import CitedPeak

    for spec in store.specs():
        if spec.product == product and spec.metric == _METRIC and spec.recommended:
            base = spec.base(engine.terms)
            if base is not None:
                return CitedPeak(
                    product=engine.terms.products[product].name,
                    gb_per_s=float(base) / 1e9,
                    citation=spec.citation_line(engine.terms),
                )
    return None
