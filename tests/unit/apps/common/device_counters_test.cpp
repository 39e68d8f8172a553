// SPDX-License-Identifier: Apache-2.0
#include "apps/common/device_counters.hpp"
#include "apps/common/log_observer.hpp"
#include "apps/common/machine.hpp"
#include "apps/doctor/diagnosis.hpp"
#include "apps/metrics/device_metrics.hpp"
#include "apps/top/table.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace apps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

// A tree as drivers make it.
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

TEST_F(DeviceCounters, OfBothFoldersAreReadUnderTheDriversNames) {
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

TEST_F(DeviceCounters, WhereThereIsNoDeviceNothingIsShown) {
    Exposition text;
    write({}, text);
    EXPECT_EQ(std::move(text).take(), "");
}

TEST_F(DeviceCounters, OfAPortThatIsDownAreShownToo) {
    put("state", "1: DOWN");
    Exposition text;
    write(devices(), text);
    EXPECT_THAT(std::move(text).take(), HasSubstr("rate=\"100 Gb/sec (4X EDR)\"} 0\n"));
}

TEST_F(DeviceCounters, AreWhatTheDoctorNotesWhereTheyMeanTrouble) {
    Machine machine;
    machine.kernel = {6, 1};
    machine.libfabric = {1, 17};
    machine.devices = devices();
    std::string notes;
    for (const Finding& finding : diagnose(machine))
        if (finding.kind == Finding::Kind::note)
            notes += finding.what + "; " + finding.remedy + "\n";
    EXPECT_THAT(notes, HasSubstr("port 1 of mlx5_0 has counted trouble (port error): "
                                 "link_downed 2, symbol_error 7; where they grow: clean"));
    EXPECT_THAT(notes, HasSubstr("(receiver not ready): rnr_nak_retry_err 3"));
    EXPECT_THAT(notes, HasSubstr("local_ack_timeout_err 2, out_of_sequence 40"));
    EXPECT_THAT(notes, Not(HasSubstr("port_xmit_data")));
}

TEST(DeviceLog, SaysWhichPortOfWhichDevice) {
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

} // namespace
} // namespace apps
