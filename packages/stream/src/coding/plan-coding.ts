/**
 * Transactions that change how a sealed extent is stored: replicas become fragments, a fragment is made anew, fragments become replicas
 * (docs/design/erasure-coding.md "Protocol", docs/design/model/coding.pml). State in, changes out. Nothing is read, written or sent here.
 *
 * Invariants:
 * - An attempt is recorded before any of its files is made, so a new leader finds it, and goes on with it or takes it back.
 * - An attempt has a version that no attempt of its extent had before (rule `attemptVersionFresh`): late writes and deletions of an older one
 *   meet other files. After metadata were restored from a copy the record does not know the versions that were given since, so the version is also
 *   above every fragment of the extent that nodes are known to hold (`heldVersion`; 0: none).
 * - Replicas, or fragments, go from the record in the transaction that puts the others in their place (rule `replicasGoAtCommit`). What goes is
 *   recorded as removed, with its version, until its deletion was answered: no file is forgotten.
 * - Fragments of an attempt are recorded as removed by the transaction that takes the attempt back, not before (rule `fragmentsGoAfterAbort`):
 *   garbage collection would delete what a later commit names.
 * - Everything here needs that the caller names the attempt by its version. Another attempt, or none, is refused with `conflict`.
 */
import type { ExtentId, Outcome, Rules } from "@stamp/base";
import { assert, extentVersion, ok, refused } from "@stamp/base";
import { targetsOf } from "../extent-counts.ts";
import type { AttemptRecord, CodedRecord, ExtentRecord, FragmentPlace, ReplicaPlace } from "../records.ts";
import type { TransactionPlan } from "../state/changes.ts";
import type { StreamState } from "../state.ts";

const same = (a: ReplicaPlace, b: ReplicaPlace): boolean => a.nodeId === b.nodeId && a.diskId === b.diskId;
const sameFragment = (a: FragmentPlace, b: FragmentPlace): boolean => same(a, b) && a.version === b.version;
const placeOf = ({ nodeId, diskId }: ReplicaPlace): ReplicaPlace => ({ nodeId, diskId });
const conflict = (message: string) => refused("aborted", "conflict", message);
const change = (record: ExtentRecord): Outcome<TransactionPlan> => ok({ changes: [{ kind: "extent", record }], reads: [] });

/** Returns why an extent can't be coded now; undefined: it can. */
export function notCodable(extent: ExtentRecord | undefined): string | undefined {
  if (extent?.phase !== "sealed") return "it is not sealed";
  if (extent.coded !== undefined) return "it is coded";
  if (extent.attempt !== undefined) return `an attempt is under way: ${extent.attempt.kind}`;
  if (extent.repair !== undefined) return "a replica is being made anew";
  if (extent.untold !== undefined) return "its length was told to nobody yet";
  if (extent.sealedLengthBytes === 0) return "it is empty";
  if (extent.checksum === undefined) return "its checksum is not recorded yet";
  if (extent.replicas.some((replica) => !replica.complete)) return "a replica is not complete";
  return undefined;
}

/** Returns why an extent can't be decoded now; undefined: it can. */
export function notDecodable(extent: ExtentRecord | undefined): string | undefined {
  if (extent?.phase !== "sealed" || extent.coded === undefined) return "it is not coded";
  return extent.attempt === undefined ? undefined : `an attempt is under way: ${extent.attempt.kind}`;
}

/** Begins to code: `targets` get the fragments, by index. No node gets two. */
export function planBeginCoding(
  state: StreamState,
  id: ExtentId,
  profile: string,
  targets: readonly ReplicaPlace[],
  rules: Rules,
  heldVersion = 0,
): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  const why = notCodable(extent);
  if (extent === undefined || why !== undefined) return conflict(`extent ${id} can't be coded: ${why}`);
  return begin(extent, { kind: "code", profile, targets: targets.map(placeOf) }, { rules, heldVersion });
}

/** Plans the making of a fragment anew, on a node without another fragment of the extent. */
export function planBeginFragmentRepair(
  state: StreamState,
  id: ExtentId,
  index: number,
  target: ReplicaPlace,
  rules: Rules,
  heldVersion = 0,
): Outcome<TransactionPlan> {
  const idle = codedAndIdle(state, id);
  if (!idle.ok) return idle;
  const { coded } = idle.value;
  if (coded.fragments[index] === undefined) return refused("invalidArgument", "badRequest", `extent ${id} has no fragment ${index}`);
  if (coded.fragments.some((place, other) => other !== index && place.nodeId === target.nodeId))
    return conflict(`node ${target.nodeId} has another fragment of extent ${id}`);
  return begin(idle.value, { kind: "repair", index, target: placeOf(target) }, { rules, heldVersion });
}

/** Begins to make replicas of a coded extent. */
export function planBeginDecoding(
  state: StreamState,
  id: ExtentId,
  targets: readonly ReplicaPlace[],
  rules: Rules,
  heldVersion = 0,
): Outcome<TransactionPlan> {
  const idle = codedAndIdle(state, id);
  if (!idle.ok) return idle;
  return begin(idle.value, { kind: "decode", targets: targets.map(placeOf) }, { rules, heldVersion });
}

type NewAttempt = AttemptRecord extends infer Each ? (Each extends AttemptRecord ? Omit<Each, "version"> : never) : never;

function begin(
  extent: ExtentRecord,
  attempt: NewAttempt,
  { rules, heldVersion }: { readonly rules: Rules; readonly heldVersion: number },
): Outcome<TransactionPlan> {
  const version = extentVersion(Math.max(extent.version, rules.on("attemptVersionAboveHeld") ? heldVersion : 0) + 1);
  const begun = { ...attempt, version: rules.on("attemptVersionFresh") ? version : extentVersion(2) } as AttemptRecord;
  const nodes = targetsOf(begun).map(({ nodeId }) => nodeId);
  assert(nodes.length > 0 && new Set(nodes).size === nodes.length, "each target of an attempt is another node");
  return change({ ...goneAtBegin(extent, begun, rules), version, attempt: begun });
}

/** Returns the extent without the files that an attempt gives up at its begin. By the rules it gives up none. */
function goneAtBegin(extent: ExtentRecord, begun: AttemptRecord, rules: Rules): ExtentRecord {
  const kept = rules.on("replicasGoAtCommit") || begun.kind !== "code" ? extent : withoutReplicas(extent);
  return rules.on("fragmentsGoAfterAbort") ? kept : withRemoved(kept, filesOf(begun));
}

/** Returns the fragments that an attempt makes. A decoding makes none. */
const filesOf = (attempt: AttemptRecord): FragmentPlace[] =>
  attempt.kind === "decode" ? [] : targetsOf(attempt).map((target) => ({ ...target, version: attempt.version }));

/** Returns the extent with its replicas recorded as removed. */
function withoutReplicas(extent: ExtentRecord): ExtentRecord {
  const replicas = extent.replicas.filter((replica) => !extent.removed.some((other) => same(other, replica)));
  return { ...extent, replicas: [], removed: [...extent.removed, ...replicas.map(placeOf)] };
}

/**
 * Every fragment is durable, and what was stored was decoded and compared: the extent is coded from here on, its replicas are garbage. `checksums`: of
 * the content of each fragment, by index; undefined: they are not recorded.
 */
export function planFinishCoding(
  state: StreamState,
  id: ExtentId,
  attemptVersion: number,
  checksums?: readonly number[],
): Outcome<TransactionPlan> {
  const found = attemptOf(state, id, attemptVersion, "code");
  if (!found.ok) return found;
  const { extent, attempt } = found.value;
  const { attempt: _attempt, ...rest } = extent;
  const coded: CodedRecord = {
    profile: attempt.profile,
    fragments: attempt.targets.map((target) => ({ ...target, version: attempt.version })),
    ...(checksums === undefined ? {} : { checksums }),
  };
  return change({ ...withoutReplicas(rest), version: extentVersion(extent.version + 1), coded });
}

/** Plans the end of a fragment's repair: the durable new fragment replaces the old one. `checksums` as in `planFinishCoding`; recorded ones stay. */
export function planFinishFragmentRepair(
  state: StreamState,
  id: ExtentId,
  attemptVersion: number,
  checksums?: readonly number[],
): Outcome<TransactionPlan> {
  const found = attemptOf(state, id, attemptVersion, "repair");
  if (!found.ok) return found;
  const { extent, attempt } = found.value;
  const { attempt: _attempt, coded, ...rest } = extent;
  const old = coded?.fragments[attempt.index];
  if (coded === undefined || old === undefined) return conflict(`extent ${id} has no fragment ${attempt.index}`);
  const fragments = coded.fragments.with(attempt.index, { ...attempt.target, version: attempt.version });
  const record = { ...rest, version: extentVersion(extent.version + 1), coded: { ...(checksums && { checksums }), ...coded, fragments } };
  return change(withRemoved(record, [old]));
}

/**
 * Records the checksums of the fragments of an extent that an earlier release coded. Refused if the record has changed since `extent`. `wrong`: index
 * of a fragment that has another one. It is given up here, in the same transaction, and its place names a version that no file has: so every later
 * leader finds it missing, and has it made anew. `heldVersion`: see above.
 */
export function planRecordFragmentChecksums(
  state: StreamState,
  extent: ExtentRecord,
  checksums: readonly number[],
  wrong?: { readonly index: number; readonly heldVersion: number },
): Outcome<TransactionPlan> {
  const { coded, id } = extent;
  if (coded === undefined || state.extent(id) !== extent) return conflict(`extent ${id} has changed meanwhile`);
  const version = extentVersion(Math.max(extent.version, wrong?.heldVersion ?? 0) + 1);
  const record = { ...extent, version, coded: { ...coded, checksums } };
  const old = wrong === undefined ? undefined : coded.fragments[wrong.index];
  if (wrong === undefined || old === undefined) return change(record);
  const fragments = coded.fragments.with(wrong.index, { ...old, version });
  return change(withRemoved({ ...record, coded: { ...record.coded, fragments } }, [old]));
}

/** Plans the end of a decoding: every replica is durable with the extent's checksum, and the fragments become garbage. */
export function planFinishDecoding(state: StreamState, id: ExtentId, attemptVersion: number): Outcome<TransactionPlan> {
  const found = attemptOf(state, id, attemptVersion, "decode");
  if (!found.ok) return found;
  const { extent, attempt } = found.value;
  const { attempt: _attempt, coded, ...rest } = extent;
  const replicas = attempt.targets.map((target) => ({ ...target, complete: true }));
  const removed = extent.removed.filter((place) => !replicas.some((replica) => same(replica, place)));
  const record = { ...rest, version: extentVersion(extent.version + 1), replicas, removed };
  return change(withRemoved(record, coded?.fragments ?? []));
}

/** Takes an attempt back: what it has made, and may still make, is garbage. Nothing to do if it is over. */
export function planAbandonAttempt(state: StreamState, id: ExtentId, attemptVersion: number): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.attempt?.version !== attemptVersion) return ok({ changes: [], reads: [] });
  return change({ ...withoutAttempt(extent), version: extentVersion(extent.version + 1) });
}

/** Returns the record without its attempt; the files of the attempt are recorded as removed. The same record if it has none. */
export function withoutAttempt(extent: ExtentRecord): ExtentRecord {
  const { attempt, ...rest } = extent;
  if (attempt === undefined) return extent;
  if (attempt.kind !== "decode") return withRemoved(rest, filesOf(attempt));
  const known = (target: ReplicaPlace): boolean => extent.removed.some((place) => same(place, target));
  return { ...rest, removed: [...extent.removed, ...attempt.targets.filter((target) => !known(target))] };
}

/** Plans to forget a removed fragment, which is deleted or whose disk is gone for ever. */
export function planForgetFragment(state: StreamState, id: ExtentId, place: FragmentPlace): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  const left = extent?.removedFragments?.filter((other) => !sameFragment(other, place));
  if (extent === undefined || left === undefined || left.length === extent.removedFragments?.length) return ok({ changes: [], reads: [] });
  const { removedFragments: _removed, ...rest } = extent;
  return change(left.length === 0 ? rest : { ...rest, removedFragments: left });
}

function withRemoved(extent: ExtentRecord, fragments: readonly FragmentPlace[]): ExtentRecord {
  const held = extent.removedFragments ?? [];
  const fresh = fragments.filter((each) => !held.some((other) => sameFragment(other, each)));
  return held.length + fresh.length === 0 ? extent : { ...extent, removedFragments: [...held, ...fresh] };
}

function codedAndIdle(state: StreamState, id: ExtentId): Outcome<ExtentRecord & { readonly coded: CodedRecord }> {
  const extent = state.extent(id);
  if (extent?.phase !== "sealed" || extent.coded === undefined) return conflict(`extent ${id} is not coded`);
  if (extent.attempt !== undefined) return conflict(`an attempt at extent ${id} is under way: ${extent.attempt.kind}`);
  return ok({ ...extent, coded: extent.coded });
}

function attemptOf<K extends AttemptRecord["kind"]>(
  state: StreamState,
  id: ExtentId,
  attemptVersion: number,
  kind: K,
): Outcome<{ readonly extent: ExtentRecord; readonly attempt: Extract<AttemptRecord, { readonly kind: K }> }> {
  const extent = state.extent(id);
  const attempt = extent?.attempt;
  if (extent?.phase !== "sealed" || attempt?.kind !== kind || attempt.version !== attemptVersion)
    return conflict(`the attempt of version ${attemptVersion} at extent ${id} is over`);
  return ok({ extent, attempt: attempt as Extract<AttemptRecord, { readonly kind: K }> });
}
