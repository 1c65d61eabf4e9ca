/** A server process that is killed or hangs: its callers learn it, with the right word about what was applied. Also streams both ways. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import type { DescMethodBiDiStreaming } from "@bufbuild/protobuf";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { FailureError, ok, unwrap } from "@stamp/base";
import type { ServedService } from "@stamp/ports";
import { servedPartly } from "@stamp/ports";
import { FrontEnd, LockService } from "@stamp/wire";
import { InProcessNetwork } from "../in-process.ts";
import { GrpcTransport } from "./transport.ts";

const services = (): ServedService[] => [
  servedPartly(LockService, { listLeases: async () => ok({}), getLease: () => new Promise(() => {}) }),
  servedPartly(FrontEnd, {
    getBlob: async function* () {
      yield { payload: new Uint8Array([1]) };
      await new Promise(() => {});
    },
  }),
];

async function child(): Promise<{ process: ChildProcess; address: string }> {
  const process = fork(new URL(import.meta.url), ["server"], { stdio: "inherit", execArgv: [] });
  const [address] = (await once(process, "message")) as [string];
  return { process, address };
}

if (process.argv[2] === "server") {
  const listener = await new GrpcTransport().serve("127.0.0.1:0", services());
  process.send?.(listener.address);
  process.on("disconnect", () => process.exit(0));
} else {
  test("connection loss: calls written before are unknown, later ones not applied; streams fail", { timeout: 90_000 }, async () => {
    const server = await child();
    const client = new GrpcTransport();
    try {
      const lock = client.client(server.address, LockService);
      unwrap(await lock.listLeases({}, { timeoutMs: 5_000 }));
      const stream = client.client(server.address, FrontEnd).getBlob({}, { timeoutMs: 20_000 })[Symbol.asyncIterator]();
      assert.equal((await stream.next()).done, false);
      const hanging = Array.from({ length: 5 }, () => lock.getLease({}, { timeoutMs: 20_000 }));
      const streamEnd = stream.next().catch((error: unknown) => error);
      await new Promise((resolve) => setTimeout(resolve, 100));
      server.process.kill("SIGKILL");
      for (const outcome of await Promise.all(hanging)) {
        assert.ok(
          !outcome.ok && outcome.failure.reason === "connectionLost" && outcome.failure.applied === "unknown",
          JSON.stringify(outcome),
        );
      }
      const error = await streamEnd;
      assert.ok(
        error instanceof FailureError && error.failure.reason === "connectionLost" && error.failure.applied === "unknown",
        String(error),
      );
      const later = await lock.listLeases({}, { timeoutMs: 5_000 });
      assert.ok(!later.ok && later.failure.reason === "connectFailed" && later.failure.applied === "no", JSON.stringify(later));
    } finally {
      server.process.kill("SIGKILL");
      await client.close();
    }
  });

  test("connection loss: a process that is stopped answers nothing; its callers still get their answer by the deadline", {
    timeout: 90_000,
  }, async () => {
    const server = await child();
    const client = new GrpcTransport();
    try {
      const lock = client.client(server.address, LockService);
      unwrap(await lock.listLeases({}, { timeoutMs: 5_000 }));
      server.process.kill("SIGSTOP");
      const outcome = await lock.listLeases({}, { timeoutMs: 200 });
      assert.ok(!outcome.ok && outcome.failure.reason === "timeout" && outcome.failure.applied === "unknown", JSON.stringify(outcome));
      const fresh = new GrpcTransport();
      const unopened = await fresh.client(server.address, LockService).listLeases({}, { timeoutMs: 200 });
      assert.ok(!unopened.ok && unopened.failure.applied === "no", JSON.stringify(unopened));
      await fresh.close();
      server.process.kill("SIGCONT");
      unwrap(await lock.listLeases({}, { timeoutMs: 10_000 }));
    } finally {
      server.process.kill("SIGKILL");
      await client.close();
    }
  });

  const file = create(FileDescriptorProtoSchema, {
    name: "test/echo.proto",
    package: "test",
    syntax: "proto3",
    messageType: [{ name: "Word", field: [{ name: "text", jsonName: "text", number: 1, type: 9, label: 1 }] }],
    service: [
      {
        name: "Echo",
        method: [{ name: "Talk", inputType: ".test.Word", outputType: ".test.Word", clientStreaming: true, serverStreaming: true }],
      },
    ],
  });
  const echo = createFileRegistry(file, () => undefined).getService("test.Echo");
  assert.ok(echo);
  assert.equal((echo.methods[0] as DescMethodBiDiStreaming).methodKind, "bidi_streaming");

  for (const kind of ["gRPC", "in process"]) {
    test(`streams both ways, ${kind}: each side sees the other's messages as they come, and may leave`, { timeout: 90_000 }, async () => {
      type Word = { text: string };
      type Talk = (words: AsyncIterable<Word>, context: unknown) => AsyncIterable<Word>;
      const network = new InProcessNetwork();
      const server = kind === "gRPC" ? new GrpcTransport() : network.transport("server");
      const client = kind === "gRPC" ? new GrpcTransport() : network.transport("client");
      const talk: Talk = async function* (words) {
        for await (const word of words) {
          if (word.text === "fail") throw new FailureError({ code: "aborted", reason: "conflict", message: "asked to", applied: "no" });
          yield { text: `${word.text}!` };
        }
      };
      const listener = await server.serve(kind === "gRPC" ? "127.0.0.1:0" : "server", [{ service: echo, handlers: { talk } as never }]);
      try {
        const call = (client.client(listener.address, echo) as unknown as { talk: Talk }).talk;
        let source = "open";
        const words = async function* (...texts: string[]): AsyncIterable<Word> {
          try {
            for (const text of texts) yield { text };
          } finally {
            source = "closed";
          }
        };
        const heard: string[] = [];
        for await (const word of call(words("a", "b", "c"), { timeoutMs: 5_000 })) heard.push(word.text);
        assert.deepEqual([heard, source], [["a!", "b!", "c!"], "closed"]);
        await assert.rejects(
          async () => {
            for await (const word of call(words("a", "fail", "never"), { timeoutMs: 5_000 })) heard.push(word.text);
          },
          (error: unknown) => error instanceof FailureError && error.failure.reason === "conflict",
        );
        source = "open";
        const endless = async function* (): AsyncIterable<Word> {
          try {
            for (;;) {
              yield { text: "x" };
              await new Promise((resolve) => setImmediate(resolve));
            }
          } finally {
            source = "closed";
          }
        };
        for await (const word of call(endless(), { timeoutMs: 5_000 })) {
          assert.equal(word.text, "x!");
          break;
        }
        for (let i = 0; i < 3_000 && source !== "closed"; i++) await new Promise((resolve) => setTimeout(resolve, 10));
        assert.equal(source, "closed", "the source of a stream that was left is returned");
      } finally {
        await client.close();
        await listener.close(0);
      }
    });
  }
}
