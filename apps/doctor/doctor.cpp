// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/doctor.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/base/version.hpp"
#include "netio/base/wire.hpp"
#include "netio/loop/signal_watch.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

namespace wire = netio::wire;

constexpr std::uint8_t echo_kind = netio::first_service_kind;
constexpr std::uint8_t data_kind = netio::first_service_kind + 1;
constexpr std::uint8_t sum_kind = netio::first_service_kind + 2;

constexpr std::size_t frame_bytes = std::size_t{1} << 20U;
constexpr std::size_t echo_bytes = 8;
// All zeros: authentication needs the same size for every service.
constexpr std::size_t service_bytes = 4;

netio::SessionOptions session_options() {
    return {.receive_buffer_bytes = frame_bytes, .receive_count = 8, .send_count = 8};
}

netio::Hello hello() {
    netio::Hello hello{.service = netio::Service::path_test, .service_data = {}};
    hello.service_data.size = service_bytes;
    return hello;
}

std::byte pattern_at(std::size_t position) {
    return static_cast<std::byte>(position * 13 + position / 251);
}

double microseconds(netio::Duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
}

} // namespace

// --- answering ------------------------------------------------------------------------------

ProbeServer::ProbeServer(netio::Transport& transport, const Options& options)
    : loop_{transport.loop()}, places_{options.peer_limit_count}, idle_limit_{options.idle_limit},
      listener_{transport,
                {.service = netio::Service::path_test,
                 .listen = {options.address},
                 .allow_remote_anonymous = options.allow_remote_anonymous,
                 .service_bytes = service_bytes,
                 .keys = options.keys},
                static_cast<netio::SessionListener::Handler&>(*this)} {}

ProbeServer::~ProbeServer() = default;

void ProbeServer::on_incoming(netio::IncomingSession& incoming) {
    Peer peer;
    peer.answer = std::make_unique<netio::RegisteredBuffer>(frame_bytes);
    const std::string address = incoming.peer_address();
    if (!places_.enter(address).empty()) return incoming.reject({.code = netio::RejectCode::full});
    try {
        peer.session = incoming.accept(hello(), session_options(), *this);
    } catch (...) {
        places_.leave(address);
        throw;
    }
    netio::Session* const session = peer.session.get();
    Peer& kept = peers_.emplace(session, std::move(peer)).first->second;
    kept.idle = std::make_unique<IdleWatch>(
        loop_, idle_limit_, [&kept] { return kept.frames; },
        [session] {
            session->fail(netio::CloseReason::failed, "no request within the idle limit");
        });
    kept.idle->start();
}

void ProbeServer::on_open(netio::Session& session) {
    if (at_visit) at_visit(session.peer_address() + " is connected");
}

void ProbeServer::on_frame(netio::Session& session, const netio::IncomingFrame& frame) {
    Peer& peer = peers_.at(&session);
    ++peer.frames;
    if (frame.kind == data_kind) {
        peer.bytes += frame.body.size();
        return;
    }
    std::array<std::byte, sizeof peer.bytes> sum;
    wire::store(sum.data(), peer.bytes);
    netio::Status status = netio::Status::again;
    if (frame.kind == echo_kind) status = answer(session, peer, echo_kind, frame.body);
    if (frame.kind == sum_kind) status = answer(session, peer, sum_kind, sum);
    if (status != netio::Status::ok) {
        session.fail(netio::CloseReason::protocol_error,
                     session.peer_address() + " sent a request out of order");
    }
}

netio::Status ProbeServer::answer(netio::Session& session, Peer& peer, std::uint8_t kind,
                                  std::span<const std::byte> body) {
    if (body.size() <= netio::frame_extension_limit) { // copied
        return session.send({.kind = kind, .flags = 0, .extension = body, .slices = {}},
                            std::nullopt);
    }
    if (peer.answer_lent) return netio::Status::again;
    std::ranges::copy(body, peer.answer->data());
    const netio::Slice slice = peer.answer->slice(0, body.size());
    const netio::Status status = session.send(
        {.kind = kind, .flags = 0, .extension = {}, .slices = {&slice, 1}}, netio::Cookie{kind});
    peer.answer_lent = status == netio::Status::ok;
    return status;
}

void ProbeServer::on_sent(netio::Session& session, netio::Cookie, netio::Completion::Outcome) {
    peers_.at(&session).answer_lent = false;
}

void ProbeServer::on_closed(netio::Session& session, const netio::Closed& closed) {
    if (at_visit) {
        at_visit(session.peer_address() + " has disconnected: " + explain(closed));
    }
    places_.leave(session.peer_address());
    peers_.erase(&session);
}

// --- asking ---------------------------------------------------------------------------------

PathProbe::PathProbe(netio::Transport& transport, const netio::Address& remote,
                     const Options& options, std::function<void()> at_end)
    : transport_{transport}, options_{options}, at_end_{std::move(at_end)}, memory_{frame_bytes},
      connector_{transport, *this} {
    for (std::size_t i = 0; i < memory_.size(); ++i)
        memory_.data()[i] = pattern_at(i);
    connector_.connect(remote, {}, options.key);
}

PathProbe::~PathProbe() = default;

void PathProbe::on_route(const netio::Session::Target& target) {
    running_.provider = target.provider;
    session_ = std::make_unique<netio::Session>(transport_, target, hello(), session_options(),
                                                static_cast<netio::Session::Handler&>(*this));
}

void PathProbe::on_connect_failed(const netio::Closed& closed) {
    failure_ = to_string(closed);
    at_end_();
}

void PathProbe::on_open(netio::Session& session) {
    connector_.cancel();
    running_.largest_bytes = std::min(session.body_limit(), memory_.size());
    running_.provider_message_bytes = session.capabilities().message_bytes;
    send(echo_kind, running_.largest_bytes);
}

void PathProbe::send(std::uint8_t kind, std::size_t bytes) {
    const netio::Slice body = memory_.slice(0, bytes);
    // The send queue has space, because nothing else is in flight.
    if (session_->send({.kind = kind, .flags = 0, .extension = {}, .slices = {&body, 1}},
                       std::nullopt) != netio::Status::ok) {
        fail("a frame of " + std::to_string(bytes) + " bytes could not be sent");
    }
}

void PathProbe::send_echo() {
    sent_at_ = netio::Clock::now();
    send(echo_kind, echo_bytes);
}

void PathProbe::on_frame(netio::Session&, const netio::IncomingFrame& frame) {
    if (frame.kind == echo_kind && step_ <= Step::round_trips) return take_echo(frame.body);
    if (frame.kind == sum_kind && step_ == Step::sum) return take_sum(frame.body);
    fail("the peer sent an unexpected answer");
}

void PathProbe::take_echo(std::span<const std::byte> body) {
    const netio::TimePoint now = netio::Clock::now();
    const bool largest = step_ == Step::largest;
    const std::size_t size = largest ? running_.largest_bytes : echo_bytes;
    if (!std::ranges::equal(body, std::span{memory_.data(), size})) {
        return fail("the peer's answer differs from the sent data");
    }
    if (largest) {
        step_ = Step::round_trips;
        step_begin_ = now;
        return send_echo();
    }
    running_.round_trips.push_back(now - sent_at_);
    if (running_.round_trips.size() < options_.round_trip_count &&
        now - step_begin_ < options_.limit) {
        return send_echo();
    }
    step_ = Step::transfer;
    step_begin_ = now;
    transfer();
}

void PathProbe::transfer() {
    while (step_ == Step::transfer) {
        const bool enough = bytes_sent_ >= options_.transfer_bytes ||
                            netio::Clock::now() - step_begin_ >= options_.limit;
        const std::size_t bytes = enough ? 0 : running_.largest_bytes;
        const netio::Slice body = memory_.slice(0, bytes);
        const netio::Status status = session_->send({.kind = enough ? sum_kind : data_kind,
                                                     .flags = 0,
                                                     .extension = {},
                                                     .slices = {&body, 1}},
                                                    std::nullopt);
        if (status != netio::Status::ok) return; // on_writable or on_closed follows
        bytes_sent_ += bytes;
        if (enough) step_ = Step::sum;
    }
}

void PathProbe::on_writable(netio::Session&) {
    transfer();
}

void PathProbe::take_sum(std::span<const std::byte> body) {
    const std::chrono::duration<double> taken = netio::Clock::now() - step_begin_;
    if (body.size() != 8 || wire::load<std::uint64_t>(body.data()) != bytes_sent_) {
        return fail("the peer received a different number of bytes than were sent");
    }
    running_.gbit_per_s = static_cast<double>(bytes_sent_) * 8e-9 / taken.count();
    std::ranges::sort(running_.round_trips);
    step_ = Step::done;
    session_->close();
}

void PathProbe::fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    session_->abort();
}

void PathProbe::on_closed(netio::Session&, const netio::Closed& closed) {
    if (connector_.is_connecting()) {
        const netio::Closed last = closed; // NOLINT: needs a copy, the session is destroyed here
        session_.reset();
        return connector_.try_next(last);
    }
    if (step_ == Step::done) {
        measurement_ = std::move(running_);
    } else if (failure_.empty()) {
        failure_ = to_string(closed);
    }
    at_end_();
}

std::vector<std::string> to_lines(const PathMeasurement& measurement) {
    const auto& trips = measurement.round_trips;
    const auto part = [&](std::size_t percent) {
        return microseconds(trips[(trips.size() - 1) * percent / 100]);
    };
    return {
        fmt::format("over {}", measurement.provider),
        fmt::format("round trip of {} B, {} times: median {:.1f} us, 99 % within {:.1f} us, "
                    "shortest {:.1f} us",
                    echo_bytes, trips.size(), part(50), part(99), part(0)),
        fmt::format("bandwidth in frames of {} B: {:.2f} Gbit/s", measurement.largest_bytes,
                    measurement.gbit_per_s),
        fmt::format("a frame of {} B came back complete; the provider accepts messages up to {} B",
                    measurement.largest_bytes, measurement.provider_message_bytes)};
}

namespace {

// Memory for buffers of the default sizes; the largest part is a publisher's memory for unbuffered
// sources.
constexpr std::uint64_t locked_bytes_wanted = 512 << 20;
// Fifty peers with a few descriptors each, plus the reserve of a listener.
constexpr std::uint64_t descriptors_wanted = 1024;
// RoCE packets carry at most 4096 bytes of data, if the interface's MTU also has space for their
// headers.
constexpr unsigned roce_mtu_wanted = 4200;

struct BadVersions {
    Version first;
    Version last;
    std::string_view what;
    std::string_view remedy;
};
// Versions with measured or documented problems.
constexpr std::array<BadVersions, 2> bad_libfabric{{
    {{0, 0},
     {1, 16},
     "it is older than the API version that netio uses, 1.17",
     "install 1.17 or later"},
    {{1, 18},
     {2, 4},
     "the descriptors of its tcp provider stay readable, so that a waiting loop uses a full core",
     "use 1.17, or 2.5 or later"},
}};
constexpr Version oldest_kernel{5, 11}; // epoll_pwait2

using Kind = Finding::Kind;
using Findings = std::vector<Finding>;

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string(bytes >> 20U) + " MiB";
}

void judge_versions(const Machine& machine, Findings& findings) {
    const std::string kernel = "Linux " + to_string(machine.kernel);
    if (machine.kernel < oldest_kernel) {
        findings.push_back({Kind::change, kernel + " has no epoll_pwait2",
                            "run Linux " + to_string(oldest_kernel) + " or later"});
    }
    for (const BadVersions& bad : bad_libfabric) {
        if (machine.libfabric < bad.first || bad.last < machine.libfabric) continue;
        findings.push_back(
            {Kind::change,
             "libfabric " + to_string(machine.libfabric) + ": " + std::string{bad.what},
             std::string{bad.remedy}});
        return;
    }
    findings.push_back({Kind::good, kernel + ", libfabric " + to_string(machine.libfabric), {}});
}

// Reported as notes only: no version without these faults is known, and most need an admitted peer.
void judge_faults(const Machine& machine, Findings& findings) {
    const bool has_tcp = std::ranges::any_of(
        machine.fabric, [](const auto& offer) { return offer.provider == "tcp"; });
    if (!has_tcp) return;
    for (const FabricFault& fault : faults_of(machine.libfabric)) {
        std::string remedy{fault.remedy};
        if (!fault.patch.empty())
            remedy += "; see the patch in docs/upstream: " + std::string{fault.patch};
        findings.push_back(
            {Kind::note,
             named_with_doubt(machine.libfabric) + ": over tcp " + std::string{fault.what},
             std::move(remedy)});
    }
}

void judge_port(const RdmaDevice& device, const RdmaPort& port, Findings& findings) {
    const std::string name = "port " + std::to_string(port.number) + " of " + device.name;
    const bool ethernet = port.link_layer == "Ethernet";
    if (port.state != "ACTIVE") {
        std::string remedy;
        if (port.state == "INIT" && !ethernet) {
            remedy = "start a subnet manager (opensm, or the switch's)";
        } else if (!port.interface.empty()) {
            remedy = "check the cable; ip link set " + port.interface + " up";
        } else {
            remedy = "check the cable and the device at its other end";
        }
        findings.push_back(
            {Kind::change,
             name + " is " + (port.state.empty() ? "in an unknown state" : port.state), remedy});
        return;
    }
    std::string what = name + " is active";
    if (!port.link_layer.empty()) what += ", " + port.link_layer;
    if (!port.rate.empty()) what += ", " + port.rate;
    findings.push_back({Kind::good, what, {}});
    if (ethernet && port.interface_mtu && *port.interface_mtu < roce_mtu_wanted) {
        findings.push_back(
            {Kind::note,
             port.interface + " has an MTU of " + std::to_string(*port.interface_mtu) + ", so " +
                 device.name + " sends small packets",
             "ip link set " + port.interface + " mtu 9000, if every switch on the way allows it"});
    }
}

// Returns the counters of this trouble that are not zero, such as "link_downed 2, symbol_error 17";
// empty if there are none.
std::string counted(const RdmaPort& port, Trouble trouble) {
    std::string list;
    for (const auto& [name, value] : port.counters) {
        if (value == 0 || trouble_of(name) != trouble) continue;
        list += (list.empty() ? "" : ", ") + name + " " + std::to_string(value);
    }
    return list;
}

// The counters count since the start of the device, which may be long ago.
void judge_counters(const RdmaDevice& device, const RdmaPort& port, Findings& findings) {
    static constexpr std::array<std::pair<Trouble, std::string_view>, 3> remedies{{
        {Trouble::port_error, "if they increase: clean or change the cable or the transceiver, "
                              "check the port of the switch"},
        {Trouble::receiver_not_ready, "if they increase: another program causes them, because "
                                      "netio sends only if the peer has a receive buffer"},
        {Trouble::retransmission, "if they increase: packets are lost in the network; on Ethernet "
                                  "enable flow control (PFC) and ECN for this traffic"},
    }};
    for (const auto& [trouble, remedy] : remedies) {
        const std::string list = counted(port, trouble);
        if (list.empty()) continue;
        findings.push_back({Kind::note,
                            fmt::format("port {} of {} has counted errors ({}): {}", port.number,
                                        device.name, to_string(trouble), list),
                            std::string{remedy}});
    }
}

const netio::FabricDescription* offered(const Machine& machine, const std::string& device) {
    for (const auto& description : machine.fabric) {
        if (description.provider == "verbs" && description.domain == device) return &description;
    }
    return nullptr;
}

std::string withheld(const Machine& machine) {
    return withheld_providers(machine.provider_choice, machine.fabric, machine.devices);
}

void judge_access(const Machine& machine, const RdmaDevice& device, Findings& findings) {
    if (!device.accessible || !machine.connection_manager_accessible) {
        findings.push_back(
            {Kind::change,
             (device.accessible ? "/dev/infiniband/rdma_cm"
                                : "the node of " + device.name + " in /dev/infiniband") +
                 " does not exist or cannot be opened",
             "load the modules rdma_ucm and ib_uverbs, and give this user read and write access "
             "(often by the group rdma)"});
        return;
    }
    const netio::FabricDescription* const offer = offered(machine, device.name);
    // Providers that the environment excludes are reported once, for the whole fabric.
    if (offer == nullptr && !withheld(machine).empty()) return;
    if (offer == nullptr || offer->addresses.empty()) {
        findings.push_back(
            {Kind::change, "libfabric does not offer " + device.name,
             "give its network interface an address (InfiniBand: by IPoIB), because connections "
             "are made by address; install ibverbs-providers and libfabric's verbs provider"});
        return;
    }
    if (offer->capabilities.immediate_bytes < sizeof(std::uint32_t)) {
        findings.push_back(
            {Kind::note,
             device.name + " has no writes with immediate data (iWARP); messages are sent instead",
             {}});
    }
}

void judge_limits(const Machine& machine, Findings& findings) {
    if (!machine.devices.empty() && machine.locked_bytes_limit &&
        *machine.locked_bytes_limit < locked_bytes_wanted) {
        findings.push_back({Kind::change,
                            "only " + mebibytes(*machine.locked_bytes_limit) +
                                " of memory may be locked; verbs locks its buffers, by default " +
                                mebibytes(locked_bytes_wanted),
                            "ulimit -l unlimited (/etc/security/limits.d), or "
                            "LimitMEMLOCK=infinity in the systemd unit"});
    }
    if (machine.descriptor_limit && *machine.descriptor_limit < descriptors_wanted) {
        findings.push_back({Kind::change,
                            "only " + std::to_string(*machine.descriptor_limit) +
                                " descriptors may be open; each peer needs a few",
                            "ulimit -Hn " + std::to_string(16 * descriptors_wanted) +
                                ", or LimitNOFILE= in the systemd unit"});
    }
    if (machine.huge_pages && machine.huge_pages->free_count == 0 && !machine.devices.empty()) {
        findings.push_back(
            {Kind::note,
             "no huge pages are free; buffers that request them get normal pages, which cost "
             "devices more address lookups",
             "sysctl vm.nr_hugepages=" +
                 std::to_string(locked_bytes_wanted / machine.huge_pages->bytes_each)});
    }
}

void judge_fabric(const Machine& machine, Findings& findings) {
    const std::string missing = withheld(machine);
    if (!missing.empty()) {
        findings.push_back(
            {Kind::change,
             fmt::format("FI_PROVIDER={} in the environment prevents libfabric from offering {}",
                         machine.provider_choice.value_or(""), missing),
             "unset FI_PROVIDER"});
    } else if (machine.fabric.empty()) {
        findings.push_back({Kind::change, "libfabric offers no usable provider",
                            "install libfabric1 with its tcp and verbs providers"});
    }
    for (const auto& [address, provider] : machine.picked) {
        findings.push_back({Kind::good, fmt::format("provider for {}: {}", address, provider), {}});
    }
}

} // namespace

std::string_view to_string(Finding::Kind kind) noexcept {
    switch (kind) {
    case Kind::good:
        return "good";
    case Kind::note:
        return "note";
    case Kind::change:
        return "change";
    }
    return "unknown";
}

std::vector<Finding> diagnose(const Machine& machine) {
    Findings findings;
    judge_versions(machine, findings);
    judge_faults(machine, findings);
    if (machine.devices.empty()) {
        findings.push_back({Kind::note, "there is no RDMA device; tcp is used instead",
                            "if the machine has an adapter, load its driver (such as mlx5_ib, "
                            "irdma, bnxt_re)"});
    }
    for (const RdmaDevice& device : machine.devices) {
        if (device.software) {
            findings.push_back(
                {Kind::note,
                 device.name + " is a software device: suitable for tests, and slower than tcp",
                 {}});
        }
        for (const RdmaPort& port : device.ports) {
            judge_port(device, port, findings);
            judge_counters(device, port, findings);
        }
        judge_access(machine, device, findings);
    }
    judge_limits(machine, findings);
    judge_fabric(machine, findings);
    return findings;
}

bool all_passed(const std::vector<Finding>& findings) noexcept {
    return std::ranges::none_of(
        findings, [](const Finding& finding) { return finding.kind == Finding::Kind::change; });
}

// netio doctor: checks whether this machine, and the path to another one, is suitable for RDMA.

namespace {

using Json = nlohmann::ordered_json;

struct DoctorArguments {
    std::string peer;
    std::vector<std::string> fids; // fids to ask the peer, a publisher, about
    std::string serve;
    std::string provider = "auto";
    bool allow_remote_anonymous = false;
    KeyArguments keys;
    bool json = false;
};

int serve(const DoctorArguments& arguments) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    const auto keys = server_keys(loop, arguments.keys);
    ProbeServer server{*transport,
                       {.address = netio::parse_address(arguments.serve),
                        .allow_remote_anonymous = arguments.allow_remote_anonymous,
                        .keys = keys}};
    PeerLog log{loop};
    server.at_visit = [&](const std::string& what) { log.info(what); };
    tell_listening(server.endpoints());
    const netio::SignalWatch signals{loop, end_signals(), [&](int) { loop.stop(); }};
    loop.run();
    return 0;
}

Json as_json(const PathMeasurement& measurement) {
    const auto microseconds = [&](std::size_t percent) {
        const auto& trips = measurement.round_trips;
        return std::chrono::duration<double, std::micro>(trips[(trips.size() - 1) * percent / 100])
            .count();
    };
    return {{"provider", measurement.provider},
            {"round_trips", measurement.round_trips.size()},
            {"round_trip_us", {{"median", microseconds(50)}, {"p99", microseconds(99)}}},
            {"gbit_per_s", measurement.gbit_per_s},
            {"frame_bytes", measurement.largest_bytes},
            {"message_bytes", measurement.provider_message_bytes}};
}

// Routes that were tried first and failed.
class FailedRoutes final : public netio::Observer {
  public:
    std::vector<netio::RouteFailed> all;

  private:
    void on_route_failed(const netio::RouteFailed& event) override { all.push_back(event); }
};

// Adds the results of the path to the report, or the reason why there are none.
bool probe(const DoctorArguments& arguments, Json& report, std::vector<std::string>& lines) {
    FailedRoutes failed;
    netio::EventLoop loop{{.observer = &failed}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    PathProbe probe{*transport,
                    peer_address(arguments.peer),
                    {.key = client_key(arguments.keys)},
                    [&] { loop.stop(); }};
    loop.run();
    if (!probe.measurement()) {
        report["path"] = {{"failure", probe.failure()}};
        lines = {fmt::format("{}: {}", arguments.peer, probe.failure()),
                 fmt::format("start `netio doctor --serve {}` there", arguments.peer)};
        return false;
    }
    report["path"] = as_json(*probe.measurement());
    report["path"]["failed"] = Json::array();
    lines = to_lines(*probe.measurement());
    for (const netio::RouteFailed& route : failed.all) {
        report["path"]["failed"].push_back({{"provider", route.provider},
                                            {"address", to_string(route.remote)},
                                            {"why", to_string(route.closed)}});
        lines.push_back(
            fmt::format("cannot connect over {}: {}", route.provider, to_string(route.closed)));
    }
    return true;
}

// Adds to the report whether the publisher publishes these fids; for the others, the reason.
bool ask(const DoctorArguments& arguments, Json& report, std::vector<std::string>& lines) {
    const auto result = ask_fids(
        {.publisher = arguments.peer, .provider = arguments.provider, .key = arguments.keys},
        parse_fids(arguments.fids));
    if (!result.failure.empty()) {
        report["fids"] = {{"failure", result.failure}};
        lines = {fmt::format("{}: {}", arguments.peer, result.failure),
                 "check that a publisher of version 0.3 or later is running there"};
        return false;
    }
    bool all = true;
    report["fids"] = Json::array();
    for (const auto& near : result.near) {
        Json nearest = Json::array();
        for (const auto& range : near.nearest)
            nearest.push_back(to_string(range));
        report["fids"].push_back({{"asked", to_string(near.asked)},
                                  {"published", near.is_published},
                                  {"nearest", std::move(nearest)}});
        lines.push_back(shown(near, nullptr));
        all = all && near.is_published;
    }
    if (!all) {
        lines.push_back(fmt::format("netio list {} shows all fids that it has published since its "
                                    "start",
                                    arguments.peer));
    }
    return all;
}

int examine(const DoctorArguments& arguments) {
    const Machine machine = read_machine();
    const std::vector<Finding> findings = diagnose(machine);
    bool well = all_passed(findings);
    std::string text;
    Json report{{"role", "doctor"},
                {"report_version", report_version},
                {"version", netio::version()},
                {"findings", Json::array()}};
    for (const Finding& finding : findings) {
        report["findings"].push_back({{"kind", to_string(finding.kind)},
                                      {"what", finding.what},
                                      {"remedy", finding.remedy}});
        text += fmt::format("{:7} {}\n", to_string(finding.kind), finding.what);
        if (!finding.remedy.empty()) text += fmt::format("        -> {}\n", finding.remedy);
    }
    // Printed early, because the path's test takes a while.
    if (!arguments.json) print_report(std::exchange(text, {}));
    if (!arguments.peer.empty()) {
        std::vector<std::string> lines;
        const bool asks = !arguments.fids.empty();
        well = (asks ? ask(arguments, report, lines) : probe(arguments, report, lines)) && well;
        text = fmt::format("\n{} {}\n", asks ? "publisher" : "path to", arguments.peer);
        for (const std::string& line : lines)
            text += fmt::format("        {}\n", line);
    }
    report["well"] = well;
    text +=
        fmt::format("\n{}\n", well ? "nothing has to be changed" : "make the changes listed above");
    print_report(arguments.json ? json_line(report) + "\n" : text);
    return well ? 0 : 1;
}

} // namespace

Command add_doctor(CLI::App& program) {
    auto* command = program.add_subcommand(
        "doctor",
        "Check this machine for RDMA, propose changes, and test the path to another machine");
    const auto arguments = std::make_shared<DoctorArguments>();
    auto* peer =
        command->add_option("peer", arguments->peer,
                            "HOST:PORT of `netio doctor --serve`, or with --fid of a publisher");
    command
        ->add_option("--fid", arguments->fids,
                     "Ask the publisher whether it publishes these fids, and for the nearest "
                     "published ones; may be repeated")
        ->needs(peer);
    auto* serving =
        command->add_option("--serve", arguments->serve,
                            "Serve path tests of other machines at HOST:PORT until interrupted");
    serving->excludes(peer);
    add_allow_remote_anonymous(*command, arguments->allow_remote_anonymous)->needs(serving);
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    add_provider(*command, arguments->provider)->capture_default_str();
    command->add_flag("--json", arguments->json, "Print one JSON object");
    return
        [arguments] { return arguments->serve.empty() ? examine(*arguments) : serve(*arguments); };
}

} // namespace apps
