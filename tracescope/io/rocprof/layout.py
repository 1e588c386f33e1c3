"""The records of rocprofiler-sdk JSON as types: what is not named here is not read, what is not there has a default."""

from typing import Final, TypeVar

import msgspec

from tracescope.io.collector import MAX_TEXT

TOOL: Final = "rocprofiler-sdk-tool"
UNREADABLE: Final = (msgspec.DecodeError, RecursionError, OverflowError, UnicodeError, ValueError)

Decoded = TypeVar("Decoded")


class Handle(msgspec.Struct, frozen=True, gc=False):
    handle: int = 0


class Correlation(msgspec.Struct, frozen=True, gc=False):
    internal: int = 0
    external: int = 0


class Size(msgspec.Struct, frozen=True, gc=False):
    x: int = 1
    y: int = 1
    z: int = 1


class Dispatch(msgspec.Struct, frozen=True, gc=False):
    kernel_id: int = 0
    agent_id: Handle = Handle()
    queue_id: Handle = Handle()
    private_segment_size: int = 0
    group_segment_size: int = 0
    workgroup_size: Size | None = None
    grid_size: Size | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record of any kind; what its kind does not have keeps its default."""

    start_timestamp: int
    end_timestamp: int
    kind: int = -1
    operation: int = -1
    thread_id: int = 0
    correlation_id: Correlation = Correlation()
    stream_id: Handle | None = None
    dispatch_info: Dispatch | None = None
    kernel_rename_val: int = 0
    graph_exec_id: int = 0
    graph_node_id: int = 0
    src_agent_id: Handle = Handle()
    dst_agent_id: Handle = Handle()
    bytes: int = -1
    allocation_size: int = -1


class Bank(msgspec.Struct, frozen=True):
    heap_type: int = -1
    size_in_bytes: int = 0


class Agent(msgspec.Struct, frozen=True):
    id: Handle = Handle()
    type: int = 0
    name: str = ""
    product_name: str = ""
    model_name: str = ""
    logical_node_type_id: int = -1
    mem_banks: list[Bank] = []

    @property
    def shown(self) -> str:
        """What the GPU is called."""
        return (self.product_name or self.model_name or self.name)[:MAX_TEXT]


class Symbol(msgspec.Struct, frozen=True):
    kernel_id: int = 0
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    truncated_kernel_name: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """(the short name, the full one)."""
        own = self.kernel_name.removesuffix(".kd")
        full = self.formatted_kernel_name or self.demangled_kernel_name or own
        return (self.truncated_kernel_name or full).removesuffix(".kd")[:MAX_TEXT], full.removesuffix(".kd")[:MAX_TEXT]


class Kind(msgspec.Struct, frozen=True):
    kind: str = ""
    operations: list[str] = []


class Text(msgspec.Struct, frozen=True):
    key: int = 0
    value: str = ""


class External(msgspec.Struct, frozen=True):
    external: list[Text] = []


class Strings(msgspec.Struct, frozen=True):
    buffer_records: list[Kind] = []
    marker_api: list[Text] = []
    correlation_id: External = External()


class Metadata(msgspec.Struct, frozen=True):
    pid: int = 0
    command: list[str] = []


class Process(msgspec.Struct, frozen=True):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    agents: msgspec.Raw = msgspec.Raw(b"[]")
    strings: msgspec.Raw = msgspec.Raw(b"{}")
    kernel_symbols: msgspec.Raw = msgspec.Raw(b"[]")
    buffer_records: dict[str, msgspec.Raw] = {}
    callback_records: dict[str, msgspec.Raw] = {}


class File(msgspec.Struct, frozen=True, rename={"tool": TOOL}):
    tool: list[Process] | Process


def decode_file(text: bytes) -> list[Process]:
    """The processes of a file, their parts not yet read; one of UNREADABLE where it is no such file."""
    tool = msgspec.json.decode(text, type=File, strict=False).tool
    return tool if isinstance(tool, list) else [tool]


def decode_list(raw: msgspec.Raw, kind: type[Decoded]) -> tuple[list[Decoded], int]:
    """(the items of a list that are of ``kind``, how many are not); what is no list has one that is not."""
    try:
        return msgspec.json.decode(raw, type=list[kind], strict=False), 0  # type: ignore[valid-type]  # kind is a value
    except UNREADABLE:
        pass
    try:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except UNREADABLE:
        return [], 1
    found: list[Decoded] = []
    for item in items:
        try:
            found.append(msgspec.json.decode(item, type=kind, strict=False))
        except UNREADABLE:
            continue
    return found, len(items) - len(found)


def count_items(raw: msgspec.Raw) -> int:
    """How many items a list has; what is no list is one."""
    try:
        return len(msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except UNREADABLE:
        return 1
