"""Fuzzing: random programs through every oracle, and random damage to IR. `make fuzz SECONDS=600`; what it finds is reduced and kept.

| file | does |
|---|---|
| `templates` | uses of each op, from the ops' own samples: a new op takes part as soon as it has samples |
| `programs` | random well-typed programs: templates in other types and sizes, nested control flow, calls, names of sizes |
| `damage_text`, `damage_ops` | IR that is wrong in one or two places |
| `gradients/` | programs full of control flow, and the questions about their derivatives |
| `oracles` | questions that have only one right answer, each a function from a text to a complaint |
| `campaign` | the loop, the progress line, reduction, the files in build/fuzz |
"""
