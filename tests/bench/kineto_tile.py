"""Writes a Kineto-like decode trace of any size: one synthetic step, tiled in time with its ids counted on."""

from pathlib import Path
from typing import Final

LAYERS: Final = 32
STEP_US: Final = 9000

KERNELS: Final = (
    ("void norm_kernel<bf16>(bf16*, bf16 const*, float)", 4120),
    ("nvjet_tst_128x64_64x11_1x2_h_bz_NNT", 21204),
    ("void rotary_embedding_kernel<bf16, true>(long const*, bf16*, bf16*)", 3008),
    ("reshape_and_cache_flash_kernel<bf16>", 2416),
    ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>", 41233),
    ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 17011),
    ("void norm_kernel<bf16>(bf16*, bf16 const*, float)", 4096),
    ("nvjet_tst_256x64_64x11_1x2_h_bz_NNT", 66602),
    ("void act_and_mul_kernel<bf16, silu>(bf16*, bf16 const*, int)", 5187),
    ("nvjet_tst_64x8_64x16_4x1_v_bz_TNN", 40907),
)
"""(name, duration in ns) of one layer's kernels."""

OPS: Final = ("aten::rms_norm", "aten::linear", "vllm::rotary", "vllm::cache", "vllm::attention") + (
    "aten::linear",
) * 5

HEAD: Final = (
    '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA H100 80GB HBM3",'
    ' "totalGlobalMem": 84974239744, "numSms": 132}\n  ],\n  "distributedInfo": {"rank": 0, "world_size": 1},\n'
    '  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 1751410836000000000,\n  "traceEvents": [\n'
    '  {\n    "ph": "M", "name": "process_name", "ts": 0, "pid": 0, "tid": 0,\n    "args": {"name": "python"}\n  }'
)


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def one_step(step: int) -> str:
    """The events of one step: an annotation, and per kernel an operator, a launch, a flow and the kernel itself."""
    origin = 7_889_000_000_000_000 + step * STEP_US * 1000
    events = [
        ',\n  {\n    "ph": "X", "cat": "user_annotation", "name": "step[DECODE bs=32]", "pid": 851, "tid": 851,\n'
        f'    "ts": {_us(origin)}, "dur": {STEP_US - 40}.000,\n'
        f'    "args": {{\n      "External id": {step}\n    }}\n  }}'
    ]
    host, device = origin + 1000, origin + 6000
    for layer in range(LAYERS):
        for place, (name, duration) in enumerate(KERNELS):
            number = (step * LAYERS + layer) * len(KERNELS) + place + 1
            events.append(
                f',\n  {{\n    "ph": "X", "cat": "cpu_op", "name": "{OPS[place]}", "pid": 851, "tid": 851,\n'
                f'    "ts": {_us(host)}, "dur": {_us(9000 + place)},\n    "args": {{\n      "External id": {number},'
                '"Record function id": 0, "Concrete Inputs": ["", ""],'
                ' "Input type": ["c10::BFloat16", "c10::BFloat16"],'
                f' "Input Strides": [[4096, 1], [1, 4096]], "Input Dims": [[32, 4096], [4096, {1024 * (place + 1)}]],'
                f' "Ev Idx": {number}\n    }}\n  }}'
                f',\n  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 851, "tid": 851,\n'
                f'    "ts": {_us(host + 4000)}, "dur": 3.217,\n'
                f'    "args": {{\n      "External id": {number}, "cbid": 211,'
                f' "correlation": {number}\n    }}\n  }}'
                f',\n  {{\n    "ph": "s", "id": {number}, "pid": 851, "tid": 851, "ts": {_us(host + 4000)},\n'
                '    "cat": "ac2g", "name": "ac2g"\n  }'
                f',\n  {{\n    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7,\n'
                f'    "ts": {_us(device)}, "dur": {_us(duration)},\n    "args": {{\n      "External id": {number},'
                f' "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {number},'
                ' "registers per thread": 168, "shared memory": 199680, "blocks per SM": 0.969697,'
                f' "warps per SM": 11.636364, "grid": [{16 * (place + 1)}, 1, 1], "block": [384, 1, 1],'
                ' "est. achieved occupancy %": 18\n    }\n  }'
                f',\n  {{\n    "ph": "f", "id": {number}, "pid": 0, "tid": 7, "ts": {_us(device)},\n'
                '    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }'
            )
            host += 11_000
            device += duration + 1_003
    return "".join(events)


def write_trace(path: Path, megabytes: int) -> int:
    """Write about ``megabytes`` of trace to ``path``; gives the number of elements in its event list."""
    elements, step = 1, 0
    with path.open("w", encoding="ascii") as file:
        written = file.write(HEAD)
        while written < megabytes * 1_000_000:
            written += file.write(one_step(step))
            elements += 1 + 5 * LAYERS * len(KERNELS)
            step += 1
        file.write('\n  ],\n  "traceName": "synthetic.json"\n}\n')
    return elements
