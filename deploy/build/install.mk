# install.mk - make install, make uninstall, make deb. One table says what goes where; both walk through it.
#
#   PREFIX=/usr/local  DESTDIR=  LIBDIR=PREFIX/lib  SYSCONFDIR=/etc
#
# A file of settings in SYSCONFDIR/pawl that is there already stays, and uninstall leaves one that was changed.

BINDIR = $(PREFIX)/bin
SHAREDIR = $(PREFIX)/share
DOCDIR = $(SHAREDIR)/doc/pawl
UNITDIR = $(PREFIX)/lib/systemd/system
SYSCONFDIR := /etc
# zsh looks into the first for what the machine's packages bring, into the second for what its owner does.
ZSHDIR = $(SHAREDIR)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISHDIR = $(SHAREDIR)/fish/vendor_completions.d
BASHDIR = $(SHAREDIR)/bash-completion/completions
# Where pawl drill looks for pawl-drill, and the demos for the shim.
LABDIR = $(PREFIX)/lib/pawl

UNITS := $(wildcard deploy/systemd/*.service deploy/systemd/*.socket)
COMPLETIONS := $(addprefix $(BUILD)/completion/pawl.,bash zsh fish)
MADE_UNITS := $(UNITS:deploy/systemd/%=$(BUILD)/systemd/%)
# In examples/ as in the tree: documents link to them.
EXAMPLES := $(wildcard deploy/*.acl deploy/*.yaml deploy/*/* api/openapi.yaml api/routes.schema.json api/client/pawl.h)
EXAMPLES := $(filter-out deploy/build/% deploy/systemd/%,$(EXAMPLES))
LAB := $(filter-out tests/drill/test_%,$(wildcard tests/drill/*.py))
LAB_WORLD := $(patsubst %,tests/world/%.py,__init__ asking client contract listening ports process record redis relay schema sentinel shim signature tap trio wait world)
CLIENTS := $(wildcard $(addprefix api/clients/,go/* java/* node/* shell/* python/pyproject.toml python/pawl/*.py python/pawl/py.typed))
man_section = $(patsubst .%,%,$(suffix $(1)))

# MODE:SOURCE:WHERE, without DESTDIR; a link is link:TEXT:WHERE.
INSTALLED = \
	$(foreach one,$(PROGRAMS),755:$(one):$(BINDIR)/$(notdir $(one))) \
	$(if $(CLIENT), \
	  644:$(LIBPAWL_SO):$(LIBDIR)/$(notdir $(LIBPAWL_SO)) \
	  link:$(notdir $(LIBPAWL_SO)):$(LIBDIR)/$(LIBPAWL_SONAME) \
	  link:$(LIBPAWL_SONAME):$(LIBDIR)/libpawl.so \
	  644:$(BUILD)/libpawl.a:$(LIBDIR)/libpawl.a \
	  644:$(BUILD)/installed/pawl.pc:$(LIBDIR)/pkgconfig/pawl.pc \
	  644:api/client/pawl.h:$(PREFIX)/include/pawl.h) \
	$(foreach one,$(MAN),644:$(one):$(SHAREDIR)/man/man$(call man_section,$(one))/$(notdir $(one))) \
	$(if $(DRILL),755:tests/drill/pawl-drill:$(LABDIR)/pawl-drill 644:$(SHIM):$(LABDIR)/shim.so) \
	$(if $(DRILL),$(foreach one,$(LAB) $(LAB_WORLD),644:$(one):$(LABDIR)/$(patsubst tests/%,%,$(one:tests/drill/%=%)))) \
	644:$(BUILD)/completion/pawl.bash:$(BASHDIR)/pawl \
	644:$(BUILD)/completion/pawl.zsh:$(ZSHDIR)/_pawl \
	644:$(BUILD)/completion/pawl.fish:$(FISHDIR)/pawl.fish \
	$(foreach one,$(MADE_UNITS),644:$(one):$(UNITDIR)/$(notdir $(one))) \
	$(foreach one,$(wildcard deploy/systemd/pawl.sysusers),644:$(one):$(PREFIX)/lib/sysusers.d/pawl.conf) \
	$(foreach one,$(wildcard api/routes.schema.json api/openapi.yaml),644:$(one):$(SHAREDIR)/pawl/$(notdir $(one))) \
	$(foreach one,$(wildcard README.md CONTRIBUTING.md CHANGELOG.md LICENSE),644:$(one):$(DOCDIR)/$(one)) \
	$(foreach one,$(wildcard docs/*.md docs/decisions/*.md docs/ui/*.png),644:$(one):$(DOCDIR)/$(one)) \
	$(foreach one,$(EXAMPLES) $(CLIENTS),$(if $(filter %.sh,$(one)),755,644):$(one):$(DOCDIR)/examples/$(one)) \
	link:examples/api:$(DOCDIR)/api link:examples/deploy:$(DOCDIR)/deploy link:../docs:$(DOCDIR)/examples/docs
SETTINGS := $(notdir $(wildcard deploy/systemd/*.conf))
# Nobody else's: they go when they are empty.
OWN_DIRS = $(DOCDIR) $(SHAREDIR)/pawl $(LABDIR) $(SYSCONFDIR)/pawl

.PHONY: installable uninstall deb
installable: all $(COMPLETIONS) $(MADE_UNITS) $(if $(CLIENT),$(BUILD)/installed/pawl.pc)

$(BUILD)/installed/pawl.pc: api/client/pawl.pc.in VERSION deploy/build/install.mk $(BUILD)/libpawl.txt
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(call pc,$(PREFIX),$(LIBDIR),$(DOCDIR)) $< > $@

$(COMPLETIONS): $(BUILD)/completion/pawl.%: $(BUILD)/pawl
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(BUILD)/pawl completion $* > $@

$(MADE_UNITS): $(BUILD)/systemd/%: deploy/systemd/% $(BUILD)/libpawl.txt
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)sed -e 's|@bindir@|$(BINDIR)|' $< > $@

field = $(word $(2),$(subst :, ,$(1)))
define install_one
$(Q)$(if $(filter link,$(call field,$(1),1)),install -d $(DESTDIR)$(dir $(call field,$(1),3)) && \
	ln -sfn $(call field,$(1),2) $(DESTDIR)$(call field,$(1),3),install -D -m $(call field,$(1),1) \
	$(call field,$(1),2) $(DESTDIR)$(call field,$(1),3))

endef

install: installable
	$(foreach one,$(INSTALLED),$(call install_one,$(one)))
	$(Q)for one in $(SETTINGS); do \
	    to=$(DESTDIR)$(SYSCONFDIR)/pawl/$$one; \
	    [ -e "$$to" ] || install -D -m 644 deploy/systemd/$$one "$$to"; \
	done

uninstall: build/flags.mk
	$(Q)rm -f $(foreach one,$(INSTALLED),$(DESTDIR)$(call field,$(one),3))
	$(Q)for one in $(SETTINGS); do \
	    to=$(DESTDIR)$(SYSCONFDIR)/pawl/$$one; \
	    ! cmp -s deploy/systemd/$$one "$$to" || rm -f "$$to"; \
	done
	$(Q)for one in $(addprefix $(DESTDIR),$(OWN_DIRS)); do \
	    [ ! -d "$$one" ] || find "$$one" -depth -type d -empty -delete; \
	done

# build/deb/*.deb, built in a copy of what git knows or would know.
deb:
	@deploy/install-deps build
	deploy/build/deb.py build/deb
