"""What disassembler and assembler print: read as it is, and nothing guessed of what is broken."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator.sass.parse import (
    RESERVED_BYTES,
    DisassemblyError,
    Spills,
    Usage,
    read_functions,
    read_spills,
    read_targets,
    read_usage,
)
from wiki.library import bundled_wiki

CUOBJDUMP = """
Resource usage:
 Common:
  GLOBAL:0
 Function _Z5copy4PK6float4PS_i:
  REG:14 STACK:8 SHARED:1024 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function other:
  REG:255 STACK:1464 SHARED:0 LOCAL:16 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0

\tcode for sm_90a
\t.target\tsm_90a

\t\tFunction : _Z5copy4PK6float4PS_i
\t.headerflags\t@"EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                     /* 0x00000a00ff017b82 */
                                                                              /* 0x000e220000000800 */
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R30.64+0x80] ; /* 0x000080041e107981 */
        /*0020*/             @UP1  UIADD3 UR4, UR4, 0x1, URZ ;                /* 0x000ea8000c1e1900 */
        /*0030*/              @!PT STG.E.128 desc[UR4][R2.64], R4 ;           /* 0x000ea8000c1e1900 */
        /*0040*/                   EXIT ;                                     /* 0x000ea8000c1e1900 */
\t\t..........

\t\tFunction : other
\t.headerflags\t@"EF_CUDA_SM90"
        /*0000*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ; /* 0x00e00004001879f0 */
        /*0010*/                   NOP;
        /*0020*/                   BRA 0x20;                                  /* 0xfffffffc00fc7947 */
"""
NVDISASM = """\t.headerflags\t@"EF_CUDA_SM90"
//--------------------- .text.copy           --------------------------
\t.section\t.text.copy,"ax",@progbits
.text.copy:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E R16, desc[UR4][R30.64] ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
"""
PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5spillPKfPf' for 'sm_90a'
ptxas info    : Function properties for _Z5spillPKfPf
    1464 bytes stack frame, 1624 bytes spill stores, 2284 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 1464 bytes cumulative stack size
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""


def opcodes(text: str) -> dict[str, Counter[str]]:
    return {name: code.opcodes for name, code in read_functions(text).items()}


def hashes(text: str) -> dict[str, str]:
    return {name: code.hash for name, code in read_functions(text).items()}


def test_functions_of_cuobjdump() -> None:
    assert opcodes(CUOBJDUMP) == {
        "_Z5copy4PK6float4PS_i": Counter(["LDC", "LDG.E.128.CONSTANT", "UIADD3", "STG.E.128", "EXIT"]),
        "other": Counter(["HGMMA.64x128x16.F32.BF16", "NOP", "BRA"]),
    }


def test_functions_of_nvdisasm() -> None:
    assert opcodes(NVDISASM) == {"copy": Counter(["LDC", "LDG.E", "BRA"])}


def test_resources_of_each_function() -> None:
    assert read_usage(CUOBJDUMP) == {
        "_Z5copy4PK6float4PS_i": Usage(registers=14, stack=8, shared=1024, local=0),
        "other": Usage(registers=255, stack=1464, shared=0, local=16),
    }


ELF = """
64-bit elf: type=ET_EXEC, ABI=8, sm={target}, toolkit=13.0, flags=0x6005a04
Index Offset   Size ES Align                      Type    Flags Link     Info Name
   10    980    200  0 80                     PROGBITS   200006    3        c .text.k
   14    f00      0  0  1                       NOBITS        3    0        0 {section}
 index           value           size      info    other  shndx    name
 0xc               0           0x200     0x12     0x10   0x10     k
 0xd               0           0x180     0x12        0   0x11     called

.nv.info.k
\tAttribute:\tEIATTR_REQNTID
\tFormat:\tEIFMT_SVAL
\tValue:\t0x60 0x2 0x1
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t{most}

Resource usage:
 Function k:
  REG:14 STACK:8 SHARED:{shared} LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function called:
  REG:14 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
RESERVED = ".nv.shared.reserved.0"


@pytest.mark.parametrize(
    ("target", "section", "shared", "own"),
    [
        ("90a", RESERVED, 3072, 2048),
        ("90", RESERVED, 1024, 0),
        ("120", RESERVED, 1040, 16),
        ("80", RESERVED, 3072, 3072),
        ("90", ".nv.shared.k", 3072, 3072),
        ("90", RESERVED, 512, 512),
    ],
)
def test_shared_memory_without_the_systems_part(target: str, section: str, shared: int, own: int) -> None:
    found = read_usage(ELF.format(target=target, section=section, shared=shared, most="0x100 0x1 0x1"))
    assert found["k"].shared == own
    assert found["called"].shared == 0


def test_what_kernels_demand() -> None:
    found = read_usage(ELF.format(target="90", section=RESERVED, shared=0, most="0x100 0x1 0x1"))
    assert found["k"] == Usage(14, 8, 0, 0, kernel=True, barriers=2, required_threads=192, max_threads=256)
    assert found["called"] == Usage(14, 8, 0, 0)
    assert read_targets(ELF.format(target="90a", section=RESERVED, shared=0, most="")) == [(90, "a")]


@pytest.mark.parametrize("most", ["", "0x100 0x1", "0x100 0x0 0x1", "many 0x1 0x1", "0x100 0x1 0x1 0x1"])
def test_a_size_that_is_none_is_not_known(most: str) -> None:
    assert read_usage(ELF.format(target="90", section=RESERVED, shared=0, most=most))["k"].max_threads is None


def test_the_reserved_part_is_the_wikis() -> None:
    """The pages of every capability say as much as the compiler lays out."""
    pages = sorted((bundled_wiki().root / "hardware").glob("cc-*.md"))
    pages = [page for page in pages if int(page.name.split("-")[1]) >= 8]  # earlier ones reserve none
    said = [
        re.findall(r"^\| Reserved shared memory per block \| (\d+) \| KB", p.read_text("utf-8"), re.M) for p in pages
    ]
    assert said == [[str(RESERVED_BYTES // 1024)]] * len(pages)
    assert len(pages) >= 6


def test_resources_that_are_printed_in_part_are_left_out() -> None:
    assert read_usage(" Function f:\n  REG:14 STACK:8\n") == {}
    assert read_usage(" Function f:\n\n  REG:14 STACK:8 SHARED:0 LOCAL:0\n") == {}


def test_spills_of_each_function() -> None:
    assert read_spills(PTXAS) == {"_Z5spillPKfPf": Spills(1464, 1624, 2284), "copy": Spills(0, 0, 0)}


def test_spills_of_no_function_are_left_out() -> None:
    assert read_spills("    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n") == {}
    assert read_spills("Function properties for f\nsomething else\n" + PTXAS.splitlines()[3]) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\t\tFunction : f\n        /*0000*/   ??? R1 ;\n", "line 2: no instruction can be read"),
        ("        /*0000*/   EXIT ;\n", "line 1: an instruction that belongs to no function"),
        ("\t\tFunction : f\n\t\tFunction : g\n        /*0000*/   EXIT ;\n", "the function f has no instructions"),
        (
            "\t\tFunction : f\n /*0000*/ EXIT ;\n\t\tFunction : f\n /*0000*/ EXIT ;\n",
            "line 3: the function f comes twice",
        ),
    ],
)
def test_what_is_no_whole_disassembly(text: str, why: str) -> None:
    with pytest.raises(DisassemblyError, match=why):
        opcodes(text)


def test_text_without_functions_has_none() -> None:
    assert opcodes("") == {}
    assert opcodes("cuobjdump info    : File does not contain device code\n") == {}


LINES = [line for text in (CUOBJDUMP, NVDISASM, PTXAS, ELF) for line in text.splitlines()]


@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60))).map("\n".join))
@example("\t\tFunction : \x00\n")
@example("/*" * 5000)
@example("a" * 5000)
@example(" 1" * 5000)
@example("\n" * 5000)
def test_any_text_gives_counts_or_one_error(text: str) -> None:
    read_usage(text)
    read_spills(text)
    try:
        found = opcodes(text)
    except DisassemblyError:
        return
    assert all(counts and all(n > 0 for n in counts.values()) for counts in found.values())


@given(st.integers(min_value=0, max_value=len(CUOBJDUMP)))
def test_a_disassembly_that_is_cut_counts_no_more_than_the_whole(cut: int) -> None:
    whole = opcodes(CUOBJDUMP)
    try:
        found = opcodes(CUOBJDUMP[:cut])
    except DisassemblyError:
        return
    # The last opcode may have lost modifiers, never its place.
    assert sum(c.total() for c in found.values()) <= sum(c.total() for c in whole.values())


def test_the_hash_of_a_function_is_of_its_instructions_in_their_order() -> None:
    first = "\t\tFunction : f\n        /*0000*/ MOV R1, 0x2 ;  /* 0x00 */\n        /*0010*/ EXIT ;\n"
    same = first.replace("/*0010*/", "/*0020*/").replace("/* 0x00 */", "/* 0x01 */")
    other = first.replace("0x2", "0x3")
    assert hashes(first) == hashes(same)
    assert hashes(first).keys() == opcodes(first).keys() == {"f"}
    assert opcodes(first) == opcodes(other)
    assert hashes(first) != hashes(other)
