"""AD0xx: a request for a derivative cannot be met."""

from __future__ import annotations

from functools import partial

from gradir.codes.code import Code

autodiff = partial(Code, "autodiff")

AUTODIFF: dict[str, Code] = {
    "AD001": autodiff(
        "no derivative rule",
        meaning="An op on the path from an argument in `wrt` to a wanted result has no derivative rule. A derivative is never guessed.",
        cause="an op of a plugin without a rule, or an op that the rules do not cover yet; the message names op, place and request.",
        next_step="register a rule with `gradir.autodiff.registry.vjp`, declare the op with `skip(op, reason)` if its derivative is 0 "
        "everywhere, or cut the path with `ad.stop_gradient` (Python: `gradir.stop_gradient`).",
    ),
    "AD002": autodiff(
        "bad `wrt`",
        meaning="`wrt` names arguments of the function by position; each must exist and be a floating-point tensor.",
        cause="positions counted from 1, or an integer argument such as labels among those to differentiate.",
        next_step="list positions of floating-point arguments only; convert an argument with `nd.convert` if it should be one.",
    ),
    "AD003": autodiff(
        "the loss is not a real scalar",
        meaning="`ad.grad` and `ad.value_and_grad` differentiate the first result of the function, a rank-0 floating-point tensor.",
        cause="a loss that still has one value per row.",
        next_step="reduce it to a scalar, or use `ad.vjp` with a cotangent for each result.",
    ),
    "AD004": autodiff(
        "no such function",
        meaning="A request or call names a function that is not in the module, or that has no body.",
        cause="a misspelt symbol, or a declaration where a definition is needed.",
        next_step="define the function, with a body, in the same module.",
    ),
    "AD006": autodiff(
        "recursion",
        meaning="A function calls itself, or asks for its own derivative, directly or through others.",
        cause="a helper that takes the gradient of the function it is called from; the error lists the cycle.",
        next_step="write the repetition as a loop, and the derivative in a function of its own.",
    ),
    "AD008": autodiff(
        "derivative needs static sizes",
        meaning="This op's derivative is built for static sizes, or for windows of at most 256 positions.",
        cause="a convolution or a pooling over a dimension of run-time size, or a size without a name.",
        next_step="make that dimension static, or pad to a static size; other dimensions of the same tensor may stay dynamic.",
    ),
    "AD009": autodiff(
        "function without a derivative rule",
        meaning="A function called by name (`nd.custom_call`) lies on an active path, and no derivative rule was registered with it.",
        cause="a call of a registered function inside of what is differentiated.",
        next_step="register the function again with `vjp=rule`, where `rule(inputs, results, cotangents, **config)` gives one cotangent, "
        "or None, per input; or cut the path with `gradir.stop_gradient`.",
    ),
    "AD010": autodiff(
        "factorisation without a derivative rule",
        meaning="There is no derivative for the full factors of a matrix that is not square: their last columns are any.",
        cause="full factors where reduced ones do.",
        next_step="ask for reduced factors (`full_matrices=False`), factor the transpose, or cut the path with `ad.stop_gradient`.",
    ),
    "AD011": autodiff(
        "derivative rule of a function gives wrong cotangents",
        meaning="The rule that was registered with a function (`vjp=`) returned another number of cotangents than the function has inputs, "
        "or cotangents of other shapes or types.",
        cause="a missing sum over a broadcast dimension, or one value in place of a list.",
        next_step="return one array of the input's type, or None, per input, in order.",
    ),
    "AD012": autodiff(
        "a rule of one's own does not fit",
        meaning="A function with a derivative rule of its own (`custom_vjp`, `custom_jvp`) has no rule yet, captures an array, or has a "
        "rule whose results have another structure, shape or type than the function's arguments and results.",
        cause="a cotangent that was not reduced to its argument's shape, or was computed in another precision.",
        next_step="compare expected and found; one cotangent per argument, None for zeros and for integers.",
    ),
    "AD013": autodiff(
        "no batch of this op",
        meaning="`ad.batch` (`gradir.vmap`) met an op on a value that differs from element to element, and the op has neither a batching "
        "rule nor results that a loop over the elements could collect.",
        cause="an op of a plugin with scalar results.",
        next_step="register a rule with `batches` of `gradir.autodiff.batching.rules`, or take the op out of the mapped function.",
    ),
    "AD014": autodiff(
        "derivative and slope disagree",
        meaning="`gradir.check_grads` compared a derivative with the central difference of the function, and they differ, or one of them "
        "is not finite; or the results that come with the derivative are not those of the function.",
        cause="a derivative rule of one's own that is wrong, a point at a kink, or a step that is too large or too small.",
        next_step="try another point and another step; then look at the rule.",
    ),
    "AD015": autodiff(
        "a check of a derivative fails",
        meaning="`--check-semantics` ran the checks that `differentiate{check}` left in the module, and after the named pass a derivative "
        "is no longer the slope of its function, or the two modes give different numbers.",
        cause="a derivative rule that is wrong (the pass is differentiate), a rule of one's own that is not the derivative on purpose, or "
        "a pass that changes what a function means.",
        next_step="look at the rules of the ops in the function, or at what the pass does to the check: `--print-ir-after`.",
    ),
    "AD017": autodiff(
        "a rule of one's own is not linear",
        meaning="Forward mode transposes the backward function of a `custom_vjp`, and reverse mode the rule of a `custom_jvp`. Only what "
        "is linear in its cotangents or tangents has a transpose.",
        cause="a gradient that is clipped, a branch on a cotangent, or an iteration that stops when a cotangent is small.",
        next_step="solve with `gradir.linalg.solve` or in a fixed number of trips, or stay in the mode that calls the rule.",
    ),
    "AD018": autodiff(
        "derivative lost in memory or in a vector",
        meaning="Derivatives are of programs on tensors and scalars. A float that depends on an argument in `wrt` goes into a buffer, a "
        "vector or another type that carries no derivative, so what comes out again would have none.",
        cause="a function of the levels below differentiation: buffers (`memref`), vectors, or hand-written code that stores.",
        next_step="differentiate before lowering to buffers; write the result with `tensor.insert` or `nd.update_at` instead of a store.",
    ),
    "AD020": autodiff(
        "no such choice of residuals",
        meaning="What a loop keeps for its backward part is `all`, `none` or `sqrt` (`gradir.residuals`, `loop-policy`, in Python "
        "`residuals=`), and a budget is a number of bytes (`gradir.budget`, `budget`).",
        cause="a misspelt name, or a negative number.",
        next_step="name one of the three; how they differ is in docs/autodiff.md.",
    ),
}
