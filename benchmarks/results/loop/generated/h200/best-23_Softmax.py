"""Generated for the sizes of one problem: 23_Softmax."""

import torch
import triton
import triton.language as tl


def processors(device):
    if device.type != "cuda":
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count

LOOKS = 200000  # how often a program looks for the others of its row before it works alone


def fitted(x, shape, stride):
    """The tensor as the kernels expect it; other sizes are not what they were made for."""
    if tuple(x.shape) != shape:
        raise ValueError(f"made for {shape}, not for {tuple(x.shape)}")
    if x.stride() == stride or all(a == b or n == 1 for a, b, n in zip(x.stride(), stride, shape)):
        return x
    return torch.empty_strided(shape, stride, device=x.device, dtype=x.dtype).copy_(x)


@triton.jit
def kernel(x0, y0, v2_states, arrived, looks, BLOCK: tl.constexpr, SLOW: tl.constexpr):
    part_at = tl.program_id(0) % 96
    group = tl.program_id(0) // 96
    groups = tl.num_programs(0) // 96
    r = part_at * 4096 + tl.arange(0, BLOCK)
    count = tl.minimum(393216 - part_at * 4096, 4096).to(tl.float32)
    o = group.to(tl.int64)
    v1 = tl.load(x0 + (o * 393216) + r, eviction_policy="evict_last")
    v2_in = v1
    v2_top = tl.max(v2_in, axis=0)
    v2_sum = tl.sum(tl.exp(v2_in - v2_top), axis=0)
    tl.store(v2_states + o * 96 + part_at, v2_top)
    tl.store(v2_states + (4096 + o) * 96 + part_at, v2_sum)
    tl.debug_barrier()
    tl.atomic_add(arrived + o, 1, sem="release", scope="gpu")
    for row in range(group, 4096, groups):
        if row + groups < 4096:
            o = tl.full([], 0, tl.int64) + row + groups
            v1 = tl.load(x0 + (o * 393216) + r, eviction_policy="evict_last")
            v2_in = v1
            v2_top = tl.max(v2_in, axis=0)
            v2_sum = tl.sum(tl.exp(v2_in - v2_top), axis=0)
            tl.store(v2_states + o * 96 + part_at, v2_top)
            tl.store(v2_states + (4096 + o) * 96 + part_at, v2_sum)
            tl.debug_barrier()
            tl.atomic_add(arrived + o, 1, sem="release", scope="gpu")
        o = tl.full([], 0, tl.int64) + row
        here = tl.atomic_add(arrived + o, 0, sem="acquire", scope="gpu")
        look = 0
        while (here < 96) & (look < looks):
            here = tl.atomic_add(arrived + o, 0, sem="acquire", scope="gpu")
            look += 1
        tl.debug_barrier()
        if here >= 96:
            part = tl.arange(0, 128)
            v2_all0_joined = tl.load(v2_states + o * 96 + part, mask=part < 96, other=float("-inf"), cache_modifier=".cg")
            v2_all1_joined = tl.load(v2_states + (4096 + o) * 96 + part, mask=part < 96, other=0.0, cache_modifier=".cg")
            v2_top_joined = tl.max(v2_all0_joined, axis=0)
            v2_sum_joined = tl.sum(v2_all1_joined * tl.exp(v2_all0_joined - v2_top_joined), axis=0)
            v2_r0 = v2_top_joined
            v2_r1 = v2_sum_joined
        else:
            v2_0_alone = tl.full([SLOW], float("-inf"), tl.float32)
            v2_1_alone = tl.full([SLOW], 0.0, tl.float32)
            for start in tl.range(0, 393216, SLOW, num_stages=1):
                r_alone = start + tl.arange(0, SLOW)
                v1_alone = tl.load(x0 + (o * 393216) + r_alone)
                v2_in_alone = v1_alone
                v2_new_alone = tl.maximum(v2_0_alone, v2_in_alone)
                v2_at_alone = tl.where(v2_new_alone == float("-inf"), 0.0, v2_new_alone)
                v2_1_alone = v2_1_alone * tl.exp(v2_0_alone - v2_at_alone) + tl.exp(v2_in_alone - v2_at_alone)
                v2_0_alone = v2_new_alone
            v2_top_alone = tl.max(v2_0_alone, axis=0)
            v2_sum_alone = tl.sum(v2_1_alone * tl.exp(v2_0_alone - v2_top_alone), axis=0)
            v2_r0 = v2_top_alone
            v2_r1 = v2_sum_alone
        v1 = tl.load(x0 + (o * 393216) + r, eviction_policy="evict_first")
        v5 = (tl.exp(v1 - v2_r0) / v2_r1)
        tl.store(y0 + (o * 393216) + r, v5, cache_modifier=".cs")


class ModelNew(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, x0):
        x0 = fitted(x0, (4096, 393216), (393216, 1))
        device = x0.device
        y0 = torch.empty_strided((4096, 393216), (393216, 1), device=device, dtype=torch.float32)
        v2_states = torch.empty(786432, device=device, dtype=torch.float32)
        arrived = torch.zeros(4096, device=device, dtype=torch.int32)
        resident = 6 * processors(device) // 96
        looks = LOOKS if device.type == "cuda" and resident else 1
        kernel[(max(1, min(resident, 4096)) * 96,)](x0, y0, v2_states, arrived, looks, BLOCK=4096, SLOW=1024, num_warps=8, maxnreg=40)
        return y0
