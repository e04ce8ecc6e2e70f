# What people and CI do with this repository. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The modules with Go code of ours, the main one apart.
MODULES := hack/cluster hack/kwok hack/image hack/verify hack/vulnerabilities hack/gitops hack/olm hack/peer hack/ui hack/site
TOOL := go tool -modfile=hack/tools/go.mod

# The version is stamped by the linker. Go's own stamp would need a git checkout.
# All builds of a package that differ in no flag share one cache entry, and
# compiling Kubernetes a second time takes minutes: so all builds, vet, lint and tests use
# the same flags.
export GOFLAGS := -buildvcs=false -trimpath $(GOFLAGS)
# Findings are kept by checkout: the shared cache would tell those of another one.
lint fmt: export GOLANGCI_LINT_CACHE := $(CURDIR)/bin/.golangci-cache

# sources DIRECTORY... lists what a program is built from.
sources = $(shell find $(1) -type f '(' -name '*.go' -o -name go.mod -o -name go.sum -o -name '*.yaml' ')' \
  ! -name '*_test.go' ! -path '*/testdata/*')
# The web page is embedded into the programs.
PAGE := $(wildcard internal/ui/page/*)
OWN := go.mod go.sum $(call sources,$(filter-out hack bin dist docs deploy examples testdata test,$(patsubst %/,%,$(wildcard */)))) $(PAGE)

# What is written for people, and by which rules: pages, and Go files for their comments.
PROSE := $(wildcard *.md) $(shell find docs examples -name '*.md') \
  $(shell find . '(' -path ./bin -o -path ./dist -o -name testdata ')' -prune -o -name '*.go' ! -name 'zz_generated*' -printf '%P\n')
RULES := .vale.ini $(wildcard hack/prose/styles/Janus/*.yml)

##@ Use

.PHONY: help
help: ## List the targets (the default)
	@awk 'BEGIN { FS = ":.*## "; print "usage: make TARGET" } \
	/^##@ / { printf "\n%s\n", substr($$0, 5) } \
	/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: bin/janusd bin/kubectl-janus ## Build janusd and the plugin of kubectl: bin/janusd, bin/kubectl-janus
	@echo "bin/janusd and bin/kubectl-janus are built from what is here"

.PHONY: demo
demo: bin/janusd bin/janus-cluster bin/janus-kwok bin/kubectl ## Watch Janus commit, roll back and survive kill -9, on a cluster of its own (about a minute)
	@hack/demo/demo.sh

.PHONY: demo-packages
demo-packages: bin/janusd bin/kubectl-janus bin/demo-registry bin/janus-cluster bin/janus-kwok bin/crossplane bin/kubectl ## Watch Janus install, roll back, replace and undo packages of real Crossplane (about a minute, once Crossplane is built)
	@hack/demo/packages.sh

.PHONY: image
image: bin/janus-image ## Build the container image as an OCI layout: dist/janusd
	@echo "==> building the image dist/janusd, version $(VERSION)"
	@mkdir -p dist
	bin/janus-image --version='$(VERSION)' --version-variable=janus.io/janus/internal/version.Version --output=dist/janusd --tag='$(VERSION)'

# Where what is made to be shipped goes, and the image that it names.
DIST ?= dist
IMAGE ?= janusd:dev

.PHONY: manifests
manifests: ## Write all manifests to one file: dist/install.yaml (IMAGE=REGISTRY/janusd@sha256:DIGEST is the image that it names)
	@mkdir -p '$(DIST)'
	@hack/release/manifests.sh '$(IMAGE)' >'$(DIST)/install.yaml.new'
	@mv '$(DIST)/install.yaml.new' '$(DIST)/install.yaml'
	@echo "==> wrote $(DIST)/install.yaml, which runs $(IMAGE)"

.PHONY: bundle
bundle: ## Make the bundle for the Operator Lifecycle Manager: dist/olm (VERSION=v1.2.3 IMAGE=REGISTRY/janusd@sha256:DIGEST)
	@hack/release/manifests.sh '$(IMAGE)' | go run -C hack/olm . --version='$(VERSION)' --output='$(abspath $(DIST))/olm'
	@echo "==> wrote $(DIST)/olm, which runs $(IMAGE)"

# Where the image of a release is going to be pushed, and what it is called there.
REPOSITORY ?= janusd
# The URL below which the files of a release are going to be had, and that of the
# documentation. Krew's manifest names them; without them the archive has to be given to Krew.
DOWNLOADS ?=
HOMEPAGE ?=

.PHONY: release
release: bin/janus-image bin/janus-archive bin/helm ## Make a release in dist/release: image, manifests, chart, plugin, bills of materials, checksums (VERSION=v1.2.3 REPOSITORY=REGISTRY/janusd DOWNLOADS=URL HOMEPAGE=URL)
	@hack/release/release.sh '$(VERSION)' '$(REPOSITORY)' '$(DIST)/release' '$(DOWNLOADS)' '$(HOMEPAGE)'

# The version that make verify-release gives to the release that it tries.
TRIAL ?= v0.0.0-trial

.PHONY: verify-release
verify-release: export RELEASE_PLATFORMS ?= linux/$(shell go env GOARCH)
verify-release: bin/janus-image bin/janus-archive bin/helm bin/janus-verify ## Make a release twice, sign it with a test key, and check all of it offline, with a registry of its own (for this platform; RELEASE_PLATFORMS= makes all)
	@hack/release/verify.sh '$(TRIAL)'

##@ Cluster

.PHONY: cluster
cluster: bin/janus-cluster bin/kubectl ## Build the development cluster: bin/janus-cluster, bin/kubectl (4-5 minutes the first time)
	@echo "bin/janus-cluster is built from what is here"

.PHONY: kwok
kwok: bin/janus-kwok ## Build the simulator of Nodes: bin/janus-kwok (about a minute the first time)
	@echo "bin/janus-kwok is built from what is here"

.PHONY: promtool
promtool: bin/promtool bin/prometheus bin/prometheus-alertmanager bin/amtool ## Get promtool, Prometheus, Alertmanager and amtool, with which the tests try the alerts and the dashboard (packages of Debian, which are not installed)
	@echo "$^ are there"

.PHONY: chromium
chromium: bin/chromium ## Get Chromium, in which the tests try the page of kubectl janus ui (a package of Debian, which is installed)
	@echo "bin/chromium is there"

.PHONY: spin
spin: ## Install Spin, which checks the model of the protocol (a package of Debian), unless it is there
	@command -v spin >/dev/null || { \
	  echo "==> installing the Debian package spin" && \
	  apt-get update -qq && apt-get install -qq -y --no-install-recommends spin >/dev/null; \
	} || { echo "spin is needed: install it" >&2; exit 1; }
	@spin -V

.PHONY: cluster-up
cluster-up: bin/janus-cluster bin/janus-kwok bin/kubectl ## Start a cluster with two Nodes in the background
	@hack/cluster/background.sh up

.PHONY: cluster-down
cluster-down: ## Stop it
	@hack/cluster/background.sh down

##@ Develop

# The URL below which the files of the repository are shown, such as
# https://HOST/janus/blob/main; without it the site has no links to them.
SOURCES ?=

.PHONY: docs
docs: bin/hugo ## Build the site of the documentation: dist/site (SOURCES=URL is where it links to the files of the repository)
	@HUGO_PARAMS_REPOSITORY='$(SOURCES)' bin/hugo --source=hack/site --destination='$(CURDIR)/dist/site' --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	@echo "==> wrote dist/site: open dist/site/index.html"

# Flags for every go test, such as -shuffle=on.
TEST_FLAGS ?=

.PHONY: test
test: bin/janus-cluster ## Prove the main promises in ten minutes (25 the first time): lint, unit and golden tests, the race detector, whole Transactions and a sample of faults on a real API server, generated files
	@go run ./hack/tests -args='$(TEST_FLAGS)' run quick

# The part of make test-all to run; by default all, one after the other.
PART ?= all

.PHONY: test-all
test-all: bin/janus-cluster ## Test everything, or one part of it (PART=faults; make parts lists them)
	@go run ./hack/tests -args='$(TEST_FLAGS)' run $(PART)

# Which run of CI it is, and how long it may take.
TURN ?= $(shell git rev-list --count HEAD)
MINUTES ?= 40

.PHONY: test-turn
test-turn: bin/janus-cluster ## Run the parts of make test-all whose turn it is in CI (TURN=number of commits MINUTES=40)
	@go run ./hack/tests -args='$(TEST_FLAGS)' -minutes=$(MINUTES) ci $(TURN)

.PHONY: parts
parts: ## List the parts of make test-all, and the minutes that CI plans for each
	@go run ./hack/tests list

.PHONY: versions
versions: ## Run the smoke set on the API servers of other versions of Kubernetes (each takes 5 minutes to build once)
	@$(MAKE) test-all PART=versions

# A directory with a directory for each bundle, which has its manifests as v1.yaml and v2.yaml.
BUNDLES ?= $(CURDIR)/hack/bundles

.PHONY: bundles
bundles: bin/janus-cluster bin/janus-kwok bin/kubectl ## Install bundles, upgrade them, and roll back and undo that on a real API server, and compare every field (BUNDLES=DIRECTORY for others than ours)
	go test ./hack/bundles -count=1 -v -timeout 2h -dir='$(BUNDLES)'

FUZZ_TIME ?= 1m

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_TIME (1m), one after the other
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(go test "$$package" -list '^Fuzz' | grep '^Fuzz'); do \
	    echo "==> fuzzing $$target of $$package for $(FUZZ_TIME)"; \
	    go test "$$package" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 5s; \
	  done; \
	done

FAULTS_SEED ?= 1
FAULTS_SHARD ?= 0/1
FAULTS_PAIRS ?= 1000
FAULTS_CONTESTS ?= 300
FAULTS_TABLE ?= $(CURDIR)/dist/faults.md
# The name or the number of one plan: only that one is run.
FAULTS_PLAN ?=

.PHONY: faults
ifdef FAULTS_PLAN
faults: bin/janus-cluster
	go test ./test/e2e/faults -run 'TestPlan$$' -count=1 -v -plan='$(FAULTS_PLAN)'
else
faults: bin/janus-cluster ## Run every fault at every request (hours; FAULTS_SHARD=i/n runs a share, FAULTS_PLAN=NAME or NUMBER one plan), pairs of faults, and contests
	@mkdir -p dist
	@echo "==> every plan of share $(FAULTS_SHARD); the table goes to $(FAULTS_TABLE)"
	go test ./test/e2e/faults -run 'TestPlans$$' -timeout 24h -v -all -seed=$(FAULTS_SEED) -shard=$(FAULTS_SHARD) -table=$(FAULTS_TABLE) -names=$(FAULTS_TABLE:.md=-plans.txt)
	@echo "==> $(FAULTS_CONTESTS) contests of Transactions for the same targets, seed $(FAULTS_SEED)"
	go test ./test/e2e/faults -run 'TestContenders' -timeout 24h -v -contests=$(FAULTS_CONTESTS) -seed=$(FAULTS_SEED) -shard=$(FAULTS_SHARD) -table=$(FAULTS_TABLE:.md=-contests.md)
	@echo "==> $(FAULTS_PAIRS) pairs of faults, seed $(FAULTS_SEED)"
	go test ./test/e2e/faults -run 'TestPairs$$' -timeout 24h -v -pairs=$(FAULTS_PAIRS) -seed=$(FAULTS_SEED) -shard=$(FAULTS_SHARD) -table=$(FAULTS_TABLE:.md=-pairs.md)
endif

# Which proofs, and flags such as -minutes=60.
PROOFS ?=

.PHONY: proofs
proofs: bin/janus-cluster ## Run all that proves the guarantees on one version, slice by slice, and write docs/proofs.md (a night or two; PROOFS='-minutes=60 seeds' runs a part)
	@go run ./hack/proofs $(PROOFS)

BENCH_RESULTS ?= $(CURDIR)/dist/bench.md
# Of what to measure, such as -sizes=10,100 -rounds=3.
BENCH_FLAGS ?=

.PHONY: bench
bench: bin/janus-cluster bin/kubectl bin/helm bin/peer ## Measure what Transactions cost beside a bare client, kubectl, Helm and Flux (BENCH_FLAGS='-sizes=10,100 -rounds=3' measures less)
	@mkdir -p dist
	@echo "==> measuring; the tables go to $(BENCH_RESULTS)"
	go test ./test/e2e/bench -run TestWhatATransactionCosts -count=1 -v -timeout 24h -results='$(BENCH_RESULTS)' $(BENCH_FLAGS)

.PHONY: vet
vet: ## Run go vet in every module
	@for module in . $(MODULES); do echo "==> vetting $$module"; go vet -C $$module ./...; done

.PHONY: lint
lint: bin/golangci-lint ## Run the linters, which also guard the architecture
	@status=0; \
	for module in . $(MODULES); do \
	  echo "==> linting $$module"; \
	  (cd $$module && "$(CURDIR)/bin/golangci-lint" run --allow-serial-runners --config="$(CURDIR)/.golangci.yml" ./...) || status=1; \
	done; exit $$status

# The URL of the Go vulnerability database; without it, a copy is searched that is pinned.
DATABASE ?=
# Such as -std, which fails for what a newer patch of Go has fixed.
VULNERABILITIES_FLAGS ?=

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities of what the programs are built of, and compare with hack/vulnerabilities/janus.openvex.json
	@echo "==> looking for known vulnerabilities (a minute or two)"
	@go run -C hack/vulnerabilities . -database='$(DATABASE)' $(VULNERABILITIES_FLAGS)

.PHONY: prose
prose: bin/.prose ## Check the words of the pages, of comments and of messages; what has passed is not read again

.PHONY: fmt
fmt: bin/golangci-lint ## Format the Go sources
	@for module in . $(MODULES); do \
	  echo "==> formatting $$module"; \
	  (cd $$module && "$(CURDIR)/bin/golangci-lint" fmt --config="$(CURDIR)/.golangci.yml" ./...); \
	done

# What controller-gen makes of the API types.
GENERATE = $(TOOL) controller-gen object crd

.PHONY: generate
generate: ## Generate the CRD and the deep-copy functions from the API types, templates of the chart from the manifests, and the reference
	@echo "==> generating deploy/crd and api/v1alpha1/zz_generated.deepcopy.go"
	$(GENERATE) paths=./api/v1alpha1 output:crd:dir=deploy/crd output:object:dir=api/v1alpha1
	$(GENERATE) paths=./api/packages/v1alpha1 output:crd:dir=deploy/packages/objects output:object:dir=api/packages/v1alpha1
	@# It is installed with enforced locks alone, and kustomize takes no file of another directory.
	@mv deploy/crd/backup.janus.io_locktables.yaml deploy/enforced/objects/
	go run ./hack/unwrap deploy/crd/backup.janus.io_*.yaml deploy/enforced/objects/backup.janus.io_*.yaml deploy/packages/objects/pkg.janus.io_*.yaml
	go run ./hack/versions deploy/crd/backup.janus.io_transactions.yaml
	go run ./hack/chart
	go run ./hack/reference

.PHONY: picture
picture: bin/janus-cluster bin/janus-kwok bin/janusd bin/kubectl-janus bin/kubectl ## Record the session in the README again, on a cluster of its own
	@hack/picture/session.sh

.PHONY: verify
verify: ## Fail if a generated file is not what make generate makes
	@echo "==> comparing generated files"
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(GENERATE) paths=./api/packages/v1alpha1 output:dir="$$fresh" && \
	mv "$$fresh/zz_generated.deepcopy.go" "$$fresh/packages.go" && \
	$(GENERATE) paths=./api/v1alpha1 output:dir="$$fresh" && \
	go run ./hack/unwrap "$$fresh"/backup.janus.io_*.yaml "$$fresh"/pkg.janus.io_*.yaml && \
	go run ./hack/versions "$$fresh"/backup.janus.io_transactions.yaml && \
	go run ./hack/chart --output="$$fresh" --readme="$$fresh/chart.md" && \
	go run ./hack/reference --output="$$fresh" && \
	for file in "$$fresh"/*; do \
	  name=$${file##*/}; \
	  case $$name in \
	    packages.go) there=api/packages/v1alpha1 name=zz_generated.deepcopy.go ;; \
	    *.go) there=api/v1alpha1 ;; \
	    backup.janus.io_locktables.yaml) there=deploy/enforced/objects ;; \
	    backup.janus.io_*) there=deploy/crd ;; \
	    pkg.janus.io_*) there=deploy/packages/objects ;; \
	    chart.md) there=deploy/chart/janus name=README.md ;; \
	    *.md) there=docs/reference ;; \
	    *) there=deploy/chart/janus/templates ;; \
	  esac; \
	  diff -u "$$there/$$name" "$$file" || { echo "$$there/$$name is out of date: run make generate" >&2; exit 1; }; \
	done

.PHONY: clean
clean: cluster-down ## Remove what was built
	@echo "==> removing bin and dist"
	@rm -rf bin dist

# Programs. A build goes to another name first: another process may be running the old one.

bin/janusd: $(OWN) bin/.version
	@echo "==> building $@, version $(VERSION)"
	@go build -trimpath -ldflags='-s -w -X janus.io/janus/internal/version.Version=$(VERSION)' -o $@.new ./cmd/janusd
	@mv $@.new $@

bin/kubectl-janus: $(OWN) $(call sources,deploy/crd) bin/.version
	@echo "==> building $@, version $(VERSION)"
	@go build -trimpath -ldflags='-s -w -X janus.io/janus/internal/version.Version=$(VERSION)' -o $@.new ./cmd/kubectl-janus
	@mv $@.new $@

bin/janus-cluster: $(call sources,hack/cluster)
	@echo "==> building $@: etcd, the Kubernetes control plane and kubectl (4-5 minutes on 2 cores, if nothing is cached)"
	@go build -C hack/cluster -trimpath -ldflags='-s -w' -o ../../$@.new .
	@mv $@.new $@

# The same for another version of Kubernetes, with the requirements in hack/cluster/versions.
bin/janus-cluster-v%: hack/cluster/versions/v%.mod hack/cluster/versions/v%.sum $(call sources,hack/cluster)
	@echo "==> building $@: the control plane of another version of Kubernetes (5 minutes on 2 cores, if nothing is cached)"
	@go build -C hack/cluster -modfile='versions/v$*.mod' -trimpath -ldflags='-s -w' -o ../../$@.new .
	@mv $@.new $@

bin/janus-kwok: $(call sources,hack/kwok)
	@echo "==> building $@: the simulator of Nodes (about a minute on 2 cores, if nothing is cached)"
	@go build -C hack/kwok -trimpath -ldflags='-s -w' -o ../../$@.new .
	@mv $@.new $@

bin/janus-image: $(call sources,hack/image)
	@echo "==> building $@"
	@go build -C hack/image -trimpath -o ../../$@.new .
	@mv $@.new $@

bin/janus-archive: $(call sources,hack/image)
	@echo "==> building $@"
	@go build -C hack/image -trimpath -o ../../$@.new ./archive
	@mv $@.new $@

bin/janus-verify: $(call sources,hack/verify)
	@echo "==> building $@ (a minute or two on 2 cores, if nothing is cached)"
	@go build -C hack/verify -trimpath -ldflags='-s -w' -o ../../$@.new .
	@mv $@.new $@

bin/helm: $(call sources,hack/helm)
	@echo "==> building $@ (some minutes on 2 cores, if nothing is cached)"
	@go build -C hack/helm -trimpath -ldflags='-s -w' -o ../../$@.new helm.sh/helm/v4/cmd/helm
	@mv $@.new $@

bin/peer: $(call sources,hack/peer)
	@echo "==> building $@, which applies as Flux does (some minutes on 2 cores, if nothing is cached)"
	@go build -C hack/peer -trimpath -ldflags='-s -w' -o ../../$@.new .
	@mv $@.new $@

bin/flux-apply: $(call sources,hack/gitops)
	@echo "==> building $@ (2 minutes on 2 cores, if nothing is cached)"
	@go build -C hack/gitops -trimpath -ldflags='-s -w' -o ../../$@.new ./flux
	@mv $@.new $@

bin/argocd-sync: $(call sources,hack/gitops)
	@echo "==> building $@ (3 minutes on 2 cores, if nothing is cached)"
	@go build -C hack/gitops -trimpath -ldflags='-s -w' -o ../../$@.new ./argocd
	@mv $@.new $@

bin/demo-registry: $(OWN) $(call sources,hack/demo/registry test/xpkg)
	@echo "==> building $@"
	@go build -o $@ ./hack/demo/registry

# Packages that want a version of Crossplane ask it for its own.
bin/crossplane: $(call sources,hack/crossplane)
	@echo "==> building $@ (5 minutes on 2 cores, if nothing is cached)"
	@version=$$(go list -C hack/crossplane -m -f '{{.Version}}' github.com/crossplane/crossplane/v2) && \
	go build -C hack/crossplane -trimpath -ldflags="-s -w -X github.com/crossplane/crossplane/v2/internal/version.version=$$version" -o ../../$@.new github.com/crossplane/crossplane/v2/cmd/crossplane
	@mv $@.new $@

bin/golangci-lint: $(call sources,hack/lint)
	@echo "==> building $@ (some minutes on 2 cores, if nothing is cached)"
	@go build -C hack/lint -trimpath -ldflags='-s -w' -o ../../$@.new github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@mv $@.new $@

bin/vale: $(call sources,hack/vale)
	@echo "==> building $@ (some minutes on 2 cores, if nothing is cached)"
	@# The parsers that it brings, in C, make the compiler warn.
	@CGO_CFLAGS='-O2 -w' go build -C hack/vale -trimpath -ldflags='-s -w' -o ../../$@.new github.com/vale-cli/vale/v3/cmd/vale
	@mv $@.new $@

bin/hugo: hack/site/go.mod hack/site/go.sum
	@echo "==> building $@ (some minutes on 2 cores, if nothing is cached)"
	@CGO_ENABLED=0 go build -C hack/site -trimpath -ldflags='-s -w' -o ../../$@.new github.com/gohugoio/hugo
	@mv $@.new $@

# What has passed is not read again, unless the rules have changed.
bin/.prose: bin/vale $(RULES) $(PROSE)
	@echo "==> checking the words of what has changed"
	@go run ./hack/prose $(if $(filter bin/vale $(RULES),$?),$(PROSE),$?)
	@touch $@

# One that is installed is used. Else it is taken out of Debian's package of Prometheus, or of
# Alertmanager: to build them means to build the clients of every cloud. Debian's Alertmanager wants
# templates where its package has them, and the package itself would start it.
bin/promtool bin/prometheus: PACKAGE := prometheus
bin/amtool bin/prometheus-alertmanager: PACKAGE := prometheus-alertmanager
bin/promtool bin/prometheus bin/amtool bin/prometheus-alertmanager:
	@mkdir -p bin
	@if there=$$(command -v $(@F)); then ln -sf "$$there" $@; else \
	  echo "==> getting $@ from the Debian package $(PACKAGE)"; \
	  scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && chmod 755 "$$scratch" && cd "$$scratch" && \
	  apt-get update -qq && apt-get download -qq $(PACKAGE) && dpkg-deb -x $(PACKAGE)_*.deb . && \
	  { [[ ! -d usr/share/prometheus/alertmanager ]] || { mkdir -p /usr/share/prometheus/alertmanager && cp usr/share/prometheus/alertmanager/*.tmpl /usr/share/prometheus/alertmanager; }; } && \
  mv usr/bin/$(@F) "$(CURDIR)/$@" || \
	  { echo "$(@F) is needed, of Prometheus 2.42 or Alertmanager 0.25, or newer: install it, or put it into bin" >&2; exit 1; }; \
	fi

# One that is installed is used. Else it is installed: unlike promtool it does not run
# without the libraries that its package depends on.
bin/chromium:
	@mkdir -p bin
	@command -v chromium >/dev/null || { \
	  echo "==> installing the Debian package chromium" && \
	  apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
	} || { echo "Chromium is needed: install it, or put it into bin" >&2; exit 1; }
	@ln -sf "$$(command -v chromium)" $@

# janus-cluster acts as kubectl under that name.
bin/kubectl: bin/janus-cluster
	@ln -sf janus-cluster $@

# Changes only if the version does, so that a build is repeated only then.
.PHONY: always
always:
bin/.version: always
	@mkdir -p bin
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@
