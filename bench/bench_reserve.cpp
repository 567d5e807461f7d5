/* SPDX-License-Identifier: MIT */
/* Reserve and release at a location with a budget: the one shared line a lifetime may write. */
#include "world.hpp"

using namespace bench;

namespace {

void reserve(benchmark::State &state, const World &w) {
    for (auto _ : state) {
        tn_reservation made;
        ok(tn_manager_reserve(w.manager(), w.at(), 4096, "bench", &made));
        ok(tn_reservation_release(&made));
    }
}

const bool registered = [] {
    add("reserve+release", {Place::kHost, Place::kCuda}, reserve);
    return true;
}();

} // namespace
