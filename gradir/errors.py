"""The one exception type that a user of Gradir can cause, and the table of its codes.

Relies on nothing: every layer, the compiler-free runtime included, imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["graph", "autodiff", "operator", "runtime"]


@dataclass(frozen=True)
class Code:
    """One row of the table: the part that failed, a title, and the page that `gradir explain` prints."""

    part: Part
    title: str
    page: str


CODES: dict[str, Code] = {
    "GR001": Code("graph", "shapes differ", "Operands of an elementwise op must have equal shapes: broadcasting is explicit in the IR.\nUse `nd.broadcast` in text; the Python frontend inserts it by numpy's rules."),
    "GR002": Code("graph", "element types differ", "The operands of an op must have the element types that its definition asks for.\nUse `nd.convert` (Python: `x.astype(dtype)`) to change one of them."),
    "GR010": Code("graph", "the text does not parse", "The MLIR text has a syntax error at the position shown, or names an op, attribute or type that no dialect defines.\n`gradir-opt --list-dialects` shows the dialects; `--allow-unregistered-dialect` accepts foreign ones."),
    "GR011": Code("graph", "the IR is invalid", "The verifier rejected an op: its operands, attributes or regions break the op's own rules,\nor a value is used where its definition does not dominate.\nThe message names the op and shows it; `gradir-opt FILE` lists every error of a file."),
    "GR012": Code("graph", "malformed expectation", "A comment of a test file starts like `// expected-error` but cannot be read.\nWrite `// expected-error@+1 {{text}}`; the offset is optional (@+N, @-N, @above, @below, @unknown)."),
    "GR020": Code("graph", "run-time size unknown", "A tensor of run-time size is needed where nothing tells the size: a `?` without a name, or a name that no argument has.\nName the sizes in the types, `tensor<?x64xf32, [\"b\", \"\"]>`, or introduce the name with `nd.bind`."),
    "GR021": Code("graph", "bad fusion group", "Loop nests with one `gradir.group` number must form one kernel: a kind that loop generation knows (elementwise, rows,\ncontraction), and no path of other ops that leaves the group and comes back. `fuse` writes such numbers."),
    "GR030": Code("graph", "unknown pass", "A pipeline names a pass or a named pipeline that does not exist.\n`gradir-opt --list-passes` shows all of them; passes of a plugin appear after `--load FILE.py`."),
    "GR031": Code("graph", "pass name taken", "Two passes were registered under one name.\nRename the pass of the plugin; the names of our own passes cannot be taken over."),
    "GR032": Code("graph", "unknown pipeline option", "A named pipeline was given an option that it does not have.\nOnly `to-structured` has one: `target`, the machine to compile for."),
    "GR033": Code("graph", "bad pass pipeline", "A pipeline is a list `a,b{x=1 y=2}`, possibly nested: `builtin.module(func.func(cse))`.\nThe caret shows where reading stopped. Quote option values that are not words, numbers or lists."),
    "GR034": Code("graph", "bad option of a pass", "A pass was given an option that it does not have, or a value of another type.\n`gradir explain PASS` shows its options; a dash and an underscore are the same."),
    "GR035": Code("graph", "pass on the wrong op", "A pass runs on one kind of op (its anchor): a module pass cannot run inside `func.func(...)`.\nMove it to the module level of the pipeline; function passes given there run on every function."),
    "GR036": Code("graph", "plugin does not load", "A file given with `--load`, or an entry point of the group `gradir.plugins`, raised while it was imported.\nThe message names the file and the exception."),
    "GR040": Code("graph", "recursive call", "A function calls itself, directly or through others; recursion cannot be inlined, differentiated or fused.\nWrite the repetition as a loop: `scf.while`, `scf.for` (Python: `gradir.while_loop`, `gradir.fori_loop`)."),
    "OP020": Code("operator", "op without a lowering", "`convert-nd-to-linalg` has no rule for the op. Composites need `nd-expand` first, requests of the ad dialect `differentiate`;\na plugin adds rules with `@lowers` of `gradir.lowering.convert_nd_to_linalg`."),
    "OP040": Code("operator", "op is not a target-level op", "The emitter takes level 4 only: func, scf, arith, memref, vector and the math ops that the target has.\nRun what is left of the pipeline (`to-loops`); `expand-math` turns other math ops into polynomials."),
    "OP041": Code("operator", "unknown target", "Targets are `host`, `cpu` with an LLVM processor name, `cuda` with an architecture such as sm_80.\nThe error lists the nearest names."),
    "OP042": Code("operator", "contradicting target", "The module's attribute `gradir.target` was set before and the option asks for something else.\nSet the target once, or remove the attribute."),
    "OP043": Code("operator", "LLVM rejected the code", "LLVM did not accept what the emitter wrote. This is our mistake: the file that the error names holds the text.\nPlease report it together with the input."),
    "OP044": Code("operator", "PTX generation failed", "The worker process that runs LLVM's NVPTX back end ended with an error, or ptxas rejected its output.\nThe file that the error names holds the LLVM text."),
    "OP100": Code("operator", "no meaning here", "The reference evaluator has no meaning for this op at this place. Requests of the `ad` dialect have none:\nrun `differentiate` first. Ops of level 5 and of other targets are not evaluated."),
    "OP101": Code("operator", "uninitialised read", "The program reads elements that nothing has written: of `nd.empty`, `tensor.empty`, a fresh buffer or the arena.\nA fill is missing, or the wrong buffer is read."),
    "OP102": Code("operator", "out of bounds", "An index, slice or view reaches outside its tensor or buffer. From level 2 on nothing is clamped:\nthe lowering must keep indices in bounds."),
    "OP103": Code("operator", "undefined result", "Upstream leaves the result undefined (poison): division by 0, MIN / -1, a shift by the width or more, a float that\ndoes not fit the integer type, a broken nsw, nuw, nnan or ninf promise. Guard the operand with a select before the op."),
    "OP104": Code("operator", "write to an argument", "The program writes to an input, a constant, or through a kernel operand declared `read`.\nArguments are unchanged unless donated: write to a buffer that the function owns."),
    "OP105": Code("operator", "stale read", "Bytes of the arena are read through one view after another view has overwritten them: two live values share a place.\nThe memory plan, or the order of the kernels, is wrong."),
    "OP106": Code("operator", "use after free", "A buffer is read, written or freed after it was freed."),
    "OP107": Code("operator", "parallel iterations conflict", "Two iterations of an `scf.parallel` write the same bytes, or one writes what another reads.\nThe result depends on the order of the iterations."),
    "OP108": Code("operator", "undeclared alias", "Two operands of a kernel call overlap, one of them is written, and no `gradir.alias` says so.\nThe emitter would declare them noalias."),
    "OP109": Code("operator", "reads what it writes", "An op on buffers reads elements that it has itself overwritten, so that its result depends on the order of its loops.\nIn place is fine only where input and output have the same indexing map."),
    "OP110": Code("operator", "a pass changed the program", "`--check-semantics` ran the program before and after each pass: this is the first pass whose result differs."),
    "OP111": Code("operator", "sizes disagree", "Two operands give different sizes to one dimension or one loop, or one name of a size has two values."),
    "OP112": Code("operator", "loop does not end", "The evaluator gave up on a loop after the number of iterations shown."),
    "OP113": Code("operator", "assertion failed", "A condition that the program asserts did not hold in the reference evaluator."),
    "OP114": Code("operator", "wrong inputs for the evaluator", "The number, shapes or element types of the inputs do not fit the function."),
    "RT001": Code("runtime", "wrong number of inputs", "A compiled function was called with more or fewer arrays than it has inputs.\n`repr(function)` shows its signature."),
    "RT002": Code("runtime", "wrong shape", "An input has another rank or another size than the function was compiled for.\nReshape it, or compile for that shape; dims written as `?` or as a name accept any size."),
    "RT003": Code("runtime", "wrong element type", "An input has another element type than the function was compiled for: the runtime never converts silently.\nConvert it: `x.astype(...)`."),
    "RT004": Code("runtime", "two sizes for one name", "Dims of the same name (`b` in `tensor<?x64xf32, [\"b\", \"\"]>`) must have one size in a call.\nThe error says where each size was seen."),
    "RT005": Code("runtime", "not an array", "An input is neither an array nor something that can be viewed as one.\nnumpy arrays, `gradir.runtime.Buffer`, DLPack exporters and, for rank 0, Python numbers are accepted."),
    "RT006": Code("runtime", "unusable output array", "An array given in `out=` has another shape or element type, or is read-only.\nAny layout is fine, and it may overlap an input: the runtime copies then."),
    "RT007": Code("runtime", "no such function", "The compiled module has no public function of that name."),
    "RT008": Code("runtime", "unknown output size", "A result has a dim whose size is neither static nor the size of a named input dim.\nPass the array to write to: `out=[...]`."),
    "RT010": Code("runtime", "object cannot be linked", "LLVM refused the object code, or a symbol is missing in it.\nCompile the module again on this machine; if that fails too, it is a bug of gradir."),
    "RT011": Code("runtime", "unreadable manifest", "The artefact was written by a version of gradir with another file format.\nSave the module again with this version."),
    "RT012": Code("runtime", "artefact truncated or altered", "The artefact's bytes do not have the hashes that were stored when it was saved.\nCopy the file again, or save the module again."),
    "RT013": Code("runtime", "artefact not found", "There is no readable file at the path given to `gradir.runtime.load`."),
    "RT014": Code("runtime", "compiled for another machine", "The module needs another platform or CPU features that this machine lacks.\nCompile with `target=host` here, or for a CPU that both machines have."),
    "RT020": Code("runtime", "assertion failed", "A condition that the program asserts did not hold during the run.\nThe error carries the op's source line and the values of its operands."),
    "RT021": Code("runtime", "out of memory", "The arena, an output or an allocation of the run did not fit into memory.\nDrop results that are no longer needed, or call `gradir.runtime.memory.trim()`."),
    "GR050": Code("graph", "results of a memref function unknown", "At levels 3 and 4 results are arguments; a public function says which by `gradir.inputs` and `gradir.results`.\nWrite these attributes, or compile from the tensor level, where bufferize writes them."),
    "GR051": Code("graph", "type without an array", "A public function has an argument or result whose type no array can have.\nMake it private, or convert at its boundary."),
    "GR052": Code("graph", "no such public function", "The function asked for does not exist in the module, is private, or has no body."),
    "RT015": Code("runtime", "target without a runtime", "The runtime loads CPU code only.\n`gradir-translate --to=ptx` writes the PTX of a module compiled for CUDA."),
    "GR103": Code(
        "graph",
        "not an array",
        "A traced function met a value that no tensor can hold.\n"
        "Arrays have elements bool, int8..int64, uint8..uint64, float16, bfloat16, float32 or float64.",
    ),
    "GR104": Code(
        "graph",
        "axis or index out of range",
        "An axis, argument number or static index does not exist in the array.\nNegative ones count from the end. Run-time indices are clamped instead.",
    ),
    "GR105": Code("graph", "unknown padding", "Padding is 'SAME', 'VALID' or one (low, high) pair per spatial dimension."),
    "GR106": Code(
        "graph",
        "a scalar is needed",
        "Predicates are rank-0 booleans, loop bounds rank-0 integers.\nReduce the array first, for example with gradir.any or gradir.all.",
    ),
    "GR107": Code(
        "graph",
        "structure or type changes",
        "Both branches of a `cond`, and the state of a loop before and after each step, have one structure and equal types.\n"
        "Convert with astype or reshape inside the body.",
    ),
    "GR108": Code(
        "graph",
        "a loss is one real scalar",
        "`grad` and `value_and_grad` differentiate a rank-0 floating-point result.\nReduce it, or return (loss, aux) with has_aux=True.",
    ),
    "GR109": Code("graph", "no derivative of this argument", "Only floating-point arguments have derivatives.\nChoose other argnums, or convert with astype."),
    "GR110": Code(
        "graph",
        "array of a finished trace",
        "An array that was made while another function was traced was used.\nReturn it from that function instead of storing it elsewhere.",
    ),
    "GR111": Code(
        "graph",
        "the value of a traced array is not known",
        "Python's if, while, for, int() and float() need a value, and a traced array has none until the program runs.\n"
        "Use gradir.cond, gradir.where, gradir.fori_loop, gradir.while_loop or gradir.scan, or run under `with gradir.eager():`.",
    ),
    "AD001": Code(
        "autodiff",
        "no derivative rule",
        "An op on the path from an argument in `wrt` to the result has no derivative rule: a derivative is never guessed.\n"
        "Register a rule, declare the op non-differentiable with a reason, or cut the path with ad.stop_gradient.",
    ),
    "AD002": Code("autodiff", "bad `wrt`", "`wrt` names arguments of the callee by position; they must be floating-point tensors."),
    "AD003": Code(
        "autodiff",
        "the loss is not a real scalar",
        "ad.grad and ad.value_and_grad differentiate the first result, a rank-0 floating-point tensor.\nUse ad.vjp with a cotangent for others.",
    ),
    "AD004": Code("autodiff", "no such function", "A request names a function that is not in the module or has no body."),
    "AD005": Code(
        "autodiff",
        "reverse mode through a data-dependent loop",
        "An active value passes through scf.while or scf.index_switch.\nUse a loop with a trip count (scf.for), or cut the path with ad.stop_gradient.",
    ),
    "AD006": Code("autodiff", "recursion", "A function calls itself, or asks for its own derivative. Write the recursion as a loop."),
    "AD007": Code(
        "autodiff",
        "residual of changing size",
        "An inner loop's trip count depends on the outer loop, so what it saves has another size each time.\n"
        "Compute the inner bounds outside, and mask the rest.",
    ),
    "AD008": Code("autodiff", "derivative needs static sizes", "This op's derivative is built for static sizes (or small windows) only."),
    "RT050": Code("runtime", "cannot read an input array", "An `--input` of `gradir-run` does not spell an array.\nWrite SHAPExTYPE=VALUE (`2x3xf32=1.5`, `4xi32=[1,2,3,4]`, `4xf32=random(0)`, `8xi32=iota`), or @FILE.npy."),
}


class GradirError(Exception):
    """A failure that the user can act upon.

    `part` names which of the four organs failed, `code` the row of `CODES`; `op`, `function` and `location` say where;
    `expected` and `found` are values, never classes of values; `hint` is the next step.
    """

    def __init__(
        self,
        message: str,
        *,
        part: Part,
        code: str,
        op: str = "",
        function: str = "",
        location: str = "",
        expected: str = "",
        found: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.part, self.code = message, part, code
        self.op, self.function, self.location = op, function, location
        self.expected, self.found, self.hint = expected, found, hint

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}[{self.part} {self.code}] {self.message}"]
        rows = (("op", self.op), ("function", self.function), ("expected", self.expected), ("found", self.found), ("next step", self.hint))
        lines += [f"  {name}: {value}" for name, value in rows if value]
        return "\n".join(lines)
