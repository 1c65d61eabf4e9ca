/**
 * The location service over simulated time, disks and network: stamps, placement, pinned accounts, crashes, a deposed
 * leader.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { featureLevel, Prng, unwrap } from "@stamp/base";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { Simulation } from "@stamp/virtual-time";
import { LocationService, MetadataStore, StampState as WireState } from "@stamp/wire";
import { type LocationServiceConfig, locationServiceSchema } from "./config.ts";
import { LocationServiceRole } from "./location-service.ts";
import { FakeStamp, type StampState, stampState } from "./testing/fake-stamp.ts";

const call = { timeoutMs: 20_000 };
const said = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.reason}: ${outcome.failure.message}`);

class Place {
  readonly sim: Simulation;
  readonly stamps = new Map<string, StampState>();

  constructor(seed: number, names: readonly string[] = ["location-1"], settings: Partial<LocationServiceConfig> = {}) {
    this.sim = new Simulation({ seed });
    const lock = lockServiceSchema.parse({ name: "lock", listen: "lock:1", init: true });
    this.sim.addProcess("lock:1", (world) => new LockServiceRole(world, lock));
    for (const name of names) {
      const config = locationServiceSchema.parse({ name, listen: `${name}:1`, lockService: "lock:1", ...settings });
      this.sim.addProcess(`${name}:1`, (world) => new LocationServiceRole(world, config, () => world.transport));
    }
  }

  /** A process is called by its address in a simulation. */
  addProcess(address: string, state: StampState): void {
    this.stamps.set(address, state);
    this.sim.addProcess(address, (world) => new FakeStamp(world, address, state));
  }

  client(name = "location-1") {
    return this.sim.world("tester").transport.client(`${name}:1`, LocationService);
  }

  /** Waits until a process leads. */
  async leads(name = "location-1"): Promise<void> {
    await this.sim.until(
      () => this.sim.isUp(`${name}:1`) && this.sim.role(`${name}:1`)?.status.state === "leader",
      60_000,
      `${name} leads`,
    );
  }

  async add(name: string, location: string, state: StampState): Promise<void> {
    this.addProcess(`${name}:1`, state);
    await this.sim.sleep(10);
    unwrap(await this.client().addStamp({ name, location, lockService: `${name}:1` }, call));
  }

  /** Transactions that wrote to the metadata store so far. */
  get transactions(): number {
    return Number(this.sim.role("lock:1")?.status.facts.lastTransaction);
  }

  /** Stamps that have an account of this name. */
  whoHas(account: string): string[] {
    return [...this.stamps].filter(([, { accounts }]) => accounts.has(account)).map(([address]) => address);
  }
}

test("location service: an account goes to the emptiest open stamp of its location, and names are unique over all stamps", async () => {
  const place = new Place(1);
  await place.sim.run(async () => {
    await place.leads();
    await place.add("north-1", "north", stampState("id-1", 600, ["old", "both"]));
    await place.add("north-2", "north", stampState("id-2", 200, ["both"]));
    await place.add("south-1", "south", stampState("id-3", 0));
    const location = place.client();
    const made = unwrap(await location.createAccount({ account: "acme", location: "north" }, call));
    assert.deepEqual([made.account?.stamp, made.account?.state, made.account?.location], ["north-2", "single", "north"]);
    assert.deepEqual(place.stamps.get("north-2:1")?.accounts.get("acme"), made.keys);
    assert.equal(new Set(made.keys).size, 2);

    const stamps = unwrap(await location.listStamps({}, call)).stamps;
    assert.deepEqual(
      stamps.map(({ name, usedBytes, totalBytes, accounts, taken }) => [name, Number(usedBytes), Number(totalBytes), accounts, taken]),
      [
        ["north-1", 600, 1_000, 2, []],
        ["north-2", 200, 1_000, 1, ["both"]],
        ["south-1", 0, 1_000, 0, []],
      ],
    );
    for (const [account, place_, text] of [
      ["acme", "south", /conflict: account acme is at stamp north-2 already/],
      ["old", "south", /conflict: account old is at stamp north-1 already/],
      ["x1", "north", /badRequest: x1: an account's name has 3 to 24/],
      ["fresh", "west", /noPlacement: location west has no stamp that is a choice; locations are: north, south/],
    ] as const) {
      assert.match(said(await location.createAccount({ account, location: place_ }, call)), text);
    }
    unwrap(await location.setStampState({ name: "north-2", state: WireState.CLOSED }, call));
    assert.equal(unwrap(await location.createAccount({ account: "second", location: "north" }, call)).account?.stamp, "north-1");
    assert.match(
      said(await location.setStampState({ name: "north-9", state: WireState.OPEN }, call)),
      /there is no stamp north-9; stamps are: north-1, north-2, south-1/,
    );
    // An account that was made at a stamp since its accounts were asked for.
    place.stamps.get("south-1:1")?.accounts.set("byhand", ["a key"]);
    assert.match(said(await location.createAccount({ account: "byhand", location: "north" }, call)), /byhand is at stamp south-1 already/);
    const page = unwrap(await location.listAccounts({ after: "acme", limit: 2 }, call));
    assert.deepEqual([page.accounts.map(({ name }) => name), page.more], [["both", "byhand"], true]);
    assert.equal(unwrap(await location.getAccount({ account: "old" }, call)).stamp, "north-1");
    assert.match(said(await location.getAccount({ account: "nobody" }, call)), /no stamp is known to have account nobody/);
  });
});

test("location service: a stamp that is fuller than the limit takes no new account, and the limit is a setting", async () => {
  for (const [refuseAboveUsed, answer] of [
    [0.8, /noPlacement: .*north-1: 85.0% of its bytes are used, 80.0% is the limit/],
    [0.95, /^ok$/],
  ] as const) {
    const place = new Place(7, ["location-1"], { refuseAboveUsed });
    await place.sim.run(async () => {
      await place.leads();
      await place.add("north-1", "north", stampState("id-1", 850));
      assert.match(said(await place.client().createAccount({ account: "acme", location: "north" }, call)), answer);
    });
  }
});

test("location service: the accounts of a stamp that joins are pinned together, however many there are", async () => {
  const place = new Place(5);
  await place.sim.run(async () => {
    await place.leads();
    const names = Array.from({ length: 250 }, (_, at) => `account${String(at).padStart(3, "0")}`);
    const before = place.transactions;
    await place.add("north-1", "north", stampState("id-1", 100, names));
    assert.equal(place.transactions - before, 4, "one for the stamp, one for each 100 accounts");
    const page = unwrap(await place.client().listAccounts({ limit: 240 }, call));
    assert.deepEqual([page.accounts.map(({ name }) => name), page.more], [names.slice(0, 240), true]);
    place.sim.crash("location-1:1", { unsynced: "lost", silent: false, stayDown: true });
    place.sim.restart("location-1:1");
    await place.leads();
    assert.equal(unwrap(await place.client().listAccounts({}, call)).accounts.length, 250);
  });
});

test("location service: a stamp that is not there, has another name, or was replaced by another one is refused with words", async () => {
  const place = new Place(2);
  await place.sim.run(async () => {
    await place.leads();
    const state = stampState("id-1", 100);
    await place.add("north-1", "north", state);
    const location = place.client();
    const add = async (name: string, address: string, secret = "") =>
      said(await location.addStamp({ name, location: "north", lockService: address, secret }, call));
    assert.equal(await add("north-1", "north-1:1"), "ok");
    assert.match(await add("north-2", "north-1:1"), /conflict: the stamp at north-1:1 is known already, as north-1/);
    assert.match(await add("north-3", "nowhere:1"), /stamp north-3: /);
    assert.match(await add("North", "north-1:1"), /badRequest: name "North": 1 to 63 lower-case letters/);
    assert.match(await add("north-4", "no port"), /badRequest: lock service "no port": host:port/);
    assert.match(await add("north-4", "north-1:1", "../key"), /badRequest: secret .*the name of a file in stampSecretsDir, without a path/);
    assert.match(await add("north-4", "north-1:1", "key"), /badRequest: secret key: this location service has no stampSecretsDir/);
    place.addProcess("other:1", stampState("id-9", 0));
    await place.sim.sleep(10);
    assert.match(await add("north-1", "other:1"), /conflict: stamp north-1 is id-1; the one at other:1 is id-9: give it another name/);

    state.stampId = "id-2";
    await place.sim.sleep(15_000);
    const [seen] = unwrap(await location.listStamps({}, call)).stamps;
    assert.equal(seen?.answers, false);
    assert.match(seen?.trouble ?? "", /stamp north-1 is id-1, and its address is that of stamp id-2: nothing is asked of it/);
    await place.sim.sleep(60_000);
    assert.match(
      said(await location.createAccount({ account: "acme", location: "north" }, call)),
      /noPlacement: .*its last report is \d+ s old/,
    );
    assert.deepEqual(place.whoHas("acme"), []);
  });
});

test("location service: an account whose stamp is silent is created when the stamp answers, over a loss of power", async () => {
  const place = new Place(3);
  await place.sim.run(async () => {
    await place.leads();
    await place.add("north-1", "north", stampState("id-1", 100));
    place.sim.crash("north-1:1", { unsynced: "lost", silent: false, stayDown: true });
    assert.match(
      said(await place.client().createAccount({ account: "acme", location: "north" }, call)),
      /notReady: account acme is recorded at stamp north-1, and is created when that answers: stamp north-1: /,
    );
    assert.match(
      said(await place.client().createAccount({ account: "acme", location: "north" }, call)),
      /acme is at stamp north-1 already, or will be/,
    );
    const store = place.sim.world("tester").transport.client("lock:1", MetadataStore);
    const recorded = unwrap(await store.listKeys({ prefix: "location/accounts/" }, call)).entries.map(({ value }) =>
      new TextDecoder().decode(value),
    );
    assert.match(recorded.join(), /"name":"acme"/);
    assert.doesNotMatch(recorded.join(), /key/i, "the stamp makes the keys, and no record has them");
    for (const name of ["location-1:1", "lock:1"]) place.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
    for (const name of ["lock:1", "location-1:1", "north-1:1"]) place.sim.restart(name);
    await place.leads();
    await place.sim.until(() => place.whoHas("acme").length === 1, 60_000, "the account is created");
    await place.sim.sleep(100);
    assert.equal(unwrap(await place.client().getAccount({ account: "acme" }, call)).state, "single");
    assert.equal(place.stamps.get("north-1:1")?.accounts.get("acme")?.length, 2);
  });
});

test("location service: under crashes of every process no account is at two stamps, and none that was answered is lost", async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const place = new Place(100 + seed);
    await place.sim.run(async () => {
      const random = new Prng(seed);
      await place.leads();
      await place.add("north-1", "north", stampState("id-1", 100));
      await place.add("north-2", "north", stampState("id-2", 150));
      const answered = new Map<string, { readonly stamp: string; readonly keys: readonly string[] }>();
      const names = Array.from({ length: 12 }, (_, at) => `account${at}`);
      const clients = names.map(async (account, at) => {
        await place.sim.sleep(at * 400 + random.below(300));
        for (let attempt = 0; attempt < 30; attempt++) {
          const made = await place.client().createAccount({ account, location: "north" }, { timeoutMs: 3_000 });
          if (made.ok) answered.set(account, { stamp: made.value.account?.stamp ?? "", keys: made.value.keys });
          if (made.ok || made.failure.code === "alreadyExists") return;
          await place.sim.sleep(500);
        }
      });
      const restarts: Promise<void>[] = [];
      const processes = ["location-1:1", "lock:1", "north-1:1", "north-2:1"];
      for (let crash = 0; crash < 10; crash++) {
        await place.sim.sleep(200 + random.below(900));
        const name = random.pick(processes);
        for (const stamp of place.stamps.values()) stamp.usedBytes = random.below(700);
        if (!place.sim.isUp(name)) continue;
        place.sim.crash(name, { unsynced: "lost", silent: random.chance(0.5), stayDown: true });
        restarts.push(place.sim.sleep(50 + random.below(1_500)).then(() => place.sim.restart(name)));
      }
      await Promise.all([...clients, ...restarts]);
      await place.leads();
      await place.sim.sleep(45_000);
      const { accounts } = unwrap(await place.client().listAccounts({}, call));
      for (const { name, stamp, state } of accounts) {
        assert.equal(state, "single", `seed ${seed}: ${name}`);
        assert.deepEqual(place.whoHas(name), [`${stamp}:1`], `seed ${seed}: ${name}`);
      }
      for (const [name, { stamp, keys }] of answered) {
        assert.equal(accounts.find((each) => each.name === name)?.stamp, stamp, `seed ${seed}: ${name}`);
        assert.deepEqual(place.stamps.get(`${stamp}:1`)?.accounts.get(name), keys, `seed ${seed}: ${name}`);
      }
      assert.deepEqual(
        names.filter((name) => place.whoHas(name).length > 1),
        [],
      );
      assert.ok(accounts.length >= 8, `seed ${seed}: ${accounts.length} accounts`);
    });
  }
});

test("location service: a standby names the leader, takes over, and a leader that was paused writes nothing more", async () => {
  const place = new Place(4, ["location-1", "location-2"]);
  await place.sim.run(async () => {
    const leader = (): string | undefined =>
      ["location-1", "location-2"].find((name) => place.sim.role(`${name}:1`)?.status.state === "leader");
    await place.sim.until(() => leader() !== undefined, 30_000, "one leads");
    const first = leader() as string;
    const second = first === "location-1" ? "location-2" : "location-1";
    await place.sim.until(() => place.sim.role(`${second}:1`)?.status.state === "standby", 30_000, "the other stands by");
    place.addProcess("north-1:1", stampState("id-1", 100));
    await place.sim.sleep(10);
    const added = await place.client(second).addStamp({ name: "north-1", location: "north", lockService: "north-1:1" }, call);
    assert.match(said(added), new RegExp(`notLeader: .*${first}`));
    unwrap(await place.client(first).addStamp({ name: "north-1", location: "north", lockService: "north-1:1" }, call));
    place.sim.pause(`${first}:1`);
    await place.leads(second);
    unwrap(await place.client(second).createAccount({ account: "acme", location: "north" }, call));
    const late = place.client(first).createAccount({ account: "late", location: "north" }, call);
    place.sim.resume(`${first}:1`);
    assert.match(said(await late), /notLeader/);
    await place.sim.sleep(15_000);
    assert.deepEqual(place.whoHas("late"), []);
    assert.equal(unwrap(await place.client(second).getAccount({ account: "acme" }, call)).stamp, "north-1");
  });
});

test("location service: it announces its level to every stamp, and asks nothing of a stamp whose level is above its own", async () => {
  const place = new Place(23);
  await place.sim.run(async () => {
    await place.leads();
    const [north, south] = [stampState("id-1", 100), stampState("id-2", 100)];
    await place.add("north-1", "north", north);
    await place.add("south-1", "south", south);
    const location = place.client();
    await place.sim.sleep(25_000);
    for (const { announced } of [north, south])
      assert.deepEqual(
        [...announced],
        [0, 1].map((uses) => `location-service location-1 knows ${featureLevel}, uses ${uses}`),
      );
    north.level = featureLevel + 1;
    await place.sim.sleep(25_000);
    const why = unwrap(await location.listStamps({}, call)).stamps.map(({ answers, trouble }) => `${answers} ${trouble}`);
    assert.match(
      why[0] ?? "",
      new RegExp(`^false stamp north-1 has feature level ${featureLevel + 1}, .* knows ${featureLevel}: upgrade it`),
    );
    assert.equal(why[1], "true ");
    assert.match(said(await location.createAccount({ account: "acme", location: "north" }, call)), /stamp north-1 has feature level/);
    assert.deepEqual(place.whoHas("acme"), []);
    unwrap(await location.createAccount({ account: "zeta", location: "south" }, call)).account;
  });
});
