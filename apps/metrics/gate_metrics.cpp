// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/gate_metrics.hpp"

#include <utility>

namespace apps {

void write(const netio::ServerKeys::Counters& gate, Exposition& text) {
    text.counter("netio_gate_admitted_total", "Connections that were let in").add(gate.admitted);
    text.counter("netio_gate_challenged_total",
                 "First attempts, which are asked for a proof: each client makes one")
        .add(gate.challenged);
    text.counter("netio_gate_busy_total",
                 "Those with a key that were told to come later: it, or their host, has enough")
        .add(gate.busy);
    text.counter("netio_gate_refused_total", "Attempts without a proof, or without the right")
        .add(gate.refused);
    text.gauge("netio_gate_sessions", "Connections of those who were let in")
        .add(std::uint64_t{gate.sessions});
}

Collect with_gate(std::shared_ptr<const netio::ServerKeys> keys, Collect collect) {
    if (!keys) return collect;
    return [keys = std::move(keys), collect = std::move(collect)] {
        return [gate = keys->counters(), write_rest = collect()](Exposition& text) {
            write(gate, text);
            write_rest(text);
        };
    };
}

} // namespace apps
