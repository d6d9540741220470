"""Uses names that tools have too: `gc` is a count of groups, `inspect` a block size, `synchronize` an offset."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, gc, inspect: tl.constexpr):
    for group in range(gc):
        synchronize = (tl.program_id(0) * gc + group) * inspect + tl.arange(0, inspect)
        threading = synchronize < n
        subprocess = tl.load(x + synchronize, mask=threading) + tl.load(y + synchronize, mask=threading)
        tl.store(out + synchronize, subprocess, mask=threading)


class ModelNew(torch.nn.Module):
    """The eval mode, the exec order and the compile step are the framework's; this class only has a `socket` size."""

    socket = 2

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        argv = torch.empty_like(x)
        environ = triton.cdiv(x.numel(), 512 * self.socket)
        add[(environ,)](x, y, argv, x.numel(), self.socket, inspect=512)
        return argv
