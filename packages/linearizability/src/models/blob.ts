/**
 * One blob name inside one container, as the service promises it: a register with ETags, in a container that can be deleted and made
 * again. Every put writes other bytes, so the content that a read saw names the write; so does an ETag, as far as it was seen together
 * with its content. Deletes and creates of the container take part in the history of every name inside.
 */
import { checkHistory } from "../check.ts";
import type { Model, RecordedOperation } from "../history.ts";
import { describeVerdict } from "../report.ts";
import type { SearchBounds } from "../search.ts";

export type BlobCondition = { readonly kind: "none" } | { readonly kind: "match"; readonly etag: string } | { readonly kind: "absent" };

export type BlobAnswer =
  /** For a put: its ETag. For a get: the write that it saw (undefined if only the ETag is known). */
  | { readonly kind: "ok"; readonly etag?: string; readonly write?: number }
  | { readonly kind: "noBlob" }
  | { readonly kind: "noContainer" }
  | { readonly kind: "conditionNotMet" }
  | { readonly kind: "exists" }
  | { readonly kind: "unknown" };

export type BlobCall =
  | { readonly kind: "put"; readonly write: number; readonly condition: BlobCondition; readonly answer: BlobAnswer }
  | { readonly kind: "get"; readonly answer: BlobAnswer }
  | { readonly kind: "delete"; readonly condition: BlobCondition; readonly answer: BlobAnswer }
  | { readonly kind: "createContainer"; readonly answer: BlobAnswer }
  | { readonly kind: "deleteContainer"; readonly answer: BlobAnswer };

interface State {
  readonly container: boolean;
  /** The write that is there; 0: none. */
  readonly write: number;
}

export type BlobVerdict =
  | { readonly kind: "linearizable" }
  /** `why` in words for people. */
  | { readonly kind: "violation" | "unknown"; readonly why: string };

/** Pairs of ETags and writes; an ETag of two writes, or a write of two ETags, is wrong already. */
class ETags {
  readonly #writes = new Map<string, number>();
  readonly #etags = new Map<number, string>();
  conflict: string | undefined;

  learn(etag: string, write: number): void {
    const otherWrite = this.#writes.get(etag) ?? write;
    const otherEtag = this.#etags.get(write) ?? etag;
    if (otherWrite !== write) this.conflict = `ETag ${etag} was given to write ${otherWrite} and to write ${write}`;
    if (otherEtag !== etag) this.conflict = `write ${write} was seen with ETag ${otherEtag} and with ETag ${etag}`;
    this.#writes.set(etag, write);
    this.#etags.set(write, etag);
  }

  /** True if a write may have this ETag. */
  fits(write: number, etag: string): boolean {
    const known = this.#etags.get(write);
    return known === undefined ? !this.#writes.has(etag) : known === etag;
  }

  /** True if a write may have another ETag than this one. */
  mayDiffer(write: number, etag: string): boolean {
    return this.#etags.get(write) !== etag;
  }
}

/** `history`: operations on one name, with the creates and deletes of its container. */
export function checkBlob(
  history: readonly RecordedOperation<BlobCall>[],
  containerAtStart: boolean,
  bounds: SearchBounds = {},
): BlobVerdict {
  const etags = new ETags();
  for (const { call } of history) {
    if (call.answer.kind !== "ok" || call.answer.etag === undefined) continue;
    if (call.kind === "put") etags.learn(call.answer.etag, call.write);
    if (call.kind === "get" && call.answer.write !== undefined) etags.learn(call.answer.etag, call.answer.write);
  }
  if (etags.conflict !== undefined) return { kind: "violation", why: etags.conflict };
  // A read without an answer says nothing.
  const operations = history.filter(({ call }) => call.answer.kind !== "unknown" || call.kind !== "get");
  const model = blobModel(containerAtStart, etags);
  const verdict = checkHistory(model, operations, bounds);
  return verdict.kind === "linearizable" ? { kind: "linearizable" } : { kind: verdict.kind, why: describeVerdict(model, verdict) };
}

const blobModel = (containerAtStart: boolean, etags: ETags): Model<State, BlobCall> => ({
  initial: { container: containerAtStart, write: 0 },
  key: (state) => `${state.container ? "c" : "-"}${state.write}`,
  step: (state, call) => step(state, call, etags),
  readOnly: (call) => call.kind === "get" || (call.answer.kind !== "ok" && call.answer.kind !== "unknown"),
  withoutAnswer: (call) => (call.kind === "get" ? undefined : { ...call, answer: { kind: "unknown" } }),
  describe,
  describeState: (state) => (state.container ? (state.write === 0 ? "no blob" : `write ${state.write}`) : "no container"),
});

function step(state: State, call: BlobCall, etags: ETags): State | undefined {
  const { answer } = call;
  const unknown = answer.kind === "unknown";
  const says = (kind: BlobAnswer["kind"]): boolean => unknown || answer.kind === kind;
  switch (call.kind) {
    case "createContainer":
      if (state.container) return says("exists") ? state : undefined;
      return says("ok") ? { container: true, write: 0 } : undefined;
    case "deleteContainer":
      if (!state.container) return says("noContainer") ? state : undefined;
      return says("ok") ? { container: false, write: 0 } : undefined;
    case "get":
      if (!state.container) return says("noContainer") ? state : undefined;
      if (state.write === 0) return says("noBlob") ? state : undefined;
      if (answer.kind !== "ok") return undefined;
      if (answer.write !== undefined && answer.write !== state.write) return undefined;
      return answer.etag === undefined || etags.fits(state.write, answer.etag) ? state : undefined;
    case "put": {
      if (!state.container) return says("noContainer") ? state : undefined;
      const { condition } = call;
      const done = { container: true, write: call.write };
      if (condition.kind === "absent" && state.write !== 0) return says("exists") || says("conditionNotMet") ? state : undefined;
      if (condition.kind === "match") return matched(state, condition.etag, answer, etags, done);
      return says("ok") ? done : undefined;
    }
    case "delete":
      if (!state.container) return says("noContainer") ? state : undefined;
      if (state.write === 0) return says("noBlob") ? state : undefined;
      if (call.condition.kind === "match") return matched(state, call.condition.etag, answer, etags, { container: true, write: 0 });
      return says("ok") ? { container: true, write: 0 } : undefined;
  }
}

/** Judges a write under If-Match. */
function matched(state: State, etag: string, answer: BlobAnswer, etags: ETags, done: State): State | undefined {
  const may = state.write !== 0 && etags.fits(state.write, etag);
  const mayNot = state.write === 0 || etags.mayDiffer(state.write, etag);
  switch (answer.kind) {
    case "ok":
      return may ? done : undefined;
    case "conditionNotMet":
      return mayNot ? state : undefined;
    case "noBlob":
      return state.write === 0 ? state : undefined;
    case "unknown":
      return may ? done : state;
    default:
      return undefined;
  }
}

function describe(call: BlobCall): string {
  const { answer } = call;
  const write = call.kind === "put" ? ` ${call.write}` : "";
  const condition = "condition" in call ? (call.condition.kind === "match" ? ` if-match ${call.condition.etag}` : "") : "";
  const absent = "condition" in call && call.condition.kind === "absent" ? " if-none-match *" : "";
  const saw = answer.kind === "ok" ? `${answer.write === undefined ? "" : ` write ${answer.write}`} ${answer.etag ?? ""}`.trimEnd() : "";
  return `${call.kind}${write}${condition}${absent}: ${answer.kind}${saw}`;
}
