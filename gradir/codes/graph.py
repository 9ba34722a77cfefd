"""GR0xx: the program itself, its text, or a pipeline is wrong. GR1xx: the Python frontend cannot trace it."""

from __future__ import annotations

from functools import partial

from gradir.codes.code import Code

graph = partial(Code, "graph")

GRAPH: dict[str, Code] = {
    "GR001": graph(
        "shapes differ",
        meaning="Operands do not have the shapes that the op needs. At level 1 the operands of an elementwise op have equal shapes: "
        "broadcasting is explicit in the IR.",
        cause="in Python, shapes that numpy's rules do not broadcast either, or a size that an op has to divide.",
        next_step="compare expected and found in the message; reshape or broadcast one operand (`nd.broadcast` in text).",
    ),
    "GR002": graph(
        "element types differ",
        meaning="An operand has an element type that the op's definition does not take.",
        cause="floating-point indices, bitwise ops on floats, arithmetic on booleans.",
        next_step="convert the operand: `nd.convert` in text, `x.astype(dtype)` in Python.",
    ),
    "GR010": graph(
        "the text does not parse",
        meaning="The MLIR text has a syntax error at the position shown, or names an op, attribute or type that no dialect defines.",
        cause="a typing mistake, an op of a plugin that was not loaded, or an op of upstream that is not supported.",
        next_step="see `gradir-opt --list-dialects`; load the plugin with `--load FILE.py`; `--allow-unregistered-dialect` accepts "
        "foreign ops.",
    ),
    "GR011": graph(
        "the IR is invalid",
        meaning="The verifier rejected the module: an op's operands, attributes or regions break the op's own rules, or a value is used "
        "where its definition does not dominate.",
        cause="hand-written IR, or IR that another tool produced. If one of our passes produced it, it is our bug.",
        next_step="the message names the op and shows it; `gradir-opt FILE` lists every error of a file.",
    ),
    "GR012": graph(
        "malformed expectation",
        meaning="A comment of a test file starts like `// expected-error` but cannot be read.",
        cause="braces or the offset are missing or misspelt.",
        next_step="write `// expected-error@+1 {{text}}`; the offset is optional: @+N, @-N, @above, @below, @unknown.",
    ),
    "GR020": graph(
        "run-time size unknown",
        meaning="A tensor of run-time size is needed where nothing tells the size.",
        cause="a `?` without a name, or with a name that no argument has.",
        next_step='name the sizes in the types of the arguments, `tensor<?x64xf32, ["b", ""]>`, or introduce the name with `nd.bind`.',
    ),
    "GR021": graph(
        "bad fusion group",
        meaning="Loop nests with one `gradir.group` number must form one kernel: a kind that loop generation knows (elementwise, rows, "
        "contraction), and no path of other ops that leaves the group and comes back.",
        cause="numbers written or edited by hand, or by a pass of a plugin.",
        next_step="remove `gradir.group` from these ops and run `fuse`, which writes legal numbers.",
    ),
    "GR030": graph(
        "unknown pass",
        meaning="A pipeline names a pass or a named pipeline that does not exist.",
        cause="a typing mistake, or a pass of a plugin that was not loaded.",
        next_step="`gradir-opt --list-passes` shows all of them; passes of a plugin appear after `--load FILE.py`.",
    ),
    "GR031": graph(
        "pass name taken",
        meaning="Two passes were registered under one name.",
        cause="two plugins, or a plugin that wants to replace a pass of ours.",
        next_step="rename the pass of the plugin. The names of our own passes cannot be taken over.",
    ),
    "GR032": graph(
        "unknown pipeline option",
        meaning="A named pipeline was given an option that it does not have.",
        cause="an option of one of its passes, which a named pipeline does not take.",
        next_step="only `to-structured` has one: `target`, the machine to compile for. Name the passes one by one to give them options; "
        "`gradir explain to-structured` lists them.",
    ),
    "GR033": graph(
        "bad pass pipeline",
        meaning="The text of a pipeline cannot be read. It is a list `a,b{x=1 y=2}`, possibly nested: `builtin.module(func.func(cse))`.",
        cause="a missing bracket or comma; the caret shows where reading stopped.",
        next_step="quote option values that are not words, numbers or lists.",
    ),
    "GR034": graph(
        "bad option of a pass",
        meaning="A pass was given an option that it does not have, or a value of another type.",
        cause="a typing mistake, or a word where a number is expected.",
        next_step="`gradir explain PASS` shows the options with types and defaults; a dash and an underscore are the same.",
    ),
    "GR035": graph(
        "pass on the wrong op",
        meaning="A pass runs on one kind of op, its anchor: a module pass cannot run inside `func.func(...)`.",
        cause="a nested pipeline around a pass that needs to see the whole module.",
        next_step="move it to the module level of the pipeline. Function passes given there run on every function.",
    ),
    "GR036": graph(
        "plugin does not load",
        meaning="A file given with `--load`, or an entry point of the group `gradir.plugins`, raised while it was imported.",
        cause="an exception in the plugin, which the message names, or a missing file.",
        next_step="run the file with python alone to see the whole traceback.",
    ),
    "GR040": graph(
        "recursive call",
        meaning="A function calls itself, directly or through others; recursion cannot be inlined, differentiated or fused.",
        cause="a recursive model in Python, or mutually recursive functions in text.",
        next_step="write the repetition as a loop: `scf.while`, `scf.for` (Python: `gradir.while_loop`, `gradir.fori_loop`).",
    ),
    "GR050": graph(
        "results of a memref function unknown",
        meaning="At levels 3 and 4 results are arguments; a public function says which by `gradir.inputs` and `gradir.results`.",
        cause="level-3 text from elsewhere, without these attributes.",
        next_step="write the attributes, or compile from the tensor level, where `bufferize` writes them.",
    ),
    "GR051": graph(
        "type without an array",
        meaning="A public function has an argument or result whose type no array can have.",
        cause="a type of another dialect, or an element type that numpy lacks, at the boundary of the module.",
        next_step="make the function private, or convert at its boundary.",
    ),
    "GR052": graph(
        "no such public function",
        meaning="The function asked for does not exist in the module, is private, or has no body; or none was named and there are several.",
        cause="a misspelt `--entry`, or a module of private functions only.",
        next_step="the message lists the public functions; name one of them.",
    ),
    "GR053": graph(
        "malformed limits of a size",
        meaning="The attribute `gradir.sizes` of a public function says what calls may bind its named sizes to, and cannot be read.",
        cause="a misspelt key, a number below 0, or no number.",
        next_step="write {b = {min = 1 : i64, max = 64 : i64, multiple = 8 : i64}}, with some of the three.",
    ),
    "GR054": graph(
        "only the tensor level is checked for NaN",
        meaning="`--check-nan` puts a look behind each op of level 1 and compiles the program again; lower levels have lost these ops.",
        cause="a module that was lowered already, or a saved artefact.",
        next_step="give it the module that the lowering began with.",
    ),
    "GR060": graph(
        "no form on buffers",
        meaning="`bufferize` met an op or a signature that it cannot put on buffers. It takes what the structured level consists of: scf, "
        "calls of kernels, linalg, and the tensor ops of level 2; functions take tensors and scalars and return tensors.",
        cause="an op of level 1 that was not lowered, a scalar result, or tensors mixed with memrefs in one function.",
        next_step="run the whole of `to-structured` first; return a tensor of rank 0 (`tensor.from_elements`) instead of a scalar.",
    ),
    "GR061": graph(
        "call of a function that is no kernel",
        meaning="Below level 2 functions cannot pass tensors to each other: the only calls left are those of kernels, private functions "
        "with the attribute `gradir.kernel`.",
        cause="`inline` did not run before `convert-nd-to-linalg`.",
        next_step="run `to-structured`, which begins with `inline`.",
    ),
    "GR062": graph(
        "size known too late",
        meaning="`bufferize` reserves a buffer before the op that fills it runs, and cannot tell the buffer's size there.",
        cause="a run-time size without a name, made by the op itself.",
        next_step="give the size a name that an argument's type has, or state it as an operand (`nd.bind`, `nd.empty`).",
    ),
    "GR063": graph(
        "body is not one block",
        meaning="Above the target level a function's body is one block, and control flow stands in the regions of `scf` ops. Nothing "
        "is linked: every function that is called, or that is public, has its body in the module.",
        cause="a declaration without a body, or text with `cf.br` and blocks of its own.",
        next_step="define the function in the module; write branches and loops with `scf.if`, `scf.for` or `scf.while`.",
    ),
    "GR070": graph(
        "there is nothing to reduce",
        meaning="`gradir-reduce` keeps what makes the test fail, and the test passes on the unchanged file.",
        cause="a command that does not read the file, relative paths in the command, or another status than the one expected.",
        next_step="run the test by hand on the file and look at its exit status: by default any but 0 counts as a failure.",
    ),
    "GR071": graph(
        "a cost that only the run knows",
        meaning="Counting floating-point operations met a loop or a dimension whose length is known only at run time.",
        cause="a `scf.while`, a trip count that is an argument, or a size with a name.",
        next_step="give a number to stand for them: `flops(..., trips=N)`, `count-flops{trips=N}`.",
    ),
    "GR072": graph(
        "which function to count",
        meaning="Floating-point operations are counted for one function, and the module does not say which.",
        cause="a misspelt name, or several public functions and no name.",
        next_step="name one of the functions that the message lists.",
    ),
    "GR103": graph(
        "not an array",
        meaning="A traced function met a value that no tensor can hold. Arrays have elements bool, int8 to int64, uint8 to uint64, "
        "8-bit floats, float16, bfloat16, float32, float64, complex64 or complex128.",
        cause="strings, objects or ragged lists among the arguments.",
        next_step="convert the value with numpy first, or name the argument in `static=`. A gradient traces all its arguments: "
        "`gd.grad(lambda x: f(x, mode))` leaves one out.",
    ),
    "GR104": graph(
        "axis or index out of range",
        meaning="An axis, an argument number or a static index does not exist in the array.",
        cause="an off-by-one mistake; negative ones count from the end.",
        next_step="compare with the shape in the message. Run-time indices are clamped instead.",
    ),
    "GR105": graph(
        "unknown padding",
        meaning="Padding is 'SAME', 'VALID' or one (low, high) pair per spatial dimension.",
        cause="one number, or a pair where several dimensions are padded.",
        next_step="write the pairs out: `padding=((1, 1), (1, 1))`.",
    ),
    "GR106": graph(
        "a scalar is needed",
        meaning="Predicates are rank-0 booleans, loop bounds rank-0 integers.",
        cause="a comparison of arrays as the predicate of `cond` or `while_loop`.",
        next_step="reduce the array first, for example with `gradir.any` or `gradir.all`; `gradir.where` chooses element by element.",
    ),
    "GR107": graph(
        "structure or type changes",
        meaning="Both branches of a `cond`, and the state of a loop before and after each step, have one structure and equal types; the "
        "trees of one `tree_map` have the structure of the first.",
        cause="an integer 0 as the initial value of a float sum, or a shape that grows in the loop.",
        next_step="convert with `astype` or reshape inside the body, and start with an array of the final type.",
    ),
    "GR108": graph(
        "a loss is one real scalar",
        meaning="`grad` and `value_and_grad` differentiate a rank-0 floating-point result.",
        cause="a loss per row, or a loss returned together with other values.",
        next_step="reduce it (`gradir.mean`), or return `(loss, aux)` with `has_aux=True`.",
    ),
    "GR109": graph(
        "no derivative of this argument",
        meaning="Only floating-point arguments have derivatives.",
        cause="`argnums` names labels, indices or a mask.",
        next_step="choose other `argnums`, or convert with `astype`.",
    ),
    "GR110": graph(
        "array of a finished trace",
        meaning="An array that was made while another function was traced was used.",
        cause="a traced value stored in a global, a list or an attribute of an object.",
        next_step="return it from the traced function instead of storing it.",
    ),
    "GR111": graph(
        "the value of a traced array is not known",
        meaning="Python's if, while, for, int() and float() need a value, and a traced array has none until the program runs.",
        cause="control flow that depends on data, inside `jit`, or a print of a number.",
        next_step="use `gradir.cond`, `gradir.where`, `gradir.fori_loop`, `gradir.while_loop` or `gradir.scan`, or run the function under "
        "`with gradir.eager():`.",
    ),
    "GR112": graph(
        "no size",
        meaning="Sizes are whole numbers from 0; strides, windows, dilations and groups are whole numbers from 1; axes are whole numbers.",
        cause="the result of a true division (`n / 2`), a negative difference, or a string.",
        next_step="compute it with `//`, and compare with what the message expects.",
    ),
    "GR113": graph(
        "arrays do not change",
        meaning="An array is a value: what looks like a change of one makes a new array.",
        cause="`x[i] = v` in a function written for numpy.",
        next_step="write `x = x.at[i].set(v)` or `x.at[i].add(v)`; compiled code updates in place where nobody else reads `x`.",
    ),
    "GR114": graph(
        "a run-time size where a number is needed",
        meaning="Python code needs the value of a size (`gradir.Dim`) that only a call of the compiled program knows.",
        cause="`range(x.shape[0])`, `if x.shape[0] > 3`, numpy functions of a shape, a slice whose bounds may lie on either side.",
        next_step="compute with the size as it is, state its limits (`gradir.Dim(name, min=.., max=..)`), use gradir.fori_loop or scan, or "
        "compile for one size.",
    ),
    "GR116": graph(
        "bad argument of a random function",
        meaning="A key is an array `uint32[2]`; bits are unsigned integers, distributions of numbers have a floating-point dtype, seeds "
        "and bounds of integers are integers.",
        cause="a key of another library, a seed with a fraction, or a shape that does not fit the logits.",
        next_step="make keys with `gradir.random.key` and `gradir.random.split`, and compare with what the message expects.",
    ),
    "GR117": graph(
        "wrong custom call",
        meaning="A function is registered or called by name (`gradir.register_custom_call`, `gradir.custom_call`) and cannot work.",
        cause="an unknown name, no function, operands that the shape rule refuses, or a configuration that is no text or number.",
        next_step="compare expected and found; arrays are operands, everything else is configuration.",
    ),
    "GR118": graph(
        "unknown reduction of a loss",
        meaning="A loss is reduced to its mean or its sum, or not at all.",
        cause="another framework's word, or a reduction passed in place of another argument.",
        next_step='write `reduction="mean"`, `"sum"` or `"none"`.',
    ),
    "GR119": graph(
        "function and arguments do not fit",
        meaning="`grad`, `vjp`, `jvp`, `vmap`, `checkpoint` and the decorators of rules take a function and call it with the "
        "arguments given.",
        cause="`grad(f(x))` in place of `grad(f)(x)`, an argument too many, or one that is missing.",
        next_step="hand over the function itself, and compare its signature with the arguments.",
    ),
    "GR120": graph(
        "no counterpart of an imported op",
        meaning="The program in another format holds ops, types or attributes that level 1 cannot express yet; `found` lists all of them.",
        cause="complex numbers, sorting, random bits and other rows that docs/status/stablehlo.md marks as unsupported.",
        next_step="compute that part outside of the imported function, or express it by supported ops before exporting.",
    ),
    "GR121": graph(
        "no counterpart in StableHLO",
        meaning="The program holds ops or types that StableHLO cannot express, or that the exporter does not write; `found` lists all of "
        "them.",
        cause="sizes that are known only when the program runs, ops of lower levels, or a row without StableHLO in docs/ops.md.",
        next_step="export the program at level 1, with the sizes filled in, or without that part.",
    ),
    "GR130": graph(
        "jax is not installed",
        meaning="`gradir.frontends.jax` asks JAX to trace the function; the package cannot be imported.",
        cause="JAX is an optional dependency.",
        next_step="`pip install gradir[jax]`, or read StableHLO text that was written elsewhere with `gradir.frontends.stablehlo`.",
    ),
    "GR131": graph(
        "inside of JAX",
        meaning="A function that runs through Gradir was called with values that JAX traces: JAX cannot look into compiled code.",
        cause="`jax.grad`, `jax.vmap`, `jax.jit` or `jax.lax` control flow around a function made by `gradir.frontends.jax.jit`.",
        next_step="swap them, `gradir.frontends.jax.jit(jax.grad(f))`, or take Gradir's own: `gradir.grad(gradir.frontends.jax.jit(f))`.",
    ),
    "GR132": graph(
        "out= in a trace",
        meaning="`out=` names arrays that the results of a compiled function are written to. Inside of a function that is being traced "
        "there are no arrays yet.",
        cause="a call `f(x, out=y)` of a `gradir.jit` function inside of another one, or under `gradir.grad`.",
        next_step="call it without `out=`, and pass `out=` to the outermost function.",
    ),
    "GR133": graph(
        "frozen and donated",
        meaning="`frozen=` promises that an argument never changes, so that packed forms of it can be kept; `donate=` lets a call "
        "overwrite it.",
        cause="the same argument in both lists of `gradir.jit` or `gradir.compile`.",
        next_step="leave it out of one of them: weights are frozen, state that a call replaces is donated.",
    ),
    "GR134": graph(
        "an option that makes no sense",
        meaning="`donate=`, `frozen=` and `static=` list names or positions of arguments; `tune=` is True, False or a number of seconds.",
        cause="a single name or number where a tuple belongs (`donate=0` for `donate=(0,)`), or a negative time.",
        next_step="write the list as expected says; leave the option out for the default.",
    ),
    "GR135": graph(
        "a container contains itself",
        meaning="Arguments and results are nested containers of arrays; one that is reached again from inside of it has no end.",
        cause="a list that was appended to itself, or objects that refer to each other.",
        next_step="pass the arrays in a container of their own.",
    ),
}
