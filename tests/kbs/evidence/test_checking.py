"""Citations against what the cited lines say now."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kbs.evidence.checking import CheckedCitation, Status, check_citation, check_text, plain_text, seen, stands_in
from kbs.evidence.citation import Citation, CitationLine, EvidenceKind, Reference, lines_hash
from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import vocabulary
from wiki.library import Wiki, Wikis

At = Callable[[str], str]
H100 = "hardware/h100-sxm.md"


def check(text: str, library: Wikis) -> CheckedCitation:
    [checked] = check_text(text, library, vocabulary())
    return checked


@pytest.mark.parametrize(
    ("claim", "row"),
    [
        ("H100 SXM HBM bandwidth: 3.35 TB/s", "| HBM bandwidth"),
        ("h100-sxm5 memory bandwidth: 3,350 GB/s", "| HBM bandwidth"),
        ("HBM bandwidth: 3.35e12 B/s", "| HBM bandwidth"),
        ("H100 SXM's bandwidth: 3.35 x 10^12 B/s", "| HBM bandwidth"),
        ("H100 SXM BF16 tensor throughput (dense): 989 TFLOP/s", "| 989.4"),
        ("H100 SXM bf16 peak (without sparsity): 0.989 PFLOPS", "| 989.4"),
        ("H100 SXM BF16 tensor throughput (2:4): 1979 TFLOPS", "| 1978.9"),
        ("H100 SXM L2 capacity: 52,428,800 bytes", "| L2 capacity"),
        ("H100 SXM L2 cache: 50 MiB", "| L2 capacity"),
        ("H100 SXM shared memory per SM: 228 KiB", "| Shared memory per SM"),
        ("H100 SXM memory capacity: 80e9 B", "| Memory capacity"),
        ("H100 SXM memory type: hbm-3", "| Memory type"),
        ("H100 SXM L2 bandwidth: unpublished", "| L2 bandwidth"),
        ("H100 SXM TDP: 0.7 kW", "| TDP"),
        ("H100 SXM TDP (up to): 700 W", "| TDP"),
        ("H100 SXM PCIe bandwidth (total): 128 GB/s", "| 128"),
        ("H100 SXM fp32_fp64_ratio: 2 x", "| FP32 to FP64"),
    ],
)
def test_right_claims(library: Wikis, at: At, claim: str, row: str) -> None:
    checked = check(f"{claim} <- {at(row)}", library)
    assert checked.status is Status.OK, checked.detail
    assert row in checked.says


@pytest.mark.parametrize(
    ("claim", "row", "why"),
    [
        ("H100 SXM HBM bandwidth: 3.53 TB/s", "| HBM bandwidth", "3.53 TB/s is not 3.35 TB/s"),
        ("H100 SXM HBM bandwidth: 3.4 TB/s", "| HBM bandwidth", "is not"),
        ("H100 SXM HBM bandwidth: 3.35 GB/s", "| HBM bandwidth", "is not"),
        ("H100 SXM HBM bandwidth: 3.35 TB", "| HBM bandwidth", "measures bytes, not bytes per second"),
        ("H100 SXM HBM bandwidth: 3.35", "| HBM bandwidth", "no unit"),
        ("H100 SXM HBM bandwidth: 3.35 TB/h", "| HBM bandwidth", "is not a unit"),
        ("H100 SXM HBM bandwidth: ~3.35 TB/s", "| HBM bandwidth", "is not a number"),
        ("H100 SXM HBM bandwidth: -3.35 TB/s", "| HBM bandwidth", "is not a number"),
        ("H100 SXM HBM bandwidth: 3.35-3.4 TB/s", "| HBM bandwidth", "is not a unit"),
        ("H100 SXM HBM bandwidth (dense): 3.35 TB/s", "| HBM bandwidth", "the line has no qualifier"),
        ("H100 SXM HBM bandwidth (peak, really): 3.35 TB/s", "| HBM bandwidth", "not in the vocabulary"),
        ("H100 PCIe HBM bandwidth: 3.35 TB/s", "| HBM bandwidth", "the line is about H100 SXM"),
        ("H100 HBM bandwidth: 3.35 TB/s", "| HBM bandwidth", "leaves open which of H100 SXM, H100 PCIe, H100 NVL"),
        ("MI999 HBM bandwidth: 3.35 TB/s", "| HBM bandwidth", "is not a product"),
        ("H100 SXM happiness: 3.35 TB/s", "| HBM bandwidth", "names no metric"),
        ("H100 SXM TDP: 3.35 TB/s", "| HBM bandwidth", "the line states HBM bandwidth"),
        ("H100 SXM BF16 tensor throughput: 989.4 TFLOPS", "| 989.4", "the line has “dense”, the claim none"),
        ("H100 SXM BF16 tensor throughput (sparse): 989.4 TFLOPS", "| 989.4", "the line has “dense”"),
        ("H100 SXM BF16 tensor throughput (sparse): 989.4 TFLOPS", "| 1978.9", "is not"),
        ("H100 SXM PCIe bandwidth: 64 GB/s", "| 64", "the claim none"),
        ("H100 SXM L2 capacity: 50,000,000 bytes", "| L2 capacity", "is not"),
        ("H100 SXM memory capacity: 80 GiB", "| Memory capacity", "is not"),
        ("H100 SXM memory type: HBM2e", "| Memory type", "the line says “HBM3”"),
        ("H100 SXM L2 bandwidth: 5.5 TB/s", "| L2 bandwidth", "the line says “unpublished”"),
        ("H100 SXM HBM bandwidth: 3.35 TB/s", "# H100 SXM", "state no hardware value"),
    ],
)
def test_wrong_claims(library: Wikis, at: At, claim: str, row: str, why: str) -> None:
    checked = check(f"{claim} <- {at(row)}", library)
    assert checked.status is Status.MISMATCH
    assert why in checked.detail
    assert checked.says


def test_a_head_with_two_readings(library: Wikis) -> None:
    """ "H100 PCIe bandwidth" is the memory bandwidth of one product, or the PCIe bandwidth of a family."""
    root = library.all["gpu-wiki"].root
    page = (root / H100).read_text("utf-8").replace("h100-sxm", "h100-pcie").replace("H100 SXM", "H100 PCIe")
    (root / "hardware/h100-pcie.md").write_text(page, "utf-8")
    number = page.split("\n").index("| HBM bandwidth | 3.35 | TB/s | | verified | ds p. 2 |") + 1
    reference = f"gpu-wiki/hardware/h100-pcie.md:L{number}"
    assert check(f"H100 PCIe bandwidth: 3.35 TB/s <- {reference}", library).status is Status.OK
    assert check(f"H100 PCIe bandwidth: 3.36 TB/s <- {reference}", library).status is Status.MISMATCH
    assert "is not 3.35" in check(f"H100 PCIe bandwidth: 3.36 TB/s <- {reference}", library).detail


def test_the_longer_metric_is_meant_where_one_product_has_both_readings(library: Wikis) -> None:
    """The A40 is called "A40 PCIe" too, so its memory bandwidth would pass for its PCIe bandwidth."""
    root = library.all["gpu-wiki"].root
    page = (root / H100).read_text("utf-8").replace("h100-sxm", "a40").replace("H100 SXM", "A40")
    (root / "hardware/a40.md").write_text(page, "utf-8")
    number = page.split("\n").index("| HBM bandwidth | 3.35 | TB/s | | verified | ds p. 2 |") + 1
    reference = f"gpu-wiki/hardware/a40.md:L{number}"
    assert check(f"A40 PCIe bandwidth: 3.35 TB/s <- {reference}", library).status is Status.MISMATCH
    assert check(f"A40 bandwidth: 3.35 TB/s <- {reference}", library).status is Status.OK


def test_a_span_holds_if_one_of_its_lines_does(library: Wikis, at: At) -> None:
    first = at("| 989.4")
    last = int(first.rsplit("L", 1)[1]) + 1
    span = f"{first}-L{last}"
    assert check(f"BF16 tensor throughput (dense): 989.4 TFLOPS <- {span}", library).status is Status.OK
    assert check(f"BF16 tensor throughput (sparse): 1978.9 TFLOPS <- {span}", library).status is Status.OK
    wrong = check(f"BF16 tensor throughput (dense): 1978.9 TFLOPS <- {span}", library)
    assert wrong.status is Status.MISMATCH
    assert wrong.says.count("\n") == 1


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("other-wiki/hardware/h100-sxm.md:L3", "there is no wiki named other-wiki"),
        ("gpu-wiki/hardware/h150.md:L3", "gpu-wiki has no page hardware/h150.md"),
        ("gpu-wiki/hardware/h100-sxm.md:L9999", "ends at line"),
        ("gpu-wiki/hardware/h100-sxm.md:L3-L9999", "ends at line"),
        ("gpu-wiki/hardware/h100-sxm.md:L9-L3", "line 3 comes before line 9"),
        ("gpu-wiki/hardware/h100-sxm.md:L0", "names no lines"),
        ("gpu-wiki/hardware/h100-sxm.md", "names no lines"),
        ("receipt/1f0c9a77#time", "no receipt store"),
        ("profile/1f0c9a77#sm__cycles", "no profile store"),
        ("log/1f0c9a77", "no log store"),
        ("note/papers/a.md:L1", "there are no notes named papers"),
    ],
)
def test_not_found(library: Wikis, reference: str, why: str) -> None:
    checked = check(f"TDP: 700 W <- {reference}", library)
    assert checked.status is Status.NOT_FOUND
    assert why in checked.detail


def test_the_last_line_can_be_cited_and_the_next_cannot(library: Wikis) -> None:
    count = len(library.lines("gpu-wiki", H100) or ())
    assert check(f"see gpu-wiki/{H100}:L{count}", library).status is Status.OK
    assert check(f"see gpu-wiki/{H100}:L{count + 1}", library).status is Status.NOT_FOUND


def test_links_out_of_the_wiki_are_no_pages(library: Wikis, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret\n", "utf-8")
    (library.all["gpu-wiki"].root / "way-out.md").symlink_to(tmp_path / "secret.md")
    checked = check("see gpu-wiki/way-out.md:L1", library)
    assert checked.status is Status.NOT_FOUND
    assert "secret" not in checked.says


@pytest.mark.parametrize(
    ("quote", "ok"),
    [
        ("The H100 SXM moves 3.35 TB/s through its HBM", True),
        ("the h100 sxm moves  3.35 TB/s", True),
        ("a memory-bound kernel on it waits", True),  # marks do not count
        ("a **memory-bound** kernel on it", True),
        ("it waits for 13,350 bytes.", True),
        ("it waits for 13,350 bytes", True),
        ("The H100 SXM moves 3.53 TB/s", False),
        ("moves 3.35 TB", False),  # the unit is cut
        ("it waits for 13", False),  # the number is cut
        ("350 bytes.", False),  # two words
        ("bound kernel on it", False),  # the word is cut
        ("SXM moves 3.35 TB/s through its HB", False),
        ("moves through its HBM", False),
    ],
)
def test_quotations(library: Wikis, at: At, quote: str, ok: bool) -> None:
    checked = check(f'"{quote}" <- {at("The H100 SXM moves")}', library)
    assert (checked.status is Status.OK) is ok, checked.detail


def test_a_number_is_not_quoted_by_its_end(library: Wikis, at: At) -> None:
    assert check(f'"350 bytes. The end" <- {at("The H100 SXM moves")}', library).status is Status.MISMATCH
    root = library.all["gpu-wiki"].root
    (root / "n.md").write_text("A block waits for 13,350 bytes of a row.\n", "utf-8")
    assert check('"13,350 bytes of a row" <- gpu-wiki/n.md:L1', library).status is Status.OK
    assert check('"350 bytes of a row" <- gpu-wiki/n.md:L1', library).status is Status.MISMATCH
    assert check('"50 bytes of a row" <- gpu-wiki/n.md:L1', library).status is Status.MISMATCH


def test_what_stands_on_another_line_is_refused_and_its_place_told(library: Wikis, at: At) -> None:
    right = at("The H100 SXM moves")
    page, _, line = right.rpartition(":L")
    quoted = plain_text(library.lines(*page.split("/", 1))[int(line) - 1])  # type: ignore[index]  # the page is there
    wrong = check(f'"{quoted}" <- {page}:L{int(line) - 1}', library)
    assert (wrong.status, wrong.detail) == (
        Status.MISMATCH,
        f"the lines do not have the quoted words; L{line} has them",
    )
    assert check(f'"no line of it has these words" <- {right}', library).detail == (
        "the lines do not have the quoted words"
    )
    there, here = at("| HBM bandwidth"), at("| L2 capacity")
    claim = check(f"H100 SXM HBM bandwidth: 3.35 TB/s <- {here}", library)
    assert claim.status is Status.MISMATCH
    assert claim.detail == f"the line states L2 capacity; L{there.rpartition(':L')[2]} states it"
    assert "states it" not in check(f"H100 SXM HBM bandwidth: 3.4 TB/s <- {here}", library).detail


def test_words_over_two_lines_are_found_and_a_long_page_is_looked_through_soon(tmp_path: Path) -> None:
    (tmp_path / "n.md").write_text("---\n" + "a line of words\n" * 20_000 + "that is all\nthere is to say\n", "utf-8")
    library = Wikis([Wiki("w", tmp_path)])
    assert check('"is all there is" <- w/n.md:L1', library).detail.endswith("; L20002-L20003 have them")
    began = time.monotonic()
    found = check_text('"these words are nowhere" <- w/n.md:L1\n' * 2000, library, vocabulary())
    assert {one.status for one in found} == {Status.MISMATCH}
    assert time.monotonic() - began < 20


def test_a_malformed_citation_line_is_a_mismatch(library: Wikis, at: At) -> None:
    checked = check(f"the board draws a lot of power <- {at('| TDP')}", library)
    assert checked.status is Status.MISMATCH
    assert "neither a spec nor a quotation" in checked.detail


def test_a_bare_reference_is_ok_if_it_resolves(library: Wikis, at: At) -> None:
    checked = check(f"see {at('| TDP')}", library)
    assert checked.status is Status.OK
    assert "700" in checked.says


@pytest.mark.processes  # git is asked for its version
def test_a_hash_that_fits(library: Wikis, at: At, wiki: Wiki) -> None:
    reference = at("| TDP")
    line = (library.lines("gpu-wiki", H100) or ())[int(reference.rsplit("L", 1)[1]) - 1]
    fits = f"TDP: 700 W <- {reference}@{lines_hash([line])[:12]}"
    assert check(fits, library).status is Status.OK
    stale = check(f"TDP: 700 W <- {reference}@{'0' * 12}", library)
    assert stale.status is Status.STALE
    assert stale.says == line
    assert stale.said == ""


def citation(library: Wikis, at: At, row: str) -> Citation:
    start = int(at(row).rsplit("L", 1)[1])
    line = (library.lines("gpu-wiki", H100) or ())[start - 1]
    return Citation("gpu-wiki", H100, start, start, library.all["gpu-wiki"].revision, lines_hash([line]), line)


def test_full_citation(library: Wikis, at: At, wiki: Wiki) -> None:
    tdp = citation(library, at, "| TDP")
    assert check_citation(tdp, library).status is Status.OK
    assert check_citation(replace(tdp, quote="| TDP | 900 | W |"), library).status is Status.MISMATCH
    edited = check_citation(replace(tdp, hash=lines_hash(["x"])), library)
    assert edited.status is Status.STALE
    assert check_citation(replace(tdp, path="gone.md"), library).status is Status.NOT_FOUND
    assert check_citation(replace(tdp, line_end=tdp.line_end + 1), library).status is Status.STALE
    assert check_citation(replace(tdp, line_start=0), library).status is Status.NOT_FOUND
    assert check_citation(replace(tdp, line_start=-1, line_end=-1), library).status is Status.NOT_FOUND


def test_changed_lines_are_stale_and_both_texts_are_shown(library: Wikis, at: At, wiki: Wiki) -> None:
    tdp = citation(library, at, "| TDP")
    page = wiki.root / H100
    page.write_text(page.read_text("utf-8").replace("| 700 | W", "| 650 | W"), "utf-8")
    checked = check_citation(tdp, Wikis([wiki]))
    assert checked.status is Status.STALE
    assert "700" in checked.said
    assert "650" in checked.says


def test_moved_lines_are_found_again(library: Wikis, at: At, wiki: Wiki) -> None:
    tdp = citation(library, at, "| TDP")
    page = wiki.root / H100
    page.write_text(page.read_text("utf-8").replace("# H100 SXM\n", "# H100 SXM\n\nAn added line.\n"), "utf-8")
    checked = check_citation(tdp, Wikis([wiki]))
    assert checked.status is Status.STALE
    assert f"the same text is at L{tdp.line_start + 2} now" in checked.detail


@pytest.mark.processes
def test_git_has_the_old_text_of_a_stale_citation(library: Wikis, at: At, wiki: Wiki) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(wiki.root), *identity, *words], check=True, capture_output=True)

    tdp = citation(library, at, "| TDP")
    page = wiki.root / H100
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    page.write_text(page.read_text("utf-8").replace("| 700 | W", "| 650 | W"), "utf-8")
    git("commit", "-q", "-am", "second")
    checked = check(f"TDP: 700 W <- {tdp.reference}@{tdp.hash[:16]}", Wikis([wiki]))
    assert checked.status is Status.STALE
    assert checked.said == tdp.quote
    assert "650" in checked.says
    unknown = check(f"TDP: 700 W <- {tdp.reference}@{'0' * 16}", Wikis([wiki]))
    assert unknown.status is Status.STALE
    assert unknown.said == ""


def test_other_evidence_is_checked_by_whoever_owns_it(library: Wikis) -> None:
    asked: list[Reference] = []

    def receipts(cited: CitationLine) -> tuple[Status, str, str]:
        asked.append(cited.reference)
        found = cited.reference.target == "1f0c9a77"
        return (Status.OK, "", "1.25") if found else (Status.NOT_FOUND, "no such receipt", "")

    text = "faster: receipt/1f0c9a77#speedup\nslower: receipt/00000000#speedup\n"
    first, second = check_text(text, library, vocabulary(), {EvidenceKind.RECEIPT: receipts})
    assert (first.status, first.says) == (Status.OK, "1.25")
    assert (second.status, second.detail) == (Status.NOT_FOUND, "no such receipt")
    assert [r.part for r in asked] == ["speedup", "speedup"]


def test_a_page_of_several_products_needs_the_product(library: Wikis, at: At) -> None:
    specs = library.specs("gpu-wiki", H100)

    class Both(Wikis):
        def specs(self, wiki: str, path: str) -> Sequence[Spec]:  # noqa: ARG002 - the signature of Wikis
            return [*specs, replace(specs[0], product="h100-pcie")]

    both = Both(library.all.values())
    reference = at("| TDP")
    assert check(f"H100 SXM TDP: 700 W <- {reference}", both).status is Status.OK
    checked = check(f"TDP: 700 W <- {reference}", both)
    assert checked.status is Status.MISMATCH
    assert "the page describes several" in checked.detail


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("A [link](x.md) and `code`.[^a]", "A link and code."),
        ("## Heading", "Heading"),
        ("- **bold** and _slanted_", "bold and slanted"),
        ("| a | b |", "a | b"),
        ("num_warps * 2", "num_warps * 2"),
        ("> 1. quoted", "1. quoted"),
        ("a\nb", "a b"),
        (
            "call `torch._dynamo.mark_dynamic(x, 0)` or `kernel[grid](x)`",
            "call torch._dynamo.mark_dynamic(x, 0) or kernel[grid](x)",
        ),
        ("`__CUDA_ARCH__` and __bold__ and ``a * b``", "__CUDA_ARCH__ and bold and a * b"),
        ("| `a|b` | *c* `", "a|b | c"),
    ],
)
def test_plain_text(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


@pytest.mark.parametrize(
    "unit", ["`", "`a", "``a", "`` a", "[`", "`_", "*`", "`a`", "`a`_", "`|", "`\n", "a`\n", "`" * 999 + "\n"]
)
def test_backticks_that_never_end_take_a_linear_time(unit: str) -> None:
    start = time.process_time()
    plain_text(unit * (400_000 // len(unit)))
    assert time.process_time() - start < 4


@pytest.mark.parametrize(
    "line",
    [
        "Mark sizes: `torch._dynamo.mark_dynamic(x, 0)`, or `dynamic=True`.[^a]",
        "A launch through `kernel[grid](x)` costs 9 to 28 µs.",
        "`__CUDA_ARCH__` is *not* defined on the host.",
        "| `tl.load` | **masked** | see [the page](x.md) |",
    ],
)
def test_what_is_printed_of_a_line_stands_in_it(line: str) -> None:
    assert stands_in(plain_text(line), line)
    assert stands_in(line, line)


def test_what_stands_in_a_comment_is_no_text_of_a_page() -> None:
    page = "# Head\n<!-- asks: idle ·\nmemory slow -->\nText `<!-- kept -->` stays.\n```\n<!-- code -->\n```\n"
    assert seen(page) == "# Head\n\n\nText `<!-- kept -->` stays.\n```\n<!-- code -->\n```\n"
    assert seen("a <!-- open\nend") == "a \n"


def test_words_of_a_comment_cannot_be_quoted(wiki_with_asks: Wikis) -> None:
    checked = check('"idle memory slow" <- my-wiki/page.md:L2', wiki_with_asks)
    assert checked.detail == "the quoted words stand in a comment, which no reader sees"
    assert check('"text of a page" <- my-wiki/page.md:L3', wiki_with_asks).status is Status.OK


@pytest.fixture
def wiki_with_asks(tmp_path: Path) -> Wikis:
    (tmp_path / "page.md").write_text("# Head\n<!-- asks: idle memory slow -->\nThe text of a page.\n", "utf-8")
    return Wikis([Wiki("my-wiki", tmp_path)])
