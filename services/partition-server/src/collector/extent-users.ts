/**
 * Finds the blobs of a range that have bytes in one extent (`PartitionServer.ListExtentUsers`): the way back from an extent to what refers to
 * it. Rows know their extents, extents do not know their rows. So rows are read, page by page.
 *
 * Invariants:
 * - A page reads 20,000 rows, past the caches, and goes on to the end of a blob; 200,000 rows end a page anywhere. One page at a time is made
 *   in a process.
 * - An extent that the range's stream of blob data does not have, or is about to give back, costs no row.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { compareBytes, emptyBytes, type Outcome, ok, refused } from "@stamp/base";
import { decodeKey, type RowEntry, successor } from "@stamp/objects";
import { rangeEnd } from "@stamp/partition-map";
import { type ListExtentUsersResponseSchema, toWire } from "@stamp/wire";
import type { ServingRange } from "../ranges/holdings.ts";
import { placesOf } from "./reported-places.ts";

/** Bounds of one page. `rows`: read before it ends behind a blob; `rowsMax`: before it ends anywhere. */
export interface UsersPage {
  readonly users: number;
  readonly rows: number;
  readonly rowsMax: number;
}

const usualPage: UsersPage = { users: 200, rows: 20_000, rowsMax: 200_000 };

interface User {
  readonly account: string;
  readonly container: string;
  readonly blob: string;
  bytes: number;
}

export class ExtentUsers {
  readonly #page: UsersPage;
  #isReading = false;

  constructor(page: UsersPage = usualPage) {
    this.#page = page;
  }

  async page(
    held: Pick<ServingRange, "range" | "engine">,
    extentId: number,
    fromKey: Uint8Array,
  ): Promise<Outcome<MessageInitShape<typeof ListExtentUsersResponseSchema>>> {
    const { range, engine } = held;
    if (range.table !== "Blob" || !engine.mayReferTo({ extentId, offsetBytes: 0, lengthBytes: 1 })) return ok(nobody);
    if (this.#isReading) return refused("resourceExhausted", "throttled", "this server reads its rows for another question: try again");
    this.#isReading = true;
    const found = new Found(extentId, this.#page);
    try {
      const low = compareBytes(fromKey, range.low) > 0 ? fromKey : range.low;
      const end = rangeEnd(range);
      if (compareBytes(low, end) >= 0) return ok(nobody);
      const walked = await engine.read((view) => view.walk(low, end, (row) => found.see(row), { hidden: true }), { background: true });
      if (!walked.ok) return walked;
    } finally {
      this.#isReading = false;
    }
    return ok({ users: found.users.map((user) => ({ ...user, bytes: toWire(user.bytes) })), nextKey: found.nextKey });
  }
}

const nobody = { users: [], nextKey: emptyBytes };

class Found {
  readonly users: User[] = [];
  nextKey: Uint8Array = emptyBytes;
  readonly #extentId: number;
  readonly #page: UsersPage;
  #rows = 0;

  constructor(extentId: number, page: UsersPage) {
    this.#extentId = extentId;
    this.#page = page;
  }

  /** Returns where to look next; undefined: the page is full. */
  see(row: RowEntry): Uint8Array | undefined {
    const { key } = row;
    const components = decodeKey(key, 2);
    const [[account] = [], [, container, , blob] = []] = components.ok ? components.value : [];
    const last = this.users.at(-1);
    const isSame = last?.account === account && last?.container === container && last?.blob === blob;
    const { users, rows, rowsMax } = this.#page;
    if (this.#rows >= rowsMax || (!isSame && (this.#rows >= rows || this.users.length >= users))) {
      this.nextKey = Uint8Array.from(key);
      return undefined;
    }
    this.#rows++;
    if (typeof account === "string" && typeof container === "string" && typeof blob === "string") {
      const bytes = this.#bytesIn(row);
      if (bytes > 0 && isSame && last) last.bytes += bytes;
      else if (bytes > 0) this.users.push({ account, container, blob, bytes });
    }
    return successor(key);
  }

  /** A row that can't be read names nothing here: scrubbing and the collector tell of it. */
  #bytesIn(row: RowEntry): number {
    const places = placesOf(row);
    if (!places.ok) return 0;
    return places.value.reduce((sum, { extentId, lengthBytes }) => sum + (extentId === this.#extentId ? lengthBytes : 0), 0);
  }
}
