"""`/openapi.json`: the catalogue as an OpenAPI 3.1 document, made from the payloads' structs.

Not here: the WebSocket's frames; the document names them in words.
"""

from typing import Any, Final

import msgspec

from kandev.gateway.action import Action
from kandev.gateway.catalogue import ACTIONS
from kandev.gateway.errors import STATUS
from kandev.wire.gateway import ErrorObject

REF: Final = "#/components/schemas/{name}"
ABOUT: Final = (
    "Every action has two doors: POST /api/v1/actions/{action} with the payload as JSON body, and the "
    "WebSocket /ws with frames {id, type, action, payload, timestamp}. Subscriptions exist on the WebSocket "
    "only. Actions that begin with mcp. are refused at both."
)


def document(version: str) -> dict[str, Any]:
    """The whole document."""
    shapes = [action.payload for action in ACTIONS.values()]
    references, schemas = msgspec.json.schema_components([*shapes, ErrorObject], ref_template=REF)
    paths = {
        f"/api/v1/actions/{action.name}": {"post": _operation(action, reference)}
        for action, reference in zip(ACTIONS.values(), references, strict=False)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kandev", "version": version, "description": ABOUT},
        "paths": {**paths, "/health": {"get": _health()}},
        "components": {
            "schemas": schemas,
            "responses": {code: _error(code, references[-1]) for code in STATUS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(action: Action, reference: dict[str, Any]) -> dict[str, Any]:
    note = " On the WebSocket only: here it is BAD_REQUEST." if action.stream else ""
    answer = {"description": action.result, "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "operationId": action.name,
        "summary": action.summary + note,
        "tags": [action.name.partition(".")[0]],
        "requestBody": {"required": True, "content": {"application/json": {"schema": reference}}},
        "responses": {"200": answer, **_errors()},
    }


def _errors() -> dict[str, Any]:
    """By status; two codes share 404."""
    found = {str(status): {"$ref": f"#/components/responses/{code}"} for code, status in STATUS.items()}
    return dict(sorted(found.items()))


def _error(code: str, reference: dict[str, Any]) -> dict[str, Any]:
    both = "NOT_FOUND or UNKNOWN_ACTION" if code in ("NOT_FOUND", "UNKNOWN_ACTION") else code
    return {"description": both, "content": {"application/json": {"schema": reference}}}


def _health() -> dict[str, Any]:
    answer = {
        "description": "{status, version}",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    return {"operationId": "health", "summary": "For probes.", "security": [{}], "responses": {"200": answer}}
