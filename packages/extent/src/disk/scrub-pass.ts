/**
 * The order of a scrub, and where it is. Each pass goes over all sealed replicas in an order of its own, given by a seed: the position of an
 * extent is a hash of seed and id. So a pass can go on after a restart from nothing but the seed and the last extent, extents may come and
 * go meanwhile, and no two nodes read their replicas of one extent at the same time again and again.
 *
 * The state lies in the file `scrub-state` of the node's disk (docs/formats/extent.md), as JSON.
 */
import { fromUtf8, utf8 } from "@stamp/base";
import { checkVersion, decodingVersioned, Malformed, type Versioned } from "../format/binary.ts";

export interface ScrubFinding {
  readonly extentId: number;
  /** Time of the finding by the wall clock, in milliseconds since 1970. */
  readonly atMs: number;
  readonly why: string;
}

export interface ScrubPass {
  readonly number: number;
  readonly startedAtMs: number;
  readonly extents: number;
  readonly bytes: number;
  readonly findings: number;
}

export interface ScrubState {
  readonly pass: ScrubPass & { readonly seed: number; readonly lastExtentId: number | undefined };
  /** Last pass that ended. */
  readonly finished: (ScrubPass & { readonly endedAtMs: number }) | undefined;
  /** Newest first, at most `scrubFindingsMax`. */
  readonly findings: readonly ScrubFinding[];
}

export const scrubFindingsMax = 100;

export function beginScrubPass(before: ScrubState | undefined, seed: number, nowMs: number): ScrubState {
  const pass = {
    number: (before?.pass.number ?? 0) + 1,
    startedAtMs: nowMs,
    extents: 0,
    bytes: 0,
    findings: 0,
    seed,
    lastExtentId: undefined,
  };
  return { pass, finished: before?.finished, findings: before?.findings ?? [] };
}

/** Notes that the extent is done: intact (or gone meanwhile), or bad for this reason. */
export function noteScrubbed(state: ScrubState, extentId: number, bytes: number, bad: ScrubFinding | undefined): ScrubState {
  const { pass } = state;
  return {
    ...state,
    pass: {
      ...pass,
      extents: pass.extents + 1,
      bytes: pass.bytes + bytes,
      findings: pass.findings + (bad === undefined ? 0 : 1),
      lastExtentId: extentId,
    },
    findings: bad === undefined ? state.findings : [bad, ...state.findings].slice(0, scrubFindingsMax),
  };
}

export function endScrubPass(state: ScrubState, nowMs: number): ScrubState {
  const { seed: _, lastExtentId: __, ...pass } = state.pass;
  return { ...state, finished: { ...pass, endedAtMs: nowMs } };
}

/** Returns the extents still to do, in the pass's order. */
export function scrubOrder<I extends number>(seed: number, ids: Iterable<I>, lastExtentId: number | undefined): I[] {
  const after = lastExtentId === undefined ? undefined : ([position(seed, lastExtentId), lastExtentId] as const);
  const placed: (readonly [number, I])[] = [];
  for (const id of ids) {
    const at = position(seed, id);
    if (after === undefined || at > after[0] || (at === after[0] && id > after[1])) placed.push([at, id]);
  }
  placed.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return placed.map(([, id]) => id);
}

/** Returns a hash of 32 bits (the finalizer of MurmurHash3 over both halves of the id). */
function position(seed: number, id: number): number {
  let h = seed >>> 0;
  for (const part of [id % 2 ** 32, Math.floor(id / 2 ** 32)]) {
    h = (h ^ part) >>> 0;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    h = (h ^ (h >>> 16)) >>> 0;
  }
  return h;
}

const format = 1;

export function encodeScrubState(state: ScrubState): Uint8Array<ArrayBuffer> {
  return utf8(`${JSON.stringify({ format, ...state })}\n`);
}

/** `invalid` for anything else than a state of this format: then scrubbing begins anew. */
export function decodeScrubState(bytes: Uint8Array): Versioned<ScrubState> {
  return decodingVersioned(() => {
    let held: unknown;
    try {
      held = JSON.parse(fromUtf8(bytes));
    } catch {
      throw new Malformed("scrub state is not JSON");
    }
    const { format: found, pass, finished, findings } = object(held, "scrub state");
    checkVersion("scrub-state", number(found), [format]);
    const current = object(pass, "scrub pass");
    if (!Array.isArray(findings) || findings.length > scrubFindingsMax) throw new Malformed("scrub findings");
    return {
      pass: {
        ...readPass(current),
        seed: number(current.seed),
        lastExtentId: current.lastExtentId === undefined ? undefined : number(current.lastExtentId),
      },
      finished:
        finished === undefined
          ? undefined
          : { ...readPass(object(finished, "scrub pass")), endedAtMs: number(object(finished, "").endedAtMs) },
      findings: findings.map((each) => {
        const { extentId, atMs, why } = object(each, "scrub finding");
        if (typeof why !== "string") throw new Malformed("scrub finding");
        return { extentId: number(extentId), atMs: number(atMs), why };
      }),
    };
  });
}

function readPass(pass: Readonly<Record<string, unknown>>): ScrubPass {
  return {
    number: number(pass.number),
    startedAtMs: number(pass.startedAtMs),
    extents: number(pass.extents),
    bytes: number(pass.bytes),
    findings: number(pass.findings),
  };
}

function object(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw new Malformed(what);
  return value as Readonly<Record<string, unknown>>;
}

function number(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(Math.floor(value)) || value < 0) throw new Malformed("scrub number");
  return value;
}
