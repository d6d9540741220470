"""Which GPU a name, a device or a target means, and what is known of it: its cited peak and its measured ceilings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbs.common.errors import KoptError, NoGpuError, UsageError
from kbs.index.overrides import spec_notes
from kopt.services.engine import Engine

if TYPE_CHECKING:
    from evaluator.receipt.timing import CitedPeak
    from evaluator.sass.tools import Target
    from evaluator.timing.ceilings import Ceilings
    from kbs.index.store import Store

BANDWIDTH = "hbm_bandwidth"
_MAKER = re.compile(r"^(?:nvidia|amd|tesla|geforce|\s)+", re.IGNORECASE)
_LIST = "See `kopt spec --list`."
_TARGET_HINT = "Name a target, such as --gpu sm_90, or a GPU of `kopt spec --list`."


def product_of_device(engine: Engine, device_name: str) -> str:
    """The one product that the driver's name of a device, such as `NVIDIA H200`, names; empty for none or several.

    The whole name must fit: a similar product's figures are never used.
    """
    products = engine.terms.resolve("product", _MAKER.sub("", device_name))
    return products[0] if len(products) == 1 else ""


def product_named(engine: Engine, name: str) -> str:
    """The one product that `name` names; `auto` is the first GPU of this machine.

    Raises `UsageError` (`gpu_unknown`, `gpu_ambiguous`), `NoGpuError`.
    """
    if name == "auto":
        return _present_product(engine)
    products = engine.terms.resolve("product", name)
    if len(products) > 1:
        raise UsageError(
            f"{name!r} names {len(products)} products",
            code="gpu_ambiguous",
            hint=f"Name one of them: {', '.join(products)}.",
        )
    if not products:
        near = engine.terms.nearest_products(name, engine.documented())
        raise UsageError(
            f"{name!r} is not a known GPU",
            code="gpu_unknown",
            hint=f"The nearest known ones are {', '.join(near)}." if near else _LIST,
        )
    return products[0]


def _present_product(engine: Engine) -> str:
    from evaluator.receipt.environment import gpu_names

    present = gpu_names()
    if not present:
        raise NoGpuError(
            "--gpu auto needs a GPU, and none is present",
            code="no_gpu",
            hint="Name one, such as --gpu h200; `kopt spec --list` lists those of the wikis.",
        )
    found = product_of_device(engine, present[0])
    if not found:
        raise UsageError(
            f"no page is about {present[0]}, or several products have that name",
            code="gpu_unknown",
            hint="Name the product, such as --gpu h200-sxm; see `kopt spec --list`.",
        )
    return found


# --- targets of the compiler ------------------------------------------------------------------------------------------


def present_target(hint: str) -> Target:
    """The architecture of the GPU that is present. Raises `NoGpuError` (`no_gpu`) with `hint`."""
    from evaluator.receipt.environment import gpu_capability
    from evaluator.sass.tools import read_target

    capability = gpu_capability()
    found = read_target(capability) if capability else None
    if found is None:
        raise NoGpuError("no GPU is present to compile for", code="no_gpu", hint=hint)
    return found


def compile_target(engine: Engine, name: str) -> tuple[Target, int | None]:
    """(what to compile for, number of multiprocessors where a page states it) for a target, a GPU, or `auto`.

    Raises `UsageError` (`gpu_unknown`), `NoGpuError`.
    """
    from evaluator.sass.tools import Target, read_target

    if name == "auto":
        return present_target(_TARGET_HINT), None
    direct = read_target(name)
    if direct is not None:
        return direct, None
    terms = engine.terms
    products = terms.resolve("product", name)
    if not products:
        numbered = re.match(r"(?:sm|cc)[_-]?\d|\d", name)  # no product's name is like it
        near = "" if numbered else ", ".join(terms.nearest_products(name, tuple(terms.products))[:3])
        raise UsageError(
            f"{name!r} is neither a GPU nor a target",
            code="gpu_unknown",
            hint=f"{f'Near: {near}. ' if near else ''}{_TARGET_HINT}",
        )
    if any(terms.products[product].vendor != "nvidia" for product in products):
        raise UsageError(
            f"{name} is not an NVIDIA GPU; only their machine code can be read", code="gpu_unknown", hint=_TARGET_HINT
        )
    specs = [s for s in engine.specs() if s.product in products and s.recommended and s.published]
    engine.warn(spec_notes((s for s in specs if s.metric in ("compute_capability", "sm_count")), terms))
    stated = {target.number for s in specs if s.metric == "compute_capability" and (target := read_target(s.value))}
    if len(stated) != 1:
        raise UsageError(
            f"no page states one compute capability for {name}",
            code="gpu_unknown",
            hint="Name the target itself, such as --gpu sm_90.",
        )
    counts = {s.value for s in specs if s.metric == "sm_count" and re.fullmatch(r"\d{1,4}", s.value)}
    return Target(stated.pop()), int(counts.pop()) if len(counts) == 1 else None


# --- rates ------------------------------------------------------------------------------------------------------------


def cited_peak(engine: Engine, device_name: str) -> CitedPeak | None:
    """The cited peak memory bandwidth of a device; None where its product is not known or no page states it."""
    product = product_of_device(engine, device_name)
    if not product:
        return None
    try:
        return engine.with_store(lambda store: _stated(engine, store, product), vectors=False)
    except KoptError as error:
        engine.warnings.append(f"no cited peak: {error.message}")
        return None


def _stated(engine: Engine, store: Store, product: str) -> CitedPeak | None:
    from evaluator.receipt.timing import CitedPeak

    for spec in store.specs(product, BANDWIDTH):
        base = spec.base(engine.terms) if spec.recommended else None
        if base is not None:
            engine.warn(spec_notes([spec], engine.terms))
            return CitedPeak(
                product=engine.terms.products[product].name,
                gb_per_s=float(base) / 1e9,
                citation=spec.citation_line(engine.terms),
            )
    return None


def newest_ceilings(engine: Engine, product: str, device: str = "") -> tuple[Ceilings | None, list[str]]:
    """(what `kopt bench ceilings` measured last on a device of this product or of this name, files that are damaged).

    None where nothing was measured.
    """
    folder = engine.settings.home / "ceilings"
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        return None, []
    from evaluator.timing.ceilings import load  # imports torch

    found, problems = [], []
    for file in files:
        try:
            kept = load(file)
        except KoptError as error:
            problems.append(f"{error.message} {error.hint}".strip())
            continue
        if kept is not None and (kept.device == device or product_of_device(engine, kept.device) == product):
            found.append(kept)
    return max(found, key=lambda kept: kept.created, default=None), problems
