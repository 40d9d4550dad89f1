// A link to a definition unfolds it: browsers do that for what lies inside a `details`, not for the `details` itself.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const block = target && target.closest("details");
  if (block) { block.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", unfold);
unfold();
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
