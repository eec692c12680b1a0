"""`expr.binpb` describes the messages of CEL as xds-protos does.

`python -m tests.dialects.cel.test_messages` writes it.
"""

from __future__ import annotations

from pathlib import Path

from cel.expr import checked_pb2  # type: ignore[import-untyped]
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from eastgate.dialects.cel import upstream
from eastgate.dialects.cel.expression import Expression
from tests.dialects.cel.offer import compiled

_DESCRIBED = Path(upstream.__file__).with_name("expr.binpb")


def _described() -> FileDescriptorSet:
    """Return the files that describe a checked expression, each after its imports."""
    files: dict[str, FileDescriptor] = {}

    def add(file: FileDescriptor) -> None:
        for imported in file.dependencies:
            add(imported)
        files.setdefault(file.name, file)

    add(checked_pb2.DESCRIPTOR)
    described = FileDescriptorSet()
    for file in files.values():
        file.CopyToProto(described.file.add())
    return described


def _of_cel(described: FileDescriptorSet) -> list[object]:
    return [file for file in described.file if file.package == "cel.expr"]


def test_the_messages_are_those_of_xds_protos() -> None:
    assert _of_cel(FileDescriptorSet.FromString(_DESCRIBED.read_bytes())) == _of_cel(_described())


def test_one_process_has_both() -> None:
    assert isinstance(compiled("request.path == '/x'"), Expression)


if __name__ == "__main__":
    _DESCRIBED.write_bytes(_described().SerializeToString(deterministic=True))
