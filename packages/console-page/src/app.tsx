/** The frame of the page: navigation, state of the connection, and the view that the address names. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DataSource } from "./data/data-model.ts";
import { spanText } from "./format.ts";
import type { Snapshot, Source } from "./model.ts";
import { connection, lostAtMs, route, signInProblem, snapshot, to } from "./store.ts";
import { chooseTheme, chosenTheme, themes } from "./theme.ts";
import { Badge, CommandLine, Empty, Time, toneOf } from "./ui.tsx";
import { Accounts } from "./views/accounts.tsx";
import { Data } from "./views/data.tsx";
import { DrillsView } from "./views/drills/drills.tsx";
import { Events } from "./views/events.tsx";
import { GeoView } from "./views/geo/geo.tsx";
import { Nodes } from "./views/nodes/nodes.tsx";
import { Overview } from "./views/overview.tsx";
import { Processes } from "./views/processes.tsx";
import { Ranges } from "./views/ranges/ranges.tsx";
import { Extents, Streams } from "./views/streams/streams.tsx";
import { Topology } from "./views/topology/topology.tsx";

const views = [
  { path: "", title: "Overview" },
  { path: "topology", title: "Topology" },
  { path: "processes", title: "Processes" },
  { path: "nodes", title: "Nodes" },
  { path: "streams", title: "Streams" },
  { path: "extents", title: "Extents" },
  { path: "ranges", title: "Ranges" },
  { path: "data", title: "Data" },
  { path: "accounts", title: "Accounts" },
  { path: "drills", title: "Drills" },
  { path: "geo", title: "Geo" },
  { path: "events", title: "Events" },
];

interface Sources {
  readonly source: Source;
  readonly data: DataSource;
}

export function App({ source, data }: Sources): JSX.Element {
  if (connection.value === "signed-out") return <SignIn />;
  const [path = ""] = route.value;
  const view = views.find((each) => each.path === path);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        To the content
      </button>
      <Side path={path} source={source} />
      <main id="content" tabIndex={-1}>
        <Head title={view?.title ?? "Not found"} />
        <Lost />
        {view === undefined ? (
          <Empty title="There is no such page">
            <a href={to()}>To the overview</a>
          </Empty>
        ) : (
          <View path={path} source={source} data={data} />
        )}
      </main>
    </div>
  );
}

function View({ path, source, data }: Sources & { readonly path: string }): JSX.Element {
  const now = snapshot.value;
  if (now === undefined) return <Empty title="Asking the stamp…">The first answer takes a second or two.</Empty>;
  if (now.state === "absent") return <Absent now={now} />;
  switch (path) {
    case "topology":
      return <Topology now={now} />;
    case "processes":
      return <Processes now={now} />;
    case "nodes":
      return <Nodes now={now} source={source} data={data} />;
    case "streams":
      return <Streams source={source} />;
    case "extents":
      return <Extents source={source} />;
    case "ranges":
      return <Ranges now={now} source={source} data={data} />;
    case "data":
      return <Data source={data} />;
    case "accounts":
      return <Accounts source={source} data={data} />;
    case "drills":
      return <DrillsView source={source} data={data} />;
    case "geo":
      return <GeoView source={source} data={data} />;
    case "events":
      return <Events />;
    default:
      return <Overview now={now} />;
  }
}

const Absent = ({ now }: { readonly now: Snapshot }): JSX.Element => (
  <>
    <section class="health bad" role="alert">
      <h2>No stamp answers</h2>
      <p>{now.sentence}</p>
    </section>
    <Empty title="The page goes on by itself when the stamp is there">
      <CommandLine text="./stamp up -d" />
    </Empty>
  </>
);

function Side({ path, source }: { readonly path: string; readonly source: Source }): JSX.Element {
  return (
    <header class="side">
      <a class="brand" href={to()}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M8 10h16M8 16h16M8 22h10" />
        </svg>
        Stamp
      </a>
      <nav aria-label="Views">
        {views.map((view) => (
          <a key={view.path} href={to(...(view.path === "" ? [] : [view.path]))} aria-current={view.path === path ? "page" : undefined}>
            {view.title}
          </a>
        ))}
      </nav>
      <div class="foot">
        <Theme />
        <button type="button" class="quiet" onClick={() => void source.signOut()}>
          Sign out
        </button>
      </div>
    </header>
  );
}

function Head({ title }: { readonly title: string }): JSX.Element {
  const now = snapshot.value;
  useEffect(() => {
    document.title = `${title} · Stamp console`;
  }, [title]);
  return (
    <header class="top">
      <h1>{title}</h1>
      {now === undefined ? null : (
        <div>
          {now.state === "absent" ? null : <Badge tone={toneOf[now.state]}>{now.state}</Badge>}
          <small>
            as of <Time atMs={now.atMs} />
          </small>
        </div>
      )}
    </header>
  );
}

function Lost(): JSX.Element | null {
  const [nowMs, setNowMs] = useState(Date.now());
  const isLost = connection.value === "lost";
  useEffect(() => {
    if (!isLost) return;
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isLost]);
  if (!isLost) return null;
  return (
    <div class="notice bad" role="alert">
      The console has not answered for {spanText(nowMs - lostAtMs.value)}: what is shown is older. The page tries again every second. Is
      ./stamp console still running?
    </div>
  );
}

function Theme(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme());
  // Stores the choice at once: an effect runs after the next picture, and whoever reloads before it would lose the choice.
  const choose = (chosen: string): void => {
    chooseTheme(chosen);
    setTheme(chosen);
  };
  return (
    <label>
      Colours{" "}
      <select value={theme} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {themes.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

const SignIn = (): JSX.Element => (
  <main class="sign-in" id="content">
    <h1>Stamp console</h1>
    {signInProblem.value === "" ? (
      <p>This browser has no session. A session begins with a link that works once:</p>
    ) : (
      <p class="notice bad" role="alert">
        {signInProblem.value}
      </p>
    )}
    <p>In the terminal where the console runs, press Enter, and open the link that it prints. If none runs:</p>
    <CommandLine text="./stamp console" />
  </main>
);
