"""The dominator tree and the verifier's verdict on random control flow, against dominance by its definition."""

from __future__ import annotations

import random

import pytest

from gradir.errors import GradirError
from gradir.ir.dominance import dominator_tree
from gradir.ir.text import parse_module


def random_graph(rng: random.Random, blocks: int) -> list[list[int]]:
    """Successors of each block: none, one or two. No edge enters block 0, as the IR demands."""
    return [[rng.randrange(1, blocks) for _ in range(rng.choice((0, 1, 1, 2, 2)))] if blocks > 1 else [] for _ in range(blocks)]


def reached(graph: list[list[int]], without: int | None = None) -> set[int]:
    seen: set[int] = set()
    stack = [0] if without != 0 else []
    while stack:
        node = stack.pop()
        if node not in seen and node != without:
            seen.add(node)
            stack += graph[node]
    return seen


def dominates(graph: list[list[int]], a: int, b: int) -> bool:
    """Every path from the entry to b goes through a."""
    return a == b or b not in reached(graph, without=a)


def text_of(graph: list[list[int]], defined: int, used: int) -> str:
    lines = ["func.func @f(%c: i1) -> i32 {"]
    for block, successors in enumerate(graph):
        if block:
            lines.append(f"^b{block}:")
        if block == defined:
            lines.append("  %v = arith.constant 1 : i32")
        if block == used:
            lines.append("  %u = arith.addi %v, %v : i32")
        if not successors:
            lines += [f"  %r{block} = arith.constant 0 : i32", f"  return %r{block} : i32"]
        elif len(successors) == 1:
            lines.append(f"  cf.br ^b{successors[0]}")
        else:
            lines.append(f"  cf.cond_br %c, ^b{successors[0]}, ^b{successors[1]}")
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("seed", range(150))
def test_verdict_on_random_control_flow(seed: int) -> None:
    rng = random.Random(seed)
    blocks = rng.randrange(2, 9)
    graph = random_graph(rng, blocks)
    defined, used = rng.randrange(blocks), rng.randrange(blocks)
    live = reached(graph)
    legal = used not in live or (defined in live and dominates(graph, defined, used))
    text = text_of(graph, defined, used)
    if legal:
        parse_module(text)
        return
    with pytest.raises(GradirError, match="does not dominate this use"):
        parse_module(text)


@pytest.mark.parametrize("seed", range(50))
def test_tree_on_random_control_flow(seed: int) -> None:
    rng = random.Random(1000 + seed)
    blocks = rng.randrange(2, 12)
    graph = random_graph(rng, blocks)
    module = parse_module(text_of(graph, 0, 0), check=False)
    (function,) = module.body.block.ops
    order = list(function.regions[0].blocks)
    number = {id(block): i for i, block in enumerate(order)}
    tree = dominator_tree(order[0])
    live = reached(graph)
    assert {number[i] for i in tree.reachable} == live
    parent = {number[id(child)]: number[key] for key, children in tree.children.items() for child in children}
    assert parent.keys() == live - {0}
    for node, idom in parent.items():
        strict = {a for a in live if a != node and dominates(graph, a, node)}
        assert idom in strict and all(dominates(graph, a, idom) for a in strict)
