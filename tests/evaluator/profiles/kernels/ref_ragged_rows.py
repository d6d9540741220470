import torch


def setup(rows: int = 16384, short: int = 1024, long: int = 4194304) -> dict[str, object]:
    lengths = torch.full((rows,), short, dtype=torch.int64)
    lengths[rows // 3] = long
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(torch.int32).cuda()
    values = torch.randn(int(lengths.sum()), device="cuda")
    sums = torch.empty(rows, device="cuda")
    return {"inputs": {"values": values, "offsets": offsets, "sums": sums}, "outputs": ["sums"]}


def reference(values: torch.Tensor, offsets: torch.Tensor, sums: torch.Tensor) -> None:
    edges = offsets.tolist()
    for row in range(sums.numel()):
        sums[row] = values[edges[row] : edges[row + 1]].sum()
