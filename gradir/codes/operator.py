"""OP0xx: an op cannot be lowered or emitted. OP1xx: the reference evaluator found a program that has no meaning."""

from __future__ import annotations

from functools import partial

from gradir.codes.code import Code

operator = partial(Code, "operator")

OPERATOR: dict[str, Code] = {
    "OP020": operator(
        "op without a lowering",
        meaning="`convert-nd-to-linalg` has no rule for the op.",
        cause="a composite that was not expanded, a request of the ad dialect that was not resolved, or an op of a plugin without a rule.",
        next_step="run `nd-expand` for composites and `differentiate` for requests first; a plugin adds rules with `@lowers` of "
        "`gradir.lowering.convert_nd_to_linalg`.",
    ),
    "OP021": operator(
        "no meaning on complex numbers",
        meaning="`split-complex` cannot write the op in real ones: it is not defined on complex numbers, or has no rule there.",
        cause="an op of a plugin without a rule, or a complex scalar outside of a tensor.",
        next_step="compute with the real and the imaginary part (`nd.real`, `nd.imag`), or use an absolute value.",
    ),
    "OP040": operator(
        "op is not a target-level op",
        meaning="The emitter takes level 4 only: func, scf, arith, memref, vector and the math ops that the target has.",
        cause="passes of the road that did not run, or level-4 text with an op or form that the emitter lacks.",
        next_step="run what is left of the pipeline (`to-loops`); `expand-math` turns other math ops into polynomials.",
    ),
    "OP041": operator(
        "unknown target",
        meaning="Targets are `host`, `cpu` with an LLVM processor name, `cuda` with an architecture such as sm_80.",
        cause="a misspelt processor or architecture.",
        next_step="the error lists the nearest names; `cpu:znver3` and `cuda:sm_90` are the short forms.",
    ),
    "OP042": operator(
        "contradicting target",
        meaning="The module's attribute `gradir.target` was set before, and the option asks for something else.",
        cause="a module that was lowered for one machine and is compiled for another.",
        next_step="set the target once. Start from the tensor level, or remove the attribute, to compile for another machine.",
    ),
    "OP043": operator(
        "LLVM rejected the code",
        meaning="LLVM did not accept what the emitter wrote. This is our mistake, not yours.",
        cause="a form of an op that the emitter spells wrongly.",
        next_step="report it together with the input and the file that the error names: it holds the LLVM text.",
    ),
    "OP044": operator(
        "no PTX",
        meaning="There is nothing to translate to PTX, or the worker process that runs LLVM's NVPTX back end ended with an error, or ptxas "
        "rejected its output or was not found.",
        cause="a module that was lowered for a CPU, or a mistake of the emitter.",
        next_step="set the target to cuda before lowering (`--target=cuda`). Otherwise report it: the file that the error "
        "names holds the text.",
    ),
    "OP045": operator(
        "no such setting of floating-point arithmetic",
        meaning="The attribute `gradir.fastmath` of a function is `none` (what docs/numerics.md says) or `fast` (reassociation, "
        "reciprocals, no care for NaN and infinity).",
        cause="a misspelt setting.",
        next_step='write `gradir.fastmath = "fast"`, or remove the attribute.',
    ),
    "OP050": operator(
        "no such function",
        meaning="The program calls a function by name (`nd.custom_call`), and no function is registered under that name.",
        cause="a misspelt name, or the file that registers it was not loaded.",
        next_step='`gradir.register_custom_call("name", function)` before compiling, or `--load FILE.py` for the tools.',
    ),
    "OP051": operator(
        "function gives other results",
        meaning="A function called by name returned another number of results, other shapes or other element types than the call declares.",
        cause="a shape rule that does not fit the function, or a function that computes in another precision.",
        next_step="compare expected and found; convert inside the function, or correct the shape rule.",
    ),
    "OP052": operator(
        "no kernel for this target",
        meaning="A function called by name, or an op of the operator library, has no implementation for the machine that is compiled for.",
        cause="a CPU function in a module for CUDA.",
        next_step='register one for the target: `kernels={"cuda": ...}`, or compile for the CPU.',
    ),
    "OP053": operator(
        "no such implementation",
        meaning="The attribute `gradir.implementation` pins an op to an implementation that does not exist, or cannot be used here.",
        cause="a misspelt name, another element type, or a package that is not installed.",
        next_step="the error lists the op's implementations and why each does not apply; remove the attribute to let the table choose.",
    ),
    "OP060": operator(
        "not PTX",
        meaning="The emulator's parser met something that PTX's grammar does not have there.",
        cause="a truncated file, text of another assembler, or a directive that no compiler the emulator knows writes.",
        next_step="the message has the line; `ptxas` says whether it is PTX at all.",
    ),
    "OP061": operator(
        "an instruction that the emulator does not know",
        meaning="The text is PTX, but one of its instructions, or this form of it, is outside of the subset in docs/ptx.md.",
        cause="textures, surfaces, or an instruction newer than the emulator.",
        next_step="leave the instruction out of what is to be emulated, or add its meaning in gradir/ptx/instructions.",
    ),
    "OP062": operator(
        "a kernel did something wrong",
        meaning="The emulator ran a kernel and saw a race, an access out of bounds, misaligned or of memory that nobody wrote, lanes that "
        "miss a synchronisation, or warps that wait for ever.",
        cause="a missing barrier, a guard that is off by one, a wrong offset; the report has the instruction, the block and the thread.",
        next_step="read the first report: later ones often follow from it. `launch(..., check=False)` returns all of them.",
    ),
    "OP063": operator(
        "a launch that does not end",
        meaning="A kernel was still running after more instructions than any of its size should need.",
        cause="a loop whose condition never changes, or one that waits for another block that is not resident.",
        next_step="`together=True` lets all blocks be resident at once.",
    ),
    "OP064": operator(
        "a launch that does not fit the kernel",
        meaning="Name, grid, block or arguments are not what the kernel declares.",
        cause="another number of arguments than parameters, a block that is not the one of .reqntid, an array with strides.",
        next_step="expected says what the kernel takes, in its order.",
    ),
    "OP100": operator(
        "no meaning here",
        meaning="The reference evaluator has no meaning for this op at this place, or no values of this type.",
        cause="a request of the `ad` dialect, an op of level 5 or of another target, a missing function, a type that no array has.",
        next_step="run `differentiate` first where the op is a request.",
    ),
    "OP101": operator(
        "uninitialised read",
        meaning="The program reads elements that nothing has written: of `nd.empty`, `tensor.empty`, a fresh buffer or the arena.",
        cause="a fill is missing, or the wrong buffer is read.",
        next_step="initialise the buffer, or look at the pass before which the program still had a meaning (`--check-semantics`).",
    ),
    "OP102": operator(
        "out of bounds",
        meaning="An index, slice or view reaches outside its tensor or buffer. From level 2 on nothing is clamped.",
        cause="a lowering that dropped the clamp, or hand-written indices.",
        next_step="keep the index in bounds before the access; the message shows the index and the size.",
    ),
    "OP103": operator(
        "undefined result",
        meaning="Upstream leaves the result undefined (poison): division by 0, MIN / -1, a shift by the width or more, a float that does "
        "not fit the integer type, a broken nsw, nuw, nnan or ninf promise.",
        cause="an op of level 2 to 4 on an operand that it is not defined for.",
        next_step="guard the operand with a select before the op.",
    ),
    "OP104": operator(
        "write to an argument",
        meaning="The program writes to an input, to a constant, or through a kernel operand declared `read`.",
        cause="an update in place of a buffer that the function does not own.",
        next_step="write to a buffer of the function, or correct `gradir.access` of the kernel's operand.",
    ),
    "OP105": operator(
        "stale read",
        meaning="Bytes of the arena are read through one view after another view has overwritten them: two live values share a place.",
        cause="the memory plan, or the order of the kernels, is wrong.",
        next_step="if `plan-memory` made the program, report it; in hand-written text give the two views disjoint offsets.",
    ),
    "OP106": operator(
        "use after free",
        meaning="A buffer is read, written or freed after it was freed.",
        cause="`memref.dealloc` before the last use, or twice.",
        next_step="move the dealloc behind the last use.",
    ),
    "OP107": operator(
        "parallel iterations conflict",
        meaning="Two iterations of an `scf.parallel`, or two threads of a GPU block, write the same bytes, or one writes what another "
        "reads, or threads wait at different barriers: the result depends on their order.",
        cause="a loop over a reduced dimension marked parallel, or a missing barrier.",
        next_step="make the loop sequential, give each iteration a place of its own, or add `gpu.barrier` between write and read.",
    ),
    "OP108": operator(
        "undeclared alias",
        meaning="Two operands of a kernel call overlap, one of them is written, and no `gradir.alias` says so. The emitter would declare "
        "them noalias.",
        cause="a call that passes views of one buffer twice.",
        next_step="declare the alias on the kernel's arguments, or pass a copy.",
    ),
    "OP109": operator(
        "reads what it writes",
        meaning="An op on buffers reads elements that it has itself overwritten, so that its result depends on the order of its loops.",
        cause="an op in place whose input and output have different indexing maps.",
        next_step="write to another buffer; in place is fine only where both maps are equal.",
    ),
    "OP110": operator(
        "a pass changed the program",
        meaning="`--check-semantics` ran the program before and after each pass: this is the first pass whose result differs.",
        cause="a bug of that pass. With `elements depend on comparisons`, inputs on which rounding decides.",
        next_step="the message names the pass, the element and both values; rerun the pass alone on the IR before it. Where rounding "
        "decides, try another seed.",
    ),
    "OP111": operator(
        "sizes disagree",
        meaning="Two operands give different sizes to one dimension or one loop, or one name of a size has two values or none.",
        cause="inputs that do not fit together, or a run-time size that was computed wrongly.",
        next_step="compare expected and found; sizes of the same name must be equal.",
    ),
    "OP112": operator(
        "loop does not end",
        meaning="The evaluator gave up on a loop after the number of iterations shown, or on calls that nest too deeply.",
        cause="a condition that never becomes false on these inputs, or a function that calls itself.",
        next_step="bound the loop, or try other inputs.",
    ),
    "OP113": operator(
        "assertion failed",
        meaning="A condition that the program asserts (`cf.assert`) did not hold in the reference evaluator.",
        cause="inputs that the program declares illegal.",
        next_step="the message is that of the assertion; change the inputs, or the program.",
    ),
    "OP114": operator(
        "wrong inputs for the evaluator",
        meaning="The number, shapes or element types of the inputs do not fit the function.",
        cause="an `--input` too few, or another element type.",
        next_step="compare expected and found: one input per argument, of exactly its type.",
    ),
}
