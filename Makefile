.DEFAULT_GOAL := help
GOLANGCI_VERSION := 2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
FUZZTIME ?= 30s
BENCHTIME ?= 1s

# Every module of the workspace, as a directory. `go work use ./backend/new` adds one.
MODULES = $(shell go list -m -f '{{.Dir}}')
each = @printf '%s\n' $(MODULES) | .ci/each 1 $(1)
# Tests mostly wait, for a time to pass or a server to start: JOBS modules are tested at a
# time, in an order in which integration, the longest, comes early.
JOBS ?= 2
pairs = @printf '%s\n' $(MODULES) | sort -r | .ci/each $(JOBS) $(1)
# The race detector needs cgo and a C compiler; without them the tests run without it.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null && echo -race)

.PHONY: help
help: ## Print this message
	@awk -F ':.*## ' '/^[a-z\/]+:.*## /{printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: needs test/unit ## Everything: installs what is missing or says so, then tests every module alone

.PHONY: needs
needs: # Installs the servers that tests start where it may, else says what is missing
	@command -v go >/dev/null || { echo "go is missing: https://go.dev/dl (1.25 or newer)"; exit 1; }
	@go version
	@.ci/servers

.PHONY: test/unit
test/unit: ## The tests of every module
	$(call pairs,go test -timeout 30m ./...)

.PHONY: test/race
# Not integration: what it judges are times between processes, which mean little there. Not
# mysqllease: its code is that of sqllease, which sqlitelease runs under the race detector.
test/race: MODULES = $(shell go list -m -f '{{.Dir}}' | grep -v '/integration\|/mysqllease')
test/race: ## The same under the race detector, with fewer schedules, without integration
	@[ -n "$(RACE)" ] || echo "no cgo or no C compiler ($$(go env CC)): running without -race"
	$(call pairs,go test $(RACE) -short -timeout 30m ./...)

.PHONY: bench
bench: ## Benchmarks of every module
	$(call each,go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...)

.PHONY: bench/peers
bench/peers: needs ## hasp beside other libraries (some minutes, a quiet machine, two cores): docs/benchmarks.md
	cd integration/bench && GOWORK=off go run . -out ../../docs/benchmarks.md

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME (30s)
	@set -e; grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | while IFS=: read -r file target; do \
	echo ">> $$file: $${target#func }"; \
	(cd $$(dirname $$file) && GOWORK=off go test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x .); done

.PHONY: soak
soak: ## The long checks in full (an hour and more)
	$(call each,env HASP_SOAK=1 go test -count=1 -timeout 4h ./...)

# The pinned golangci-lint: the one on PATH where it is that version, else built into bin.
$(GOLANGCI):
	@mkdir -p bin
	@if golangci-lint version --short 2>/dev/null | grep -qxF $(GOLANGCI_VERSION); \
	then ln -sf "$$(command -v golangci-lint)" $@; \
	else echo ">> golangci-lint $(GOLANGCI_VERSION), built once (minutes)"; \
	GOWORK=off GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_VERSION) \
	&& mv bin/golangci-lint $@; fi

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint in every module
	$(call each,$(CURDIR)/$(GOLANGCI) run --allow-serial-runners ./...)

.PHONY: lint/arrows
lint/arrows: $(GOLANGCI) ## Break every dependency arrow on purpose: lint must notice
	@.ci/arrows $(GOLANGCI)

.PHONY: fmt
fmt: $(GOLANGCI) ## Rewrite with gofumpt and goimports
	$(call each,$(CURDIR)/$(GOLANGCI) fmt ./...)

.PHONY: tidy
tidy: ## go mod tidy in every module
	$(call each,go mod tidy)

.PHONY: tidy/check
tidy/check: ## Fail if a go.mod or go.sum is not tidy, or a module is not in go.work
	$(call each,go mod tidy -diff)
	@find . -name go.mod -not -path './bin/*' -exec dirname {} + | while read -r d; do \
	go list -m -f '{{.Dir}}' | grep -qxF "$$(cd $$d && pwd)" || { echo "$$d is not in go.work: go work use $$d"; exit 1; }; done

.PHONY: deps/check
deps/check: ## Fail if the root module requires anything
	@! grep -qE '^(require|replace)' go.mod && [ ! -e go.sum ] || { echo "the root module must need nothing but the standard library"; exit 1; }

.PHONY: check
check: needs deps/check tidy/check lint/arrows lint ## All that needs no tests to run

.PHONY: ci
ci: check test/race ## The checks, then the tests under the race detector
