/* SPDX-License-Identifier: MIT */
/*
 * What every benchmark stands on: a simulated machine, a manager and values, made once for all runs
 * of a benchmark (registration of 1e5 values takes longer than measuring) and destroyed when the
 * next one starts. Only the C interface is used.
 */
#ifndef TENURE_BENCH_WORLD_HPP
#define TENURE_BENCH_WORLD_HPP

#include <benchmark/benchmark.h>
#include <tenure/tenure.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

constexpr int kThreadsMax = 4;
constexpr std::size_t kUniform = 4096; /* "uniform" draws from this many values */
constexpr std::uint64_t kBytes = 64;   /* of each value */
constexpr std::size_t kStepEvery = 64; /* manual reaper: operations between two steps */

/* Ends the program with the library's message unless `status` is TN_OK. */
void ok(tn_status status);

enum class Place { kHost, kCuda, kCudaManual };
tn_location location(Place place);

struct Setup {
    std::string benchmark; /* each has its own world: its history is its own */
    Place place = Place::kHost;
    std::size_t values =
        1000; /* registered; all resident pageable, up to kUniform also at `place` */

    bool operator==(const Setup &other) const {
        return benchmark == other.benchmark && place == other.place && values == other.values;
    }
};

class World {
  public:
    explicit World(const Setup &setup);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    tn_manager *manager() const { return manager_; }
    tn_location at() const { return location(setup_.place); }
    bool manual() const { return setup_.place == Place::kCudaManual; }
    const Setup &setup() const { return setup_; }
    /* One stream for each thread; NULL at a host location. */
    tn_stream stream(int thread) const { return streams_[static_cast<std::size_t>(thread)]; }
    /* Resident at at(). */
    const std::vector<tn_handle> &handles() const { return handles_; }
    /* Registered with a source, resident nowhere; one for each thread. */
    tn_handle absent(int thread) const { return absent_[static_cast<std::size_t>(thread)]; }
    /* Resident pageable, not at a CUDA location; one for each thread. */
    tn_handle replica(int thread) const { return replicas_[static_cast<std::size_t>(thread)]; }

  private:
    Setup setup_;
    tn_sim *sim_ = nullptr;
    tn_manager *manager_ = nullptr;
    std::array<tn_stream, kThreadsMax> streams_{};
    std::vector<tn_handle> handles_;
    std::array<tn_handle, kThreadsMax> absent_{};
    std::array<tn_handle, kThreadsMax> replicas_{};
};

/* A thread's choice of handles: always the first ones, or uniform, drawn beforehand. */
class Chooser {
  public:
    Chooser(const World &w, bool uniform, std::size_t count, int thread);
    /* The next `count` handles, one after another in memory. */
    const tn_handle *next() { return &handles_[picks_[turn_++ & (picks_.size() - 1)]]; }

  private:
    const std::vector<tn_handle> &handles_;
    std::vector<std::uint32_t> picks_;
    std::size_t turn_ = 0;
};

/* Turns the reaper of a manual manager from time to time. */
class Stepper {
  public:
    Stepper(const World &w, int thread)
        : manager_(w.manual() && thread == 0 ? w.manager() : nullptr) {}
    void operator()() {
        if (manager_ && ++turn_ % kStepEvery == 0)
            ok(tn_manager_step(manager_, nullptr));
    }

  private:
    tn_manager *manager_;
    std::size_t turn_ = 0;
};

using Body = std::function<void(benchmark::State &, const World &)>;

/* Registers NAME/PLACE/values:N/threads:T for the numbers of values and of threads given. */
void add(const std::string &name, const std::vector<Place> &places, const Body &body,
         const std::vector<int> &threads = {1, 2, 4},
         const std::vector<std::int64_t> &values = {1000, 100000});

} // namespace bench

#endif
