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

void ensure_no_op(benchmark::State &state, const World &w) {
    Chooser chooser(w, true, 1, state.thread_index());
    for (auto _ : state)
        ok(tn_manager_ensure(w.manager(), *chooser.next(), w.at(), nullptr, nullptr));
}

const bool registered = [] {
    add("ensure+drop", {Place::kHost, Place::kCuda, Place::kCudaManual}, ensure_drop);
    add("ensure no-op", {Place::kHost, Place::kCuda}, ensure_no_op);
    return true;
}();

} // namespace
