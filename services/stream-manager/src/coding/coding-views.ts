/** Erasure coding as callers see it: facts of the chooser and the coder in the words of stream_manager.proto. */
import { toWire } from "@stamp/wire";
import type { Serving } from "../leader.ts";

/** Numbers of adoptable extents that are told. */
const adoptableMax = 20;

export function codingStatus({ chooser, coder, term }: Serving) {
  const { policy, pause, survey, done, running, failed } = chooser;
  const choice = chooser.choice();
  const { adoptable } = coder;
  const decodings = coder.decodings.facts;
  const { codedBytes, fragmentBytes, reasons, waiting } = survey;
  const isCoding = typeof choice !== "string" && pause === undefined;
  const etaMs = Math.ceil((waiting.bytes * 1_000) / term.config.codingBytesPerSecond);
  return {
    policy: policy.profile,
    afterSeconds: toWire(policy.afterSeconds),
    minBytes: toWire(policy.minBytes),
    profile: typeof choice === "string" ? "" : choice.name,
    whyNone: typeof choice === "string" ? choice : "",
    ...(pause === undefined ? {} : { pause: { note: pause.note, wallMs: toWire(pause.wallMs) } }),
    codedExtents: toWire(term.state.codedCount),
    codedBytes: toWire(codedBytes),
    fragmentBytes: toWire(fragmentBytes),
    savedBytes: toWire(Math.max(0, codedBytes * term.config.copies - fragmentBytes)),
    extentsWaiting: toWire(waiting.extents),
    bytesWaiting: toWire(waiting.bytes),
    codingsRunning: running,
    decodingsRunning: decodings.running,
    decodingsWaiting: toWire(decodings.waiting),
    decodingBytesWaiting: toWire(decodings.waitingBytes),
    extentsDone: toWire(done.extents),
    bytesDone: toWire(done.bytes),
    ...(isCoding && waiting.extents > 0 ? { etaMs: toWire(etaMs) } : {}),
    reasons: [...reasons]
      .sort(([, a], [, b]) => b.extents - a.extents)
      .map(([why, { extents, bytes }]) => ({ why, extents: toWire(extents), bytes: toWire(bytes) })),
    failing: toWire(failed.count),
    failures: [...failed.reasons],
    strays: toWire(coder.facts.strays),
    adoptableExtents: toWire(adoptable.length),
    adoptable: adoptable.slice(0, adoptableMax).map(toWire),
    lossesLeft: coder.repairs.lossesLeft.map(([losses, extents]) => ({ losses, extents: toWire(extents) })),
  };
}

/** Looks at the next `limit` extents after this number; those that are coded or not sealed are left out. */
export function codingPlan({ chooser, term }: Serving, after: number, limit: number) {
  const choice = chooser.choice();
  const found = term.state.extentsAfter(after, limit + 1);
  const looked = found.slice(0, limit);
  const extents = looked
    .filter(({ phase, coded }) => phase === "sealed" && coded === undefined)
    .map((extent) => {
      const why = chooser.whyNot(extent, choice) ?? (chooser.pause === undefined ? "" : "coding is paused");
      const { id, sealedLengthBytes = 0, stream } = extent;
      return { extentId: toWire(id), stream, sealedLengthBytes: toWire(sealedLengthBytes), why };
    });
  return { extents, lastExtentId: toWire(looked.at(-1)?.id ?? after), more: found.length > limit };
}
