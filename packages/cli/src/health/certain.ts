/** Certain knowledge about a process. No answer in time is not knowledge: the process, its machine, the network or this command may be busy. */
import type { ProcessFacts, StampFacts } from "./facts.ts";

/** States in which the supervisor has seen a process end. */
const downStates: readonly string[] = ["down", "restarting"];

/** True if the supervisor saw the process end and says that it does not run. */
export const isToldDown = ({ answer, pid, state }: ProcessFacts): boolean =>
  answer === undefined && pid === null && downStates.includes(state);

/** True if the process does not run for certain. */
export const isDown = (process: ProcessFacts): boolean =>
  isToldDown(process) || (process.answer === undefined && process.pid === null && process.absence === "gone");

/**
 * True if the process does not serve for certain: it says so, nobody listens at its address, or the manager that it reports to has not heard of
 * it for a term.
 */
export function servesNot(process: ProcessFacts, { streamLayer, partitionLayer }: StampFacts): boolean {
  const { name, role, answer, absence } = process;
  if (answer !== undefined) return !answer.ready;
  if (isDown(process) || absence === "gone") return true;
  if (role === "extent-node") return streamLayer?.nodes.find(({ nodeId }) => nodeId === name)?.up === false;
  if (role === "partition-server") return partitionLayer?.servers.find(({ server }) => server === name)?.up === false;
  return false;
}

/** True if no question of this command was accepted, or asked at all, because of its secret: then nothing is known of the stamp. */
export const isAskerAtFault = ({ processes, asker }: StampFacts): boolean =>
  processes.some(({ absence }) => absence === "refused" || (absence === "late" && asker.isMute)) &&
  processes.every(({ answer }) => answer === undefined);

/** Number of silent processes, and their share of all, from which on they are one finding. */
const manySilent = 3;
const manySilentShare = 0.5;

export function silentTogether({ processes }: Pick<StampFacts, "processes">): readonly ProcessFacts[] {
  const late = processes.filter(({ absence }) => absence === "late");
  const running = processes.filter((each) => !isDown(each));
  return late.length >= manySilent && late.length >= manySilentShare * running.length ? late : [];
}

/** Returns the hosts of a topology none of whose processes answers. */
export function awayHosts({ processes }: StampFacts): ReadonlyMap<string, readonly ProcessFacts[]> {
  const byHost = Map.groupBy(
    processes.filter(({ host }) => host !== undefined),
    ({ host }) => host ?? "",
  );
  const isAway = (all: readonly ProcessFacts[]): boolean =>
    all.length > 1 && all.every(({ answer, absence }) => answer === undefined && absence !== "refused");
  return new Map([...byHost].filter(([, all]) => isAway(all)));
}
