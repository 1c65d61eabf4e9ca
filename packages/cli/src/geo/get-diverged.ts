/**
 * `stamp geo diverged ACCOUNT --get CONTAINER/BLOB`: the content of a blob that only a deposed primary had, in a file (docs/guides/geo.md). The command
 * asks the stamp of its own data folder, with the authority of that stamp's operator. The location service takes no part: it may read no data.
 *
 * Invariants:
 * - One page of 1 MiB is in memory at a time.
 * - A file that is there already is not touched, and no file of this name has a part of the content only: the pages go to a file beside it, which
 *   gets the name when everything is durable.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, link, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Outcome, refused } from "@stamp/base";
import { Accounts, type DivergedRow, FrontEnd, type ReadDivergedResponse } from "@stamp/wire";
import type { Command } from "commander";
import { call } from "../accounts/location-command.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { bytesText } from "../print.ts";
import { type TellProgress, withProgress } from "../progress.ts";
import { inspect, type Transport, tell } from "../running.ts";
import { allPages, type Report } from "./diverged.ts";

const attemptsMax = 6;
const pauseMs = 500;
const passing: ReadonlySet<string> = new Set(["unavailable", "deadlineExceeded", "resourceExhausted"]);

interface Wanted {
  readonly account: string;
  /** Container and blob, e.g. "photos/2026/cat.jpg". */
  readonly get: string;
  readonly out: string | undefined;
}

/** A write of a blob that the report names. */
interface Found {
  readonly row: DivergedRow;
  /** True if a later commit of the report deleted the blob. */
  readonly deleted: boolean;
}

/** Reads one page of a reported blob, from byte `startBytes` on. */
type ReadPage = (startBytes: number) => Promise<Outcome<ReadDivergedResponse>>;

export async function getDiverged(command: Command, { account, get, out }: Wanted): Promise<void> {
  const { at, secretFile, stamp } = command.opts<{ readonly at?: string; readonly secretFile?: string; readonly stamp: string }>();
  const [other] = Object.entries({ "--at": at, "--secret-file": secretFile, "--stamp": stamp || undefined }).filter(
    ([, value]) => value !== undefined,
  );
  if (other !== undefined)
    throw new CommandError(`${other[0]} goes without --get, which asks the stamp of --data, on a host of that stamp`, exitCodes.usage);
  const slash = get.indexOf("/");
  const [container, blob] = [get.slice(0, slash), get.slice(slash + 1)];
  if (slash < 1 || blob === "") throw new CommandError(`--get ${get}: it is CONTAINER/BLOB, e.g. photos/2026/cat.jpg`, exitCodes.usage);
  const file = resolve(out ?? basename(blob));
  if (out === undefined && [".", "..", ""].includes(basename(blob)))
    throw new CommandError(`the name of blob ${blob} gives no name of a file: --out FILE`, exitCodes.usage);
  if (existsSync(file)) throw new CommandError(`${file} is there already: it is not overwritten. Name another file: --out FILE`);
  const done = await inspect(command, async (inspector, transport, _lockService, { processes }) => {
    const accounts = transport.client(await inspector.leader("partition-manager"), Accounts);
    const report = await allPages((marker) => accounts.listDiverged({ account, marker }, call));
    const isNone = report.ok ? report.value.rows.length === 0 && report.value.complete : report.failure.code === "notFound";
    if (isNone) throw new CommandError(noReport(account));
    const found = newestWrite(told(report), container, blob);
    const doors = processes.flatMap(({ role, grpc }) => (role === "front-end" ? [grpc] : []));
    const { key, operation, sequence } = found.row;
    const place = { account, key, operation, sequence };
    const afterwards = "nothing was written to the file: the same command begins anew";
    const bytes = await withProgress({ what: `content of ${get}`, afterwards }, (said) =>
      fetchTo(file, (startBytes) => pageAt(transport, doors, { place, startBytes: BigInt(startBytes) }), said),
    );
    return { ...found, bytes: told(bytes) };
  });
  const { row, bytes, deleted } = done;
  const [operation, sequence] = [Number(row.operation), Number(row.sequence)];
  const writtenAt = row.modifiedMs === undefined ? null : new Date(Number(row.modifiedMs)).toISOString();
  const facts = { account, container, blob, operation, sequence, writtenAt, deleted, bytes, file };
  tell(command, facts, () => {
    const later = deleted ? "; a later commit of the report deleted it" : "";
    return `${file}: ${bytesText(bytes)} of ${get} as this stamp had it (failover ${operation}, commit ${sequence}, written ${writtenAt ?? "-"}${later})`;
  });
}

const noReport = (account: string): string =>
  `this stamp has no report about account ${account}. Run the command on a host of the stamp that was deposed, with its --data; ` +
  `which stamp: ./stamp geo diverged ${account}`;

/** Returns what the stamp answered. Throws with what to do if it refused. */
function told<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const { reason, message } = outcome.failure;
  if (reason !== "unknownMethod") throw new CommandError(message);
  throw new CommandError("this stamp runs a release that does not read the blobs of a report: upgrade it first (docs/guides/upgrade.md)");
}

/** Asks one front-end of the stamp after another until one answers. */
async function pageAt(
  transport: Transport,
  doors: readonly string[],
  request: { readonly place: object; readonly startBytes: bigint },
): Promise<Outcome<ReadDivergedResponse>> {
  let last: Outcome<ReadDivergedResponse> = refused("unavailable", "notReady", "this stamp has no front-end");
  for (const door of doors) {
    last = await transport.client(door, FrontEnd).readDiverged(request, call);
    if (last.ok || !passing.has(last.failure.code)) break;
  }
  return last;
}

/** Returns the newest write of the blob that the report has. Throws if it has none. */
function newestWrite({ rows, complete, trouble }: Report, container: string, blob: string): Found {
  let newest: DivergedRow | undefined;
  let last: DivergedRow | undefined;
  for (const row of rows) {
    if (row.kind !== "blob" || row.name !== container || row.blob !== blob) continue;
    if (isLater(row, last)) last = row;
    if (!row.deleted && isLater(row, newest)) newest = row;
  }
  if (newest !== undefined) return { row: newest, deleted: last?.deleted === true && last !== newest };
  const why = complete ? "" : `; the report is not complete${trouble === "" ? "" : `: ${trouble}`}`;
  const what =
    last === undefined
      ? `this stamp's report does not name blob ${container}/${blob}`
      : `the report names only deletions of ${container}/${blob}`;
  throw new CommandError(`${what}${why}`);
}

const isLater = (row: DivergedRow, other: DivergedRow | undefined): boolean =>
  other === undefined || row.operation > other.operation || (row.operation === other.operation && row.sequence > other.sequence);

async function fetchTo(file: string, read: ReadPage, said: TellProgress): Promise<Outcome<number>> {
  const beside = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  const handle = await open(beside, "wx", 0o600).catch((error: unknown) => {
    throw new CommandError(`${dirname(file)} takes no file: ${String(error)}`);
  });
  try {
    const fetched = await pagesTo(handle, read, said);
    if (!fetched.ok) return fetched;
    await handle.sync();
    await giveName(beside, file);
    return fetched;
  } finally {
    await handle.close();
    await rm(beside, { force: true });
  }
}

/** Gives a file its name by a link, which, unlike a rename, refuses an existing file. Some file systems have no links. */
async function giveName(beside: string, file: string): Promise<void> {
  try {
    await link(beside, file);
  } catch {
    if (existsSync(file))
      throw new CommandError(`${file} was made by somebody else meanwhile: it is not overwritten. Name another file: --out FILE`);
    await rename(beside, file);
  }
}

/** Reads until it succeeds: a large blob takes long, and a process that restarts or is busy does not end the command. */
async function untilRead<T>(read: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  for (let attempt = 1; ; attempt++) {
    const done = await read();
    if (done.ok || attempt === attemptsMax || !passing.has(done.failure.code)) return done;
    await setTimeout(attempt * pauseMs);
  }
}

async function pagesTo(handle: FileHandle, read: ReadPage, said: TellProgress): Promise<Outcome<number>> {
  for (let at = 0; ; ) {
    const page = await untilRead(() => read(at));
    if (!page.ok) return page;
    const { payload, contentLength } = page.value;
    await handle.writeFile(payload);
    at += payload.length;
    if (at >= Number(contentLength)) return { ok: true, value: at };
    if (payload.length === 0) return refused("internal", "bug", `the stamp gave no bytes from byte ${at} of ${contentLength} on`);
    said(`${bytesText(at)} of ${bytesText(Number(contentLength))}`);
  }
}
