# SPDX-License-Identifier: MIT
"""From words on the command line to a command, and from what goes wrong to one line on standard error."""
from __future__ import annotations

import inspect
import os
import sys
from typing import NoReturn, Optional

import typer

from .errors import LabError, UsageError, raise_interrupts


def split(words: list[str]) -> tuple[list[str], Optional[list[str]]]:
    """The words before "--", and the user's program behind it, if there is a "--"."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1:]


def fail(prefix: str, error: LabError, status: int = 0) -> NoReturn:
    print(f"{prefix}: {error}", file=sys.stderr)
    sys.exit(status or error.status)


def start(app: typer.Typer, name: str, prefix: str, words: list[str], status: int = 0) -> NoReturn:
    """Runs a command and ends the process with its status; messages begin with the prefix. `status`: of all errors."""
    for one in app.registered_commands:  # a list of commands has whole sentences, and wraps them
        one.short_help = one.short_help or inspect.getdoc(one.callback)
    command = typer.main.get_command(app)
    try:
        raise_interrupts()
        result = command.main(args=words, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        sys.exit(result if isinstance(result, int) else 0)
    except LabError as error:
        fail(prefix, error, status)
    except KeyboardInterrupt:
        print(f"{prefix}: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        sys.exit(141)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(prefix, LabError(f"{where}{error.strerror or error}"), status)
    except Exception as error:  # noqa: BLE001 - click's own classes differ between versions
        fail(prefix, _usage_error(command, error, words), status)


def _usage_error(command, error: Exception, words: list[str]) -> UsageError:
    """Click's complaints as `./hakmem run` words them, with the valid words; other exceptions are ours and stay."""
    if getattr(error, "format_message", None) is None:
        raise error
    context = getattr(error, "ctx", None)
    known = context.command if context is not None else command
    if hasattr(known, "commands") and words[:1] and words[0] in known.commands:
        known = known.commands[words[0]]
    if hasattr(known, "commands"):
        there = " ".join(known.commands)
        return UsageError(f"unknown command '{words[0]}'; there are: {there}" if words[:1] and words[0][0:1] != "-"
                          else f"a command is wanted; there are: {there}")
    return UsageError(f"{known.name}: {_complaint(known, error)}")


def _complaint(known, error: Exception) -> str:
    kind, parameter, text = type(error).__name__, getattr(error, "param", None), " ".join(str(error).split())
    name = parameter and (parameter.metavar if kind == "MissingParameter" and parameter.metavar
                          else max(parameter.opts, key=len))
    if kind == "NoSuchOption":
        there = ", ".join(option for entry in known.params for option in entry.opts if option.startswith("--"))
        return f"unknown option '{error.option_name}'; there are: {there}"
    if kind == "MissingParameter" and name:
        return f"{name} is wanted"
    if kind == "BadOptionUsage":
        return f"{error.option_name} needs a value"
    if kind == "BadParameter" and name:
        return f"{name}: {getattr(error, 'message', text)}".rstrip(".").replace(": Input should", " should")
    if "extra argument" in text:
        return f"too many words: {text.partition('(')[2].partition('(')[2].rstrip(')')}" if "(s)" in text else text
    return (text[:1].lower() + text[1:]).rstrip(".")
