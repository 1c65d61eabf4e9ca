/** Asks the console over HTTP, and follows it by server-sent events. Only this file and data/data-source.ts know HTTP. */
import type { BalanceRows, DivergedReport, Drills, ExtentRow, FaultRow, Geo, HeatMap, Page, RangeRow, Source } from "./model.ts";
import { connection, signInProblem } from "./store.ts";
import { askAgain, share, signedOut, tell } from "./tabs.ts";
import { whileShown } from "./while-shown.ts";

const againMs = 1_000;
const answerTimeoutMs = 8_000;
/** Snapshots come every second, a slow one after five. After this time without any, the connection counts as lost. */
const silentMs = 12_000;

/** Signs in if the address has a link's token, which leaves the address at once, and follows the stamp. */
export async function begin(): Promise<void> {
  const token = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  if (token !== undefined) {
    history.replaceState(null, "", "/#/");
    const problem = await signIn(token);
    // A link that was used before is no reason to leave a session that goes on.
    if (problem !== "" && !(await hasSession())) {
      signInProblem.value = problem;
      connection.value = "signed-out";
      return;
    }
  }
  share(follow, () => unfollow());
  if (token !== undefined) askAgain();
}

async function signIn(token: string): Promise<string> {
  try {
    const answer = await asked("/api/sign-in", { method: "POST", body: token });
    if (!answer.ok) return await messageOf(answer);
    localStorage.setItem("key", ((await answer.json()) as { readonly key: string }).key);
    return "";
  } catch {
    return "the console does not answer; is ./stamp console still running?";
  }
}

/** Secret of the session, beside its cookie: in storage that other ports of this host do not see. */
const keyNow = (): string => localStorage.getItem("key") ?? "";

const asked = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(path, { signal: AbortSignal.timeout(answerTimeoutMs), ...init, headers: { "X-Stamp-Key": keyNow() } });

/** Returns the options of a question that only the view waits for which is open now. */
export const shownOnly = (): RequestInit => ({ signal: whileShown(answerTimeoutMs) });

const hasSession = (): Promise<boolean> =>
  asked("/api/session").then(
    ({ ok }) => ok,
    () => false,
  );

async function messageOf(answer: Response): Promise<string> {
  const told = (await answer.json().catch(() => ({}))) as { readonly message?: string };
  return told.message ?? `the console answered ${answer.status}`;
}

/** Ends the stream that is followed. */
let unfollow = (): void => {};

function follow(): void {
  const stream = new EventSource(`/api/live?key=${keyNow()}`);
  let watch = setTimeout(leave, silentMs);
  unfollow = (): void => {
    clearTimeout(watch);
    stream.close();
  };
  const end = unfollow;
  function leave(): void {
    end();
    tell({ type: "connection", data: "lost" });
    setTimeout(again, againMs);
  }
  for (const type of ["history", "events", "snapshot"] as const) {
    stream.addEventListener(type, ({ data }) => {
      clearTimeout(watch);
      watch = setTimeout(leave, silentMs);
      tell({ type, data: JSON.parse(data) });
    });
  }
  stream.onerror = leave;
}

/** An event source does not say why it failed: the session is asked for. */
async function again(): Promise<void> {
  try {
    const { status } = await asked("/api/session");
    if (status === 401) tell({ type: "connection", data: "signed-out" });
    else follow();
  } catch {
    setTimeout(again, againMs);
  }
}

/** Returns an answer that is well. Throws with the console's words if it is not. */
export async function answerOf(path: string, query: Readonly<Record<string, string>>, init: RequestInit = {}): Promise<Response> {
  const answer = await asked(`${path}?${new URLSearchParams(query)}`, init).catch(() => {
    throw new Error("the console does not answer; is ./stamp console still running?");
  });
  if (answer.status === 401) connection.value = "signed-out";
  if (!answer.ok) throw new Error(await messageOf(answer));
  return answer;
}

export const page = async <T>(path: string, query: Readonly<Record<string, string>>): Promise<Page<T>> =>
  (await (await answerOf(path, query, shownOnly())).json()) as Page<T>;

export const source: Source = {
  streams: (after) => page("/api/streams", { after }),
  extents: (after) => page("/api/extents", { after }),
  extentsOf: (name, after) => page("/api/stream", { name, after }),
  extent: async (id) => (await page<ExtentRow>("/api/extent", { id })).items,
  extentUsers: (id, after) => page("/api/extent-users", { id, after }),
  ranges: (after) => page("/api/ranges", { after }),
  range: async (id) => (await page<RangeRow>("/api/range", { id })).items,
  heat: async (range) => (await (await answerOf("/api/heat", { range }, shownOnly())).json()) as HeatMap,
  balance: async () => (await (await answerOf("/api/balance", {}, shownOnly())).json()) as BalanceRows,
  coding: async () => (await page<string>("/api/coding", {})).items,
  drills: async () => (await (await answerOf("/api/drills", {})).json()) as Drills,
  faults: async () => (await page<FaultRow>("/api/faults", {})).items,
  geo: async () => (await (await answerOf("/api/geo", {})).json()) as Geo,
  diverged: async (account) => (await page<DivergedReport>("/api/diverged", { account })).items,
  role: async () => ((await (await answerOf("/api/session", {})).json()) as { readonly role: string }).role,
  async signOut() {
    await asked("/api/sign-out", { method: "POST" }).catch(() => undefined);
    localStorage.removeItem("key");
    // Also if the console refused: a stream of before would show the stamp again with its next snapshot.
    signedOut();
  },
};
