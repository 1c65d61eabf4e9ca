/** Blobs, and what can be told as blobs: a container is a table, a blob an entity or the entities of a transaction. */
import type { BlobAnswer, BlobCondition } from "@stamp/linearizability";

export type { BlobCondition };

/** Answer of a door. `notDone`: refused before anything happened; it says nothing of the object. */
export type Answer<T = object> = BlobAnswer | { readonly kind: "notDone"; readonly why: string } | ({ readonly kind: "ok" } & T);

/** Operations on blobs that clients of histories use, by SDK or by gRPC. */
export interface BlobDoor {
  createContainer(container: string): Promise<Answer>;
  deleteContainer(container: string): Promise<Answer>;
  put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer>;
  get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>>;
  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer>;
  list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>>;
}

/** Judges an answer that is no success: a 500 is unknown, everything else was not done. */
export function answerOfStatus(status: number, code: string | undefined): Answer {
  if (status === 500) return { kind: "unknown" };
  return answerOfCode(code) ?? { kind: "notDone", why: `${status} ${code}` };
}

/** Returns the answer that a code means; undefined for codes that say nothing of the object. */
export function answerOfCode(code: string | undefined): BlobAnswer | undefined {
  switch (code) {
    case "BlobNotFound":
    case "ResourceNotFound":
      return { kind: "noBlob" };
    case "ContainerNotFound":
    case "TableNotFound":
      return { kind: "noContainer" };
    case "ConditionNotMet":
    case "UpdateConditionNotSatisfied":
      return { kind: "conditionNotMet" };
    case "BlobAlreadyExists":
    case "ContainerAlreadyExists":
    case "EntityAlreadyExists":
    case "TableAlreadyExists":
      return { kind: "exists" };
    default:
      return undefined;
  }
}
