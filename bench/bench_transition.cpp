/* SPDX-License-Identifier: MIT */
/* Ensure and drop of 64-byte values: what a transition costs besides its bytes. */
#include "world.hpp"

using namespace bench;

namespace {

/* Host: loaded by a source. CUDA: copied from the host. One value for each thread. */
void ensure_drop(benchmark::State &state, const World &w) {
    const int thread = state.thread_index();
    const tn_handle handle = w.at().kind == TN_LOCATION_CUDA ? w.replica(thread) : w.absent(thread);
    Stepper step(w, thread);
    for (auto _ : state) {
        ok(tn_manager_ensure(w.manager(), handle, w.at(), w.stream(thread), nullptr));
        ok(tn_manager_drop(w.manager(), handle, w.at(), nullptr));
        step();
    }
}

/* A removal looks at every record that was ever used at once: here at 1e5 that are free again. */
void ensure_drop_after(benchmark::State &state, const World &w) {
    std::vector<tn_lease> leases(100000);
    if (state.thread_index() == 0) {
        for (tn_lease &lease : leases)
            ok(tn_manager_acquire(w.manager(), w.handles().data(), 1, w.at(), nullptr, &lease));
        for (const tn_lease &lease : leases)
            ok(tn_lease_release(&lease, 0));
    }
    ensure_drop(state, w);
}

void ensure_no_op(benchmark::State &state, const World &w) {
    Chooser chooser(w, true, 1, state.thread_index());
    for (auto _ : state)
        ok(tn_manager_ensure(w.manager(), *chooser.next(), w.at(), nullptr, nullptr));
}

const bool registered = [] {
    add("ensure+drop", {Place::kHost, Place::kCuda, Place::kCudaManual}, ensure_drop);
    add("ensure+drop/after=1e5 leases", {Place::kHost}, ensure_drop_after, {1});
    add("ensure no-op", {Place::kHost, Place::kCuda}, ensure_no_op);
    return true;
}();

} // namespace
