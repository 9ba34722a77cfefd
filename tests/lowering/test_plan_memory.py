"""Offsets, lifetimes and facts of `plan-memory`; the numbers of planned programs are checked in `test_bufferize*`."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.lowering.plan_memory import ALIGNMENT, Interval, PlanMemory, peak, place, placement
from gradir.reference import run


def planned(
    body: str, signature: str = "%x: memref<16xf32>, %out: memref<16xf32>", *, written_late: bool = False
) -> tuple[str, dict[str, int]]:
    """Text and facts after planning `@f`, whose result is written at once, so that nothing can lie there, unless it is `written_late`."""
    body = body if written_late else k("%x", "%out") + body
    text = f"""func.func private @k(%a: memref<16xf32> {{gradir.access = "read"}}, %b: memref<16xf32> {{gradir.access = "write"}}) {{
  linalg.copy ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
  return
}}
func.func @f({signature}) attributes {{gradir.inputs = 1 : i64, gradir.results = 1 : i64}} {{
{body}
  return
}}"""
    module = parse_module(text)
    context = PassContext()
    PlanMemory().apply(module, context)
    verify_module(module)
    x = np.arange(16, dtype=np.float32)
    (y,) = run(module, "f", [x])
    np.testing.assert_array_equal(x, y)
    return print_module(module), context.facts["plan-memory"]["f"]


def k(a: str, b: str) -> str:
    return f"  func.call @k({a}, {b}) : (memref<16xf32>, memref<16xf32>) -> ()\n"


def alloc(*names: str) -> str:
    return "".join(f"  {n} = memref.alloc() : memref<16xf32>\n" for n in names)


def free(*names: str) -> str:
    return "".join(f"  memref.dealloc {n} : memref<16xf32>\n" for n in names)


def offsets(text: str) -> dict[str, int]:
    constants = dict(re.findall(r"(%\w+) = arith.constant (\d+) : index", text))
    return {name: int(constants[offset]) for name, offset in re.findall(r"(%\w+) = memref.view %arena\[(%\w+)\]", text)}


def test_buffers_that_are_not_live_together_share() -> None:
    text, facts = planned(
        alloc("%a", "%b", "%c") + k("%x", "%a") + k("%a", "%b") + k("%b", "%c") + k("%c", "%out") + free("%a", "%b", "%c")
    )
    assert facts == {"arena": 128, "peak": 128, "unshared": 192, "buffers": 3, "in_results": 0, "workspace": 0, "run_time": 0}
    assert offsets(text) == {"%a": 0, "%b": 64, "%c": 0}
    assert "gradir.arena = 128 : i64" in text and "%arena: memref<128xi8>" in text
    assert "memref.alloc" not in text and "memref.dealloc" not in text


def test_a_buffer_outside_of_a_loop_lives_through_it_and_one_inside_does_not() -> None:
    head = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n"
    loop = (
        f"  scf.for %i = %c0 to %c3 step %c1 {{\n{alloc('%b') + k('%a', '%b') + free('%b')}{alloc('%c') + k('%a', '%c') + free('%c')}  }}\n"
    )
    text, facts = planned(head + alloc("%a") + k("%x", "%a") + loop + k("%x", "%out") + free("%a"))
    found = offsets(text)
    assert found["%b"] == found["%c"] != found["%a"]  # %a is not read behind the loop, but in each iteration
    assert facts["arena"] == 128


def test_a_pointer_keeps_alive_what_it_may_point_to() -> None:
    head = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n"
    loop = """  %p, %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %a, %t = %b) -> (memref<16xf32>, memref<16xf32>) {
    func.call @k(%s, %t) : (memref<16xf32>, memref<16xf32>) -> ()
    scf.yield %t, %s : memref<16xf32>, memref<16xf32>
  }
"""
    tail = alloc("%d") + k("%x", "%d") + k("%p", "%out") + free("%d")
    text, facts = planned(head + alloc("%a", "%b") + k("%x", "%a") + loop + tail + free("%a", "%b"))
    assert len(set(offsets(text).values())) == 3 and facts["arena"] == 192


def test_views_count_as_their_buffer() -> None:
    body = alloc("%a", "%b") + k("%x", "%a")
    body += "  %v = memref.collapse_shape %w [[0, 1]] : memref<4x4xf32> into memref<16xf32>\n"
    body = body.replace("  %b = memref.alloc() : memref<16xf32>\n", "  %w = memref.alloc() : memref<4x4xf32>\n")
    body += k("%x", "%v") + k("%v", "%out")
    _, facts = planned(body + "  memref.dealloc %w : memref<4x4xf32>\n" + free("%a"))
    assert facts["buffers"] == 2 and facts["arena"] == 64


def test_what_is_dead_before_a_result_is_written_lies_in_its_memory() -> None:
    body = alloc("%a", "%b") + k("%x", "%a") + k("%a", "%b") + k("%b", "%out") + free("%a", "%b")
    text, facts = planned(body, written_late=True)
    assert facts["arena"] == facts["peak"] == 64 and facts["buffers"] == 2 and facts["in_results"] == 1
    assert "func.call @k(%x, %out)" in text and offsets(text) == {"%b": 0}  # %b is read when %out is written


def test_smaller_buffers_of_other_shapes_lie_at_the_beginning_of_a_result() -> None:
    body = """  %w = memref.alloc() : memref<2x4xf32>
  %s = memref.alloc() : memref<f32>
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<16xf32>
  memref.store %v, %s[] : memref<f32>
  %u = memref.load %s[] : memref<f32>
  memref.store %u, %w[%c0, %c0] : memref<2x4xf32>
  %t = memref.load %w[%c0, %c0] : memref<2x4xf32>
  memref.store %t, %out[%c0] : memref<16xf32>
""" + k("%x", "%out")
    text, facts = planned(body, written_late=True)
    assert (facts["arena"], facts["in_results"]) == (0, 2)  # one after the other
    assert "memref.subview %out[0] [8] [1] : memref<16xf32> to memref<8xf32>" in text
    assert "memref.expand_shape" in text and "into memref<2x4xf32>" in text


def test_a_result_of_other_elements_and_one_that_is_too_small_take_no_guests() -> None:
    body = """  %a = memref.alloc() : memref<32xf32>
  %b = memref.alloc() : memref<16xi32>
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<16xf32>
  memref.store %v, %a[%c0] : memref<32xf32>
  %i = arith.fptosi %v : f32 to i32
  memref.store %i, %b[%c0] : memref<16xi32>
  %j = memref.load %b[%c0] : memref<16xi32>
  %u = memref.load %a[%c0] : memref<32xf32>
""" + k("%x", "%out")
    _, facts = planned(body, written_late=True)
    assert (facts["arena"], facts["in_results"]) == (192, 0)


def test_run_time_sizes_stay_allocations() -> None:
    body = """  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<16xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
""" + k("%x", "%out")
    text, facts = planned(body)
    assert facts == {"arena": 0, "peak": 0, "unshared": 0, "buffers": 0, "in_results": 0, "workspace": 0, "run_time": 1}
    assert "memref.alloc" in text and "%arena" not in text and "gradir.arena = 0 : i64" in text


def test_planning_twice_changes_nothing() -> None:
    text, _ = planned(alloc("%a") + k("%x", "%a") + k("%a", "%out") + free("%a"))
    module = parse_module(text)
    PlanMemory().apply(module, PassContext())
    assert print_module(module) == text


def test_no_arena_smaller_than_the_peak_and_no_two_live_buffers_overlap() -> None:
    r = random.Random(0)
    waste: list[float] = []
    for _ in range(60):
        spans = [sorted(r.sample(range(200), 2)) for _ in range(r.randint(1, 40))]
        intervals = [Interval(None, a, b, r.choice([0, 64, 128, 512, 4096])) for a, b in spans]  # pyright: ignore[reportArgumentType]  no op needed
        where, total = place(intervals)
        for number, i in enumerate(intervals):
            assert where[i] % ALIGNMENT == 0 and where[i] + i.bytes <= total
            for j in intervals[:number]:
                if i.start <= j.end and j.start <= i.end and i.bytes and j.bytes:
                    assert where[i] + i.bytes <= where[j] or where[j] + j.bytes <= where[i]
        assert total >= peak(intervals)
        waste.append(total / max(1, peak(intervals)))
    assert max(waste) < 1.2 and sum(waste) / len(waste) < 1.02


def test_an_order_is_repaired_where_none_of_the_simple_ones_suffices() -> None:
    """Random programs on which the repairs find less than any order alone."""
    r = random.Random(3)
    simple = repaired = 0
    for _ in range(40):
        spans = [sorted(r.sample(range(200), 2)) for _ in range(40)]
        intervals = [Interval(None, a, b, 64 * r.randint(1, 60)) for a, b in spans]  # pyright: ignore[reportArgumentType]  no op needed
        repaired += place(intervals)[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(placement, "REPAIRS", 0)
            simple += place(intervals)[1]
    assert repaired < simple


@pytest.mark.parametrize("count", [2000])
def test_many_buffers_are_placed_in_no_time_that_grows_quadratically(count: int) -> None:
    """A long chain takes the arena of two buffers: the placement by time alone suffices."""
    intervals = [Interval(None, 2 * k, 2 * k + 3, 256) for k in range(count)]  # pyright: ignore[reportArgumentType]  no op needed
    assert place(intervals)[1] == peak(intervals) == 512
