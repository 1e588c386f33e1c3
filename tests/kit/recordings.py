"""A tiny recording made by hand: kernels, launches, operators and annotations, as a reader would hand them over."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracescope.core.raw import RawDevice, RawEvents, RawTrace, RawTrack
from tracescope.core.report import Source
from tracescope.io.words import category_of

HOST, STREAM, OTHER_STREAM = 0, 1, 2
TRACKS = (
    RawTrack("100", "100", "python", "main"),
    RawTrack("0", "7", is_device=True, device=0, rank=0),
    RawTrack("0", "8", is_device=True, device=0, rank=0),
)


@dataclass
class Recording:
    """Collects events in the order of the calls; times are ns. ``kernels`` run back to back on the stream."""

    rows: list[tuple[int, int, str, str, int, int, str]] = field(default_factory=list)
    clock: int = 1_000_000
    correlation: int = 0

    def add(self, name: str, category: str, start: int, duration: int, track: int = HOST, **more: Any) -> None:
        """One event; ``correlation`` and ``detail`` (a dict) may be given."""
        detail = json.dumps(more["detail"]) if more.get("detail") else ""
        self.rows.append((start, duration, name, category, track, more.get("correlation", -1), detail))

    def launch(self, at: int, names: list[str], durations: int = 10, gap: int = 1, track: int = STREAM) -> int:
        """One runtime call at ``at`` that launches ``names`` one after the other; the time at which the last ends."""
        self.correlation += 1
        self.add("cudaLaunchKernel", "cuda_runtime", at, 5, correlation=self.correlation)
        for name in names:
            category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            self.add(name, category, self.clock, durations, track, correlation=self.correlation)
            self.clock += durations + gap
        return self.clock - gap

    def operator(self, name: str, start: int, duration: int, dims: Any = None, types: Any = None, **more: Any) -> None:
        """An operator with recorded shapes."""
        detail = (
            {"Input Dims": dims, "Input type": types, "Concrete Inputs": more.get("concrete", [])} if dims else None
        )
        self.add(name, "cpu_op", start, duration, detail=detail)

    def raw(self, device: str = "") -> RawTrace:
        """The recording as a RawTrace."""
        names = list(dict.fromkeys(r[2] for r in self.rows))
        details = ["", *dict.fromkeys(r[6] for r in self.rows if r[6])]
        n = len(self.rows)
        return RawTrace(
            source=Source("made.json", "", 0, "test"),
            events=RawEvents(
                start=np.array([r[0] for r in self.rows], np.int64),
                duration=np.array([r[1] for r in self.rows], np.int64),
                name=np.array([names.index(r[2]) for r in self.rows], np.uint32),
                category=np.array([category_of(r[3]) for r in self.rows], np.uint8),
                track=np.array([r[4] for r in self.rows], np.uint32),
                correlation=np.array([r[5] for r in self.rows], np.int64),
                detail=np.array([details.index(r[6]) for r in self.rows], np.uint32),
                flags=np.zeros(n, np.uint8),
            ),
            names=tuple(names),
            tracks=TRACKS,
            details=tuple(details),
            devices=(RawDevice(0, device),) if device else (),
            seen=n,
            imported=n,
        )


EMBED = "void at::native::vectorized_gather_kernel<16, long>(char*)"
NORM = "fused_add_rms_norm_kernel<c10::BFloat16>"
GEMM = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"
ROPE = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>"
APPEND = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>"
ATTENTION = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>"
COMBINE = "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>"
ACT = "void vllm::act_and_mul_kernel<c10::BFloat16, silu>"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>"
COPY = "Memcpy DtoH (Device -> Host)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"

DENSE_LAYER = [NORM, GEMM, ROPE, APPEND, ATTENTION, COMBINE, GEMM, NORM, GEMM, ACT, GEMM]
"""One layer of a decode step as a fused engine launches it."""


def decode_kernels(layers: int, layer: list[str] | None = None) -> list[str]:
    """The kernels of one decode step, token selection not included."""
    return [EMBED, *(layer or DENSE_LAYER) * layers, NORM, GEMM]
