// SPDX-License-Identifier: Apache-2.0

// The probe of `netio doctor` and its server (`--serve`), each with a peer that sends arbitrary
// frames, in some inputs after both sides are authenticated.

#include "apps/doctor/doctor.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/fuzz/stranger.hpp"

#include <memory>
#include <optional>
#include <string>

namespace netio::fuzz::probe_peer_fuzz {
namespace {

const Target probe{
    "probe_peer", [](Bytes bytes) {
        Input input{bytes};
        Scene scene;
        Stranger stranger{scene, Service::path_test};
        std::optional<apps::ProbeServer> server;
        std::optional<apps::PathProbe> client;
        const bool serves = input.flag();
        std::optional<access::Protection> level;
        if (input.flag()) level = stranger.hold_key_of_site(input);
        if (serves) {
            apps::ProbeServer::Options options{.address = Scene::address()};
            if (level) {
                options.keys = std::make_shared<ServerKeys>(
                    scene.loop(), ServerKeys::Options{.file = site().site()});
            }
            server.emplace(scene.transport(), options);
            stranger.connect(server->endpoints().front().address, input);
        } else {
            apps::PathProbe::Options options{.round_trip_count = 4, .transfer_bytes = 4096};
            if (level) {
                static const std::string file = site().client(7);
                options.key = std::make_shared<ClientKey>(
                    ClientKey::Options{.file = file, .protection = *level});
            }
            client.emplace(scene.transport(), stranger.listen(input), options, [] {});
            scene.run(std::chrono::milliseconds{1});
        }
        while (!input.empty())
            stranger.act(input);
        scene.run(std::chrono::seconds{1});
    }};

} // namespace
} // namespace netio::fuzz::probe_peer_fuzz
