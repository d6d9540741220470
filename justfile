# The commands of a contributor; `just` lists them. Each is one line that can be typed without just.

venv := ".venv"

# list the commands
default:
    @just --list

# make .venv and install kopt with its test tools
setup:
    python3 -m venv {{venv}}
    {{venv}}/bin/pip install -c constraints.txt -e '.[test]'

# run the fast tests: no processes, no network, no GPU
test *ARGS:
    ./scripts/test {{ARGS}}

# install the test tools and run every check and every test
check *ARGS:
    ./scripts/check {{ARGS}}

# format, and fix what can be fixed automatically
fix:
    {{venv}}/bin/ruff format .
    {{venv}}/bin/ruff check --fix .
    {{venv}}/bin/kopt wiki lint --wiki gpu-wiki --fix --yes

# write the generated pages of docs/ again (commands, gate rules, lint rules, cheats), the figures of the wiki, and what the example notebook shows
docs:
    {{venv}}/bin/python -m scripts.generated_docs
    {{venv}}/bin/python -m scripts.figures
    {{venv}}/bin/python -m scripts.notebook

# record what commands print where tests/kopt/test_contract.py says that it differs, and that is meant
record *GROUPS:
    {{venv}}/bin/python -m tests.golden.contract.record {{GROUPS}}

# compute the embeddings of the bundled wiki again, after pages changed
vectors:
    {{venv}}/bin/python -m ingest.carried

# measure search, answers and citations on the development questions; arguments go to `kopt eval`
eval *ARGS:
    {{venv}}/bin/kopt eval {{ARGS}}

# time a cold question against a bare import of chromadb
bench:
    {{venv}}/bin/python benchmarks/cold_start.py
