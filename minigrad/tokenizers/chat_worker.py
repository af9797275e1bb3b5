"""Renders one chat template, given as JSON, in a process of its own: what a template does here harms nobody.

It is started by its path, and imports nothing of minigrad. The answer is JSON too: `text`, or what went wrong.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

MAX_TEXT = 2**22  # characters
MAX_MEMORY = 2**30  # bytes


class Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what an assistant says; here it is written like anything else."""

    tags = {"generation"}

    def parse(self, parser: Any) -> Any:
        """The body of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Refused(jinja2.TemplateError):
    """A template called `raise_exception`: it does not take these messages."""


def refuse(message: str) -> None:
    """`raise_exception` of a template."""
    raise Refused(message)


def to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """The filter `tojson`, which writes `<` as it is: a prompt is no page."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def rendered(template: str, variables: dict[str, Any]) -> str:
    """The text that a template makes, in Jinja's sandbox, with the functions that chat templates count on."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    parts, size = [], 0
    for part in environment.from_string(template).generate(**variables):
        parts.append(part)
        size += len(part)
        if size > MAX_TEXT:
            raise jinja2.TemplateError(f"it makes a text of more than {MAX_TEXT:,} characters")
    return "".join(parts)


def limit_memory() -> None:
    """Let this process have little memory, where the system can hold it to that."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):  # macOS has the name, but takes no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def answer(task: dict[str, Any]) -> dict[str, str]:
    """What is written to the process that asked."""
    try:
        return {"text": rendered(task["template"], task["variables"])}
    except Refused as error:
        return {"refused": str(error)}
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        return {"wrong": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Read a task, write the answer."""
    limit_memory()
    sys.stdout.write(json.dumps(answer(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
