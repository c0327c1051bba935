"""JSON schemas of tools, made from their structs. Not here: the structs."""

from collections.abc import Mapping
from typing import Any

import msgspec


def schema(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """A root object without references, as MCP clients understand it best.

    An optional member's `null` is accepted and not advertised: some clients cannot read a type that is one of
    several.
    """
    (root,), definitions = msgspec.json.schema_components([shape], ref_template="{name}")
    found = _plain(root, definitions)
    found.pop("title", None)
    if not found.get("required"):
        found.pop("required", None)
    return dict(found)


def _plain(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        merged = {**definitions[node["$ref"]], **{k: v for k, v in node.items() if k != "$ref"}}
        merged.pop("title", None)
        merged.pop("description", None) if "description" not in node else None
        return _plain(merged, definitions)
    if "anyOf" in node:
        kinds = [kind for kind in node["anyOf"] if kind != {"type": "null"}]
        if len(kinds) == 1:
            rest = {k: v for k, v in node.items() if k not in ("anyOf", "default")}
            return _plain({**kinds[0], **rest}, definitions)
    return {name: _plain(value, definitions) for name, value in node.items()}
