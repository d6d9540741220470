"""A proposer for `kopt run start --proposer command --command 'python proposer.py'`: the shortest one that is of use.

It reads kopt's request on standard input and writes a proposal on standard output; what it says goes to standard error.
It changes one constant of a Triton kernel: `num_warps`, to the next value that this run has not tried. It knows nothing
about the kernel, so it says only what the request says, and cites the passage that the request found.

    kopt schema run-request      what comes in
    kopt schema run-proposal     what goes out
"""

import json
import re
import sys

METHOD = "launch_config"
VALUES = (4, 8, 2, 16, 1)
WARPS = re.compile(r"\bnum_warps\s*=\s*(\d+)")


def main() -> int:
    """Exit status 1, with the reason on standard error, where there is nothing to propose."""
    request = json.load(sys.stdin)
    kernel = request["parent"]["text"]
    found = WARPS.search(kernel)
    if found is None:
        return give_up("the kernel has no `num_warps=N` that could be changed")
    if not any(method["id"] == METHOD and method["applies"] for method in request["methods"]):
        return give_up(f"the method {METHOD} does not apply to this run")
    passage = best_passage(request)
    if passage is None:
        return give_up("no query found a passage on launch configuration, and a change needs evidence")
    old, tried = int(found[1]), tried_values(request)
    new = next((value for value in VALUES if value not in {old, *tried}), None)
    if new is None:
        return give_up(f"all of {VALUES} were tried")
    changed = kernel[: found.start(1)] + str(new) + kernel[found.end(1) :]
    json.dump(proposal(request, changed, old, new, passage), sys.stdout)
    return 0


def give_up(why: str) -> int:
    """kopt keeps what a program says before it ends, beside the refusal."""
    print(why, file=sys.stderr)
    return 1


def warned(request: dict) -> bool:
    """Whether the experience log shows the method as a known failure on kernels like this one."""
    said = [hit.get("past") or {} for search in request["searches"] for hit in search["hits"]]
    return {"method": METHOD, "advice": "known failure"} in said


def tried_values(request: dict) -> set[int]:
    """What earlier versions and attempts say that they changed to, in the words that `proposal` writes."""
    said = [past["single_change"] for past in (*request["history"], *request["attempts"], *request["refused"])]
    return {int(value) for text in said for value in re.findall(r"num_warps from \d+ to (\d+)", text)}


def best_passage(request: dict) -> dict | None:
    """The first passage that speaks of warps; every reference of the request can be cited as it stands."""
    hits = [hit for search in request["searches"] for hit in search["hits"]]
    return next(
        (hit for hit in hits if "num_warps" in hit["text"] or "warps" in hit["text"]), hits[0] if hits else None
    )


def first_words(text: str) -> str:
    """The beginning of a passage, word for word: evidence is quoted."""
    line = next(line for line in text.splitlines() if line.strip())
    return " ".join(line.split()[:12])


def proposal(request: dict, kernel: str, old: int, new: int, passage: dict) -> dict:
    """The answer. Figures stand in it only where the request has them: numbers without a source are refused."""
    measured, diagnosis = request["measured"], request["diagnosis"]
    shown = f"The diagnosis of the parent is {diagnosis['bottleneck']}." if diagnosis else "There is no diagnosis."
    again = any(METHOD in past["methods"] and not past["kept"] for past in request["history"]) or warned(request)
    return {
        "version": request["version"],
        "parent": request["parent"]["version"],
        "kernel": kernel,
        "language": request["parent"]["language"],
        "methods": [METHOD],
        "skipped": [
            {"method": method["id"], "reason": "this program changes one constant, and cannot apply it"}
            for method in request["methods"]
            if method["applies"] and method["id"] != METHOD and not method["tried"]
        ],
        "hypothesis": {
            "current_evidence": f"{shown} Its receipt is {measured['receipt'][:16]}." if measured else shown,
            "decision_link": "How many warps a program should have depends on registers and latency, so it is tried.",
            "single_change": f"num_warps from {old} to {new}",
            "rationale": f"“{passage['title']}” speaks of it; which value is best is known on the GPU alone.",
            "expected": [{"metric": "time", "direction": "down", "size": "not known beforehand"}],
            "risk": "Other values leave warps idle or spill registers; what is computed stays the same.",
            "decision_rule": "Kept if the lower bound of the ratio to the parent says that it is faster.",
        },
        "evidence": {
            "queries": [{"about": "other", "text": "num_warps and block size of a Triton kernel"}],
            "selected": [
                {
                    "reference": passage["reference"],
                    "quote": first_words(passage["text"]),
                    "why": "It is about how a kernel is launched.",
                }
            ],
        },
        "circumstances": f"Another value than before: {new} in place of {old}, on v{request['parent']['version']}."
        if again
        else "",
    }


if __name__ == "__main__":
    sys.exit(main())
