"""The figures of `bench.gpu.check` as one compact text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PEERS = {"gemm": "cuBLAS", "memory": "torch", "attention": "SDPA", "convolution": "cuDNN"}


def table(figures: Mapping[str, Any]) -> str:
    """What a person reads last on the screen."""
    where = f"{figures['card']} ({figures['arch']}), {figures['scale']} sizes, {figures.get('seconds', '?')} s"
    lines = [f"{where}; bounds of {figures.get('bounds_of', '?')}"]
    lines += [f"missing: {text}" for text in figures.get("missing", ())]
    if "compiling" in figures:
        found = figures["compiling"]
        lines.append(f"compiled ahead: {found['programs']} programs in {found['seconds']} s, {len(found['failed'])} failed")
        lines += [f"  {text[:160]}" for text in found["failed"][:5]]
    if "right" in figures:
        lines.append(f"results: {figures['right']} right, {len(figures['wrong'])} wrong, {len(figures['unchecked'])} not checked")
    lines += [f"  WRONG {row['case']}: {row.get('error') or _gap(row)}"[:220] for row in figures.get("wrong", ())]
    lines += [_training(row) for row in figures.get("training", ())]
    if "overhead_us" in figures:
        lines.append("a call on 8 elements, host: " + ", ".join(f"{name} {us:.1f} us" for name, us in figures["overhead_us"].items()))
    if "copy_bandwidth" in figures:
        lines.append(f"copy: {figures['copy_bandwidth'] / 1e12:.2f} TB/s")
    for group, peer in PEERS.items():
        rows = [row for row in figures.get("speed", ()) if row["group"] == group]
        if rows:
            lines += ["", f"{group:12} {'':30} {'us':>9} {'rate':>12} {'of bound':>9} {peer:>9} {'ratio':>6}"]
            lines += [_row(row, figures) for row in rows]
    if figures.get("unmeasured"):
        lines.append(f"no time for {len(figures['unmeasured'])} cases: {', '.join(figures['unmeasured'][:6])} ...")
    return "\n".join(lines) + "\n"


def _gap(row: Mapping[str, Any]) -> str:
    return f"differs by {row['difference']:.3g}, {row['allowed']:.1g} allowed"


def _training(row: Mapping[str, Any]) -> str:
    if "error" in row:
        return f"training {row['name']}: {row['error']}"[:200]
    took = f", {row['seconds'] * 1e6:.0f} us a step, {row['graphs']} graph launches" if "seconds" in row else ""
    return f"training {row['name']}: differs from the CPU by {row['difference']:.1e}{took}"


def _row(row: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    if "seconds" not in row:
        return f"{'':12} {row['name']:30} {row.get('error', '')}"[:150]
    seconds = row["seconds"]
    compute = row["group"] != "memory"
    rate = f"{row['flops'] / seconds / 1e12:.2f} TF/s" if compute else f"{row['bytes'] / seconds / 1e12:.3f} TB/s"
    share = f"{row['bound'] / seconds:.0%}"
    if not compute and figures.get("copy_bandwidth"):
        share = f"{row['bytes'] / seconds / figures['copy_bandwidth']:.0%} cp"
    peer = row.get("peer")
    against = f"{peer * 1e6:9.1f} {peer / seconds:6.2f}" if peer else f"{'':9} {'':6}"
    tf32 = f"  tf32 {row['peer_tf32'] * 1e6:.1f}" if row.get("peer_tf32") else ""
    return f"{'':12} {row['name']:30} {seconds * 1e6:9.1f} {rate:>12} {share:>9} {against}{tf32}"
