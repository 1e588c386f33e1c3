"""What sources call the kinds of their events, and what is meant."""

from typing import Final

from tracescope.core.raw import RawCategory

WORDS: Final[dict[str, RawCategory]] = {
    "kernel": RawCategory.KERNEL,
    "concurrent_kernel": RawCategory.KERNEL,
    "kernel_dispatch": RawCategory.KERNEL,
    "gpu_memcpy": RawCategory.COPY,
    "gpu_memset": RawCategory.COPY,
    "memcpy": RawCategory.COPY,
    "memset": RawCategory.COPY,
    "memory_copy": RawCategory.COPY,
    "cpu_op": RawCategory.OPERATOR,
    "operator": RawCategory.OPERATOR,
    "user_annotation": RawCategory.ANNOTATION,
    "gpu_user_annotation": RawCategory.ANNOTATION,
    "trace": RawCategory.ANNOTATION,
    "cuda_sync": RawCategory.ANNOTATION,
    "cuda_event": RawCategory.ANNOTATION,
    "nvtx": RawCategory.ANNOTATION,
    "marker_api": RawCategory.ANNOTATION,
    "python_function": RawCategory.PYTHON,
    "python": RawCategory.PYTHON,
    "runtime": RawCategory.RUNTIME,
    "cuda_runtime": RawCategory.RUNTIME,
    "cuda_driver": RawCategory.RUNTIME,
    "hip_api": RawCategory.RUNTIME,
    "xpu_runtime": RawCategory.RUNTIME,
    "xpu_driver": RawCategory.RUNTIME,
    "mtia_runtime": RawCategory.RUNTIME,
    "privateuse1_runtime": RawCategory.RUNTIME,
    "privateuse1_driver": RawCategory.RUNTIME,
}
"""Words of torch.profiler in all its dialects, and of the tools of vendors, lower-cased."""

INSTANT: Final = "(instant)"
"""The word of moments, whatever their source calls them."""

ON_DEVICE: Final = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "gpu_user_annotation", "mtia_ccp_events"}
)
"""Words whose events lie on the row of an accelerator: what else lies there ran there too."""


def category_of(word: str | RawCategory) -> RawCategory:
    """What ``word`` stands for; a reader that knows better has put a RawCategory."""
    if word == INSTANT:
        return RawCategory.INSTANT
    return word if isinstance(word, RawCategory) else WORDS.get(word.lower(), RawCategory.OTHER)
