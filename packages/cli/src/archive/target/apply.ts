/**
 * Puts what a source gives into an account. Everything may be put once more by a later run: blobs and entities replace themselves, a queue is
 * cleared before its messages are put.
 */
import { transactionMax } from "../entity-door.ts";
import { inOrder } from "../in-order.ts";
import {
  BlobChanged,
  type BlobGroup,
  countBlob,
  countedKinds,
  type EntityJson,
  type Item,
  type ItemCounts,
  LeftOut,
  noCounts,
  type Step,
} from "../items.ts";
import { refusalOf, statusOf } from "../source/answers.ts";
import { chunkBytes } from "../source/blobs.ts";
import { putGroup } from "./put-blobs.ts";
import { putContainer, putMessages, putQueue, putSettings, putTable } from "./put-others.ts";
import type { ImportTarget } from "./target.ts";

const atOnce = 16;
/** Number of reads after which a blob that changes meanwhile is left out. */
const tries = 5;

/** Puts the steps, and tells after each that it is done with all before. Counts are added then, too: those at a position are right. */
export async function applySteps(target: ImportTarget, steps: AsyncIterable<Step>, done: (step: Step) => Promise<void>): Promise<void> {
  const work = async (step: Step): Promise<{ readonly step: Step; readonly counts: ItemCounts }> => {
    const counts = noCounts();
    const leftOut: ImportTarget["leftOut"] = (what, why, chosen = false) => {
      if (!chosen) counts.leftOut++;
      target.leftOut(what, why, chosen);
    };
    await apply({ ...target, counts, leftOut }, step.item);
    return { step, counts };
  };
  for await (const { step, counts } of inOrder(steps, atOnce, work, isAlone)) {
    for (const kind of countedKinds) target.counts[kind] += counts[kind];
    await done(step);
  }
}

/** True for containers, tables and queues, which come before their content; chunks of a large blob are sent together anyway. */
const isAlone = ({ item, isDurable }: Step): boolean =>
  isDurable === true ||
  (item.kind !== "entities" && (item.kind !== "blobs" || item.blobs.reduce((sum, { facts }) => sum + facts.length, 0) > chunkBytes));

async function apply(target: ImportTarget, item: Item): Promise<void> {
  const { counts, leftOut } = target;
  try {
    if (item.kind === "blobs") await applyGroup(target, item);
    else if (item.kind === "entities") await putEntities(target, item.table, item.entities);
    else if (item.kind === "messages") await putMessages(target, item.queue, item.messages);
    else if (item.kind === "container") await putContainer(target, item);
    else if (item.kind === "table") await putTable(target, item);
    else if (item.kind === "queue") await putQueue(target, item);
    else if (item.kind === "service") await putSettings(target, item.service, item.properties);
    else leftOut(item.what, item.why, item.chosen);
  } catch (error) {
    const why = error instanceof LeftOut ? error.message : item.kind === "blobs" ? refusalOf(error) : undefined;
    if (why === undefined) throw said(error, item);
    leftOut(nameOf(item), why);
    return;
  }
  if (item.kind === "container") counts.containers++;
  else if (item.kind === "table") counts.tables++;
  else if (item.kind === "queue") counts.queues++;
}

/** A refusal of the service, with what was refused. */
function said(error: unknown, item: Item): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  const { code, message } = error as { readonly code?: string; readonly message: string };
  return new ServiceRefused(`${nameOf(item)}: the service answers ${status} ${code ?? message.split("\n")[0]}`);
}

export class ServiceRefused extends Error {}

const nameOf = (item: Item): string =>
  item.kind === "blobs"
    ? `blob ${item.name} in ${item.container}`
    : item.kind === "entities"
      ? `entities of table ${item.table}`
      : item.kind === "messages"
        ? `messages of queue ${item.queue}`
        : item.kind === "service"
          ? `settings of the ${item.service} service`
          : item.kind === "leftOut"
            ? item.what
            : `${item.kind} ${item.name}`;

async function applyGroup(target: ImportTarget, first: BlobGroup): Promise<void> {
  let group: BlobGroup | undefined = first;
  for (let tried = 1; group !== undefined; tried++) {
    try {
      const { put, bytes } = await putGroup(target, group, tried > 1);
      for (const facts of put) countBlob(target.counts, facts);
      target.counts.bytes += bytes;
      return;
    } catch (error) {
      if (!(error instanceof BlobChanged)) throw error;
      if (tried >= tries) throw new LeftOut(`${error.message}, ${tries} times`);
      group = await group.again();
    }
  }
}

/** Entities of one partition that follow one another go in transactions. */
async function putEntities(target: ImportTarget, table: string, entities: readonly EntityJson[]): Promise<void> {
  let open: EntityJson[] = [];
  let bytes = 0;
  const put = async (): Promise<void> => {
    await putTogether(target, table, open);
    open = [];
    bytes = 0;
  };
  for (const entity of entities) {
    const size = Buffer.byteLength(JSON.stringify(entity));
    const isFull = open.length >= transactionMax.entities || (open.length > 0 && bytes + size > transactionMax.bytes);
    if (isFull || (open.length > 0 && open[0]?.PartitionKey !== entity.PartitionKey)) await put();
    open.push(entity);
    bytes += size;
  }
  await put();
}

/** Puts each entity of a transaction that is refused alone, and leaves out those that are refused. */
async function putTogether(target: ImportTarget, table: string, entities: readonly EntityJson[]): Promise<void> {
  const [first] = entities;
  if (first === undefined) return;
  try {
    await target.doors.entities.put(table, entities);
    target.counts.entities += entities.length;
  } catch (error) {
    const why = refusalOf(error);
    if (why === undefined) throw error;
    if (entities.length > 1) for (const each of entities) await putTogether(target, table, [each]);
    else target.leftOut(`entity ${JSON.stringify([first.PartitionKey, first.RowKey])} of table ${table}`, why);
  }
}
