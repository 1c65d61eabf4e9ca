/** Output of `stamp coding` for people. Pure: answers of the stream manager in, text out. */
import type { CodingStatus, PlannedExtent } from "@stamp/wire";
import { counted } from "../health/counted.ts";
import { bytesText, table } from "../print.ts";

const seconds = (ms: bigint): string => `${Math.ceil(Number(ms) / 1_000)} s`;
const extents = (count: bigint, bytes: bigint): string => `${counted(count, "extent")}, ${bytesText(bytes)}`;

/** `repair`: lines about fragments that are being made again. */
export function codingText(status: CodingStatus, repair: readonly string[] = []): string {
  const {
    codedExtents,
    codedBytes,
    fragmentBytes,
    savedBytes,
    reasons,
    failing,
    failures,
    strays,
    lossesLeft,
    adoptable,
    adoptableExtents,
  } = status;
  const lines = [policyLine(status)];
  if (status.pause !== undefined) lines.push(pauseLine(status.pause));
  lines.push(
    codedExtents === 0n
      ? "no extent is stored as fragments"
      : `coded: ${extents(codedExtents, codedBytes)}, in ${bytesText(fragmentBytes)} of fragments; ${bytesText(savedBytes)} saved`,
  );
  lines.push(...workLines(status));
  if (failing > 0n)
    lines.push(`${counted(failing, "extent", ["rests", "rest"])} after an attempt that was taken back: ${failures.join("; ")}`);
  for (const { losses, extents: count } of lossesLeft) {
    const bear = losses < 0 ? "MISS MORE FRAGMENTS THAN THE CODE BEARS FOR CERTAIN" : `bear ${counted(losses, "further loss")}`;
    lines.push(`${counted(count, "coded extent")} with lost fragments ${bear}`);
  }
  lines.push(...repair);
  if (adoptableExtents > 0n) {
    const more = adoptableExtents > BigInt(adoptable.length) ? ", …" : "";
    const which = `${counted(adoptableExtents, "EXTENT")} CAN'T BE READ BY ${adoptableExtents === 1n ? "ITS RECORD" : "THEIR RECORDS"}`;
    lines.push(`${which}, and nodes hold newer fragments: ./stamp coding adopt EXTENT, for ${adoptable.join(", ")}${more}`);
  }
  if (strays > 0n) lines.push(`${counted(strays, "fragment")} on nodes that no record explains: ./stamp coding strays list`);
  if (reasons.length > 0) {
    const rows = reasons.map(({ why, extents: count, bytes }) => [count, bytesText(bytes), why]);
    lines.push("", table(["EXTENTS", "LENGTH", "NOT CODED BECAUSE"], rows));
  }
  return lines.join("\n");
}

function policyLine({ policy, profile, whyNone, afterSeconds, minBytes }: CodingStatus): string {
  if (profile === "") return `no extent is coded: ${whyNone}`;
  const by = policy === profile ? "" : `, by ${policy}`;
  return `extents become ${profile}${by}, ${afterSeconds} s after they were seen sealed, from ${bytesText(minBytes)} on`;
}

function pauseLine({ note, wallMs }: NonNullable<CodingStatus["pause"]>): string {
  const since = wallMs === 0n ? "" : ` since ${new Date(Number(wallMs)).toISOString()}`;
  return `PAUSED${since}${note === "" ? "" : `: ${note}`} (go on: ./stamp coding resume)`;
}

/** Returns lines about waiting and finished work. */
export function workLines(status: CodingStatus): string[] {
  const { extentsWaiting, bytesWaiting, codingsRunning, extentsDone, bytesDone, etaMs } = status;
  const { decodingsRunning, decodingsWaiting, decodingBytesWaiting } = status;
  const lines: string[] = [];
  if (extentsWaiting > 0n || codingsRunning > 0) {
    const left = etaMs === undefined ? "" : `, about ${seconds(etaMs)} left`;
    lines.push(`waiting: ${extents(extentsWaiting, bytesWaiting)}; ${codingsRunning} being coded${left}`);
  }
  if (decodingsWaiting > 0n || decodingsRunning > 0)
    lines.push(`waiting to be decoded: ${extents(decodingsWaiting, decodingBytesWaiting)}; ${decodingsRunning} being decoded`);
  if (extentsDone > 0n) lines.push(`done since this stream manager leads: ${extents(extentsDone, bytesDone)}`);
  return lines;
}

export function planText(planned: readonly PlannedExtent[], isMore: boolean): string {
  if (planned.length === 0) return "every sealed extent is coded, or there is none";
  const rows = planned.map(({ extentId, stream, sealedLengthBytes, why }) => [
    extentId,
    stream,
    bytesText(sealedLengthBytes),
    why === "" ? "will be coded" : why,
  ]);
  const text = table(["EXTENT", "STREAM", "LENGTH", "PLAN"], rows);
  return isMore ? `${text}\n… and more: --after ${planned.at(-1)?.extentId}` : text;
}
