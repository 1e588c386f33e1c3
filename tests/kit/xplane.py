"""Writes small XPlane files by the fields of xplane.proto: decode steps of TPUs."""

from tests.kit.protobuf import Fields, message

BASE = 1_767_225_600 * 10**9
LAYER = [
    ("fusion.12", 3), ("convolution_fusion.4", 60), ("dynamic-update-slice.3", 4), ("ragged_paged_attention.7", 40),
    ("convolution_fusion.5", 30), ("all-reduce.2", 8),
]  # fmt: skip
"""HLO instructions of one layer, with the µs that each takes."""


def plane(name: str, lines: list[Fields], names: list[str], stats: list[str], said: dict[str, Fields]) -> bytes:
    """One XPlane; ids count from 1."""
    return message(
        {
            1: 1,
            2: name,
            3: lines,
            4: [
                {
                    1: i + 1,
                    2: {1: i + 1, 2: f"%{n} = bf16[4,8] all-reduce(%x)", 4: n, 5: [said[n]] if n in said else []},
                }
                for i, n in enumerate(names)
            ],
            5: [{1: i + 1, 2: {1: i + 1, 2: n}} for i, n in enumerate(stats)],
        }
    )


def space(steps: int = 2, layers: int = 3, devices: int = 1) -> bytes:
    """TPUs that each run ``steps`` decode steps at once, and a host line."""
    names = [n for n, _ in LAYER] + ["0", "1", "jit_step(7)"]
    number = {n: i + 1 for i, n in enumerate(names)}
    ops: list[Fields] = []
    rows: list[Fields] = []
    modules: list[Fields] = []
    clock = 100_000_000
    for step in range(steps):
        begun = clock
        for name, lasts in LAYER * layers:
            ops.append({1: number[name], 2: clock, 3: lasts * 1_000_000})
            clock += lasts * 1_000_000 + 500_000
        rows.append({1: number[str(step)], 2: begun, 3: clock - begun})
        modules.append({1: number["jit_step(7)"], 2: begun, 3: clock - begun})
    lines: list[Fields] = [
        {1: 3, 2: "Steps", 3: BASE, 4: rows},
        {1: 4, 2: "XLA Modules", 3: BASE, 4: modules},
        {1: 5, 2: "XLA Ops", 3: BASE, 4: ops},
    ]
    said: dict[str, Fields] = {"convolution_fusion.4": {1: 1, 3: 50_331_648}}
    device = [plane(f"/device:TPU:{i}", lines, names, ["bytes_accessed", "noise"], said) for i in range(devices)]
    host = plane("/host:CPU", [{1: 77, 2: "python", 3: BASE, 4: [{1: 1, 2: 1_500, 3: 2_500}]}], ["wait"], [], {})
    return message({1: [host, *device]})
