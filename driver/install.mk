# The shared libraries, and installation. Included by the Makefile.
# make install     PREFIX=/usr/local (LIBDIR, INCLUDEDIR, ... follow it), DESTDIR= for packagers      make uninstall

PREFIX       ?= /usr/local
BINDIR       ?= $(PREFIX)/bin
LIBDIR       ?= $(PREFIX)/lib
INCLUDEDIR   ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
DOCDIR       ?= $(PREFIX)/share/doc/tilth
MANDIR       ?= $(PREFIX)/share/man
BASHDIR      ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR       ?= $(PREFIX)/share/zsh/site-functions
INSTALL      ?= install
PKG_CONFIG   ?= pkg-config

# The first number of the soname goes up when a program linked with an older library no longer runs.
ABI     := 0
VERSION := $(shell sed -n 's/^\#define TILTH_VERSION "\(.*\)"$$/\1/p' runtime/api/tilth_rt.h)

LIBS_libtilth    := $(LIBS_all)
LIBS_libtilth_rt := $(LIBS_rt)
ABOUT_libtilth    := Tensor compiler: compiles ONNX models and runs them
ABOUT_libtilth_rt := Runs models that libtilth has compiled, without the compiler
API_libtilth_rt := $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/api/*.c))
API_libtilth    := $(patsubst %.c,$(BUILD)/%.o,$(wildcard driver/api/*.c)) $(API_libtilth_rt)
MAP_libtilth    := driver/api/tilth.map
MAP_libtilth_rt := runtime/api/tilth_rt.map
SHARED := libtilth libtilth_rt

# The API's objects, and what they need of the archive; only what the map names is visible. A sanitizer's symbols are
# the program's, so only without one can undefined symbols be refused.
define SHARED_RULE
$(BUILD)/$(1).so.$(VERSION): $(API_$(1)) $(BUILD)/$(1).a $(MAP_$(1))
	$(CC) $(LDFLAGS) -shared -Wl,-soname,$(1).so.$(ABI) -Wl,--version-script,$(MAP_$(1)) -Wl,--as-needed \
	    $(if $(filter -fsanitize=%,$(CFLAGS_$(VARIANT))),,-Wl,-z,defs) -Wl,-z,relro,-z,now \
	    -o $$@ $(API_$(1)) $(BUILD)/$(1).a $(LIBS_$(1))
$(BUILD)/$(1).so: $(BUILD)/$(1).so.$(VERSION)
	@ln -sf $$(<F) $(BUILD)/$(1).so.$(ABI) && ln -sf $(1).so.$(ABI) $$@
$(BUILD)/$(1).pc: driver/install.mk runtime/api/tilth_rt.h FORCE
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)%=$$$${prefix}%)' \
	    'includedir=$(INCLUDEDIR:$(PREFIX)%=$$$${prefix}%)' '' 'Name: $(1)' 'Description: $(ABOUT_$(1))' \
	    'Version: $(VERSION)' 'Cflags: -I$$$${includedir}' 'Libs: -L$$$${libdir} -l$(1:lib%=%)' \
	    'Libs.private: $(strip $(LIBS_$(1)))' >$$@
endef
$(foreach l,$(SHARED),$(eval $(call SHARED_RULE,$(l))))

all: $(SHARED:%=$(BUILD)/%.so)
# Tests that install the libraries need them built first.
$(BUILD)/tests/driver/test_install: | $(BUILD)/tilth $(SHARED:%=$(BUILD)/%.so)

TO := $(DESTDIR)
install: all $(SHARED:%=$(BUILD)/%.pc)
	@$(INSTALL) -d $(TO)$(BINDIR) $(TO)$(LIBDIR) $(TO)$(INCLUDEDIR) $(TO)$(PKGCONFIGDIR) $(TO)$(DOCDIR)/examples
	@$(INSTALL) -d $(TO)$(MANDIR)/man1 $(TO)$(BASHDIR) $(TO)$(ZSHDIR)
	@$(INSTALL) -m 755 $(BUILD)/tilth $(TO)$(BINDIR)
	@$(BUILD)/tilth man >$(BUILD)/tilth.1 && $(INSTALL) -m 644 $(BUILD)/tilth.1 $(TO)$(MANDIR)/man1/tilth.1
	@$(BUILD)/tilth complete bash >$(BUILD)/complete && $(INSTALL) -m 644 $(BUILD)/complete $(TO)$(BASHDIR)/tilth
	@$(BUILD)/tilth complete zsh >$(BUILD)/complete && $(INSTALL) -m 644 $(BUILD)/complete $(TO)$(ZSHDIR)/_tilth
	@for lib in $(SHARED); do \
	    $(INSTALL) -m 644 $(BUILD)/$$lib.a $(BUILD)/$$lib.so.$(VERSION) $(TO)$(LIBDIR) && \
	    ln -sf $$lib.so.$(VERSION) $(TO)$(LIBDIR)/$$lib.so.$(ABI) && \
	    ln -sf $$lib.so.$(ABI) $(TO)$(LIBDIR)/$$lib.so && \
	    $(INSTALL) -m 644 $(BUILD)/$$lib.pc $(TO)$(PKGCONFIGDIR) || exit 1; \
	done
	@$(INSTALL) -m 644 runtime/api/tilth_rt.h $(TO)$(INCLUDEDIR)
	@sed 's,"runtime/api/tilth_rt.h",<tilth_rt.h>,' driver/api/tilth.h >$(TO)$(INCLUDEDIR)/tilth.h
	@chmod 644 $(TO)$(INCLUDEDIR)/tilth.h
	@$(INSTALL) -m 644 driver/examples/*.c $(TO)$(DOCDIR)/examples
	@echo "installed tilth $(VERSION) in $(TO)$(PREFIX)"
uninstall:
	rm -f $(TO)$(BINDIR)/tilth $(TO)$(INCLUDEDIR)/tilth.h $(TO)$(INCLUDEDIR)/tilth_rt.h
	rm -f $(foreach l,$(SHARED),$(TO)$(LIBDIR)/$(l).a $(TO)$(LIBDIR)/$(l).so* $(TO)$(PKGCONFIGDIR)/$(l).pc)
	rm -f $(TO)$(MANDIR)/man1/tilth.1 $(TO)$(BASHDIR)/tilth $(TO)$(ZSHDIR)/_tilth
	rm -rf $(TO)$(DOCDIR)
FORCE:
.PHONY: install uninstall FORCE
