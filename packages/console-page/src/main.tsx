/** Where the page begins. */
import { render } from "preact";
import { App } from "./app.tsx";
import { begin, source } from "./source.ts";
import { readRoute } from "./store.ts";
import "./main.css";

const holder = document.getElementById("page");
if (holder !== null) {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "system";
  const beginning = begin();
  readRoute(location.hash);
  addEventListener("hashchange", () => {
    readRoute(location.hash);
    if (location.hash.startsWith("#sign-in=")) location.reload();
  });
  render(<App source={source} />, holder);
  await beginning;
}
