/** The Status service, the same for every role: what `stamp status` and the dashboard ask each process. */
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { ok, release } from "@stamp/base";
import type { RoleStatus, ServedService, World } from "@stamp/ports";
import { served } from "@stamp/ports";
import { type GetStatusResponseSchema, Status, toWire } from "@stamp/wire";
import { processVersions } from "./feature-level/process-versions.ts";

export interface ProcessFacts {
  readonly pid?: number;
  /** Incarnation from `openIdentity`; 0 while it is not known. */
  readonly incarnation?: number;
  /** Feature level under which it writes; undefined while it has not heard it. */
  readonly level?: number | undefined;
}

export function statusService(
  world: World,
  role: string,
  name: string,
  status: () => RoleStatus,
  process: () => ProcessFacts = () => ({}),
): ServedService {
  const { clock } = world;
  const startedMs = clock.monotonicMs();
  /** Returns the wall clock minus the time that passed: stays the same unless somebody sets the clock. */
  const wallOffsetMs = (): number => clock.wallMs() - clock.monotonicMs() - clock.suspendedMs();
  const startOffsetMs = wallOffsetMs();
  return served(Status, {
    getStatus: async ({ withoutFacts }) => {
      const now = status();
      const { pid, incarnation, level } = process();
      return ok({
        role,
        name,
        pid: pid ?? world.pid ?? 0,
        state: now.state,
        ready: now.ready,
        waitingFor: [...now.waitingFor],
        uptimeMs: toWire(Math.floor(clock.monotonicMs() - startedMs)),
        incarnation: toWire(incarnation ?? 0),
        release,
        wallMs: toWire(Math.floor(clock.wallMs())),
        wallSetMs: BigInt(Math.round(wallOffsetMs() - startOffsetMs)),
        versions: processVersions(level),
        ...secretFields(world),
        ...(withoutFacts ? {} : { facts: jsonObject(now.facts) }),
      });
    },
  });
}

/** Returns facts about the secret; none where a process proves nothing. */
function secretFields({
  secret,
}: World): Pick<MessageInitShape<typeof GetStatusResponseSchema>, "secretIds" | "secretMadeMs" | "secretProblem"> {
  if (secret === undefined) return {};
  const { ids, madeMs, problem } = secret();
  return { secretIds: [...ids], secretMadeMs: toWire(Math.floor(madeMs ?? 0)), secretProblem: problem };
}

/** Returns the facts as JSON: undefined is left out, a bigint becomes text. */
const jsonObject = (facts: Readonly<Record<string, unknown>>): JsonObject =>
  JSON.parse(JSON.stringify(facts, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value))) as JsonObject;
