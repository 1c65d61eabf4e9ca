/**
 * Messages of Raft, to and from the wire (proto/stamp/v1/raft.proto).
 *
 * Invariant: a message that a peer should not have sent throws FailureError `badRequest` or `damaged`, and none of its parts is used.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { FailureError, refused, unwrap } from "@stamp/base";
import type { Entry, MemberId, Message, MessageBody } from "@stamp/raft";
import { fromWire, type RaftMessage, type RaftMessageSchema, toWire } from "@stamp/wire";
import { decodeBody, decodeSnapshotMeta, encodeBody, encodeSnapshotMeta } from "./records.ts";

type WireBody = NonNullable<MessageInitShape<typeof RaftMessageSchema>["body"]>;

/** Encodes a message; the bytes of entries and chunks are borrowed. */
export function messageToWire(message: Message): MessageInitShape<typeof RaftMessageSchema> {
  const { term, session, full } = message;
  return { term: toWire(term), session: toWire(session), full, body: bodyToWire(message) };
}

function bodyToWire(body: MessageBody): WireBody {
  switch (body.kind) {
    case "preVote": {
      const { nextTerm, lastIndex, lastTerm } = body;
      return { case: "preVote", value: { nextTerm: toWire(nextTerm), lastIndex: toWire(lastIndex), lastTerm: toWire(lastTerm) } };
    }
    case "preVoteAnswer": {
      const { candidate, nextTerm, granted } = body;
      return { case: "preVoteAnswer", value: { candidate: toWire(candidate), nextTerm: toWire(nextTerm), granted } };
    }
    case "vote": {
      const { lastIndex, lastTerm, transfer } = body;
      return { case: "vote", value: { lastIndex: toWire(lastIndex), lastTerm: toWire(lastTerm), transfer } };
    }
    case "voteAnswer":
      return { case: "voteAnswer", value: { candidate: toWire(body.candidate), granted: body.granted } };
    case "append": {
      const { prevIndex, prevTerm, commit } = body;
      const entries = body.entries.map((entry) => ({ term: toWire(entry.term), body: encodeBody(entry.body) }));
      return { case: "append", value: { prevIndex: toWire(prevIndex), prevTerm: toWire(prevTerm), entries, commit: toWire(commit) } };
    }
    case "appendAnswer": {
      if (body.accepted) return { case: "appendAccepted", value: { index: toWire(body.index) } };
      const { index, hintIndex, hintTerm } = body;
      return { case: "appendRefused", value: { index: toWire(index), hintIndex: toWire(hintIndex), hintTerm: toWire(hintTerm) } };
    }
    case "heartbeat": {
      const { round, commit, commitTerm } = body;
      return { case: "heartbeat", value: { round: toWire(round), commit: toWire(commit), commitTerm: toWire(commitTerm) } };
    }
    case "heartbeatAnswer":
      return { case: "heartbeatAnswer", value: { round: toWire(body.round) } };
    case "snapshotOffer":
      return { case: "snapshotOffer", value: { snapshot: encodeSnapshotMeta(body.snapshot) } };
    case "snapshotChunk": {
      const { index, offsetBytes, bytes, last } = body;
      const rows = bytes as Uint8Array<ArrayBuffer>;
      return { case: "snapshotChunk", value: { index: toWire(index), offsetBytes: toWire(offsetBytes), rows, last } };
    }
    case "snapshotAnswer":
      return { case: "snapshotAnswer", value: { index: toWire(body.index), offsetBytes: toWire(body.offsetBytes) } };
    case "timeoutNow":
      return { case: "timeoutNow", value: {} };
  }
}

/** Decodes a message; the bytes of entries and chunks are copied. */
export function messageFromWire(from: MemberId, to: MemberId, message: RaftMessage): Message {
  const { full } = message;
  const session = fromWire(message.session);
  if (session < 1) throw bad("a start has a number from 1 on");
  return { from, to, term: fromWire(message.term), session, full, ...bodyFromWire(message.body) };
}

function bodyFromWire(body: RaftMessage["body"]): MessageBody {
  switch (body.case) {
    case "preVote": {
      const { nextTerm, lastIndex, lastTerm } = body.value;
      return { kind: "preVote", nextTerm: fromWire(nextTerm), lastIndex: fromWire(lastIndex), lastTerm: fromWire(lastTerm) };
    }
    case "preVoteAnswer": {
      const { candidate, nextTerm, granted } = body.value;
      return { kind: "preVoteAnswer", candidate: fromWire(candidate), nextTerm: fromWire(nextTerm), granted };
    }
    case "vote": {
      const { lastIndex, lastTerm, transfer } = body.value;
      return { kind: "vote", lastIndex: fromWire(lastIndex), lastTerm: fromWire(lastTerm), transfer };
    }
    case "voteAnswer":
      return { kind: "voteAnswer", candidate: fromWire(body.value.candidate), granted: body.value.granted };
    case "append": {
      const prevIndex = fromWire(body.value.prevIndex);
      const prevTerm = fromWire(body.value.prevTerm);
      const entries = entriesFromWire(body.value.entries, prevIndex, prevTerm);
      return { kind: "append", prevIndex, prevTerm, entries, commit: fromWire(body.value.commit) };
    }
    case "appendAccepted":
      return { kind: "appendAnswer", accepted: true, index: fromWire(body.value.index) };
    case "appendRefused": {
      const { index, hintIndex, hintTerm } = body.value;
      const hint = { hintIndex: fromWire(hintIndex), hintTerm: fromWire(hintTerm) };
      return { kind: "appendAnswer", accepted: false, index: fromWire(index), ...hint };
    }
    case "heartbeat": {
      const { round, commit, commitTerm } = body.value;
      return { kind: "heartbeat", round: fromWire(round), commit: fromWire(commit), commitTerm: fromWire(commitTerm) };
    }
    case "heartbeatAnswer":
      return { kind: "heartbeatAnswer", round: fromWire(body.value.round) };
    case "snapshotOffer":
      return { kind: "snapshotOffer", snapshot: unwrap(decodeSnapshotMeta(body.value.snapshot)) };
    case "snapshotChunk": {
      const { index, offsetBytes, rows, last } = body.value;
      return { kind: "snapshotChunk", index: fromWire(index), offsetBytes: fromWire(offsetBytes), bytes: rows.slice(), last };
    }
    case "snapshotAnswer":
      return { kind: "snapshotAnswer", index: fromWire(body.value.index), offsetBytes: fromWire(body.value.offsetBytes) };
    case "timeoutNow":
      return { kind: "timeoutNow" };
    case undefined:
      throw bad("a message of a kind that this release does not know: start the release that sent it");
  }
}

/** Terms never fall along a log: Raft relies on it. */
function entriesFromWire(
  entries: readonly { readonly term: bigint; readonly body: Uint8Array }[],
  prevIndex: number,
  prevTerm: number,
): Entry[] {
  if (!Number.isSafeInteger(prevIndex + entries.length)) throw bad(`${entries.length} entries behind ${prevIndex} have no index`);
  let before = prevTerm;
  return entries.map(({ term: sent, body }, at) => {
    const term = fromWire(sent);
    if (term < before) throw bad(`entry ${prevIndex + 1 + at} is of term ${term}, behind one of term ${before}`);
    before = term;
    return { index: prevIndex + 1 + at, term, body: unwrap(decodeBody(body)) };
  });
}

const bad = (message: string): FailureError => new FailureError(refused("invalidArgument", "badRequest", message).failure);
