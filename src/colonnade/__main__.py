"""`python -m colonnade` is `colonnade`."""

from colonnade.cli import main

main(prog_name="colonnade")
