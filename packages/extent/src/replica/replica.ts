/**
 * One replica of an extent on one node: what it holds, whether it takes appends, what it may serve. Pure: the node's shell writes
 * journal records for what is decided here and reports back when they are durable.
 *
 *      open ──fence / failed append / restart──> closed ──the stream manager's length──> sealed
 *        └────────────── damage (lost or unreadable bytes) from any state ──────────> damaged
 *
 * Invariants: durable ≤ end; committed ≤ durable on the primary; nothing goes from right to left; a sealed replica never changes but
 * in its version; appends are taken in `open` only, at `end` only.
 */
import { type ExtentId, type ExtentVersion, type Failure, type OwnerEpoch, type Rules, refused } from "@stamp/base";
import { combineCrc32c } from "../format/crc.ts";
import type { Creation, ReplicaMeta, ReplicaPlace, ReplicaState } from "./replica-meta.ts";

/** Ends of recent appends whose content checksum is remembered: a seal usually cuts at one of them. */
const boundariesMax = 256;

interface Boundary {
  readonly endBytes: number;
  readonly checksum: number;
}

const refusal = (...args: Parameters<typeof refused>): Failure => refused(...args).failure;

export class Replica {
  readonly extentId: ExtentId;
  readonly replicas: readonly ReplicaPlace[];
  readonly ownerEpoch: OwnerEpoch;
  /** Creation of the extent that this replica is of; undefined: the extent has no creation number, or the replica can't be read. */
  readonly creation: Creation | undefined;
  readonly #rules: Rules;
  version: ExtentVersion;
  state: ReplicaState;
  fenced: boolean;
  restarted: boolean;
  /** True if an append failed at some replica: everything after it fails, too. */
  failed = false;
  sealedLengthBytes: number | undefined;
  checksum: number | undefined;
  damage: string;
  /** Accepted, synced or not: where the next append goes. */
  endBytes: number;
  durableBytes: number;
  /** Acknowledged to the owner, as far as this replica knows. */
  committedBytes: number;
  appliedLsn: number;
  /** Version of the newest Fence. A killed process forgets it, and with it every call that was on its way. */
  #fencedVersion = 0;
  #primaryIncarnation: number | undefined;
  /** Content checksums at the end of recent appends, ascending; empty when the running checksum is not known. */
  #boundaries: Boundary[];

  constructor(meta: ReplicaMeta, rules: Rules) {
    this.extentId = meta.extentId;
    this.replicas = meta.replicas;
    this.ownerEpoch = meta.ownerEpoch;
    this.creation = meta.creation;
    this.#rules = rules;
    this.version = meta.version;
    this.state = meta.state;
    this.fenced = meta.fenced;
    this.restarted = meta.restarted;
    this.sealedLengthBytes = meta.sealedLengthBytes;
    this.checksum = meta.checksum;
    this.damage = meta.damage;
    this.endBytes = meta.durableBytes;
    this.durableBytes = meta.durableBytes;
    this.committedBytes = meta.committedBytes;
    this.appliedLsn = meta.appliedLsn;
    this.#boundaries = meta.durableBytes === 0 ? [{ endBytes: 0, checksum: 0 }] : [];
  }

  get meta(): ReplicaMeta {
    return {
      extentId: this.extentId,
      version: this.version,
      ownerEpoch: this.ownerEpoch,
      state: this.state,
      fenced: this.fenced,
      restarted: this.restarted,
      sealedLengthBytes: this.sealedLengthBytes,
      checksum: this.checksum,
      durableBytes: this.durableBytes,
      committedBytes: this.committedBytes,
      appliedLsn: this.appliedLsn,
      replicas: this.replicas,
      damage: this.damage,
      ...(this.creation === undefined ? {} : { creation: this.creation }),
    };
  }

  isPrimary(nodeId: string): boolean {
    return this.replicas[0]?.nodeId === nodeId;
  }

  /** Returns the failure with which every append is refused; undefined: none. */
  #closed(): Failure | undefined {
    switch (this.state) {
      case "damaged":
        return refusal("dataLoss", "damaged", `extent ${this.extentId} is damaged here: ${this.damage}`);
      case "sealed":
        return refusal("failedPrecondition", "extentSealed", `extent ${this.extentId} is sealed`);
      case "closed":
      case "open":
        if (this.fenced) return refusal("failedPrecondition", "extentFenced", `extent ${this.extentId} is fenced`);
        if (this.restarted)
          return refusal("failedPrecondition", "extentStale", `extent ${this.extentId} was open before this node restarted`);
        if (this.failed) return refusal("failedPrecondition", "extentFailed", `an append to extent ${this.extentId} failed`);
        return undefined;
    }
  }

  #epochTooLow(epoch: OwnerEpoch): Failure | undefined {
    if (epoch >= this.ownerEpoch || !this.#rules.on("ownerEpochAtNode")) return undefined;
    return refusal("failedPrecondition", "staleOwnerEpoch", `owner epoch ${epoch} is below ${this.ownerEpoch}`, {
      currentOwnerEpoch: String(this.ownerEpoch),
    });
  }

  /** Refuses, at the primary, an append by an owner that may not be taken. */
  refuseAppend(nodeId: string, epoch: OwnerEpoch, expectedOffsetBytes: number): Failure | undefined {
    if (!this.isPrimary(nodeId)) return refusal("failedPrecondition", "notPrimary", `extent ${this.extentId} has its primary elsewhere`);
    const why = this.#closed() ?? this.#epochTooLow(epoch);
    if (why !== undefined) return why;
    if (expectedOffsetBytes !== this.endBytes && this.#rules.on("clientExpectsOffset")) {
      return refusal("failedPrecondition", "offsetGap", `expected ${expectedOffsetBytes}, the end is ${this.endBytes}`, {
        endBytes: String(this.endBytes),
      });
    }
    return undefined;
  }

  /** Refuses, at a secondary, a record by the primary that may not be taken. Its bytes were verified before. */
  refuseReplicate(epoch: OwnerEpoch, offsetBytes: number, primaryIncarnation: number): Failure | undefined {
    const why = this.#closed() ?? this.#epochTooLow(epoch);
    if (why !== undefined) return why;
    if (!this.#rules.on("contiguousOffsets")) return undefined;
    if (this.#primaryIncarnation !== undefined && this.#primaryIncarnation !== primaryIncarnation) {
      return refusal("failedPrecondition", "extentStale", `the primary of extent ${this.extentId} restarted`);
    }
    if (offsetBytes !== this.endBytes) {
      return refusal("failedPrecondition", "offsetGap", `record at ${offsetBytes}, the end is ${this.endBytes}`, {
        endBytes: String(this.endBytes),
      });
    }
    return undefined;
  }

  rememberPrimary(incarnation: number): void {
    this.#primaryIncarnation ??= incarnation;
  }

  /** Takes a record that was not refused; gives the offset where it goes. `checksum` is the crc32c of its bytes. */
  accept(lengthBytes: number, checksum: number): number {
    const offsetBytes = this.endBytes;
    const last = this.#boundaries[this.#boundaries.length - 1];
    this.endBytes = offsetBytes + lengthBytes;
    if (last?.endBytes === offsetBytes) {
      if (this.#boundaries.length >= boundariesMax) this.#boundaries.splice(0, boundariesMax / 2);
      this.#boundaries.push({ endBytes: this.endBytes, checksum: combineCrc32c(last.checksum, checksum, lengthBytes) });
    }
    return offsetBytes;
  }

  durableTo(endBytes: number): void {
    this.durableBytes = Math.max(this.durableBytes, endBytes);
  }

  learnCommitted(bytes: number): void {
    this.committedBytes = Math.max(this.committedBytes, bytes);
  }

  /** Returns the crc32c of [0, lengthBytes), if a read is not needed for it. */
  checksumAt(lengthBytes: number): number | undefined {
    return this.#boundaries.find((boundary) => boundary.endBytes === lengthBytes)?.checksum;
  }

  /** Fences the replica; `version`: version of the extent that is being sealed. */
  fence(version = 0): void {
    this.#fencedVersion = Math.max(this.#fencedVersion, version);
    this.fenced = true;
    if (this.state === "open") this.state = "closed";
  }

  fail(): void {
    this.failed = true;
    if (this.state === "open") this.state = "closed";
  }

  restart(): void {
    if (this.state !== "open" && this.state !== "closed") return;
    if (!this.#rules.on("neverReopen")) return;
    this.restarted = true;
    this.state = "closed";
  }

  /** Returns why the replica can't be sealed at this length; undefined: it can, or is sealed so. */
  refuseSeal(lengthBytes: number, version: number): Failure | undefined {
    if (version < this.#fencedVersion && this.#rules.on("newerSealOnly")) {
      const message = `extent ${this.extentId} is being sealed at version ${this.#fencedVersion}, this is a seal of version ${version}`;
      return refusal("failedPrecondition", "extentStale", message);
    }
    if (this.state === "damaged") return refusal("dataLoss", "damaged", `extent ${this.extentId} is damaged here: ${this.damage}`);
    if (this.state === "sealed" && this.sealedLengthBytes !== lengthBytes) {
      return refusal(
        "failedPrecondition",
        "extentSealed",
        `extent ${this.extentId} is sealed at ${this.sealedLengthBytes}, not at ${lengthBytes}`,
        {
          sealedLengthBytes: String(this.sealedLengthBytes),
        },
      );
    }
    return undefined;
  }

  /** Seals: all of [0, lengthBytes) is durable here; what is longer is cut off. */
  seal(lengthBytes: number, version: ExtentVersion, checksum: number): void {
    this.state = "sealed";
    this.fenced = true;
    this.restarted = false;
    this.sealedLengthBytes = lengthBytes;
    this.checksum = checksum;
    this.endBytes = lengthBytes;
    this.durableBytes = lengthBytes;
    this.committedBytes = lengthBytes;
    if (version > this.version) this.version = version;
  }

  markDamaged(why: string): void {
    this.state = "damaged";
    this.damage = why.slice(0, 200);
  }

  /** Returns why a reader may not get these bytes now; undefined: it may. */
  refuseRead(offsetBytes: number, lengthBytes: number): Failure | undefined {
    if (this.state === "damaged") return refusal("dataLoss", "damaged", `extent ${this.extentId} is damaged here: ${this.damage}`);
    if (this.restarted && this.state !== "sealed" && this.#rules.on("trimBeforeServing")) {
      return refusal("unavailable", "extentStale", `this replica of extent ${this.extentId} waits to learn the sealed length`);
    }
    if (offsetBytes + lengthBytes > this.durableBytes) {
      return refusal("outOfRange", "outOfRange", `extent ${this.extentId} ends here at ${this.durableBytes}`, {
        durableBytes: String(this.durableBytes),
      });
    }
    return undefined;
  }
}
