/** `stamp file`, against a front-end and a lock service in this process. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { ok, refused } from "@stamp/base";
import { type Handlers, type Listener, served } from "@stamp/ports";
import { GrpcTransport } from "@stamp/ports-node";
import { FileHandles, LockService } from "@stamp/wire";
import { Command } from "commander";
import type { CommandError } from "../exit.ts";
import { addWords } from "../top-level.ts";

type Asked = Readonly<Record<string, unknown>>;
const asked: (readonly [call: string, request: Asked])[] = [];
/** Code of the next refusal of the front-end. */
let refusal: string | undefined;
const held = new Set<string>();

const folder = mkdtempSync(join(tmpdir(), "stamp-file-"));
/** The stamp has no secret. */
const data = join(folder, "without-secret");
const transport = new GrpcTransport({});
let listener: Listener;

const answerOf =
  (call: string, answer: object) =>
  async ({ $typeName: _, ...request }: Asked & { readonly $typeName: string }) => {
    asked.push([call, request]);
    const code = refusal;
    refusal = undefined;
    return code === undefined ? ok(answer) : refused("alreadyExists", "conflict", "no", { "x-ms-error-code": code });
  };

before(async () => {
  const lock = { startBytes: 0n, endBytes: 100n, exclusive: true };
  const state = { id: "7", session: "g", sessionEpoch: 3n, access: 3, share: 0, client: "c", openedMs: 0n, locks: [lock] };
  const files = {
    open: answerOf("open", { handle: "docs/1/a/7", lengthBytes: 10n }),
    lock: answerOf("lock", {}),
    unlock: answerOf("unlock", {}),
    setDisposition: answerOf("setDisposition", {}),
    close: answerOf("close", {}),
    list: answerOf("list", { deletePending: true, handles: [{ handle: "docs/1/a/7", state }] }),
  };
  const locks = {
    acquireLease: async ({ name }: { name: string }) => {
      if (held.has(name)) return refused("failedPrecondition", "leaseHeld", "held");
      held.add(name);
      return ok({ leaseEpoch: 4n, termMs: 15_000 });
    },
    renewLease: async () => ok({ leaseEpoch: 4n, termMs: 15_000 }),
    releaseLease: async ({ name }: { name: string }) => {
      held.delete(name);
      return ok({});
    },
  };
  const services = [
    served(FileHandles, files as unknown as Handlers<typeof FileHandles>),
    served(LockService, locks as unknown as Handlers<typeof LockService>),
  ];
  listener = await transport.serve("127.0.0.1:0", services);
  process.env.STAMP_PROCESSES = `lock-service=${listener.address} front-end-1=${listener.address}`;
});
after(async () => {
  delete process.env.STAMP_PROCESSES;
  await listener.close(0);
  await transport.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(...args: readonly string[]): Promise<{ readonly error: CommandError | undefined; readonly out: string }> {
  const lines: string[] = [];
  const log = mock.method(console, "log", (line: string) => void lines.push(line));
  const words = ["file", ...args];
  const program = new Command("stamp");
  await addWords(program, words);
  const error = await program.parseAsync([...words, "--data", data], { from: "user" }).then(
    () => undefined,
    (thrown: CommandError) => thrown,
  );
  log.mock.restore();
  return { error, out: lines.join("\n") };
}

test("stamp file open: takes the first session that is free, holds the file for its time, closes it and ends the session", async () => {
  held.add("files/stamp-file-1");
  asked.length = 0;
  const { error, out } = await run("open", "docs/in/a.txt", "--access", "read,write", "--share", "none", "--for", "1");
  assert.equal(error, undefined);
  assert.equal(out, "docs/1/a/7\nclosed");
  const [[, request] = ["", {}], [last] = [""]] = [asked[0], asked.at(-1)];
  const { account: _, ...rest } = request as Asked;
  const session = { session: "stamp-file-2", sessionEpoch: 4n };
  const rights = { access: 3, shareMode: 0, deleteOnClose: false, client: "stamp file" };
  assert.deepEqual(rest, { share: "docs", path: "in/a.txt", ...session, ...rights });
  assert.equal(last, "close");
  assert.deepEqual([...held], ["files/stamp-file-1"]);
});

test("stamp file open: a refusal says who to look for, and the session is free again", async () => {
  refusal = "SharingViolation";
  const { error } = await run("open", "docs/a.txt", "--for", "1");
  assert.match(error?.message ?? "", /^SharingViolation: somebody has the file open.*stamp file list/);
  assert.deepEqual([...held], ["files/stamp-file-1"]);
});

test("stamp file list, lock, unlock, mark and close take the handle and say what happened", async () => {
  asked.length = 0;
  const { out } = await run("list", "docs/a.txt");
  assert.match(out, /docs\/1\/a\/7 {2}g\/3 {6}read,write {2}none {4}0-99/);
  assert.match(out, /marked for deletion/);
  assert.equal((await run("lock", "docs/1/a/7", "5-9", "--shared")).out, "5-9: locked");
  assert.equal((await run("unlock", "docs/1/a/7", "5-9")).out, "5-9: unlocked");
  await run("mark", "docs/1/a/7", "--undo");
  assert.equal((await run("close", "docs/1/a/7")).out, "closed");
  assert.deepEqual(
    asked.map(([call]) => call),
    ["list", "lock", "unlock", "setDisposition", "close"],
  );
  const { startBytes, endBytes, exclusive } = (asked[1]?.[1].lock ?? {}) as Asked;
  assert.deepEqual([startBytes, endBytes, exclusive], [5n, 10n, false]);
  assert.equal(asked[3]?.[1].deletePending, false);
});
