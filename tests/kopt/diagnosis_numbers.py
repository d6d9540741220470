"""Numbers of a diagnosis that stand neither in its report, nor in a cited row, nor in arithmetic that is right."""

from __future__ import annotations

import re
from decimal import Decimal

from evaluator.profiling.profile import Chosen
from kbs.evidence.arithmetic import equation_holds
from kopt.services.diagnosis import Diagnosed
from kopt.services.results.telling.diagnosis import lines
from tests.evaluator.diagnosis.test_report import NUMBER


def stray_numbers(report: str, chosen: Chosen, found: Diagnosed, known: frozenset[Decimal]) -> list[str]:
    """Each with its line. `known`: those of the report and of the problem."""
    made = found.diagnosis
    judgements = [j for one in (*made.symptoms, *made.disputed) for j in one.judgements]
    judgements += [*made.decided_by, *(minor.by for minor in made.minor)]
    cells = [cell.strip() for j in judgements for row in j.rows for cell in row.citation.quote.strip("|").split("|")]
    allowed = set(known) | {Decimal(cell) for cell in cells if re.fullmatch(r"\d+(\.\d+)?", cell)}
    stray_lines = []
    for line in lines(report, chosen, found):
        if re.match(r"\s+(try )?[\w-]+: .*\[", line) or " <- " in line or line.startswith(("Not judged", "note")):
            continue  # quoted from the wiki, with its line; counts of rows
        text = re.sub(r", by .*$|\[[^\]]*\]|\S*__\S*|^ +\d+\. |[LH]\d+|FP64|P80|copy \d+ MiB", " ", line)
        for equation in re.findall(r"(\(?[\d(][^:;,]*? = [\d.,]*\d(?:e-?\d+)?(?: (?:GB/s|%))?)", text):
            if not equation_holds(equation):
                stray_lines.append(f"{equation} is wrong: {line}")
            allowed |= {Decimal(n.replace(",", "")) for n in NUMBER.findall(equation.rpartition("=")[2])}
            text = text.replace(equation[equation.index("=") :], " ")
        text = re.sub(r"\d+ B/s", " ", text)  # the rate of the line before, to the byte
        stray = [n for n in NUMBER.findall(text) if Decimal(n.replace(",", "")) not in allowed]
        if stray:
            stray_lines.append(f"{', '.join(stray)}: {line}")
    return stray_lines
