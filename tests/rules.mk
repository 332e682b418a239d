# Tests: tests/FOLDER/test_*.c each become a program linked with FOLDER's archive and those of the floors below.
# A test program is a cmocka group; it prints what ran, failed and was skipped.
TEST_FOLDERS := base runtime ir frontend schedule codegen tuner models driver structural
FLOORS_base     := runtime/base
FLOORS_runtime  := runtime $(FLOORS_base)
FLOORS_ir       := ir $(FLOORS_base)
FLOORS_frontend := frontend $(FLOORS_ir)
FLOORS_schedule := schedule $(FLOORS_ir)
FLOORS_codegen  := codegen schedule ir $(FLOORS_runtime)
FLOORS_tuner    := tuner codegen schedule frontend ir $(FLOORS_runtime)
FLOORS_models   := models frontend $(FLOORS_ir)
FLOORS_driver   := driver models driver/api driver/pipeline $(FLOORS_tuner)
FLOORS_structural := tests/structural $(FLOORS_driver)
TEST_LIBS_base     := -lm -lpthread
TEST_LIBS_runtime  := $(LIBS_rt)
TEST_LIBS_ir       := -lm -lpthread
TEST_LIBS_frontend := -lprotobuf-c -lm -lpthread
TEST_LIBS_schedule := -lm -lpthread
TEST_LIBS_codegen  := $(LIBS_all)
TEST_LIBS_tuner    := $(LIBS_all)
TEST_LIBS_models   := -lprotobuf-c -lm -lpthread
TEST_LIBS_driver   := $(LIBS_all) -ledit
TEST_LIBS_structural := $(TEST_LIBS_driver)

TESTS_of = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/$(1)/test_*.c))
SUPPORT := $(BUILD)/tests_support.a
$(SUPPORT): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
	@rm -f $@ && $(AR) rcs $@ $^

# A sanitized build: what its sanitizer is told is linked into every program, and everything may take longer.
IS_SANITIZED := $(filter -fsanitize=%,$(CFLAGS_$(VARIANT)))
SANITIZERS   := $(if $(IS_SANITIZED),$(BUILD)/tests/sanitizers.o)
TEST_SECONDS ?= $(if $(IS_SANITIZED),3600,600)
export TEST_SECONDS CC

define TEST_RULE
$(BUILD)/tests/$(1)/test_%: $(BUILD)/tests/$(1)/test_%.o $(SANITIZERS) $(SUPPORT) $(foreach f,$(FLOORS_$(1)),$(call archive,$(f)))
	$(CC) $(LDFLAGS) -o $$@ $$^ $(TEST_LIBS_$(1)) -lcmocka
run-$(1): $(call TESTS_of,$(1))
	@tests/run.sh $$^
test-$(1): run-$(1)
.PHONY: test-$(1) run-$(1)
endef
$(foreach f,$(TEST_FOLDERS),$(eval $(call TEST_RULE,$(f))))
test-driver: $(BUILD)/tilth

# Random graphs (tests/structural/README.md): make fuzz-graphs COUNT=10000 SEED=1 JOBS=1 [FAMILY=conv].
STRUCTURAL := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/graphs.c $(wildcard tests/structural/test_*.c),$(wildcard tests/structural/*.c)))
$(call archive,tests/structural): $(STRUCTURAL)
	@rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/tests/structural/graphs: $(BUILD)/tests/structural/graphs.o $(SANITIZERS) $(foreach f,$(FLOORS_structural),$(call archive,$(f)))
	$(CC) $(LDFLAGS) -o $@ $^ $(TEST_LIBS_driver)
fuzz-graphs: $(BUILD)/tests/structural/graphs $(BUILD)/tilth
	@TILTH=$(BUILD)/tilth $< --seed $(or $(SEED),1) --count $(or $(COUNT),10000) --jobs $(or $(JOBS),$(shell nproc)) \
		$(if $(FAMILY),--family $(FAMILY))

# make check-batch: networks rewritten for a batch give each sample what it has alone (tests/peers/batch.py).
check-batch:
	@venv=$$(tests/peers/setup.sh) && "$$venv/bin/python" tests/peers/batch.py --check
.PHONY: check-batch

# make check-graphs COUNT=300 SEED=1: the same graphs in ONNX's checker, its reference and ONNX Runtime (tests/peers/README.md).
check-graphs: $(BUILD)/tests/structural/graphs
	@venv=$$(tests/peers/setup.sh) && "$$venv/bin/python" tests/peers/graphs.py $< --seed $(or $(SEED),1) \
		--count $(or $(COUNT),300) $(if $(FAMILY),--family $(FAMILY)) $(CHECK)
.PHONY: fuzz-graphs check-graphs

# A CUDA driver without a GPU, for all tests that need a driver (tests/gpu/fake_cuda.h).
FAKE_CUDA := $(BUILD)/tests/gpu/libcuda_fake.so
FAKE_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/gpu/fake_cuda/*.c))
$(FAKE_OBJECTS): CFLAGS += -fvisibility=hidden
$(FAKE_CUDA): $(FAKE_OBJECTS)
	$(CC) $(LDFLAGS) -shared -o $@ $^ -lpthread
EMULATED_CUDA := $(BUILD)/tests/gpu/libcuda_emulated.so
$(EMULATED_CUDA): $(BUILD)/tests/gpu/emulated_driver.o $(FAKE_OBJECTS) $(foreach f,$(FLOORS_codegen),$(call archive,$(f)))
	$(CC) $(LDFLAGS) -shared -Wl,--exclude-libs,ALL -o $@ $^ $(LIBS_all)
$(foreach f,runtime tuner driver,$(call TESTS_of,$(f))): | $(FAKE_CUDA)

# Other people's libraries on a GPU, for the comparison of gpu-check (tests/gpu/peers); and such libraries without a GPU, under
# the names of what they stand in for.
GPU_PEERS := $(BUILD)/tests/gpu/peers/peers
$(GPU_PEERS): $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/fake_libraries.c,$(wildcard tests/gpu/peers/*.c))) $(SANITIZERS) $(foreach f,$(FLOORS_runtime),$(call archive,$(f)))
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_rt)
FAKE_PEERS := $(foreach f,libcublas.so.12 libcublasLt.so.12 libcudnn.so.9,$(BUILD)/tests/gpu/peers/fake/$(f))
$(firstword $(FAKE_PEERS)): tests/gpu/peers/fake_libraries.c $(wildcard tests/gpu/peers/*.h) runtime/cuda/cuda_abi.h $(call archive,runtime/base)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -shared -Wl,--exclude-libs,ALL -o $@ $(filter %.c %.a,$^) -ldl -lm
$(wordlist 2,9,$(FAKE_PEERS)): $(firstword $(FAKE_PEERS))
	@ln -sf $(<F) $@
$(BUILD)/tests/driver/test_gpu_check: | $(GPU_PEERS) $(FAKE_PEERS)
$(call TESTS_of,tuner) $(call TESTS_of,driver): | $(EMULATED_CUDA)

# make gpu-check: everything on the GPU of this machine, in at most 8 minutes, as lines of JSON (tests/gpu/check.sh); MODELS,
# MINUTES and JSON=FILE say what, how long and where to. make gpu-bundle: tilth and all that it needs as one archive. make
# gpu-rehearsal: gpu-check, small, on a driver that emulates a GPU (tests/gpu/rehearse.sh); BUNDLE=1: the archive's.
GPU_GROUP := $(BUILD)/tests/codegen/test_gpu_group
GPU_FILL  := $(if $(wildcard ../shared/models/fill.c),$(BUILD)/tests/gpu/fill)
$(BUILD)/tests/gpu/fill: ../shared/models/fill.c
	$(CC) -O2 -ffp-contract=off -o $@ $<
gpu-check: $(BUILD)/tilth $(GPU_GROUP) $(GPU_PEERS) $(GPU_FILL)
	@tests/gpu/check.sh $< -o "$(or $(JSON),build/gpu-check.jsonl)" -m $(or $(MINUTES),8) -k models/kernels/gpu -g $(GPU_GROUP) \
		-p $(GPU_PEERS) -y tests/gpu/peers/networks.py $(if $(GPU_FILL),-n ../shared/models -f $(GPU_FILL)) $(MODELS)
gpu-bundle: $(BUILD)/tilth $(GPU_GROUP) $(GPU_PEERS) $(GPU_FILL)
	@tests/gpu/bundle.sh $(BUILD) build/tilth-gpu.tar.xz
gpu-rehearsal: $(BUILD)/tilth $(GPU_GROUP) $(GPU_PEERS) $(FAKE_PEERS) $(EMULATED_CUDA) $(if $(BUNDLE),gpu-bundle)
	@tests/gpu/rehearse.sh $(EMULATED_CUDA) $(dir $(firstword $(FAKE_PEERS))) \
		$(if $(BUNDLE),build/tilth-gpu.tar.xz,$< $(GPU_PEERS) $(GPU_GROUP))
.PHONY: gpu-check gpu-bundle gpu-rehearsal

# A tilth whose code generator has other sources: the test of two builds that share a cache runs it.
$(BUILD)/tests/driver/other_tilth: $(BUILD)/driver/main.o $(BUILD)/tests/driver/other_fingerprint.o $(SANITIZERS) $(call archive,driver) $(call archive,models) $(BUILD)/libtilth.a
	$(CC) $(LDFLAGS) -Wl,--wrap=tl_codegen_fingerprint -o $@ $^ $(LIBS_all) -ledit
$(BUILD)/tests/driver/test_cli_cache: | $(BUILD)/tests/driver/other_tilth

# make bench: the kernels of models/kernels, each beside its default schedule and this machine's peak. With HISTORY=FILE
# they and MODELS (files or names of the zoo) are measured again, on THREADS, and appended to that file with the commit and
# the CPU; the change against the last entries of this CPU is shown.
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/tests/bench/timed_kernel.o $(foreach f,$(FLOORS_driver),$(call archive,$(f)))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(TEST_LIBS_driver)
$(BUILD)/bench/kernels $(BUILD)/bench/peer_kernels: $(BUILD)/tests/bench/options.o
bench: $(BUILD)/bench/kernels $(BUILD)/bench/replay $(BUILD)/tilth
	$<
	$(BUILD)/bench/replay
	@$(if $(HISTORY),THREADS=$(THREADS) tests/bench/history.sh $(BUILD)/tilth "$(HISTORY)" $(MODELS))

# make bench-scaling: time and memory to compile chains and wide nodes against their length, up to LONGEST (10,000).
$(BUILD)/bench/scaling: $(BUILD)/tests/bench/program.o $(BUILD)/tests/support/long_models.o
bench-scaling: $(BUILD)/bench/scaling
	@$< $(LONGEST)
.PHONY: bench-scaling

# WITHOUT_AVX512=1 hides AVX-512 from bench-peers, bench-company, bench-kernels and bench-cliffs, and from their peers
# (tests/bench/without_avx512.c): what they have for AVX2, measured on a machine that has more.
$(BUILD)/bench/without_avx512.so: tests/bench/without_avx512.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared $(LDFLAGS) -o $@ $<
HIDING := $(if $(WITHOUT_AVX512),$(BUILD)/bench/without_avx512.so)
HIDDEN := $(if $(HIDING),LD_PRELOAD=$(abspath $(HIDING)))
bench-peers bench-company bench-kernels bench-cliffs: | $(HIDING)

# make bench-memory: the most that `tilth run` has resident, cold and from the cache, beside what it may (tests/bench/memory.c);
# MODELS: files, or networks of ../shared/models (all of them).
$(BUILD)/bench/memory: $(BUILD)/tests/bench/program.o
bench-memory: MODELS ?= $(SHARED_MODELS)
bench-memory: $(BUILD)/bench/memory $(BUILD)/tilth
	@tests/models.sh --make build/models $(filter-out %.onnx,$(MODELS))
	@$< $(foreach m,$(MODELS),$(call model_file,$m))
.PHONY: bench-memory

# make bench-gpu-roofline: what default schedules should reach on an H200, told from their code (tests/bench/gpu_roofline.c); no GPU
# is needed, but ptxas. POINTS=N: what tuning could make of each product, of so many points.

$(BUILD)/bench/gpu_roofline: $(BUILD)/tests/gpu/peers/peer_attention.o
bench-gpu-roofline: $(BUILD)/bench/gpu_roofline
	@$< $(or $(ARCH),sm_90a) $(POINTS)
.PHONY: bench-gpu-roofline

# make bench-cliffs: the kernels of random networks in percent of what bounds them, the worst first (tests/bench/cliffs.c); on
# THREADS, for TARGET; SEEDS are numbers of networks.
$(BUILD)/bench/cliffs: $(BUILD)/tests/bench/options.o $(BUILD)/tests/bench/random_network.o
bench-cliffs: $(BUILD)/bench/cliffs
	@$(HIDDEN) $< --threads $(or $(THREADS),1) $(if $(TARGET),--target $(TARGET)) $(if $(JSON),--json) $(SEEDS) $(if $(JSON),> "$(JSON)")
.PHONY: bench-cliffs

# make bench-kernels: our kernels beside oneDNN's and OpenBLAS's (tests/bench/peer_kernels.c), which are installed first;
# on THREADS, for TARGET; KERNELS are names or their beginnings.
PEER_OBJECTS := $(patsubst %,$(BUILD)/tests/bench/%.o,peer_dnnl peer_openblas peer_case our_kernel)
$(BUILD)/bench/peer_kernels: $(PEER_OBJECTS)
$(BUILD)/bench/peer_kernels: TEST_LIBS_driver += -ldnnl -lgomp -ldl
bench-kernels:
	@tests/deps.sh libdnnl-dev libopenblas-dev
	@$(MAKE) --no-print-directory $(BUILD)/bench/peer_kernels
	@$(HIDDEN) $(BUILD)/bench/peer_kernels --threads $(or $(THREADS),1) $(if $(TARGET),--target $(TARGET)) \
		$(if $(JSON),--json) $(KERNELS) $(if $(JSON),> "$(JSON)")
.PHONY: bench-kernels

# make bench-policies: search policies beside each other on the heaviest kernels of MODELS (names of the zoo or files):
# curves, a table and a picture; STUDY holds options of tests/bench/policy_study.c ("--policies auto,evolution --trials 1000
# --db FILE --seconds 50"); interrupted, it goes on where it was.
STUDY_PARTS := subjects jobs trials winners curves
$(BUILD)/bench/policy_study $(BUILD)/bench/same_again: $(BUILD)/tests/bench/program.o
$(BUILD)/bench/policy_study: $(STUDY_PARTS:%=$(BUILD)/tests/bench/policy_%.o)
model_file = $(if $(filter %.onnx %.tk,$1),$1,build/models/$1/$1.onnx)
bench-policies: MODELS ?= resnet50 mobilenet_v2 bert_base_128
bench-policies: $(BUILD)/bench/policy_study $(BUILD)/tilth
	@tests/models.sh --make build/models $(MODELS)
	@$< $(STUDY) $(foreach m,$(MODELS),$(call model_file,$m))
.PHONY: bench-policies

# make bench-cost-model: what each part of our cost model is worth, and boosted trees and TenSet's network on the same data
# (tests/bench/cost_study.py), judged on HELD_OUT; STUDY adds options ("--seeds 1 --epochs 6 --only mlp trees"). Everything as it is
# takes three hours of a core; interrupted, it goes on.
bench-cost-model: HELD_OUT ?= resnet50 resnext50 mobilenet_v2 googlenet efficientnet_b0 bert_base_128 bert_tiny_128
bench-cost-model: $(BUILD)/tilth
	@tests/models.sh --make build/models $(HELD_OUT)
	@tests/bench/cost_study.py $< $(or $(DATA),tuner/data/zen5-v4.tld) --folder build/cost-study $(STUDY) \
	    --hold-out $(foreach m,$(HELD_OUT),$(call model_file,$m))
.PHONY: bench-cost-model

# make bench-headroom: auto with cost models beside blank auto on the kernels of tuner/data/headroom, whose best known schedules beat
# the default ones: few is what the models have, all what the blank search has. The models are trained on the data sets of
# tuner/data first, without these kernels (half an hour of a core, once). STUDY adds options of tests/bench/policy_study.c; --space plain
# studies the other space.
HEADROOM := $(wildcard tuner/data/headroom/*.tk)
HEADROOM_MODELS := build/headroom/cost.model build/headroom/screener.model
build/headroom/screener.model: HEADROOM_TYPE := screener
$(HEADROOM_MODELS): | $(BUILD)/tilth
	@mkdir -p $(@D)
	$(BUILD)/tilth cost-model train $(filter-out %-again.tld,$(wildcard tuner/data/*.tld)) $(HEADROOM:%=--hold-out %) \
	    -m $(or $(HEADROOM_TYPE),attention) -o $@
bench-headroom: $(BUILD)/bench/policy_study $(BUILD)/tilth $(HEADROOM_MODELS)
	@$< --policies auto:100,auto+model:100 --few 40 --tasks $(words $(HEADROOM)) --seeds 3 --db headroom.db \
	    $(HEADROOM_MODELS:%=--cost-model %) $(STUDY) $(HEADROOM)
.PHONY: bench-headroom

# make bench-transfer: which part of what a search finds transfer finds, from FROM's kernels to TO's, in the plain space; STUDY holds
# options of tests/bench/transfer_study.py ("--top 10 --trials 1000 --seeds 3 --afresh 3").
bench-transfer: FROM ?= resnet50 vgg16
bench-transfer: TO ?= resnet18
bench-transfer: $(BUILD)/tilth
	@tests/models.sh --make build/models $(FROM) $(TO)
	@tests/bench/transfer_study.py $< --from $(foreach m,$(FROM),$(call model_file,$m)) \
	    --to $(foreach m,$(TO),$(call model_file,$m)) $(STUDY)
.PHONY: bench-transfer

# make bench-luck: the same schedule again and again beside itself, for the heaviest kernels of MODELS: what luck gains.
bench-luck: MODELS ?= mobilenet_v2
bench-luck: $(BUILD)/bench/same_again $(BUILD)/tilth
	@tests/models.sh --make build/models $(MODELS)
	@$< $(LUCK) $(foreach m,$(MODELS),$(call model_file,$m))
.PHONY: bench-luck

# make bench-peers: MODELS beside ONNX Runtime and OpenVINO on THREADS (tests/peers/README.md); `trained`: the seventeen calls
# of ../shared/models/trained.py; `second`: the second list, which PyTorch writes. Only this needs Python and PyPI. BATCH=4
# rewrites networks of batch 1 for four samples in each run; JSON=FILE and SVG=FILE keep the result; COMPARE="--rounds 3 ..." adds
# options of compare.py.
EXPORT_PACKAGES := torch torchvision transformers timm onnxscript
bench-peers: $(BUILD)/tilth
	@tests/models.sh --make build/models $(or $(MODELS),bert_tiny_128)
	@venv=$$(PACKAGES="$(if $(filter second,$(MODELS)),$(EXPORT_PACKAGES))" tests/peers/setup.sh) && \
		names=$$("$$venv/bin/python" tests/peers/networks.py build/models $< $(or $(MODELS),bert_tiny_128)) && \
		$(HIDDEN) "$$venv/bin/python" tests/peers/compare.py $< $$names \
		--threads $(or $(THREADS),1) --batch $(or $(BATCH),1) $(if $(JSON),--json "$(JSON)") $(if $(SVG),--svg "$(SVG)") $(COMPARE)
.PHONY: bench-peers

# make bench-company: how much slower MODELS are on THREADS (2) beside a process that takes half of one core in slices of 4 ms; with
# the peers where their environment is. JSON=FILE keeps the result; COMPANY="--rounds 5 --against OTHER_TILTH" adds options of
# tests/peers/company.py.
bench-company: MODELS ?= resnet18 mobilenet_v2 bert_tiny_128
bench-company: $(BUILD)/bench/company $(BUILD)/tilth
	@tests/models.sh --make build/models $(MODELS)
	@python=$${XDG_CACHE_HOME:-$$HOME/.cache}/tilth-peers/bin/python; [ -x "$$python" ] || python=python3; \
		$(HIDDEN) "$$python" tests/peers/company.py $(BUILD)/tilth $< $(MODELS) --threads $(or $(THREADS),2) \
		$(if $(JSON),--json "$(JSON)") $(COMPANY)
.PHONY: bench-company

# make accuracy: errors against f64 of tilth and its peers on the networks of ../shared/models and on eight that are exported
# (tests/peers/README.md), or on MODELS. Only this and bench-peers need Python and PyPI. JSON=FILE keeps the result;
# ACCURACY="--sides relaxed,strict ..." adds options of accuracy.py. One of its sides is a tilth that takes no Winograd.
$(BUILD)/bench/without_winograd: $(BUILD)/driver/main.o $(BUILD)/tests/bench/without_winograd.o $(call archive,driver) $(call archive,models) $(BUILD)/libtilth.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--wrap=tl_choose_lowering -o $@ $^ $(LIBS_all) -ledit
SHARED_MODELS = $(patsubst ../shared/models/%/,%,$(dir $(wildcard ../shared/models/*/*.weights.txt)))
accuracy: $(BUILD)/tilth $(BUILD)/bench/without_winograd
	@tests/models.sh --make build/models $(or $(MODELS),$(SHARED_MODELS))
	@venv=$$(PACKAGES="$(EXPORT_PACKAGES)" tests/peers/setup.sh) && \
		"$$venv/bin/python" tests/peers/export.py build/models --if-known $(MODELS) && \
		"$$venv/bin/python" tests/peers/accuracy.py $< --without-winograd $(BUILD)/bench/without_winograd \
		$(if $(JSON),--json "$(JSON)") $(ACCURACY) $(or $(MODELS),$(SHARED_MODELS) $$("$$venv/bin/python" tests/peers/export.py --list))
.PHONY: accuracy

# Targets of a fuzzer, tests/fuzz/fuzz_NAME.c, each with a corpus (tests/fuzz/README.md). replay_NAME goes through the corpus:
# make test does that. make fuzz: libFuzzer, SECONDS (30) for each of TARGET (all), new inputs below build/corpus; clang and
# its compiler-rt are needed for it (apt-get install clang libclang-rt-dev). Without clang a plain mutator takes its place.
FUZZ_TARGETS  := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_ARCHIVES  = $(foreach f,$(FLOORS_tuner),$(call archive,$(f)))
FUZZ_CC       ?= $(firstword $(shell command -v clang-19 || command -v clang))
REPLAYS        = $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/replay_%)
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/fuzz.o $(BUILD)/tests/fuzz/replay.o $(SANITIZERS) $(FUZZ_ARCHIVES)
	$(CC) $(LDFLAGS) -o $@ $^ $(TEST_LIBS_tuner)
$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/fuzz.o $(SANITIZERS) $(FUZZ_ARCHIVES)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(TEST_LIBS_tuner)
fuzz:
ifeq ($(FUZZ_CC),)
	@$(MAKE) --no-print-directory VARIANT=asan run-fuzz
else
	@$(MAKE) --no-print-directory VARIANT=fuzz CC=$(FUZZ_CC) run-fuzz
endif
run-fuzz: $(foreach t,$(or $(TARGET),$(FUZZ_TARGETS)),$(BUILD)/$(if $(filter fuzz,$(VARIANT)),fuzz_$t,tests/fuzz/replay_$t))
	@tests/fuzz/run.sh $(or $(SECONDS),30) $^
.PHONY: fuzz run-fuzz

# make test: installs what is missing, builds, runs everything, in at most ten minutes on two cores.
ALL_TESTS = $(foreach f,$(TEST_FOLDERS),$(call TESTS_of,$(f)))
test:
	@tests/deps.sh
	@$(MAKE) --no-print-directory -j$(shell nproc) run-tests
run-tests: all $(ALL_TESTS) $(REPLAYS)
	@status=0; tests/circles.sh $(BUILD) || status=1; tests/run.sh $(ALL_TESTS) $(REPLAYS) || status=1; \
	tests/conformance.sh $(BUILD)/tilth || status=1; \
	tests/models.sh --small $(BUILD)/tilth build/models || status=1; \
	for isa in $(SMALLER_ISAS); do \
		tests/models.sh --target $$isa $(BUILD)/tilth build/models bert_tiny_128 squeezenet1_1 || status=1; \
	done; exit $$status
build-tests: all $(ALL_TESTS)
# make test-sanitized: the tests of what reads files, texts and command lines, in a build with the address and undefined
# behaviour sanitizers; in five minutes on two cores. `make VARIANT=asan test` and `make VARIANT=tsan test` are for everything.
READING := $(wildcard $(patsubst %,tests/%.c,base/test_* runtime/test_* ir/test_* frontend/test_* \
	tuner/test_record tuner/test_store* driver/test_*hostile* driver/test_*cli* driver/test_compile driver/test_db \
	driver/test_report driver/test_api))
READING_TESTS = $(READING:tests/%.c=$(BUILD)/tests/%)
test-sanitized:
	@tests/deps.sh
	@$(MAKE) --no-print-directory -j$(shell nproc) VARIANT=asan run-reading
run-reading: $(BUILD)/tilth $(READING_TESTS) $(REPLAYS)
	@tests/run.sh $(READING_TESTS) $(REPLAYS)
.PHONY: test-sanitized run-reading
# make conformance: the ONNX test cases of ../shared, of which those that tests/conformance lists have to pass; WRITE=1: lists
# what passes now.
conformance: $(BUILD)/tilth
	@tests/conformance.sh $(if $(WRITE),--write) $<
.PHONY: conformance
# make test-models: the tests of models/, then the networks of ../shared/models, the large ones too (3 GB under build/models);
# for this machine, and on x86-64 for the smaller ones that it contains.
SMALLER_ISAS = $(if $(shell grep -m1 -w avx2 /proc/cpuinfo),x86-64-v3) $(if $(shell grep -m1 -w sse4_2 /proc/cpuinfo),x86-64-v2)
test-models: networks
networks: $(BUILD)/tilth | run-models
	@status=0; for isa in cpu $(SMALLER_ISAS); do \
		tests/models.sh --target $$isa $(BUILD)/tilth build/models || status=1; \
	done; exit $$status
# make same-objects BASE=/path/to/older/tilth: whether that build compiles the networks of ../shared/models, or MODELS, to the
# same objects as this one (3 GB under build/models). A change that shapes no code says so with it.
same-objects: $(BUILD)/tilth
	@tests/same_objects.sh "$(BASE)" $< build/models $(MODELS)
.PHONY: same-objects
# make test-long: what random tests find in hours, from another seed each day: TL_COUNT random schedules (20,000), each
# interpreted and (from other seeds) compiled, TL_SHAPES (1,000) lowerings at random shapes, and TL_POINTS (500) points of
# each small kernel's space; TL_GRAPHS (100,000) random graphs. What fails is reduced below build/failures.
LONG_TESTS = $(BUILD)/tests/schedule/test_meaning $(BUILD)/tests/codegen/test_meaning \
	$(BUILD)/tests/driver/test_kernel_shapes $(BUILD)/tests/tuner/test_space_points $(BUILD)/tests/structural/test_graphs
test-long: $(LONG_TESTS)
	@export TL_SEED=$(or $(TL_SEED),$(shell date +%Y%m%d)00000) TL_COUNT=$(or $(TL_COUNT),20000) \
		TL_SHAPES=$(or $(TL_SHAPES),1000) TL_POINTS=$(or $(TL_POINTS),500) TEST_SECONDS=36000 \
		TL_GRAPHS=$(or $(TL_GRAPHS),100000) TL_JOBS=$(shell nproc); \
	tests/run.sh $^
.PHONY: test-long
# make mutants: the checks of schedule/ and codegen/ broken one at a time (tests/mutants/*.txt), each against TL_COUNT
# (2,000) random schedules. MUTANTS="split rfactor": those whose names begin so.
mutants:
	@tests/mutants/run.sh $(MUTANTS)
.PHONY: mutants
golden: $(ALL_TESTS)
	@GOLDEN_UPDATE=1 tests/run.sh $(ALL_TESTS)
# make circles: whether files call each other in a circle, but for those that belong together (make test asks, too).
circles: all
	@tests/circles.sh $(BUILD)
.PHONY: circles
lint: | $(BUILD)/frontend/onnx.pb-c.c
	@tests/lint.sh $(CC) $(filter-out -MMD -MP,$(CFLAGS)) -isystem $(LLVM_INCLUDE)
format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i
.PHONY: run-tests build-tests networks

# make demo: the main job on a real network; installs what is missing first.
demo:
	@tests/deps.sh
	@$(MAKE) --no-print-directory -j$(shell nproc) all
	@tests/demo.sh $(BUILD)/tilth build/demo
