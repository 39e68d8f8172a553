// SPDX-License-Identifier: Apache-2.0
// A responder and a requester in one program, which may be called from any thread.
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"

#include <exception>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

static void run() {
    netio::Responder responder{"127.0.0.1:0"};
    std::thread answering{[&] {
        for (netio::Request& request : responder)
            request.reply("hello " + std::string{request.text()});
    }};
    try {
        netio::Requester requester{responder.endpoints().front().address};
        std::cout << requester.request("world").text() << '\n';
        netio::Reply reply = requester.send("everybody", 5s); // does not wait
        while (const auto part = reply.next())
            std::cout << part->text() << '\n';
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
    }
    responder.close(); // ends the iteration
    answering.join();
}

int main() {
    try {
        run();
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
