"""Reports of Nsight Compute, MADE UP for tests: the form is that of real exports, the numbers are invented.

Real reports of the same kernels, taken on an H200, are to replace the numbers; the expected diagnoses stay.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

HEAD = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size")
HEAD += ("Device", "CC")
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
Metrics = Mapping[str, tuple[str, str]]
"""Name → unit and text."""

SOFTMAX: Metrics = {
    "device__attribute_display_name": ("", "NVIDIA H200"),
    "gpu__time_duration.sum": ("us", "128.5"),
    "gpc__cycles_elapsed.avg.per_second": ("Ghz", "1.755"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "31.4"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "88.6"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "88.6"),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "52.1"),
    "l1tex__throughput.avg.pct_of_peak_sustained_active": ("%", "40.2"),
    "dram__bytes_read.sum": ("Mbyte", "268.435456"),
    "dram__bytes_write.sum": ("Mbyte", "263.1"),
    "l1tex__t_sector_hit_rate.pct": ("%", "0.4"),
    "lts__t_sector_hit_rate.pct": ("%", "50.2"),
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": ("byte/sector", "32"),
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": ("byte/sector", "32"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", "8,388,608"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("request", "524,288"),
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "12.4"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "0"),
    "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": ("%", "21.7"),
    "sm__inst_executed.avg.per_cycle_active": ("inst/cycle", "0.91"),
    "smsp__issue_active.avg.per_cycle_active": ("", "0.23"),
    "smsp__warps_eligible.avg.per_cycle_active": ("warp", "0.41"),
    "smsp__warps_active.avg.per_cycle_active": ("warp", "13.8"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "100"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "92.3"),
    "launch__occupancy_limit_registers": ("block", "8"),
    "launch__occupancy_limit_shared_mem": ("block", "16"),
    "launch__occupancy_limit_warps": ("block", "8"),
    "launch__occupancy_limit_blocks": ("block", "32"),
    "launch__registers_per_thread": ("register/thread", "32"),
    "launch__shared_mem_per_block_static": ("byte/block", "0"),
    "launch__shared_mem_per_block_dynamic": ("Kbyte/block", "1.024"),
    "launch__grid_size": ("", "8,192"),
    "launch__block_size": ("", "256"),
    "launch__sm_count": ("SM", "132"),
    "launch__waves_per_multiprocessor": ("", "7.76"),
    "smsp__thread_inst_executed_per_inst_executed.ratio": ("", "31.9"),
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": ("", "29.7"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": ("", "0"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": ("", "0"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("", "16,384"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("", "16,384"),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": ("sector", "0"),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": ("sector", "0"),
    "sm__cycles_active.max": ("cycle", "226,101"),
    "sm__cycles_active.avg": ("cycle", "221,930.4"),
    "smsp__average_warp_latency_per_inst_issued.ratio": ("cycle", "60.1"),
    STALL.format("long_scoreboard"): ("inst", "48.2"),
    STALL.format("short_scoreboard"): ("inst", "1.2"),
    STALL.format("barrier"): ("inst", "2.4"),
    STALL.format("wait"): ("inst", "2.1"),
    STALL.format("lg_throttle"): ("inst", "0.3"),
    STALL.format("gmma"): ("inst", "0"),
    STALL.format("selected"): ("inst", "1"),
    STALL.format("not_selected"): ("inst", "0.8"),
}
"""A softmax that reads its input once: DRAM is nearly full."""


def changed(metrics: Metrics = SOFTMAX, **values: str) -> dict[str, tuple[str, str]]:
    """`metrics` with other values, by our names."""
    from kbs.hardware.profile_metrics import profile_metrics

    new = dict(metrics)
    for id, text in values.items():
        metric = profile_metrics().all[id]
        name = next((ncu for ncu in metric.ncu if ncu in new), metric.ncu[0])
        new[name] = (new[name][0] if name in new else {"us": "us", "%": "%", "B": "byte"}.get(metric.unit, ""), text)
    return new


def without(*names: str, metrics: Metrics = SOFTMAX) -> dict[str, tuple[str, str]]:
    """`metrics` without those whose names begin so."""
    return {name: value for name, value in metrics.items() if not name.startswith(names)}


def raw_csv(*launches: tuple[str, Metrics], before: str = "", after: str = "") -> str:
    """The raw page: header, units, a row a launch."""
    units = {name: unit for _, metrics in launches for name, (unit, _) in metrics.items()}
    rows: list[Sequence[str]] = [[*HEAD, *units], [""] * len(HEAD) + list(units.values())]
    for number, (kernel, metrics) in enumerate(launches):
        rows.append([*_head(number, kernel), *(metrics[name][1] if name in metrics else "n/a" for name in units)])
    return before + _written(rows) + after


def details_csv(kernel: str, rows: Sequence[tuple[str, str, str, str]]) -> str:
    """The details page: section, label, unit, value."""
    columns = [*HEAD, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type"]
    columns += ["Rule Description"]
    body = [[*_head(0, kernel), *row, "", "", ""] for row in rows]
    rule = [*_head(0, kernel), "SpeedOfLight", "", "", "", "SOLBottleneck", "OPT", "Text of a rule, 99 % of it advice"]
    return _written([columns, *body, rule])


def _head(number: int, kernel: str) -> list[str]:
    return [str(number), "4711", "python", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(8192, 1, 1)", "0", "9.0"]


def _written(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


KERNELS: Mapping[str, Metrics] = {
    "softmax_kernel": SOFTMAX,
    "softmax_two_pass": changed(
        duration="226.4", dram_bytes_read="536.87", l2_hit_rate="34.1", memory_throughput="86.1", dram_throughput="86.1"
    ),
    "matmul_tensor": changed(
        duration="184.2", sm_throughput="86.3", memory_throughput="41.0", dram_throughput="12.2", tensor_pipe="86.3",
        issue_active="0.34", achieved_occupancy="18.4", theoretical_occupancy="18.75", stall_long_scoreboard="2.1",
        stall_gmma="3.1", warp_latency="12.6", stall_math_pipe_throttle="0.8", eligible_warps="0.4", active_warps="3",
        limit_registers="1", waves="3.1", grid_size="412", l1_throughput="45", l2_throughput="39.4",
    ),
    "matmul_fma": changed(
        duration="2210.4", sm_throughput="92.8", memory_throughput="61.2", dram_throughput="4.2", fma_pipe="92.8",
        issue_active="0.94", issued="93.1", stall_long_scoreboard="0.4", stall_math_pipe_throttle="3.4",
        warp_latency="9.1", eligible_warps="3.6", active_warps="8.1", stall_not_selected="2.6", l1_throughput="61.2",
    ),
    "copy_strided": changed(
        duration="990.2", memory_throughput="91.3", dram_throughput="91.3", load_bytes_per_sector="4",
        store_bytes_per_sector="4", load_sectors="16,777,216", sm_throughput="11.0", l1_throughput="62.1",
    ),
    "transpose_conflicts": changed(
        duration="402.1", memory_throughput="84.2", dram_throughput="31.0", l1_throughput="84.2", sm_throughput="20.4",
        bank_conflicts_loads="16,252,928", shared_wavefronts_loads="16,777,216", stall_mio_throttle="20.2",
        stall_long_scoreboard="9.1", stall_short_scoreboard="22.4",
    ),
    "divergent": changed(
        duration="310.0", sm_throughput="83.1", memory_throughput="21.0", dram_throughput="21.0",
        threads_per_instruction="7.4", threads_not_predicated_off="6.8", alu_pipe="62.0", issue_active="0.83",
        stall_long_scoreboard="3.1", warp_latency="16.1", issued="83.1", l2_throughput="12", l1_throughput="20",
    ),
    "tiny_grid": changed(
        duration="310.0", sm_throughput="2.1", memory_throughput="3.0", dram_throughput="3.0", waves="0.01",
        grid_size="4", issue_active="0.3", achieved_occupancy="12.4", sm_cycles_active_avg="16,421.1",
        l2_throughput="2", l1_throughput="9",
    ),
    "spilling": changed(
        duration="812.0", memory_throughput="82.0", dram_throughput="44.0", l1_throughput="82.0", sm_throughput="30.2",
        local_load_sectors="88,080,384", local_store_sectors="44,040,192", registers="255", limit_registers="1",
        theoretical_occupancy="12.5", achieved_occupancy="12.3", stall_lg_throttle="24.0", l2_throughput="70.1",
    ),
    "pointer_chase": changed(
        duration="4210.0", memory_throughput="8.4", dram_throughput="6.3", sm_throughput="2.2", issue_active="0.02",
        eligible_warps="0.02", achieved_occupancy="96.0", warp_latency="412.0", stall_long_scoreboard="408.2",
        l2_throughput="8.4", l1_throughput="4.0",
    ),
    "few_warps": changed(
        duration="940.0", memory_throughput="41.0", dram_throughput="41.0", sm_throughput="22.2", issue_active="0.18",
        eligible_warps="0.2", active_warps="1.9", theoretical_occupancy="12.5", achieved_occupancy="12.1",
        registers="168", limit_registers="1", limit_shared_memory="2", warp_latency="11.0",
        stall_long_scoreboard="7.9", l2_throughput="30.0", l1_throughput="31.0",
    ),
    "scale_small": changed(
        duration="2.9", memory_throughput="12.0", dram_throughput="12.0", sm_throughput="6.1", issue_active="0.11",
        waves="1.2", l2_throughput="11.0", l1_throughput="20.0",
    ),
}  # fmt: skip
"""Kernels of the corpus, by name. Every number in them is invented."""

EXPECTED: Mapping[str, tuple[str, str]] = {
    "softmax_kernel": ("memory-bound", "high-memory-throughput"),
    "softmax_two_pass": ("memory-bound", "high-memory-throughput"),
    "matmul_tensor": ("compute-bound", "high-pipe-utilization"),
    "matmul_fma": ("compute-bound", "high-pipe-utilization"),
    "copy_strided": ("memory-bound", "uncoalesced-access"),
    "transpose_conflicts": ("memory-bound", "bank-conflicts"),
    "divergent": ("compute-bound", "branch-divergence"),
    "tiny_grid": ("launch-bound", "small-grid"),
    "spilling": ("memory-bound", "register-spills"),
    "pointer_chase": ("latency-bound", "stall-long-scoreboard"),
    "few_warps": ("occupancy-bound", "low-occupancy"),
    "scale_small": ("launch-bound", "launch-overhead"),
}
"""Class and first symptom of each."""
