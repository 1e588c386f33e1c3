"""Attention that alternates from layer to layer, as in models that mix windowed and full attention."""

from typing import Final

import numpy as np

from tracescope.core.category import Op
from tracescope.core.columns import I32
from tracescope.core.raw import RawTrace
from tracescope.core.report import Inference
from tracescope.core.units import duration
from tracescope.recognise.ops.op_events import OpEvents
from tracescope.recognise.ops.reading import Reading

_LONGEST: Final = 8
"""Attention patterns repeat after two layers in most models and after six in those with few full layers."""


def attention_alternates(raw: RawTrace, op_events: OpEvents, reading: Reading, step: I32) -> tuple[Inference, ...]:
    """Whether the attention kernels of a step's layers alternate, and how; nothing where they are all alike.

    Looks at the first step with enough layers. Windowed layers are those whose attention takes clearly less time.
    """
    main = np.flatnonzero((reading.op == Op.ATTENTION) & reading.main & (reading.layer >= 0) & (step >= 0))
    if not op_events.on_device or not len(main):
        return ()
    first = main[step[main] == step[main[0]]]
    first = first[np.argsort(reading.layer[first], kind="stable")]
    codes = raw.events.name[op_events.row[first]].tolist()
    period = next((p for p in range(2, _LONGEST + 1) if codes[p:] == codes[:-p]), 0)
    if len(codes) < 4 or len(set(codes)) < 2 or not period or len(codes) < 2 * period:
        return ()
    took = raw.events.duration[op_events.row[first]]
    kinds = sorted(
        ((float(np.median(took[np.array(codes) == code])), code, codes.count(code)) for code in set(codes)),
    )
    told = kinds[-1][0] > 1.5 * kinds[0][0]
    names = ["windowed", *[""] * (len(kinds) - 2), "full"] if told else [""] * len(kinds)
    parts = [
        f"{count} {name + ' ' if name else ''}layers with {raw.names[code][:60]} (median {duration(round(median))})"
        for name, (median, code, count) in zip(names, kinds, strict=True)
    ]
    what = f"attention repeats after {period} layers: " + ", ".join(parts)
    return (Inference(what, "attention by period", 0.8 if told else 0.6),)
