/**
 * Users of a content. A snapshot shares the content of its blob, and so does a version of which only the metadata
 * changed; a users row counts them. Without that row there is one user. With the last user the content goes.
 */
import { contentKey, usersKey } from "../../object-keys.ts";
import { getRow, intact, type Plan, put, type RowWrite, remove } from "../../plan.ts";
import { decodeRow, encodeRow } from "../../rows/row.ts";
import { blobSchema } from "../../rows/schemas.ts";
import type { HeadState } from "./head-row.ts";

type OfContent = Pick<HeadState, "generation" | "pieceStarts">;

/** Collected over a plan, then written once. */
export class ContentUsers {
  readonly #changes = new Map<number, { users: number; pieces: number }>();

  /** Notes that one more head has the content of this one. */
  add(head: OfContent): void {
    this.#change(head, 1);
  }

  /** Notes that this head is gone. */
  drop(head: OfContent): void {
    this.#change(head, -1);
  }

  #change({ generation, pieceStarts }: OfContent, by: number): void {
    const change = this.#changes.get(generation) ?? { users: 0, pieces: 0 };
    change.users += by;
    change.pieces = Math.max(change.pieces, pieceStarts.length);
    this.#changes.set(generation, change);
  }

  /** Returns the writes for the blob with this prefix. */
  *writes(prefix: Uint8Array): Plan<RowWrite[]> {
    const writes: RowWrite[] = [];
    for (const [generation, change] of this.#changes) {
      if (change.users === 0) continue;
      const key = usersKey(prefix, generation);
      const row = yield* getRow(key);
      const before = row === undefined ? undefined : intact(decodeRow(blobSchema, row));
      const contentUsers = (before?.contentUsers ?? 1) + change.users;
      const contentPieces = Math.max(before?.contentPieces ?? 0, change.pieces);
      if (contentUsers > 1) writes.push(put(key, encodeRow(blobSchema, { contentUsers, contentPieces })));
      else if (row !== undefined) writes.push(remove(key));
      if (contentUsers > 0) continue;
      for (let piece = 0; piece < contentPieces; piece++) writes.push(remove(contentKey(prefix, generation, piece)));
    }
    return writes;
  }
}
