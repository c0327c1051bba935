"""A column that holds a value as JSON text, decoded into its type.

None is NULL. Missing members take their defaults and unknown ones are ignored, so that rows of an older
program stay readable.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

from kandev.core.errors import StoreFault


class JsonText(TypeDecorator[Any]):
    """`of`: the type to decode into. Members keep their order."""

    impl = Text
    cache_ok = True

    def __init__(self, of: Any) -> None:
        super().__init__()
        self.of = of
        self._decode = msgspec.json.Decoder(of).decode

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str | None]:
        """From the value to text."""
        return lambda value: None if value is None else msgspec.json.encode(value).decode()

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """From text to the value; StoreFault when the text is none."""
        decode = self._decode

        def process(text: Any) -> Any:
            if text is None:
                return None
            try:
                return decode(text)
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise StoreFault(f"A row of the database cannot be read: {error}") from error

        return process
