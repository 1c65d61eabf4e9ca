/** Commands that help, written so that they reach the stamp they were printed for: its data folder, host, compose file and project. */
import { inContainers } from "@stamp/cluster";
import type { Place } from "./facts.ts";

/** A command in a text: until a mark, or the end. */
const ourCommand = /\.\/stamp ([^;,&()→`]*[^;,&()→`\s.])/g;
/** Commands of the supervisor, which containers do not have. */
const supervised = /^(up|down|reset)\b/;

/** Value of `Place.compose` in pods. */
export const kubectl = "kubectl";

/** Returns the command that starts a container again; `helpAt` names its compose file and project. */
export const startAgain = (name: string): string => `start it: docker compose up -d ${name}`;

/** `host`: where the command is to be carried out; undefined for here. */
export function helpAt(help: string, place: Place, host?: string): string {
  const { dataDir, hostDirs } = place;
  if (dataDir === inContainers) return place.compose === kubectl ? inPods(help, place) : inCompose(help, place);
  const folder = (host === undefined ? undefined : hostDirs[host]) ?? dataDir;
  const there = help.replaceAll(ourCommand, (command, words: string) => (/--data\b/.test(words) ? command : `${command} --data DATA`));
  return `${host === undefined || host === place.host ? "" : `on host ${host}: `}${there.replaceAll("DATA", folder)}`;
}

function inCompose(help: string, { compose, container, services }: Place): string {
  return help
    .replaceAll(/\.\/stamp logs --role (\S+) --data DATA/g, "docker compose logs --tail 50 $1")
    .replaceAll("in DATA/logs", "in what docker compose logs prints")
    .replaceAll(ourCommand, (command, words: string) =>
      supervised.test(words) ? command : `docker compose exec ${container} stamp ${words.replace(/ --data DATA$/, "")}`,
    )
    .replaceAll(/\bdocker compose\b([^;&()]*)/g, (_command, words: string) => {
      // Behind `stamp` are names of processes, before it those of services.
      const [before = "", ...inside] = words.split(/(?= stamp )/);
      const service = before.replaceAll(/[a-z]+-[a-z]+-\d+/g, (name) => services[name] ?? name);
      return `${compose}${service}${inside.join("")}`;
    })
    .replaceAll("DATA", "/data");
}

/** Pods have no compose file: the cluster starts them again, and the chart says how many there are. */
function inPods(help: string, { container, services }: Place): string {
  const podOf = (name: string): string => (services[name] ?? name).split(".")[0] ?? name;
  const own = podOf(container);
  return help
    .replaceAll(
      /put the newest copy back: docker compose cp ([\w-]+):(\S+) .*$/g,
      (_text, node: string, path: string) =>
        `keep the newest copy: kubectl exec ${podOf(node)} -- cat ${path} >copy.snapshot; put it back: docs/guides/metadata.md`,
    )
    .replaceAll(
      /start it: docker compose up -d ([\w-]+)/g,
      (_text, name: string) => `see why it does not run: kubectl describe pod ${podOf(name)}`,
    )
    .replaceAll(/docker compose rm -sf [\w-]+/g, "fewer extent nodes in the values of the chart (docs/guides/deploy.md)")
    .replaceAll(/\.\/stamp logs --role (\S+) --data DATA/g, (_text, name: string) => `kubectl logs --tail 50 ${podOf(name)}`)
    .replaceAll("in DATA/logs", "in what kubectl logs prints")
    .replaceAll(ourCommand, (command, words: string) =>
      supervised.test(words) ? command : `kubectl exec ${own} -- stamp ${words.replace(/ --data DATA$/, "")}`,
    )
    .replaceAll("DATA", "/data");
}
