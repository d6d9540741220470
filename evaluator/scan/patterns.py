"""The names that the scan looks for, with the hazard and severity of each."""

from __future__ import annotations

import re
import sys

# ── Python: dotted names, as evaluator.scan.name_resolution resolves them ──


def names(listed: str) -> frozenset[str]:
    """The names in a text that separates them by blanks: a forgotten comma cannot join or take apart two of them."""
    return frozenset(listed.split())


def table(**hazards: str) -> dict[str, str]:
    """Name → hazard, from the names of each hazard."""
    return {name: id_ for id_, listed in hazards.items() for name in listed.split()}


REJECTED = table(
    scans_memory="gc.get_objects gc.get_referrers gc.get_referents",
    reads_frames="""
        sys._getframe sys._current_frames sys._current_exceptions sys._getframemodulename sys.settrace
        sys.setprofile sys.monitoring threading.settrace threading.setprofile inspect.stack inspect.currentframe
        inspect.trace inspect.getouterframes inspect.getinnerframes traceback.walk_stack traceback.walk_tb
    """,
    # Hooks on `torch.nn.modules.module` reach the modules of everybody, the reference's among them.
    patched="""
        sys.meta_path sys.path_hooks sys.path_importer_cache unittest.mock.patch unittest.mock.patch.object
        unittest.mock.patch.dict unittest.mock.patch.multiple types.CodeType sys.addaudithook
        torch.nn.modules.module.register_module_forward_hook
        torch.nn.modules.module.register_module_forward_pre_hook torch.nn.modules.module._global_forward_hooks
        torch.nn.modules.module._global_forward_pre_hooks
    """,
    hides_operations="""
        torch.utils._python_dispatch._disable_current_modes torch.utils._python_dispatch._pop_mode
        torch.utils._python_dispatch._pop_mode_temporarily torch._C._DisableTorchDispatch
        torch._C._pop_torch_dispatch_stack torch._C._ExcludeDispatchKeyGuard torch._C._set_dispatch_mode
        torch._C._unset_dispatch_mode torch._C._pop_torch_function_stack
        torch._C._dispatch_tls_set_dispatch_key_excluded torch.utils._mode_utils.no_dispatch
        torch._C.DisableTorchFunction
    """,
    dynamic_code="marshal.loads marshal.load",
    file_descriptors="os.closerange",
    detects_benchmark="""
        sys.argv sys.orig_argv sys.gettrace sys.getprofile torch.autograd._profiler_enabled
        torch._C._autograd._profiler_enabled torch._C._len_torch_dispatch_stack torch._C._autograd._profiler_type
        torch.autograd.profiler._is_profiler_enabled torch._C._len_torch_function_stack
        torch._C._get_dispatch_stack_at torch._C._get_dispatch_mode
        torch.utils._python_dispatch._get_current_dispatch_mode
        torch.utils._python_dispatch._get_current_dispatch_mode_stack
        torch.utils._python_dispatch.is_in_torch_dispatch_mode
    """,
    exits_early="os._exit os.abort",
    signals_processes="os.kill os.killpg signal.pthread_kill signal.raise_signal signal.pidfd_send_signal",
    replays_rng="""
        torch.initial_seed torch.random.initial_seed torch.cuda.initial_seed torch.cuda.random.initial_seed
        torch.get_rng_state torch.random.get_rng_state torch.cuda.get_rng_state torch.cuda.get_rng_state_all
        torch.cuda.random.get_rng_state torch.cuda.random.get_rng_state_all torch.default_generator
        torch.random.default_generator torch._C.default_generator torch.cuda.default_generators
        numpy.random.get_state random.getstate
    """,
    library_call="""
        torch.compile torch.jit.script torch.jit.trace torch.jit.script_method torch.jit.trace_module
        torch._dynamo.optimize torch._inductor.compile torch._inductor.compile_fx.compile_fx
        torch._inductor.aot_compile torch._inductor.aoti_compile_and_package torch.jit.optimized_execution
    """,
)
"""Names that no honest kernel uses where it can run, by hazard."""

NOTED = table(
    uses_threads="""
        threading.Thread threading.Timer _thread.start_new_thread multiprocessing.pool.ThreadPool
        concurrent.futures.ThreadPoolExecutor concurrent.futures.thread.ThreadPoolExecutor asyncio.to_thread
    """,
    starts_processes="""
        os.system os.popen os.fork os.forkpty os.posix_spawn os.posix_spawnp os.setsid os.setpgid os.setpgrp
        os.execv os.execve os.execvp os.execvpe os.execl os.execlp os.spawnv os.spawnl os.spawnvp os.spawnlp
        pty.fork pty.spawn concurrent.futures.ProcessPoolExecutor concurrent.futures.process.ProcessPoolExecutor
    """,
    signals_processes="signal.signal signal.setitimer signal.alarm signal.sigwait os.getppid",
    writes_files="""
        torch.save numpy.save numpy.savez numpy.savetxt numpy.memmap pickle.dump json.dump os.remove os.unlink
        os.rename os.replace os.rmdir os.symlink os.link os.truncate shutil.copy shutil.copyfile shutil.copytree
        shutil.move shutil.rmtree tempfile.NamedTemporaryFile tempfile.mkstemp tempfile.TemporaryFile
        multiprocessing.shared_memory.SharedMemory os.mkfifo os.memfd_create
    """,
    file_descriptors="""
        os.dup os.dup2 os.close os.fdopen os.fstat os.lseek os.ftruncate os.write os.pwrite os.read os.pread
        os.sendfile os.writev os.readv fcntl.fcntl
    """,
    loads_libraries="ctypes.CDLL ctypes.PyDLL ctypes.cdll.LoadLibrary ctypes.util.find_library cffi.FFI",
    raw_memory="ctypes.memmove ctypes.memset ctypes.string_at ctypes.pythonapi ctypes.py_object",
    replays_rng="""
        torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.set_rng_state
    """,
    dynamic_code="types.FunctionType builtins.__builtins__ importlib.reload pickle.loads pickle.load",
    hides_operations="torch.overrides.TorchFunctionMode torch.utils._python_dispatch.TorchDispatchMode",
    # Without a `with` the stream stays current when the call has returned.
    patched="torch.cuda.set_stream torch.accelerator.set_stream torch._C._cuda_setStream",
    detects_benchmark="torch.cuda.current_stream().query torch.cuda.default_stream().query",
    network="os.uname platform.node",
)
"""Names that are reported."""

FRAME_ATTRIBUTES = table(
    reads_frames="f_back f_locals f_globals f_builtins tb_frame gi_frame cr_frame",
    reads_modules="__globals__ func_globals",
)
"""Attributes that are rejected on anything."""

NAMES_IN_STRINGS = FRAME_ATTRIBUTES | {
    name.rpartition(".")[2]: REJECTED[name]
    for name in (
        *("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames"),
        *("inspect.currentframe", "inspect.getouterframes", "sys.setprofile", "sys.settrace"),
        *("torch.autograd._profiler_enabled", "torch.autograd.profiler._is_profiler_enabled"),
    )
}
"""The same as strings, as `getattr` and `attrgetter` take them."""

OWN_MODULES = {"kopt", "evaluator", "kbs", "loop", "ingest", "wiki"}
"""Top-level modules of kopt."""

COMMON_MODULES = set(sys.stdlib_module_names) | {"torch", "triton", "numpy", "scipy", "math", "torchvision", "cutlass"}
"""Modules that a reference file may share its name with by accident."""

NETWORK_MODULES = names("socket urllib http requests httpx aiohttp ftplib smtplib ssl socketserver")
PROCESS_MODULES = {"subprocess", "multiprocessing", "pty"}
KERNEL_LIBRARIES = names(
    """
    flash_attn flashinfer xformers vllm sgl_kernel apex transformer_engine liger_kernel cupy jax tensorflow
    onnxruntime tensorrt bitsandbytes nvmath cudnn deep_gemm tinygrad
    """
)
"""Libraries of finished kernels: an import is reported, and what they run is found while they run."""

# Of torch.ops.aten: what allocates, moves or views. The rest computes.
ATEN_WITHOUT_COMPUTING = re.compile(
    r"(?:_?empty|zeros|ones|full|new_|rand|as_strided|_?(?:un)?safe_view|view|_?reshape|permute|_?transpose|t$|expand"
    r"|slice|select|narrow|split|chunk|unbind|unsqueeze|squeeze|detach|alias|contiguous|clone|copy|_to_copy|fill|zero"
    r"|resize|set_|is_|sym_|size|stride|numel|dim$|lift|record_stream|_local_scalar|item|_unsafe_index_put)"
)

# ── the environment ──

TOOL_VARIABLE = re.compile(
    r"(?:CUDA|TORCH|TRITON|PYTORCH|CUTLASS|CUTE|NVCC|NVIDIA|NVRTC|NVSHMEM|NVTE|NV_|NCCL|CUDNN|CUBLAS|CUPTI|HIP|ROCM|ROCR|AMD|"
    r"HSA|OMP|MKL|KMP|OPENBLAS|NUMEXPR|TENSORRT|TILELANG|TVM|FLASH|XDG_|PYTHON|CONDA|CMAKE|CCACHE|SCCACHE|NINJA|LD_|"
    r"LLVM|MLIR|PTXAS|LC_|MASTER_)\w*"
    r"|CC|CXX|C(?:PP|XX)?FLAGS|LDFLAGS|CUDAHOSTCXX|PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|HOME|TMPDIR|"
    r"TMP|TEMP|MAX_JOBS|LANG|(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|VIRTUAL_ENV|MAKEFLAGS|VERBOSE|DEBUG"
)
"""Variables that compilers, GPU libraries and launchers read."""

MEASURING_VARIABLE = re.compile(
    r"(?:.*_)?(?:KOPT|KBS|BENCH\w*|EVAL\w*|GRADER|GRADING|JUDGE|TEST|TESTS|TESTING|PYTEST|CI|GITHUB|GITLAB|JENKINS|"
    r"LEADERBOARD|SUBMISSION|HARNESS|SANDBOX|SCORER|SCORING|KERNELBENCH|KERNELBOT|POPCORN|PROFIL\w*|MEASUR\w*)(?:_.*)?",
    re.IGNORECASE,
)
"""Variables that say that something is being measured or tested."""

# ── assignments ──

PATCHED_ROOTS = set(sys.stdlib_module_names) | {"torch", "triton", "numpy", "scipy", "torchvision"}
"""Libraries whose attributes are not to be assigned."""

SETTINGS = re.compile(
    r"(?:torch|triton|numpy)(?:\.\w+)*\.(?:backends|_?config|knobs)\..+|torch\.utils\.cpp_extension\..+"
    r"|sys\.(?:stdout|stderr|stdin|path|dont_write_bytecode|tracebacklimit|ps1|ps2)|os\.environ"
    r"|.+\.(?:argtypes|restype|errcheck)"
)
"""Attributes of libraries that are there to be set."""

MEASURING_NAMES = names(
    """
    elapsed_time perf_counter perf_counter_ns do_bench do_bench_cudagraph allclose isclose assert_close synchronize
    median monotonic process_time
    """
)
"""Attributes that are held to be patched on whatever object, where a function is assigned to them."""

# ── libraries, in both languages ──

LIBRARY_FILE = re.compile(
    r"(?:lib)?(?:cublas|cublasLt|cudnn|cusparse|cusolver|cufft|cutensor|nvblas|cusparseLt)\w*(?:\.so|$|\.\d)"
)
LIBRARY_FUNCTION = re.compile(r"(?:cublas|cudnn|cusparse|cusolver|cufft|cutensor|nvblas)(?:Lt|Xt|Dn|Sp)?_?[A-Z]\w*\Z")

PROC = re.compile(
    r"/proc(?:/(?!cpuinfo|meminfo|version|driver/nvidia|self/cgroup)\S*)?\Z|/proc/(?:self(?!/cgroup)|thread-self|\d+|%|\{)\S*"
)
"""Files about processes; /proc/cpuinfo and its like are facts about the machine."""
