/** Colours of the page: as the system has them, or as the reader chose. `data-theme` of the page is "light" or "dark", which the styles follow. */
export const themes = ["system", "light", "dark"] as const;

const dark = matchMedia("(prefers-color-scheme: dark)");
const show = (): void => {
  const theme = chosenTheme();
  const system = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "light" || theme === "dark" ? theme : system;
};

export const chosenTheme = (): string => localStorage.getItem("theme") ?? "system";

export function chooseTheme(theme: string): void {
  localStorage.setItem("theme", theme);
  show();
}

/** Shows the theme, and follows the system's changes. */
export function beginTheme(): void {
  show();
  dark.addEventListener("change", show);
}
