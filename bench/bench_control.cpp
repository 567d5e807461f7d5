/* SPDX-License-Identifier: MIT */
/*
 * The controller and plans: uses that hit, decisions with and without evictions, the three requests
 * that make a plain search explode, and explanations, beside few and many values.
 */
#include "world.hpp"

#include <string>

using namespace bench;

namespace {

/* ---- Beside many values that have nothing to do with it ---- */

struct Control {
    tn_controller *controller = nullptr;
    tn_request *request = nullptr;
    tn_use *use = nullptr;

    Control(tn_manager *m, const std::vector<tn_requirement> &need,
            const std::vector<tn_reservation_spec> &reserve, tn_policy *policy = nullptr) {
        tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
        config.binding = TN_BIND_PLACEMENT;
        config.policy = policy;
        ok(tn_controller_create(m, &config, &controller));
        tn_request_spec spec = TN_REQUEST_SPEC_INIT;
        spec.name = "bench";
        spec.requirements = need.data();
        spec.requirement_count = need.size();
        spec.reservations = reserve.data();
        spec.reservation_count = reserve.size();
        ok(tn_request_create(&spec, &request));
    }
    ~Control() {
        tn_use_destroy(use);
        tn_request_destroy(request);
        tn_controller_destroy(controller);
    }
    Control(const Control &) = delete;
    Control &operator=(const Control &) = delete;
};

std::vector<tn_requirement> four(const World &w, std::size_t first = 0) {
    std::vector<tn_requirement> need;
    for (std::size_t i = first; i < first + 4; i++)
        need.push_back({w.handles()[i], w.at()});
    return need;
}

void decide_fits(benchmark::State &state, const World &w) {
    const Control c(w.manager(), four(w), {{w.at(), 4096, "bench"}});
    for (auto _ : state) {
        tn_decision *d;
        ok(tn_controller_decide(c.controller, c.request, &d));
        tn_decision_drop(d);
    }
}

/* Each thread has its own controller, as a worker would: what is measured is the manager. */
void use_hit(benchmark::State &state, const World &w) {
    Control c(w.manager(), four(w, 4 * static_cast<std::size_t>(state.thread_index())),
              {{w.at(), 4096, "bench"}});
    ok(tn_use_create(c.controller, c.request, nullptr, &c.use));
    for (auto _ : state) {
        ok(tn_use_enter(c.use));
        ok(tn_use_exit(c.use));
        ok(tn_use_reset(c.use));
    }
}

void explain(benchmark::State &state, const World &w) {
    const tn_action enter[] = {tn_action_ensure(w.handles()[0], w.at()),
                               tn_action_ensure(w.handles()[1], w.at())};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    spec.name = "bench";
    spec.enter = enter;
    spec.enter_count = 2;
    tn_plan *plan;
    ok(tn_plan_create(&spec, &plan));
    for (auto _ : state) {
        tn_explanation *e;
        ok(tn_manager_explain(w.manager(), plan, TN_VERSION_ANY, &e));
        tn_explanation_drop(e);
    }
    tn_plan_destroy(plan);
}

/* ---- Machines of their own ---- */

constexpr std::uint64_t kUnit = 64;

/* Values whose charges are multiples of kUnit, at locations of one's choice. */
class Machine {
  public:
    explicit Machine(const std::vector<tn_budget> &budgets) {
        ok(tn_sim_create("dev:3 mem=1GiB", &sim_));
        tn_config config = TN_CONFIG_INIT;
        config.driver = tn_sim_driver(sim_);
        config.budgets = budgets.data();
        config.budget_count = budgets.size();
        config.mode = TN_MODE_CONCURRENT;
        config.reaper = TN_REAPER_MANUAL;
        driver_ = config.driver;
        ok(tn_manager_create(&config, &manager_));
    }
    ~Machine() {
        ok(tn_manager_close(manager_, 0));
        ok(tn_manager_destroy(manager_));
        tn_sim_destroy(sim_);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    tn_manager *manager() const { return manager_; }
    /* `sole`: exclusive, only there; else with a replica at `beside`. */
    tn_handle add(std::uint64_t units, tn_location at, tn_location beside, bool sole) {
        const std::uint64_t bytes = units * kUnit;
        tn_buffer *buffer = nullptr;
        tn_handle handle;
        ok(tn_buffer_create(driver_, sole ? at : beside, &bytes, 1, &buffer));
        ok(tn_manager_adopt(manager_, tn_buffer_payload(buffer), tn_location_none(),
                            sole ? TN_EXCLUSIVE : TN_REPLICABLE, &handle));
        if (!sole && at.kind != TN_LOCATION_NONE)
            ok(tn_manager_ensure(manager_, handle, at, nullptr, nullptr));
        return handle;
    }
    void add_many(std::size_t count, tn_location at, tn_location beside) {
        for (std::size_t i = 0; i < count; i++)
            (void)add(1, at, beside, false);
    }

  private:
    tn_sim *sim_ = nullptr;
    tn_driver *driver_ = nullptr;
    tn_manager *manager_ = nullptr;
};

tn_location H() { return tn_location_pageable(); }
tn_location P() { return tn_location_pinned(); }
tn_location D(std::uint32_t i) { return tn_location_cuda(i); }

/* The same answer each time; counts the states of those that are found. */
void decide_again(benchmark::State &state, const Control &c, tn_status expected) {
    double states = 0;
    for (auto _ : state) {
        tn_decision *d = nullptr;
        if (tn_controller_decide(c.controller, c.request, &d) != expected)
            state.SkipWithError("another answer");
        tn_decision_info info = TN_DECISION_INFO_INIT;
        if (d && tn_decision_read(d, &info) == TN_OK)
            states = static_cast<double>(info.explored_states);
        tn_decision_drop(d);
    }
    state.counters["states"] = states;
}

/* k of c replicas are dropped. */
void decide_evict(benchmark::State &state) {
    const auto k = static_cast<std::uint64_t>(state.range(0));
    const auto c = static_cast<std::uint64_t>(state.range(1));
    Machine machine({{P(), c * kUnit}});
    machine.add_many(c, P(), H());
    const tn_handle any = machine.add(1, tn_location_none(), H(), false);
    const Control control(machine.manager(), {{any, H()}}, {{P(), k * kUnit, "bench"}});
    decide_again(state, control, TN_OK);
}

void decide_impossible(benchmark::State &state) {
    const auto c = static_cast<std::uint64_t>(state.range(0));
    Machine machine({{P(), c * kUnit}});
    machine.add_many(c, P(), H());
    const tn_handle any = machine.add(1, tn_location_none(), H(), false);
    const Control control(machine.manager(), {{any, H()}}, {{P(), (c + 1) * kUnit, "bench"}});
    decide_again(state, control, TN_ERR_PLAN);
}

tn_policy *tiers(tn_location from, const std::vector<tn_location> &to) {
    tn_policy *policy = nullptr;
    const tn_tier tier = {from, to.data(), to.size()};
    ok(tn_policy_tiered_lru(&tier, 1, &policy));
    return policy;
}

void decide_bad_choice(benchmark::State &state) {
    const auto n = static_cast<std::uint64_t>(state.range(0)), k = n / 2;
    Machine machine({{D(0), (n + 1) * kUnit}, {H(), 2 * kUnit}});
    (void)machine.add(1, D(0), D(0), true);
    machine.add_many(n, D(0), D(1));
    const tn_handle q = machine.add(k, tn_location_none(), D(2), false);
    const tn_handle z = machine.add(1, tn_location_none(), D(2), false);
    (void)machine.add(1, H(), H(), true);
    tn_policy *policy = tiers(D(0), {H()});
    {
        const Control control(machine.manager(), {{q, D(0)}, {z, H()}}, {}, policy);
        decide_again(state, control, TN_OK);
    }
    tn_policy_destroy(policy);
}

void decide_spill(benchmark::State &state) {
    const auto m = static_cast<std::uint64_t>(state.range(0)), k = m / 2;
    Machine machine({{D(0), k * kUnit}, {P(), m * kUnit}, {H(), kUnit}});
    machine.add_many(m, P(), D(1));
    (void)machine.add(k, D(0), D(0), true);
    const tn_handle q = machine.add(k, tn_location_none(), D(2), false);
    const tn_handle z = machine.add(1, tn_location_none(), D(2), false);
    (void)machine.add(1, H(), H(), true);
    tn_policy *policy = tiers(D(0), {P()});
    {
        const Control control(machine.manager(), {{q, D(0)}, {z, H()}}, {}, policy);
        decide_again(state, control, TN_ERR_PLAN);
    }
    tn_policy_destroy(policy);
}

const bool registered = [] {
    add("decide fits/r=4", {Place::kHost}, decide_fits, {1}, {1000, 100000, 1000000});
    add("use hit/r=4", {Place::kHost}, use_hit);
    add("explain/n=2", {Place::kHost}, explain, {1}, {1000, 100000, 1000000});
    benchmark::RegisterBenchmark("decide evict", decide_evict)
        ->ArgNames({"k", "c"})
        ->ArgsProduct({{10, 100, 1000}, {10000, 100000}});
    benchmark::RegisterBenchmark("decide impossible", decide_impossible)
        ->ArgName("c")
        ->Arg(17)
        ->Arg(1000);
    benchmark::RegisterBenchmark("decide bad choice", decide_bad_choice)
        ->ArgName("n")
        ->Arg(18)
        ->Arg(200);
    benchmark::RegisterBenchmark("decide spill", decide_spill)->ArgName("m")->Arg(10)->Arg(100);
    return true;
}();

} // namespace
