"""Imports go one way: parses every file of the package and compares what it imports with the order of docs/architecture.md."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "gradir"

ALLOWED: dict[str, set[str]] = {
    "codes": set(),
    "size_algebra": set(),
    "printing": set(),
    "errors": {"codes"},
    "ir": {"errors", "size_algebra"},
    "dialects": {"errors", "printing", "size_algebra", "ir"},
    "autodiff": {"errors", "size_algebra", "ir", "dialects"},
    "lowering": {"errors", "size_algebra", "ir", "dialects"},
    "targets": {"errors", "size_algebra", "ir", "dialects"},
    "reference": {"errors", "printing", "size_algebra", "ir", "dialects"},
    "ptx": {"errors"},
    "runtime": {"errors", "printing", "size_algebra", "ptx"},
    "driver": {"errors", "size_algebra", "ir", "dialects", "autodiff", "lowering", "targets", "reference", "runtime", "ptx"},
    "frontends": {"errors", "printing", "size_algebra", "ir", "dialects", "runtime", "driver"},
    "tools": {
        "errors",
        "size_algebra",
        "ir",
        "dialects",
        "autodiff",
        "lowering",
        "targets",
        "reference",
        "runtime",
        "driver",
        "frontends",
        "ptx",
    },
}
"""Folder of the package -> folders that it may import."""

FORBIDDEN: dict[str, set[str]] = {
    "runtime": {"xdsl"},
    "ptx": {"xdsl", "llvmlite"},
    "errors": {"xdsl", "numpy"},
    "codes": {"xdsl", "numpy"},
    "size_algebra": {"xdsl", "numpy"},
    "printing": {"xdsl"},
}
"""Folder -> packages that it must do without."""


def layer(parts: tuple[str, ...]) -> str:
    return parts[1] if len(parts) > 1 else ""


def imported(tree: ast.AST, module: tuple[str, ...], is_package: bool) -> list[tuple[int, tuple[str, ...]]]:
    """(line, dotted name) of every import, relative ones resolved; imports for type checkers alone do not count."""
    found: list[tuple[int, tuple[str, ...]]] = []
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, tuple(alias.name.split("."))) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base: tuple[str, ...] = ()
            if node.level:
                package = module if is_package else module[:-1]
                base = package[: len(package) - (node.level - 1)]
            name = base + tuple((node.module or "").split(".")) if node.module else base
            found += [(node.lineno, name if len(name) > 1 else (*name, alias.name)) for alias in node.names]
    return found


def modules() -> list[tuple[Path, tuple[str, ...], list[tuple[int, tuple[str, ...]]]]]:
    result = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ("gradir", *path.relative_to(PACKAGE).with_suffix("").parts)
        is_package = name[-1] == "__init__"
        module = name[:-1] if is_package else name
        result.append((path, module, imported(ast.parse(path.read_text()), module, is_package)))
    return result


def test_imports_go_one_way() -> None:
    wrong = []
    for path, module, imports in modules():
        here = layer(module)
        if not here:  # the package itself: public names of any layer
            continue
        assert here in ALLOWED, f"{path}: folder '{here}' has no row in ALLOWED"
        for line, name in imports:
            there = layer(name)
            known = there in ALLOWED  # `from gradir import __version__` names no layer
            if name[0] == "gradir" and known and there != here and there not in ALLOWED[here]:
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line}: {here} imports {'.'.join(name)}")
    assert not wrong, "\n".join(wrong)


def test_layers_do_without_forbidden_packages() -> None:
    wrong = []
    for path, module, imports in modules():
        for line, name in imports:
            if name[0] in FORBIDDEN.get(layer(module), set()):
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line}: imports {'.'.join(name)}")
    assert not wrong, "\n".join(wrong)


def test_the_check_can_fail() -> None:
    tree = ast.parse("from gradir.lowering.cse import Cse\nfrom ...driver import compile\nfrom . import x\nimport gradir.tools.opt\n")
    found = imported(tree, ("gradir", "dialects", "nd"), True)
    assert [name[:2] for _, name in found] == [("gradir", "lowering"), ("gradir", "driver"), ("gradir", "dialects"), ("gradir", "tools")]
