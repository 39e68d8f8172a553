// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sub-commands of the program netio. Each function adds its command to the command line and
// returns the function to run if the command is chosen. That function returns the exit status, and
// throws std::invalid_argument if a value on the command line is wrong.

#include <functional>

namespace CLI {
class App;
}

namespace apps {

using Command = std::function<int()>;

Command add_publish(CLI::App& program);
Command add_subscribe(CLI::App& program);
Command add_record(CLI::App& program);
Command add_pump(CLI::App& program);
Command add_cat(CLI::App& program);
Command add_copy(CLI::App& program);
Command add_file(CLI::App& program);
Command add_info(CLI::App& program);
Command add_doctor(CLI::App& program);
Command add_key(CLI::App& program);
Command add_list(CLI::App& program);
Command add_dump(CLI::App& program);
Command add_listen(CLI::App& program);
Command add_replay(CLI::App& program);
Command add_request(CLI::App& program);
Command add_respond(CLI::App& program);
Command add_send(CLI::App& program);
Command add_top(CLI::App& program);

// Makes every --bus accept etcd://..., too.
void add_etcd_bus();

} // namespace apps
