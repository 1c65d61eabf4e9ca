/**
 * Callers who still believe in a partition server that was stopped for longer than its lease: they ask it directly, past the front-ends, by
 * the map of before, while it is stopped and when it goes on. It may refuse or stay silent. It must not answer a read, whose answer
 * could be old, and no write that it takes may count.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StampInspector } from "@stamp/cluster";
import type { QueueOperationSchema, RangePartition } from "@stamp/wire";
import { type DrillContext, serverOf } from "./faults.ts";

/** Time of a stop, in milliseconds: longer than a lease, its margin and the move of its ranges. */
const stoppedMs = 14_000;
const askedOnMs = 2_000;
const askEveryMs = 50;
const oldTimeoutMs = 60_000;
const timeoutMs = 2_000;
const movedTimeoutMs = 60_000;
const besideTriesMax = 5;

type Server = ReturnType<StampInspector["partitionServer"]>;
type QueueKind = NonNullable<MessageInitShape<typeof QueueOperationSchema>["kind"]>;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * The metadata of a queue of an account that nobody has: only who asks a partition server directly sees it. Nobody else writes to its table
 * during a drill: writes would tell the server that its streams have another owner.
 */
class Register {
  readonly #name = { account: `drill${process.pid}x`, queue: "register" };

  /** Reads there; undefined if the server does not say. */
  async read(server: Server, range: RangePartition, withinMs: number): Promise<string | undefined> {
    const answer = await this.#ask(server, range, { case: "getQueue", value: this.#name }, withinMs);
    return answer?.case === "queue" ? (answer.value.metadata.value ?? "") : undefined;
  }

  /** Writes at this server; true: the server says that the write is done. */
  async write(server: Server, range: RangePartition, value: string, withinMs: number): Promise<boolean> {
    const named = { ...this.#name, metadata: { value } };
    return (await this.#ask(server, range, { case: "setQueueMetadata", value: named }, withinMs)) !== undefined;
  }

  async make(server: Server, range: RangePartition, withinMs: number): Promise<boolean> {
    return (await this.#ask(server, range, { case: "createQueue", value: { ...this.#name, metadata: {} } }, withinMs)) !== undefined;
  }

  async #ask(server: Server, { rangeId, rangeVersion }: RangePartition, kind: QueueKind, withinMs: number) {
    const operation = { kind: { case: "queue" as const, value: { kind } } };
    const answer = await server.execute({ rangeId, rangeVersion, operation }, { timeoutMs: withinMs });
    const result = answer.ok ? answer.value.result?.kind : undefined;
    return result?.case === "queue" ? result.value.kind : undefined;
  }
}

/** Runs a call at the server that has the range by the map, again until one answers. */
async function whereItIs<T>(
  { target: { inspector } }: DrillContext,
  work: (server: Server, range: RangePartition) => Promise<T | undefined>,
): Promise<{ readonly value: T; readonly range: RangePartition }> {
  for (const endMs = performance.now() + movedTimeoutMs; performance.now() < endMs; await pause(50)) {
    for (const range of await inspector.ranges().catch(() => [])) {
      if (range.table !== "Message" || range.serverAddress === "") continue;
      const value = await work(inspector.partitionServer(range.serverAddress), range);
      if (value !== undefined) return { value, range };
    }
  }
  throw new Error(`no partition server took an operation in ${movedTimeoutMs / 1_000} s`);
}

/**
 * Brings the register's range to the server that the clients write to and writes the register there; gives the range. Load balancing may
 * move either one meanwhile.
 */
async function besideTheClients(context: DrillContext, register: Register, value: string): Promise<RangePartition> {
  for (let tries = 0; tries < besideTriesMax; tries++) {
    const name = await serverOf(context);
    const { range } = await written(context, register, value);
    if (range.server === name && (await serverOf(context)) === name) return range;
    const manager = await context.target.inspector.partitionManager();
    const moved = await manager.movePartition({ rangeId: range.rangeId, server: name }, { timeoutMs: movedTimeoutMs });
    context.note(`move ${range.rangeId} to ${name}, which clients write to: ${moved.ok ? "done" : moved.failure.message}`);
    if (!moved.ok) await pause(1_000);
  }
  throw new Error("the range that is asked for on did not come to the server that clients write to");
}

const written = (context: DrillContext, register: Register, value: string) =>
  whereItIs(context, async (server, range) => (await register.write(server, range, value, timeoutMs)) || undefined);

/**
 * Stops the server that the clients write to and that has the register, and asks it on by the map of before until it has gone on for a
 * while; meanwhile another one takes over and the register is written there. Returns what it answered.
 */
async function stopAndAsk<T>(
  context: DrillContext,
  register: Register,
  what: string,
  work: (old: Server, range: RangePartition) => Promise<T | undefined>,
): Promise<readonly T[]> {
  const range = await besideTheClients(context, register, `before ${what}`);
  const old = context.target.inspector.partitionServer(range.serverAddress);
  context.fault(`SIGSTOP ${range.server} for ${stoppedMs / 1_000} s; it is asked for ${what} on`);
  await context.target.ask({ do: "signal", name: range.server, signal: "SIGSTOP" });
  const asked: Promise<T | undefined>[] = [];
  let asking = true;
  const loop = (async () => {
    for (; asking; await pause(askEveryMs)) asked.push(work(old, range));
  })();
  const stoppedAtMs = performance.now();
  let after: Awaited<ReturnType<typeof written>>;
  try {
    // By the map it is still at the stopped one, until its lease has ended.
    after = await written(context, register, `after ${what}`);
    context.note(`${after.range.rangeId} is written to at ${after.range.server}`);
    await pause(Math.max(0, stoppedMs - (performance.now() - stoppedAtMs)));
  } finally {
    // Nobody else lets the server go on: the supervisor sees a process that lives.
    await context.target.ask({ do: "signal", name: range.server, signal: "SIGCONT" });
    context.note(`SIGCONT ${range.server}`);
    await pause(askedOnMs);
    asking = false;
    await loop;
  }
  const answers = (await Promise.all(asked)).filter((value) => value !== undefined);
  context.note(`${range.server} was asked for ${asked.length} ${what} and did ${answers.length}`);
  if (after.range.server === range.server) throw new Error(`${range.server} was stopped for longer than its lease, and nobody took over`);
  const last = await whereItIs(context, (server, at) => register.read(server, at, timeoutMs));
  if (last.value !== `after ${what}`) throw new Error(`"${last.value}" is read, "after ${what}" was written last`);
  return answers;
}

/** Throws if a stopped server said or did what it must not. */
export async function stopAndAskOn(context: DrillContext): Promise<void> {
  const register = new Register();
  await whereItIs(context, async (server, range) => (await register.make(server, range, timeoutMs)) || undefined);
  // Reads first, alone: a write would tell the server that its streams have another owner.
  const read = await stopAndAsk(context, register, "reads", (old, range) => register.read(old, range, oldTimeoutMs));
  if (read.length > 0) throw new Error(`reads were answered when the lease was over: ${[...new Set(read)].join(", ")}`);
  let count = 0;
  const written = await stopAndAsk(
    context,
    register,
    "writes",
    async (old, range) => (await register.write(old, range, `late ${++count}`, oldTimeoutMs)) || undefined,
  );
  if (written.length > 0) throw new Error("writes were acknowledged when others had the range");
}
