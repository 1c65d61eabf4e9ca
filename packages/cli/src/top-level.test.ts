import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Command } from "commander";
import { unknownBesideHelp, unknownWord } from "./program.ts";
import { addWords, topLevelWords } from "./top-level.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-top-level-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Prints each module that is loaded to standard error. */
const hook = `import { registerHooks } from "node:module";
registerHooks({ load: (url, context, next) => { process.stderr.write("loaded " + url + "\\n"); return next(url, context); } });`;

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly loaded: readonly string[];
  readonly said: string;
}

function stamp(...args: readonly string[]): Promise<Ran> {
  const command = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, join(import.meta.dirname, "main.ts"), ...args];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, command, { maxBuffer: 16 * 1024 * 1024 }, (_error, out, err) => {
      const lines = err.split("\n");
      const loaded = lines.filter((line) => line.startsWith("loaded "));
      resolve({ code: child.exitCode ?? -1, out, loaded, said: lines.filter((line) => !line.startsWith("loaded ")).join("\n") });
    });
  });
}

describe("first words of the command line", () => {
  for (const word of topLevelWords) {
    it(`${word}: its module adds it once, beside all others`, async () => {
      const program = new Command("stamp");
      await addWords(program, [word]);
      assert.deepEqual(program.commands.map((each) => each.name()).sort(), [...topLevelWords].sort());
      const command = program.commands.find((each) => each.name() === word);
      assert.ok((command?.options.length ?? 0) + (command?.commands.length ?? 0) > 0, "only its description was added");
    });
  }

  it("gives no option to a command that one of its own commands has too: commander would keep it from that one", async () => {
    const below = (command: Command): Command[] => command.commands.flatMap((each) => [each, ...below(each)]);
    for (const word of topLevelWords) {
      const program = new Command("stamp");
      await addWords(program, [word]);
      for (const command of below(program)) {
        const own = command.options.map(({ long }) => long);
        const taken = below(command).flatMap((each) => each.options.map(({ long }) => long).filter((long) => own.includes(long)));
        assert.deepEqual([...new Set(taken)], [], command.name());
      }
    }
  });

  it("finds the word behind help", async () => {
    const program = new Command("stamp");
    await addWords(program, ["help", "node"]);
    assert.ok(program.commands.some((each) => each.name() === "node" && each.commands.length > 0));
  });

  it("shows help and refuses an unknown word without loading any other package of the stamp", async () => {
    const [help, wrong] = await Promise.all([stamp("--help"), stamp("stats")]);
    assert.equal(help.code, 0);
    for (const word of topLevelWords) assert.match(help.out, new RegExp(`^ {2}${word} `, "m"));
    assert.equal(wrong.code, 2);
    assert.match(wrong.said, /did you mean: \.\/stamp status/);
    for (const { loaded } of [help, wrong]) {
      const ours = loaded.filter((each) => /\/(packages|services)\//.test(each) && !each.includes("/node_modules/"));
      assert.deepEqual(ours.map((each) => each.replace(/.*\/packages\//, "")).sort(), [
        "cli/src/exit.ts",
        "cli/src/main.ts",
        "cli/src/nearest.ts",
        "cli/src/printable.ts",
        "cli/src/program.ts",
        "cli/src/say.ts",
        "cli/src/top-level.ts",
        "cli/src/values.ts",
      ]);
    }
  });

  it("tells the state of a cluster without loading the code of a role or of another word", async () => {
    const status = await stamp("status", "--data-dir", folder);
    assert.equal(status.code, 3);
    const others = status.loaded.filter((each) => /\/services\/|\/drills\/|\/cli\/src\/(up|role-settings|metadata-command)\.ts/.test(each));
    assert.deepEqual(others, []);
    // Only servers, terminals and verifiers of tokens need these: together a seventh of the modules that a status
    // loaded.
    const large = status.loaded.filter((each) => /\/(pino-pretty|jose|@grpc\+reflection)@/.test(each));
    assert.deepEqual(large, []);
  });
});

describe("a wrong command line", () => {
  const main = join(import.meta.dirname, "main.ts");
  const ran = (...args: readonly string[]) => spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });

  for (const [args, said] of [
    [["lifecycle", "--help"], /^stamp: there is no command stamp lifecycle; see: \.\/stamp --help$/m],
    [["helth", "--help"], /^stamp: there is no command stamp helth; did you mean: \.\/stamp health$/m],
    [["version"], /did you mean: \.\/stamp --version$/m],
    [["backup"], /did you mean: \.\/stamp metadata$/m],
    [["node", "drian", "extent-node-1"], /there is no command stamp node drian; did you mean: \.\/stamp node drain$/m],
    [["help", "helth"], /did you mean: \.\/stamp health$/m],
    [["health", "--jsn"], /unknown option '--jsn'\n\(Did you mean --json\?\)/],
  ] as const)
    it(`${args.join(" ")}: the nearest that exists, exit code 2`, () => {
      const { status, stderr, stdout } = ran(...args);
      assert.equal(status, 2, stdout + stderr);
      assert.match(stderr, said);
    });

  it("every command: a word or an option that there is not is told, also beside --help, with the nearest", async () => {
    const paths = (command: Command, path: readonly string[]): [Command, readonly string[]][] => [
      [command, path],
      ...command.commands.flatMap((each) => paths(each, [...path, each.name()])),
    ];
    let told = 0;
    for (const word of topLevelWords) {
      const program = new Command("stamp");
      await addWords(program, [word]);
      const top = program.commands.find((each) => each.name() === word) as Command;
      for (const [command, path] of paths(top, [word])) {
        told++;
        const name = path.join(" ");
        const shown = `./stamp ${name}`;
        assert.equal(unknownBesideHelp(program, [...path, "--help"]), undefined, name);
        for (const args of [
          ["--zzzzzzzz", "--help"],
          ["-h", "--zzzzzzzz=1"],
        ])
          assert.equal(unknownBesideHelp(program, [...path, ...args]), `${shown} has no option --zzzzzzzz; see: ${shown} --help`);
        const option = command.options.find(({ long, hidden }) => !hidden && (long?.length ?? 0) > 5);
        const slip = `${option?.long}x`;
        if (option !== undefined) {
          assert.match(unknownBesideHelp(program, [...path, slip, "--help"]) ?? "", / has no option .*; did you mean: --/);
          assert.equal(unknownBesideHelp(program, [...path, option.long ?? "", "--value", "--help"]) === undefined, option.required);
        }
        if (command.commands.length > 0) assert.match(unknownWord(program, [...path, "zzzzzzzz", "--help"]) ?? "", /^there is no command/);
      }
    }
    assert.ok(told > 60, `${told} commands`);
    for (const args of [
      ["up", "--prot-base", "1", "--help"],
      ["--bogus", "--help"],
      ["node", "--bogus", "-h"],
    ])
      assert.equal(ran(...args).status, 2);
  });

  it("geo status where no location service runs: says what one is and how to name it", () => {
    // Nobody listens at port 1.
    const { status, stderr } = ran("geo", "status", "--at", "127.0.0.1:1");
    assert.equal(status, 3, stderr);
    assert.match(stderr, /No location service runs at 127\.0\.0\.1:1\. It knows which of several stamps .*--at HOST:PORT/);
  });

  it("help of commands that exist is as before", () => {
    for (const args of [["--help"], ["health", "--help"], ["node", "drain", "--help"], ["help", "node"]]) {
      const { status, stdout } = ran(...args);
      assert.deepEqual([status, stdout.startsWith("Usage: stamp")], [0, true], args.join(" "));
    }
  });
});
