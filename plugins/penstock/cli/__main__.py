"""`python -m penstock.cli`, which the command `penstock` is."""

from penstock.cli.app import main

main()
