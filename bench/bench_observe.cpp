/* SPDX-License-Identifier: MIT */
/* Snapshots beside 0 and 4096 live leases; the state version. */
#include "world.hpp"

using namespace bench;

namespace {

constexpr std::size_t kLeases = 4096;

/* Leases of the calling thread while a benchmark runs: thread 0's, for all. */
class Leases {
  public:
    Leases(const World &w, std::size_t count) : leases_(count) {
        for (std::size_t i = 0; i < count; i++)
            ok(tn_manager_acquire(w.manager(), &w.handles()[i % w.handles().size()], 1, w.at(),
                                  w.stream(0), &leases_[i]));
    }
    ~Leases() {
        for (const tn_lease &lease : leases_)
            ok(tn_lease_release(&lease, 0));
    }
    Leases(const Leases &) = delete;
    Leases &operator=(const Leases &) = delete;

  private:
    std::vector<tn_lease> leases_;
};

void snapshot(benchmark::State &state, const World &w, std::size_t leases) {
    const Leases live(w, state.thread_index() == 0 ? leases : 0);
    for (auto _ : state) {
        tn_snapshot *made;
        ok(tn_snapshot_take(w.manager(), &made));
        tn_snapshot_drop(made);
    }
}

void state_version(benchmark::State &state, const World &w) {
    for (auto _ : state) {
        std::uint64_t version;
        ok(tn_manager_state_version(w.manager(), &version));
        benchmark::DoNotOptimize(version);
    }
}

const bool registered = [] {
    for (std::size_t leases : {std::size_t{0}, kLeases})
        add("snapshot take+drop/leases=" + std::to_string(leases), {Place::kHost},
            [=](benchmark::State &state, const World &w) { snapshot(state, w, leases); });
    add("state_version", {Place::kHost}, state_version);
    return true;
}();

} // namespace
