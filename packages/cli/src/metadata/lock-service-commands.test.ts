/** Tests what `stamp lock-service` asks the leader for, and how it shows the members. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import { type ConsensusMember, ConsensusMemberSchema, ListMembersResponseSchema, MemberDuty } from "@stamp/wire";
import { addMember, membersText, removeMember, toldMembers, transferTo } from "./lock-service-commands.ts";

const { NONE, LEARNER, VOTER } = MemberDuty;
const words: Readonly<Record<number, string>> = { [NONE]: "NONE", [LEARNER]: "LEARNER", [VOTER]: "VOTER" };

/** Three voters and a fourth lock service, which catches up while it is looked at. */
class Members {
  readonly asked: string[] = [];
  readonly duties = new Map<string, MemberDuty>([
    ["a", VOTER],
    ["b", VOTER],
    ["c", VOTER],
    ["d", NONE],
  ]);
  leader = "a";
  looksUntilCaughtUp = 2;

  readonly listMembers = async () => {
    if (this.duties.get("d") === LEARNER) this.looksUntilCaughtUp -= 1;
    return ok(this.answer);
  };

  readonly changeMember = async ({ name = "", duty = NONE }: { name?: string; duty?: MemberDuty }): Promise<Outcome<never>> => {
    this.asked.push(`${name} ${words[duty]}`);
    if (duty === VOTER && this.looksUntilCaughtUp > 0) return refused("failedPrecondition", "notReady", "it has not caught up");
    if (duty === NONE && name === this.leader) return refused("failedPrecondition", "conflict", `${name} leads`);
    this.duties.set(name, duty);
    return ok({} as never);
  };

  readonly transferLeadership = async ({ to = "" }: { to?: string }) => {
    this.asked.push(`lead ${to}`);
    this.leader = to === "" ? "b" : to;
    return ok({ to: this.leader } as never);
  };

  get answer() {
    const members = [...this.duties].map(([name, duty]): ConsensusMember => {
      const caughtUp = duty === VOTER || (duty === LEARNER && this.looksUntilCaughtUp <= 0);
      const heard = duty !== NONE;
      return create(ConsensusMemberSchema, {
        ...{ name, address: `${name}:1`, duty, leads: name === this.leader, answers: heard, full: heard, caughtUp },
        behind: caughtUp ? 0n : 7n,
      });
    });
    return create(ListMembersResponseSchema, { term: 4n, members });
  }
}

test("lock-service add: a learner first, a voter when it has caught up", async () => {
  const members = new Members();
  const told = await addMember(members, "d");
  assert.deepEqual(members.asked, ["d LEARNER", "d VOTER"]);
  assert.equal(told.members.find(({ name }) => name === "d")?.duty, "voter");
});

test("lock-service remove: a leader hands over first, another member does not", async () => {
  const one = new Members();
  await removeMember(one, "c");
  assert.deepEqual(one.asked, ["c NONE"]);
  const other = new Members();
  await removeMember(other, "a");
  assert.deepEqual(other.asked, ["lead ", "a NONE"]);
});

test("lock-service transfer: ends when the other one leads", async () => {
  const members = new Members();
  const told = await transferTo(members, "c");
  assert.deepEqual(
    told.members.filter(({ leads }) => leads).map(({ name }) => name),
    ["c"],
  );
});

test("lock-service: a refusal is told as it is; a store that is not replicated says so", async () => {
  const refusing = (outcome: Outcome<never>) => ({
    listMembers: async () => outcome,
    changeMember: async () => outcome,
    transferLeadership: async () => outcome,
  });
  const unknown = refusing(refused("unimplemented", "unknownMethod", "no such method"));
  await assert.rejects(transferTo(unknown, "a"), /do not replicate the metadata store among themselves/);
  const other = refusing(refused("notFound", "badRequest", "there is no lock service z"));
  await assert.rejects(addMember(other, "z"), /there is no lock service z/);
});

test("lock-service list: a line for each, and how many losses are survived", async () => {
  const members = new Members();
  const text = membersText(toldMembers(members.answer));
  assert.match(text, /^LOCK SERVICE +ADDRESS +DUTY +STATE +BEHIND\na +a:1 +voter +leads +0\nb +b:1 +voter +follows +0\n/);
  assert.match(text, /\nd +d:1 +none +no member: \.\/stamp lock-service add +7\nTerm 4\. 3 vote: the loss of 1 of them is survived\.$/);
  members.duties.set("d", LEARNER);
  assert.match(membersText(toldMembers(members.answer)), /\nd +d:1 +learner +catches up +7\n/);
  members.duties.set("d", VOTER);
  assert.match(membersText(toldMembers(members.answer)), /4 vote: the loss of 1 of them is survived; 3 voters survive as many\.$/);
});

const run = (...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((done) => {
    const child = execFile(process.execPath, [join(import.meta.dirname, "../main.ts"), "lock-service", ...args], (_error, out, err) =>
      done({ code: child.exitCode ?? -1, output: out + err }),
    );
  });

test("lock-service: help names each command; a wrong command line is exit code 2, a stamp that does not run 3", async () => {
  const help = await run("--help");
  assert.equal(help.code, 0);
  for (const word of ["list", "add", "remove", "transfer"]) assert.match(help.output, new RegExp(`^  ${word} `, "m"));
  for (const wrong of [["add"], ["remove"], ["list", "more"], ["transfer", "a", "b"], ["drop"], ["add", ""]]) {
    assert.equal((await run(...wrong)).code, 2, wrong.join(" "));
  }
  const { code, output } = await run("list", "--data", join(import.meta.dirname, "no-such-folder"));
  assert.equal(code, 3, output);
});
