/**
 * Explains a drill step by step, and the terms of its lines, for people who have not read the design: `stamp drill
 * explain NAME`.
 */

import type { Drill } from "./drill.ts";
import { drills } from "./drills.ts";
import { ratioToBefore } from "./verdict.ts";

/** A drill with clients and a judge of its own: `stamp drill NAME`. */
export interface OwnDrill {
  readonly name: string;
  readonly about: string;
}

/** Drills of an account at two stamps. */
export const geoDrillNames = ["geo-link-cut", "geo-primary-lost", "geo-planned", "geo-returns", "geo-migrate"] as const;

export const ownDrills: readonly OwnDrill[] = [
  { name: "damage", about: "`stamp drill damage`: hurt files, tables and journals; show what fsck says and what is mended" },
  {
    name: "histories",
    about: "`stamp drill histories`: clients of the real SDKs record what they see under faults; one order must explain it",
  },
  { name: "slow-clients", about: "`stamp drill slow-clients`: 1,000 slow readers and 1,000 slow writers beside a normal client" },
  { name: "geo-link-cut", about: "`stamp drill geo-link-cut`: the link to an account's copy is silent; the copy catches up" },
  { name: "geo-primary-lost", about: "`stamp drill geo-primary-lost`: the primary stamp dies whole; a forced failover and its loss" },
  { name: "geo-planned", about: "`stamp drill geo-planned`: a planned failover under load; for how long writes are refused" },
  { name: "geo-returns", about: "`stamp drill geo-returns`: a lost stamp comes back: it is fenced, reports, and gets its account back" },
  { name: "geo-migrate", about: "`stamp drill geo-migrate`: an account moves to another stamp under load" },
];

/** Steps of a drill that follow the fault. */
const steps: Readonly<Record<string, readonly string[]>> = {
  "kill-extent-node": [
    "An extent node that keeps a secondary replica is killed. The append in flight fails at the primary.",
    "The partition server asks the stream manager to seal the extent, at the length that every surviving replica has.",
    "The next extent is made on other nodes and the append is repeated there. The client sees a delay, no error.",
    "The supervisor starts the node again. It tells what it has, takes the sealed lengths, and its copies are complete again.",
  ],
  "kill-primary": [
    "The extent node that orders the appends is killed. Appends in flight get no answer.",
    "The partition server asks the stream manager to seal the extent; it asks the two secondaries for their length.",
    "The next extent is made on other nodes, with another primary, and the appends are repeated there.",
    "The node starts again and takes the sealed length: what it had beyond was acknowledged to nobody.",
  ],
  "kill-partition-server": [
    "The server is killed, with the rows in its memory. Requests for its ranges wait at the front-end.",
    "It is started again at once, takes its lease with a higher epoch, and the partition manager gives it its ranges.",
    "It opens their streams with a higher owner epoch and replays the commit log. Then it serves.",
  ],
  "kill-partition-server-stays-dead": [
    "The server is killed and held down, so its lease is waited out: 6 s, because it could still be alive.",
    "The partition manager assigns its ranges to the other servers with higher owner epochs.",
    "They open the streams, replay the commit logs and serve. In the end the dead one is started again.",
  ],
  "kill-partition-manager": [
    "The leading partition manager is killed. Reads and writes go on: front-ends know the map, servers have their leases.",
    "It is started again, or the standby takes the lead with a higher term. No range moves.",
  ],
  "kill-stream-manager": [
    "The leading stream manager is killed. Appends go on: the extents that are open need no manager.",
    "It is started again, or the standby takes the lead with a higher term and asks every node what it has.",
    "Only a write that needs a new extent in this moment waits for it.",
  ],
  "kill-lock-service": [
    "The lock service that leads is killed. Until another one leads, nobody can take or renew a lease, nor make an extent.",
    "Leases hold for at least 4.5 s more: holders renew every 0.5 s. Reads and writes go on without a look at the lock service.",
    "One of the other two is elected within about two seconds (a single one is started again) and extends every lease by a full term.",
  ],
  "pause-extent-node": [
    "The primary is stopped (SIGSTOP): it keeps its connections and answers nothing, as a hung machine does.",
    "Its extent is sealed without it after the deadline of an append, and the next one is made on other nodes.",
    "After 30 s it goes on and believes that nothing happened. It may take no append and serve no read that it missed.",
  ],
  "pause-partition-server": [
    "The server of the range that clients write is stopped for 14 s, longer than its lease of 6 s.",
    "A caller with the old map asks it on for reads of a row beside those of the clients. It is silent: it is stopped.",
    "Its lease ends. Another server takes its ranges over, and the row is written there.",
    "The stopped server goes on with the questions in its buffers. It must not answer one: its rows are old.",
    "The same once more with writes: none may be acknowledged, and none may be found afterwards.",
  ],
  reshape: [
    "The range that holds the clients' blobs is split three times, each part is moved to another server, and all are merged.",
    "Each change holds the writes to its range up for a moment; `held up by ... at the server` is that moment.",
  ],
  "split-and-merge": ["As reshape, without moves: three splits and three merges on one server, without pause in between."],
  "split-and-merge-paced": ["As split-and-merge, a second apart, with clients that leave the processors room."],
  "reshapes-under-uploads": ["Three splits, a move and merges, while eight clients upload 4 MiB without pause."],
  "splits-by-themselves": [
    "Nobody is killed. The partition manager is told to split ranges beyond 1 MiB of rows and to even servers out.",
    "Every step that it takes is told with its reason. A drill without a split by itself has failed.",
  ],
  "kill-partition-server-of-many": [
    "The Blob table is split into many ranges, all on the server of the clients. Most are empty.",
    "The server is killed and held down. Its lease is waited out, and the other servers load every range.",
    "Ranges that were asked last are loaded first; the lines say when the first, half and all are served.",
  ],
  "kill-fragments": [
    "Blobs of 4 MiB fill extents, which the policy codes as rs-4-2: six fragments on six of seven nodes, two of which may be lost.",
    "A node with a fragment is killed and held down, 4 s later a second one of the same extent. Every coded blob is read without them.",
    "Both are started again with their disks. Nothing was made anew: they came back within repairAfterMs (20 s here).",
    "Two other nodes with fragments of one extent are killed at once and their disks are emptied. Every coded blob is read without them.",
    "They start with new disks. The stream manager has the lost fragments computed from the others, first of extents that bear no further loss.",
  ],
  "slow-fragment": [
    "Blobs of 4 MiB fill extents, which the policy codes as rs-4-2.",
    "The node with the most data fragments is stopped for 2 s and goes on for 0.5 s, eight times. It is never silent for long enough to be down.",
    "A read of its fragments waits no longer than the node usually takes (hedge), then asks the other fragments and computes the bytes.",
    "Appends to replicas on that node fail at their deadline; the next extents are made on other nodes.",
  ],
  "code-under-load": [
    "Coding is paused. Blobs of 4 MiB fill extents, and wait as replicas.",
    "The pause ends while clients write and read. Extents are coded, two at a time and at 32 MiB/s at most (codingsMax, codingBytesPerSecond).",
    "Each is cut by a node with a replica, stored on six nodes, decoded by another node and compared; only then do the replicas go.",
    "Readers that know the old places are refused and ask for the new ones. The drill ends after eight extents at the earliest.",
  ],
  "rolling-restart": [
    "Each process is asked to stop, and started again when it has: lock service, extent nodes, managers, partition servers, front-end.",
    "It says first that it stops: leases are given back, so nobody waits for their end, and its doors answer what is under way.",
    "The next process is stopped only when every process serves again, so there is never more than one away.",
    "That is what an upgrade does to each host (docs/guides/upgrade.md), with the same release before and after.",
  ],
  "power-loss": [
    "Every process is killed in the same moment and started again half a second later, all at once.",
    "In order: the lock service waits out what it gave; extent nodes replay their journals and report; a stream manager leads and",
    "seals what was open; a partition manager leads; servers take leases, replay their commit logs and serve.",
    "The silence is mostly waiting: a lease that may still be held is waited out. The lines name who waits for whom.",
  ],
  damage: [
    "Thirty blobs are written. Then a person's hand hurts files, one kind after another: a bit, a page, a file, a table, a journal,",
    "a whole disk, the metadata store. With `--compose` the hand reaches into the volumes by containers of the same service.",
    "After each, fsck must name the damage, and nothing may be wrong any more after a while. In the end every blob is read.",
  ],
  histories: [
    "Clients of the Azure SDKs put, read, delete and list blobs, entities, transactions and messages, and record every answer.",
    "Nine faults come meanwhile: every kind of process is killed, a partition server is stopped for longer than its lease.",
    "One order of all operations must explain every answer; no promise about messages may be broken.",
  ],
  "geo-link-cut": [
    "Clients write at the primary, whose account has a complete copy at the second stamp.",
    "The front-ends of the second stamp are stopped (SIGSTOP) for 10 s: shipments get no answer. The primary keeps its commit log for them.",
    "Clients notice nothing. Lag and backlog grow, and `stamp geo status` says so.",
    "The front-ends go on. What was not acknowledged is shipped again, and skipped where it had arrived.",
    "Everything is read at the `-secondary` name and compared.",
  ],
  "geo-primary-lost": [
    "The link is silent for 2 s, so that something is not shipped. Then every process of the primary's stamp and their supervisor are killed.",
    "`geo failover --forced --accept-loss` makes the copy the primary, and tells the Last Sync Time that it begins with.",
    "Clients that find the old address dead try the other one. The lines say when its first write was accepted.",
    "What the new primary lacks is looked for: nothing of it may be from before Last Sync Time.",
    "The old stamp is started again. It hears that it is deposed, reports what only it had, and is filled from the new primary.",
    "The report must have every lost write, and nothing that the new primary has.",
  ],
  "geo-planned": [
    "Clients of the SDKs write at the primary. They try the other stamp when one refuses, as after a change of the name's address.",
    "`geo failover --planned`: the primary is drained. It refuses writes with 503, and what it acknowledged is shipped.",
    "When all of it is there, the copy becomes primary, and the old one is filled from it.",
    "The lines say for how long writes were refused; the summary, which errors clients saw. Nothing may be lost.",
  ],
  "geo-returns": [
    "The primary's stamp is killed whole, and a forced failover makes the copy the primary.",
    "Clients that know only the old address go on trying. The old stamp is started again, and may acknowledge writes until it hears that it is deposed.",
    "From then on it refuses every write. It reports what only it had, those late writes, too.",
    "It is filled from the new primary, and `geo failback` gives it the account back. Nothing is lost by that, and nothing that was lost comes back.",
  ],
  "geo-migrate": [
    "An account with one stamp has `--objects` objects and `--large-blobs` blobs of 4 MiB. Clients write all the time.",
    "`account migrate` copies everything to the other stamp, ships what is written meanwhile, and drains the account for a moment at the end.",
    "The old stamp forgets the account. Every object is read at the new one and compared with what was written.",
  ],
  "slow-clients": [
    "A normal client works alone, then beside 1,000 readers and 1,000 writers of 1 byte to 10 KiB in a second.",
    "With `--compose` the slow clients are in containers of their own: one for one address, ten for many.",
    "Its 99th percentile may be three times that of before; the front-end may hold 300 MiB more, connections of the host 700 MiB more.",
  ],
};

const terms: Readonly<Record<string, string>> = {
  drained: "Refuses writes, so that everything that was acknowledged can be shipped.",
  "Last Sync Time": "Every acknowledged write that was begun before it is at the copy.",
  append: "Bytes added at the end of a stream. Acknowledged when every replica has them on disk.",
  "commit log": "Stream of a range with every change to its rows. Replayed when a server loads the range.",
  disk: "Folder of an extent node with a number of its own. An emptied one is a new disk: what lay on the old one is lost.",
  epoch: "Number that grows with each holder of a lease or owner of a stream. Who comes with a lower one is refused.",
  extent: "Piece of a stream, with three replicas on three extent nodes. Appends go to the last extent of a stream.",
  fragment:
    "Part of a coded extent, or a sum of parts by the code. Any four of six give the extent back in rs-4-2 (docs/guides/erasure-coding.md).",
  fsck: "Comparison of extent tables, files and the stream manager against one another.",
  hedge: "Second question for the same bytes, when the node that was asked first is later than it usually is.",
  "held up": "Time from the first attempt of a write to its acknowledgement, retries included. The longest one is judged.",
  journal: "File of an extent node that every append is written to first.",
  lease: "Right to serve, for 6 s after each renewal. Whoever waits 6 s knows that the holder has stopped.",
  map: "Which range is on which partition server. Front-ends keep a copy.",
  primary: "The replica of an extent that orders appends and sends them to the two secondaries.",
  range: "Rows from one key to another, served by one partition server at a time.",
  replica: "One of the three copies of an extent.",
  seal: "End of an extent: its length is fixed for ever, and the next extent begins elsewhere.",
  standby: "Second manager that takes the lead when the first one loses its lease.",
  term: "Number of a leadership of a manager; a later leader has a higher one. Also the length of a lease, 6 s.",
};

const clusterText = ({ cluster, roles }: Drill): string => {
  const settings = Object.entries({ ...cluster, ...(roles === undefined ? {} : { roles }) });
  const shown = settings.map(([key, value]) => `${key} ${JSON.stringify(value)}`).join(", ");
  return `Its own, with ${shown}. Not with --compose: docker-compose.yml has four extent nodes.`;
};

const clientText = (drill: Drill): string => {
  const { smallWriters = 4, largeWriters = 1 } = drill.clients ?? {};
  const writers = `${smallWriters} writers of 1 KiB, ${largeWriters} of 4 MiB, 2 counters under ETags, a reader`;
  const reader = drill.codedReads === undefined ? "" : " A reader compares the coded blobs, one after another.";
  return `${writers}, 3 clients whose history must be linearizable.${reader} They write for 3 s before the fault; the slowest write of this time is the machine's measure.`;
};

/** Returns the text of `stamp drill explain`; undefined if there is no such drill. */
export function explain(name: string): string | undefined {
  const drill = drills.find((each) => each.name === name);
  const found = drill ?? ownDrills.find((each) => each.name === name);
  if (found === undefined) return undefined;
  const told = steps[name] ?? [];
  const text = [found.about, ...told].join(" ").toLowerCase();
  const used = Object.entries(terms).filter(([term]) => (drill !== undefined && term === "held up") || text.includes(term.toLowerCase()));
  return [
    `${name}: ${found.about}`,
    ...(drill?.cluster === undefined ? [] : [`\nCluster\n  ${clusterText(drill)}`]),
    ...(drill === undefined ? [] : [`\nClients\n  ${clientText(drill)}`]),
    `\nWhat happens\n${told.map((each, at) => `  ${at + 1}. ${each}`).join("\n")}`,
    ...(drill === undefined ? [] : [`\nEnd\n${endText(drill)}`]),
    `\nTerms\n${used.map(([term, meaning]) => `  ${term.padEnd(12)} ${meaning}`).join("\n")}`,
  ].join("\n");
}

const endText = ({ holdUpAimMs, codedReads }: Drill): string =>
  [
    "  Every acknowledged write is read back, byte for byte.",
    `  KEPT    every promise was kept; writes were held up ${holdUpAimMs} ms at most, or ${ratioToBefore} times the slowest write before the fault`,
    ...(codedReads === undefined
      ? []
      : [`          and reads of coded blobs took ${codedReads.aimMs} ms at most, or twice the slowest one before`]),
    "  SLOW    every promise was kept, and writes were held up longer (exit code 8; with --strict an error, 5)",
    "  BROKEN  a promise was broken (exit code 5)",
  ].join("\n");
