/** Calls to the geo door of another stamp: one of its front-ends, and the next one when that one does not answer. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { FailureError, featureLevel, neededLevels, type Outcome, ok, refused } from "@stamp/base";
import type { RowVersion } from "@stamp/geo";
import type { ShippedTable } from "@stamp/objects";
import type { CallOptions, Transport } from "@stamp/ports";
import {
  type SeedLink,
  type SeedPart,
  type Shipment,
  type ShippingLink,
  type VersionsLink,
  versionFromDetails,
} from "@stamp/range-partition";
import { type CopyWordSchema, fromWire, GeoDoor, type ShippedVersion, toWire } from "@stamp/wire";
import type { HandlesBesideRows } from "./data/blob-link.ts";
import type { DataLink } from "./data/data-copier.ts";
import type { DataHandle } from "./data/data-handles.ts";
import { rowBytesOf, type ShippingTotals } from "./shipping-figures.ts";

/** How far the account's copy is. */
export interface CopyReport {
  readonly epoch: bigint;
  readonly paired: bigint;
  readonly complete: boolean;
  readonly lastSyncMs?: bigint;
  /** Highest lineage of the logs, and lowest lineage of the copy's stamp that a range was seeded under. */
  readonly lineage: bigint;
  readonly copyLineage: bigint;
}

/**
 * Returns the transport that proves the secret of another stamp, by the stamp's name. `forKeys`: for keys of accounts: refused if whoever has that
 * secret could be the stamp's door.
 */
export type TransportToStamp = (stamp: string, forKeys?: boolean) => Outcome<Transport>;

interface Link {
  readonly account: string;
  readonly table: ShippedTable;
  readonly peer: string;
  /** Addresses of front-ends, host:port. */
  readonly doors: readonly string[];
  readonly transportTo: TransportToStamp;
  /** Role epoch under which the other stamp is primary, for a primary that it deposed. */
  readonly promotedAs?: number;
  /** Role epoch of the account, for bytes; rows name it themselves. */
  readonly epoch?: number;
  /** Number of the operation that began the copy; undefined: not known. */
  readonly paired?: number | undefined;
  /** Lineage of the range's log; undefined or 0: it has lost nothing. */
  readonly lineage?: number;
  /** Returns the lineage of the other stamp under which the rows were seeded; undefined: not needed. */
  readonly copyLineage?: () => number;
  /** Returns the feature level of this stamp, whose formats rows may have. Needed to ship rows. */
  readonly level?: () => number;
  /** Refuses a version of the other stamp that is above the end of the range's log. Undefined: nothing is sent that could be left out. */
  readonly notAhead?: (held: RowVersion) => Outcome<void>;
  /** Counts what is sent. Undefined: nobody counts. */
  readonly totals?: ShippingTotals;
  /** Called at each answer. */
  readonly onAnswer?: (answer: Outcome<unknown>) => void;
}

/** Bounds of the term that the other stamp tells: pins are renewed several times in a term, and a release before tells none. */
const pinTermMsMin = 1_000;
const pinTermMsMax = 600_000;
/** Part of a handle that is kept: no release gives more. */
const macBytesMax = 32;
const tagBytes = 32;

type Options = Pick<CallOptions, "timeoutMs" | "signal">;

export class GeoLink implements ShippingLink, SeedLink, VersionsLink, DataLink {
  readonly #link: Link;
  #door = 0;

  constructor(link: Link) {
    this.#link = link;
  }

  async ship({ epoch, name, commits, handles }: Shipment & HandlesBesideRows, options: Options): Promise<Outcome<unknown>> {
    const { account, table, totals, paired = 0, lineage = 0, copyLineage } = this.#link;
    const shipment = {
      epoch: toWire(epoch),
      paired: toWire(paired),
      lineage: toWire(lineage),
      ...(copyLineage === undefined ? {} : { copyLineage: toWire(copyLineage()) }),
      name,
      commits: commits.map(({ sequence, lastTicket, writes }) => ({
        sequence: toWire(sequence),
        lastTicket: toWire(lastTicket),
        rows: writes.map((write) => (write.kind === "put" ? { key: write.key, value: write.value } : { key: write.key })),
      })),
      handles: handles?.map(handleToWire) ?? [],
    };
    const shipped = await this.#rowsAtDoor((transport, door) =>
      transport
        .client(door, GeoDoor)
        .ship({ account, epoch: toWire(epoch), table, level: this.#level, knownLevel: featureLevel, shipment }, options),
    );
    if (!shipped.ok || totals === undefined) return shipped;
    totals.shippedCommits += commits.length;
    for (const { rows } of shipment.commits) totals.shippedRowBytes += rowBytesOf(rows);
    return shipped;
  }

  async seed(
    { epoch, sequence, lastTicket, low, high, rows, piece, handles }: SeedPart & HandlesBesideRows,
    options: Options,
  ): Promise<Outcome<unknown>> {
    const { account, table, totals, paired = 0, lineage = 0 } = this.#link;
    const part = {
      epoch: toWire(epoch),
      paired: toWire(paired),
      lineage: toWire(lineage),
      sequence: toWire(sequence),
      lastTicket: toWire(lastTicket),
      lowKey: low,
      highKey: high,
      rows: rows.map(([key, value]) => ({ key, value })),
      ...(piece && { pieceOf: piece.name, lastPiece: piece.isLast }),
      handles: handles?.map(handleToWire) ?? [],
    };
    const seeded = await this.#rowsAtDoor((transport, door) =>
      transport
        .client(door, GeoDoor)
        .seed({ account, epoch: toWire(epoch), table, level: this.#level, knownLevel: featureLevel, part }, options),
    );
    if (seeded.ok && totals !== undefined) totals.shippedRowBytes += rowBytesOf(part.rows);
    return seeded;
  }

  /** Feature level of what is shipped. A receiver that knows no lineage would take the commits of a later one for old ones, and skip them. */
  get #level(): number {
    const { level = noLevel, lineage = 0 } = this.#link;
    return Math.max(level(), lineage === 0 ? 0 : neededLevels.lineages);
  }

  async writeData(name: Uint8Array, payload: Uint8Array, options: Options): ReturnType<DataLink["writeData"]> {
    const { account, epoch = 0 } = this.#link;
    const written = await this.#atDoor((transport, door) =>
      transport.client(door, GeoDoor).writeData({ account, epoch: toWire(epoch), name, payload }, options),
    );
    if (!written.ok) return written;
    if (this.#link.totals !== undefined) this.#link.totals.shippedBlobBytes += payload.length;
    const place = written.value.places[0];
    if (place === undefined) return refused("internal", "bug", "a write of bytes was answered without a place");
    const { mac } = written.value;
    return readable(() => {
      const at = { extentId: fromWire(place.extentId), offsetBytes: fromWire(place.offsetBytes), lengthBytes: place.lengthBytes };
      fromWire(place.offsetBytes + BigInt(place.lengthBytes));
      const pinTermMs = Math.min(Math.max(written.value.pinTermMs, pinTermMsMin), pinTermMsMax);
      // Copied: the bytes of a message lie in the buffer of its connection, and a handle is kept for long.
      return { place: at, handle: mac.length === 0 ? undefined : { place: at, mac: mac.slice(0, macBytesMax) }, pinTermMs };
    });
  }

  async pinData(name: Uint8Array, extentIds: readonly number[], options: Options): ReturnType<DataLink["pinData"]> {
    const { account, epoch = 0 } = this.#link;
    const request = { account, epoch: toWire(epoch), name, extentIds: extentIds.map(toWire) };
    const pinned = await this.#atDoor((transport, door) => transport.client(door, GeoDoor).pinData(request, options));
    return pinned.ok ? readable(() => pinned.value.goneExtentIds.map(fromWire)) : pinned;
  }

  /** Tells the other stamp the progress of its copy. Returns that stamp's lineage. */
  async report(report: CopyReport, options: Options): Promise<Outcome<{ readonly lineage: number }>> {
    const { account } = this.#link;
    const told = await this.#atDoor((transport, door) => transport.client(door, GeoDoor).report({ ...report, account }, options));
    return told.ok ? readable(() => ({ lineage: fromWire(told.value.lineage) })) : told;
  }

  /**
   * Gives the other stamp keys and settings of the account, or asks whether it has those of a tag. Answers with the tag of its own if they differ. Who
   * is not proven to be that stamp may not confirm anything either.
   */
  async pushSettings(word: MessageInitShape<typeof CopyWordSchema>, options: Options): Promise<Outcome<Uint8Array | undefined>> {
    const told = await this.#atDoor((transport, door) => transport.client(door, GeoDoor).pushSettings(word, options), true);
    return told.ok ? ok(told.value.settingsWanted ? told.value.tag.slice(0, tagBytes) : undefined) : told;
  }

  /** Asks the new primary for the versions that its copy had. */
  async versions(names: readonly Uint8Array[], options: Options): Promise<Outcome<readonly (RowVersion | undefined)[]>> {
    const { account, table, promotedAs = 0 } = this.#link;
    const request = { account, epoch: toWire(promotedAs), table, names: [...names] };
    const told = await this.#atDoor((transport, door) => transport.client(door, GeoDoor).tellVersions(request, options));
    if (!told.ok) return told;
    const { versions } = told.value;
    if (versions.length !== names.length)
      return refused("internal", "badRequest", `${versions.length} versions were told of ${names.length} PartitionNames`);
    return readable(() => versions.map((version) => (version.epoch === 0n ? undefined : versionOf(version))));
  }

  /** Sends rows. Rows that the other stamp left out as old count as shipped only if this stamp's log has had the version that made it old. */
  #rowsAtDoor<T extends { readonly held?: ShippedVersion | undefined }>(
    call: (transport: Transport, door: string) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    return this.#atDoor(async (transport, door) => {
      const answer = await call(transport, door);
      const held = readable(() =>
        answer.ok ? answer.value.held && versionOf(answer.value.held) : versionFromDetails(answer.failure.details),
      );
      if (!held.ok) return held;
      const checked = held.value === undefined ? ok() : (this.#link.notAhead?.(held.value) ?? ok());
      return checked.ok ? answer : checked;
    });
  }

  async #asked<T>(call: (transport: Transport, door: string) => Promise<Outcome<T>>, forKeys: boolean): Promise<Outcome<T>> {
    const { peer, doors, transportTo } = this.#link;
    const door = doors[this.#door % doors.length];
    if (door === undefined)
      return refused(
        "failedPrecondition",
        "notReady",
        `no front-end of stamp ${peer} is known: add the stamp to the location again with --doors (./stamp location add)`,
      );
    const transport = transportTo(peer, forKeys);
    return transport.ok ? call(transport.value, door) : transport;
  }

  async #atDoor<T>(call: (transport: Transport, door: string) => Promise<Outcome<T>>, forKeys = false): Promise<Outcome<T>> {
    const answer = await this.#asked(call, forKeys);
    this.#link.onAnswer?.(answer);
    if (!answer.ok && this.#link.totals !== undefined) this.#link.totals.failedCalls++;
    if (answer.ok || isOfTheStamp(answer.failure.code)) return answer;
    this.#door++;
    return answer;
  }
}

/** Reads a value; numbers that no stamp gives are refused instead of thrown: background work has no caller to catch them. */
function readable<T>(read: () => T): Outcome<T> {
  try {
    return ok(read());
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

const handleToWire = ({ place, mac }: DataHandle) => ({
  extentId: toWire(place.extentId),
  offsetBytes: toWire(place.offsetBytes),
  lengthBytes: place.lengthBytes,
  mac,
});

const versionOf = ({ epoch, lineage, sequence }: ShippedVersion): RowVersion => ({
  epoch: fromWire(epoch),
  lineage: fromWire(lineage),
  number: fromWire(sequence),
});

const noLevel = (): number => {
  throw new Error("rows are shipped by a link that knows no feature level");
};

/** True for refusals that every front-end of the stamp would give. */
const isOfTheStamp = (code: string): boolean => code === "failedPrecondition" || code === "invalidArgument" || code === "aborted";
