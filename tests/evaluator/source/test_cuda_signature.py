"""Signatures of `solve`, the pointers that it writes, and sizes of buffers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.source.c_types import ELEMENT_TYPES, element_type
from evaluator.source.cpp_tokens import Kind, lex
from evaluator.source.cuda_signature import (
    Parameter,
    evaluate_size,
    exported_functions,
    output_pointers,
    solve_parameters,
)
from evaluator.source.source_file import SourceFile
from kbs.common.errors import UsageError


def file(text: str) -> SourceFile:
    return SourceFile(name="k.cu", text=text)


def signature(text: str) -> list[str]:
    """The parameters as `const float* x`."""
    return [
        f"{'const ' if p.const else ''}{p.type}{'*' if p.pointer else ''} {p.name}"
        for p in solve_parameters(file(text))
    ]


def parameter(written: str) -> str:
    return signature(f'extern "C" void solve({written}) {{}}')[0]


def refusal(text: str) -> UsageError:
    with pytest.raises(UsageError) as raised:
        solve_parameters(file(text))
    return raised.value


# ── parameters ──


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("const float* x", "const float* x"),
        ("float const *x", "const float* x"),
        ("const float *const x", "const float* x"),
        ("float *const x", "float* x"),
        ("const float* __restrict__ x", "const float* x"),
        ("float *__restrict x", "float* x"),
        ("float x[]", "float* x"),
        ("const float x[64]", "const float* x"),
        ("void* x", "void* x"),
        ("const void *x", "const void* x"),
        ("half* x", "half* x"),
        ("const __half *x", "const half* x"),
        ("at::Half* x", "half* x"),
        ("cutlass::half_t* x", "half* x"),
        ("__nv_bfloat16* x", "bfloat16* x"),
        ("__nv_fp8_e4m3* x", "float8_e4m3* x"),
        ("float4* x", "float* x"),
        ("const uchar4* x", "const unsigned char* x"),
        ("half2* x", "half* x"),
        ("cuComplex* x", "complex float* x"),
        ("std::complex* x", "complex* x"),
        ("int n", "int n"),
        ("const int n", "const int n"),
        ("unsigned n", "unsigned int n"),
        ("unsigned long long int n", "unsigned long n"),
        ("long int n", "long n"),
        ("size_t n", "unsigned long n"),
        ("std::size_t n", "unsigned long n"),
        ("int64_t n", "long n"),
        ("std::int64_t n", "long n"),
        ("uint8_t *x", "unsigned char* x"),
        ("signed char *x", "signed char* x"),
        ("double alpha", "double alpha"),
        ("bool causal", "bool causal"),
        ("half scale", "half scale"),
        ("float eps = 1e-5f", "float eps"),
        ("[[maybe_unused]] int n", "int n"),
        ("__attribute__((unused)) int n", "int n"),
        ("cudaStream_t stream", "cudaStream_t stream"),
        ("struct Weights* w", "Weights* w"),
    ],
)
def test_parameter(written: str, read: str) -> None:
    assert parameter(written) == read


def test_signature_over_lines_with_comments_and_strings() -> None:
    text = """
    // extern "C" void solve(int wrong) {}
    /* extern "C" void solve(int wrong) {} */
    static const char* help = "extern \\"C\\" void solve(int wrong) {}";
    const char* raw = R"x(extern "C" void solve(int wrong) {})x";
    __global__ void k(const float* a, float* b, int n) { if (n) { b[0] = a[0]; } }
    template <typename T, int N> __device__ T reduce(T x) { return x; }
    extern "C" void other(float* a) { }
    extern "C"
    void solve(const float* __restrict__ a, // the input, of n
               /* output */ float* b,
               int n)
    {
        k<<<1, 1'024>>>(a, b, n);
    }
    """
    assert signature(text) == ["const float* a", "float* b", "int n"]


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" { void helper(int k) {} void solve(float* x, int n) {} }',
        'extern "C" void solve(float* x, int n);\nvoid solve(float* x, int n) {}',
        'extern "C" void solve(float*, int);\nextern "C" void solve(float* x, int n) { }',
        '#ifdef __cplusplus\nextern "C" {\n#endif\nvoid solve(float* x, int n) {}\n#ifdef __cplusplus\n}\n#endif\n',
        '#define EXPORT extern "C"\nEXPORT void solve(float* x, int n) {}',
        '#define API extern "C" __attribute__((visibility("default")))\nAPI void solve(float* x, int n) noexcept {}',
        'extern "C" __attribute__((visibility("default"))) void solve(float* x, int n) {}',
        'extern "C" __host__ void solve(float* x, int n) {}',
        '#if 0\nextern "C" void solve(int wrong) {}\n#endif\nextern "C" void solve(float* x, int n) {}',
        'extern "C" void solve(float* x, int n) {}\nint main() { solve(nullptr, 3); return 0; }',
        'using T = float;\nextern "C" void solve(T* x, int n) {}',
        'typedef float scalar_t;\nextern "C" void solve(scalar_t* x, int n) {}',
        '#define DTYPE float\n#define SIZE int\nextern "C" void solve(DTYPE* x, SIZE n) {}',
        '#define ARGS float* x, int n\nextern "C" void solve(ARGS) {}',
        'extern "C" void so\\\nlve(float* x,\\\n int n) {}',
        'namespace a { extern "C" void solve(float* x, int n) {} }',
        'extern "C" void solve(float* x, int n) {}\nextern "C" void solve(float* x, int n) {}',
    ],
)
def test_ways_to_define_it(text: str) -> None:
    assert signature(text) == ["float* x", "int n"]


def test_no_parameters() -> None:
    assert signature('extern "C" void solve() {}') == []
    assert signature('extern "C" void solve(void) {}') == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'it has no extern "C" void solve'),
        ("void solve(float* x) {}", 'solve is not extern "C"'),
        ("static void solve(float* x) {}", 'solve is not extern "C"'),
        ('extern "C" void solve(float* x);', "has no body"),
        ('extern "C" int solve(float* x) { return 0; }', "returns int"),
        ('extern "C" __global__ void solve(float* x) {}', "returns __global__ void"),
        ('extern "C" void resolve(float* x) { solve(x); }', 'it has no extern "C" void solve'),
        ('// extern "C" void solve(float* x) {}', 'it has no extern "C" void solve'),
    ],
)
def test_no_solve(text: str, why: str) -> None:
    error = refusal(text)
    assert error.code == "no_solve"
    assert why in error.message


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("const int& n", "is a reference"),
        ("float** x", "is a pointer to pointers"),
        ("float* x[]", "is a pointer to pointers"),
        ("float", "has no name"),
        ("float*", "has no name"),
        ("unsigned int", "has no name"),
        ("Weights w", "has the type Weights"),
        ("float4 v", "has the type float4"),
        ("half2 v", "has the type half2"),
        ("std::vector<float> v", "neither a pointer nor a number"),
        ("void (*callback)(int)", "neither a pointer nor a number"),
        ("int n, ...", "neither a pointer nor a number"),
        ("float* x, int x", "two parameters named x"),
        ("float* x,", "`nothing`"),
    ],
)
def test_a_parameter_that_cannot_be_passed(written: str, why: str) -> None:
    error = refusal(f'extern "C" void solve({written}) {{}}')
    assert error.code == "solve_signature"
    assert why in error.message
    assert error.hint


def test_two_definitions_that_differ() -> None:
    text = 'extern "C" void solve(float* x) {}\nextern "C" void solve(float* x, int n) {}'
    assert refusal(text).code == "two_kernels"


def test_another_entry() -> None:
    source = file('extern "C" void a(int n) {}\nvoid b(int n) {}\nextern "C" { void c(float* x) {} int d() {} }')
    assert [p.name for p in solve_parameters(source, "c")] == ["x"]
    assert exported_functions(source) == ["a", "c"]


# ── types ──


def test_every_type_is_one_of_ctypes_and_of_torch() -> None:
    for name, known in ELEMENT_TYPES.items():
        assert element_type(name) == name
        if known.torch:
            dtype = getattr(torch, known.torch)
            assert isinstance(dtype, torch.dtype)
            if known.ctypes:
                assert ctypes.sizeof(getattr(ctypes, known.ctypes)) == dtype.itemsize
        elif known.ctypes:
            assert known.ctypes == "c_void_p"


def test_aliases_in_a_circle_end() -> None:
    assert element_type("A", {"A": "B", "B": "A"}) in ("A", "B")
    assert signature('#define A B\n#define B A\nextern "C" void solve(A* x) {}') in (["A* x"], ["B* x"])


# ── outputs ──


def pointers(*written: str) -> list[Parameter]:
    return solve_parameters(file(f'extern "C" void solve({", ".join(written)}) {{}}'))


@pytest.mark.parametrize(
    ("parameters", "named", "written", "outputs"),
    [
        (["const float* x", "float* y", "int n"], (), None, ["y"]),
        (["float* data", "int n"], (), None, ["data"]),
        (["float* x", "float* y"], (), {"y"}, ["y"]),
        (["float* x", "float* y"], (), {"x", "y", "n"}, ["x", "y"]),
        (["float* x", "float* y"], ("x",), None, ["x"]),
        (["float* b", "float* a"], ("a", "b"), frozenset(), ["b", "a"]),
        (["float* x", "float* y"], ("y",), {"x", "y"}, ["x", "y"]),
        (["float* A", "float* B", "float* C", "int N"], (), None, ["C"]),
        (["float* input", "float* output"], (), frozenset(), ["output"]),
        (["float* d_in", "float* d_out"], (), None, ["d_out"]),
        (["float* x", "float* out_a", "float* b_out"], (), None, ["out_a", "b_out"]),
    ],
)
def test_outputs(parameters: list[str], named: tuple[str, ...], written: set[str] | None, outputs: list[str]) -> None:
    seen = None if written is None else frozenset(written)
    assert output_pointers(pointers(*parameters), named, seen) == outputs


@pytest.mark.parametrize(
    ("parameters", "named", "written"),
    [
        (["const float* x", "const float* y"], (), None),
        (["float* x", "float* w1", "float* out"], (), None),
        (["float* p", "float* q"], (), None),
        (["float* x", "float* y"], ("z",), None),
        (["float* x", "float* y", "int n"], ("n",), None),
        (["const float* x", "float* y"], ("x",), None),
        (["const float* x", "float* y"], (), {"x"}),
        (["float* x", "float* y"], ("x",), {"y"}),
        (["int n"], (), None),
    ],
)
def test_ambiguous_outputs_list_the_pointers(
    parameters: list[str], named: tuple[str, ...], written: set[str] | None
) -> None:
    given_ = pointers(*parameters)
    with pytest.raises(UsageError) as raised:
        output_pointers(given_, named, None if written is None else frozenset(written))
    assert raised.value.code == "outputs_ambiguous"
    for p in given_:
        assert not p.pointer or f"* {p.name}" in raised.value.message


# ── sizes ──


@pytest.mark.parametrize(
    ("expression", "size"),
    [("M*N", 12), ("(M + 1) * -(-N // 2)", 10), ("7", 7), ("M % 3 + N", 4), (" M - 1 ", 3), ("+M", 4)],
)
def test_size(expression: str, size: int) -> None:
    assert evaluate_size(expression, {"M": 4, "N": 3} if "(M + 1)" not in expression else {"M": 4, "N": 4}) == size


@pytest.mark.parametrize(
    "expression",
    [
        *("", "M K", "K", "M ** N", "M / N", "M // 0", "M % (N - 3)", "1.5", "M.x", "f(M)", "[M][0]", "M if N else 1"),
        *("-M", "0", "2 * 1099511627776", "True", "'a'", "M;N", "M\n+N", "(" * 100, "-" * 199 + "M", "9" * 199),
        *("M" * 201, "__import__('os')", "M << N", "\0", "(M:=3)", "*".join(["1099511627776"] * 14)),
    ],
)
def test_a_size_that_is_none(expression: str) -> None:
    with pytest.raises(UsageError) as raised:
        evaluate_size(expression, {"M": 4, "N": 3})
    assert raised.value.code == "size_invalid"
    assert "M, N" in raised.value.hint


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 50))
def test_sizes_are_those_of_python(m: int, n: int, k: int) -> None:
    dims = {"m": m, "n": n, "k": k}
    for expression in ("m * n + k", "(m + n - 1) // n * n", "m + m % k", "-(-m // n)"):
        assert evaluate_size(expression, dims) == eval(expression, dims.copy())


# ── tokens ──


def test_tokens() -> None:
    lexed = lex('a->b /* x\ny */ "s\\"t" \'c\' 1\'000u // end\n#define M 1 // one\nR"d(raw "q")d" z')
    assert [t.text for t in lexed.tokens] == ["a", "->", "b", 's\\"t', "c", "1'000u", "define M 1", 'raw "q"', "z"]
    assert [t.line for t in lexed.tokens] == [1, 1, 1, 2, 2, 2, 3, 4, 4]
    assert lexed.comments == ((1, " x\ny "), (2, " end"), (3, " one"))


def test_lines_of_continued_text() -> None:
    lexed = lex("ab\\\ncd e\nf // c\\\nd\ng")
    assert [(t.text, t.line) for t in lexed.tokens] == [("abcd", 1), ("e", 2), ("f", 3), ("g", 5)]


def test_disabled_parts_are_left_out() -> None:
    lexed = lex("a\n#if 0\nb\n#if 1\nc\n#endif\nd\n#else\ne\n#endif\nf")
    assert [t.text for t in lexed.tokens if t.kind is Kind.NAME] == ["a", "e", "f"]


_PIECES = st.sampled_from(
    [
        *(
            'extern "C" ',
            "void ",
            "solve",
            "(",
            ")",
            "{",
            "}",
            "const ",
            "float",
            "*",
            " x",
            ", ",
            "int n",
            "[",
            "]",
            "<",
        ),
        *(
            "/*",
            "*/",
            "//",
            "\n",
            '"',
            "'",
            'R"(',
            ')"',
            "\\\n",
            "#define A B\n",
            "#define B A A\n",
            "A",
            "#if 0\n",
            "\0",
        ),
        *("#endif\n", "template <", ">", ";", "=", "&", "::", "using T = ", "typedef ", "__attribute__((", "..."),
    ]
)


def code_of(work: Callable[[], object]) -> str | None:
    """The code of the UsageError that `work` ends with, None where it succeeds."""
    try:
        work()
    except UsageError as error:
        return error.code
    return None


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=40).map("".join)))
def test_any_text_has_parameters_or_is_refused_by_name(text: str) -> None:
    code = code_of(lambda: solve_parameters(file(text)))
    assert code in (None, "no_solve", "solve_signature", "two_kernels")
    if code is None:
        assert all(p.name.isidentifier() for p in solve_parameters(file(text)))
        assert "solve" in exported_functions(file(text))


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("".join))
def test_any_list_of_parameters(text: str) -> None:
    code = code_of(lambda: solve_parameters(file(f'extern "C" void solve({text}) {{}}')))
    assert code in (None, "no_solve", "solve_signature", "two_kernels")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="MN019+-*/%() .x:=[]'", max_size=40))
def test_any_size_is_a_number_or_refused(text: str) -> None:
    code = code_of(lambda: evaluate_size(text, {"M": 4, "N": 3}))
    assert code in (None, "size_invalid")
    if code is None:
        assert 0 < evaluate_size(text, {"M": 4, "N": 3}) <= 2**40
