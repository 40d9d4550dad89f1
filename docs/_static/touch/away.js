/* Taking parts away: the switches. compared.js shows what that does. */

const Away = (() => {
  "use strict";

  const { element, place, fill, button } = Elements;
  const { state } = State;

  // ---- Actions ----

  function flip(part, is_gone) {
    if (is_gone) State.take_away(part);
    else State.put_back(part);
    Page.draw_all();
    Beam.search_later();
  }

  function choose_head(option) {
    state.gone_head = option;
    flip("head", true);
  }

  function put_everything_back() {
    State.put_everything_back();
    Page.draw_all();
    Beam.search_later();

    // the button that was pressed is gone with its banner
    if (document.activeElement === document.body) place("steps").firstChild.focus({ preventScroll: true });
  }

  // a model that shows best what a part is for, with the first of its examples whose answer changes without it
  async function show_on(name, part) {
    if (!await Sentence.choose_model(name, { [part]: true })) return;
    const { examples } = State.about();
    Sentence.use(examples.find(State.changes) || examples[0]);

    // the button that was pressed may be gone
    place("cards").querySelector(`[data-key=${part}]`).focus({ preventScroll: true });
  }

  // ---- The switches ----

  function draw() {
    Compared.draw();
    fill(place("cards"), ...Object.keys(Parts.REMOVABLE).map(draw_card));
  }

  function draw_card(part) {
    const { label, look, chapter } = Parts.REMOVABLE[part];
    const is_gone = Boolean(state.without[part]);

    const attributes = { role: "switch", "aria-checked": String(is_gone), "aria-describedby": `touch-look-${part}` };
    const flip_switch = button(part, () => flip(part, !is_gone), attributes,
      element("span", { class: "touch-switch", "aria-hidden": "true" }),
      element("span", {}, "Take away ", element("strong", {}, label)));

    const number = `Chapter ${chapter.slice(0, 2)}`;
    const link = element("a", { href: `${chapter}.html`, "aria-label": `${number}, about ${label}` }, number);
    const only_one = part === "head" && State.config().n_heads === 1 ? " Here it is the only one." : "";

    return element("div", { class: "touch-card" },
      flip_switch,
      part === "head" ? head_choice() : null,
      element("p", { id: `touch-look-${part}` }, look, only_one, " ", link),
      ...offers(part, is_gone));
  }

  // what to do next, for two of them
  function offers(part, is_gone) {
    const found = [];
    if (part === "positions") {
      if (is_gone) found.push(button("shuffle", Sentence.shuffle, { class: "touch-inline" }, "Shuffle the words"));
      found.push(...offer("numbers-en-zh", part, "Numbers in Chinese show it best: 342 becomes 243. ", "Try 342"));
    }
    if (part === "layer_norm") {
      found.push(...offer("copier", part, "The Copier shows it best: it was only 91 % sure. ", "Try the Copier"));
    }
    return found.map(child => element("p", {}, child));
  }

  // unless the reader is there, or this site doesn't have that model
  function offer(name, part, why, label) {
    if (state.name === name || !AnnotatedTransformer.names.includes(name)) return [];
    const show = button(`try ${name}`, () => show_on(name, part), { class: "touch-inline" }, label);
    return [element("span", {}, why, show)];
  }

  function head_choice() {
    const { n_layers, n_heads } = State.config();
    const options = [];
    for (const part of Object.keys(Parts.ATTENTION)) {
      for (let layer = 0; layer < n_layers; layer++) {
        for (let head = 0; head < n_heads; head++) options.push({ part, layer, head });
      }
    }

    const chosen = Parts.name_of_head(state.gone_head);
    const names = options.map(Parts.name_of_head);
    const onchange = event => choose_head(options[event.target.selectedIndex]);
    return element("label", {}, "Which one ",
      element("select", { "data-key": "which head", onchange },
        ...names.map(name => element("option", { selected: name === chosen }, name))));
  }

  return { draw, put_everything_back };
})();
