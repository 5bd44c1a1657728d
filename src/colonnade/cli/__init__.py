"""The command line: `colonnade COMMAND`.

An error ends in one line on standard error and a number: 2 when the input has to change, 3 when a party
refuses, 4 when one is away, 1 for anything else, 130 when the user stopped it. With --json the same is also
on standard output, as JSON. Commands import what they need when they run, so that help and mistakes answer
at once.
"""

from __future__ import annotations

import difflib
import errno
import json
import sys
import traceback
from contextlib import suppress
from typing import Any

import click

from colonnade.cli.audit import audit
from colonnade.cli.bench import bench
from colonnade.cli.budget import budget
from colonnade.cli.certificates import certs
from colonnade.cli.compare import compare
from colonnade.cli.credit import credit
from colonnade.cli.demo import demo
from colonnade.cli.describe import describe
from colonnade.cli.example import example
from colonnade.cli.forget import forget
from colonnade.cli.journal import journal
from colonnade.cli.lists import algorithms, datasets
from colonnade.cli.models import models
from colonnade.cli.new import new
from colonnade.cli.party import party
from colonnade.cli.predict import predict
from colonnade.cli.proposals import proposals
from colonnade.cli.report import report
from colonnade.cli.run import run
from colonnade.cli.runs import runs
from colonnade.cli.track import track
from colonnade.cli.train import train
from colonnade.cli.tune import tune
from colonnade.cli.value import value
from colonnade.cli.version import show_version
from colonnade.errors import EXITS, ColonnadeError

INTERRUPTED = 130


class Colonnade(click.Group):
    """The commands; a failure of any of them is shown in one line, and with --json as JSON as well."""

    as_json = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether the command is run by a program."""
        self.as_json = "--json" in args
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit with its code; a wrong command line is shown in one line."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            _say(_usage(error), code=error.exit_code, as_json=self.as_json)
            code = error.exit_code
        _forget_unwritten()
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command and return its exit code; its errors are shown in one line."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            _say("stopped; no result was written", code=INTERRUPTED, as_json=self.as_json)
            return INTERRUPTED
        except BrokenPipeError:  # the reader of our output has read enough
            sys.stdout = None
            return 0
        except Exception as error:
            code = _code(error)
            if ctx.params.get("debug"):
                traceback.print_exception(error)
            else:
                _say(_failure(error), code=code, as_json=self.as_json)
            return code


CHANGE_INPUT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR)


def _code(error: Exception) -> int:
    """Return the number to exit with: 2 where the input, or the disk that it lies on, has to change."""
    if isinstance(error, ColonnadeError):
        return error.exit_code
    return 2 if isinstance(error, OSError) and error.errno in CHANGE_INPUT else 1


def _failure(error: Exception) -> str:
    """Return what the user is told about an error."""
    if isinstance(error, ColonnadeError):
        return str(error)
    if isinstance(error, OSError):
        remedy = "; make room, or choose another --out" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return f"{error.filename or 'the system'}: {error.strerror or error}{remedy}"
    return f"unexpected {type(error).__name__}: {error}; `colonnade --debug ...` shows where"


def _forget_unwritten() -> None:
    """Leave what a full device did not take: Python would try again at its end and exit with another code."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        sys.stdout = None


def _say(text: str, *, code: int, as_json: bool) -> None:
    """Tell a person what went wrong, and a program as JSON: nothing else is on standard output then."""
    line = " ".join(text.split())
    click.echo(f"colonnade: {line}", err=True)
    if as_json:
        with suppress(OSError):  # standard output may be what is full
            click.echo(json.dumps({"error": line, "kind": EXITS[code], "code": code}))


def _usage(error: click.ClickException) -> str:
    """Return what the user is told about a wrong command line."""
    text = _no_such(error) if isinstance(error, click.NoSuchOption) else error.format_message().rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text += f"{'' if text.endswith('?') else ';'} `{error.ctx.command_path} --help` tells more"
    return text


def _no_such(error: click.NoSuchOption) -> str:
    """Return what an option that there is not may have meant: a key of the job, an option spelt nearly so."""
    name = error.option_name.lstrip("-").replace("-", "_")
    for section, keys in JOB_KEYS.items():
        if name in keys:
            said = f"it is a key of the job file: [{section}] {name} = ..."
            return f"No such option: {error.option_name}; {said}"
    known = [] if error.ctx is None else [word for each in error.ctx.command.params for word in each.opts]
    near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.75)
    return f"No such option: {error.option_name}" + (f"; did you mean {near[0]}?" if near else "")


JOB_KEYS = {
    "train": ("epochs", "batch", "step", "l2", "l1", "loss", "tolerance", "target", "ahead", "max_delay"),
    "data": ("label", "id", "test_fraction", "scale", "missing", "positive", "categorical", "drop", "active"),
    "secure": ("sum", "labels", "helper", "scores"),
}


@click.group(
    cls=Colonnade, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version", is_flag=True, expose_value=False, callback=show_version, help="Show the version and exit."
)
@click.option(
    "--verbose",
    is_flag=True,
    is_eager=True,
    help="With --version: Python, too, and what is compiled.",
)
@click.option("--debug", is_flag=True, help="Show the whole traceback when something fails.")
def main(verbose: bool, debug: bool) -> None:
    """Train one model over columns that different organisations hold.

    \b
    colonnade demo             see it work: four parties, four processes, one model
    colonnade new FILE...      write a job for your own files
    colonnade run JOB.toml     run it
    """


for command in (
    demo,
    example,
    journal,
    new,
    run,
    compare,
    tune,
    value,
    forget,
    report,
    audit,
    track,
    algorithms,
    datasets,
    certs,
    bench,
    party,
    train,
    describe,
    predict,
    models,
    budget,
    proposals,
    runs,
    credit,
):
    main.add_command(command)
