// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_layout.hpp"

#include "pubsub/core/felix_fid.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace netio::pubsub::fid_layout_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

std::string refusal_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "it is taken";
}

TEST(FelixFid, HasItsBitsWhereTheSpecificationPutsThem) {
    EXPECT_EQ(to_fid({.version = 15, .detector = 0}), Fid{0xf000000000000000});
    EXPECT_EQ(to_fid({.version = 0, .detector = 0xff}), Fid{0x0ff0000000000000});
    EXPECT_EQ(to_fid({.version = 0, .connector = 0xffff}), Fid{0x000ffff000000000});
    EXPECT_EQ(to_fid({.version = 0, .is_virtual = 1}), Fid{0x0000000800000000});
    EXPECT_EQ(to_fid({.version = 0, .link = 0x1fff}), Fid{0x00000007ffc00000});
    EXPECT_EQ(to_fid({.version = 0, .elink = 0x3f}), Fid{0x00000000003f0000});
    EXPECT_EQ(to_fid({.version = 0, .to_flx = 1}), Fid{0x0000000000008000});
    EXPECT_EQ(to_fid({.version = 0, .protocol = 0x7f}), Fid{0x0000000000007f00});
    EXPECT_EQ(to_fid({.version = 0, .stream = 0xff}), Fid{0x00000000000000ff});
}

TEST(FelixFid, AnyFidComesBackFromItsPartsAndFromItsText) {
    std::mt19937_64 random{1};
    for (int round = 0; round < 2000; ++round) {
        const Fid fid{random()};
        const FelixFid parts = to_felix(fid);
        ASSERT_EQ(to_fid(parts), fid);
        ASSERT_EQ(felix_layout().value(fid, "link"), parts.link);
        FidLayout::Choices same;
        for (const FidLayout::Field& field : felix_layout().fields()) {
            const std::uint64_t value = felix_layout().value(fid, field.name);
            same[field.name] = {{.first = value, .last = value}};
        }
        ASSERT_THAT(felix_layout().select(same), ElementsAre(FidRange{fid, fid}));
    }
}

TEST(FidLayout, PrintsWhatIsNotAsUsual) {
    const Fid fid = to_fid({.detector = 3, .link = 5, .elink = 7});
    EXPECT_EQ(felix_layout().print(fid), "{detector: 3, link: 5, elink: 7}");
    EXPECT_EQ(felix_layout().print(Fid{0}), "{version: 0}");
    const FidLayout nibble{"nibble", {{.name = "low", .lowest = 0, .bits = 4}}};
    EXPECT_EQ(nibble.print(Fid{7}), "{low: 7}");
    EXPECT_EQ(nibble.print(Fid{0x17}), "0x17");
}

TEST(FidLayout, TwentyFourLinksOfFortyELinksAreOneSelection) {
    const auto fids = felix_layout().select({{"detector", {{.first = 3, .last = 3}}},
                                             {"link", {{.first = 0, .last = 23}}},
                                             {"elink", {{.first = 0, .last = 39}}}});
    ASSERT_EQ(fids.size(), 960U);
    EXPECT_EQ(fids[0].first, to_fid({.detector = 3}));
    EXPECT_EQ(fids[41].first, to_fid({.detector = 3, .link = 1, .elink = 1}));
}

TEST(FidLayout, WhatIsNotRestrictedIsOneRange) {
    const SteppedRange any_elink{.first = 0, .last = 63};
    const SteppedRange any_low{.first = 0, .last = 1};
    const auto fids = felix_layout().select({{"link", {{.first = 2, .last = 2}}},
                                             {"elink", {any_elink}},
                                             {"to_flx", {any_low}},
                                             {"protocol", {{.first = 0, .last = 127}}},
                                             {"stream", {{.first = 0, .last = 255}}}});
    EXPECT_THAT(fids,
                ElementsAre(FidRange{
                    .first = to_fid({.link = 2}),
                    .last = to_fid(
                        {.link = 2, .elink = 63, .to_flx = 1, .protocol = 127, .stream = 255})}));
}

TEST(FidLayout, ALayoutOfOnesOwnMayLeaveBitsOut) {
    const FidLayout crate{
        "crate",
        {{.name = "crate", .lowest = 8, .bits = 4}, {.name = "channel", .lowest = 2, .bits = 2}}};
    EXPECT_THAT(crate.select({{"crate", {{.first = 1, .last = 2}}},
                              {"channel", {{.first = 0, .last = 3, .step = 3}}}}),
                ElementsAre(range(0x100, 0x100), range(0x10c, 0x10c), range(0x200, 0x200),
                            range(0x20c, 0x20c)));
}

TEST(FidLayout, AMistakeIsNamed) {
    EXPECT_THAT(refusal_of([] {
                    felix_layout().select({{"lnk", {{}}}});
                }),
                HasSubstr("'lnk' is no field of felix, which has version, detector"));
    EXPECT_THAT(refusal_of([] {
                    felix_layout().select({{"elink", {{.first = 0, .last = 64}}}});
                }),
                HasSubstr("elink: 64 is out of range; it has 6 bits, 0 to 63"));
    EXPECT_THAT(refusal_of([] {
                    felix_layout().select({{"link", {{.first = 3, .last = 1}}}});
                }),
                HasSubstr("link: ends before it begins"));
    EXPECT_THAT(refusal_of([] {
                    felix_layout().select({{"connector", {{.first = 0, .last = 65535}}},
                                           {"link", {{.first = 0, .last = 8191}}}});
                }),
                HasSubstr("more than 1048576 ranges"));
    EXPECT_THAT(refusal_of([] {
                    FidLayout{"bad",
                              {{.name = "a", .lowest = 0, .bits = 4},
                               {.name = "b", .lowest = 3, .bits = 4}}};
                }),
                HasSubstr("'a' does not fit, or overlaps"));
}

TEST(FidLayout, ALayoutThatDoesNotFitIsRefused) {
    const auto refusal = [](std::vector<FidLayout::Field> fields) {
        return refusal_of([&] { FidLayout{"bad", std::move(fields)}; });
    };
    constexpr unsigned most = std::numeric_limits<unsigned>::max();
    EXPECT_THAT(refusal({{.name = "a", .lowest = 0, .bits = 0}}), HasSubstr("'a' does not fit"));
    EXPECT_THAT(refusal({{.name = "a", .lowest = 0, .bits = 65}}), HasSubstr("'a' does not fit"));
    EXPECT_THAT(refusal({{.name = "a", .lowest = 60, .bits = 5}}), HasSubstr("'a' does not fit"));
    EXPECT_THAT(refusal({{.name = "a", .lowest = 1, .bits = most}}), HasSubstr("'a' does not fit"));
    EXPECT_THAT(refusal({{.name = "a", .lowest = most, .bits = 1}}), HasSubstr("'a' does not fit"));
    EXPECT_THAT(refusal({{.name = "a", .bits = 3, .usual = 8}}), HasSubstr("usual value of 'a'"));
    EXPECT_THAT(refusal({{.name = "a", .bits = 3, .usual = 7}}), HasSubstr("it is taken"));
    EXPECT_THAT(refusal({{.name = "a", .lowest = 0}, {.name = "a", .lowest = 1}}),
                HasSubstr("two fields are called 'a'"));
}

TEST(FidLayout, AFieldMayHaveAllBits) {
    const FidLayout whole{"whole", {{.name = "number", .lowest = 0, .bits = 64}}};
    EXPECT_EQ(whole.value(Fid{UINT64_MAX - 1}, "number"), UINT64_MAX - 1);
    EXPECT_EQ(whole.print(Fid{UINT64_MAX}), "{number: 18446744073709551615}");
    EXPECT_THAT(whole.select({{"number", {{.first = 3, .last = UINT64_MAX}}}}),
                ElementsAre(range(3, UINT64_MAX)));
}

// As single fids they would exceed the limit of a selection.
TEST(FidLayout, AllOfTheLowerFieldsIsOneRangeHoweverManyFidsItIs) {
    EXPECT_THAT(felix_layout().select({{"detector", {{.first = 3, .last = 3}}},
                                       {"connector", {{.first = 0, .last = 65535}}},
                                       {"virtual", {{.first = 0, .last = 1}}},
                                       {"link", {{.first = 0, .last = 8191}}},
                                       {"elink", {{.first = 0, .last = 63}}},
                                       {"to_flx", {{.first = 0, .last = 1}}},
                                       {"protocol", {{.first = 0, .last = 127}}},
                                       {"stream", {{.first = 0, .last = 255}}}}),
                ElementsAre(FidRange{to_fid({.detector = 3}),
                                     Fid{to_integer(to_fid({.detector = 4})) - 1}}));
}

TEST(FidLayout, ASelectionMayHaveAsManyRangesAsTheLimitAndNoMore) {
    const FidLayout two{
        "two",
        {{.name = "high", .lowest = 11, .bits = 11}, {.name = "low", .lowest = 0, .bits = 11}}};
    const SteppedRange even{.first = 0, .last = 2046, .step = 2};
    EXPECT_EQ(two.select({{"high", {{.first = 0, .last = 1023}}}, {"low", {even}}}).size(),
              selected_ranges_limit);
    EXPECT_THAT(refusal_of([&] {
                    two.select({{"high", {{.first = 0, .last = 1024}}}, {"low", {even}}});
                }),
                HasSubstr("more than 1048576 ranges"));
    // The values of one field together must not exceed it either.
    const FidLayout one{"one", {{.name = "number", .lowest = 0, .bits = 24}}};
    constexpr std::uint64_t half = selected_ranges_limit / 2;
    const SteppedRange first{.first = 0, .last = 2 * (half - 1), .step = 2};
    const auto second = [&](std::uint64_t count) {
        return SteppedRange{.first = 4 * half, .last = 4 * half + 2 * (count - 1), .step = 2};
    };
    EXPECT_EQ(one.select({{"number", {first, second(half)}}}).size(), selected_ranges_limit);
    EXPECT_THAT(refusal_of([&] {
                    one.select({{"number", {first, second(half + 1)}}});
                }),
                HasSubstr("number: more than 1048576 ranges"));
}

TEST(MaskedFids, AreExactlyTheMatchingFids) {
    std::mt19937 random{1};
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t mask = 0xffffffffffffff00 | (random() & 0xff);
        const std::uint64_t value = random() & mask & 0xff;
        const auto ranges = masked_fids(mask, value);
        for (std::uint64_t fid = 0; fid < 300; ++fid) {
            const bool within = std::ranges::any_of(
                ranges, [&](const FidRange& each) { return contains(each, Fid{fid}); });
            ASSERT_EQ(within, (fid & mask) == value) << mask << ' ' << value << ' ' << fid;
        }
    }
}

TEST(MaskedFids, WhatIsFreeBelowTheMaskIsOneRange) {
    EXPECT_THAT(masked_fids(0xfffffffffffff000, 0x12000), ElementsAre(range(0x12000, 0x12fff)));
}

TEST(MaskedFids, AreBounded) {
    EXPECT_THAT(masked_fids(0, 0), ElementsAre(range(0, UINT64_MAX)));
    EXPECT_THAT(masked_fids(UINT64_MAX, 5), ElementsAre(range(5, 5)));
    EXPECT_THAT(refusal_of([] { masked_fids(1, 1); }), HasSubstr("more than 1048576 ranges"));
    EXPECT_THAT(refusal_of([] { masked_fids(1, 2); }), HasSubstr("no fid matches"));
}

TEST(MaskedFids, MayBeAsManyRangesAsTheLimit) {
    constexpr std::uint64_t free = (selected_ranges_limit - 1) << 1; // one free bit per doubling
    EXPECT_EQ(masked_fids(~free, 1).size(), selected_ranges_limit);
    EXPECT_THAT(refusal_of([] { masked_fids(~(2 * selected_ranges_limit | free), 1); }),
                HasSubstr("more than 1048576 ranges"));
}

TEST(SteppedFids, MayBeAsManyAsTheLimit) {
    constexpr std::uint64_t limit = selected_ranges_limit;
    EXPECT_EQ(stepped_fids({.first = 5, .last = 5 + 3 * (limit - 1), .step = 3}).size(), limit);
    EXPECT_THAT(refusal_of([] { stepped_fids({.first = 5, .last = 5 + 3 * limit, .step = 3}); }),
                HasSubstr("more than 1048576 ranges"));
    EXPECT_THAT(stepped_fids({.first = 0, .last = UINT64_MAX, .step = 1}),
                ElementsAre(range(0, UINT64_MAX)))
        << "one range, of any length";
}

TEST(SteppedFids, GoUpToTheLastOne) {
    EXPECT_THAT(stepped_fids({.first = 0, .last = 9, .step = 4}),
                ElementsAre(range(0, 0), range(4, 4), range(8, 8)));
    EXPECT_THAT(stepped_fids({.first = UINT64_MAX - 1, .last = UINT64_MAX, .step = 5}),
                ElementsAre(range(UINT64_MAX - 1, UINT64_MAX - 1)));
    EXPECT_THAT(refusal_of([] { stepped_fids({.first = 0, .last = UINT64_MAX, .step = 2}); }),
                HasSubstr("more than"));
    EXPECT_THAT(refusal_of([] { stepped_fids({.first = 0, .last = 1, .step = 0}); }),
                HasSubstr("step 0"));
}

} // namespace
} // namespace netio::pubsub::fid_layout_test
