"""`python -m tests.storage.schemas [DATABASE]`: writes the fixture of the newest version.

It is made from the database that is named (its log is read too, and it is brought to the newest version),
else from the newest fixture there is, where a migration makes no table that needs rows. Look through the file
for paths and names of the machine that it was made on. One that is there is never written again: it is what
people have.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import msgspec

from kandev.storage.opening import open_store
from kandev.storage.schema import HEAD
from tests.storage.rows import Listener
from tests.storage.schemas import FOLDER, dump, lay, revisions
from tests.storage.schemas.reading import everything


async def _write(path: Path) -> None:
    store = await open_store(str(path), publisher=Listener(), commit_s=60)
    try:
        read = await store.read(everything)
    finally:
        await store.close()
    (FOLDER / f"{HEAD}.sql").write_text(dump(path), encoding="utf-8")
    text = msgspec.json.format(msgspec.json.encode(read), indent=1)
    (FOLDER / f"{HEAD}.json").write_bytes(text + b"\n")


def main() -> int:
    if HEAD in revisions():
        sys.stderr.write(f"{HEAD} has a fixture.\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else lay(revisions()[-1], Path(folder) / "kandev.db")
        asyncio.run(_write(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
