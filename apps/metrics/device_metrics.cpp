// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/device_metrics.hpp"

#include <fmt/format.h>

namespace apps {

void write(std::span<const RdmaDevice> devices, Exposition& text) {
    if (devices.empty()) return;
    const auto each_port = [&](auto visit) {
        for (const RdmaDevice& device : devices)
            for (const RdmaPort& port : device.ports)
                visit(fmt::format("{}/{}", device.name, port.number), port);
    };
    Exposition::Family active = text.gauge("netio_device_active", "1: the port is active");
    each_port([&](const std::string& name, const RdmaPort& port) {
        active.add({{"port", name}, {"link_layer", port.link_layer}, {"rate", port.rate}},
                   std::uint64_t{port.state == "ACTIVE"});
    });
    const auto sums = [&](std::string_view name, std::string_view help, Trouble trouble) {
        Exposition::Family family = text.counter(name, help);
        each_port([&](const std::string& port_name, const RdmaPort& port) {
            family.add({{"port", port_name}}, count_of(port.counters, trouble));
        });
    };
    sums("netio_device_port_errors_total", "Damaged, lost or discarded on the port's link",
         Trouble::port_error);
    sums("netio_device_receiver_not_ready_total", "Messages that found no receive buffer",
         Trouble::receiver_not_ready);
    sums("netio_device_retransmissions_total", "Packets that were sent again, or came out of order",
         Trouble::retransmission);
    Exposition::Family all =
        text.counter("netio_device_counter_total", "What the port counts, by its driver's name");
    each_port([&](const std::string& port_name, const RdmaPort& port) {
        for (const auto& [name, value] : port.counters)
            all.add({{"port", port_name}, {"counter", name}}, value);
    });
}

} // namespace apps
