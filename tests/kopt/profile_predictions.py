"""PREDICTIONS, and no measurements: what Nsight Compute should count of the corpus on one H200, by arithmetic.

They follow from the `why` of tests/evaluator/profiles/expected.toml, and were written down before a report was read:
132 SMs at 1.7 GHz, a copy at 4.24 TB/s and a pure read at 4.66 of 4.8, 64 warps an SM, a wavefront of L1 a cycle.
They try the rules on other numbers than the reports of the same kernels in tests/evaluator/profiles/reports have.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from tests.evaluator.ncu_reports import Metrics, changed

SMS = 132
CLOCK = 1700
"""Cycles a microsecond."""
PEAK = 4.8e6
"""Bytes a microsecond."""
DEVICE = {"device__attribute_display_name": ("", "NVIDIA H200")}
BASE: Mapping[str, float] = {
    **{"sm_count": SMS, "theoretical_occupancy": 100, "achieved_occupancy": 95, "threads_per_instruction": 32},
    **{"threads_not_predicated_off": 31, "bank_conflicts_loads": 0, "bank_conflicts_stores": 0, "grid_size": 100_000},
    **{"shared_wavefronts_loads": 0, "shared_wavefronts_stores": 0, "local_load_sectors": 0, "local_store_sectors": 0},
    **{"atomic_sectors": 0, "reduction_sectors": 0, "load_bytes_per_sector": 32, "store_bytes_per_sector": 32},
    **{"fma_pipe": 5, "alu_pipe": 5, "tensor_pipe": 0, "xu_pipe": 0, "lsu_pipe": 5, "issued": 15, "sm_throughput": 15},
    **{"issue_active": 0.15, "eligible_warps": 0.3, "active_warps": 15, "waves": 50.3, "block_size": 256},
    **{"warp_latency": 60, "stall_long_scoreboard": 54, "stall_wait": 2, "stall_selected": 1, "l2_throughput": 40},
    **{"l1_throughput_elapsed": 30, "load_requests": 1, "limit_warps": 8, "limit_registers": 10, "limit_blocks": 32},
    **{"limit_shared_memory": 20},
}


def predicted(us: float, read: float = 0, written: float = 0, **values: float) -> Metrics:
    """A launch of `us` microseconds that moves these bytes from and to DRAM; `values` by our names."""
    cycles = us * CLOCK
    dram = (read + written) / us / PEAK * 100
    found = {
        **BASE,
        **{"duration": us, "dram_bytes_read": read, "dram_bytes_written": written, "dram_throughput": dram},
        **{"l1_cycles_elapsed": SMS * cycles, "sm_cycles_active_max": cycles, "sm_cycles_active_avg": cycles * 0.98},
        **{"load_sectors": read / 32, "store_sectors": written / 32},
        **values,
    }
    levels = (found["dram_throughput"], found["l2_throughput"], found["l1_throughput_elapsed"])
    found.setdefault("memory_throughput", max(levels))
    texts = {id: f"{Decimal(repr(round(value, 6))):f}" for id, value in found.items()}
    return {**DEVICE, **changed({}, **texts)}


def _sectors(loads: float, stores: float = 0, **more: float) -> dict[str, float]:
    return {"load_sectors": loads, "store_sectors": stores, **more}


HALF = 4 * 2**27
"""Bytes of 134217728 numbers."""
PREDICTED: Mapping[str, Metrics] = {
    "scale_stream": predicted(2 * HALF / 4.24e6, HALF, HALF),
    # a dozen shared-memory accesses a warp and row, half of their wavefronts counted as conflicts
    "softmax_rows": predicted(
        2 * HALF / 3.98e6, HALF, HALF, xu_pipe=15, shared_wavefronts_loads=32768 * 24, bank_conflicts_loads=32768 * 12
    ),
    "softmax_three_pass": predicted(4 * HALF / 4.24e6, 3 * HALF, HALF, waves=1.94, grid_size=2048),
    # 32 sectors a request of each, DRAM sees each once; 4.3 GB through L2 at 5.5 TB/s
    "softmax_columns": predicted(
        780, HALF / 2, HALF / 2, load_bytes_per_sector=4, store_bytes_per_sector=4, l2_throughput=80,
        l1_throughput_elapsed=70, **_sectors(2**26, 2**26),
    ),
    "matmul_tensor_cores": predicted(
        1700, 1.2e9, 1.34e8, tensor_pipe=73, sm_throughput=73, l2_throughput=55, l1_throughput_elapsed=45,
        issue_active=0.12, theoretical_occupancy=12.5, achieved_occupancy=12.4, waves=15.5, grid_size=2048,
        stall_long_scoreboard=4, stall_gmma=20, warp_latency=30, **_sectors(0, 4.2e6),
    ),
    # a tail of 3.88 waves; other instructions fill issue slots beyond the FMA pipe
    "matmul_fma": predicted(
        2400, 1.5e9, 6.7e7, fma_pipe=85, issued=93, sm_throughput=93, l1_throughput_elapsed=60, issue_active=0.93,
        theoretical_occupancy=25, achieved_occupancy=24, waves=3.88, grid_size=1024, eligible_warps=1.5,
        active_warps=3.9, stall_long_scoreboard=0.3, stall_math_pipe_throttle=1.2, warp_latency=4.2, lsu_pipe=40,
    ),
    # 4 bytes of each sector that is read
    "copy_strided": predicted(130, 537e6, 67e6, load_bytes_per_sector=4, **_sectors(2**24, 2**21)),
    # 65536 tiles of 32 reads that are served one thread after the other
    "transpose_conflicts": predicted(
        320, 268e6, 268e6, l1_throughput_elapsed=95, shared_wavefronts_loads=65536 * 1024,
        bank_conflicts_loads=65536 * 992, shared_wavefronts_stores=65536 * 32, stall_mio_throttle=30, warp_latency=80,
        stall_long_scoreboard=10, stall_short_scoreboard=30,
    ),
    "divergent_collatz": predicted(
        1100, 17e6, 17e6, threads_per_instruction=2.5, threads_not_predicated_off=2.3, alu_pipe=95, issued=89,
        sm_throughput=95, issue_active=0.89, stall_long_scoreboard=0.2, warp_latency=12, stall_math_pipe_throttle=4,
        l2_throughput=2, l1_throughput_elapsed=2,
    ),
    "tiny_grid": predicted(
        70, 67e6, 64, grid_size=16, waves=0.0076, store_bytes_per_sector=4, sm_cycles_active_avg=70 * CLOCK * 16 / SMS,
        achieved_occupancy=6.2, sm_throughput=2, l2_throughput=9, l1_throughput_elapsed=4, issue_active=0.05,
        **_sectors(67e6 / 32, 16),
    ),
    # 117 loads and 115 stores of 4 bytes a thread and step, 4 sectors a warp
    "register_spills": predicted(
        2000, 4.2e9, 4.0e9, local_load_sectors=16896 * 16 * 117 * 4, local_store_sectors=16896 * 16 * 115 * 4,
        l2_throughput=75, l1_throughput_elapsed=60, fma_pipe=12, stall_lg_throttle=35, stall_long_scoreboard=20,
        waves=2, grid_size=2112, **_sectors(540672 / 32 * 4 * 17, 540672 / 32 * 4 * 128),
    ),
    # a sector of the hot bin and three others an addition of a warp; one slice of L2 works
    "histogram_hot_bin": predicted(
        800, 67e6, 0, reduction_sectors=2**19 * 4.2, l2_throughput=12, l1_throughput_elapsed=8, stall_lg_throttle=40,
        stall_long_scoreboard=15, waves=31.03, grid_size=65536, issue_active=0.03, sm_throughput=3,
        **_sectors(2**19 * 4),
    ),
    # one sector a warp in flight; DRAM fetches two for it
    "pointer_chase": predicted(
        400, 2 * 33792 * 128 * 32, 33792 * 32, store_bytes_per_sector=4, waves=4, grid_size=8448, block_size=128,
        issue_active=0.05, sm_throughput=5, l2_throughput=8, l1_throughput_elapsed=5, warp_latency=320,
        stall_long_scoreboard=305, **_sectors(33792 * 128, 33792),
    ),
    "l2_distances": predicted(
        3000, 8.4e6, 8448, store_bytes_per_sector=4, l2_throughput=85, l1_throughput_elapsed=60, waves=2.67,
        grid_size=2112, fma_pipe=10, **_sectors(17.7e9 / 32, 2112),
    ),
    "delay_line": predicted(
        3400, 138e6, 138e6, theoretical_occupancy=6.25, achieved_occupancy=6.2, limit_shared_memory=1, limit_warps=16,
        limit_registers=32, waves=4, grid_size=528, block_size=128, issue_active=0.03, sm_throughput=3,
        l2_throughput=4, l1_throughput_elapsed=3, warp_latency=30, stall_long_scoreboard=24,
        shared_wavefronts_loads=528 * 4 * 512, shared_wavefronts_stores=528 * 4 * 912,
    ),
    "fixed_point": predicted(
        155, 1.4e5, 0, grid_size=132, block_size=128, waves=0.0625, issue_active=0.25, issued=25, sm_throughput=25,
        fma_pipe=25, warp_latency=4, stall_long_scoreboard=0.05, stall_wait=2.95, achieved_occupancy=6.25,
        l2_throughput=1, l1_throughput_elapsed=1,
    ),
    "sigmoid_mixture": predicted(
        600, HALF / 2, HALF / 2, xu_pipe=88, sm_throughput=88, issued=50, fma_pipe=20, issue_active=0.5,
        stall_long_scoreboard=5, stall_short_scoreboard=6, stall_mio_throttle=14, warp_latency=30,
    ),
    # 31 of 32 warps wait while one adds
    "barrier_wait": predicted(
        200, 69e6, 69e6, stall_barrier=500, stall_long_scoreboard=120, warp_latency=640, issue_active=0.06,
        sm_throughput=10, l2_throughput=15, l1_throughput_elapsed=15, block_size=1024, waves=64, grid_size=16896,
        shared_wavefronts_loads=16896 * 256, shared_wavefronts_stores=16896 * 32,
    ),
    # one SM works 3 ms, the others 17 us; four warps of 64 are there most of the time
    "ragged_rows": predicted(
        3000, 84e6, 65536, store_bytes_per_sector=4, sm_cycles_active_avg=3000 * CLOCK / 80, achieved_occupancy=7,
        theoretical_occupancy=75, waves=10.3, grid_size=16384, block_size=128, issue_active=0.04, sm_throughput=1,
        l2_throughput=1, l1_throughput_elapsed=1, warp_latency=40, stall_long_scoreboard=33,
        **_sectors(84e6 / 32, 16384),
    ),
}  # fmt: skip
