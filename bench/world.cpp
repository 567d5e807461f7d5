/* SPDX-License-Identifier: MIT */
#include "world.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>

namespace bench {

void ok(tn_status status) {
    if (status == TN_OK)
        return;
    std::fprintf(stderr, "tenure_bench: %s: %s\n", tn_status_name(status),
                 tn_last_error()->message);
    std::exit(1);
}

tn_location location(Place place) {
    return place == Place::kHost ? tn_location_pageable() : tn_location_cuda(0);
}

namespace {

tn_buffer *buffer(tn_driver *driver) {
    tn_buffer *made = nullptr;
    ok(tn_buffer_create(driver, tn_location_pageable(), &kBytes, 1, &made));
    auto *bytes = static_cast<unsigned char *>(tn_buffer_segment(made, 0).data);
    for (std::uint64_t i = 0; i < kBytes; i++)
        bytes[i] = static_cast<unsigned char>(i);
    return made;
}

/* The source of the values that are loaded: a fresh buffer. */
tn_status load(void *, const tn_load_request *request, tn_load_result *result) {
    result->payload = tn_buffer_payload(buffer(request->driver));
    return TN_OK;
}

tn_handle adopt(tn_manager *m, tn_driver *driver) {
    tn_handle handle;
    ok(tn_manager_adopt(m, tn_buffer_payload(buffer(driver)), tn_location_none(), TN_REPLICABLE,
                        &handle));
    return handle;
}

std::unique_ptr<World> current;

const char *name_of(Place place) {
    switch (place) {
    case Place::kHost:
        return "host";
    case Place::kCuda:
        return "cuda";
    default:
        return "cuda-manual";
    }
}

/* The threads of a run all ask for the same; those of the run before are over. */
World &world(const Setup &wanted) {
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> locked(one_at_a_time);
    if (!current || !(current->setup() == wanted)) {
        current.reset();
        current = std::make_unique<World>(wanted);
    }
    return *current;
}

} // namespace

World::World(const Setup &setup) : setup_(setup) {
    ok(tn_sim_create("dev:1 mem=1GiB", &sim_));
    const std::array<tn_budget, 2> budgets{
        {{tn_location_pageable(), 1u << 30}, {tn_location_cuda(0), 512u << 20}}};
    tn_config config = TN_CONFIG_INIT;
    config.driver = tn_sim_driver(sim_);
    config.budgets = budgets.data();
    config.budget_count = budgets.size();
    config.mode = TN_MODE_CONCURRENT;
    config.reaper = manual() ? TN_REAPER_MANUAL : TN_REAPER_THREAD;
    ok(tn_manager_create(&config, &manager_));

    const bool cuda = setup.place != Place::kHost;
    for (std::size_t i = 0; i < setup.values; i++) {
        const tn_handle handle = adopt(manager_, config.driver);
        if (i >= kUniform)
            continue;
        if (cuda)
            ok(tn_manager_ensure(manager_, handle, at(), nullptr, nullptr));
        handles_.push_back(handle);
    }
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = kBytes;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    tn_source source = TN_SOURCE_INIT;
    source.kind = TN_SOURCE_CALLBACK;
    source.load = load;
    for (std::size_t i = 0; i < kThreadsMax; i++) {
        ok(tn_manager_register_source(manager_, &spec, &source, tn_location_none(), &absent_[i]));
        replicas_[i] = adopt(manager_, config.driver);
        if (cuda)
            ok(tn_sim_stream_create(sim_, 0, 0, &streams_[i]));
    }
    ok(tn_manager_step(manager_, nullptr)); /* what building the values left behind */
}

World::~World() {
    ok(tn_manager_close(manager_, 0));
    ok(tn_manager_destroy(manager_));
    for (tn_stream stream : streams_)
        if (stream)
            ok(tn_sim_stream_destroy(sim_, stream));
    tn_sim_destroy(sim_);
}

Chooser::Chooser(const World &w, bool uniform, std::size_t count, int thread)
    : handles_(w.handles()), picks_(uniform ? 8192 : 1, 0) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::uniform_int_distribution<std::uint32_t> first(
        0, static_cast<std::uint32_t>(handles_.size() - count));
    if (uniform)
        for (std::uint32_t &pick : picks_)
            pick = first(random);
}

void add(const std::string &name, const std::vector<Place> &places, const Body &body,
         const std::vector<int> &threads, const std::vector<std::int64_t> &values) {
    for (Place place : places) {
        const std::string full = name + "/" + name_of(place);
        auto *registered = benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State &state) {
            body(state, world({full, place, static_cast<std::size_t>(state.range(0))}));
        });
        registered->ArgName("values");
        for (std::int64_t n : values)
            registered->Arg(n);
        for (int n : threads)
            registered->Threads(n);
    }
}

} // namespace bench

int main(int argc, char **argv) {
    /* The first of two equal options loses: this is our default. */
    std::string min_time = "--benchmark_min_time=0.1";
    std::vector<char *> arguments(argv, argv + argc);
    arguments.insert(arguments.begin() + 1, min_time.data());
    argc++;
    arguments.push_back(nullptr);
    argv = arguments.data();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    bench::current.reset();
    return 0;
}
