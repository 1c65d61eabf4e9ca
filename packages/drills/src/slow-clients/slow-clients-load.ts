/**
 * The slow side of the drill `slow-clients`, a process of its own: readers of a public blob and writers of bodies, each at a rate between 1 byte
 * and 10 KiB in a second. A client whose connection ends connects again after a second. Writes "begun" to standard output when all have sent
 * their requests, and then every second the counts of their outcomes as JSON; ends when its standard input does.
 */
import { createHmac } from "node:crypto";
import { connect } from "node:net";
import { constants, setPriority } from "node:os";
import { signRequest } from "@stamp/azure-rest";
import type { SlowLoad, SlowTold } from "./slow-clients-drill.ts";

const load = JSON.parse(process.argv.at(-1) ?? "{}") as SlowLoad;
const rateMax = 10 * 1024;
const announcedBytes = 4 * 1024 * 1024;
const told: { -readonly [K in keyof SlowTold]: SlowTold[K] } = { begun: 0, ended: 0, refused: 0, receivedBytes: 0, sentBytes: 0 };
const key = Buffer.from(load.key, "base64");

// Only the server is measured.
setPriority(constants.priority.PRIORITY_LOW);

function headOf(reads: boolean, at: number): string {
  const target = reads
    ? load.readTarget
    : at % 4 < 2
      ? `${load.writeTarget}-${at}?comp=blocklist`
      : `${load.writeTarget}-${at}?comp=block&blockid=AAAA`;
  const method = reads ? "GET" : "PUT";
  const given = reads ? {} : { "content-length": String(announcedBytes), "content-type": "application/octet-stream" };
  const signed = reads
    ? { "x-ms-version": "2025-01-05" }
    : signRequest({ method, target, headers: given }, load.account, key, Date.now(), (secret, text) =>
        createHmac("sha256", secret).update(text).digest(),
      );
  const lines = Object.entries({ host: `${load.host}:${load.port}`, ...signed }).map(([name, value]) => `${name}: ${value}`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Runs one client for ever. Rates are spread evenly over the orders of magnitude. */
function begin(at: number, reads: boolean, count: number): void {
  const rate = Math.max(1, Math.round(rateMax ** (Math.floor(at / 2) / (count / 2))));
  // With one address the system chooses it: in a container it is none of loopback.
  const from = load.addresses === 1 ? {} : { localAddress: `127.0.1.${1 + (at % load.addresses)}` };
  const socket = connect({ host: load.host, port: load.port, ...from });
  let answered = false;
  let timer: NodeJS.Timeout | undefined;
  const look = (chunk: Buffer | null): void => {
    if (chunk === null) return;
    told.receivedBytes += chunk.length;
    if (!answered && chunk.toString("latin1", 0, 12).startsWith("HTTP/1.1 503")) told.refused++;
    answered = true;
  };
  socket.on("error", () => {});
  socket.on("readable", () => {
    // A writer hears what it is told at once.
    if (!reads) look(socket.read() as Buffer | null);
  });
  socket.on("connect", () => {
    socket.write(headOf(reads, at));
    told.begun++;
    timer = setInterval(() => {
      if (reads) look(socket.read(Math.min(rate, socket.readableLength)) as Buffer | null);
      else if (socket.writable && socket.writableLength < rate) {
        socket.write(Buffer.alloc(rate, "<"));
        told.sentBytes += rate;
      }
    }, 1_000);
  });
  socket.on("end", () => socket.destroy());
  socket.on("close", () => {
    clearInterval(timer);
    told.ended++;
    setTimeout(() => begin(at, reads, count), 1_000);
  });
}

let next = 0;
const all = load.readers + load.writers;
const starting = setInterval(() => {
  for (let i = 0; i < 50 && next < all; i++, next++) begin(next, next % 2 === 0, all);
  if (next >= all) clearInterval(starting);
}, 50);
setInterval(() => process.stdout.write(`${JSON.stringify(told)}\n`), 1_000);
process.stdin.on("end", () => process.exit(0)).resume();
