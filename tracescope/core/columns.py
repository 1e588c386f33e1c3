"""Checks shared by every table of numpy columns: one length, the declared dtype, read-only arrays."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
I16 = NDArray[np.int16]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]
Bool = NDArray[np.bool_]

_DTYPES: dict[Any, np.dtype[Any]] = {
    F64: np.dtype(np.float64),
    I64: np.dtype(np.int64),
    I32: np.dtype(np.int32),
    I16: np.dtype(np.int16),
    U32: np.dtype(np.uint32),
    U16: np.dtype(np.uint16),
    U8: np.dtype(np.uint8),
    Bool: np.dtype(np.bool_),
}


def freeze_columns(table: Any) -> None:
    """Convert every array field of the frozen dataclass ``table`` to its declared dtype, one length, read-only.

    Raises ValueError naming the column where a length or a value range does not fit.
    """
    length: int | None = None
    for field in fields(table):
        dtype = _DTYPES.get(field.type)
        if dtype is None:
            continue
        given = np.asarray(getattr(table, field.name))
        array = given if given.dtype == dtype else _converted(given, dtype, field.name)
        if array.ndim != 1 or (length is not None and len(array) != length):
            raise ValueError(f"column {field.name} has shape {array.shape}, expected ({length},)")
        length = len(array)
        array = array.view()
        array.flags.writeable = False
        object.__setattr__(table, field.name, array)


def empty_columns(table: type) -> dict[str, Any]:
    """Keyword arguments for a ``table`` (a dataclass of columns) without rows."""
    return {f.name: np.empty(0, _DTYPES[f.type]) for f in fields(table) if f.type in _DTYPES}


def _converted(given: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    if given.size and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if given.min() < limits.min or given.max() > limits.max:
            raise ValueError(f"column {name} holds values outside {dtype}")
    return np.ascontiguousarray(given, dtype=dtype)
