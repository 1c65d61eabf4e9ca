/**
 * Replaying the journal over what the extent files' headers said: record in, effect on the extent file out. Idempotent: a record whose
 * LSN the header already reflects changes nothing but may write the same bytes again. A replica is never silently shorter: whatever
 * the journal lost marks the replicas that it may have concerned.
 */
import { type ExtentId, extentVersion, type Rules } from "@stamp/base";
import { Replica } from "../replica/replica.ts";
import { decodeMeta, isUnreadable } from "../replica/replica-meta.ts";
import { decodePointerBody, decodeSealBody, type JournalHeader, type PointerBody } from "./journal-record.ts";

export type ReplayEffect =
  | { readonly kind: "none" }
  /** The body goes to this offset of the extent. */
  | { readonly kind: "write"; readonly offsetBytes: number }
  /** The bytes are in the file already; whether they are intact is to be seen. */
  | ({ readonly kind: "pointed"; readonly offsetBytes: number } & PointerBody)
  | { readonly kind: "create" }
  | { readonly kind: "truncate"; readonly lengthBytes: number }
  | { readonly kind: "remove" }
  /** Puts the finished copy beside the extent file in its place. */
  | { readonly kind: "adoptCopy" };

/** The term of the stream manager that a node obeys. A term after more lowerings outweighs every term before. */
export interface ObeyedTerm {
  readonly term: number;
  /** Number of times that a person lowered the term. */
  readonly lowerings: number;
}

const none: ReplayEffect = { kind: "none" };

export class Replay {
  readonly replicas: Map<ExtentId, Replica>;
  #obeyed: ObeyedTerm = { term: 0, lowerings: 0 };
  /** True if records are lost of which it is not known what they were: the node must learn its SM term anew. */
  forgetful = false;
  /** Checkpoint LSN of the journal's newest segment: records behind it are complete, or known to be lost. */
  checkpointLsn: number = Number.POSITIVE_INFINITY;
  readonly #rules: Rules;
  /** Unsealed when records were lost; cleared by an append that fits on seamlessly. */
  readonly #suspects: Set<ExtentId> = new Set();

  /** Keyed by extent: what its file held, synced, when the replay began. It is not written again. */
  readonly #synced: ReadonlyMap<ExtentId, number>;

  constructor(replicas: Map<ExtentId, Replica>, rules: Rules, synced: ReadonlyMap<ExtentId, number> = new Map()) {
    this.replicas = replicas;
    this.#synced = synced;
    this.#rules = rules;
  }

  /** The SM term that this node obeyed last. */
  get obeyed(): ObeyedTerm {
    return this.#obeyed;
  }

  /** Takes a term from a record or from the header of a segment, in any order. */
  learnTerm(found: ObeyedTerm): void {
    const { term, lowerings } = this.#obeyed;
    if (found.lowerings > lowerings || (found.lowerings === lowerings && found.term > term)) this.#obeyed = found;
  }

  record(header: JournalHeader, body: Uint8Array): ReplayEffect {
    if (header.type === "term") {
      this.learnTerm({ term: header.offsetBytes, lowerings: header.ownerEpoch });
      return none;
    }
    const replica = this.replicas.get(header.extentId);
    if (header.type === "append") {
      return this.#append(replica, header, header.bodyBytes) ? { kind: "write", offsetBytes: header.offsetBytes } : none;
    }
    if (header.type === "pointer") {
      const pointer = decodePointerBody(body);
      if (pointer.kind === "invalid") return this.#damage(replica, pointer.why);
      const wanted = this.#append(replica, header, pointer.value.lengthBytes);
      return wanted ? { kind: "pointed", offsetBytes: header.offsetBytes, ...pointer.value } : none;
    }
    if (replica !== undefined && header.lsn <= replica.appliedLsn) return none;
    switch (header.type) {
      case "create":
      case "repair": {
        const meta = decodeMeta(body);
        if (meta.kind === "invalid") return this.#damage(replica, meta.why);
        if (header.type === "create" && replica !== undefined && !this.#isWhole(replica, header.lsn)) return none;
        const made = new Replica(meta.value, this.#rules);
        made.appliedLsn = header.lsn;
        this.replicas.set(header.extentId, made);
        this.#suspects.delete(header.extentId);
        return header.type === "create" ? { kind: "create" } : { kind: "adoptCopy" };
      }
      case "fence":
        replica?.fence();
        break;
      case "seal": {
        const seal = decodeSealBody(body);
        if (seal.kind === "invalid") return this.#damage(replica, seal.why);
        if (replica === undefined) return none;
        if (replica.state === "damaged") return none;
        if (replica.endBytes < header.offsetBytes) {
          return this.#damage(replica, `sealed at ${header.offsetBytes}, but only ${replica.endBytes} bytes are here`);
        }
        replica.seal(header.offsetBytes, extentVersion(seal.value.version), seal.value.checksum);
        replica.appliedLsn = header.lsn;
        this.#suspects.delete(header.extentId);
        return { kind: "truncate", lengthBytes: header.offsetBytes };
      }
      case "delete":
        this.replicas.delete(header.extentId);
        this.#suspects.delete(header.extentId);
        return { kind: "remove" };
      case "damaged":
        replica?.markDamaged(new TextDecoder().decode(body));
        break;
    }
    if (replica !== undefined) replica.appliedLsn = header.lsn;
    return none;
  }

  /** True if its file has no header yet, or none that can be read; but the journal has all that ever happened to it. */
  #isWhole({ meta }: Replica, createdLsn: number): boolean {
    return isUnreadable(meta) && createdLsn > this.checkpointLsn;
  }

  /** Replays an append; true: its bytes must be in the file and are not known to be. */
  #append(replica: Replica | undefined, header: JournalHeader, lengthBytes: number): boolean {
    // Its create record is lost, or it was deleted later: an unknown extent is never a length.
    if (replica === undefined || replica.state === "damaged") return false;
    const end = header.offsetBytes + lengthBytes;
    replica.learnCommitted(header.committedBytes);
    const inFile = end <= (this.#synced.get(replica.extentId) ?? 0);
    if (replica.state === "sealed") return !inFile && end <= (replica.sealedLengthBytes ?? 0);
    if (header.offsetBytes > replica.endBytes) {
      this.#damage(replica, `a record at ${header.offsetBytes} follows ${replica.endBytes}`);
      return false;
    }
    if (header.offsetBytes === replica.endBytes) this.#suspects.delete(replica.extentId);
    if (end > replica.endBytes) {
      replica.endBytes = end;
      replica.durableTo(end);
    }
    return !inFile;
  }

  /** Takes a record whose header is intact but whose body is not. */
  damagedRecord(header: JournalHeader): void {
    if (header.type === "term") {
      this.learnTerm({ term: header.offsetBytes, lowerings: header.ownerEpoch });
      return;
    }
    const replica = this.replicas.get(header.extentId);
    if (replica === undefined || header.type === "fence" || header.type === "damaged") return;
    if (replica.state === "sealed" && header.lsn <= replica.appliedLsn) return;
    this.#damage(replica, `journal record ${header.lsn} is damaged`);
  }

  /** Records whose very headers are gone: any replica that is not sealed may have lost its end. */
  lostRecords(): void {
    this.forgetful = true;
    for (const replica of this.replicas.values()) {
      if (replica.state === "open" || replica.state === "closed") this.#suspects.add(replica.extentId);
    }
  }

  #damage(replica: Replica | undefined, why: string): ReplayEffect {
    replica?.markDamaged(why);
    return none;
  }

  /** Ends the replay: suspects become damaged, and no unsealed extent is continued. */
  finish(): void {
    for (const id of this.#suspects) this.replicas.get(id)?.markDamaged("journal records are lost");
    for (const replica of this.replicas.values()) replica.restart();
  }
}
