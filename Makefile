# `make` says what there is. Anything longer than a few lines lives in tools/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo up program build test test-kafka conformance chaos races bench check lint fmt generate generate-check breaking \
	check-deps check-modules tidy sync tools

# Pinned tools (tools/*/go.mod) are built once, into the user's cache.
export PATH := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bullpen/bin:$(PATH)

# The linter remembers findings with the paths of the folder it found them in: each checkout has a memory of its own.
export GOLANGCI_LINT_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bullpen/lint/$(shell printf %s '$(CURDIR)' | cksum | cut -d' ' -f1)

# Every module of the workspace: as package patterns and as folders.
PACKAGES = $(shell go list -m -f '{{.Path}}/...')
FOLDERS = $(shell go list -m -f '{{.Dir}}')

# Arguments for the program, as in `make demo ARGS=--json`.
ARGS ?=

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: program ## Do the main job once on real parts and print its timeline
	@bin/bullpen demo $(ARGS)

up: program ## Run every service in one process until stopped
	@bin/bullpen up $(ARGS)

program: ## Build the all-in-one program, bin/bullpen
	@tools/preflight build
	@test -x bin/bullpen || echo "bullpen: building bin/bullpen, which takes minutes the first time" >&2
	@go build -o bin/ ./cmd/bullpen

build: program ## Build it and every service on its own into bin/
	@go build -o bin/ ./services/*/cmd/*

test: ## Run every test but Kafka's and the crash matrix, with the race detector
	@tools/preflight test
	@go test $$(tools/preflight race) -timeout 15m $(PACKAGES)
	@for dir in tools/depcheck tools/gen; do (cd $$dir && GOWORK=off go test ./...); done

test-kafka: ## Run the bus suite and the story against Apache Kafka (fetched with Maven, runs on Java)
	@tools/preflight kafka
	@BULLPEN_KAFKA_HOME=$$(deploy/kafka/fetch) BULLPEN_TEST_KAFKA=apache \
		go test -count=1 -timeout 15m -run Kafka ./libs/bus/... ./cmd/bullpen/...

conformance: ## Run the official conformance suite of MCP against us, with no failure expected (needs npm)
	@tools/preflight test
	@BULLPEN_TEST_CONFORMANCE=1 go test -count=1 -p 1 -timeout 10m -run Conformance ./services/mcphost ./cmd/bullpen

chaos: ## Kill services, Postgres and the broker under load; nothing may be lost or doubled
	@tools/preflight test
	@BULLPEN_TEST_CHAOS=1 go test -count=1 -p 1 -v -timeout 10m -run Chaos ./services/tracker ./cmd/bullpen

races: ## Let 2, 8 and 64 callers fight over the same work items, BULLPEN_RACE_ROUNDS times (1000; hours)
	@tools/preflight test
	@BULLPEN_RACE_ROUNDS=$${BULLPEN_RACE_ROUNDS:-1000} go test -count=1 -v -timeout 12h -run 'ManyCallers' ./services/tracker

bench: program ## Measure boot, webhook, turn, tool call and tracker beside their floors (minutes; needs a quiet machine)
	@for area in boot webhook turn call tracker; do bin/bullpen bench $$area $(ARGS); done

check: generate-check breaking lint check-deps check-modules test ## The gate: all that a change must pass

lint: tools ## Lint and check the form of contracts and code
	@buf lint
	@buf format --diff --exit-code proto
	@golangci-lint run $(addsuffix /...,$(FOLDERS))
	@for dir in tools/depcheck tools/gen; do (cd $$dir && GOWORK=off golangci-lint run); done

fmt: tools ## Format contracts and code
	@buf format --write proto
	@golangci-lint fmt $(FOLDERS)

generate: ## Rebuild gen/ from proto/, and the page of settings from the flags
	@tools/generate
	@tools/reference

generate-check: ## Fail if gen/ is not what proto/ says
	@tools/generate --check

breaking: tools ## Fail if a contract broke since AGAINST (the previous commit on main)
	@tools/breaking $(AGAINST)

check-deps: ## Hold the repository to the laws of tools/depcheck/rules.yaml
	@cd tools/depcheck && GOWORK=off go run . -root ../.. -rules rules.yaml

check-modules: ## Build and vet each module on its own; its go.mod must be tidy
	@tools/each-module 'go build ./... && go vet ./... && go mod tidy -diff'

tidy: ## Tidy every go.mod
	@tools/each-module 'go mod tidy'

sync: ## Give all modules one version of each shared dependency
	@go work sync
	@tools/each-module 'go mod tidy'

tools: ## Build the pinned tools, where they changed
	@tools/install >/dev/null
