# The commands of this repository. Everything they make lies under target/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.PHONY: help setup demo test lint unit drivers drivers-newest apps differential regress regress-newest regress-libpq regress-mariadb torture soak build release optimised servers-up servers-down bench-relay bench-builds bench-code bench-share bench-100k bench-mixed bench-tpcc bench-memory bench-storm bench-login bench-30k bench-connections bench-beside bench-large bench-quiet bench-state bench-once sim mutants models fuzz panics coverage sanitize deb rpm tarball test-packages test-image test-chart

help: ## This list
	@echo "Weir. On a Debian machine with Rust, nothing else has to be prepared:"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  DEMO_SECONDS=60 make demo     ends by itself"
	@echo "  make drivers SUITES='psycopg pgx'     runs those suites only"

demo: ## PostgreSQL and MariaDB, Weir before both, 20,000 clients at work: see it live
	@tests/setup demo
	cargo build --release --bin weir
	@target/release/weir demo

test: ## All that CI runs: format, lints, unit tests, real servers with real drivers
	@WEIR_APPS=ci tests/setup
	@WEIR_APPS=ci tests/run all

setup: ## Installs what the tests need and is missing (by sudo where needed, saying so)
	@tests/setup

build: ## The debug build
	cargo build --bin weir

release: ## The release build
	cargo build --release --bin weir

optimised: ## The release build with profile data, in target/optimised: up to a tenth less CPU; takes two builds and some load
	@packaging/optimise

deb: ## The package for Debian and Ubuntu, in target/packages (PROFILE=checked or optimised: of that build)
	@packaging/build deb

rpm: ## The package for Fedora, RHEL and SUSE, in target/packages (PROFILE=checked or optimised: of that build)
	@packaging/build rpm

tarball: ## The program with its manual pages, completions and examples, in target/packages (PROFILE likewise)
	@packaging/build tar

test-packages: deb rpm tarball ## The packages: the .deb is installed in a Debian root of its own, run, upgraded and purged, the others in a directory (as root)
	@packaging/test-deb
	@packaging/test-rpm
	@packaging/test-tarball

test-image: ## The image: its last stage in a Debian root of its own, run as an engine runs it (as root; WEIR_BIN=program, else PROFILE)
	@packaging/test-image

test-chart: ## The Helm chart: linted, rendered with several values, its objects and its weir.toml checked (needs helm)
	@packaging/test-chart

lint: ## Format and lints
	@tests/run lint

unit: ## The Rust tests
	@tests/run unit

drivers: ## Real servers, real drivers, direct and through Weir
	@tests/setup
	@tests/run drivers $(SUITES)

drivers-newest: ## The same on the newest PostgreSQL and MariaDB of Debian unstable, which are fetched and not installed
	@tests/setup
	@tests/servers/get-newest target/newest
	@WEIR_TEST_NEWEST=$(CURDIR)/target/newest tests/run drivers $(SUITES)

apps: ## All frameworks as applications use them, direct and through Weir with 2 servers and 50 clients (WEIR_APPS_CLIENTS=N)
	@WEIR_APPS=all tests/setup
	@WEIR_APPS=all tests/run drivers --jobs 1 apps_pg apps_my

differential: ## Random sessions direct and through Weir, compared (DB=postgres|mysql|mariadb, SECONDS or SESSIONS=N, SEED, JOBS, CLIENTS=8, BESIDE_DDL=yes)
	@tests/setup
	cargo build --bin weir --profile checked
	@WEIR_TEST_DATA=$${WEIR_TEST_DATA-/dev/shm} tests/servers/servers up
	@WEIR_BIN=target/checked/weir tests/differential/differential $(DB) $(if $(SESSIONS),--sessions $(SESSIONS),$(if $(filter environment command%,$(origin SECONDS)),--seconds $(SECONDS))) \
	  $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS)) $(if $(CLIENTS),--clients $(CLIENTS)) \
	  $(if $(BESIDE_DDL),--beside-ddl --avoid FLUSH)

regress: ## PostgreSQL's own regression tests, direct and through Weir (MODE=transaction|session, SERVERS=N, ARGS=--parallel|--contrib)
	@tests/setup
	cargo build --bin weir --profile checked
	@tests/regress/regress $(if $(MODE),--mode $(MODE)) $(if $(SERVERS),--servers $(SERVERS)) $(ARGS)

regress-newest: ## The same with the newest PostgreSQL of Debian unstable, which is fetched and not installed
	@tests/setup
	@tests/servers/get-newest target/newest
	cargo build --bin weir --profile checked
	@WEIR_TEST_NEWEST=$(CURDIR)/target/newest tests/regress/regress $(if $(MODE),--mode $(MODE)) $(if $(SERVERS),--servers $(SERVERS)) $(ARGS)

regress-libpq: ## PostgreSQL's tests of isolation, pipeline mode and ecpg, direct and through Weir (MODE=transaction|session)
	@tests/setup
	cargo build --bin weir --profile checked
	@tests/regress/libpq $(if $(MODE),--mode $(MODE)) --servers 1 2
	@tests/regress/ecpg $(if $(MODE),--mode $(MODE)) --servers 2
	@tests/regress/isolation $(if $(MODE),--mode $(MODE))

regress-mariadb: ## MariaDB's own test suite, direct and through Weir (MODE=transaction|session, SERVERS=N)
	@tests/setup
	cargo build --bin weir --profile checked
	@tests/regress/regress-mariadb $(if $(MODE),--mode $(MODE)) $(if $(SERVERS),--servers $(SERVERS))

torture: ## Faults at real sockets and a ledger of acknowledged writes (SECONDS for each database, DB=postgres|mysql|mariadb, SEED, CLIENTS)
	@tests/setup
	cargo build --bin weir --profile checked
	@WEIR_BIN=$(CURDIR)/target/checked/weir tests/torture/torture $(DB) $(if $(filter environment command%,$(origin SECONDS)),--seconds $(SECONDS)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(CLIENTS),--clients $(CLIENTS))

soak: release ## Endurance: one Weir before all databases under load and faults for hours, and a report with curves (HOURS=N or SECONDS=N, DB, SEED)
	@tests/setup
	@WEIR_TEST_DATA=$${WEIR_TEST_DATA-/dev/shm} WEIR_BIN=$(CURDIR)/target/release/weir tests/soak/soak $(DB) $(if $(HOURS),--hours $(HOURS)) \
	  $(if $(filter environment command%,$(origin SECONDS)),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

servers-up: ## Starts throw-away PostgreSQL, MariaDB, MySQL and PgBouncer and says where
	@tests/setup
	@tests/servers/servers up
	@tests/servers/servers env

servers-down: ## Stops them and removes their data
	@tests/servers/servers down

bench-relay: release ## CPU per query, Weir beside PgBouncer and HAProxy, as a table
	@tests/setup
	@MODES=simple,extended,prepared benches/relay

bench-builds: release ## CPU per query of another build of Weir (OLD=its program) and of this one, in turns
	@tests/setup
	@benches/builds $(OLD)

bench-code: release ## What functions, views and triggers cost behind Weir, and reading 5,000 of them
	@tests/setup
	@benches/code

bench-share: release ## Point selects: 8 servers and pool_size = auto beside PgBouncer and the databases alone
	@tests/setup
	@SECONDS=3 SETTLE=30 ROUNDS=3 benches/share 64 1000 4000

bench-100k: release ## The same with up to 100,000 clients executing, on all three databases
	@tests/setup
	@SECONDS=3 SETTLE=20 benches/share 1000 10000 25000 50000 75000 100000

bench-mixed: release ## Quick statements beside slow ones, with and without shared servers
	@tests/setup
	@benches/mixed

bench-tpcc: release ## A read-write load with clients and pools of several sizes
	@tests/setup
	@benches/tpcc

bench-memory: release ## Bytes of memory an idle client costs, and what idle clients cost the busy ones
	@tests/setup
	@benches/memory

bench-storm: release ## 20,000 clients that leave and come back whenever a query takes over a second
	@tests/setup
	@benches/storm

bench-login: release ## What logins cost: in clear, with TLS, by Unix sockets; Weir beside PgBouncer and direct
	@tests/setup
	@benches/login $(PARTS)

bench-30k: release ## 30,000 PostgreSQL clients on one process under a limit of 20,000 open files
	@tests/setup
	@benches/30k

bench-connections: release ## 100,000 executing connections from one load generator under a limit of 20,000 open files; where sysbench stops
	@tests/setup
	@benches/connections

bench-beside: release ## weir bench beside sysbench and pgbench: queries a second and CPU a query, as a table
	@tests/setup
	@benches/beside

bench-quiet: release ## Latency of few clients, and of 500 that ask at times, on quiet and on busy cores (OLD=another build's program)
	@tests/setup
	@benches/quiet $(OLD)

bench-state: release ## What 1,000 clients with settings, or with idle transactions, cost the pool they share
	@tests/setup
	@benches/state

bench-once: release ## A stampede on one row, with share_answers and without
	@tests/setup
	@benches/once

bench-large: release ## A row of 512 MB and a COPY of 1 GB each way: how much Weir's memory grows
	@tests/setup
	@benches/large

sim: ## The simulator, 100,000 seeds (SEEDS=N for another number)
	cargo run --release -p weir-sim -- --seeds $(or $(SEEDS),100000)

models: ## What threads share, in very many orders of their steps (MODELS_ORDERS=N)
	@MODELS_ORDERS=$${MODELS_ORDERS-1000000} cargo test --release --manifest-path models/Cargo.toml --target-dir target/models

panics: ## 100 panics of Weir's threads under 1,000 clients on each database (PANICS=N)
	@tests/setup
	cargo build --bin weir
	@tests/panics/panics

coverage: ## Which lines the tests run: the Rust tests and the suites on real servers
	@tests/setup
	@tests/coverage

sanitize: ## AddressSanitizer on all unsafe code (a nightly toolchain)
	@tests/sanitize

mutants: ## Weir broken in one place at a time: does a test say so (NAMES='...' for some of them)
	@tests/mutants/mutants $(NAMES)

fuzz: ## Every decoder against arbitrary bytes, ten minutes each (FUZZ_SECONDS=N for another time)
	@fuzz/run
