"""The device's clock through NVML, and what is left where NVML does not say."""

from __future__ import annotations

import importlib
import sys
import threading
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.timing import gpu_clocks as clocks
from evaluator.timing.gpu_clocks import DeviceClock, load_nvml
from tests.evaluator.timed_processes import Nvml, NvmlError, clock
from tests.waiting import wait_until


def sampled(nvml: Nvml, times: int, uuid: str = "") -> DeviceClock:
    """A clock after so many samples."""
    made = DeviceClock(3, uuid, nvml)
    for _ in range(times):
        made.sample()
    return made


# --- which device -----------------------------------------------------------------------------------------------------


def test_a_device_by_its_number() -> None:
    made = DeviceClock(3, nvml=(nvml := Nvml(1500)))
    assert made.sample() == 1500
    assert nvml.calls[0] == ("nvmlDeviceGetHandleByIndex", 3)
    assert ("nvmlDeviceGetClockInfo", ("by index 3", 1)) in nvml.calls


@pytest.mark.parametrize("known", ["GPU-1", b"GPU-1"])
def test_a_device_by_its_uuid(known: str | bytes) -> None:
    """CUDA numbers devices otherwise than NVML does; older bindings take bytes alone."""
    nvml = Nvml(1500, uuids=(known,))
    sampled(nvml, 1, "GPU-1")
    assert ("nvmlDeviceGetClockInfo", ("by uuid", 1)) in nvml.calls
    assert all(name != "nvmlDeviceGetHandleByIndex" for name, _ in nvml.calls)


@pytest.mark.parametrize("changes", [{"uuids": ("GPU-2", b"GPU-2")}, {"broken": ["nvmlDeviceGetHandleByUUID"]}, {}])
def test_a_uuid_that_nvml_does_not_know_leaves_the_number(changes: dict[str, Any]) -> None:
    nvml = Nvml(1500, **changes)
    sampled(nvml, 1, "GPU-1")
    assert ("nvmlDeviceGetClockInfo", ("by index 3", 1)) in nvml.calls


# --- samples ----------------------------------------------------------------------------------------------------------


def test_a_record_of_samples() -> None:
    found = sampled(Nvml(1980, 1755, 1965, 1970), 4).record()
    assert (found.status, found.detail, found.locked) == ("sampled", "", "no")
    assert (found.max_mhz, found.median_mhz, found.min_mhz) == (1980, 1967, 1755)
    assert (found.throttled, found.temperature_c) == ((), 40)


def test_each_sample_is_told_to_who_asked() -> None:
    made = DeviceClock(0, nvml=Nvml(1980, 1755, 1965))
    assert [made.sample() for _ in range(3)] == made.megahertz == [1980, 1755, 1965]


def test_no_turn_no_record() -> None:
    found = DeviceClock(0, nvml=Nvml()).record()
    assert (found.status, found.detail, found.max_mhz) == ("not sampled", "no turn was made", 0)


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x001, ()),
        (0x000, ()),
        (0x002, ("application clocks",)),
        (0x004, ("power cap",)),
        (0x008, ("hardware slowdown",)),
        (0x010, ("sync boost",)),
        (0x020, ("temperature",)),
        (0x040, ("hardware temperature",)),
        (0x080, ("power brake",)),
        (0x100, ("display clocks",)),
        (0x024, ("power cap", "temperature")),
        (0x1000, ()),
    ],
)
def test_why_a_clock_is_held_back(bits: int, words: tuple[str, ...]) -> None:
    assert sampled(Nvml(reasons=[bits]), 1).record().throttled == words


def test_reasons_add_up_and_the_highest_temperature_stays() -> None:
    nvml = Nvml(reasons=[0x4, 0x20, 0x1], celsius=[60, 71, 55])
    found = sampled(nvml, 17).record()
    assert (found.throttled, found.temperature_c) == (("power cap", "temperature"), 71)
    asked = [name for name, _ in nvml.calls]
    assert asked.count("nvmlDeviceGetTemperature") == 3  # with the 1st, 9th and 17th sample
    assert asked.count("nvmlDeviceGetClockInfo") == 17


@pytest.mark.parametrize(
    ("changes", "locked"),
    [
        ({"applications": (1980, 1980)}, "no"),
        ({"applications": (1410, 1980)}, "yes"),
        ({"broken": ["nvmlDeviceGetApplicationsClock"]}, "unknown"),
        ({"broken": ["nvmlDeviceGetDefaultApplicationsClock"]}, "unknown"),
    ],
)
def test_whether_the_clock_is_held(changes: dict[str, Any], locked: str) -> None:
    assert sampled(Nvml(**changes), 1).record().locked == locked


# --- what fails -------------------------------------------------------------------------------------------------------


def test_without_nvml_there_is_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "load_nvml", lambda: None)
    made = DeviceClock(0)
    assert made.sample() == 0
    found = made.record()
    assert (found.status, found.detail, found.locked) == ("not sampled", "NVML is not there", "unknown")


@pytest.mark.parametrize("broken", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetClockInfo"])
def test_a_device_that_nvml_does_not_answer_for(broken: str) -> None:
    nvml = Nvml(broken=[broken])
    made = DeviceClock(0, nvml=nvml)
    assert [made.sample(), made.sample()] == [0, 0]
    found = made.record()
    assert (found.status, found.detail) == ("not sampled", f"NVML: {broken} is not supported")
    assert sum(name == broken for name, _ in nvml.calls) == 1  # it is not asked again and again


@pytest.mark.parametrize("broken", ["nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTemperature"])
def test_a_clock_without_reasons_or_temperature_is_a_clock(broken: str) -> None:
    made = sampled(Nvml(1980, 1200, broken=[broken]), 20)
    found = made.record()
    assert (found.status, found.detail) == ("sampled", f"NVML: {broken} is not supported")
    assert (len(made.megahertz), found.max_mhz, found.min_mhz) == (20, 1980, 1200)


def test_a_device_that_is_lost_on_the_way_keeps_what_was_seen() -> None:
    nvml = Nvml(1980, 1900)
    made = sampled(nvml, 2)
    nvml.broken = {"nvmlDeviceGetClockInfo"}
    assert made.sample() == 0
    found = made.record()
    assert (found.status, found.detail) == ("sampled", "NVML: nvmlDeviceGetClockInfo is not supported")
    assert (found.max_mhz, found.min_mhz) == (1980, 1900)


# --- turns at a slow clock --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("megahertz", "slow"), [(1485, False), (1484, True), (345, True), (0, False), (1980, False)])
def test_three_quarters_of_the_highest_clock(megahertz: int, slow: bool) -> None:
    assert clock(345, 1980, 1700).too_slow(megahertz) is slow


def test_where_nothing_was_seen_nothing_is_too_slow() -> None:
    assert not DeviceClock(0, nvml=Nvml()).too_slow(100)


@settings(deadline=None)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=20))
def test_the_highest_clock_is_never_too_slow(megahertz: list[int]) -> None:
    made = clock(*megahertz)
    assert not made.too_slow(max(megahertz))
    assert all(made.too_slow(m) == (m < 0.75 * max(megahertz)) for m in megahertz)


# --- finding NVML -----------------------------------------------------------------------------------------------------


def package(raises: Exception | None) -> types.ModuleType:
    """A package of NVML whose initialisation raises."""
    made = types.ModuleType("pynvml")

    def initialise() -> None:
        made.initialised = True  # type: ignore[attr-defined]  # a note for the test
        if raises is not None:
            raise raises

    made.nvmlInit = initialise  # type: ignore[attr-defined]  # what NVML has
    return made


def test_nvml_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", made := package(None))
    assert load_nvml() is made
    assert made.initialised


@pytest.mark.parametrize("error", [NvmlError("driver not loaded"), OSError("libnvidia-ml.so")])
def test_nvml_without_a_driver_is_none(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", package(error))
    assert load_nvml() is None


def test_a_missing_package_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert load_nvml() is None


# --- while something runs ---------------------------------------------------------------------------------------------


def test_what_is_read_meanwhile_is_no_sample() -> None:
    made = sampled(nvml := Nvml(1980), 1)
    nvml.clocks, nvml.reasons = [1700, 1400, 1600], [0x004, 0x001, 0x020, 0x001]
    with made.watched() as seen:
        wait_until(lambda: len(seen.megahertz) > 4)
    assert seen.megahertz[:3] == [1700, 1400, 1600]
    assert set(seen.megahertz[3:]) <= {1600}
    assert seen.throttled() == ("power cap", "temperature")
    assert (made.megahertz, made.record().min_mhz, made.record().throttled) == ([1980], 1980, ())


def test_nothing_is_read_once_the_block_has_ended() -> None:
    before = threading.active_count()
    with clock(1980).watched() as seen:
        wait_until(lambda: seen.megahertz)
    assert threading.active_count() == before


def test_an_error_in_the_block_ends_the_reading_too() -> None:
    before = threading.active_count()
    with pytest.raises(RuntimeError), clock(1980).watched():
        raise RuntimeError
    assert threading.active_count() == before


@pytest.mark.parametrize("broken", ["nvmlDeviceGetClockInfo", "nvmlDeviceGetCurrentClocksThrottleReasons"])
def test_a_device_that_does_not_say_is_not_asked_again(broken: str) -> None:
    made = DeviceClock(0, nvml=(nvml := Nvml(1980, broken=[broken])))
    before = threading.active_count()
    with made.watched() as seen:
        wait_until(lambda: threading.active_count() == before)
    assert seen.throttled() == ()
    assert sum(name == broken for name, _ in nvml.calls) == 1
    assert made.sample() == (0 if broken == "nvmlDeviceGetClockInfo" else 1980)


def test_without_nvml_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "load_nvml", lambda: None)
    before = threading.active_count()
    with DeviceClock(0).watched() as seen:
        wait_until(lambda: threading.active_count() == before)
    assert seen == clocks.Watched()
