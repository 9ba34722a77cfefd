"""Random programs for derivatives: smooth almost everywhere, bounded, full of control flow. `make fuzz-grad SECONDS=600`.

| file | does |
|---|---|
| `scope` | what a block under construction sees; values of a wanted type from those that are there |
| `steps` | straight-line steps: every one bounded, so that loops may repeat it |
| `indexing` | steps that read and write elements: gathers with duplicates, scatters, slices that move, sorted and chosen elements |
| `control` | `scf.for`, `while`, `if`, `index_switch`, in each other |
| `calls` | functions called again with another activity, checkpoints, rules of one's own, requests for derivatives inside of a program |
| `program` | the whole module of one seed |
| `questions` | central differences, forward against reverse, compiled against evaluated, second order, lanes, policies |
"""
