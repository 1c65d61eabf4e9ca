import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { portsOfBase, type ReservedPorts, reservePorts } from "./port-base.ts";
import { takenPorts } from "./ports-in-use.ts";

test("ports: a base is reserved for one, although none of its other ports is used, until it is released", async (t) => {
  const reserved: ReservedPorts[] = [];
  t.after(() => Promise.all(reserved.map(({ release }) => release())));
  for (let at = 0; at < 5; at++) reserved.push(await reservePorts());
  assert.equal(new Set(reserved.map(({ portBase }) => portBase)).size, 5);
  const [{ portBase } = assert.fail()] = reserved;
  const wanted = new Map(Array.from({ length: portsOfBase }, (_, at) => [portBase + at, "test"]));
  assert.deepEqual(
    (await takenPorts("127.0.0.1", wanted)).map(({ port }) => port - portBase),
    [99],
  );
});

test("ports: a base with one port in use is not chosen", async (t) => {
  const { portBase, release } = await reservePorts();
  const server = createServer().listen(portBase + 207, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  await release();
  t.mock.method(Math, "random", () => (portBase - 12_000) / portsOfBase / 65);
  const other = await reservePorts();
  t.after(() => other.release());
  assert.notEqual(other.portBase, portBase);
});
