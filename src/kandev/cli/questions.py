"""`answer`: what agents want to know from a person, and what they are told.

Not here: what they want to be allowed (`permissions`).
"""

from collections.abc import Sequence
from typing import Any

import click

from kandev.cli import naming
from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.failures import Failed
from kandev.cli.output import age_of, clean, line_of, paint

Thing = naming.Thing


@click.command()
@click.argument("target", metavar="SESSION|TASK")
@click.argument("text", required=False)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="OPTION",
    help="One that is offered: its label, or its number.",
)
@click.option("--reject", is_flag=True, help="Say that you do not answer.")
@click.option("--question", metavar="ID", help="Which question (default: the only open one).")
@client_command
def answer(
    client: Client,
    /,
    target: str,
    text: str | None,
    options: tuple[str, ...],
    *,
    reject: bool,
    question: str | None,
) -> None:
    """Answer the question of an agent with TEXT (- reads it from stdin) or an offered option.

    Without an answer: show what is asked. What agents want to be allowed is for `kandev permission`.
    """
    if reject and (text is not None or options):
        raise click.UsageError("Give --reject, or an answer; not both.")
    session = naming.session_or_task(client, target, naming.wants_answer, naming.works)
    asked = session.get("questions") or []
    if text is None and not options and not reject:
        _show(client, session["id"], asked)
        return
    chosen = _chosen(session["id"], asked, question)
    pending = chosen["pending_id"]
    payload: dict[str, Any] = {"pending_id": pending, "answers": []}
    if reject:
        payload["rejected"] = True
    else:
        payload["answers"] = [_answer(chosen, text_or_stdin(text), options)]
    said = client.call("clarification.respond", payload)
    if not client.out.data(said):
        client.out.say(f"Question {pending} is {'rejected' if reject else 'answered'}.")


def _answer(question: Thing, text: str | None, options: Sequence[str]) -> Thing:
    """One of `answers`, without what was not said."""
    told: Thing = {"question_id": question.get("question_id", question["pending_id"])}
    if options:
        told["selected_options"] = [_label(question, option) for option in options]
    if text is not None:
        told["custom_text"] = text
    return told


def _label(question: Thing, text: str) -> str:
    labels = [str(option.get("label", "")) for option in question.get("options") or []]
    for label in labels:
        if label.casefold() == text.casefold():
            return label
    if text.isdecimal() and 1 <= int(text) <= len(labels):
        return labels[int(text) - 1]
    offered = ", ".join(f"{n} ({line_of(label)})" for n, label in enumerate(labels, 1))
    way = f"choose one of {offered}, or say it as TEXT" if labels else "say it as TEXT"
    raise Failed(f"The question offers no option {text!r}: {way}.")


def _chosen(session_id: str, asked: list[Thing], text: str | None) -> Thing:
    by_id = [{**question, "id": question["pending_id"]} for question in asked]
    if text is not None:
        try:
            return naming.pick("question", text, by_id)
        except naming.Unknown:
            raise Failed(f"No question {text!r} is open; look with `kandev answer {session_id}`.") from None
    if not by_id:
        raise Failed("No question is open: there is nothing to answer.")
    if len(by_id) > 1:
        ids = ", ".join(str(question["id"]) for question in by_id)
        raise Failed(f"{len(by_id)} questions are open ({ids}); name one with --question.")
    return by_id[0]


def _show(client: Client, session_id: str, asked: list[Thing]) -> None:
    if client.out.data({"questions": asked}):
        return
    if not asked:
        client.out.say("No question is open.")
    for question in asked:
        age = age_of(question.get("asked_at"))
        if title := question.get("title"):
            client.out.say(paint(clean(title), dim=True))
        client.out.say(paint(clean(question.get("prompt", "")), bold=True))
        if context := question.get("context"):
            client.out.say(clean(context))
        for number, option in enumerate(question.get("options") or [], 1):
            about = f": {line_of(option['description'])}" if option.get("description") else ""
            client.out.say(f"  {number}  {paint(line_of(option.get('label', '')), 'yellow')}{about}")
        since = f", asked {age} ago" if age else ""
        client.out.say(paint(f"  Question {question['pending_id']}{since}", dim=True))
    if asked:
        option = ", or --option NUMBER" if any(question.get("options") for question in asked) else ""
        client.out.say(f"Answer with `kandev answer {session_id} TEXT`{option}, or --reject.")
