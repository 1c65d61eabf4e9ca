/** Commands that help, written so that they reach the stamp they were printed for: its data folder, host, compose file and project. */
import { inContainers } from "@stamp/cluster";
import type { Place } from "./facts.ts";

/** A command in a text: until a mark, or the end. */
const ourCommand = /\.\/stamp ([^;,&()→`]*[^;,&()→`\s.])/g;
/** Commands of the supervisor, which containers do not have. */
const supervised = /^(up|down|reset)\b/;

/** `host`: where the command is to be carried out; undefined for here. */
export function helpAt(help: string, place: Place, host?: string): string {
  const { dataDir, hostDirs } = place;
  if (dataDir === inContainers) return inCompose(help, place);
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
