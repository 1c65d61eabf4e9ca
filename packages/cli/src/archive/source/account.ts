/** Everything of an account, in one order: settings of the services, containers with their blobs, tables with their entities, queues. */
import type { AccountDoors } from "../doors.ts";
import type { Item, SourcePosition, Step, StoredService } from "../items.ts";
import { hierarchical } from "../place.ts";
import { type Listing, policiesOf, statusOf } from "./answers.ts";
import { blobSteps } from "./blobs.ts";
import { queueSteps } from "./queues.ts";

export interface SourceOptions {
  /** Snapshots and older versions of blobs, too. */
  readonly history: boolean;
  /** Messages of queues, which a reader hides from others for a time. */
  readonly messages: boolean;
}

const stages = ["settings", "blob", "table", "queue"] as const;
type Stage = (typeof stages)[number];

export async function* accountSteps(
  doors: AccountDoors,
  from: SourcePosition,
  options: SourceOptions,
): AsyncGenerator<Step, void, undefined> {
  const listing: Listing = {
    versions: options.history,
    included: (versions) => ({ ...(options.history ? { includeSnapshots: true } : {}), ...(versions ? { includeVersions: true } : {}) }),
  };
  const begun = stages.indexOf((from.stage ?? "settings") as Stage);
  for (const [at, stage] of stages.entries()) {
    if (at < begun) continue;
    const here = at === begun ? from : {};
    if (stage === "settings") yield* settingsSteps(doors, here);
    else if (stage === "blob") yield* blobSteps(doors, here, listing);
    else if (stage === "table") yield* tableSteps(doors, here);
    else yield* queueSteps(doors, here, options.messages);
  }
}

/** Refuses an account elsewhere as well: one of the stamp that runs was refused before. */
export async function refuseDirectories({ blobs, place }: AccountDoors): Promise<void> {
  const info = await blobs.getAccountInfo().catch((error: unknown) => {
    if (statusOf(error) === undefined) throw error;
    return undefined;
  });
  if (info?.isHierarchicalNamespaceEnabled === true) throw hierarchical(place.account);
}

async function* settingsSteps(doors: AccountDoors, from: SourcePosition): AsyncGenerator<Step, void, undefined> {
  const asked: Readonly<Record<StoredService, () => Promise<object>>> = {
    blob: () => doors.blobs.getProperties(),
    queue: () => doors.queues.getProperties(),
    table: () => doors.tables.getProperties(),
  };
  for (const service of ["blob", "queue", "table"] as const) {
    // They are in the order of the alphabet.
    if (from.service !== undefined && service <= String(from.service)) continue;
    yield { item: await settingsItem(service, asked[service]), next: { stage: "settings", service } };
  }
}

/** Settings that are read and written by the same names. */
const keptSettings = ["cors", "defaultServiceVersion", "deleteRetentionPolicy", "staticWebsite"];

async function settingsItem(service: StoredService, ask: () => Promise<object>): Promise<Item> {
  try {
    const properties = Object.entries(await ask()).filter(([name, value]) => keptSettings.includes(name) && value !== undefined);
    return { kind: "service", service, properties: Object.fromEntries(properties) };
  } catch (error) {
    if (statusOf(error) === undefined) throw error;
    return { kind: "leftOut", what: `settings of the ${service} service`, why: `the service answers ${statusOf(error)}`, chosen: false };
  }
}

async function* tableSteps(doors: AccountDoors, from: SourcePosition): AsyncGenerator<Step, void, undefined> {
  const begun = String(from.table ?? "");
  for await (const { name = "" } of doors.tables.listTables()) {
    if (name.toLowerCase() < begun.toLowerCase()) continue;
    try {
      if (name !== begun) {
        const policies = policiesOf(await doors.table(name).getAccessPolicy());
        yield { item: { kind: "table", name, policies }, next: { stage: "table", table: name } };
      }
      yield* entitiesIn(doors, name, name === begun ? from : {});
    } catch (error) {
      if (statusOf(error) !== 404 && (error as { status?: number }).status !== 404) throw error;
    }
  }
}

async function* entitiesIn(doors: AccountDoors, table: string, from: SourcePosition): AsyncGenerator<Step, void, undefined> {
  if (from.isEnd === 1) return;
  let at = from.partitionKey === undefined ? undefined : { partitionKey: String(from.partitionKey), rowKey: String(from.rowKey ?? "") };
  for (;;) {
    const { entities, next } = await doors.entities.page(table, at);
    const position = { stage: "table", table, ...(next ?? { isEnd: 1 }) };
    yield { item: { kind: "entities", table, entities }, next: position };
    if (next === undefined) return;
    at = next;
  }
}
