/**
 * Is there an order of these operations, each at one moment between its call and its return, in which a sequential model gives the
 * answers that were seen? (Wing and Gong's search with Lowe's memory of configurations.) An operation of unknown outcome has no return:
 * it may happen at any moment after its call, or never. Exact, and meant for small histories: the search is bounded by `stepsMax`.
 */
export interface Operation<Call> {
  readonly call: Call;
  /** When it was called and returned; undefined: it is not known whether it happened. */
  readonly calledAt: number;
  readonly returnedAt: number | undefined;
}

export interface Model<State, Call> {
  readonly initial: State;
  /** The state after it, or undefined when the answer that was seen can't be given in this state. */
  step(state: State, call: Call): State | undefined;
  /** Equal exactly for equal states. */
  key(state: State): string;
}

export type Verdict =
  | { readonly kind: "linearizable" }
  | { readonly kind: "not"; readonly longest: readonly number[] }
  | { readonly kind: "too-long" };

interface Entry {
  readonly index: number;
  /** Of a call: its return, if any. Of a return: itself. */
  readonly isCall: boolean;
  match: Entry | undefined;
  before: Entry | undefined;
  after: Entry | undefined;
}

const stepsMaxDefault = 2_000_000;

export function linearizable<State, Call>(
  model: Model<State, Call>,
  operations: readonly Operation<Call>[],
  stepsMax: number = stepsMaxDefault,
): Verdict {
  const head = entries(operations);
  let left = operations.filter((operation) => operation.returnedAt !== undefined).length;
  const done = new Uint8Array(operations.length);
  const seen = new Set<string>();
  const stack: { entry: Entry; state: State }[] = [];
  let longest: number[] = [];
  let state = model.initial;
  let entry = head.after;
  for (let steps = 0; left > 0; steps++) {
    if (steps > stepsMax) return { kind: "too-long" };
    if (entry?.isCall) {
      const next = model.step(state, (operations[entry.index] as Operation<Call>).call);
      if (next !== undefined) {
        done[entry.index] = 1;
        const configuration = `${model.key(next)}|${bits(done)}`;
        if (!seen.has(configuration)) {
          seen.add(configuration);
          stack.push({ entry, state });
          if (stack.length > longest.length) longest = stack.map((each) => each.entry.index);
          state = next;
          if (entry.match) left -= 1;
          lift(entry);
          entry = head.after;
          continue;
        }
        done[entry.index] = 0;
      }
      entry = entry.after;
      continue;
    }
    // At a return (or the end, with calls left that returned): nothing before it can be taken any more. Take the last choice back.
    const last = stack.pop();
    if (!last) return { kind: "not", longest };
    state = last.state;
    done[last.entry.index] = 0;
    if (last.entry.match) left += 1;
    unlift(last.entry);
    entry = last.entry.after;
  }
  return { kind: "linearizable" };
}

/** Calls and returns in order of time as a doubly linked list; at one moment calls come before returns. */
function entries(operations: readonly Operation<unknown>[]): Entry {
  const events: { at: number; entry: Entry }[] = [];
  operations.forEach(({ calledAt, returnedAt }, index) => {
    const call: Entry = { index, isCall: true, match: undefined, before: undefined, after: undefined };
    events.push({ at: calledAt, entry: call });
    if (returnedAt === undefined) return;
    const end: Entry = { index, isCall: false, match: undefined, before: undefined, after: undefined };
    call.match = end;
    events.push({ at: returnedAt, entry: end });
  });
  events.sort((a, b) => a.at - b.at || Number(b.entry.isCall) - Number(a.entry.isCall) || a.entry.index - b.entry.index);
  const head: Entry = { index: -1, isCall: false, match: undefined, before: undefined, after: undefined };
  let last = head;
  for (const { entry } of events) {
    last.after = entry;
    entry.before = last;
    last = entry;
  }
  return head;
}

function lift(entry: Entry): void {
  remove(entry);
  if (entry.match) remove(entry.match);
}

function unlift(entry: Entry): void {
  if (entry.match) putBack(entry.match);
  putBack(entry);
}

function remove(entry: Entry): void {
  if (entry.before) entry.before.after = entry.after;
  if (entry.after) entry.after.before = entry.before;
}

function putBack(entry: Entry): void {
  if (entry.before) entry.before.after = entry;
  if (entry.after) entry.after.before = entry;
}

function bits(done: Uint8Array): string {
  let text = "";
  for (let at = 0; at < done.length; at += 15) {
    let word = 0;
    for (let i = at; i < Math.min(at + 15, done.length); i++) word = word * 2 + (done[i] as number);
    text += String.fromCharCode(word);
  }
  return text;
}
