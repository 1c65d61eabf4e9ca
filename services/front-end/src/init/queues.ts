/**
 * Queues of an init file, and their first messages.
 *
 * Messages can't be told from those of a client: they are put once, while the queue is made. A note in its metadata names the front-end that does
 * it, and goes away behind the last message. Whoever finds its own note, or one that stays, has lost the end of it and begins anew: no client has
 * seen the queue yet.
 */
import { escapeXml, toBase64 } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { InitCounts, InitTarget } from "./applying.ts";
import { metadataHeaders } from "./containers.ts";
import { eachLine, type Init, InitError } from "./load-init.ts";
import { applyPolicies } from "./policies.ts";
import type { InitQueue } from "./schema.ts";

const note = "stampinit";
/** Longest life of another front-end's note, and time between two looks at it, in milliseconds. */
const othersMs = 60_000;
const lookEveryMs = 250;
const fillsMax = 5;

export async function applyQueue(applying: InitTarget, init: Init, account: string, queue: InitQueue, counts: InitCounts): Promise<void> {
  const { requests, self } = applying;
  const { name, metadata, policies, overwrite } = queue;
  const noted = { method: "PUT", path: `/${name}`, headers: metadataHeaders({ ...metadata, [note]: self }) };
  const made = await requests.ask("queue", account, noted, [201, 204, 409]);
  const code = made.headers["x-ms-error-code"];
  if (made.status === 409 && code !== "QueueAlreadyExists") throw new InitError(`queue ${name} of ${account} can't be made: ${code}`);
  if (made.status === 201) counts.queues++;
  const isOurs = made.status !== 409 || (await isLeft(applying, account, queue));
  const place = { service: "queue", account, path: `/${name}?comp=acl`, what: `queue ${name} of ${account}` } as const;
  await applyPolicies(applying, place, policies, overwrite, counts);
  if (!isOurs && !overwrite) return;
  counts.messages += await fill(applying, init, account, queue, made.status !== 201);
  if (isOurs)
    await requests.ask("queue", account, { method: "PUT", path: `/${name}?comp=metadata`, headers: metadataHeaders(metadata) }, [204]);
}

/** Waits for the end of another front-end's note. True if the note is of this front-end, or stays. */
async function isLeft({ requests, self, nowMs, pause }: InitTarget, account: string, { name }: InitQueue): Promise<boolean> {
  const endMs = nowMs() + othersMs;
  for (;;) {
    const found = await requests.ask("queue", account, { method: "GET", path: `/${name}?comp=metadata` }, [200]);
    const by = found.headers[`x-ms-meta-${note}`];
    if (by === undefined) return false;
    if (by === self || nowMs() > endMs) return true;
    if (!(await pause(lookEveryMs))) throw new InitError("the front-end stops");
  }
}

/** Puts every message once, and returns their number. If it is not known whether one was put, all are removed and put again. */
async function fill(applying: InitTarget, init: Init, account: string, queue: InitQueue, clearFirst: boolean): Promise<number> {
  const path = `/${queue.name}/messages`;
  for (let fills = 1, clear = clearFirst; ; fills++, clear = true) {
    if (clear) await applying.requests.ask("queue", account, { method: "DELETE", path }, [204]);
    try {
      return await putAll(applying, init, account, queue, path);
    } catch (error) {
      if (fills === fillsMax) throw error;
    }
  }
}

async function putAll({ requests, files }: InitTarget, init: Init, account: string, queue: InitQueue, path: string): Promise<number> {
  let count = 0;
  const put = async (text: string): Promise<void> => {
    const shown = queue.base64 ? toBase64(utf8(text)) : escapeXml(text);
    const body = utf8(`<QueueMessage><MessageText>${shown}</MessageText></QueueMessage>`);
    await requests.ask("queue", account, { method: "POST", path, headers: { "content-type": "application/xml" }, body, once: true }, [201]);
    count++;
  };
  if (typeof queue.messages === "string") await eachLine(files, init.folder, queue.messages, ({ value }) => put(value as string));
  else for (const text of queue.messages) await put(text);
  return count;
}
