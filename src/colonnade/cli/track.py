"""`colonnade track`: log finished runs to MLflow."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--uri", help="The tracking server or database. [default: as MLflow is set up here]")
@click.option("--experiment", default="colonnade", show_default=True, help="The experiment they belong to.")
@click.option("--with-models", is_flag=True, help="Also upload all parties' shares, which are the model.")
@click.option("--json", "as_json", is_flag=True, help="Print the ids of the runs as JSON.")
def track(
    folders: tuple[Path, ...], uri: str | None, experiment: str, with_models: bool, as_json: bool
) -> None:
    """Log the runs in DIR... to MLflow: their job, the loss by epoch, metrics, cost and files.

    \b
    Example:
      colonnade track runs/first runs/second --uri sqlite:///mlflow.db
    """
    import msgspec

    from colonnade.report.mlflow import log_run

    logged = {str(folder): log_run(folder, uri, experiment, with_models=with_models) for folder in folders}
    if as_json:
        click.echo(msgspec.json.encode(logged).decode())
        return
    for name, run in logged.items():
        click.echo(f"{name}: run {run} of experiment {experiment}")
