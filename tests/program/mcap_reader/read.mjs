// SPDX-License-Identifier: Apache-2.0
// Reads MCAP files with @mcap/core: node read.mjs FOLDER_OF_NODE_MODULES FILE...
//
// Prints an object for each file, one a line: what its records contain, in order of the file, and
// whether the index at its end leads to the same messages.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(join(resolve(folder), "from.js"));
const { McapIndexedReader, McapStreamReader } = require("@mcap/core");
const { loadDecompressHandlers } = require("@mcap/support");

const u64 = (data, at) => new DataView(data.buffer, data.byteOffset).getBigUint64(at, true);

class Contents {
  constructor() {
    this.messages = 0;
    this.events = [];
    this.fids = {};
    this.lastTime = 0n;
    this.inOrder = true;
  }
  add(channel, message) {
    if (message.logTime < this.lastTime) this.inOrder = false;
    this.lastTime = message.logTime;
    if (channel.topic === "netio/events") {
      this.events.push(JSON.parse(new TextDecoder().decode(message.data)));
      return;
    }
    const shared = channel.messageEncoding === "netio-fid/1";
    if (!shared && channel.messageEncoding !== "netio/1") throw new Error(channel.messageEncoding);
    const fid = "0x" + (shared ? u64(message.data, 16) : BigInt(channel.metadata.get("fid"))).toString(16);
    const sequence = u64(message.data, 8);
    if (message.sequence !== Number(sequence & 0xffffffffn)) throw new Error("sequences differ");
    const bytes = message.data.subarray(shared ? 24 : 16);
    this.messages += 1;
    const row = (this.fids[fid] ??= {
      messages: 0, bytes: 0, first: Number(sequence), last: -1, skipped: 0, hash: createHash("sha256"),
    });
    if (row.messages > 0) row.skipped += Number(sequence) - row.last - 1;
    row.last = Number(sequence);
    row.messages += 1;
    row.bytes += bytes.length;
    row.hash.update(bytes);
  }
  result() {
    for (const row of Object.values(this.fids)) row.hash = row.hash.digest("hex");
    return {
      messages: this.messages, events: this.events, fids: this.fids, in_order: this.inOrder,
    };
  }
}

function readStream(bytes, decompressHandlers) {
  const reader = new McapStreamReader({ decompressHandlers, validateCrcs: true });
  const contents = new Contents();
  const channels = new Map();
  let metadata;
  let header;
  reader.append(bytes);
  for (let record; (record = reader.nextRecord()); ) {
    if (record.type === "Channel") channels.set(record.id, record);
    else if (record.type === "Message") contents.add(channels.get(record.channelId), record);
    else if (record.type === "Metadata") metadata = Object.fromEntries(record.metadata);
    else if (record.type === "Header") header = { profile: record.profile, library: record.library };
  }
  return { ...contents.result(), ...header, metadata, closed: reader.done() };
}

async function readIndexed(bytes, decompressHandlers) {
  const readable = {
    size: async () => BigInt(bytes.length),
    read: async (offset, size) => bytes.subarray(Number(offset), Number(offset + size)),
  };
  const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
  const contents = new Contents();
  for await (const message of reader.readMessages())
    contents.add(reader.channelsById.get(message.channelId), message);
  return { ...contents.result(), counted: Number(reader.statistics.messageCount) };
}

const decompressHandlers = await loadDecompressHandlers();
for (const file of files) {
  const bytes = new Uint8Array(readFileSync(file));
  const result = readStream(bytes, decompressHandlers);
  if (result.closed) {
    const indexed = await readIndexed(bytes, decompressHandlers);
    result.index_agrees =
      indexed.counted === result.messages + result.events.length &&
      indexed.in_order &&
      JSON.stringify(Object.entries(indexed.fids).sort()) === JSON.stringify(Object.entries(result.fids).sort());
  }
  console.log(JSON.stringify(result));
}
