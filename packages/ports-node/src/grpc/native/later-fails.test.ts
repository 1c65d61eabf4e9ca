/** Loading grpc-js late may fail, for want of file descriptors, say: what waits fails, and what comes next does not. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { silentLogger } from "@stamp/ports";
import { LockService } from "@stamp/wire";
import { LaterClient } from "./later.ts";
import { LaterServer } from "./later-server.ts";
import { isFromSources } from "./load.ts";

const method = LockService.method.getLease;

test("later client: after a failure the next call tries again", async () => {
  let calls = 0;
  const client = new LaterClient(async () => {
    if (++calls === 1) throw new Error("EMFILE");
    return { method: () => async () => "answer", close: () => {} };
  });
  const call = client.method(LockService, method) as () => Promise<unknown>;
  await assert.rejects(Promise.all([call(), call()]), /EMFILE/);
  assert.equal(calls, 1);
  assert.equal(await call(), "answer");
  assert.equal(calls, 2);
});

test("later client: a failure that comes after its close is nobody's unhandled rejection", async (t) => {
  const unhandled: unknown[] = [];
  const hear = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", hear);
  t.after(() => process.off("unhandledRejection", hear));
  const { promise, reject } = Promise.withResolvers<never>();
  const client = new LaterClient(() => promise);
  const call = (client.method(LockService, method) as () => Promise<unknown>)();
  client.close();
  reject(new Error("EMFILE"));
  await assert.rejects(call, /EMFILE/);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(unhandled, []);
});

/** A server that gives what connects to a later server, whose module is loaded by `load`. */
async function serving(t: TestContext, load: () => Promise<never>, logger = silentLogger): Promise<{ later: LaterServer; url: string }> {
  const later = new LaterServer(logger, () => ({}) as never, load);
  const server: Server = createServer((socket) => later.take(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { later, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function isEnded(url: string): Promise<void> {
  const session = connectHttp2(url);
  session.on("error", () => {});
  await once(session, "close");
}

test("later server: after a failure the next connection tries again, and only the first failure in a row is logged", async (t) => {
  let calls = 0;
  const logged: string[] = [];
  const taken: Socket[] = [];
  class Made {
    take(socket: Socket): void {
      taken.push(socket);
      socket.destroy();
    }
  }
  const load = async (): Promise<never> => {
    if (++calls <= 2) throw new Error("EMFILE");
    return { GrpcServer: Made } as never;
  };
  const { url } = await serving(t, load, { ...silentLogger, error: (text: string) => void logged.push(text) });
  for (let at = 0; at < 4; at++) await isEnded(url);
  assert.equal(calls, 3);
  assert.equal(taken.length, 2);
  assert.equal(logged.length, 1);
});

test("later server: after it was told to leave, none is made", async (t) => {
  let made = 0;
  class Made {
    constructor() {
      made++;
    }
  }
  const { promise: loading, resolve: loaded } = Promise.withResolvers<never>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { later, url } = await serving(t, () => {
    ask();
    return loading;
  });
  const waiting = isEnded(url);
  await asked;
  const left = later.leave();
  loaded({ GrpcServer: Made } as never);
  assert.equal(await left, undefined);
  await waiting;
  await isEnded(url);
  assert.equal(made, 0);
});

const program = `
import { createRequire } from "node:module";
const { loadGrpcSoon } = await import(${JSON.stringify(pathToFileURL(new URL("load.ts", import.meta.url).pathname).href)});
const loaded = () => Object.keys(createRequire("file:///x.js").cache).some((name) => /@grpc/.test(name));
let run;
loadGrpcSoon({ after: (delayMs, callback) => { run = callback; } }, { warn: () => {} });
const before = loaded();
run();
while (!loaded()) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(before);
process.exit(0);
`;

test("load: a process that runs from its sources loads grpc-js without a call, after its start", async () => {
  assert.equal(isFromSources(import.meta.url), true);
  assert.equal(isFromSources("file:///stamp/.tools/bundle/0f/extent-node.mjs"), false);
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 60_000 });
  assert.equal(stdout.trim(), "false");
});
