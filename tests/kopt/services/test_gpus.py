"""The peak of the GPU that is present: cited, or none."""

from __future__ import annotations

import dataclasses

import pytest

from kbs.common.errors import KoptError
from kbs.evidence.checking import Status, check_text
from kopt.services.engine import Engine
from kopt.services.gpus import cited_peak


def test_the_peak_of_an_h200_is_cited(engine: Engine) -> None:
    found = cited_peak(engine, "NVIDIA H200")
    assert found is not None
    assert (found.product, found.gb_per_s) == ("H200 SXM", 4800.0)
    (checked,) = check_text(found.citation, engine.library, engine.terms)
    assert checked.status is Status.OK, checked
    assert "4.8 TB/s" in found.citation
    assert engine.warnings == []


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("NVIDIA H100 PCIe", 2000.0),
        ("NVIDIA H100 NVL", 3938.0),
        ("NVIDIA A100-SXM4-80GB", 2039.0),
        ("NVIDIA A100-PCIE-40GB", 1555.0),
        ("NVIDIA A100 80GB PCIe", 1935.0),
        ("nvidia h200", 4800.0),
    ],
)
def test_names_as_the_driver_writes_them(engine: Engine, name: str, gb_per_s: float) -> None:
    found = cited_peak(engine, name)
    assert found is not None
    assert found.gb_per_s == gb_per_s
    (checked,) = check_text(found.citation, engine.library, engine.terms)
    assert checked.status is Status.OK, checked


@pytest.mark.parametrize("name", ["NVIDIA H100", "NVIDIA H100 80GB", "NVIDIA A100"])
def test_a_name_of_several_products_has_no_peak(engine: Engine, name: str) -> None:
    """They have peaks of their own, and guessing one could call an honest time impossible."""
    assert len(engine.terms.resolve("product", name.removeprefix("NVIDIA "))) > 1
    assert cited_peak(engine, name) is None


@pytest.mark.parametrize(
    "name",
    ["NVIDIA GeForce RTX 9999", "NVIDIA H200 H200", "NVIDIA H900", "NVIDIA H2000", "NVIDIA", "", "H200 SXM or so"],
)
def test_an_unknown_name_has_no_peak_and_never_a_similar_ones(engine: Engine, name: str) -> None:
    assert cited_peak(engine, name) is None
    assert engine.warnings == []


def test_a_product_whose_pages_say_nothing_of_it_has_no_peak(engine: Engine) -> None:
    (product,) = engine.terms.resolve("product", "gfx942")
    found = engine.with_store(lambda store: list(store.specs()), vectors=False)
    assert not [spec for spec in found if spec.product == product and spec.metric == "hbm_bandwidth"]
    assert cited_peak(engine, "gfx942") is None


def test_only_the_recommended_of_several_values_counts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    (product,) = engine.terms.resolve("product", "H200")
    specs = engine.with_store(lambda store: list(store.specs()), vectors=False)
    (own,) = [s for s in specs if s.product == product and s.metric == "hbm_bandwidth" and s.recommended]
    other = dataclasses.replace(own, recommended=False, value="9.9")

    class Store:
        """Has both, the other one first."""

        def specs(self, *_: object) -> list[object]:
            """Both."""
            return [other, own]

    monkeypatch.setattr(engine, "with_store", lambda use, **_: use(Store()))
    found = cited_peak(engine, "NVIDIA H200")
    assert found is not None
    assert found.gb_per_s == 4800.0
    monkeypatch.setattr(Store, "specs", lambda *_: [other])
    assert cited_peak(engine, "NVIDIA H200") is None


def test_a_wiki_that_cannot_be_read_is_a_warning_and_no_peak(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise KoptError("the index is locked", code="index_locked", hint="Wait.")

    monkeypatch.setattr(engine, "with_store", broken)
    assert cited_peak(engine, "NVIDIA H200") is None
    assert engine.warnings == ["no cited peak: the index is locked"]
