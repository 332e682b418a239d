# make             build/release: tilth, libtilth and libtilth_rt (.a, .so)    make VARIANT=debug|asan|tsan
# make deps        Debian packages (needs root when one is missing)     make demo      a real model, start to end
# make test        every test            make test-ir   one folder's    make lint      floors, headers, formatting
# make bench       benchmarks            make golden    rewrite expected texts
# make install     PREFIX, DESTDIR (driver/install.mk)

VARIANT ?= release
BUILD   ?= build/$(VARIANT)
CC      ?= gcc

CFLAGS_debug   := -O0 -g3
CFLAGS_release := -O2 -g -DNDEBUG
CFLAGS_asan    := -O1 -g3 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g3 -fsanitize=thread
CFLAGS_fuzz    := -O1 -g1 -w -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer
LLVM_CONFIG    ?= llvm-config-19
LLVM_INCLUDE   := $(shell $(LLVM_CONFIG) --includedir 2>/dev/null)
CFLAGS += -std=c11 -D_GNU_SOURCE -fPIC -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
          -Wmissing-prototypes -Wswitch-enum -Werror -I. -I$(BUILD) $(CFLAGS_$(VARIANT))
LDFLAGS += -Wl,--build-id=sha1 $(filter -fsanitize=%,$(CFLAGS_$(VARIANT)))
LIBS_rt   := -lhwloc -ljansson -lm -lpthread
LLVM_LIBDIR   := $(shell $(LLVM_CONFIG) --libdir 2>/dev/null)
# LLVM is loaded when it is first needed (codegen/llvm/load_llvm.c) where its calls can be made jumps.
LIBS_llvm := $(if $(filter x86_64 aarch64,$(shell uname -m)),-ldl,-L$(LLVM_LIBDIR) -lLLVM-19)
LIBS_all  := $(LIBS_llvm) -lprotobuf-c -lsqlite3 -lxgboost -lz $(LIBS_rt)

# Folders from the bottom floor up; each is an archive of its own and links with those before it.
FOLDERS := runtime/base runtime ir frontend schedule codegen tuner driver/pipeline driver/api models driver
LIBRARY := $(filter-out models driver,$(FOLDERS))
archive  = $(BUILD)/$(subst /,_,$(1)).a
SOURCES  = $(filter-out $(addsuffix /%,$(filter $(1)/%,$(FOLDERS))) driver/examples/%,$(wildcard $(1)/*.c $(1)/*/*.c))
OBJECTS  = $(patsubst %.c,$(BUILD)/%.o,$(filter-out driver/main.c,$(call SOURCES,$(1))))

.DEFAULT_GOAL := all
.SECONDARY:
include tests/rules.mk
include driver/install.mk

all: $(BUILD)/tilth $(BUILD)/libtilth.a $(BUILD)/libtilth_rt.a

define FOLDER_RULE
$(call archive,$(1)): $(call OBJECTS,$(1))
	@rm -f $$@ && $(AR) rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call FOLDER_RULE,$(f))))

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(CFLAGS) $(if $(filter codegen/%,$<),-isystem $(LLVM_INCLUDE)) -MMD -MP -c $< -o $@

# The arithmetic of networks: loops in vectors, which -O2 makes of few. Sums keep their order: no other bits.
$(BUILD)/tuner/learn/%.o: CFLAGS += $(if $(filter release,$(VARIANT)),-O3)

# The ONNX schema: generated, not committed.
$(BUILD)/frontend/onnx.pb-c.c: frontend/onnx.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=frontend --c_out=$(BUILD)/frontend $<
$(BUILD)/frontend/onnx.pb-c.o: $(BUILD)/frontend/onnx.pb-c.c
	$(CC) $(filter-out -Werror -Wpedantic,$(CFLAGS)) -w -c $< -o $@
$(call OBJECTS,frontend) $(call OBJECTS,models) $(call OBJECTS,driver): | $(BUILD)/frontend/onnx.pb-c.c
$(call archive,frontend): $(BUILD)/frontend/onnx.pb-c.o

# What decides the code of a program, as a digest that is part of every object's key. It is asked for at every make, for a
# file may have come or gone, and written only when it is another one.
$(BUILD)/codegen/fingerprint.c: FORCE
	@mkdir -p $(@D)
	@digest=$$(codegen/fingerprint.sh $(CC)) && printf '%s\n' '#include "codegen/codegen.h"' \
	    "const char *tl_codegen_fingerprint(void) { return \"$$digest\"; }" >$@.new && \
	    if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/codegen/fingerprint.o: $(BUILD)/codegen/fingerprint.c
	@$(CC) $(CFLAGS) -MMD -MP -c $< -o $@
$(call archive,codegen): $(BUILD)/codegen/fingerprint.o

# Data that is part of the program, as arrays: the starter database, compressed, and the cost models of every search.
define EMBED_RULE
$(BUILD)/tuner/$(1)_bytes.c: tuner/data/$(2)
	@mkdir -p $$(@D)
	@{ echo '#include <stddef.h>'; \
	    echo 'extern const unsigned char tl_$(1)_bytes[]; extern const size_t tl_$(1)_size;'; \
	    echo 'const unsigned char tl_$(1)_bytes[] = {'; $(3) <$$< | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'; echo '0 };'; \
	    echo 'const size_t tl_$(1)_size = sizeof tl_$(1)_bytes - 1;'; } >$$@
$(BUILD)/tuner/$(1)_bytes.o: $(BUILD)/tuner/$(1)_bytes.c
	@$(CC) $(CFLAGS) -MMD -MP -c $$< -o $$@
$(call archive,tuner): $(BUILD)/tuner/$(1)_bytes.o
endef
$(eval $(call EMBED_RULE,starter,starter.jsonl,gzip -9nc))
$(eval $(call EMBED_RULE,default_model,cost.model,cat))
$(eval $(call EMBED_RULE,default_screener,screener.model,cat))

# The functions of LLVM that code generation calls, and the library that has them.
LLVM_CALLERS = $(filter-out %/load_llvm.o,$(call OBJECTS,codegen))
$(BUILD)/codegen/llvm/llvm_link.h: codegen/llvm/link.sh $(LLVM_CALLERS)
	@mkdir -p $(@D)
	@codegen/llvm/link.sh $(LLVM_LIBDIR) $(shell $(LLVM_CONFIG) --version 2>/dev/null) $(LLVM_CALLERS) >$@.new
	@if cmp -s $@.new $@; then touch $@; rm $@.new; else mv $@.new $@; fi
$(BUILD)/codegen/llvm/load_llvm.o: $(BUILD)/codegen/llvm/llvm_link.h

$(BUILD)/libtilth_rt.a: $(call OBJECTS,runtime/base) $(call OBJECTS,runtime)
	@rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/libtilth.a: $(foreach f,$(LIBRARY),$(call OBJECTS,$(f))) $(BUILD)/frontend/onnx.pb-c.o $(BUILD)/codegen/fingerprint.o \
    $(BUILD)/tuner/starter_bytes.o $(BUILD)/tuner/default_model_bytes.o $(BUILD)/tuner/default_screener_bytes.o
	@rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/tilth: $(BUILD)/driver/main.o $(SANITIZERS) $(call archive,driver) $(call archive,models) $(BUILD)/libtilth.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_all) -ledit

deps:
	@tests/deps.sh

# make ratio-chart: the results of make bench-peers that are kept in the tree, as the chart of README.md.
ratio-chart:
	python3 tests/peers/ratio_chart.py tests/peers/results/*.json > tests/peers/results/ratios.svg

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all deps ratio-chart test lint headers layers format golden demo bench clean
clean:
	rm -rf build
