// SPDX-License-Identifier: Apache-2.0
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/doctor/doctor.hpp"
#include "apps/metrics/families.hpp"
#include "apps/top/table.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace apps::machine_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

// No machine has these addresses, so the result cannot come from a query of each address.
TEST(PickedProviders, AreThoseOfTheDescriptionsInTheirOrder) {
    EXPECT_THAT(
        picked_providers({{.provider = "verbs", .domain = "mlx5_0", .addresses = {"192.0.2.2"}},
                          {.provider = "tcp",
                           .domain = "eth0",
                           .addresses = {"192.0.2.1", "192.0.2.2", "2001:db8::1"}}}),
        ElementsAre(Pair("192.0.2.1", "tcp"), Pair("192.0.2.2", "verbs"),
                    Pair("2001:db8::1", "tcp")));
}

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

// A directory tree like that of the drivers.
class DeviceCounters : public testing::Test {
  protected:
    DeviceCounters() {
        put("state", "4: ACTIVE");
        put("link_layer", "Ethernet");
        put("rate", "100 Gb/sec (4X EDR)");
        put("counters/symbol_error", "7");
        put("counters/link_downed", "2");
        put("counters/port_xmit_data", "18446744073709551615");
        put("hw_counters/rnr_nak_retry_err", "3");
        put("hw_counters/out_of_sequence", "40");
        put("hw_counters/local_ack_timeout_err", "2");
        put("hw_counters/lifespan", "10");
    }
    void put(const std::string& name, const std::string& text) {
        const fs::path path = port() / name;
        fs::create_directories(path.parent_path());
        std::ofstream{path} << text << '\n';
    }
    fs::path port() const {
        return fs::path{folder_.path()} / "sys/class/infiniband/mlx5_0/ports/1";
    }
    std::vector<RdmaDevice> devices() const { return read_devices(folder_.path()); }

    netio::test::TemporaryFolder folder_;
};

TEST_F(DeviceCounters, AreReadFromBothFoldersUnderTheDriversNames) {
    ASSERT_EQ(devices().size(), 1U);
    const PortCounters counters = devices()[0].ports.at(0).counters;
    EXPECT_THAT(counters,
                UnorderedElementsAre(
                    std::pair{"symbol_error", 7U}, std::pair{"link_downed", 2U},
                    std::pair{"port_xmit_data", UINT64_MAX}, std::pair{"rnr_nak_retry_err", 3U},
                    std::pair{"out_of_sequence", 40U}, std::pair{"local_ack_timeout_err", 2U}));
    EXPECT_EQ(count_of(counters, Trouble::port_error), 9U);
    EXPECT_EQ(count_of(counters, Trouble::receiver_not_ready), 3U);
    EXPECT_EQ(count_of(counters, Trouble::retransmission), 42U);
}

TEST_F(DeviceCounters, ThatAreNoNumbersOrMissingAreLeftOut) {
    put("counters/symbol_error", "N/A");
    put("counters/link_downed", "");
    put("hw_counters/out_of_sequence", "-1");
    put("hw_counters/duplicate_request", "99999999999999999999999");
    fs::create_directories(port() / "counters/a_folder");
    const PortCounters counters = read_counters(port());
    EXPECT_EQ(counters.size(), 3U);
    EXPECT_EQ(count_of(counters, Trouble::port_error), 0U);
    EXPECT_TRUE(read_counters(port() / "nowhere").empty());
}

TEST_F(DeviceCounters, AreShownForEachPort) {
    Exposition text;
    write(devices(), text);
    const std::string body = std::move(text).take();
    EXPECT_THAT(body, HasSubstr("netio_device_active{port=\"mlx5_0/1\",link_layer=\"Ethernet\","
                                "rate=\"100 Gb/sec (4X EDR)\"} 1\n"));
    EXPECT_THAT(body, HasSubstr("netio_device_port_errors_total{port=\"mlx5_0/1\"} 9\n"));
    EXPECT_THAT(body, HasSubstr("netio_device_receiver_not_ready_total{port=\"mlx5_0/1\"} 3\n"));
    EXPECT_THAT(body, HasSubstr("netio_device_retransmissions_total{port=\"mlx5_0/1\"} 42\n"));
    EXPECT_THAT(body, HasSubstr("netio_device_counter_total{port=\"mlx5_0/1\","
                                "counter=\"symbol_error\"} 7\n"));
    const auto rows = top::rows_of(body);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].kind, "device");
    EXPECT_EQ(rows[0].name, "mlx5_0/1");
    EXPECT_EQ(rows[0].count, 42U);
    EXPECT_EQ(rows[0].again, 3U);
    EXPECT_EQ(rows[0].dropped, 9U);
}

TEST_F(DeviceCounters, ShowNothingWithoutADevice) {
    Exposition text;
    write(std::span<const RdmaDevice>{}, text);
    EXPECT_EQ(std::move(text).take(), "");
}

TEST_F(DeviceCounters, AreShownForAPortThatIsDown) {
    put("state", "1: DOWN");
    Exposition text;
    write(devices(), text);
    EXPECT_THAT(std::move(text).take(), HasSubstr("rate=\"100 Gb/sec (4X EDR)\"} 0\n"));
}

TEST_F(DeviceCounters, AreReportedByTheDoctorIfTheyIndicateTrouble) {
    Machine machine;
    machine.kernel = {6, 1};
    machine.libfabric = {1, 17};
    machine.devices = devices();
    std::string notes;
    for (const Finding& finding : diagnose(machine))
        if (finding.kind == Finding::Kind::note)
            notes += finding.what + "; " + finding.remedy + "\n";
    EXPECT_THAT(notes, HasSubstr("port 1 of mlx5_0 has counted errors (port error): "
                                 "link_downed 2, symbol_error 7; if they increase: clean"));
    EXPECT_THAT(notes, HasSubstr("(receiver not ready): rnr_nak_retry_err 3"));
    EXPECT_THAT(notes, HasSubstr("local_ack_timeout_err 2, out_of_sequence 40"));
    EXPECT_THAT(notes, Not(HasSubstr("port_xmit_data")));
}

TEST(DeviceLog, NamesThePortAndTheDevice) {
    using Kind = netio::DeviceEvent::Kind;
    EXPECT_EQ(line_of({.kind = Kind::port_down, .device = "mlx5_0", .port = 2, .what = "x"}),
              "port 2 of mlx5_0 is down");
    EXPECT_EQ(line_of({.kind = Kind::port_up, .device = "mlx5_0", .port = 2, .what = "x"}),
              "port 2 of mlx5_0 is active");
    EXPECT_EQ(line_of({.kind = Kind::device_failed, .device = "mlx5_0", .port = 0, .what = "x"}),
              "mlx5_0 has failed");
    EXPECT_EQ(line_of({.kind = Kind::changed, .device = "mlx5_0", .port = 1, .what = "GID"}),
              "port 1 of mlx5_0: GID");
}

using netio::Endpoint;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FabricFaults, BelongToTheVersionsThatWereLookedAt) {
    for (const Version version : {Version{1, 17}, Version{2, 5}, Version{2, 6}})
        EXPECT_EQ(faults_of(version).size(), 6U) << to_string(version);
    EXPECT_THAT(faults_of({1, 16}), IsEmpty());
    EXPECT_EQ(named_with_doubt({2, 6}), "libfabric 2.6");
}

TEST(FabricFaults, AreShownAsPossibleForAnUnknownVersion) {
    for (const Version version : {Version{2, 7}, Version{3, 0}}) {
        EXPECT_EQ(faults_of(version).size(), 6U) << to_string(version);
        const std::string warning = fault_warning(
            {{.provider = "tcp", .address = {.host = "10.0.0.1", .port = 1}}}, version);
        EXPECT_THAT(warning,
                    HasSubstr(to_string(version) + " (newer than 2.6, the newest version that was "
                                                   "checked: it may be fixed)"));
    }
}

TEST(FabricFaults, AreWarnedOfWhereOtherMachinesReachTcp) {
    const Version bad{1, 17};
    const auto at = [](const char* host, const char* provider) {
        return std::vector{Endpoint{.provider = provider, .address = {.host = host, .port = 1}}};
    };
    EXPECT_THAT(fault_warning(at("10.0.0.1", "tcp"), bad), HasSubstr("libfabric 1.17"));
    EXPECT_THAT(fault_warning(at("0.0.0.0", "tcp"), bad), HasSubstr("netio doctor"));
    EXPECT_THAT(fault_warning(at("127.0.0.1", "tcp"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("::1", "tcp"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("10.0.0.1", "verbs"), bad), IsEmpty());
    EXPECT_THAT(fault_warning(at("10.0.0.1", "tcp"), {1, 16}), IsEmpty());
}

TEST(FabricFaults, EachHasItsPatchesInTheDocuments) {
    for (const FabricFault& fault : faults_of({1, 17})) {
        if (fault.patch.empty()) continue;
        for (const char* version : {"v1.17.0", "v2.6.0"}) {
            const std::string name = std::string{fault.patch} + "-" + version + ".patch";
            EXPECT_TRUE(std::filesystem::exists(std::string{NETIO_UPSTREAM_FOLDER} + "/" + name))
                << name;
        }
    }
}

} // namespace

} // namespace apps::machine_test
