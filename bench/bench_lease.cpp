/* SPDX-License-Identifier: MIT */
/* Acquire and release, hold and release: of 1 and 8 values, always the same or uniform. */
#include "world.hpp"

using namespace bench;

namespace {

void lease(benchmark::State &state, const World &w, bool uniform, std::size_t count) {
    const tn_stream stream = w.stream(state.thread_index());
    Chooser chooser(w, uniform, count, state.thread_index());
    Stepper step(w, state.thread_index());
    for (auto _ : state) {
        tn_lease made;
        ok(tn_manager_acquire(w.manager(), chooser.next(), count, w.at(), stream, &made));
        ok(tn_lease_release(&made, 0));
        step();
    }
}

void hold(benchmark::State &state, const World &w, bool uniform, std::size_t count) {
    Chooser chooser(w, uniform, count, state.thread_index());
    for (auto _ : state) {
        tn_hold made;
        ok(tn_manager_hold(w.manager(), chooser.next(), count, w.at(), &made));
        ok(tn_hold_release(&made));
    }
}

const bool registered = [] {
    using Function = void (*)(benchmark::State &, const World &, bool, std::size_t);
    auto both = [](const std::string &name, Function body, const std::vector<Place> &places) {
        for (std::size_t count : {1, 8})
            for (bool uniform : {false, true})
                add(name + std::to_string(count) + (uniform ? "/uniform" : "/hot"), places,
                    [=](benchmark::State &state, const World &w) {
                        body(state, w, uniform, count);
                    });
    };
    both("acquire+release/n=", lease, {Place::kHost, Place::kCuda, Place::kCudaManual});
    both("hold+release/n=", hold, {Place::kHost});
    return true;
}();

} // namespace
