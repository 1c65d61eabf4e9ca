import assert from "node:assert/strict";
import { test } from "node:test";
import { Sessions } from "./sessions.ts";

const hourMs = 3_600_000;

function world(): { readonly sessions: Sessions; readonly pass: (ms: number) => void } {
  let nowMs = 0;
  let made = 0;
  return {
    sessions: new Sessions(
      () => nowMs,
      () => `token-${++made}`,
    ),
    pass: (ms) => (nowMs += ms),
  };
}

const opened = (sessions: Sessions) => {
  const session = sessions.open(sessions.makeLink());
  assert.ok(session);
  return session;
};

test("sessions: a link signs in once", () => {
  const { sessions } = world();
  const link = sessions.makeLink();
  assert.ok(sessions.open(link));
  assert.equal(sessions.open(link), undefined);
  assert.equal(sessions.open(""), undefined);
  assert.equal(sessions.open("token-99"), undefined);
});

test("sessions: a link ends after ten minutes, a session after twelve hours", () => {
  const { sessions, pass } = world();
  const old = sessions.makeLink();
  pass(10 * 60_000);
  assert.equal(sessions.open(old), undefined);
  const { token, key } = opened(sessions);
  pass(12 * hourMs - 1);
  assert.ok(sessions.find(token, key));
  pass(1);
  assert.equal(sessions.find(token, key), undefined);
});

test("sessions: the cookie alone is not enough, nor is the key, nor the key of another session", () => {
  const { sessions } = world();
  const [one, other] = [opened(sessions), opened(sessions)];
  assert.ok(sessions.find(one.token, one.key));
  assert.equal(sessions.find(one.token, ""), undefined);
  assert.equal(sessions.find("", one.key), undefined);
  assert.equal(sessions.find(one.token, other.key), undefined);
  assert.equal(sessions.find(one.key, one.token), undefined);
});

test("sessions: who signs out is out, and nobody else", () => {
  const { sessions } = world();
  const [one, other] = [opened(sessions), opened(sessions)];
  sessions.close(one.token);
  assert.equal(sessions.find(one.token, one.key), undefined);
  assert.ok(sessions.find(other.token, other.key));
});

test("sessions: of many links and sessions the oldest give way", () => {
  const { sessions } = world();
  const links = Array.from({ length: 17 }, () => sessions.makeLink());
  assert.equal(sessions.open(links[0] as string), undefined);
  assert.ok(sessions.open(links[16] as string));
  const all = Array.from({ length: 17 }, () => opened(sessions));
  assert.deepEqual(
    all.map(({ token, key }) => sessions.find(token, key) !== undefined),
    [false, ...Array.from({ length: 16 }, () => true)],
  );
});
