"""`colonnade audit`: run a job, let every party attack what it heard, and say how far each came."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, note, print_json

if TYPE_CHECKING:
    from colonnade.attacks.audit import Audited
    from colonnade.findings import Finding
    from colonnade.result import Heard

FOUND = 1  # the exit code of --strict


@click.command()
@click.argument("target", metavar="JOB.toml|DIR", type=click.Path(path_type=Path))
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results of JOB.toml go. [default: runs/JOB]"
)
@click.option("--report", is_flag=True, help="Also write report.html, a page about the run and the audit.")
@click.option("--strict", is_flag=True, help="Exit with 1 if an attack found more than guessing does.")
@JSON
@click.pass_context
def audit(
    ctx: click.Context, target: Path, out: Path | None, report: bool, strict: bool, as_json: bool
) -> None:
    """Measure what a run gives away: every party in turn attacks what it heard.

    The job runs on this machine with everything written down that each party says, hears and sums. Then every
    attack that makes sense for a party is tried on that, and compared with the truth and with mere guessing.
    Where the job promises an epsilon, it is bounded from below. JOB.toml is run as `colonnade run` does it
    and its folder is written; of DIR, the folder of a run, the job is run again. audit.json beside the result
    is what `colonnade report` shows.

    What attacks find is given away at least. Beside it stands the account: how many numbers each party heard
    about whose labels and columns, at the most. That they find nothing proves nothing.

    \b
    Example:
      colonnade audit job.toml --out runs/first --report
      colonnade audit runs/first --json
    """
    from colonnade.cli.folder import JOB, REPORT, RESULT, claimed, store_run
    from colonnade.errors import JobError
    from colonnade.findings import FILE, write_findings

    again = target.is_dir()
    if again and not all((target / name).is_file() for name in (RESULT, JOB)):
        raise JobError(
            f"{target}: is not the folder of a run; `colonnade run JOB.toml --out {target}` makes one"
        )
    if again and out is not None:
        raise JobError("--out: the audit of a folder goes into that folder; leave --out away")
    with claimed(target if again else out or Path("runs") / target.stem) as folder:
        done = _audited(target / JOB if again else target, quiet=as_json)
        files = [] if again else store_run(folder, done.done, plot=False)
        write_findings(folder / FILE, done.findings)
        files.append(folder / FILE)
        if report:
            from colonnade.report.facts import read_run
            from colonnade.report.page import write_report

            files.append(write_report(read_run(folder), folder / REPORT))
    if as_json:
        print_json(done.findings)
    else:
        _show(done.findings, done.done.result.opened, files)
    ctx.exit(FOUND if strict and any(each.found for each in done.findings) else 0)


def _audited(path: Path, *, quiet: bool) -> Audited:
    """Read a job, run it and attack it, with progress on the way."""
    from colonnade.attacks.audit import audit as audited
    from colonnade.cli.progress import progress
    from colonnade.job import read_job

    job = read_job(path, note)
    with progress(job.train.epochs, quiet=quiet) as reporter:
        return audited(job, progress=reporter, tell=reporter.tell)


def _show(findings: list[Finding], told: list[Heard], files: list[Path]) -> None:
    """Print what every party reached, and beside it how much it heard."""
    from colonnade.cli.show import console, table
    from colonnade.findings import AT_LEAST
    from colonnade.openings.account import CAUTION, HEARD, table_of

    terminal = console()
    heads = ["by", "attack", "reached (95% interval)", "guessing reaches", ""]
    rows = [(each.by, each.attack, each.success, each.guessing, each.note) for each in findings]
    terminal.print(table(heads, rows))
    terminal.print(f"\n{AT_LEAST}", soft_wrap=True)
    if heard := table_of(told):
        terminal.print(f"\nWhat was heard, {CAUTION}:", soft_wrap=True)
        terminal.print(table(list(HEARD), heard, right=(3, 4, 5)))
    terminal.print(f"\nwritten: {', '.join(str(file) for file in files)}", soft_wrap=True)
