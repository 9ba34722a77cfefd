"""RT0xx: a compiled module cannot be loaded, called or run to its end."""

from __future__ import annotations

from functools import partial

from gradir.codes.code import Code

runtime = partial(Code, "runtime")

RUNTIME: dict[str, Code] = {
    "RT001": runtime(
        "wrong number of inputs",
        meaning="A compiled function was called with more or fewer arrays than it has inputs.",
        cause="an argument forgotten, or a nested argument that counts as several arrays.",
        next_step="`repr(function)` shows its signature.",
    ),
    "RT002": runtime(
        "wrong shape",
        meaning="An input has another rank or another size than the function was compiled for.",
        cause="another batch size, or a missing leading dimension.",
        next_step="reshape it, or compile for that shape; dims written as `?` or as a name accept any size.",
    ),
    "RT003": runtime(
        "wrong element type",
        meaning="An input has another element type than the function was compiled for. The runtime never converts silently.",
        cause="numpy's default float64 where the program has float32.",
        next_step="convert it: `x.astype(...)`.",
    ),
    "RT004": runtime(
        "two sizes for one name",
        meaning='Dims of the same name (`b` in `tensor<?x64xf32, ["b", ""]>`) must have one size in a call.',
        cause="arrays of different batches in one call.",
        next_step="the error says where each size was seen; make them equal.",
    ),
    "RT005": runtime(
        "not an array",
        meaning="An input is neither an array nor something that can be viewed as one.",
        cause="a list, None, or a string among the arguments.",
        next_step="pass a numpy array, a `gradir.runtime.Buffer`, a DLPack exporter or, for rank 0, a Python number.",
    ),
    "RT006": runtime(
        "unusable output array",
        meaning="An array given in `out=` has another shape or element type, or is read-only, or their number is wrong.",
        cause="an array of an earlier call with other shapes.",
        next_step="pass one writable array per result. Any layout is fine, and it may overlap an input: the runtime copies then.",
    ),
    "RT007": runtime(
        "no such function",
        meaning="The compiled module has no public function of that name.",
        cause="a misspelt name; private functions are not part of a compiled module.",
        next_step="the error lists the module's functions.",
    ),
    "RT008": runtime(
        "unknown output size",
        meaning="A result has a dim whose size is neither static nor the size of a named input dim.",
        cause="a size that the program computes.",
        next_step="pass the array to write to: `out=[...]`.",
    ),
    "RT009": runtime(
        "size not allowed",
        meaning="An input gives a named size a value that the function was not compiled for: `gradir.Dim` states min, max and multiple.",
        cause="a last, smaller batch, or a sequence longer than the program's limit.",
        next_step="pad or split the input, or compile with a wider `gradir.Dim`.",
    ),
    "RT010": runtime(
        "object cannot be linked",
        meaning="LLVM refused the object code, or a symbol is missing in it.",
        cause="an object made by another version of LLVM, or a bug.",
        next_step="compile the module again on this machine; if that fails too, report it.",
    ),
    "RT011": runtime(
        "unreadable manifest",
        meaning="The artefact has another file format than this version of gradir writes.",
        cause="it was saved by another version.",
        next_step="save the module again with this version.",
    ),
    "RT012": runtime(
        "artefact truncated or altered",
        meaning="The artefact's bytes do not have the hashes that were stored when it was saved.",
        cause="a copy that stopped half-way, or an edited file.",
        next_step="copy the file again, or save the module again.",
    ),
    "RT013": runtime(
        "artefact not found",
        meaning="There is no readable file at the path given to `gradir.runtime.load`.",
        cause="a path relative to another directory.",
        next_step="check the path.",
    ),
    "RT014": runtime(
        "compiled for another machine",
        meaning="The module needs another platform or CPU features that this machine lacks.",
        cause="an artefact compiled with `target=host` on a newer processor.",
        next_step="compile with `target=host` here, or for a CPU whose features both machines have (`target=cpu:x86-64-v3`).",
    ),
    "RT016": runtime(
        "no such optimisation setting",
        meaning="`optimize` is 2 (everything), 1 (no fusion) or 0 (neither fusion nor simplification).",
        cause="another number, or a text.",
        next_step="leave it out; lower settings are for finding out where a result comes from.",
    ),
    "RT017": runtime(
        "no such number of threads or bytes",
        meaning="A call takes at least one thread, the caller's; a cache holds 0 bytes or more.",
        cause="`set_threads(0)`, a negative limit, or a number that was computed wrongly.",
        next_step="pass a whole number in the range that the message names; threads are left out to use all.",
    ),
    "RT018": runtime(
        "GRADIR_NUM_THREADS holds no number",
        meaning="The environment variable `GRADIR_NUM_THREADS` says how many threads compiled code may use where the call of `jit` or "
        "`compile` does not.",
        cause="a text, 0 or a negative number.",
        next_step="set it to a whole number from 1, or unset it to use every processor that the process may run on.",
    ),
    "RT020": runtime(
        "assertion failed",
        meaning="A condition that the program asserts did not hold during the run.",
        cause="inputs that the program declares illegal.",
        next_step="the error carries the op's source line and the values of its operands.",
    ),
    "RT021": runtime(
        "out of memory",
        meaning="The arena, an output or an allocation of the run did not fit into memory.",
        cause="shapes larger than this machine can hold, or results that are kept alive.",
        next_step="drop results that are no longer needed, or call `gradir.runtime.memory.trim()`.",
    ),
    "RT022": runtime(
        "a donated argument shares memory with another",
        meaning="`donate=` lets a call write its results over an argument. The memory of this one is also that of another argument of the "
        "same call, which would change while it is read.",
        cause="one array passed twice, or a view of an array beside the array.",
        next_step="pass a copy, or leave the argument out of `donate=`.",
    ),
    "RT023": runtime(
        "a Buffer is used after it was donated",
        meaning="A call took the memory of this Buffer for its results (`donate=`): what it held is gone.",
        cause="code that goes on with the old parameters, cache or state instead of those that the call returned.",
        next_step="use the result of the call; the error names the call and the argument.",
    ),
    "RT024": runtime(
        "an array cannot be read through DLPack",
        meaning="An object says that it exports its memory through DLPack, but the export fails or gives something that numpy cannot read.",
        cause="an array on a device, a type that numpy lacks (bfloat16), or a `__dlpack__` that raises.",
        next_step="move the array to the CPU, convert its type there, or pass `numpy.asarray(x)`.",
    ),
    "RT030": runtime(
        "a library function is missing",
        meaning="The module calls a function by name (`nd.custom_call`) that nobody has registered in this process.",
        cause="an artefact that is loaded in a program without the function.",
        next_step='`gradir.runtime.library.register("name", function)` before `load`.',
    ),
    "RT031": runtime(
        "not a function",
        meaning="What was to be registered is neither a Python function nor a C function in a form that can be called.",
        cause="a path or symbol that does not exist, or an object of another kind.",
        next_step="pass a callable, a ctypes function pointer, a PyCapsule, or a pair (path of a shared library, symbol).",
    ),
    "RT032": runtime(
        "a library function failed",
        meaning="A function that the program calls by name raised an exception, or returned a status other than 0 (C).",
        cause="the function's own: its exception is chained to this error.",
        next_step="the error carries the source line of the call; look at the chained exception.",
    ),
    "RT033": runtime(
        "a library function gives other results",
        meaning="A Python function that the program calls by name returned another number of results, other shapes or other types.",
        cause="a shape rule that does not fit the function, or f64 where the program declares f32.",
        next_step="compare expected and found; convert inside the function.",
    ),
    "RT040": runtime(
        "NaN or infinity of finite operands",
        meaning="`check_nan` ran the program op by op: this op is the first whose operands are finite and whose result is not. What comes "
        "after it only passes the number on.",
        cause="the logarithm or the root of 0 or less, a division by 0, an exponential that overflows; in a derivative, a point where it "
        "is infinite.",
        next_step="guard the operand (`where`, `maximum`), shift it, or compute in a wider type; the message shows element, operands,"
        " round.",
    ),
    "RT050": runtime(
        "cannot read an input array",
        meaning="An `--input` of `gradir-run` does not spell an array.",
        cause="a missing type or value, a number outside the type's range, or a shell that removed the brackets.",
        next_step="write SHAPExTYPE=VALUE (`2x3xf32=1.5`, `4xi32=[1,2,3,4]`, `4xf32=random(0)`, `8xi32=iota`) or @FILE.npy, in quotes.",
    ),
    "RT051": runtime(
        "cannot read an argument of a kernel",
        meaning="An `--arg` or `--out` of `gradir-ptx run` does not spell what the kernel can be given, or names no array.",
        cause="a missing type or size, a number outside the type's range, a file of another size, or a shell that removed the brackets.",
        next_step="write TYPE[SIZES]=VALUE for arrays (`'f32[64,32]=random(0)'`), TYPE=NUMBER for numbers (`u32=1000`), in quotes.",
    ),
    "RT060": runtime(
        "measuring needs arguments",
        meaning="`explain` and the tuner run the program. Without arguments they make random ones, of the sizes that the function "
        "declares; this one has a size that only a call knows.",
        cause="`dynamic=` sizes, or `?` in a type, and no arguments.",
        next_step="give arguments: `compiled.explain(*arguments)`, `--input` of the tools; what is measured is these sizes.",
    ),
    "RT061": runtime(
        "the roofline cannot be plotted",
        meaning="The plot needs matplotlib, and an explanation whose program was run.",
        cause="matplotlib is not installed, or the explanation comes from `describe`, which runs nothing.",
        next_step="`pip install gradir[demo]`; explain with arguments.",
    ),
    "RT062": runtime(
        "no decisions of the tuner for this compiler",
        meaning="`gradir-tune --import` takes what `--export` wrote, for the same versions of gradir and what it is made of: another "
        "version makes other code of the same schedule.",
        cause="a file of another kind, or an upgrade in between.",
        next_step="tune again; a damaged file cannot be mended.",
    ),
    "RT063": runtime(
        "a kernel cannot be measured",
        meaning="The tuner runs each form of a kernel in a child process. Not even the form that the program uses now ran there.",
        cause="a library that the program calls and the child cannot load, a machine without memory, or a bug of ours.",
        next_step="run the program itself; if that works, report the kernel: `gradir-run FILE --explain` shows where it comes from.",
    ),
    "RT064": runtime(
        "tuning needs a cache",
        meaning="What the tuner decides is kept in the cache directory, where later compilations find it.",
        cause="`cache=False`, or an empty GRADIR_CACHE_DIR.",
        next_step="leave `cache=` out, or name a directory.",
    ),
    "RT065": runtime(
        "only compiled programs can be explained",
        meaning="`--explain` measures compiled kernels; the reference evaluator and `--check-nan` have none.",
        cause="`--explain` together with `--target=reference`, `--target=runtime` or `--check-nan`.",
        next_step="leave the other option out.",
    ),
    "RT066": runtime(
        "a frozen argument that could change",
        meaning="What a program makes of its frozen arguments (packed weights) is kept from call to call. An array that somebody can "
        "write would make it stale without anybody noticing, so only frozen Buffers are taken.",
        cause="a numpy array, or a Buffer not made by `gradir.freeze`, for an argument that `frozen=` lists.",
        next_step="`weights = gradir.freeze(weights)` once, and pass that; after an update of the weights freeze the new ones.",
    ),
    "RT067": runtime(
        "a program with frozen arguments cannot be saved",
        meaning="An artefact holds code, no arrays. The packed forms of frozen arguments exist in this process only.",
        cause="`save` of a program that was compiled with `frozen=`.",
        next_step="compile it without `frozen=` for the artefact.",
    ),
    "RT068": runtime(
        "no card of that name",
        meaning="`--gpu` and `explain(gpu=..)` name the card whose limits are the bounds.",
        cause="a card that the table lacks.",
        next_step="take one of the table (`h200`, `h100`, `a100`, ..), or add its data sheet to gradir/dialects/target/cuda_facts.py.",
    ),
    "RT069": runtime(
        "schedules of a GPU are not tuned",
        meaning="The tuner measures forms of CPU kernels in child processes; for GPUs there is no such search.",
        cause="`tune=` or `.tune()` with a CUDA target.",
        next_step="leave it out.",
    ),
    "RT070": runtime(
        "no such GPU",
        meaning="A program for CUDA was called, or a device was asked for, and there is none of that number, no driver, or no cupy.",
        cause="a machine without an NVIDIA GPU, cupy not installed (`pip install gradir[cuda]`), `cuda:1` on a machine with one GPU.",
        next_step='`target="cuda:emulated"` runs the same PTX without a GPU; `nvidia-smi` shows what the driver sees.',
    ),
    "RT071": runtime(
        "out of memory on a GPU",
        meaning="The device's memory, or the limit of its pool, is used up. The message lists what is in use, by source line.",
        cause="results that are still referred to, or a program whose arena is too large.",
        next_step="drop results, donate arguments, `memory_report()` of the program; `gradir.device().pool.set_limit(None)` lifts a limit.",
    ),
    "RT072": runtime(
        "an address that is nobody's",
        meaning="The emulated device was asked to copy from, or to run a kernel on, memory that is not, or no longer, allocated.",
        cause="a bug of ours, or memory used after it was given back.",
        next_step="report the program.",
    ),
    "RT073": runtime(
        "a kernel failed on a GPU",
        meaning="A kernel was started and did not end well: an access out of bounds, an instruction that the GPU does not know, or, on the "
        "emulated device, anything that it reports. On a real GPU this is known at the next wait only.",
        cause="a bug of the compiler, or of a kernel of a plugin.",
        next_step='`GRADIR_CUDA_BLOCKING=1` waits after each launch and names it; `target="cuda:emulated"` says what it does wrong.',
    ),
    "RT074": runtime(
        "a GPU refused a launch",
        meaning="The driver did not take a launch, a copy or a tensor map.",
        cause="more shared memory or threads than the GPU has: the program was compiled for another architecture.",
        next_step="compile for the architecture of this GPU.",
    ),
    "RT075": runtime(
        "compiled for another GPU",
        meaning="The module's kernels are for a newer architecture, or use instructions that only one architecture has (sm_90a).",
        cause="an artefact from another machine.",
        next_step="compile it for this GPU, or for an older architecture without a letter (`target=cuda:sm_80`).",
    ),
}
