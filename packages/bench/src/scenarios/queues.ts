/** Scenarios of the Queue service. Messages have 200 characters. */
import { SignedClient } from "../signed-client.ts";
import { allAtOnce, kib, mustAnswer, type NameSpace, type Scenario, type Scenarios } from "./scenario.ts";

/** Messages of a fresh queue: some peers need a time for each message that grows with the queue. */
const freshMessages = 2_000;
const hiddenS = 120;
const message = Buffer.from(`<QueueMessage><MessageText>${"y".repeat(200)}</MessageText></QueueMessage>`);

export function queueScenarios(connectionString: string, space: NameSpace): Scenarios {
  const client = new SignedClient(connectionString, "queue");
  const filled = `${space.shared}-put`;
  const fresh = `${space.shared}-${space.own}`;
  const make = async (queue: string): Promise<boolean> => mustAnswer(await client.call("PUT", `/${queue}`, {}), 201, 204);
  const put = async (queue: string): Promise<boolean> =>
    mustAnswer(await client.call("POST", `/${queue}/messages`, { "content-type": "application/xml" }, message), 201);
  const scenarios: readonly Scenario[] = [
    {
      name: "queue put",
      contentBytes: 0,
      like: { method: "PUT", bytes: kib },
      prepare: async () => void (await make(filled)),
      operation: () => put(filled),
    },
    {
      name: "queue get + delete, fresh queue",
      isLimited: true,
      contentBytes: 0,
      like: { method: "PUT", bytes: kib },
      prepare: async () => {
        await make(fresh);
        await allAtOnce(freshMessages, 16, () => put(fresh));
      },
      operation: async () => {
        const taken = await client.call("GET", `/${fresh}/messages?visibilitytimeout=${hiddenS}`, {});
        mustAnswer(taken, 200);
        const text = taken.body.toString("latin1");
        const id = textOf(text, "MessageId");
        if (id === undefined) return false;
        const receipt = encodeURIComponent(textOf(text, "PopReceipt") ?? "");
        return mustAnswer(await client.call("DELETE", `/${fresh}/messages/${id}?popreceipt=${receipt}`, {}), 204);
      },
    },
  ];
  return { all: scenarios, close: () => client.close() };
}

const textOf = (xml: string, name: string): string | undefined => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
