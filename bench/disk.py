"""What one flush costs where the homes lie: the floor below every promise that outlives a power cut."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from bench.figures import Row, ms
from bench.ground import Ground

PAGE = b"x" * 4096


async def measure(ground: Ground) -> Sequence[Row]:
    """A page written and flushed, beside a page written."""
    written, flushed = [], []
    descriptor = os.open(ground.folder / "pages", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(ground.sizes.flushes):
            began = time.monotonic()
            os.write(descriptor, PAGE)
            written.append(time.monotonic() - began)
            os.fsync(descriptor)
            flushed.append(time.monotonic() - began)
    finally:
        os.close(descriptor)
    return [Row("4 KiB written and flushed", "ms", ms(flushed), ms(written), "written only")]
