/**
 * Copies that go on after their request was answered. What was done so far is in the destination's row (@stamp/objects, blobs/copy.ts), so
 * that another front-end goes on with a copy whose copier is gone: whoever is asked about such a blob takes it over. Clients that wait for
 * a copy ask about it; a copy that nobody asks about stays where it is.
 *
 * Parts are shared where source and destination lie in one range; else their bytes are read and written again, as those of a blob outside
 * of this stamp are (foreign-copy.ts). At most so many copies
 * run at a time, the others wait; each holds no more than the windows of one download and one upload.
 */
import { create } from "@bufbuild/protobuf";
import type { Parsed, RestError } from "@stamp/azure-rest";
import { type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { copyStaleMs, spanOf } from "@stamp/objects";
import { jittered, sleep } from "@stamp/ports";
import { locationFromWire } from "@stamp/stream-client";
import { type Blob, type CopyBlock, CopyBlockSchema, type CopyPart, type ExtentLocation, fromWire, type Place, toWire } from "@stamp/wire";
import { type ContentKey, sharesKey } from "../accounts/content-key.ts";
import { decrypted, placeFromWire } from "../content/encryption.ts";
import type { UploadPins } from "../content/upload-pins.ts";
import type { LocatedBlob, Objects } from "../objects/objects.ts";
import { isHandleRefusal } from "../trees/handles.ts";
import { type ForeignCopy, foreignStep } from "./foreign-copy.ts";

/** A blob of this stamp, or one elsewhere. */
export type CopyFrom = { readonly name: LocatedBlob; readonly etag: string } | ForeignCopy;

export interface CopyJob {
  readonly to: LocatedBlob;
  readonly copyId: string;
  readonly from: CopyFrom;
  /** The part of the source that comes next. */
  readonly position: bigint;
  /** Encryption scope of the copy. */
  readonly scope: string | undefined;
}

const running = 4;
export const copiesWaitingMax = 256;
/** Well below the time after which another may take a copy over. */
const beatEveryMs = copyStaleMs / 6;
/** Time for which a copier goes on in spite of failures, in milliseconds. */
const givesUpAfterMs = copyStaleMs;

interface CopyKeys {
  readonly sourceKey: ContentKey | undefined;
  readonly key: ContentKey | undefined;
  /** True if the copy can share the source's stored content. */
  readonly shares: boolean;
}

/** Part of the source, with the copy's position before and behind it. */
interface PartToCopy {
  readonly position: bigint;
  readonly next: bigint;
  readonly part: CopyPart;
  readonly extents: readonly ExtentLocation[];
  readonly keys: CopyKeys;
  readonly isPages: boolean;
}

export class Copies {
  readonly #objects: Objects;
  /** Name of this process as a copier, never used before. */
  readonly copier: string;
  readonly #waiting: (() => void)[] = [];
  /** Copies under way, by copy id. */
  readonly #jobs = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  #running = 0;

  constructor(objects: Objects, copier: string) {
    this.#objects = objects;
    this.copier = copier;
  }

  get count(): number {
    return this.#jobs.size;
  }

  get isFull(): boolean {
    return this.#jobs.size >= running + copiesWaitingMax;
  }

  /** Copies in the background. Resolves when the copy is over, in any way. */
  begin(job: CopyJob): Promise<void> {
    const known = this.#jobs.get(job.copyId);
    if (known) return known;
    const work = this.#inTurn(job).finally(() => this.#jobs.delete(job.copyId));
    this.#jobs.set(job.copyId, work);
    return work;
  }

  /** Looks at a blob that a request met: an abandoned copy into it is taken over. */
  met(to: LocatedBlob, { copy }: Blob): void {
    const { clock } = this.#objects.parts.world;
    if (copy?.status !== "pending" || copy.work === undefined || this.isFull || this.#jobs.has(copy.copyId)) return;
    if (clock.wallMs() - Number(copy.work.beatMs) < copyStaleMs) return;
    const { copyId } = copy;
    this.#jobs.set(
      copyId,
      this.#claim(to, copyId).finally(() => this.#jobs.delete(copyId)),
    );
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    for (const go of this.#waiting.splice(0)) go();
    await Promise.all(this.#jobs.values());
  }

  async #claim(to: LocatedBlob, copyId: string): Promise<void> {
    const { router } = this.#objects.parts;
    const here = await this.#isPrimary(to.account);
    if (!here.ok || !here.value) return;
    const claimed = await router.execute({ case: "claimCopy", value: { name: to, copyId, copier: this.copier } }, this.#limits());
    if (!claimed.ok || claimed.value.case !== "blob") return;
    const { copy, blobType, encryptionScope: scope } = claimed.value.value;
    if (!copy?.work) return;
    const { from, fromUrl: url, fromEtag: etag, next: position } = copy.work;
    const totalBytes = fromWire(copy.totalBytes);
    if (from) await this.#inTurn({ to, copyId, from: { name: from, etag }, position, scope });
    else await this.#inTurn({ to, copyId, from: { url, etag, totalBytes, blobType }, position, scope });
  }

  #limits() {
    const { world, config } = this.#objects.parts;
    return { deadlineMs: world.clock.monotonicMs() + config.requestTimeoutMs, signal: this.#stop.signal };
  }

  async #inTurn(job: CopyJob): Promise<void> {
    if (this.#running >= running) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    try {
      await this.#copy(job);
    } catch (error) {
      // Nothing of it is lost: another copier goes on where the row says.
      this.#objects.parts.world.logger.error("a copy failed by a bug", { copyId: job.copyId, error });
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  /** Copies until the copy is over, or can't go on for a while. */
  async #copy(job: CopyJob): Promise<void> {
    const { clock, random, logger } = this.#objects.parts.world;
    const signal = this.#stop.signal;
    let position = job.position;
    for (let failedSinceMs: number | undefined; !signal.aborted; ) {
      // The copy goes on at the account's primary, whichever stamp that is.
      const here = await this.#isPrimary(job.to.account);
      if (here.ok && !here.value) return;
      const step = here.ok ? await this.#step({ ...job, position }) : here;
      if (step.ok) {
        if (step.value === undefined) return;
        position = step.value;
        failedSinceMs = undefined;
        continue;
      }
      failedSinceMs ??= clock.monotonicMs();
      if (clock.monotonicMs() - failedSinceMs > givesUpAfterMs) {
        logger.warn("a copy is left to another copier", { copyId: job.copyId, failure: step.failure });
        return;
      }
      await sleep(clock, jittered(random, 1_000), signal);
    }
  }

  /** True if this stamp is the primary of the account. */
  async #isPrimary(account: string): Promise<Outcome<boolean>> {
    const { accounts } = this.#objects.parts;
    const role = accounts.roleKnown(account) ?? (await accounts.roleNow(account, this.#limits()));
    if (role === undefined) return refused("deadlineExceeded", "timeout", "the account was not read in time");
    return role.ok ? ok(role.value === undefined || role.value.role === "primary") : role;
  }

  /** Copies some more parts. Returns the next position; undefined: the copy is over. */
  #step(job: CopyJob): Promise<Outcome<bigint | undefined>> {
    return "url" in job.from ? this.#stepElsewhere(job, job.from) : this.#stepHere(job, job.from);
  }

  async #stepElsewhere(job: CopyJob, from: ForeignCopy): Promise<Outcome<bigint | undefined>> {
    const { to, position } = job;
    const timeoutMs = this.#objects.parts.config.requestTimeoutMs;
    const onChunk = this.#beating(job, position);
    const pins = this.#objects.pins(to);
    try {
      const signal = this.#stop.signal;
      const key = await this.#keyOf(to.account, job.scope);
      if (!key.ok) return await this.#unreadable(job, key.error);
      const how = { to, position: fromWire(position), timeoutMs, signal, onChunk, pins, key: key.value };
      const step = await foreignStep(this.#objects, from, how);
      if (!step.ok) return step;
      if (step.value.kind === "end") return await this.#end(job, step.value.blob, "");
      if (step.value.kind === "failed") return await this.#end(job, undefined, step.value.description);
      const { parts, next } = step.value;
      const added = await this.#add(job, position, next, [...parts]);
      return added.ok ? ok(added.value ? next : undefined) : added;
    } finally {
      pins.drop();
    }
  }

  async #stepHere(job: CopyJob, from: { readonly name: LocatedBlob; readonly etag: string }): Promise<Outcome<bigint | undefined>> {
    const { router } = this.#objects.parts;
    // Whether the source may be archived was decided when the copy began.
    const read = { name: from.name, conditions: { ifMatch: from.etag }, first: job.position, archivedToo: true };
    const answer = await router.execute({ case: "readParts", value: read }, this.#limits());
    if (!answer.ok) return answer;
    const found = answer.value;
    if (found.case === "error") {
      const why = isHandleRefusal(found.value.code) ? "a client holds the source open" : "the source was changed or deleted";
      return this.#end(job, undefined, `${found.value.code}: ${why}.`);
    }
    if (found.case !== "copyParts" || !found.value.blob) return refused("internal", "bug", `parts are answered by ${found.case}`);
    const { blob, parts, next, extents } = found.value;
    const sourceKey = await this.#keyOf(from.name.account, blob.encryptionScope);
    if (!sourceKey.ok) return this.#unreadable(job, sourceKey.error);
    const key = await this.#keyOf(job.to.account, job.scope);
    if (!key.ok) return this.#unreadable(job, key.error);
    const shares = sharesKey({ account: from.name.account, scope: blob.encryptionScope }, { account: job.to.account, scope: job.scope });
    const keys: CopyKeys = { sourceKey: sourceKey.value, key: key.value, shares };
    const isPages = blob.blobType === "PageBlob";
    for (const [at, part] of parts.entries()) {
      const position = at === 0 ? job.position : part.index;
      const after = parts[at + 1]?.index ?? next ?? part.index + 1n;
      const added = await this.#addPart(job, { position, next: after, part, extents, keys, isPages });
      if (!added.ok || !added.value) return added.ok ? ok(undefined) : added;
    }
    if (next !== undefined) return ok(next);
    return this.#end(job, blob, "");
  }

  /** Adds a part; false: the copy was aborted or taken over. */
  async #addPart(job: CopyJob, piece: PartToCopy): Promise<Outcome<boolean>> {
    const { position, next, part, keys } = piece;
    const shared = keys.shares ? await this.#add(job, position, next, [part]) : undefined;
    if (shared && (shared.ok || shared.failure.reason !== "badPlace")) return shared;
    const pins = this.#objects.pins(job.to);
    try {
      const moved = await this.#move(job, piece, pins);
      return moved.ok ? await this.#add(job, position, next, [moved.value]) : moved;
    } finally {
      pins.drop();
    }
  }

  async #add(job: CopyJob, position: bigint, next: bigint, parts: CopyPart[]): Promise<Outcome<boolean>> {
    const { to: name, copyId } = job;
    const value = { name, copyId, copier: this.copier, position, next, parts };
    const added = await this.#objects.parts.router.execute({ case: "addToCopy", value }, this.#limits());
    return added.ok ? ok(added.value.case === "blob") : added;
  }

  /** Copies one part by its bytes, into the destination's range and under the copy's key. */
  async #move(job: CopyJob, { position, part, extents, keys, isPages }: PartToCopy, pins: UploadPins): Promise<Outcome<CopyPart>> {
    this.#objects.parts.reader.learn(extents.map(locationFromWire));
    const blocks: CopyBlock[] = [];
    const options = { signal: this.#stop.signal, onChunk: this.#beating(job, position), pins, key: keys.key, isPages };
    for (const block of part.blocks) {
      const places = await moveBytes(this.#objects, job.to, block.places, { ...options, sourceKey: keys.sourceKey });
      if (!places.ok) return places;
      blocks.push({ ...block, places: [...places.value] });
    }
    if (part.inline.length === 0 || keys.key === undefined) return ok({ ...part, blocks });
    // Encrypted content has a place.
    const places = await writeBytes(this.#objects, job.to, one(part.inline), options);
    if (!places.ok) return places;
    const whole = create(CopyBlockSchema, { sizeBytes: toWire(part.inline.length), places: [...places.value] });
    return ok({ ...part, inline: new Uint8Array(0), blocks: [whole] });
  }

  async #keyOf(account: string, scope: string | undefined): Promise<Parsed<ContentKey | undefined>> {
    return this.#objects.parts.scopes.ofBlob(account, scope === undefined ? {} : { encryptionScope: scope }, undefined, this.#limits());
  }

  /** Ends the copy if its scope is disabled; temporary failures do not. */
  #unreadable(job: CopyJob, { status, code, message }: RestError): Promise<Outcome<undefined>> {
    if (status >= 500) return Promise.resolve(refused("unavailable", "notReady", `the key of a copy: ${code}: ${message}`));
    return this.#end(job, undefined, `${code}: ${message}`);
  }

  /** Says from time to time that this copier is still there; false when the copy is over. */
  #beating(job: CopyJob, position: bigint): () => Promise<boolean> {
    const { clock } = this.#objects.parts.world;
    let beatenMs = clock.monotonicMs();
    return async () => {
      if (clock.monotonicMs() - beatenMs < beatEveryMs) return true;
      beatenMs = clock.monotonicMs();
      const added = await this.#add(job, position, position, []);
      return !added.ok || added.value;
    };
  }

  /** Ends the copy; `blob`: the source, if all of it was copied. */
  async #end(job: CopyJob, blob: Blob | undefined, description: string): Promise<Outcome<undefined>> {
    const { to: name, copyId } = job;
    const source = { appendBlockCount: blob?.committedBlockCount ?? 0, sealed: blob?.sealed ?? false };
    const value = { name, copyId, copier: this.copier, description, ...source };
    const ended = await this.#objects.parts.router.execute({ case: "endCopy", value }, this.#limits());
    return ended.ok ? ok(undefined) : ended;
  }
}

/** Writes bytes of one range into another one's blob data. */
export async function moveBytes(
  objects: Objects,
  to: LocatedBlob,
  places: readonly Place[],
  options: {
    readonly signal: AbortSignal;
    /** Returns false to stop the copy after a chunk. */
    readonly onChunk?: () => Promise<boolean>;
    /** Pins that keep the bytes until they are dropped; without them the bytes stay long enough for a commit now. */
    readonly pins?: UploadPins;
    /** Keys of the bytes that are read and of those that are written. */
    readonly sourceKey: ContentKey | undefined;
    readonly key: ContentKey | undefined;
    readonly isPages: boolean;
  },
): Promise<Outcome<readonly Place[]>> {
  const { signal, onChunk = async () => true, sourceKey } = options;
  const { reader, config, world } = objects.parts;
  const downloads = objects.parts.downloads.of({ account: to.account, address: "" });
  const windowBytes = config.downloadWindowBytes;
  async function* bytes(): AsyncGenerator<Uint8Array> {
    const from = places.map(placeFromWire);
    const stored = reader.readPlaces(from.map(spanOf), { timeoutMs: config.requestTimeoutMs, windowBytes, signal });
    for await (const chunk of sourceKey ? decrypted(world.digest, sourceKey, from, stored) : stored) {
      if (!(await onChunk())) throw new FailureError(refused("aborted", "conflict", "the copy is over").failure);
      yield chunk;
    }
  }
  const taken = await downloads.take(windowBytes);
  if (!taken.ok) return taken;
  try {
    return await writeBytes(objects, to, bytes(), options);
  } finally {
    downloads.give(windowBytes);
  }
}

async function writeBytes(
  objects: Objects,
  to: LocatedBlob,
  bytes: AsyncIterable<Uint8Array>,
  options: {
    readonly signal: AbortSignal;
    readonly pins?: UploadPins;
    readonly key: ContentKey | undefined;
    readonly isPages: boolean;
  },
): Promise<Outcome<readonly Place[]>> {
  const { signal, pins, key, isPages } = options;
  try {
    const wants = { md5: false, crc64: false };
    const received = await objects.receive(to, bytes, {
      contentLengthBytes: undefined,
      wants,
      signal,
      key,
      isPages,
      ...(pins && { pins }),
    });
    return received.ok ? ok(received.value.places) : failedToMove(received);
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: { ...error.failure, applied: "no" } };
    throw error;
  }
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}

const failedToMove = ({ error }: { readonly error: RestError }): Failed =>
  refused("unavailable", "notReady", `bytes of a copy: ${error.code}: ${error.message}`);
