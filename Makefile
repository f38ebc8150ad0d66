# Pawl. `make` builds, `make demo` shows, `make test` tests; CONTRIBUTING.md has the rest.
#
#   make [all]       build/pawl-lease, build/pawl-gateway, build/pawl, libpawl for programs of your own, and
#                    the manual pages (make man: build/man)
#   make run         a private Redis, the lease service and the gateway: build/pawl dev
#   make demo        the stale holder: build/pawl demo stale-holder
#   make test        every layer of tests        make lint    every rule
#   make torture     every accident, as often as an issue asked for (half an hour, and failovers for five)
#   make bench       the figures                 make mutants     every defence removed once
#   make bench-peers beside etcd, PostgreSQL and ZooKeeper
#   make bench-instructions   instructions a request, beside those of tests/bench/baseline
#   make clean
#   make install     PREFIX=/usr/local DESTDIR=   make uninstall   (deploy/build/install.mk)
#   make deb         Debian packages, in build/deb
#   make help        this
#
#   CC=gcc|clang   SANITIZE=address,undefined|thread   WERROR=1   BUILD=DIR   V=1 (show whole commands)
#
# Nothing is asked of the machine while this file is read: compiler and libraries may not be there yet. Making
# build/flags.mk installs what is missing and only then asks pkg-config; make then reads everything again.

MAKEFLAGS += --no-builtin-rules --no-builtin-variables
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

ifneq ($(filter default undefined,$(origin CC)),)
CC := gcc
endif
ifneq ($(filter default undefined,$(origin AR)),)
AR := ar
endif
SANITIZE :=
WERROR :=
V :=
Q := $(if $(V),,@)
# On a terminal what is compiled is one line that changes, elsewhere nothing; the rest is a line each.
progress = $(if $(V),,@[ ! -t 1 ] || printf '\r\033[K  %-6s %s' '$(1)' '$(2)')
say = $(if $(V),,@[ ! -t 1 ] || printf '\r\033[K'; printf '  %-6s %s\n' '$(1)' '$(2)')
FUZZ_SECONDS := 2
PREFIX := /usr/local
LIBDIR = $(PREFIX)/lib
DESTDIR :=
# What brings missing packages; a package's build must not: debian/rules says true.
INSTALL_DEPS := deploy/install-deps

VARIANT := $(if $(findstring address,$(SANITIZE)),/asan,$(if $(findstring thread,$(SANITIZE)),/tsan,$(SANITIZE:%=/%)))
BUILD := build$(or $(VARIANT),$(if $(filter clang%,$(CC)),/clang))
GEN := build/gen

VERSION := $(file <VERSION)
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wswitch-enum -Wvla $(if $(WERROR),-Werror)
# glibc refuses _FORTIFY_SOURCE without optimisation, and the sanitizers see more without it. What a compiler has of
# the rest stands in build/flags.mk; a package's build brings a lower _FORTIFY_SOURCE along.
HARDENING = $(if $(SANITIZE),,-U_FORTIFY_SOURCE $(or $(HARDENING_$(notdir $(CC))),-D_FORTIFY_SOURCE=2)) \
	-fstack-protector-strong -fPIE
CODE := $(if $(SANITIZE),-O1 -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer,-O2) -g
CPPFLAGS_ALL = -D_GNU_SOURCE -DPAWL_VERSION='"$(VERSION)"' -I. -I$(GEN) $(DEPS_CFLAGS) $(CPPFLAGS)
CFLAGS_ALL = -std=c11 $(WARNINGS) $(CODE) $(HARDENING) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)

# -- what there is

SHARED := $(wildcard shared/*/*.c)
LEASE := $(wildcard lease/*.c lease/*/*.c)
GATEWAY := $(wildcard gateway/*.c gateway/*/*.c)
CLIENT := $(wildcard api/client/*.c)
CLI := $(CLIENT) $(wildcard api/cli/*.c api/cli/*/*.c)
UNIT := $(wildcard tests/unit/test_*.c tests/component/test_*.c)
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
BENCH := $(wildcard tests/bench/*.c)
SCRIPTS := $(wildcard $(addsuffix .lua,shared/member/scripts/* shared/member/scripts/lib/* lease/scripts/* lease/scripts/lib/* \
	lease/quorum/scripts/* lease/quorum/scripts/lib/* \
	gateway/scripts/* gateway/scripts/lib/* api/cli/scripts/*))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
SHARED_O := $(call object,$(SHARED) $(GEN)/openapi.c $(GEN)/scripts.c $(GEN)/ui.c)
LEASE_O := $(call object,$(LEASE))
GATEWAY_O := $(call object,$(GATEWAY))
TEXTS := $(wildcard api/cli/help.txt api/cli/completion/*)
CLI_O := $(call object,$(CLI) $(if $(TEXTS),$(GEN)/texts.c))
UNIT_O := $(call object,$(UNIT))
FUZZ_O := $(call object,$(FUZZ))
BENCH_O := $(call object,$(BENCH))
LIBPAWL_O := $(patsubst %.c,$(BUILD)/pic/%.o,$(CLIENT) $(wildcard shared/text/json.c shared/text/utf8.c shared/text/read_all.c \
	shared/http/answer.c shared/tls/tls.c))
OBJECTS := $(SHARED_O) $(LEASE_O) $(GATEWAY_O) $(CLI_O) $(UNIT_O) $(FUZZ_O) $(BENCH_O)
PRODUCT_O := $(filter-out $(BUILD)/obj/$(GEN)/%,$(SHARED_O) $(LEASE_O) $(GATEWAY_O) $(CLI_O))
GEN_H := $(addprefix $(GEN)/,openapi.h scripts.h ui.h)

PROGRAMS := $(BUILD)/pawl-lease $(BUILD)/pawl-gateway $(BUILD)/pawl
DRILL := $(if $(wildcard tests/drill/pawl-drill),$(BUILD)/pawl-drill)
# The number behind .so changes when programs that use it must be built anew.
LIBPAWL_SONAME := libpawl.so.0
LIBPAWL_SO := $(BUILD)/libpawl.so.$(VERSION)
LIBPAWL := $(if $(CLIENT),$(LIBPAWL_SO) $(BUILD)/libpawl.a $(BUILD)/include/pawl.h $(BUILD)/pawl.pc)
MAN := $(patsubst docs/man/%.md,$(BUILD)/man/%,$(wildcard docs/man/*.md))
SHIM := $(if $(wildcard tests/torture/shim.c),$(BUILD)/torture/shim.so)
BENCH_GATEWAY := $(BUILD)/bench/pawl-gateway
UNIT_PROGRAMS := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(UNIT)))
FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ))

.PHONY: all help man objects clang tidy analyzer unit shim address fuzz run demo test torture mutants lint bench bench-peers bench-instructions install clean FORCE
all: $(PROGRAMS) $(DRILL) $(LIBPAWL) $(SHIM) man
help:
	@sed -n '3,/^#$$/s/^# \{0,1\}//p; /^#   CC=/s/^# //p' Makefile
man: $(MAN)
objects: $(OBJECTS) $(SHIM)
clang: $(OBJECTS:%.o=%.clang)
tidy: $(PRODUCT_O:%.o=%.tidy)
ANALYZED = $(patsubst $(BUILD)/obj/%.o,%.c,$(PRODUCT_O))
analyzer: $(ANALYZED:%.c=$(BUILD)/obj/%.analyzer)
unit: $(UNIT_PROGRAMS)
shim: $(SHIM)

# -- what the machine has

ifneq ($(filter-out clean help,$(or $(MAKECMDGOALS),all)),)
include build/flags.mk

# $(call keep,FILE,TEXT): FILE holds TEXT, and is new only when TEXT is.
differ = $(subst <$(strip $(1))>,,<$(strip $(2))>)$(subst <$(strip $(2))>,,<$(strip $(1))>)
keep = $(if $(call differ,$(file <$(1)),$(2)),$(shell mkdir -p $(dir $(1)))$(file >$(1),$(2)))

# Other flags, and files that are gone, are changes too.
ifdef DEPS_CFLAGS
$(call keep,$(BUILD)/flags.txt,$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(DEPS_LIBS))
$(call keep,$(BUILD)/shared.txt,$(SHARED))
$(call keep,$(BUILD)/lease.txt,$(LEASE))
$(call keep,$(BUILD)/gateway.txt,$(GATEWAY))
$(call keep,$(BUILD)/cli.txt,$(CLI))
$(call keep,$(BUILD)/libpawl.txt,$(LIBPAWL_O) $(PREFIX) $(LIBDIR))
$(call keep,$(GEN)/scripts.txt,$(SCRIPTS))
endif
endif

HARDENING_WANTED := -D_FORTIFY_SOURCE=3 -fstack-clash-protection -fcf-protection
LIBRARIES := hiredis libmicrohttpd libcjson libuv libsodium gnutls

build/flags.mk: Makefile deploy/install-deps
	$(INSTALL_DEPS) build
	@mkdir -p build
	@set -e; \
	cflags=$$(pkg-config --cflags $(LIBRARIES)); \
	libs=$$(pkg-config --libs $(LIBRARIES)); \
	{ echo "DEPS_CFLAGS := -pthread $$cflags"; echo "DEPS_LIBS := $$libs -pthread"; } > $@.new; \
	for cc in $(sort gcc clang $(notdir $(CC))); do for flag in $(HARDENING_WANTED); do \
	  echo '#include <string.h>' | $$cc -O2 -Werror $$flag -x c -c -o /dev/null - 2>/dev/null && \
	    echo "HARDENING_$$cc += $$flag" >> $@.new || :; \
	done; done
	@mv $@.new $@

# -- made from other things

SCRIPTS_MADE_OF := $(SCRIPTS) $(wildcard deploy/build/library*.txt) deploy/build/scripts.py $(GEN)/scripts.txt
$(GEN)/scripts.h $(GEN)/scripts.c &: $(SCRIPTS_MADE_OF)
	$(call say,GEN,$@)
	$(Q)deploy/build/scripts.py embed $(GEN)/scripts

$(GEN)/openapi.h $(GEN)/openapi.c $(GEN)/openapi.json &: api/openapi.yaml deploy/build/openapi.py
	$(call say,GEN,$@)
	$(Q)deploy/build/openapi.py api/openapi.yaml $(GEN)/openapi

UI := $(wildcard api/ui/*)
$(GEN)/ui.h $(GEN)/ui.c &: $(UI) deploy/build/ui.py
	$(call say,GEN,$@)
	$(Q)deploy/build/ui.py api/ui $(GEN)/ui

$(GEN)/texts.c: $(TEXTS) deploy/build/texts.py
	$(call say,GEN,$@)
	$(Q)deploy/build/texts.py api/cli $@

# -- compiled

# The headers that are made must be there before the first look at what includes them; after that -MMD knows.
# Warnings stay beside the object: make lint reads them there, and need not compile again what is built.
$(OBJECTS): $(BUILD)/obj/%.o: %.c $(BUILD)/flags.txt | $(GEN_H)
	@mkdir -p $(@D)
	$(call progress,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $< 2> $(@:.o=.warnings); \
		status=$$?; cat $(@:.o=.warnings) >&2; exit $$status

# For the library: what it does not show is hidden.
$(LIBPAWL_O): $(BUILD)/pic/%.o: %.c $(BUILD)/flags.txt
	@mkdir -p $(@D)
	$(call progress,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(OBJECTS) $(LIBPAWL_O))

# For make lint. Again only when the object is new, which knows the headers. The analyzer takes 30 times as long as all
# else that clang-tidy does. NonNullParamChecker, to which "NULL only when len is 0" cannot be told, is wrong too often.
ANALYZER := clang-analyzer-core.*, -clang-analyzer-core.NonNullParamChecker, clang-analyzer-unix.*,
ANALYZER += clang-analyzer-security.insecureAPI.rand

$(OBJECTS:%.o=%.clang): $(BUILD)/obj/%.clang: $(BUILD)/obj/%.o
	$(call progress,CLANG,$*.c)
	$(Q)clang -fsyntax-only -Werror -std=c11 $(WARNINGS) $(CPPFLAGS_ALL) $*.c
	@touch $@

$(PRODUCT_O:%.o=%.tidy): $(BUILD)/obj/%.tidy: $(BUILD)/obj/%.o .clang-tidy
	$(call progress,TIDY,$*.c)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $*.c -- -std=c11 $(CPPFLAGS_ALL)
	@touch $@

$(PRODUCT_O:%.o=%.analyzer): $(BUILD)/obj/%.analyzer: $(BUILD)/obj/%.o
	$(call progress,CHECK,$*.c)
	$(Q)clang-tidy --quiet --checks='-*, $(ANALYZER)' --warnings-as-errors='*' $*.c -- -std=c11 $(CPPFLAGS_ALL)
	@touch $@

define archive
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
endef

$(BUILD)/libshared.a: $(SHARED_O) $(BUILD)/shared.txt
	$(archive)

# For the unit and component tests: everything of the rooms that is not a main program.
$(BUILD)/librooms.a: $(filter-out %/main.o,$(LEASE_O) $(GATEWAY_O) $(CLI_O)) \
		$(BUILD)/lease.txt $(BUILD)/gateway.txt $(BUILD)/cli.txt
	$(archive)

define link
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DEPS_LIBS)
endef

$(BUILD)/pawl-lease: $(LEASE_O) $(BUILD)/libshared.a $(BUILD)/lease.txt
	$(link)
$(BUILD)/pawl-gateway: $(GATEWAY_O) $(BUILD)/libshared.a $(BUILD)/gateway.txt
	$(link)
$(BUILD)/pawl: $(CLI_O) $(BUILD)/libshared.a $(BUILD)/cli.txt
	$(link)
# A sanitizer's own names come from the program. It stays loaded: a lookup that was given up may still run in it when
# everything is closed. The links are what ldconfig and libpawl-dev would make.
$(LIBPAWL_SO): $(LIBPAWL_O) api/client/libpawl.map $(BUILD)/libpawl.txt
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(filter-out -pie,$(LDFLAGS_ALL)) -shared -fPIC -Wl,-soname,$(LIBPAWL_SONAME) \
		-Wl,--version-script,api/client/libpawl.map $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,nodelete \
		-o $@ $(filter %.o,$^) $(DEPS_LIBS)
	@ln -sf $(@F) $(BUILD)/$(LIBPAWL_SONAME)
	@ln -sf $(LIBPAWL_SONAME) $(BUILD)/libpawl.so

# One object, whose hidden names are local: a program may have a json_parse() of its own.
$(BUILD)/libpawl.a: $(LIBPAWL_O) $(BUILD)/libpawl.txt
	$(call say,AR,$@)
	$(Q)$(CC) -nostdlib -r -o $(BUILD)/pic/pawl.o $(filter %.o,$^)
	$(Q)objcopy --localize-hidden $(BUILD)/pic/pawl.o
	@rm -f $@
	$(Q)$(AR) rcs $@ $(BUILD)/pic/pawl.o

# For programs that are built here: PKG_CONFIG_PATH=build. What is installed has another (install.mk).
$(BUILD)/include/pawl.h: api/client/pawl.h
	@mkdir -p $(@D)
	@ln -sf $(abspath $<) $@

# $(call pc,PREFIX,LIBDIR,DOCDIR,RPATH)
comma := ,
pc = sed -e 's|@prefix@|$(1)|' -e 's|@libdir@|$(2)|' -e 's|@docdir@|$(3)|' -e 's|@rpath@|$(4)|' \
	-e 's|@version@|$(VERSION)|'

$(BUILD)/pawl.pc: api/client/pawl.pc.in VERSION Makefile $(BUILD)/libpawl.txt
	$(call say,GEN,$@)
	$(Q)$(call pc,$(abspath $(BUILD)),$(abspath $(BUILD)),$(CURDIR)/docs, -Wl$(comma)-rpath$(comma)$${libdir}) \
		$< > $@

$(BENCH_GATEWAY): $(filter-out %/gateway/forward/safe.o,$(GATEWAY_O)) $(call object,tests/bench/safe_any.c) \
		$(BUILD)/libshared.a $(BUILD)/gateway.txt
	$(link)
$(UNIT_PROGRAMS): $(BUILD)/librooms.a $(BUILD)/libshared.a
$(filter $(UNIT:tests/unit/%.c=$(BUILD)/tests/%),$(UNIT_PROGRAMS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o
	$(link)
$(filter $(UNIT:tests/component/%.c=$(BUILD)/tests/%),$(UNIT_PROGRAMS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/component/%.o
	$(link)
$(FUZZ_PROGRAMS): $(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/librooms.a $(BUILD)/libshared.a
	$(link) -fsanitize=fuzzer

# Preloaded into redis-server, too, which knows no sanitizer: without their flags.
$(BUILD)/torture/shim.so: tests/torture/shim.c api/cli/demo/shim.h $(BUILD)/flags.txt
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=c11 $(WARNINGS) -O2 -g -fPIC -shared -o $@ $<

# Where pawl drill looks for it. What is installed is another (install.mk).
$(BUILD)/pawl-drill: tests/drill/pawl-drill
	@mkdir -p $(@D)
	@ln -sfr $< $@

# What is listed there is asked of the programs, or stands in docs/.
$(MAN): $(BUILD)/man/%: docs/man/%.md $(PROGRAMS) $(DRILL) deploy/build/man.py docs/contract.md docs/routes.md VERSION
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)deploy/build/man.py --programs $(BUILD) --version $(VERSION) $< $@

# The parsers as libFuzzer wants them: everything compiled by clang and watched.
FUZZ_MAKE := BUILD=build/fuzzing CC=clang SANITIZE=fuzzer-no-link,address,undefined
ifeq ($(findstring fuzzer,$(SANITIZE)),)
# Everything else in the same way, for the tests under the address sanitizer: most of it is compiled already.
address:
	@$(MAKE) --no-print-directory $(FUZZ_MAKE) all unit shim
fuzz:
	@$(MAKE) --no-print-directory $(FUZZ_MAKE) fuzz
else
fuzz: $(FUZZ_PROGRAMS)
endif

# -- done with it

run: all
	@deploy/install-deps build
	$(BUILD)/pawl dev

demo: all
	@deploy/install-deps build
	$(BUILD)/pawl demo stale-holder

test: all
	@deploy/install-deps test
	@$(MAKE) --no-print-directory unit shim
	@$(MAKE) --no-print-directory fuzz
	tests/run --build $(BUILD) --fuzz-seconds $(FUZZ_SECONDS) $(TURN:%=--turn %)

torture: all shim
	@deploy/install-deps test
	tests/run --build $(BUILD) --layers torture,failovers --rounds full --at-once 1

mutants:
	@deploy/install-deps test
	tests/mutants/run

lint: build/flags.mk
	@deploy/install-deps test
	tests/lint/run $(LINT_PART:%=--part %)

# The commit that comparisons are with (tests/bench/baseline/README.md).
BASELINE := $(file <tests/bench/baseline/COMMIT)
BASELINE_MADE := build/baseline/$(BASELINE)/build/pawl-gateway
bench: all $(BENCH_GATEWAY) $(BASELINE_MADE)
	@deploy/install-deps test
	PAWL_BUILD=$(BUILD) tests/bench/run

# Beside etcd, PostgreSQL and ZooKeeper, which it installs.
bench-peers: all $(BENCH_GATEWAY) $(BASELINE_MADE)
	@deploy/install-deps test
	PAWL_BUILD=$(BUILD) tests/bench/run --only peers --output $(BUILD)/bench-peers.json

$(BASELINE_MADE):
	@mkdir -p build/baseline/$(BASELINE)
	git archive $(BASELINE) | tar -x -C build/baseline/$(BASELINE)
	MAKEFLAGS= $(MAKE) --no-print-directory -C build/baseline/$(BASELINE) all

bench-instructions: all $(BASELINE_MADE)
	@deploy/install-deps test
	tests/bench/instructions --build $(BUILD) --baseline build/baseline/$(BASELINE)/build --access --output build/instructions.json

include deploy/build/install.mk

clean:
	rm -rf build
