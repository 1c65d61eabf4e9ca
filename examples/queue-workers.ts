/**
 * A queue whose workers crash in the middle of their work: every message has its effect exactly once all the same, because a message comes
 * back and the effect is idempotent (article "Managing concurrency", queues).
 *
 *   node examples/queue-workers.ts [--messages 400] [--workers 3] [--crashes 4]
 */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { processQueue } from "@stamp/coordination";
import { option, queue, table } from "./account.ts";

const messages = option("--messages", 400);
const workers = option("--workers", 3);
const crashes = option("--crashes", 4);
const run = process.env.RUN ?? `${Date.now()}`;
const orders = queue(`orders-${run}`);
const poison = queue(`orders-${run}-poison`);
const done = table(`done${run}`);

if (process.send !== undefined) await worker();
else await parent();

async function worker(): Promise<void> {
  const stop = new AbortController();
  process.on("disconnect", () => stop.abort());
  const handle = async ({ text, dequeueCount }: { text: string; dequeueCount: number }): Promise<void> => {
    if (text === "poison") throw new Error("no order");
    process.send?.("working");
    await delay(100);
    // The key of the effect is the order's own: a second time changes nothing.
    await done.upsertEntity({ partitionKey: "order", rowKey: text, dequeueCount }, "Replace");
  };
  await processQueue(orders, handle, stop.signal, { concurrency: 4, visibilitySeconds: 5, dequeueCountMax: 3, poisonQueue: poison });
}

async function parent(): Promise<void> {
  await orders.create();
  await done.createTable();
  await Promise.all(Array.from({ length: messages }, (_, number) => orders.sendMessage(`order-${number}`)));
  await orders.sendMessage("poison");
  const running = new Set<ChildProcess>();
  const start = (): void => {
    const one = fork(import.meta.filename, process.argv.slice(2), { env: { ...process.env, RUN: run } });
    running.add(one);
    one.on("exit", () => running.delete(one));
  };
  for (let started = 0; started < workers; started++) start();
  for (let crashed = 0; crashed < crashes; crashed++) {
    // In the middle of its work: the one that begins a message next.
    const victim = await new Promise<ChildProcess>((resolve) => {
      for (const one of running) one.once("message", () => resolve(one));
    });
    victim.kill("SIGKILL");
    start();
    await delay(500);
  }
  for (let waitedS = 0; waitedS < 120 && ((await orders.getProperties()).approximateMessagesCount ?? 0) > 0; waitedS++) await delay(1_000);
  for (const one of running) one.disconnect();
  let handled = 0;
  let again = 0;
  for await (const entity of done.listEntities<{ dequeueCount: number }>()) {
    handled++;
    if (entity.dequeueCount > 1) again++;
  }
  const aside = (await poison.peekMessages()).peekedMessageItems.length;
  console.log(`${handled} of ${messages} orders done, ${again} of them taken more than once; ${crashes} crashes; set aside: ${aside}`);
  process.exitCode = handled === messages && aside === 1 ? 0 : 1;
}
