/**
 * `stamp file open|list|lock|unlock|mark|close`: files of shares, held open as a gateway holds them, so that every answer of REST beside an
 * open file can be seen by hand (docs/guides/files.md). `open` is the gateway: it keeps a session for as long as it runs.
 */
import { createHmac, randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { makeToken } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import { lockServices } from "@stamp/metadata-store";
import type { Client } from "@stamp/ports";
import { NodeClock } from "@stamp/ports-node";
import { FileHandles, LockService, type OpenHandle } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes } from "../context.ts";
import { table } from "../print.ts";
import { inspect, make as makeBelow, tell, wantsJson } from "../running.ts";
import { say } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { accountName, kindOf, whole } from "../values.ts";

const callTimeoutMs = 10_000;
const tokenMs = 3_600_000;
/** Term of the session of `open`, and the time between its renewals, in milliseconds. */
const termMs = 15_000;
const renewEveryMs = 3_000;
/** Time before the lock service may say so from which on the session has ended for its holder, in milliseconds. */
const marginMs = 1_000;
/** Sessions that this command takes the first free one of: a name of a lease is kept for good. */
const sessionsMax = 32;
const secondsMax = 86_400;

const rights: Readonly<Record<string, number>> = { none: 0, read: 1, write: 2, delete: 4 };
const rightsKind = kindOf("read,write", (text) =>
  text.split(",").every((word) => word in rights) ? undefined : `words of ${Object.keys(rights).join(", ")}, with commas between`,
);
const rightsOf = (text: string): number => text.split(",").reduce((sum, word) => sum | (rights[word] ?? 0), 0);
const rightsText = (sum: number): string =>
  Object.entries(rights)
    .filter(([, right]) => (sum & right) !== 0)
    .map(([word]) => word)
    .join(",") || "none";

const rangeShape = /^(\d{1,15})-(\d{1,15})$/;
const rangeKind = kindOf("0-99", (text) => {
  const [, first, last] = rangeShape.exec(text) ?? [];
  return first !== undefined && Number(first) <= Number(last) ? undefined : "the first and the last byte, e.g. 0-99";
});
const pathKind = kindOf("docs/a.txt", (text) => (/^[^/]+\/./.test(text) ? undefined : "SHARE/PATH, e.g. docs/a.txt"));

interface Door {
  readonly account: string;
  readonly files: Client<typeof FileHandles>;
  readonly locks: Client<typeof LockService>;
  readonly options: { readonly timeoutMs: number; readonly metadata: { readonly authorization: string } };
}

export function addFile(program: Command): void {
  const file = topLevel(program, "file");
  const make = (name: string, about: string): Command =>
    makeBelow(file, name, about)
      .option("--account <name>", "account (default: the first of the configuration)", accountName)
      .option("--key <base64>", "account key, when the account is not in the configuration");
  make("open", "hold a file open until --for is over or Ctrl-C; prints the handle that the other commands take")
    .argument("<path>", "SHARE/PATH of a file that is there", pathKind)
    .option("--access <rights>", "what the handle may do: read, write, delete, or none for its properties", rightsKind, "read")
    .option("--share <rights>", "what others may do meanwhile: read, write, delete, or none", rightsKind, "read,write,delete")
    .option("--delete-on-close", "delete the file when the handle is closed; needs the right to delete")
    .option("--for <seconds>", "close it after this time", whole(1, secondsMax), String(secondsMax))
    .action((path: string, options: OpenOptions, command: Command) => withDoor(command, (door) => holdOpen(command, door, path, options)));
  make("list", "handles of a file, and whether it is marked for deletion")
    .argument("<path>", "SHARE/PATH of the file", pathKind)
    .action((path: string, _options, command: Command) =>
      withDoor(command, async ({ account, files, options }) => {
        const { handles, deletePending } = given(await files.list({ account, ...placeOf(path) }, options));
        tell(command, { deletePending, handles: handles.map(toldHandle) }, (told) => listText(told));
      }),
    );
  for (const action of ["lock", "unlock"] as const) {
    const about = action === "lock" ? "lock a byte range for a handle" : "take a lock away, by exactly its range";
    const made = make(action, about)
      .argument("<handle>", "answer of open")
      .argument("<range>", "first and last byte, e.g. 0-99", rangeKind);
    if (action === "lock") made.option("--shared", "others may read the range, and nobody writes it");
    made.action((handle: string, range: string, { shared = false }: { shared?: boolean }, command: Command) =>
      withDoor(command, async ({ account, files, options }) => {
        const [, first = "0", last = "0"] = rangeShape.exec(range) ?? [];
        const lock = { startBytes: BigInt(first), endBytes: BigInt(last) + 1n, exclusive: !shared };
        given(await files[action]({ account, handle, lock }, options));
        tell(command, { handle, range, action }, () => `${range}: ${action}ed`);
      }),
    );
  }
  make("mark", "mark the file of a handle for deletion: it goes with its last handle")
    .argument("<handle>", "answer of open")
    .option("--undo", "take the mark back")
    .action((handle: string, { undo = false }: { undo?: boolean }, command: Command) =>
      withDoor(command, async ({ account, files, options }) => {
        given(await files.setDisposition({ account, handle, deletePending: !undo }, options));
        tell(command, { handle, deletePending: !undo }, () => (undo ? "not marked" : "marked for deletion: gone with its last handle"));
      }),
    );
  make("close", "close a handle; a file that is marked for deletion goes with its last one")
    .argument("<handle>", "answer of open")
    .action((handle: string, _options, command: Command) =>
      withDoor(command, async ({ account, files, options }) => {
        given(await files.close({ account, handle }, options));
        tell(command, { handle }, () => "closed");
      }),
    );
}

async function withDoor(command: Command, work: (door: Door) => Promise<void>): Promise<void> {
  const { account, key } = command.opts<{ account?: string; key?: string }>();
  const { accounts } = configOf(command);
  const found = account === undefined ? accounts[0] : accounts.find((each) => each.name === account);
  const [name, usedKey] = [account ?? found?.name, key ?? found?.keys[0]];
  if (name === undefined || usedKey === undefined) {
    throw new CommandError(`no key of the account ${account} is known: give --key`, exitCodes.usage);
  }
  const sign = (by: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", by).update(message).digest();
  const token = makeToken({ account: name, expiresMs: Date.now() + tokenMs }, Buffer.from(usedKey, "base64"), sign);
  await inspect(command, async (_inspector, transport, lockService, { processes }) => {
    const door = processes.find(({ role }) => role === "front-end");
    if (door === undefined) throw new CommandError("no front-end of this stamp is known: ./stamp status");
    const options = { timeoutMs: callTimeoutMs, metadata: { authorization: `Bearer ${token}` } };
    const locks = lockServices({ clock: new NodeClock(), transport }, lockService, LockService);
    await work({ account: name, files: transport.client(door.grpc, FileHandles), locks, options });
  });
}

interface OpenOptions {
  readonly access: string;
  readonly share: string;
  readonly deleteOnClose?: boolean;
  readonly for: string;
}

async function holdOpen(command: Command, door: Door, path: string, options: OpenOptions): Promise<void> {
  const { account, files } = door;
  const ended = new AbortController();
  const stop = (): void => ended.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const { session, leaseEpoch, sentMs } = await takeSession(door);
  try {
    const deleteOnClose = options.deleteOnClose === true;
    const asked = { access: rightsOf(options.access), shareMode: rightsOf(options.share), deleteOnClose, client: "stamp file" };
    const request = { account, ...placeOf(path), session, sessionEpoch: leaseEpoch, ...asked };
    const { handle, lengthBytes } = given(await files.open(request, door.options));
    tell(command, { handle, session, bytes: Number(lengthBytes) }, () => handle);
    const lost = await keepSession(door, { session, leaseEpoch, sentMs, forMs: Number(options.for) * 1_000 }, ended.signal);
    if (lost) throw new CommandError(`the session ${session} could not be renewed: the handle counts for nothing any more`);
    given(await files.close({ account, handle }, door.options));
    if (!wantsJson(command)) say("closed");
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    await door.locks.releaseLease({ name: `files/${session}`, leaseEpoch }, { timeoutMs: callTimeoutMs });
  }
}

/** Takes the first session of this command that nobody holds. The identity is new, so a running one is never taken over. */
async function takeSession({ locks }: Door): Promise<{ session: string; leaseEpoch: bigint; sentMs: number }> {
  const identity = randomUUID();
  for (let number = 1; number <= sessionsMax; number++) {
    const session = `stamp-file-${number}`;
    const sentMs = performance.now();
    const request = { name: `files/${session}`, holder: "operator", incarnation: 1n, address: "stamp file", termMs, identity };
    const taken = await locks.acquireLease({ ...request, instance: identity }, { timeoutMs: callTimeoutMs });
    if (taken.ok) return { session, leaseEpoch: taken.value.leaseEpoch, sentMs };
    if (taken.failure.reason !== "leaseHeld") given(taken);
  }
  throw new CommandError(`${sessionsMax} files are held open by this command: end one of them`);
}

interface Kept {
  readonly session: string;
  readonly leaseEpoch: bigint;
  /** Time at which the lease was asked for. */
  readonly sentMs: number;
  readonly forMs: number;
}

/** Renews the session until its time is over or somebody ends it. True: it was lost. */
async function keepSession({ locks }: Door, { session, leaseEpoch, sentMs, forMs }: Kept, signal: AbortSignal): Promise<boolean> {
  const endMs = performance.now() + forMs;
  let heldUntilMs = sentMs + termMs - marginMs;
  while (performance.now() < endMs && !signal.aborted) {
    await setTimeout(Math.min(renewEveryMs, Math.max(1, endMs - performance.now())), undefined, { signal }).catch(() => {});
    if (signal.aborted) return false;
    const askedMs = performance.now();
    const renewed = await locks.renewLease({ name: `files/${session}`, leaseEpoch }, { timeoutMs: renewEveryMs });
    if (renewed.ok) heldUntilMs = askedMs + termMs - marginMs;
    else if (renewed.failure.reason === "leaseEnded") return true;
    if (performance.now() >= heldUntilMs) return true;
  }
  return false;
}

function placeOf(path: string): { readonly share: string; readonly path: string } {
  const slash = path.indexOf("/");
  return { share: path.slice(0, slash), path: path.slice(slash + 1) };
}

const advice: Readonly<Record<string, string>> = {
  SharingViolation: "somebody has the file open, or a lease of it, and does not share this: stamp file list SHARE/PATH",
  FileLockConflict: "somebody has locked a part of the range: stamp file list SHARE/PATH",
  DeletePending: "the file is marked for deletion and goes with its last handle: stamp file list SHARE/PATH",
};

function given<T>(answer: Outcome<T>): T {
  if (answer.ok) return answer.value;
  const { message, code, details } = answer.failure;
  if (code === "unimplemented") throw new CommandError("the front-end is of a release that opens no files: upgrade it first");
  const error = details?.["x-ms-error-code"];
  throw new CommandError(error === undefined ? message : `${error}: ${advice[error] ?? message}`);
}

interface ToldHandle {
  readonly handle: string;
  readonly session: string;
  readonly access: string;
  readonly share: string;
  readonly deleteOnClose: boolean;
  readonly client: string;
  readonly opened: string;
  /** First and last byte of each lock, shared ones in brackets. */
  readonly locks: readonly string[];
}

function toldHandle({ handle, state }: OpenHandle): ToldHandle {
  return {
    handle,
    session: `${state?.session}/${state?.sessionEpoch}`,
    access: rightsText(state?.access ?? 0),
    share: rightsText(state?.share ?? 0),
    deleteOnClose: state?.deleteOnClose ?? false,
    client: state?.client ?? "",
    opened: new Date(Number(state?.openedMs ?? 0n)).toISOString(),
    locks: (state?.locks ?? []).map(({ startBytes, endBytes, exclusive }) => {
      const range = `${startBytes}-${endBytes - 1n}`;
      return exclusive ? range : `(${range})`;
    }),
  };
}

function listText({ handles, deletePending }: { readonly handles: readonly ToldHandle[]; readonly deletePending: boolean }): string {
  if (handles.length === 0) return "nobody has it open";
  const rows = handles.map((one) => [one.handle, one.session, one.access, one.share, one.locks.join(" ") || "-", one.client, one.opened]);
  const pending = deletePending ? "\nmarked for deletion: it goes with its last handle" : "";
  return `${table(["handle", "session", "access", "shares", "locks", "client", "opened"], rows)}${pending}`;
}
