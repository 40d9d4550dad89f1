// A link to a definition, or to something folded, unfolds it: browsers do that for what lies inside a `details`, not for itself.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  let folded = false;
  for (let e = target; e; e = e.parentElement) if (e.matches("details:not([open])")) e.open = folded = true;
  if (folded) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));

// A cell of a table with a word that is too long for a phone; there it may break.
document.querySelectorAll("article table.table td").forEach(cell => {
  if (/[^\s]{20,}/.test(cell.textContent) && !cell.querySelector("code")) cell.classList.add("long-word");
});

// On a phone, rows of words lie below one another, and each cell says what its column is.
document.querySelectorAll("article table.words").forEach(table => {
  // the formulas of a column, and meanings, speak for themselves
  const heads = [...table.querySelectorAll("thead th, thead td")].map(head => head.querySelector(".math") ? "" : head.textContent.trim());
  const rows = [...table.querySelectorAll("tbody tr")];
  // parts of a book and their chapters need no labels
  const isContents = !heads[0] && rows.some(row => !row.cells[0].textContent.trim());
  table.classList.toggle("contents", isContents);
  rows.forEach(row => [...row.cells].forEach((cell, i) => {
    if (["", "–"].includes(cell.textContent.trim())) cell.classList.add("nothing");
    if (i && !isContents && heads[i] && heads[i] !== "meaning") cell.dataset.label = heads[i];
  }));
});

// What is wider than its place can be reached and scrolled by keyboard, says what it is, and fades where it goes on.
const WIDE = { "pre": "Code", "mjx-container": "Formula", "div.math": "Formula", ".pst-scrollable-table-container": "Table", "div.output": "Output",
  "div.drawing": "Drawing" };
function nameIfWide(element) {
  const wide = element.scrollWidth > element.clientWidth && /auto|scroll/.test(getComputedStyle(element).overflowX);
  if (wide && !element.dataset.wide) {
    const [, name] = Object.entries(WIDE).find(([selector]) => element.matches(selector));
    for (const [key, value] of Object.entries({ tabindex: 0, role: "group", "aria-label": name })) element.setAttribute(key, value);
    element.dataset.wide = name;
    element.addEventListener("scroll", () => markEnd(element), { passive: true });
  } else if (!wide && element.dataset.wide) {
    for (const key of ["tabindex", "role", "aria-label", "data-wide"]) element.removeAttribute(key);
  }
}
function markEnd(element) { element.toggleAttribute("data-end", element.scrollLeft + element.clientWidth >= element.scrollWidth - 2); }
const sizes = new ResizeObserver(changes => changes.forEach(change => nameIfWide(change.target)));
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  document.querySelectorAll("article table.table").forEach(table => {
    table.classList.toggle("tight", table.offsetWidth > table.parentElement.clientWidth);
  });
  document.querySelectorAll(Object.keys(WIDE).map(selector => `article ${selector}`)).forEach(e => sizes.observe(e));
});

// The theme's own: a button whose name is not what is written on it, and a sidebar that is no landmark.
document.querySelectorAll(".search-button-field[aria-label], summary[aria-label]").forEach(e => e.removeAttribute("aria-label"));
const sidebar = document.querySelector("#pst-primary-sidebar");
if (sidebar) { sidebar.setAttribute("role", "region"); sidebar.setAttribute("aria-label", "The book"); }
// A head without words is no head to those who hear the table.
document.querySelectorAll("article th").forEach(th => {
  if (th.textContent.trim()) return;
  const cell = document.createElement("td");
  cell.className = th.className;
  th.replaceWith(cell);
});
