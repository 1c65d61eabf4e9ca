/**
 * Judges the promises of the stream layer: an acknowledged record is in the list that every later owner was given, at
 * its place, with its bytes; a sealed length, once told, never changes; all replicas of a sealed extent are the same;
 * and the records of one owner lie in order, none missing before one that is there.
 */
import { Prng } from "@stamp/base";
import { BrokenPromise } from "@stamp/virtual-time";

export interface RecordName {
  readonly epoch: number;
  readonly sequence: number;
}

export interface RecordPlace {
  readonly extent: bigint;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

const nameOf = (record: RecordName): string => `${record.epoch}/${record.sequence}`;

/** Returns the bytes of a record: the name, then what the name gives. */
export function recordBytes(stream: string, record: RecordName, lengthBytes: number): Uint8Array {
  const bytes = new Prng(record.epoch * 100_003 + record.sequence * 17 + stream.length).bytes(Math.max(16, lengthBytes));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, record.epoch);
  view.setUint32(4, record.sequence);
  view.setUint32(8, bytes.length);
  view.setUint32(12, 0x7ec07d00 + stream.length);
  return bytes;
}

export function recordOf(stream: string, bytes: Uint8Array): RecordName {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 16 || view.getUint32(12) !== 0x7ec07d00 + stream.length)
    throw new BrokenPromise(`${stream}: a block that nobody wrote`);
  const record = { epoch: view.getUint32(0), sequence: view.getUint32(4) };
  const expected = recordBytes(stream, record, view.getUint32(8));
  for (let i = 0; i < Math.max(bytes.length, expected.length); i++) {
    if (bytes[i] !== expected[i]) throw new BrokenPromise(`${stream}: record ${nameOf(record)} is not what was written, at byte ${i}`);
  }
  return record;
}

export interface JudgedPlace {
  readonly stream: string;
  readonly record: RecordName;
  readonly place: RecordPlace;
}

export interface BegunExtent {
  readonly stream: string;
  readonly addresses: readonly string[];
}

interface Given {
  readonly epoch: number;
  readonly records: ReadonlySet<string>;
}

interface StreamMemory {
  readonly sent: Set<string>;
  readonly acknowledged: Map<string, { readonly record: RecordName; readonly place: RecordPlace }>;
  readonly happened: Map<string, RecordName>;
  readonly given: Given[];
}

export class StreamJudge {
  readonly #streams = new Map<string, StreamMemory>();
  readonly #sealed = new Map<bigint, number>();
  /** Where a person gave up what lies behind. */
  readonly #givenUp = new Map<bigint, number>();
  /** Extents that owners were given, and where their replicas were. */
  readonly #begun = new Map<bigint, BegunExtent>();
  readonly #counts: Record<string, number>;

  constructor(counts: Record<string, number>) {
    this.#counts = counts;
  }

  count(what: string, more = 1): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + more;
  }

  /** Notes that an owner was given this extent to append to. */
  begun(extent: bigint, where: BegunExtent): void {
    this.#begun.set(extent, where);
  }

  /** Extents that owners were given, in order. */
  get begunExtents(): ReadonlyMap<bigint, BegunExtent> {
    return this.#begun;
  }

  sent(stream: string, record: RecordName): void {
    this.#memory(stream).sent.add(nameOf(record));
  }

  acknowledged(stream: string, record: RecordName, place: RecordPlace): void {
    this.#memory(stream).acknowledged.set(nameOf(record), { record, place });
  }

  /** Its owner was told a sealed length above it. */
  happened(stream: string, record: RecordName): void {
    this.#memory(stream).happened.set(nameOf(record), record);
  }

  /** Notes that somebody was told this sealed length. */
  told(extent: bigint, sealedBytes: number): void {
    const before = this.#sealed.get(extent);
    if (before !== undefined && before !== sealedBytes) {
      throw new BrokenPromise(`extent ${extent} was said to be sealed at ${before}, and later at ${sealedBytes}`);
    }
    this.#sealed.set(extent, sealedBytes);
  }

  /** Notes that a person took what lies behind this length for lost. */
  lossAccepted(extent: bigint, sealedBytes: number): void {
    this.told(extent, sealedBytes);
    this.#givenUp.set(extent, sealedBytes);
  }

  /** Acknowledged places that were. */
  givenUp(extent: bigint): readonly JudgedPlace[] {
    return this.#allPlaces().filter(({ place }) => place.extent === extent && this.#isGivenUp(place));
  }

  /** Takes the records that an owner read, in order, in the list it was given when it opened the stream. */
  given(stream: string, epoch: number, records: readonly RecordName[]): void {
    const memory = this.#memory(stream);
    const next = new Map<number, number>();
    for (const record of records) {
      const name = nameOf(record);
      if (!memory.sent.has(name)) throw new BrokenPromise(`${stream}: owner ${epoch} was given record ${name}, which nobody appended`);
      const expected = next.get(record.epoch) ?? 0;
      if (record.sequence > expected) {
        throw new BrokenPromise(`${stream}: owner ${epoch} was given record ${name}, but ${record.epoch}/${expected} is missing before it`);
      }
      if (record.sequence === expected) next.set(record.epoch, expected + 1);
    }
    memory.given.push({ epoch, records: new Set(records.map(nameOf)) });
    this.count("records read by new owners", records.length);
    this.check();
  }

  /** Over everything known so far; acknowledgements that came late count for the owners before them too. */
  check(): void {
    for (const [stream, memory] of this.#streams) {
      for (const { epoch, records } of memory.given) {
        for (const [name, { record, place }] of memory.acknowledged) {
          if (record.epoch < epoch && !records.has(name) && !this.#isGivenUp(place)) {
            throw new BrokenPromise(`${stream}: record ${name} was acknowledged, but is not in the list that owner ${epoch} was given`);
          }
        }
        for (const [name, record] of memory.happened) {
          if (record.epoch < epoch && !records.has(name)) {
            throw new BrokenPromise(
              `${stream}: record ${name} is below a sealed length, but not in the list that owner ${epoch} was given`,
            );
          }
        }
      }
    }
  }

  places(): JudgedPlace[] {
    return this.#allPlaces().filter(({ place }) => !this.#isGivenUp(place));
  }

  #isGivenUp(place: RecordPlace): boolean {
    const sealedBytes = this.#givenUp.get(place.extent);
    return sealedBytes !== undefined && place.offsetBytes >= sealedBytes;
  }

  #allPlaces(): JudgedPlace[] {
    return [...this.#streams].flatMap(([stream, memory]) => [...memory.acknowledged.values()].map((each) => ({ stream, ...each })));
  }

  #memory(stream: string): StreamMemory {
    let memory = this.#streams.get(stream);
    if (!memory) {
      memory = { sent: new Set(), acknowledged: new Map(), happened: new Map(), given: [] };
      this.#streams.set(stream, memory);
    }
    return memory;
  }
}
