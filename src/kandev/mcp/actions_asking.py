"""The action by which an agent asks a person. Not here: what becomes of the answer (`usecases`)."""

from typing import Any, Final

from kandev.core.errors import Invalid
from kandev.mcp import arguments, results
from kandev.mcp.action import McpChapter
from kandev.mcp.caller import Caller
from kandev.ports.tools import ToolCall
from kandev.usecases.ask_question import Asking, ask_question
from kandev.usecases.call_ids import CallIds
from kandev.usecases.context import Context

chapter = McpChapter()
WAITS: Final = "Waiting for a person to answer."


@chapter.waiting("mcp.ask_user_question", arguments.AskUserQuestion)
async def ask(
    ctx: Context, caller: Caller, asked: arguments.AskUserQuestion, call: ToolCall | None
) -> results.AnsweredQuestion:
    if len(asked.questions) != 1:
        raise Invalid("questions must hold one question: ask the next one when it is answered.")
    question = asked.questions[0]
    labels = [option.label for option in question.options]
    if len(set(labels)) < len(labels):
        raise Invalid("questions[0].options names a label twice: give each option a label of its own.")
    question_id = question.id or "q1"
    payload = {
        "question_id": question_id,
        "prompt": question.prompt,
        "options": [_option(option) for option in question.options],
        **({"title": question.title} if question.title else {}),
        **({"context": asked.context} if asked.context else {}),
    }
    name = CallIds(caller.call_id).new("question") if caller.call_id else ctx.ids.new("question")
    outcome, answer = await ask_question(ctx, caller.session_id, name, payload, _asking(call))
    answers = [results.Answer(question_id=question_id, answer=answer)] if outcome == "answered" else []
    return results.AnsweredQuestion(status=outcome, answers=answers)


def _option(option: arguments.Option) -> dict[str, Any]:
    return {"label": option.label, **({"description": option.description} if option.description else {})}


def _asking(call: ToolCall | None) -> Asking:
    """The call, as far as it waits: an agent that wants to hear of progress hears that it is waited."""
    if call is None:
        return Asking()
    params = call.message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if token is None:
        return Asking(call.left, call.served)
    told = 0

    async def tell() -> None:
        nonlocal told
        told += 1
        progress = {"progressToken": token, "progress": told, "message": WAITS}
        await call.send(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}, last=False
        )

    return Asking(call.left, call.served, tell)
