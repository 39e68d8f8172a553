// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/doctor.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

namespace apps::diagnosis_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = Finding::Kind;

// A machine without problems.
Machine sound_machine() {
    Machine machine;
    machine.kernel = {6, 1};
    machine.libfabric = {1, 17};
    machine.devices = {{.name = "mlx5_0",
                        .software = false,
                        .accessible = true,
                        .ports = {{.number = 1,
                                   .state = "ACTIVE",
                                   .link_layer = "Ethernet",
                                   .rate = "100 Gb/sec (4X EDR)",
                                   .interface = "enp1s0",
                                   .interface_mtu = 9000}}}};
    machine.connection_manager_accessible = true;
    netio::FabricDescription offer;
    offer.provider = "verbs";
    offer.domain = "mlx5_0";
    offer.addresses = {"10.0.0.1"};
    offer.capabilities.immediate_bytes = 4;
    machine.fabric = {offer};
    machine.picked = {{"10.0.0.1", "verbs"}};
    machine.descriptor_limit = 524288;
    machine.huge_pages = HugePages{.bytes_each = 2 << 20, .free_count = 100};
    return machine;
}

// The finding with this text; fails the test if it is missing or of another kind.
Finding found(const Machine& machine, Kind kind, const std::string& what) {
    for (const Finding& finding : diagnose(machine)) {
        if (finding.what.find(what) == std::string::npos) continue;
        EXPECT_EQ(finding.kind, kind) << finding.what;
        return finding;
    }
    ADD_FAILURE() << "no finding: " << what;
    return {};
}

void expect_change(const Machine& machine, const std::string& what, const std::string& remedy) {
    EXPECT_THAT(found(machine, Kind::change, what).remedy, HasSubstr(remedy));
    EXPECT_FALSE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, ASoundMachineHasNothingToChangeNorToNote) {
    for (const Finding& finding : diagnose(sound_machine()))
        EXPECT_EQ(finding.kind, Kind::good) << finding.what;
    EXPECT_TRUE(all_passed(diagnose(sound_machine())));
    found(sound_machine(), Kind::good, "provider for 10.0.0.1: verbs");
}

TEST(Diagnosis, AMachineWithoutADeviceIsWellAndNamesItsProvider) {
    Machine machine = sound_machine();
    machine.devices.clear();
    machine.connection_manager_accessible = false;
    machine.locked_bytes_limit = 65536; // no memory is locked without a device
    machine.huge_pages->free_count = 0;
    found(machine, Kind::note, "tcp is used instead");
    EXPECT_TRUE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, APortThatIsDownIsNamedWithItsInterface) {
    Machine machine = sound_machine();
    machine.devices[0].ports[0].state = "DOWN";
    expect_change(machine, "port 1 of mlx5_0 is DOWN", "ip link set enp1s0 up");
    machine.devices[0].ports[0].interface.clear();
    expect_change(machine, "port 1 of mlx5_0 is DOWN", "cable");
}

TEST(Diagnosis, AnInfiniBandPortThatWaitsNeedsASubnetManager) {
    Machine machine = sound_machine();
    machine.devices[0].ports[0].state = "INIT";
    machine.devices[0].ports[0].link_layer = "InfiniBand";
    expect_change(machine, "is INIT", "subnet manager");
}

TEST(Diagnosis, ASmallMtuIsNotedOnEthernetOnly) {
    Machine machine = sound_machine();
    machine.devices[0].ports[0].interface_mtu = 1500;
    EXPECT_THAT(found(machine, Kind::note, "MTU of 1500").remedy, HasSubstr("mtu 9000"));
    EXPECT_TRUE(all_passed(diagnose(machine)));
    machine.devices[0].ports[0].link_layer = "InfiniBand";
    for (const Finding& finding : diagnose(machine))
        EXPECT_THAT(finding.what, Not(HasSubstr("MTU")));
}

TEST(Diagnosis, ADeviceThatMayNotBeOpenedNamesTheModulesAndTheRights) {
    Machine machine = sound_machine();
    machine.devices[0].accessible = false;
    expect_change(machine, "the node of mlx5_0", "ib_uverbs");
    machine = sound_machine();
    machine.connection_manager_accessible = false;
    expect_change(machine, "/dev/infiniband/rdma_cm", "rdma_ucm");
}

TEST(Diagnosis, ADeviceThatLibfabricDoesNotOfferLacksAnAddressOrADriver) {
    Machine machine = sound_machine();
    machine.fabric[0].domain = "other";
    expect_change(machine, "does not offer mlx5_0", "an address");
    machine = sound_machine();
    machine.fabric[0].addresses.clear();
    expect_change(machine, "does not offer mlx5_0", "ibverbs-providers");
}

TEST(Diagnosis, SoftwareAndMissingImmediateDataAreNoted) {
    Machine machine = sound_machine();
    machine.devices[0].software = true;
    machine.fabric[0].capabilities.immediate_bytes = 0;
    found(machine, Kind::note, "mlx5_0 is a software device");
    found(machine, Kind::note, "no writes with immediate data");
    EXPECT_TRUE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, TooLittleLockedMemoryNamesBothWaysToRaiseIt) {
    Machine machine = sound_machine();
    machine.locked_bytes_limit = 8 << 20;
    expect_change(machine, "only 8 MiB of memory may be locked", "ulimit -l unlimited");
    expect_change(machine, "only 8 MiB of memory may be locked", "LimitMEMLOCK=infinity");
    machine.locked_bytes_limit = std::uint64_t{1} << 34U;
    EXPECT_TRUE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, TooFewDescriptorsNameTheWayToMore) {
    Machine machine = sound_machine();
    machine.descriptor_limit = 256;
    expect_change(machine, "only 256 descriptors", "LimitNOFILE=");
    machine.descriptor_limit.reset();
    EXPECT_TRUE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, VersionsThatAreKnownToBeBadAreNamed) {
    for (const Version version : {Version{1, 16}, Version{1, 18}, Version{2, 4}}) {
        Machine machine = sound_machine();
        machine.libfabric = version;
        expect_change(machine, "libfabric " + to_string(version), "1.17");
    }
    for (const Version version : {Version{1, 17}, Version{2, 5}}) {
        Machine machine = sound_machine();
        machine.libfabric = version;
        EXPECT_TRUE(all_passed(diagnose(machine))) << to_string(version);
    }
    Machine machine = sound_machine();
    machine.kernel = {5, 10};
    expect_change(machine, "Linux 5.10", "5.11");
}

TEST(Diagnosis, FaultsThatAPeerCanUseAreNotedWhereThereIsTcp) {
    Machine machine = sound_machine();
    machine.fabric.push_back({.provider = "tcp"});
    EXPECT_THAT(found(machine, Kind::note, "an unsolicited acknowledgement").remedy,
                HasSubstr("unasked-ack"));
    EXPECT_TRUE(all_passed(diagnose(machine)));
    EXPECT_THAT(found(machine, Kind::note, "with empty packets").remedy, Not(HasSubstr("patch")));
    machine.libfabric = {2, 7};
    EXPECT_THAT(found(machine, Kind::note, "an unsolicited acknowledgement").what,
                HasSubstr("newer than 2.6"));
    EXPECT_TRUE(all_passed(diagnose(machine)));
}

TEST(Diagnosis, WithoutAnyProviderLibfabricIsToBeInstalled) {
    Machine machine = sound_machine();
    machine.devices.clear();
    machine.fabric.clear();
    expect_change(machine, "no usable provider", "libfabric1");
}

TEST(Diagnosis, FreeHugePagesAreMissedOnlyWhereThereIsADevice) {
    Machine machine = sound_machine();
    machine.huge_pages->free_count = 0;
    EXPECT_THAT(found(machine, Kind::note, "no huge pages").remedy, HasSubstr("nr_hugepages=256"));
    machine.huge_pages.reset();
    for (const Finding& finding : diagnose(machine))
        EXPECT_THAT(finding.what, Not(HasSubstr("huge pages")));
}

TEST(Version, IsTheFirstTwoNumbers) {
    EXPECT_EQ(parse_version("6.1.0-13-amd64"), (Version{6, 1}));
    EXPECT_EQ(parse_version("1.17"), (Version{1, 17}));
    EXPECT_EQ(parse_version("2.5.1"), (Version{2, 5}));
    for (const char* text : {"", "six", "6", "6.", ".1"})
        EXPECT_THROW(parse_version(text), std::invalid_argument) << text;
}

TEST(Diagnosis, AForeignChoiceOfProvidersIsBlamedAndNotTheInstallation) {
    Machine machine = sound_machine();
    machine.provider_choice = "sockets";
    machine.fabric.clear();
    machine.picked.clear();
    expect_change(machine,
                  "FI_PROVIDER=sockets in the environment prevents libfabric from offering "
                  "tcp and verbs",
                  "unset FI_PROVIDER");
    for (const Finding& finding : diagnose(machine))
        EXPECT_THAT(finding.remedy, Not(HasSubstr("install")));
    machine.devices.clear();
    expect_change(machine, "from offering tcp", "unset FI_PROVIDER");
    machine.provider_choice = "";
    expect_change(machine, "FI_PROVIDER= in the environment", "unset FI_PROVIDER");
}

TEST(Diagnosis, AChoiceOfProvidersThatLeavesSomethingOutIsNamed) {
    Machine machine = sound_machine();
    machine.provider_choice = "verbs";
    expect_change(machine, "from offering tcp", "unset FI_PROVIDER");
    machine.fabric.front().provider = "tcp";
    machine.provider_choice = "tcp";
    expect_change(machine, "from offering verbs", "unset FI_PROVIDER");
}

TEST(Diagnosis, AChoiceOfProvidersThatLeavesNothingOutIsRight) {
    Machine machine = sound_machine();
    machine.provider_choice = "tcp,verbs";
    machine.fabric.push_back(machine.fabric.front());
    machine.fabric.back().provider = "tcp";
    EXPECT_TRUE(all_passed(diagnose(machine)));
    machine.devices.clear();
    machine.fabric.erase(machine.fabric.begin());
    EXPECT_TRUE(all_passed(diagnose(machine))) << "verbs is not needed";
}

class FakeSystem : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "netio-machine-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        root = name;
    }
    void TearDown() override { std::filesystem::remove_all(root); }

    void write(const std::string& path, const std::string& line) const {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream{root / path} << line << '\n';
    }

    std::filesystem::path root;
};

TEST_F(FakeSystem, WithoutDevicesHasNone) {
    EXPECT_THAT(read_devices(root), IsEmpty());
    EXPECT_FALSE(read_huge_pages(root));
}

TEST_F(FakeSystem, DevicesArePortsWithStateAndInterface) {
    const std::string port = "sys/class/infiniband/mlx5_1/ports/1/";
    write(port + "state", "4: ACTIVE");
    write(port + "link_layer", "Ethernet");
    write(port + "rate", "100 Gb/sec (4X EDR)");
    write(port + "gid_attrs/ndevs/0", "enp1s0");
    write("sys/class/net/enp1s0/mtu", "4200");
    write("sys/class/infiniband/mlx5_1/device/vendor", "0x15b3");
    write("sys/class/infiniband_verbs/uverbs3/ibdev", "mlx5_1");
    write("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN");
    const auto devices = read_devices(root);
    ASSERT_EQ(devices.size(), 2U);
    EXPECT_EQ(devices[0].name, "mlx5_1");
    EXPECT_FALSE(devices[0].software);
    EXPECT_FALSE(devices[0].accessible) << "no device node";
    ASSERT_EQ(devices[0].ports.size(), 1U);
    EXPECT_EQ(devices[0].ports[0].number, 1U);
    EXPECT_EQ(devices[0].ports[0].state, "ACTIVE");
    EXPECT_EQ(devices[0].ports[0].link_layer, "Ethernet");
    EXPECT_EQ(devices[0].ports[0].rate, "100 Gb/sec (4X EDR)");
    EXPECT_EQ(devices[0].ports[0].interface, "enp1s0");
    EXPECT_EQ(devices[0].ports[0].interface_mtu, 4200U);
    EXPECT_TRUE(devices[1].software);
    EXPECT_EQ(devices[1].ports[0].state, "DOWN");
    EXPECT_EQ(devices[1].ports[0].interface, "");

    write("dev/infiniband/uverbs3", "");
    EXPECT_TRUE(read_devices(root)[0].accessible);
}

TEST_F(FakeSystem, HugePagesAreCounted) {
    write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "17");
    const auto pages = read_huge_pages(root);
    ASSERT_TRUE(pages);
    EXPECT_EQ(pages->free_count, 17U);
    EXPECT_EQ(pages->bytes_each, 2097152U);
}

} // namespace
} // namespace apps::diagnosis_test
