.DEFAULT_GOAL := help
.PHONY: help install serve demo test test-postgres lint types format bench constraints docs smoke

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: ## Install for development
	python -m pip install -c constraints.txt -e '.[test,lint]'

serve: ## Start the server and open the dashboard
	agentx-server --dev

demo: ## Start with a demo project
	agentx-server --dev --demo

test: ## Run the suite on SQLite
	python -m pytest -n 2

test-postgres: ## Run the suite on the Postgres of AGENTX_TEST_DB_URL
	test -n "$$AGENTX_TEST_DB_URL" && python -m pytest -n 2

lint: ## Linters and import contract
	ruff check . && ruff format --check . && lint-imports

types: ## Type check
	mypy

format: ## Format the code
	ruff check --fix . && ruff format .

bench: ## Measure ingest, reads, start and memory
	python -m benchmarks --help

smoke: ## The published SDK against a fresh server
	scripts/smoke-test.sh

constraints: ## Write constraints.txt anew from a fresh environment
	scripts/constraints.sh

docs: ## Write the tables of docs/configuration.md anew
	python scripts/configuration_docs.py
