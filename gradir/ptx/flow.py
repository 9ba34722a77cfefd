"""Control flow of a function: where each branch may go, and where lanes that part at it meet again (the immediate post-dominator)."""

from __future__ import annotations

from gradir.ptx.syntax import Function, Instruction, Name

EXIT = -1
"""The place after the end of the function, where all paths meet."""


def targets(function: Function, position: int) -> tuple[int, ...]:
    """Instructions that may follow the one at `position`; EXIT for those that end a lane."""
    op = function.body[position]
    behind = position + 1 if position + 1 < len(function.body) else EXIT
    if op.opcode[0] in ("ret", "exit", "trap"):
        return (EXIT, behind) if op.predicate else (EXIT,)
    if op.opcode[0] == "bra":
        (target,) = op.operands
        assert isinstance(target, Name)
        goal = _place(function, target.name)
        return (goal, behind) if op.predicate else (goal,)
    if op.opcode[0] == "brx":
        goals = tuple(_place(function, name) for name in _table(function, op))
        return (*goals, behind) if op.predicate else goals
    return (behind,)


def _place(function: Function, label: str) -> int:
    found = function.labels[label]
    return found if found < len(function.body) else EXIT


def _table(function: Function, op: Instruction) -> tuple[str, ...]:
    table = op.operands[1]
    assert isinstance(table, Name)
    return function.tables[table.name]


def meeting_points(function: Function) -> dict[int, int]:
    """Branch -> the first instruction that every path from it comes to.

    Cooper, Harvey and Kennedy's dominators ("A simple, fast dominance algorithm"), on the blocks of the reversed graph.
    """
    body = function.body
    leaders = {0} | {goal for at in range(len(body)) for goal in targets(function, at) if len(targets(function, at)) > 1 or goal != at + 1}
    leaders |= {at + 1 for at in range(len(body)) if body[at].opcode[0] in ("bra", "brx", "ret", "exit", "trap")}
    leaders = {at for at in leaders if 0 <= at < len(body)}
    starts = sorted(leaders)
    ends = {start: (starts[k + 1] if k + 1 < len(starts) else len(body)) - 1 for k, start in enumerate(starts)}
    after = {start: targets(function, ends[start]) for start in starts}
    before: dict[int, list[int]] = {EXIT: []}
    for start, goals in after.items():
        for goal in goals:
            before.setdefault(goal, []).append(start)
    order = _postorder(before)
    number = {block: k for k, block in enumerate(order)}
    parent = {EXIT: EXIT}

    def common(a: int, b: int) -> int:
        while a != b:
            while number[a] < number[b]:
                a = parent[a]
            while number[b] < number[a]:
                b = parent[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block == EXIT:
                continue
            known = [goal for goal in after[block] if goal in parent and goal in number]
            if not known:
                continue
            best = known[0]
            for goal in known[1:]:
                best = common(best, goal)
            if parent.get(block) != best:
                parent[block] = best
                changed = True
    return {ends[start]: parent.get(start, EXIT) for start in starts if len(after[start]) > 1}


def _postorder(before: dict[int, list[int]]) -> list[int]:
    """Blocks from which the exit can be reached, each after those that it is reached from backwards."""
    order: list[int] = []
    seen = {EXIT}
    todo: list[tuple[int, int]] = [(EXIT, 0)]
    while todo:
        block, next_one = todo.pop()
        sources = before.get(block, [])
        while next_one < len(sources) and sources[next_one] in seen:
            next_one += 1
        if next_one < len(sources):
            todo.append((block, next_one + 1))
            seen.add(sources[next_one])
            todo.append((sources[next_one], 0))
        else:
            order.append(block)
    return order
