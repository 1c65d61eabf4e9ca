/**
 * Commands in words for people, written so that they reach the stamp they were printed for: its data folder, host, compose file and project, or
 * its location service.
 */
import { inContainers } from "@stamp/cluster";
import { word } from "../print.ts";
import { topLevelWords } from "../top-level.ts";
import type { CommandPlace } from "./facts.ts";

/** A command in a text: until a mark, two spaces or the end. What follows it in a sentence needs a mark before it (say.test.ts). */
const ending = /((?:[^\s;,&()→`|<.:]|[.:](?=\S)|[^\S\n](?!\s))*[^\s;,&()→`|<.:])/;
/** Returns the command as texts name it. The package is bundled with `stamp` here, as in all texts. */
export const ourName = "./stamp";
export const ourCommand = new RegExp(
  `(?<![\\w./-])${ourName.replace(".", "\\.")} (?=(?:${topLevelWords.join("|")})\\b)${ending.source}`,
  "g",
);
/** The command that reads the log of a process. */
const logOf = new RegExp(`${ourName.replace(".", "\\.")} logs --role (\\S+) --data DATA`, "g");
/** Commands of the supervisor, which containers do not have. */
const supervised = /^(up|down|reset)\b/;
/** Commands that ask a location service. */
const ofLocation = /^(geo|location|account migrate)\b|^account create\b.*--location/;
/** Commands that ask no stamp. */
const ofNoStamp = /^drill (list|explain)\b/;

/** Value of `Place.compose` in pods. */
export const kubectl = "kubectl";

/** Returns the command that starts a container again; `helpAt` names its compose file and project. */
export const startAgain = (name: string): string => `start it: docker compose up -d ${name}`;

/** Writes what helps with a finding: DATA is the data folder, also of another host. `host`: where it is to be carried out; undefined for here. */
export function helpAt(help: string, place: CommandPlace, host?: string): string {
  const { dataDir, hostDirs } = place;
  if (dataDir === inContainers) return commandsAt(help, place).replaceAll("DATA", "/data");
  const folder = (host === undefined ? undefined : hostDirs[host]) ?? dataDir ?? "";
  const there = commandsAt(help, { ...place, dataDir: folder });
  return `${host === undefined || host === place.host ? "" : `on host ${host}: `}${there.replaceAll("DATA", word(folder))}`;
}

/** Writes the commands in a text, and leaves those as they are that say their place. Written again, the text stays the same. */
export function commandsAt(text: string, place: CommandPlace): string {
  if (place.dataDir === inContainers) return place.compose === kubectl ? inPods(text, place) : inCompose(text, place);
  const data = place.dataDir === "" ? "" : ` --data ${word(place.dataDir)}`;
  return text.replaceAll(ourCommand, (command, words: string) => {
    if (/ --(data|at|help)\b/.test(words) || ofNoStamp.test(words)) return command;
    return `${command}${ofLocation.test(words) ? place.location : data}`;
  });
}

/** Returns a command that runs inside of the container that asked. */
const within = (words: string, run: string, command: string): string =>
  supervised.test(words) || ofNoStamp.test(words) ? command : `${run} stamp ${words.replace(/ --data DATA$/, "")}`;

function inCompose(text: string, { compose, container, services, location }: CommandPlace): string {
  return text
    .replaceAll(logOf, "docker compose logs --tail 50 $1")
    .replaceAll("in DATA/logs", "in what docker compose logs prints")
    .replaceAll(ourCommand, (command, words: string) =>
      ofLocation.test(words) && !container.startsWith("location")
        ? command
        : within(ofLocation.test(words) ? `${words}${location}` : words, `docker compose exec ${container}`, command),
    )
    .replaceAll(/\bdocker compose\b([^;&()\n]*)/g, (command, words: string) => {
      if (compose !== "docker compose" && command.startsWith(compose)) return command;
      // Behind `stamp` are names of processes, before it those of services.
      const [before = "", ...inside] = words.split(/(?= stamp )/);
      const service = before.replaceAll(/[a-z]+-[a-z]+-\d+/g, (name) => services[name] ?? name);
      return `${compose}${service}${inside.join("")}`;
    });
}

/** Pods have no compose file: the cluster starts them again, and the chart says how many there are. */
function inPods(help: string, { container, services }: CommandPlace): string {
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
    .replaceAll(logOf, (_text, name: string) => `kubectl logs --tail 50 ${podOf(name)}`)
    .replaceAll("in DATA/logs", "in what kubectl logs prints")
    .replaceAll(ourCommand, (command, words: string) =>
      ofLocation.test(words) ? command : within(words, `kubectl exec ${own} --`, command),
    );
}
