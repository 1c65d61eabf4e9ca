/** Puts containers, tables, queues and their messages, and settings of the services. */
import type { SignedIdentifier } from "@azure/storage-blob";
import { type Item, LeftOut, type StoredMessage, type StoredPolicy, type StoredService } from "../items.ts";
import { halfCharacter, refusalOf, statusOf } from "../source/answers.ts";
import type { ImportTarget } from "./target.ts";

type OfKind<Kind extends Item["kind"]> = Extract<Item, { kind: Kind }>;

/** A stored time that no date can be made of is left out, as one that was never set. */
const dateOf = (text: string): Date | undefined => (text === "" || Number.isNaN(Date.parse(text)) ? undefined : new Date(text));

const identifiers = (policies: readonly StoredPolicy[]): SignedIdentifier[] =>
  policies.map(({ id, permissions, startsOn, expiresOn }) => {
    const [starts, expires] = [dateOf(startsOn), dateOf(expiresOn)];
    return {
      id,
      accessPolicy: {
        permissions,
        ...(starts === undefined ? {} : { startsOn: starts }),
        ...(expires === undefined ? {} : { expiresOn: expires }),
      },
    };
  });

export async function putContainer(target: ImportTarget, { name, access, metadata, policies }: OfKind<"container">): Promise<void> {
  const client = target.doors.blobs.getContainerClient(name);
  if (target.merge && !(await target.makes(`container ${name}`, () => client.exists()))) return;
  await client.createIfNotExists({ metadata: { ...metadata } });
  const level = access === "blob" || access === "container" ? access : undefined;
  try {
    if (level !== undefined || policies.length > 0) await client.setAccessPolicy(level, identifiers(policies));
  } catch (error) {
    if (level === undefined || statusOf(error) !== 409) throw error;
    target.leftOut(`public access to container ${name}`, "the account does not allow it");
    await client.setAccessPolicy(undefined, identifiers(policies));
  }
}

export async function putTable({ doors, merge, makes }: ImportTarget, { name, policies }: OfKind<"table">): Promise<void> {
  const client = doors.table(name);
  const isThere = (): Promise<boolean> =>
    client.getAccessPolicy().then(
      () => true,
      (error: unknown) => {
        if (statusOf(error) === 404) return false;
        throw error;
      },
    );
  if (merge && !(await makes(`table ${name}`, isThere))) return;
  await client.createTable();
  if (policies.length === 0) return;
  const stored = policies.map(({ id, permissions, startsOn, expiresOn }) => {
    const [start, expiry] = [dateOf(startsOn), dateOf(expiresOn)];
    return {
      id,
      accessPolicy: { permission: permissions, ...(start === undefined ? {} : { start }), ...(expiry === undefined ? {} : { expiry }) },
    };
  });
  await client.setAccessPolicy(stored);
}

export async function putQueue({ doors, merge, again, makes }: ImportTarget, { name, metadata, policies }: OfKind<"queue">): Promise<void> {
  const client = doors.queues.getQueueClient(name);
  if (merge && !(await makes(`queue ${name}`, () => client.exists()))) return;
  const made = await client.createIfNotExists({ metadata: { ...metadata } });
  if (policies.length > 0) await client.setAccessPolicy(identifiers(policies));
  // The queue comes once more with its messages if the export was interrupted, or an earlier run of the import.
  if (!made.succeeded || again) await client.clearMessages();
}

/** First year of times that stand for never. */
const neverYear = 9_000;

export async function putMessages(target: ImportTarget, queue: string, messages: readonly StoredMessage[]): Promise<void> {
  const client = target.doors.queues.getQueueClient(queue);
  let expired = 0;
  for (const { text, expiresOn } of messages) {
    const expires = dateOf(expiresOn);
    const isForEver = expires === undefined || expires.getUTCFullYear() >= neverYear;
    const seconds = isForEver ? -1 : Math.ceil((expires.getTime() - Date.now()) / 1_000);
    if (!isForEver && seconds < 1) {
      expired++;
      continue;
    }
    if (!text.isWellFormed()) {
      target.leftOut(`a message of queue ${queue}`, halfCharacter);
      continue;
    }
    try {
      await client.sendMessage(text, { messageTimeToLive: seconds });
      target.counts.messages++;
    } catch (error) {
      const why = refusalOf(error);
      if (why === undefined) throw error;
      target.leftOut(`a message of queue ${queue}`, why);
    }
  }
  if (expired > 0) target.leftOut(`${expired} messages of queue ${queue}`, "their time has ended");
}

/** Settings of an account that has something stay as they are. */
export async function putSettings(
  { doors, merge }: ImportTarget,
  service: StoredService,
  properties: Readonly<Record<string, unknown>>,
): Promise<void> {
  const client = { blob: doors.blobs, queue: doors.queues, table: doors.tables }[service];
  const there = (await client.getProperties()) as Readonly<Record<string, unknown>>;
  const isOther = ([name, value]: [string, unknown]): boolean => JSON.stringify(there[name]) !== JSON.stringify(value);
  const changed = Object.fromEntries(Object.entries(properties).filter(isOther));
  if (Object.keys(changed).length === 0) return;
  if (merge) throw new LeftOut(`they differ (${Object.keys(changed).join(", ")}), and with --merge those of the account stay`);
  try {
    await client.setProperties(changed as object);
  } catch (error) {
    const status = statusOf(error);
    if (status === undefined || status >= 500) throw error;
    throw new LeftOut(`the service answers ${status} ${(error as { code?: string }).code ?? ""}`.trimEnd());
  }
}
