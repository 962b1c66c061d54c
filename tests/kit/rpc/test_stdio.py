"""Descriptors as streams."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from amplifier_kit.rpc.stdio import DescriptorReader, DescriptorWriter


async def test_a_slow_reader_gets_all_of_a_long_message() -> None:
    reading, writing = os.pipe()
    data, got = b"x" * 300_000, bytearray()
    try:
        reader, writer = DescriptorReader(reading), DescriptorWriter(writing)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.send, data)
            while len(got) < len(data):
                got += await reader.receive(1000)
        await reader.aclose()
        await writer.aclose()
    finally:
        os.close(reading)
        os.close(writing)

    assert bytes(got) == data


async def test_the_other_end_is_gone() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(anyio.EndOfStream):
        await DescriptorReader(reading).receive()
    os.close(reading)
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(anyio.BrokenResourceError):
        await DescriptorWriter(writing).send(b"x")
    os.close(writing)


async def test_what_cannot_be_read_is_a_broken_stream(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(anyio.BrokenResourceError):
            await DescriptorReader(descriptor).receive()
    finally:
        os.close(descriptor)


async def test_regular_files_are_read_and_written(tmp_path: Path) -> None:
    file = tmp_path / "frames"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        await DescriptorWriter(descriptor).send(b"one\n")
        os.lseek(descriptor, 0, os.SEEK_SET)
        reader = DescriptorReader(descriptor)
        assert await reader.receive() == b"one\n"
        with pytest.raises(anyio.EndOfStream):
            await reader.receive()
    finally:
        os.close(descriptor)
