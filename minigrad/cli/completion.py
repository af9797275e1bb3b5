"""`minigrad completion`: a script by which a shell completes commands, options and names of models.

Bash takes it by `eval "$(minigrad completion bash)"`, a line for ~/.bashrc.
"""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Mapping

from .parser import Command, Parser

__all__ = ["COMPLETION"]

WITH_MODELS = ("train", "show", "check", "graph", "demo")  # commands whose first word may be a model

BASH = """_minigrad() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words={names}
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _minigrad minigrad
"""


def _arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def _completion(options: Namespace) -> int:
    words = {name: _words_of(name, command) for name, command in options.commands.items()}
    if options.shell == "fish":
        print(_fish(options.commands, words), end="")
    else:
        start = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
        print(start + _bash(words), end="")
    return 0


def _words_of(name: str, command: Command) -> list[str]:
    """What may follow a command: its options, and models by name where it takes one."""
    parser = command.parser(name)
    flags = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]
    return [*flags, *(_models() if name in WITH_MODELS else [])]


def _models() -> list[str]:
    """The names of the installed models, without any that a shell could take for something else."""
    from ..zoo.registry import entries

    return [entry.name for entry in entries() if re.fullmatch(r"[\w-]+", entry.name)]


def _bash(words: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f"            {name}) words={shlex.quote(' '.join(some))};;" for name, some in words.items())
    return BASH.format(names=shlex.quote(" ".join(words)), cases=cases)


def _fish(commands: Mapping[str, Command], words: Mapping[str, list[str]]) -> str:
    lines = []
    for name, command in commands.items():
        summary = shlex.quote(command.summary)
        lines.append(f"complete -c minigrad -n __fish_use_subcommand -a {name} -d {summary}")
        for word in words[name]:
            what = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c minigrad -n '__fish_seen_subcommand_from {name}' {what}")
    return "\n".join(lines) + "\n"


COMPLETION = Command(
    "print a script that lets a shell complete commands, options and models",
    "minigrad completion bash",
    _arguments,
    _completion,
)
