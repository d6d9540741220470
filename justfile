# Habits. `just` lists them; each is one command that can be typed without just.

venv := ".venv"

# install with the test tools and run every check
check *ARGS:
    ./scripts/check {{ARGS}}

# format and mend what can be mended
fix:
    {{venv}}/bin/ruff format .
    {{venv}}/bin/ruff check --fix .
    {{venv}}/bin/kopt wiki lint --wiki gpu-wiki --fix --yes

# write the vectors of the bundled wiki anew, after pages changed
vectors:
    {{venv}}/bin/python -m ingest.carried

# write docs/commands.md from the commands' own help
commands:
    {{venv}}/bin/python -m typer kopt.cli.main utils docs --name kopt --output docs/commands.md

# write the rules in docs/gate.md from their docstrings
gate-docs:
    {{venv}}/bin/python scripts/gate_docs.py

# time a cold question against a bare import of chromadb
bench:
    {{venv}}/bin/python benchmarks/cold_start.py
