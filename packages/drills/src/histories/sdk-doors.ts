/**
 * Doors (`@stamp/histories`) that go through the real SDKs, unmodified. Their retries are off: an attempt that was not answered is
 * recorded as unknown, and a retry would hide that it may have happened twice. The SDKs are development dependencies; only the drill
 * loads this file.
 */
import { TableClient, TableServiceClient, type TransactionAction } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import {
  type Answer,
  answerOfStatus,
  type BlobCondition,
  type BlobDoor,
  blobOfEntity,
  entityCount,
  partitionKeyOf,
  partsOf,
  type QueueAnswer,
  type QueueDoor,
  type ToldMessage,
  wholeOf,
} from "@stamp/histories";

const defaultTimeoutMs = 15_000;
const pageSize = 3;
const inTime = (timeoutMs = defaultTimeoutMs) => ({ abortSignal: AbortSignal.timeout(timeoutMs) });

interface SdkError {
  readonly statusCode?: number;
  readonly code?: string;
  readonly details?: { readonly errorCode?: string; readonly odataError?: { readonly code?: string } };
  readonly response?: { readonly headers?: { get(name: string): string | undefined } };
}

/**
 * Classifies an SDK's error: the service's refusal, certainly not sent, or not known. Errors that are no answer at all
 * are ours.
 */
function refusal(error: unknown): { readonly status: number; readonly code: string | undefined } | "notSent" | "unknown" {
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) throw error;
  const { statusCode, code, details, response } = error as SdkError;
  if (statusCode === undefined || statusCode < 400) return code === "ECONNREFUSED" ? "notSent" : "unknown";
  const told = response?.headers?.get("x-ms-error-code") ?? details?.errorCode ?? details?.odataError?.code ?? code;
  return { status: statusCode, code: told };
}

function answerOf(error: unknown): Answer<never> {
  const refused = refusal(error);
  if (refused === "unknown") return { kind: "unknown" };
  return (refused === "notSent" ? { kind: "notDone", why: "not sent" } : answerOfStatus(refused.status, refused.code)) as Answer<never>;
}

const answered = <T extends object>(work: Promise<T>): Promise<Answer<T>> =>
  work.then((value) => ({ kind: "ok" as const, ...value }), answerOf);

export class SdkBlobDoor implements BlobDoor {
  readonly #service: BlobServiceClient;
  readonly #timeoutMs: number | undefined;

  /** `timeoutMs`: bound of an operation's time. */
  constructor(connectionString: string, timeoutMs?: number) {
    this.#timeoutMs = timeoutMs;
    this.#service = BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });
  }

  createContainer(container: string): Promise<Answer> {
    return answered(
      this.#of(container)
        .create(inTime(this.#timeoutMs))
        .then(() => ({})),
    );
  }

  deleteContainer(container: string): Promise<Answer> {
    return answered(
      this.#of(container)
        .delete(inTime(this.#timeoutMs))
        .then(() => ({})),
    );
  }

  put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    const upload = this.#of(container)
      .getBlockBlobClient(blob)
      .upload(bytes, bytes.length, { conditions: conditionsOf(condition), ...inTime(this.#timeoutMs) });
    return answered(upload.then(({ etag }) => (etag === undefined ? {} : { etag })));
  }

  get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const read = async () => {
      const answer = await this.#of(container)
        .getBlobClient(blob)
        .download(0, undefined, { maxRetryRequests: 0, ...inTime(this.#timeoutMs) });
      const chunks: Buffer[] = [];
      for await (const chunk of answer.readableStreamBody ?? []) chunks.push(Buffer.from(chunk));
      return { etag: answer.etag ?? "", bytes: Buffer.concat(chunks) };
    };
    return answered(read());
  }

  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    const deleted = this.#of(container)
      .getBlobClient(blob)
      .delete({ conditions: conditionsOf(condition), ...inTime(this.#timeoutMs) });
    return answered(deleted.then(() => ({})));
  }

  list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const list = async () => {
      const etags = new Map<string, string>();
      for await (const { segment } of this.#of(container).listBlobsFlat(inTime(this.#timeoutMs)).byPage({ maxPageSize: pageSize })) {
        // Listed without its quotes.
        for (const { name, properties } of segment.blobItems) etags.set(name, `"${properties.etag.replaceAll('"', "")}"`);
      }
      return { etags };
    };
    return answered(list());
  }

  #of(container: string): ContainerClient {
    return this.#service.getContainerClient(container);
  }
}

const conditionsOf = (condition: BlobCondition): { ifMatch?: string; ifNoneMatch?: string } =>
  condition.kind === "match" ? { ifMatch: condition.etag } : condition.kind === "absent" ? { ifNoneMatch: "*" } : {};

interface Part {
  bytes: Uint8Array;
}

/** Shared by both doors over tables: tables as containers, pages as lists. */
abstract class SdkTables {
  readonly #connectionString: string;
  readonly #service: TableServiceClient;
  readonly #tables = new Map<string, TableClient>();

  constructor(connectionString: string) {
    this.#connectionString = connectionString;
    this.#service = TableServiceClient.fromConnectionString(connectionString, tableOptions);
  }

  createContainer(container: string): Promise<Answer> {
    return swallowed({ 409: { kind: "exists" } }, (onResponse) => this.#service.createTable(container, { ...inTime(), onResponse }));
  }

  deleteContainer(container: string): Promise<Answer> {
    return swallowed({ 404: { kind: "noContainer" } }, (onResponse) => this.#service.deleteTable(container, { ...inTime(), onResponse }));
  }

  protected table(name: string): TableClient {
    let table = this.#tables.get(name);
    if (!table) {
      table = TableClient.fromConnectionString(this.#connectionString, name, tableOptions);
      this.#tables.set(name, table);
    }
    return table;
  }

  list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const list = async () => {
      const etags = new Map<string, string>();
      const options = { queryOptions: { filter: "RowKey eq '0'" }, ...inTime() };
      for await (const page of this.table(container).listEntities(options).byPage({ maxPageSize: pageSize })) {
        for (const { partitionKey, etag } of page) etags.set(blobOfEntity(partitionKey ?? ""), etag ?? "");
      }
      return { etags };
    };
    return answered(list());
  }
}

const tableOptions = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

/** Returns the answer of an operation for which the table SDK may take a refusal for success; the response's status tells. */
async function swallowed(
  kinds: Readonly<Record<number, Answer>>,
  act: (onResponse: (response: { status: number }) => void) => Promise<unknown>,
): Promise<Answer> {
  let status = 0;
  try {
    await act((response) => {
      status = response.status;
    });
  } catch (error) {
    return answerOf(error);
  }
  return kinds[status] ?? { kind: "ok" };
}

/** Door that keeps each blob as an entity. */
export class SdkEntityDoor extends SdkTables implements BlobDoor {
  put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    const table = this.table(container);
    const entity = { partitionKey: partitionKeyOf(blob), rowKey: "0", bytes };
    const put =
      condition.kind === "absent"
        ? table.createEntity(entity, inTime())
        : condition.kind === "match"
          ? table.updateEntity(entity, "Replace", { etag: condition.etag, ...inTime() })
          : table.upsertEntity(entity, "Replace", inTime());
    return answered(put.then(({ etag }) => (etag === undefined ? {} : { etag })));
  }

  get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    return answered(
      this.table(container)
        .getEntity<Part>(partitionKeyOf(blob), "0", inTime())
        .then(({ etag, bytes }) => ({ etag, bytes })),
    );
  }

  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    const etag = condition.kind === "match" ? condition.etag : "*";
    return answered(
      this.table(container)
        .deleteEntity(partitionKeyOf(blob), "0", { etag, ...inTime() })
        .then(() => ({})),
    );
  }
}

/** A blob is all entities of a PartitionKey, written by transactions only. */
export class SdkTransactionDoor extends SdkTables implements BlobDoor {
  async put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    const answer = await this.#transaction(
      container,
      partsOf(bytes).map((part, i): TransactionAction => {
        // Copied: this SDK sends the whole buffer that a view is of.
        const entity = { partitionKey: partitionKeyOf(blob), rowKey: String(i), bytes: part.slice() };
        if (condition.kind === "absent") return ["create", entity];
        if (condition.kind === "match") return ["update", entity, "Replace", { etag: condition.etag }];
        return ["upsert", entity, "Replace"];
      }),
    );
    return answer.kind === "noBlob" ? { kind: "conditionNotMet" } : answer;
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const read = async () => {
      const entities: { etag: string; bytes: Uint8Array }[] = [];
      const options = { queryOptions: { filter: `PartitionKey eq '${partitionKeyOf(blob)}'` }, ...inTime() };
      for await (const { etag, bytes } of this.table(container).listEntities<Part>(options)) entities.push({ etag: etag ?? "", bytes });
      return { entities };
    };
    const answer = await answered(read());
    if (!("entities" in answer)) return answer as Answer<never>;
    const whole = wholeOf(answer.entities, `${container}/${blob}`);
    return whole === undefined ? { kind: "noBlob" } : { kind: "ok", ...whole };
  }

  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    if (condition.kind !== "none") throw new TypeError("in a transaction this SDK sends every delete with If-Match: *");
    const parts = Array.from({ length: entityCount }, (_, i) => ({ partitionKey: partitionKeyOf(blob), rowKey: String(i) }));
    return this.#transaction(
      container,
      parts.map((part): TransactionAction => ["delete", part]),
    );
  }

  /** Runs a transaction. All of its entities have one ETag afterwards. */
  #transaction(container: string, actions: TransactionAction[]): Promise<Answer> {
    const done = this.table(container).submitTransaction(actions, inTime());
    return answered(
      done.then(({ subResponses }) => {
        const etag = subResponses[0]?.etag;
        return etag === undefined ? {} : { etag };
      }),
    );
  }
}

const secondsOf = (date: Date | undefined): number => Math.floor((date?.getTime() ?? 0) / 1_000);

interface Told {
  readonly messageId: string;
  readonly insertedOn: Date;
  readonly expiresOn: Date;
  readonly nextVisibleOn?: Date;
  readonly popReceipt?: string;
  readonly dequeueCount?: number;
}

const toldOf = (message: Told, text: string): ToldMessage => ({
  messageId: message.messageId,
  popReceipt: message.popReceipt ?? "",
  dequeueCount: message.dequeueCount ?? 0,
  text,
  visibleS: secondsOf(message.nextVisibleOn),
  insertedS: secondsOf(message.insertedOn),
  expiresS: secondsOf(message.expiresOn),
});

export class SdkQueueDoor implements QueueDoor {
  readonly #service: QueueServiceClient;

  constructor(connectionString: string) {
    this.#service = QueueServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });
  }

  create(queue: string): Promise<QueueAnswer<void>> {
    return told(this.#of(queue).create(inTime()), () => {});
  }

  put(queue: string, text: string, hiddenS: number, liveS: number): Promise<QueueAnswer<ToldMessage>> {
    const options = { visibilityTimeout: hiddenS, messageTimeToLive: liveS, ...inTime() };
    return told(this.#of(queue).sendMessage(text, options), (answer) => toldOf(answer, text));
  }

  take(queue: string, count: number, timeoutS: number): Promise<QueueAnswer<readonly ToldMessage[]>> {
    const options = { numberOfMessages: count, visibilityTimeout: timeoutS, ...inTime() };
    return told(this.#of(queue).receiveMessages(options), ({ receivedMessageItems }) =>
      receivedMessageItems.map((message) => toldOf(message, message.messageText)),
    );
  }

  peek(queue: string): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return told(this.#of(queue).peekMessages({ numberOfMessages: 32, ...inTime() }), ({ peekedMessageItems }) =>
      peekedMessageItems.map((message) => toldOf(message, message.messageText)),
    );
  }

  delete(queue: string, { messageId, popReceipt }: ToldMessage): Promise<QueueAnswer<void>> {
    return told(this.#of(queue).deleteMessage(messageId, popReceipt, inTime()), () => {});
  }

  update(
    queue: string,
    message: ToldMessage,
    text: string,
    hiddenS: number,
  ): Promise<QueueAnswer<{ readonly popReceipt: string; readonly visibleS: number }>> {
    return told(
      this.#of(queue).updateMessage(message.messageId, message.popReceipt, text, hiddenS, inTime()),
      ({ popReceipt, nextVisibleOn }) => ({ popReceipt: popReceipt ?? "", visibleS: secondsOf(nextVisibleOn) }),
    );
  }

  count(queue: string): Promise<QueueAnswer<number>> {
    return told(this.#of(queue).getProperties(inTime()), ({ approximateMessagesCount }) => approximateMessagesCount ?? 0);
  }

  #of(queue: string) {
    return this.#service.getQueueClient(queue);
  }
}

function told<T, U>(work: Promise<T>, read: (answer: T) => U): Promise<QueueAnswer<U>> {
  return work.then(
    (answer): QueueAnswer<U> => ({ kind: "ok", value: read(answer) }),
    (error: unknown): QueueAnswer<U> => {
      const refused = refusal(error);
      if (refused === "notSent") return { kind: "refused", code: "not sent" };
      if (refused === "unknown" || refused.status === 500) return { kind: "unknown" };
      return { kind: "refused", code: refused.code ?? `status ${refused.status}` };
    },
  );
}
