"""`python -m kopt`."""

from kopt.cli.main import main

main()
