"""How loops and branches carry tensors: in place, in the stack, by rotation, swapped. Each program runs at levels 2 and 3 and upstream."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering.bufferize_checks import Checked
from tests.lowering.bufferize_programs import CELL, STACK, call, get, module, put

HEAD = "".join(f"%c{k} = arith.constant {k} : index\n" for k in range(5))


def inputs(n: int, seed: int = 0) -> list[object]:
    """%x, %y, %s, %n, %flag."""
    r = np.random.default_rng(seed)
    cells = [r.standard_normal((3, 3)).astype(np.float32) for _ in range(2)]
    return [*cells, r.standard_normal((5, 3, 3)).astype(np.float32), np.int64(n), np.bool_(n % 2)]


def program(body: str, results: str = CELL) -> Checked:
    return Checked(module(HEAD + body, results=results))


def loop(names: str, pairs: str, types: str, body: str, yielded: str, high: str = "%n", variable: str = "%i") -> str:
    head = f"{names} = scf.for {variable} = %c0 to {high} step %c1 iter_args({pairs}) -> ({types}) {{\n"
    return f"{head}{body}scf.yield {yielded} : {types}\n}}\n"


def check(checked: Checked, counts: tuple[int, ...] = (0, 1, 3)) -> Checked:
    for position, n in enumerate(counts):
        checked.agrees(inputs(n), upstream=position == len(counts) - 1)
    return checked


def test_an_accumulator_is_updated_in_place_in_the_output() -> None:
    body = loop("%h", "%a = %x", CELL, call("%t", "accumulate", "%x", "%y", "%a"), "%t")
    checked = check(program(body + f"return %h : {CELL}"))
    assert checked.copies == {"f": ["memref<3x3xf32>"]}  # the argument into the output, once
    assert "iter_args" not in checked.body and "memref.alloc" not in checked.body
    assert "gradir.alias = [3 : i64]" in checked.text


def test_a_value_that_its_step_reads_elsewhere_rotates() -> None:
    body = loop("%h", "%a = %x", CELL, call("%t", "product", "%a", "%y"), "%t")
    checked = check(program(body + f"return %h : {CELL}"))
    assert "scf.yield %t, %3, %t" in checked.body or "memref.alloc" in checked.body
    assert len(checked.copies["f"]) == 1
    assert "gradir.alias" not in checked.text  # the next buffer is never the current one


def test_a_dead_predecessor_is_overwritten_without_an_in_place_kernel() -> None:
    """The product reads %a, the transposing kernel that makes the next %a does not."""
    body = loop("%h", "%a = %x", CELL, call("%t", "product", "%a", "%y") + call("%u", "flip", "%t"), "%u")
    checked = check(program(body + f"return %h : {CELL}"))
    assert "iter_args" not in checked.body
    assert "gradir.alias" not in checked.text


def test_a_chain_of_updates_in_one_step_stays_in_place() -> None:
    body = call("%t", "scale", "%a") + call("%u", "mean", "%t", "%x") + call("%v", "scale", "%u")
    checked = check(program(loop("%h", "%a = %y", CELL, body, "%v") + f"return %h : {CELL}"))
    assert len(checked.copies["f"]) == 1


def test_a_value_saved_in_a_stack_is_carried_as_a_pointer() -> None:
    """An RNN's forward loop: the kernel reads the previous slice and writes the next one; nothing is copied in the loop."""
    body = call("%z", "zeros") + f"%e = tensor.empty() : {STACK}\n" + put("%s0", "%z", "%e", "%c0")
    step = call("%r", "product", "%a", "%y") + "%j = arith.addi %i, %c1 : index\n" + put("%b2", "%r", "%b", "%j")
    body += loop("%h, %st", "%a = %z, %b = %s0", f"{CELL}, {STACK}", step, "%r, %b2", high="%c4")
    checked = program(body + f"return %h, %st : {CELL}, {STACK}", f"({CELL}, {STACK})")
    checked.agrees(inputs(0))
    assert checked.copies == {"f": ["memref<3x3xf32>"]}  # the last slice into its output
    assert "memref.alloc" not in checked.body
    assert "gradir.alias" not in checked.text  # consecutive slices do not overlap


def test_a_stack_read_at_another_place_while_it_is_written() -> None:
    """Miscompile 2: the write of a slice must not overtake a read of that slice."""
    step = call("%t", "mean", "%x", "%y") + get("%old", "%b", "%i") + call("%u", "mean", "%t", "%old") + put("%b2", "%t", "%b", "%i")
    step += put("%b3", "%u", "%b2", "%c4")
    body = loop("%st", "%b = %s", STACK, step, "%b3")
    check(program(body + f"return %st : {STACK}", STACK))


def test_reading_the_saved_slice_after_the_insert_is_no_reason_to_copy() -> None:
    step = call("%t", "scale", "%x") + put("%b2", "%t", "%b", "%i") + get("%again", "%b2", "%i") + call("%u", "mean", "%again", "%a")
    body = loop("%h, %st", "%a = %y, %b = %s", f"{CELL}, {STACK}", step, "%u, %b2")
    checked = check(program(body + f"return %h, %st : {CELL}, {STACK}", f"({CELL}, {STACK})"))
    assert sorted(checked.copies["f"]) == ["memref<3x3xf32>", "memref<5x3x3xf32>"]  # both initial values, before the loop


def test_whole_stacks_are_not_copied_per_iteration_when_readers_come_first() -> None:
    """Miscompile 3 (quadratic time): with the reader before the insert the stack is updated in place; behind it a copy is needed."""
    early = get("%old", "%b", "%c0") + call("%u", "mean", "%old", "%x") + put("%b2", "%u", "%b", "%i")
    late = call("%t", "scale", "%x") + put("%b2", "%t", "%b", "%i") + get("%old", "%b", "%c0") + call("%u", "mean", "%old", "%a")
    first = check(program(loop("%st", "%b = %s", STACK, early, "%b2") + f"return %st : {STACK}", STACK))
    inside = first.body[first.body.index("scf.for") :]
    assert "memref<5x3x3xf32> to memref<5x3x3xf32>" not in inside
    pair = loop("%h, %st", "%a = %y, %b = %s", f"{CELL}, {STACK}", late, "%u, %b2")
    second = check(program(pair + f"return %h, %st : {CELL}, {STACK}", f"({CELL}, {STACK})"))
    assert second.copies["f"].count("memref<5x3x3xf32>") >= 2


@pytest.mark.parametrize("carried", ["%b, %a", "%b, %b", "%a, %a"])
def test_swapped_and_repeated_pointers(carried: str) -> None:
    body = loop("%h, %g", "%a = %x, %b = %y", f"{CELL}, {CELL}", "", carried)
    checked = check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"))
    assert len(checked.copies["f"]) == 2  # into the outputs only


def test_swap_with_an_update() -> None:
    """(a, b) -> (b, f(a)): the new a is the old b, which must not be overwritten while it is needed."""
    body = loop("%h, %g", "%a = %x, %b = %y", f"{CELL}, {CELL}", call("%t", "scale", "%a"), "%b, %t")
    check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"))


def test_fibonacci_of_tensors() -> None:
    body = loop("%h, %g", "%a = %x, %b = %y", f"{CELL}, {CELL}", call("%t", "mean", "%a", "%b"), "%b, %t")
    check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"), (0, 1, 2, 5))


def test_yield_of_values_from_outside() -> None:
    body = call("%u", "scale", "%y") + loop("%h, %g", "%a = %x, %b = %u", f"{CELL}, {CELL}", "", "%u, %y")
    check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"))


def test_an_unchanged_carried_value_is_no_carried_value() -> None:
    body = loop("%h, %g", "%a = %x, %b = %y", f"{CELL}, {CELL}", call("%t", "product", "%a", "%b"), "%t, %b")
    checked = check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"))
    assert len(checked.copies["f"]) == 2


def test_an_initial_value_that_is_read_later_is_not_overwritten() -> None:
    body = call("%z", "scale", "%x") + loop("%h", "%a = %z", CELL, call("%t", "scale", "%a"), "%t") + call("%r", "mean", "%h", "%z")
    check(program(body + f"return %r : {CELL}"))


def test_one_initial_value_for_two_carried_values() -> None:
    body = call("%z", "scale", "%x")
    step = call("%t", "scale", "%a") + call("%u", "mean", "%b", "%y")
    body += loop("%h, %g", "%a = %z, %b = %z", f"{CELL}, {CELL}", step, "%t, %u")
    check(program(body + f"return %h, %g : {CELL}, {CELL}", f"({CELL}, {CELL})"))


def test_nested_loops_accumulate_in_one_buffer() -> None:
    inner = loop("%q", "%b = %a", CELL, call("%t", "accumulate", "%x", "%y", "%b"), "%t", high="%c2", variable="%j")
    checked = check(program(loop("%h", "%a = %x", CELL, inner, "%q") + f"return %h : {CELL}"))
    assert len(checked.copies["f"]) == 1 and "iter_args" not in checked.body


def test_a_rotating_loop_in_a_rotating_loop() -> None:
    inner = loop("%q", "%b = %a", CELL, call("%t", "product", "%b", "%y"), "%t", high="%c3", variable="%j")
    check(program(loop("%h", "%a = %x", CELL, inner, "%q") + f"return %h : {CELL}"))


def branch(name: str, condition: str, then: str, then_value: str, other: str, other_value: str, types: str = CELL) -> str:
    compare = f"%k = arith.cmpi ult, {condition}, %c1 : index\n"
    yields = [f"scf.yield {v} : {types}\n" for v in (then_value, other_value)]
    return f"{compare}{name} = scf.if %k -> ({types}) {{\n{then}{yields[0]}}} else {{\n{other}{yields[1]}}}\n"


def test_a_branch_in_a_loop_updates_the_carried_value_in_place() -> None:
    step = branch("%q", "%i", call("%t", "mean", "%a", "%y"), "%t", "", "%a")
    checked = check(program(loop("%h", "%a = %x", CELL, step, "%q") + f"return %h : {CELL}"))
    assert len(checked.copies["f"]) == 1


def test_a_branch_does_not_write_through_a_rotated_pointer_or_an_argument() -> None:
    """Miscompile 1: the branch would update %a in place, but %a rotates: it may be the argument, or a saved slice."""
    step = call("%w", "product", "%a", "%y") + branch("%q", "%i", call("%t", "mean", "%a", "%w"), "%t", "", "%a")
    step += call("%v", "product", "%q", "%a")
    checked = check(program(loop("%h", "%a = %x", CELL, step, "%v") + f"return %h, %x : {CELL}, {CELL}", f"({CELL}, {CELL})"))
    assert "iter_args" in checked.body
    stacked = call("%w", "product", "%a", "%y") + put("%b2", "%w", "%b", "%i")
    stacked += branch("%q", "%i", call("%t", "mean", "%w", "%x"), "%t", "", "%w") + call("%v", "flipped_mean", "%q", "%a")
    pair = loop("%h, %st", "%a = %x, %b = %s", f"{CELL}, {STACK}", stacked, "%v, %b2")
    check(program(pair + f"return %h, %st : {CELL}, {STACK}", f"({CELL}, {STACK})"))


def test_both_branches_write_the_output() -> None:
    body = branch("%q", "%n", call("%t", "scale", "%x"), "%t", call("%u", "product", "%x", "%y"), "%u")
    checked = check(program(body + f"return %q : {CELL}"))
    assert checked.copies == {} and "memref.alloc" not in checked.body


def test_a_branch_that_yields_nothing_written() -> None:
    """A residual leaves one branch; the other yields an empty tensor, which nobody reads."""
    types = f"{CELL}, {CELL}"
    then = call("%t", "scale", "%x") + call("%u", "mean", "%t", "%y")
    other = f"%e = tensor.empty() : {CELL}\n"
    body = branch("%q, %res", "%n", then, "%u, %t", other, "%y, %e", types)
    body += branch("%r", "%n", call("%v", "mean", "%q", "%res"), "%v", "", "%q").replace("%k =", "%k2 =").replace("if %k ", "if %k2 ")
    check(program(body + f"return %r : {CELL}"))


def test_nested_branches() -> None:
    inner = branch("%q", "%i", call("%t", "mean", "%a", "%y"), "%t", "", "%a")
    outer = f"%k0 = arith.cmpi ult, %i, %c2 : index\n%w = scf.if %k0 -> ({CELL}) {{\n{inner}scf.yield %q : {CELL}\n}} else {{\n"
    outer += call("%m", "flip", "%a") + f"scf.yield %m : {CELL}\n}}\n"
    check(program(loop("%h", "%a = %x", CELL, outer, "%w") + f"return %h : {CELL}"), (0, 1, 4))


def while_loop(step: str, forwarded: str = "%a", before: str = "") -> str:
    return f"""%h, %last = scf.while (%a = %x, %i = %c0) : ({CELL}, index) -> ({CELL}, index) {{
{before}%go = arith.cmpi slt, %i, %n : index
scf.condition(%go) {forwarded}, %i : {CELL}, index
}} do {{
^bb0(%b: {CELL}, %j: index):
{step}%next = arith.addi %j, %c1 : index
scf.yield %t, %next : {CELL}, index
}}
"""


@pytest.mark.parametrize("kernel", ["scale", "flip"])
def test_while_in_place_and_rotating(kernel: str) -> None:
    checked = check(program(while_loop(call("%t", kernel, "%b")) + f"return %h : {CELL}"))
    assert len(checked.copies["f"]) == 1


def test_while_that_forwards_what_it_computes_before_the_condition() -> None:
    text = while_loop(call("%t", "mean", "%b", "%y"), "%w", before=call("%w", "flip", "%a"))
    check(program(text + f"return %h : {CELL}"))


def test_while_that_forwards_a_value_from_outside() -> None:
    text = while_loop(call("%t", "mean", "%b", "%y"), "%y", before=call("%w", "flip", "%a"))
    check(program(text + f"return %h : {CELL}"))


def test_index_switch() -> None:
    cases = "".join(f"case {k} {{\n{call(f'%t{k}', name, '%x')}scf.yield %t{k} : {CELL}\n}}\n" for k, name in ((0, "scale"), (3, "flip")))
    body = f"%q = scf.index_switch %n -> {CELL}\n{cases}default {{\nscf.yield %y : {CELL}\n}}\n"
    checked = check(program(body + f"return %q : {CELL}"))
    assert len(checked.copies["f"]) == 1  # %y in the default case


def test_a_scalar_carried_beside_a_tensor() -> None:
    body = f"""%h, %m = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s, %q = %c0) -> ({STACK}, index) {{
{call("%t", "scale", "%x")}{put("%a2", "%t", "%a", "%q")}%q2 = arith.addi %q, %c1 : index
scf.yield %a2, %q2 : {STACK}, index
}}
{put("%r", "%y", "%h", "%m")}return %r : {STACK}"""
    check(program(body, STACK))


def test_a_swap_starts_from_copies_when_an_initial_value_is_overwritten() -> None:
    types = f"{CELL}, {CELL}, {CELL}"
    body = call("%z", "scale", "%x") + loop("%h, %g, %w", "%a = %z, %b = %y, %c = %z", types, call("%t", "scale", "%c"), "%b, %a, %t")
    check(program(body + f"return %h, %g, %w : {types}", f"({types})"))


def test_an_inner_stack_is_built_in_the_slice_of_an_outer_one() -> None:
    """The inner loop's pointer is read after the stack it points into became part of the outer stack."""
    big = "tensor<4x5x3x3xf32>"
    step = call("%r", "product", "%a", "%y") + put("%b2", "%r", "%b", "%j")
    inner = f"%e = tensor.empty() : {STACK}\n" + loop("%h, %st", "%a = %v, %b = %e", f"{CELL}, {STACK}", step, "%r, %b2", "%c5", "%j")
    inner += f"%w2 = tensor.insert_slice %st into %w[%i, 0, 0, 0] [1, 5, 3, 3] [1, 1, 1, 1] : {STACK} into {big}\n"
    inner += call("%u", "mean", "%h", "%v")
    body = f"%c5 = arith.constant 5 : index\n%z = arith.constant dense<0.0> : {big}\n"
    body += loop("%last, %all", "%v = %x, %w = %z", f"{CELL}, {big}", inner, "%u, %w2", "%c4")
    checked = check(program(body + f"return %last, %all : {CELL}, {big}", f"({CELL}, {big})"), (1,))
    inside = checked.body[checked.body.index("scf.for") :]
    assert "memref.alloc" not in inside and "memref.copy" not in inside


def test_a_pointer_that_is_read_after_its_stack_was_overwritten_in_the_outer_one() -> None:
    big = "tensor<4x5x3x3xf32>"
    step = call("%r", "product", "%a", "%y") + put("%b2", "%r", "%b", "%j")
    body = f"%c5 = arith.constant 5 : index\n%w = tensor.empty() : {big}\n%e = tensor.empty() : {STACK}\n"
    body += loop("%h, %st", "%a = %x, %b = %e", f"{CELL}, {STACK}", step, "%r, %b2", "%c5", "%j")
    last = "%w"
    for k in range(4):
        body += f"%w{k} = tensor.insert_slice %st into {last}[{k}, 0, 0, 0] [1, 5, 3, 3] [1, 1, 1, 1] : {STACK} into {big}\n"
        last = f"%w{k}"
    body += f"%v = tensor.insert_slice %s into {last}[0, 0, 0, 0] [1, 5, 3, 3] [1, 1, 1, 1] : {STACK} into {big}\n"
    body += call("%u", "mean", "%h", "%y")
    check(program(body + f"return %u, %v : {CELL}, {big}", f"({CELL}, {big})"), (1,))


def test_a_pair_of_rotating_loops_hands_on_a_pointer() -> None:
    body = "".join(
        loop(f"%h{k}", f"%a = {'%x' if k == 0 else f'%h{k - 1}'}", CELL, call("%t", "product", "%a", "%y"), "%t") for k in range(7)
    )
    check(program(body + f"return %h6 : {CELL}"))


def test_a_value_is_not_made_in_a_stack_whose_size_is_not_known_yet() -> None:
    """%t exists before the loop that counts the entries of the stack; it is copied in."""
    stack = "tensor<?x3x3xf32>"
    count = """%count = scf.while (%i = %c0) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %j = arith.addi %i, %c1 : index
      scf.yield %j : index
    }
    %entries = arith.addi %count, %c1 : index
"""
    fill = f"%e = tensor.empty(%entries) : {stack}\n" + put("%first", "%t", "%e", "%c0").replace(STACK, stack)
    read = get("%back", "%first", "%c0").replace(STACK, stack) + call("%r", "product", "%back", "%t")
    check(program(call("%t", "product", "%x", "%y") + count + fill + read + f"return %r : {CELL}"))
