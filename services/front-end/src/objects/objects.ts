/**
 * Operations on objects for both doors (HTTP and gRPC): containers are looked up, operations go to their range, lists go on over ranges.
 * Answers are values; a `RestError` says what the service would.
 */

import { bodyLimitsOf, newestVersion, type Parsed, parsed, restError } from "@stamp/azure-rest";
import { clientAddress, type Outcome, refused } from "@stamp/base";
import { blockUnitBytes, isShareContainer, pageUnitBytes } from "@stamp/objects";
import { type Cause, uuid, type World } from "@stamp/ports";
import type { ExtentReader } from "@stamp/stream-client";
import type { Blob, BlobContent, Container, ListedBlob, Place } from "@stamp/wire";
import { fromWire, toWire } from "@stamp/wire";
import type { Accounts } from "../accounts/accounts.ts";
import { type ContentKey, type ScopeKeys, underKey } from "../accounts/content-key.ts";
import type { FrontEndConfig } from "../config.ts";
import type { BodyPieces } from "../content/body-pieces.ts";
import type { ByteBudget, ByteHolder } from "../content/byte-budget.ts";
import { Download } from "../content/download.ts";
import { WriteCipher } from "../content/encryption.ts";
import type { TextMemory } from "../content/text-memory.ts";
import { quickChunkBytes, receiveBody, type UploadedContent } from "../content/upload.ts";
import { UploadPins } from "../content/upload-pins.ts";
import { Copies } from "../copy/copies.ts";
import type { ForeignSources } from "../copy/foreign-sources.ts";
import { overRanges } from "../routing/over-ranges.ts";
import type { CallLimits, OperationKind, ResultKind, ResultValues, Router } from "../routing/router.ts";
import type { Handles } from "../trees/handles.ts";
import { type Trees, whenSettled } from "../trees/trees.ts";
import { answeredCase } from "./answered.ts";
import { BlobPages } from "./blob-pages.ts";
import { restErrorOf } from "./failures.ts";
import type { ParentRows } from "./parent-rows.ts";
import { type ContainerDeletion, deleteContainer, executeProtecting } from "./protecting.ts";
import type { Queues } from "./queues.ts";
import type { Tables } from "./tables.ts";

export interface ObjectsParts {
  readonly world: World;
  readonly config: FrontEndConfig;
  readonly router: Router;
  readonly accounts: Accounts;
  readonly containers: ParentRows;
  readonly queues: Queues;
  readonly tables: Tables;
  readonly trees: Trees;
  readonly handles: Handles;
  readonly scopes: ScopeKeys;
  /** True if encrypted content may be written in units, which a release before feature level 4 does not read. */
  readonly mayWriteUnits: () => boolean;
  /** True if shares may be made, whose files a release before feature level 4 does not read. */
  readonly mayMakeShares: () => boolean;
  readonly reader: ExtentReader;
  readonly foreignSources: ForeignSources;
  /** Budget of content on its way in. */
  readonly uploads: ByteBudget;
  /** Room for whole pieces of quick uploads: `pieceShare` of that of `uploads`. */
  readonly pieces: ByteBudget;
  /** Documents that are read whole. */
  readonly documents: ByteBudget;
  readonly downloads: ByteBudget;
  /** Memory that long answers are written into. */
  readonly texts: TextMemory;
  readonly bodies: BodyPieces;
}

export interface BlobAddress {
  readonly account: string;
  readonly container: string;
  readonly blob: string;
}

/** With the incarnation of its container, as a read of the row said that was sent after the request arrived. */
export interface LocatedBlob extends BlobAddress {
  readonly containerIncarnation: bigint;
  /** Stamps of a snapshot and of a version; 0 for the blob itself. */
  readonly snapshotStamp: bigint;
  readonly versionStamp: bigint;
}

export interface ListContainersQuestion {
  readonly account: string;
  readonly prefix: string;
  readonly marker: string;
  readonly markerStamp?: bigint;
  readonly maxResults: number;
  readonly includeDeleted?: boolean;
  /** True: shares of the Files service are listed. Others never see them, whatever their prefix is. */
  readonly ofShares?: boolean;
}

/** True if both name the same blob, snapshot or version. */
export const isSameBlob = (one: LocatedBlob, other: LocatedBlob): boolean =>
  one.account === other.account &&
  one.container === other.container &&
  one.blob === other.blob &&
  one.snapshotStamp === other.snapshotStamp &&
  one.versionStamp === other.versionStamp;

export interface FindBlobsQuestion {
  readonly where: string;
  /** Container to search; undefined: all of the account. */
  readonly container: string | undefined;
  readonly marker: string;
  readonly maxResults: number;
}

export interface FoundBlob {
  readonly name: string;
  readonly container: string;
  readonly tags: Readonly<Record<string, string>>;
}

export interface ListBlobsQuestion {
  readonly prefix: string;
  readonly delimiter: string;
  readonly marker: string;
  readonly maxResults: number;
  readonly includeMetadata: boolean;
  readonly includeUncommitted: boolean;
  readonly markerStamp?: bigint;
  readonly includeSnapshots?: boolean;
  readonly includeVersions?: boolean;
  readonly includeDeleted?: boolean;
  readonly includeDeletedWithVersions?: boolean;
  readonly includeTags?: boolean;
  readonly onlyDeleted?: boolean;
  readonly onlyProtected?: boolean;
  /** True if entries come packed, from partition servers that can. */
  readonly packed?: boolean;
}

/** Bound of the containers that a search in an account looks into in one go. */
const containersPerSearchMax = 100;

const blobItself: Pick<LocatedBlob, "snapshotStamp" | "versionStamp"> = { snapshotStamp: 0n, versionStamp: 0n };

type DeleteBlobInit = Extract<OperationKind, { case: "deleteBlob" }>["value"];

export interface ReceiveOptions {
  readonly contentLengthBytes: number | undefined;
  readonly wants: { md5: boolean; crc64: boolean };
  /** Address of the sending client; undefined: the stamp itself reads the content somewhere. */
  readonly from?: string;
  readonly signal?: AbortSignal;
  /** Client's request; undefined: the work is the front-end's own. */
  readonly cause?: Cause | undefined;
  /** Key under which the content is encrypted; undefined: none. */
  readonly key?: ContentKey | undefined;
  /** True if the content is pages, which later writes replace one by one. */
  readonly isPages?: boolean;
  /** Keeps the bytes for a commit that comes much later, until the caller drops it; by default they stay long enough for one that comes now. */
  readonly pins?: UploadPins;
}

export class Objects {
  readonly parts: ObjectsParts;

  /** Copies that go on after their request has ended. */
  readonly copies: Copies;

  constructor(parts: ObjectsParts) {
    this.parts = parts;
    this.copies = new Copies(this, `${parts.config.name}/${uuid(parts.world.random)}`);
  }

  /** Returns the result that the router answered. */
  resultOf<C extends keyof ResultValues>(result: ResultKind, expected: C): Parsed<ResultValues[C]> {
    return answeredCase({ ok: true, value: result }, expected);
  }

  get tables(): Tables {
    return this.parts.tables;
  }

  /** Returns the answer of the range's server as it is. A file that an operation of its tree, or an ended session, holds is written when that is over. */
  run(kind: OperationKind, limits: CallLimits): Promise<Outcome<ResultKind>> {
    const settled = () => whenSettled(this.parts.trees, kind, limits, () => executeProtecting(this, kind, limits));
    return this.parts.handles.beside(kind, limits, settled);
  }

  /** Deletes a container. Refused while a policy or a hold protects anything inside. */
  deleteContainer(asked: ContainerDeletion, limits: () => CallLimits): Promise<Parsed<undefined>> {
    return deleteContainer(this, asked, limits);
  }

  /** Executes an operation. Returns the result of the case that its success has. */
  async execute<C extends keyof ResultValues>(kind: OperationKind, expected: C, limits: CallLimits): Promise<Parsed<ResultValues[C]>> {
    return answeredCase(await this.run(kind, limits), expected);
  }

  async container(account: string, container: string, limits: CallLimits): Promise<Parsed<Container>> {
    const row = await this.parts.containers.read(account, container, limits);
    if (!row) return { ok: false, error: restErrorOf(late.failure) };
    return answeredCase(row, "container");
  }

  /** `containerIncarnation` from a row that the caller has read for this request. */
  located(blob: BlobAddress, container: Container, stamps = blobItself): LocatedBlob {
    return { ...blob, containerIncarnation: container.incarnation, ...stamps };
  }

  /** Deletes, step by step where there is much; whether nothing is kept. */
  async deleteBlob(value: DeleteBlobInit, limits: () => CallLimits): Promise<Parsed<boolean>> {
    for (;;) {
      const gone = await this.execute({ case: "deleteBlob", value }, "deleted", limits());
      if (!gone.ok) return gone;
      if (!gone.value.more) return parsed(gone.value.permanent);
    }
  }

  async listContainers(
    { ofShares = false, ...question }: ListContainersQuestion,
    limits: CallLimits,
  ): Promise<Parsed<{ containers: Container[]; nextMarker: string; nextMarkerStamp: bigint }>> {
    if (!ofShares && isShareContainer(question.prefix)) return parsed({ containers: [], nextMarker: "", nextMarkerStamp: 0n });
    const containers: Container[] = [];
    let nextMarkerStamp = 0n;
    const kind = (maxResults: number): OperationKind => ({ case: "listContainers", value: { ...question, maxResults } });
    const nextMarker = await overRanges(this.parts.router, kind, question.maxResults, limits, {
      read: (outcome) => answeredCase(outcome, "containers"),
      take: (page) => {
        containers.push(...page.containers);
        nextMarkerStamp = page.nextMarkerStamp;
        return page.containers.length;
      },
      first: (page) => page.containers[0]?.name,
    });
    return nextMarker.ok ? parsed({ containers, nextMarker: nextMarker.value, nextMarkerStamp }) : nextMarker;
  }

  async listBlobs(
    account: string,
    container: Container,
    question: Omit<ListBlobsQuestion, "packed">,
    limits: CallLimits,
  ): Promise<Parsed<{ entries: ListedBlob[]; nextMarker: string; nextMarkerStamp: bigint }>> {
    const listed = await this.blobPages(account, container, question, limits);
    if (!listed.ok) return listed;
    const { pages, ...next } = listed.value;
    return parsed({ entries: pages.messages, ...next });
  }

  async blobPages(
    account: string,
    container: Container,
    question: ListBlobsQuestion,
    limits: CallLimits,
  ): Promise<Parsed<{ pages: BlobPages; nextMarker: string; nextMarkerStamp: bigint }>> {
    const pages = new BlobPages();
    let nextMarkerStamp = 0n;
    const value = { account, container: container.name, containerIncarnation: container.incarnation, ...question };
    const kind = (maxResults: number): OperationKind => ({ case: "listBlobs", value: { ...value, maxResults } });
    const nextMarker = await overRanges(this.parts.router, kind, question.maxResults, limits, {
      read: (outcome) => answeredCase(outcome, "blobs"),
      take: (page) => {
        nextMarkerStamp = page.nextMarkerStamp;
        return pages.take(page);
      },
      first: (page) => pages.first(page),
    });
    return nextMarker.ok ? parsed({ pages, nextMarker: nextMarker.value, nextMarkerStamp }) : nextMarker;
  }

  /**
   * Finds blobs whose tags fulfil the expression. A page may hold fewer than fit and not be the last: each reads a
   * bounded number of blobs.
   */
  async findBlobs(
    account: string,
    container: Container,
    { where, marker, maxResults }: Omit<FindBlobsQuestion, "container">,
    limits: CallLimits,
  ): Promise<Parsed<{ found: FoundBlob[]; nextMarker: string }>> {
    const found: FoundBlob[] = [];
    const { name, incarnation } = container;
    const value = { account, container: name, containerIncarnation: incarnation, where, marker };
    const kind = (left: number): OperationKind => ({ case: "findBlobs", value: { ...value, maxResults: left } });
    const nextMarker = await overRanges(this.parts.router, kind, maxResults, limits, {
      read: (outcome) => answeredCase(outcome, "blobs"),
      take: (page) => {
        for (const { kind: entry } of page.entries) {
          if (entry.case === "blob") found.push({ name: entry.value.name, container: name, tags: entry.value.tags });
        }
        return page.entries.length;
      },
      first: (page) => (page.entries[0]?.kind.case === "blob" ? page.entries[0].kind.value.name : undefined),
    });
    return nextMarker.ok ? parsed({ found, nextMarker: nextMarker.value }) : nextMarker;
  }

  /** Container after container. A marker is a container's name, and behind a slash where to go on in it. */
  async findBlobsInAccount(
    account: string,
    question: FindBlobsQuestion,
    limits: () => CallLimits,
  ): Promise<Parsed<{ found: FoundBlob[]; nextMarker: string }>> {
    const found: FoundBlob[] = [];
    const slash = question.marker.indexOf("/");
    let from = slash < 0 ? question.marker : question.marker.slice(0, slash);
    let marker = slash < 0 ? "" : question.marker.slice(slash + 1);
    for (let looked = 0; looked < containersPerSearchMax && found.length < question.maxResults; looked++) {
      const next = await this.listContainers({ account, prefix: question.container ?? "", marker: from, maxResults: 1 }, limits());
      if (!next.ok) return next;
      const container = next.value.containers[0];
      if (!container || (question.container ?? container.name) !== container.name) return parsed({ found, nextMarker: "" });
      const here = { ...question, maxResults: question.maxResults - found.length, marker: container.name === from ? marker : "" };
      const page = await this.findBlobs(account, container, here, limits());
      if (!page.ok) return page;
      found.push(...page.value.found);
      if (page.value.nextMarker !== "") return parsed({ found, nextMarker: `${container.name}/${page.value.nextMarker}` });
      // The first name behind this one.
      from = `${container.name}\0`;
      marker = "";
    }
    return parsed({ found, nextMarker: from });
  }

  /** Receives the whole body. The caller verifies it before a row refers to it. */
  async receive(name: LocatedBlob, body: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<Parsed<UploadedContent>> {
    const pins = options.pins ?? this.pins(name);
    const startedMs = this.parts.world.clock.monotonicMs();
    try {
      const received = await this.#receive(name, body, { ...options, pins });
      if (!received.ok) return received;
      if (options.pins === undefined) await pins.close();
      return (await this.#stillThere(name, startedMs)) ?? received;
    } finally {
      if (options.pins === undefined) pins.drop();
    }
  }

  /** Keeps the extents of an upload to this blob. */
  pins(name: LocatedBlob): UploadPins {
    const { world, router } = this.parts;
    const route = router.routeOfBlob(name);
    return new UploadPins(world, route, (to, extentIds, limits) => router.pinData(to, extentIds, limits));
  }

  /** Checks that a container still exists: rows inside a deleted one are collected after a time that is long for a request, but not for a body. */
  async #stillThere(name: LocatedBlob, startedMs: number): Promise<Parsed<never> | undefined> {
    const { world, config } = this.parts;
    const nowMs = world.clock.monotonicMs();
    if (nowMs - startedMs < config.requestTimeoutMs) return undefined;
    const row = await this.container(name.account, name.container, { deadlineMs: nowMs + config.requestTimeoutMs });
    if (!row.ok) return row;
    return row.value.incarnation === name.containerIncarnation ? undefined : { ok: false, error: restError("ContainerNotFound") };
  }

  #receive(
    name: LocatedBlob,
    body: AsyncIterable<Uint8Array>,
    options: ReceiveOptions & { readonly pins: UploadPins },
  ): Promise<Parsed<UploadedContent>> {
    const { world, config, router, uploads, pieces, bodies, mayWriteUnits } = this.parts;
    const holder = holderOf(name, options.from);
    const { pins } = options;
    const route = router.routeOfBlob(name);
    const unitBytes = options.isPages === true ? pageUnitBytes : blockUnitBytes;
    return receiveBody(body, {
      contentLengthBytes: options.contentLengthBytes,
      bytesMax: bodyLimitsOf(newestVersion).putBlobBytesMax,
      wants: options.wants,
      inlineBytesMax: config.inlineBytesMax,
      pieceBytes: config.pieceBytes,
      windowBytes: config.uploadWindowBytes,
      quickChunkBytes,
      budget: uploads.of(holder, options.signal),
      pieceRoom: pieces.of(holder, options.signal),
      digest: world.digest,
      cipher: options.key && new WriteCipher(world, options.key, mayWriteUnits() ? unitBytes : undefined),
      memory: bodies.uploads,
      writeData: async (payload, free): Promise<Outcome<readonly Place[]>> => {
        if (pins.goneExtentId !== undefined) {
          const why = `extent ${pins.goneExtentId}, with bytes of this upload, left blob data: write the data again`;
          return refused("unavailable", "badPlace", why);
        }
        const deadlineMs = world.clock.monotonicMs() + config.requestTimeoutMs;
        const { signal, cause } = options;
        const limits = { deadlineMs, cause, ...(signal && { signal }) };
        const written = await router.writeData(route, payload, limits, free);
        if (!written.ok) return written;
        pins.add(written.value.places, written.value.pinTermMs);
        return { ok: true, value: written.value.places };
      },
    });
  }

  /** Returns the bytes of what a GetBlob answered, to the end of what it was asked for. `key`: one that the client brings. */
  async download(
    name: LocatedBlob,
    blob: Blob,
    content: BlobContent,
    endBytes: number,
    /** `to`: address of the client that gets it; undefined: the stamp itself writes it somewhere. */
    { to, signal, key, cause }: Pick<ReceiveOptions, "key" | "cause"> & { readonly to?: string; readonly signal: AbortSignal },
  ): Promise<Parsed<Download>> {
    const { world, config, router, reader, downloads, bodies } = this.parts;
    const openMs = world.clock.monotonicMs() + config.requestTimeoutMs;
    const under = await this.parts.scopes.ofBlob(name.account, blob, key, { deadlineMs: openMs, signal, cause });
    if (!under.ok) return under;
    const download = new Download(content, endBytes, {
      clock: world.clock,
      reader,
      budget: downloads.of(holderOf(name, to), signal),
      windowBytes: config.downloadWindowBytes,
      pieces: bodies.of(holderOf(name, to)),
      readTimeoutMs: config.requestTimeoutMs,
      signal,
      cause,
      decrypting: under.value && { digest: world.digest, key: under.value },
      again: async (startBytes, endBytes) => {
        const deadlineMs = world.clock.monotonicMs() + config.requestTimeoutMs;
        const conditions = underKey(key, { ifMatch: blob.etag });
        const value = { name, conditions, startBytes: toWire(startBytes), endBytes: toWire(endBytes) };
        const answer = await router.execute({ case: "getBlob", value }, { deadlineMs, signal, cause });
        if (!answer.ok) return answer;
        if (answer.value.case === "content") return { ok: true, value: answer.value.value };
        return refused("aborted", "conflict", `${name.blob} was changed or deleted while it was read`);
      },
    });
    const opened = await download.open();
    return opened.ok ? parsed(download) : { ok: false, error: restErrorOf(opened.failure) };
  }
}

const holderOf = ({ account }: LocatedBlob, address = ""): ByteHolder => ({ account, address: clientAddress(address) });

const late = refused("deadlineExceeded", "timeout", "the container's row was not read in time");

/** Returns the end of what is sent when a blob is read: all of it, or what the range says, clipped to the blob. */
export function endOf(blob: Blob, endBytes: number | undefined): number {
  const length = fromWire(blob.contentLengthBytes);
  return endBytes === undefined ? length : Math.min(endBytes, length);
}
