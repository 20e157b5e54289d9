"""`python -m penstock.cli`, which `bin/penstock` is."""

from penstock.cli.verbs import app

app()
