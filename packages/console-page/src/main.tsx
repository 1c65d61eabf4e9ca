/** Where the page begins. */
import { render } from "preact";
import { App } from "./app.tsx";
import { dataSource } from "./data/data-source.ts";
import { begin, source } from "./source.ts";
import { readRoute } from "./store.ts";
import { beginTheme } from "./theme.ts";
import "./main.css";

const holder = document.getElementById("page");
if (holder !== null) {
  beginTheme();
  const beginning = begin();
  readRoute(location.hash);
  addEventListener("hashchange", () => {
    readRoute(location.hash);
    if (location.hash.startsWith("#sign-in=")) location.reload();
  });
  render(<App source={source} data={dataSource} />, holder);
  await beginning;
}
