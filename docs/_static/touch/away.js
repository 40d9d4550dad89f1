/* Taking parts away: the switches, and what each did. compared.js shows the two answers. */

const Away = (() => {
  "use strict";

  const { element, em, place, fill, button } = Elements;
  const { state } = State;

  // ---- Actions ----

  function flip(part, is_gone) {
    if (is_gone) State.take_away(part);
    else State.put_back(part);
    Page.draw_all();
    Beam.search_later();
  }

  // it only picks, unless a head is missing: then it's another one
  function choose_head(head) {
    state.gone_head = head;
    if (state.without.head) flip("head", true);
  }

  function take_head(head) {
    state.gone_head = head;
    flip("head", true);
    focus_on("head");
  }

  function put_everything_back() {
    State.put_everything_back();
    Page.draw_all();
    Beam.search_later();

    // the button that was pressed is gone with its banner
    if (document.activeElement === document.body) place("steps").firstChild.focus({ preventScroll: true });
  }

  function try_example(text, part) {
    Sentence.use(text);
    focus_on(part);
  }

  // a model that shows best what a part is for, with the first of its examples whose answer changes without it
  async function show_on(name, part) {
    if (!await Sentence.choose_model(name, { [part]: true })) return;
    const { examples } = State.about();
    try_example(examples.find(State.changes) || examples[0], part);
  }

  // the button that was pressed may be gone
  function focus_on(part) {
    place("cards").querySelector(`[data-key=${part}]`).focus({ preventScroll: true });
  }

  // ---- The switches ----

  function draw() {
    const answers = State.both(state.text, state.forced);
    Compared.draw(answers);
    fill(place("cards"), ...Object.keys(Parts.REMOVABLE).map(part => draw_card(part, answers)));
  }

  function draw_card(part, answers) {
    const { label, look, chapter } = Parts.REMOVABLE[part];
    const is_gone = Boolean(state.without[part]);

    const attributes = { role: "switch", "aria-checked": String(is_gone), "aria-describedby": `touch-look-${part}` };
    const flip_switch = button(part, () => flip(part, !is_gone), attributes,
      element("span", { class: "touch-switch", "aria-hidden": "true" }),
      element("span", {}, "Take away ", element("strong", {}, label)));

    const number = `Chapter ${chapter.replace(/^(\d+)_\w+\/(\d+)_.*/, "$1.$2")}`;
    const link = element("a", { href: `${chapter}.html`, "aria-label": `${number}, about ${label}` }, number);
    const only_one = part === "head" && State.config().n_heads === 1 ? " Here it is the only one." : "";

    return element("div", { class: "touch-card" },
      flip_switch,
      part === "head" ? head_choice() : null,
      element("p", { id: `touch-look-${part}` }, look, only_one, " ", link),
      part === "head" ? make_needed_note(is_gone) : null,
      is_gone ? element("p", { class: "touch-outcome" }, ...outcome(part, answers)) : null,
      offer(part));
  }

  // what became of the answer; where it's the same, an example where it isn't
  function outcome(part, [whole, broken]) {
    const together = State.missing().length > 1 ? "With all that is taken away: " : "";
    if (!State.same_ids(whole, broken)) {
      const goes_on = State.has_ended(broken.ids) ? "" : " … and so on";
      const now = broken.text
        ? ["it now writes ", ...Answer.in_both_languages(broken.ids), `${goes_on}, not `]
        : ["the answer is now empty, not "];
      return [together, element("strong", {}, "The answer changes: "), ...now, em(whole.text, State.about().language), "."];
    }

    const same = [together, element("strong", {}, "The same answer"), " as with everything. "];
    const other = State.example_that_changes();
    if (!other) return same;
    return [...same, button("try another", () => try_example(other, part), { class: "touch-inline" }, `Try ${other}`)];
  }

  // a model that shows it better, unless the reader is there
  function offer(part) {
    const { name, why, label } = Parts.REMOVABLE[part].shows_on || {};
    if (!name || state.name === name) return null;
    return element("p", {}, why, " ", button(`try ${part}`, () => show_on(name, part), { class: "touch-inline" }, label));
  }

  // ---- The heads ----

  // which of them matter is computed when somebody is about to choose one
  function head_choice() {
    const heads = Parts.heads(State.config());
    const chosen = Parts.name_of_head(state.gone_head);
    const options = heads.map(head => {
      const name = Parts.name_of_head(head);
      return element("option", { selected: name === chosen }, name);
    });

    const select = element("select", {
      "data-key": "which head",
      onchange: event => choose_head(heads[event.target.selectedIndex]),
      onfocus: () => {
        State.needed_heads();
        mark(options);
        fill(place("needed"), ...about_needed());
      },
    }, ...options);
    if (State.is_needed_known() || state.without.head) mark(options);
    return element("label", {}, "Which one ", select);
  }

  // in the list, those that the answer needs
  function mark(options) {
    const needed = State.needed_heads().map(Parts.name_of_head);
    for (const option of options) {
      const name = option.textContent.replace("★ ", "");
      option.textContent = needed.includes(name) ? `★ ${name}` : name;
    }
  }

  function make_needed_note(is_gone) {
    const note = is_gone || State.is_needed_known() ? about_needed() : [];
    return element("p", { id: "touch-needed" }, ...note);
  }

  // how many they are, and a button for each that isn't the chosen one
  function about_needed() {
    const needed = State.needed_heads();
    const n_heads = Parts.heads(State.config()).length;
    const change = needed.length > 1 ? "change" : "changes";
    const chosen = Parts.name_of_head(state.gone_head);
    const others = needed.filter(head => Parts.name_of_head(head) !== chosen);
    return [
      `${needed.length || "None"} of the ${n_heads} heads ${change} this answer on its own${needed.length ? ": ★ in the list. " : "."}`,
      ...others.map((head, i) =>
        button(`needed ${i}`, () => take_head(head), { class: "touch-inline" }, `Take away ${Parts.name_of_head(head)}`)),
    ];
  }

  return { draw, put_everything_back };
})();
