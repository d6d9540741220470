import torch


def setup(count: int = 4194304, lists: int = 33792, steps: int = 128) -> dict[str, object]:
    nodes = torch.randint(0, 1000, (count, 8), dtype=torch.int32, device="cuda")
    cycle = torch.randperm(count, device="cuda")
    nodes[cycle, 0] = cycle.roll(-1).int()
    heads = torch.randint(0, count, (lists,), dtype=torch.int32, device="cuda")
    sizes = {"count": count, "lists": lists, "steps": steps}
    return {"inputs": {"nodes": nodes, "heads": heads, "sums": torch.empty_like(heads), **sizes}, "outputs": ["sums"]}


def reference(nodes: torch.Tensor, heads: torch.Tensor, sums: torch.Tensor, count: int, lists: int, steps: int) -> None:
    node, total = heads.long(), torch.zeros_like(heads)
    for _ in range(steps):
        total += nodes[node, 1:].sum(dim=1, dtype=torch.int32)
        node = nodes[node, 0].long()
    sums.copy_(total)
