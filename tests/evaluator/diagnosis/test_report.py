"""Every number of ncu_summary.md stands in the raw CSV, or in arithmetic that is written out and holds."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.diagnosis.report import details, summary
from evaluator.profiling.ncu_numbers import NumberForm
from evaluator.profiling.profile import read_profile
from kbs.evidence.arithmetic import equation_holds
from kbs.evidence.quantities import parse_profiler_unit
from kbs.hardware.profile_metrics import profile_metrics
from tests.evaluator.ncu_reports import KERNELS, SOFTMAX, changed, raw_csv, without

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")
IDS = sorted(id for id, metric in profile_metrics().all.items() if any(name in SOFTMAX for name in metric.ncu))


def numbers_of(text: str) -> set[Decimal]:
    """Every number of a CSV, as it is written and in the base unit of its column."""
    rows = list(csv.reader(io.StringIO(text)))
    form, found = NumberForm(), set[Decimal]()
    for row in rows[2:]:
        for cell, unit in zip(row, rows[1], strict=True):
            value, known = form.parse(cell), parse_profiler_unit(unit)
            if value is not None:
                found |= {value} | ({value * known.scale} if known else set())
    return found


def stray_numbers(text: str, raw: str) -> list[str]:
    """Numbers of a summary that stand neither in the CSV nor in arithmetic that holds."""
    names = [n for m in profile_metrics().all.values() for n in (m.name, *m.ncu)]
    cells = {cell for row in csv.reader(io.StringIO(raw)) for cell in row if cell}
    allowed, launches = numbers_of(raw), raw.count("127.0.0.1")
    allowed |= {Decimal(number) for number in range(1, launches + 1)}  # places in the report, and how many there are
    stray = []
    for line in text.replace("\\", "").splitlines():
        if re.match(r"- (kernel|grid|block|GPU|compute capability|report): ", line):
            said = line.split(": ", 1)[1]
            if said not in cells | {"N/A", "r.csv"}:
                stray.append(line)
            continue
        equation = re.search(r": ([^:]* = .*)$", line)
        if equation:
            if not equation_holds(equation[1]):
                stray.append(line)
            line = equation[1].split("=")[0]
        for name in sorted(names, key=len, reverse=True):
            line = line.replace(name, "")
        for cell in cells:
            if "(" in cell:  # kernels with their parameters
                line = line.replace(cell, "")
        stray += [found for found in NUMBER.findall(line) if Decimal(found.replace(",", "")) not in allowed]
    return stray


VALUES = st.decimals(min_value=0, max_value=10**7, places=2, allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(IDS), st.one_of(VALUES.map(lambda v: f"{v:,f}"), st.just("n/a")), max_size=12))
def test_every_number_of_the_summary_stands_in_the_csv_or_in_arithmetic(values: dict[str, str]) -> None:
    raw = raw_csv(("first(int)", SOFTMAX), ("k<4>(float *)", changed(**values)))
    found = read_profile(raw.encode(), "r.csv")
    chosen = found.choose("2")
    for text in (summary(found, chosen), details(found, chosen)):
        assert stray_numbers(text, raw) == []


def test_the_property_would_see_a_number_that_stands_nowhere() -> None:
    raw = raw_csv(("k", SOFTMAX))
    found = read_profile(raw.encode(), "r.csv")
    text = summary(found, found.choose())
    assert stray_numbers(text.replace("128.5 us", "128.6 us", 1), raw)
    assert stray_numbers(text.replace("= 0.8020", "= 0.9020"), raw)
    assert stray_numbers(text + "\n- hidden: 77.7\n", raw)


def test_what_is_missing_is_not_zero() -> None:
    found = read_profile(raw_csv(("k", without("dram__", "lts__", "smsp__average"))).encode(), "r.csv")
    text = summary(found, found.choose()).replace("\\", "")
    assert "| L2 hit rate | N/A | lts__t_sector_hit_rate.pct |" in text
    assert "DRAM bytes a second: N/A" in text
    assert "dominant stall: N/A" in text


def test_all_launches_are_listed_and_the_choice_is_said() -> None:
    found = read_profile(raw_csv(*KERNELS.items()).encode(), "r.csv")
    text = summary(found, found.choose()).replace("\\", "")
    assert f"- chosen: the slowest of {len(KERNELS)} launches" in text
    assert "- kernel: pointer_chase" in text
    for kernel in KERNELS:
        assert f"| {kernel} |" in text


@pytest.mark.parametrize("kernel", ["# head", "<script>x</script>", "a|b`c`", "[x](http://example.org)"])
def test_a_name_cannot_change_the_document(kernel: str) -> None:
    found = read_profile(raw_csv((kernel, SOFTMAX)).encode(), "r.csv")
    text = summary(found, found.choose())
    lines = [line for line in text.splitlines() if "head" in line or "script" in line or "example" in line]
    assert not [line for line in lines if re.search(r"(?<!\\)[<`\[]", line)]
    assert all(len(re.findall(r"(?<!\\)\|", line)) in (0, 4) for line in text.split("## Time")[0].splitlines())
    assert len(re.findall(r"(?m)^# ", text)) == 1
