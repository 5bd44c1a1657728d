from colonnade.cli import main

main(prog_name="colonnade")
