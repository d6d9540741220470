"""Print a .ncu-rep file as Nsight Compute's `--csv --page raw` does, with NVIDIA's `ncu-report` package.

Runs as its own program, `python -I ncu_package.py FILE`, because the file is not trusted and the package is native code
that must not crash kopt. It imports only the standard library and `ncu_report`.
Source: Nsight Compute, Python Report Interface.
"""

from __future__ import annotations

import csv
import sys
from typing import Any

NOTHING_IN_IT = 3
"""Exit code where the package finds no launch in the file."""


def rows(report: Any) -> list[list[str]]:
    """Header, units, and one row a launch, with the columns of all launches."""
    actions = [
        report.range_by_idx(r).action_by_idx(a)
        for r in range(report.num_ranges())
        for a in range(report.range_by_idx(r).num_actions())
    ]
    units: dict[str, str] = {}
    values: list[dict[str, str]] = []
    for action in actions:
        found: dict[str, str] = {}
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            value = metric.value() if metric is not None and metric.has_value() else None
            if value is not None:
                found[name] = repr(value) if isinstance(value, float) else str(value)
            if metric is not None:
                units.setdefault(name, metric.unit() or "")
        values.append(found)
    names = sorted(units)
    head = ["ID", "Kernel Name", "Block Size", "Grid Size", "CC"]
    table = [head + names, [""] * len(head) + [units[name] for name in names]]
    for number, (action, found) in enumerate(zip(actions, values, strict=True)):
        row = [str(number), action.name(action.NameBase_DEMANGLED), _size(found, "block"), _size(found, "grid")]
        major, minor = (found.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
        row.append(f"{major}.{minor}" if major and minor else "")
        table.append(row + [found.get(name, "") for name in names])
    return table


def _size(found: dict[str, str], what: str) -> str:
    sizes = [found.get(f"launch__{what}_dim_{axis}") for axis in "xyz"]
    return f"({', '.join(size or '' for size in sizes)})" if all(sizes) else ""


def main(path: str) -> int:
    """Print the file; the exit code."""
    import ncu_report

    table = rows(ncu_report.load_report(path))
    if len(table) < 3:
        return NOTHING_IN_IT
    csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
