/**
 * Log of events in order: time, kind, process, detail. Every entry goes into a running hash, so that two runs of one
 * seed can be compared without keeping them; the last `keptMax` entries are kept for people.
 */
const keptMaxDefault = 4000;

interface Entry {
  timeUs: number;
  kind: string;
  process: string;
  detail: string;
  fields: unknown;
}

export interface EventLogOptions {
  /** Number of entries that are kept; 0: all. */
  readonly keptMax?: number;
  /** Function that gets every line as it is written. */
  readonly onLine?: ((line: string) => void) | undefined;
}

export class EventLog {
  readonly #keptMax: number;
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #kept: Entry[] = [];
  readonly #hashes = new Map<string, number>();
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);
  #next = 0;
  #a = 0x811c9dc5;
  #b = 0x9e3779b9;
  count = 0;

  constructor(options: EventLogOptions = {}) {
    this.#keptMax = options.keptMax ?? keptMaxDefault;
    this.#onLine = options.onLine;
  }

  /** `fields` are for people and not hashed; `detail` is. */
  add(timeUs: number, kind: string, process: string, detail: string, fields?: unknown): void {
    this.count += 1;
    this.#double[0] = timeUs;
    this.#mix(this.#words[0] as number);
    this.#mix(this.#words[1] as number);
    this.#mix(this.#hashOf(kind));
    this.#mix(this.#hashOf(process));
    this.#mix(this.#hashOf(detail));
    if (this.#onLine) this.#onLine(line({ timeUs, kind, process, detail, fields }));
    if (this.#keptMax === 0 || this.#kept.length < this.#keptMax) {
      this.#kept.push({ timeUs, kind, process, detail, fields });
      return;
    }
    const entry = this.#kept[this.#next] as Entry;
    entry.timeUs = timeUs;
    entry.kind = kind;
    entry.process = process;
    entry.detail = detail;
    entry.fields = fields;
    this.#next = (this.#next + 1) % this.#keptMax;
  }

  /** Hash of everything so far: equal for equal runs. */
  get hash(): string {
    return (this.#a >>> 0).toString(16).padStart(8, "0") + (this.#b >>> 0).toString(16).padStart(8, "0");
  }

  /** Returns the last lines, oldest first. */
  lines(lastMax = Number.MAX_SAFE_INTEGER): string[] {
    const ordered = [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)];
    return ordered.slice(Math.max(0, ordered.length - lastMax)).map(line);
  }

  toString(): string {
    return this.lines().join("\n");
  }

  #mix(word: number): void {
    this.#a = Math.imul(this.#a ^ word, 0x01000193);
    this.#b = Math.imul((this.#b ^ word) + 0x7f4a7c15, 0x85ebca6b);
    this.#b ^= this.#b >>> 13;
  }

  #hashOf(text: string): number {
    const known = this.#hashes.get(text);
    if (known !== undefined) return known;
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    if (this.#hashes.size < 10_000) this.#hashes.set(text, hash);
    return hash;
  }
}

function line(entry: Entry): string {
  const fields = entry.fields === undefined ? "" : ` ${show(entry.fields)}`;
  return `${(entry.timeUs / 1000).toFixed(3).padStart(12)} ${entry.process.padEnd(20)} ${entry.kind.padEnd(12)} ${entry.detail}${fields}`;
}

function show(fields: unknown): string {
  try {
    return JSON.stringify(fields, (_key, value: unknown) => {
      if (typeof value === "bigint") return `${value}n`;
      if (value instanceof Uint8Array) return `bytes[${value.length}]`;
      if (value instanceof Error) return String(value);
      return value;
    });
  } catch {
    return String(fields);
  }
}
