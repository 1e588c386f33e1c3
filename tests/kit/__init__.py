"""What tests are made from: one maker of each kind of thing.

``traces`` makes a Trace of a few events, ``many_lanes`` one of many, ``native`` those that use every table of the
native format; ``recordings`` makes what a reader hands to recognition. ``chrome``, ``nsys``, ``perfetto``, ``rocpd``,
``rocprof``, ``xplane`` and ``checkpoints`` write foreign files (two of them with ``protobuf``), ``raw`` reads files and
checks what must hold of any, and ``oracle`` reads Chrome traces without any code of the product. ``pictures`` and
``windows`` paint and open what was made. ``layered`` and ``decoder_configs`` are models whose layers differ.
"""
