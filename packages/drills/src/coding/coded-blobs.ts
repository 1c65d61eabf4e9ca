/**
 * Blobs of 4 MiB of a drill that are meant to lie in coded extents. A reader compares every byte of them while the fault is on, and keeps how
 * long each read took, retries included. A blob that is absent, has other bytes, or can't be read for 30 s is a broken promise.
 */
import { type CodingStatus, type ExtentInfo, ExtentState } from "@stamp/wire";
import type { BlobClient } from "../blob-client.ts";
import { contentOf } from "../checking-client.ts";
import type { DrillTarget } from "../target.ts";

/** One read from its first attempt to its answer, by `performance.now()`. */
export interface ReadTime {
  readonly startMs: number;
  readonly endMs: number;
}

const blobBytes = 4 * 1_024 * 1_024;
/** Number of blobs written between two looks at the extents. */
const blobsPerRound = 4;
const blobsMax = 64;
/** Number of sealed extents that the blobs fill. */
const extentsWanted = 3;
const codedWithinMs = 90_000;
const readWithinMs = 30_000;
const readersAtOnce = 2;
const retryPauseMs = 20;
const readPauseMs = 10;
const pollMs = 500;
const brokenMax = 20;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const idOf = (extent: ExtentInfo): string => String(extent.location?.extentId);
export const isSealed = ({ state }: ExtentInfo): boolean => state === ExtentState.SEALED;

/** Returns true if a sealed extent has fewer intact replicas or fragments than it is meant to have. */
export const lacksPieces = (extent: ExtentInfo): boolean =>
  isSealed(extent) &&
  (extent.coded === undefined ? extent.intactCopies < extent.nodeIds.length : extent.intactFragments < extent.fragmentNodeIds.length);

export const codingStatusOf = ({ inspector }: Pick<DrillTarget, "inspector">): Promise<CodingStatus> =>
  inspector.ask((manager, timeoutMs) => manager.getCodingStatus({}, { timeoutMs }));

export class CodedBlobs {
  /** Every read that was answered, in the order of the answers. */
  readonly times: ReadTime[] = [];
  readonly broken: string[] = [];
  readonly #target: Pick<DrillTarget, "inspector">;
  readonly #client: Pick<BlobClient, "createContainer" | "put" | "get">;
  readonly #container: string;
  /** Content of each blob that was acknowledged, by its name. */
  readonly #contents = new Map<string, Buffer>();
  /** Extents that the blobs filled. */
  #extents: ReadonlySet<string> = new Set();
  #running = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(target: Pick<DrillTarget, "inspector">, client: Pick<BlobClient, "createContainer" | "put" | "get">, container: string) {
    this.#target = target;
    this.#client = client;
    this.#container = container;
  }

  /** Writes blobs until they fill some extents of blob data. */
  async write(): Promise<void> {
    const before = new Set((await this.#dataExtents()).map(idOf));
    await this.#must("the container", 201, () => this.#client.createContainer(this.#container));
    for (;;) {
      const first = this.#contents.size;
      await Promise.all(Array.from({ length: blobsPerRound }, (_, i) => this.#put(`coded-${first + i}`)));
      const filled = (await this.#dataExtents()).filter((each) => isSealed(each) && !before.has(idOf(each)));
      this.#extents = new Set(filled.map(idOf));
      if (filled.length >= extentsWanted) return;
      const { size } = this.#contents;
      if (size >= blobsMax)
        throw new Error(`${size} blobs of 4 MiB fill ${filled.length} extents, ${extentsWanted} are needed (extentTargetBytes)`);
    }
  }

  /** Waits until the extents that the blobs filled are coded. Returns those that are there. */
  async untilCoded(): Promise<readonly ExtentInfo[]> {
    const untilMs = performance.now() + codedWithinMs;
    for (;;) {
      const extents = await this.extents();
      const coded = extents.filter((each) => each.coded !== undefined && each.attempt === "");
      if (coded.length === extents.length && coded.length > 0) return coded;
      if (performance.now() > untilMs) {
        const { reasons, failures } = await codingStatusOf(this.#target);
        const why = [...failures, ...reasons.map((reason) => `${reason.extents} extents: ${reason.why}`)].join("; ");
        throw new Error(`${coded.length} of ${extents.length} extents are coded after ${codedWithinMs / 1_000} s: ${why}`);
      }
      await pause(pollMs);
    }
  }

  /** Returns the extents that the blobs filled. */
  async extents(): Promise<readonly ExtentInfo[]> {
    return (await this.#dataExtents()).filter((each) => this.#extents.has(idOf(each)));
  }

  /** Reads one blob after another until `stop`. */
  begin(): void {
    this.#running = true;
    this.#loop = this.#readAlong();
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#loop;
  }

  /** Reads every blob once and compares it; `when` names the moment in the text of a broken promise. */
  async readAll(when: string): Promise<void> {
    const names = [...this.#contents.keys()];
    let next = 0;
    const reader = async (): Promise<void> => {
      while (next < names.length) await this.#read(names[next++] as string, when, () => false);
    };
    await Promise.all(Array.from({ length: readersAtOnce }, reader));
  }

  async #readAlong(): Promise<void> {
    const names = [...this.#contents.keys()];
    for (let number = 0; this.#running && names.length > 0; number++) {
      await this.#read(names[number % names.length] as string, "while it ran", () => !this.#running);
      await pause(readPauseMs);
    }
  }

  /** Reads until there is an answer. `over`: a read without an answer is left then. */
  async #read(name: string, when: string, over: () => boolean): Promise<void> {
    const startMs = performance.now();
    for (;;) {
      const got = await this.#client.get(this.#container, name);
      const endMs = performance.now();
      if (got.kind === "answer" && got.status < 500) {
        this.times.push({ startMs, endMs });
        if (got.status !== 200) this.#break(`${name} was acknowledged, but reading it ${when} gives ${got.status}`);
        else if (!this.#contents.get(name)?.equals(got.body)) this.#break(`${name}: other bytes than were written, read ${when}`);
        return;
      }
      if (over()) return;
      if (endMs - startMs > readWithinMs) {
        this.times.push({ startMs, endMs });
        this.#break(`${name} can't be read ${when}: ${got.kind === "answer" ? got.status : got.why}`);
        return;
      }
      await pause(retryPauseMs);
    }
  }

  #break(what: string): void {
    if (this.broken.length < brokenMax) this.broken.push(what);
  }

  async #dataExtents(): Promise<readonly ExtentInfo[]> {
    return (await this.#target.inspector.extents()).filter(({ stream }) => stream.endsWith("/blob-data"));
  }

  async #put(name: string): Promise<void> {
    const content = contentOf(name, blobBytes);
    await this.#must(name, 201, () => this.#client.put(this.#container, name, content));
    this.#contents.set(name, content);
  }

  /** Repeats a write until it is answered with this status. */
  async #must(what: string, status: number, write: () => ReturnType<BlobClient["put"]>): Promise<void> {
    const untilMs = performance.now() + readWithinMs;
    for (;;) {
      const put = await write();
      if (put.kind === "answer" && put.status === status) return;
      if ((put.kind === "answer" && put.status < 500) || performance.now() > untilMs)
        throw new Error(`${what} can't be written: ${put.kind === "answer" ? put.status : put.why}`);
      await pause(retryPauseMs);
    }
  }
}
