/* Taking parts away: the switches, and the answers with everything and without those parts. */

const Away = (() => {
  "use strict";

  const { element, em, place, fill, button, percent, listed } = Elements;
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

  async function try_copier() {
    await Sentence.choose_model("copier", { layer_norm: true });
    const { examples } = State.about();
    Sentence.use(examples.find(State.changes) || examples[0]);
    place("cards").querySelector("[data-key=layer_norm]").focus({ preventScroll: true });
  }

  // ---- The two answers ----

  function draw() {
    const missing = State.missing();
    const [whole, broken] = State.both(state.text, state.forced);
    const [kept_whole, kept_broken] = common(whole.ids, broken.ids);

    fill(place("compare"),
      pane("whole", "With everything", answer_of(whole, kept_whole)),
      missing.length
        ? pane("broken", `Without ${listed(missing)}`, answer_of(broken, kept_broken, look_at_its_attention()))
        : pane("broken", "Without …", element("p", {}, "Flip one of the switches below.")));
    place("verdict").replaceChildren(...verdict(whole, broken));
    fill(place("cards"), ...Object.keys(Parts.REMOVABLE).map(draw_card));
  }

  function pane(kind, title, content) {
    return element("div", { class: `touch-pane ${kind}` }, element("h3", {}, title), content);
  }

  const look_at_its_attention = () => element("a", { href: "#touch-picture" }, "Look at its attention");

  // each token over its probability; `kept` has the places of those that both answers have
  function answer_of({ ids, steps }, kept, link = null) {
    const tokens = ids.map((id, t) => element("span", { class: kept.has(t) ? "" : "changed" },
      element("span", {}, State.word(id)),
      element("small", {}, percent(steps[t].probabilities[id]))));

    const value = Answer.value_of(ids);
    return element("p", { class: "touch-tokens", lang: State.about().language },
      ...tokens,
      State.has_ended(ids) ? null : element("span", {}, "…"),
      value ? element("span", { lang: "en" }, value) : null,
      link);
  }

  // the places of the longest common subsequence, in each of two lists
  function common(one, other) {
    // how long it is from the places i and j on
    const longest = Array.from({ length: one.length + 1 }, () => Array(other.length + 1).fill(0));
    for (let i = one.length - 1; i >= 0; i--) {
      for (let j = other.length - 1; j >= 0; j--) {
        const with_neither = Math.max(longest[i + 1][j], longest[i][j + 1]);
        longest[i][j] = one[i] === other[j] ? longest[i + 1][j + 1] + 1 : with_neither;
      }
    }

    const in_one = new Set();
    const in_other = new Set();
    let i = 0;
    let j = 0;
    while (i < one.length && j < other.length) {
      if (one[i] === other[j]) {
        in_one.add(i++);
        in_other.add(j++);
      } else if (longest[i + 1][j] >= longest[i][j + 1]) {
        i++;
      } else {
        j++;
      }
    }
    return [in_one, in_other];
  }

  // ---- What the difference is, in a sentence ----

  function verdict(whole, broken) {
    if (!State.missing().length) return ["The number below a word is its probability."];

    const said = State.same_ids(whole, broken) ? said_of_same(whole, broken) : said_of_changed(broken);
    const forced = state.forced.length
      ? [" Both begin with what you picked: ", em(State.decoded(state.forced)), "."] : [];
    return [...said, ...forced, " ", button("put back", put_everything_back, {}, "Put everything back")];
  }

  function said_of_changed(broken) {
    if (!broken.text) return ["The answer is now empty: the model ends it at once."];

    const heard = element("span", { class: "touch-said" }, `It now writes: ${broken.text}. `);
    const and_goes_on = State.has_ended(broken.ids) ? "" : ", and doesn't end";
    return [heard, `The answer changes${and_goes_on}. What differs is underlined.`];
  }

  // the probabilities may have changed; and an example where the answer does
  function said_of_same(whole, broken) {
    const said = [];
    const { t, before, now } = largest_change(whole, broken);
    if (t === null) {
      said.push("No visible change here: the answer stays the same, and so do its probabilities. ");
    } else {
      said.push("The answer stays the same. The probability of ", em(State.word(broken.ids[t])),
        ` changes most, from ${percent(before)} to ${percent(now)}. `);
    }

    const other = State.about().examples.find(text => text !== state.text && State.changes(text));
    if (other) said.push("Try ", button("try another", () => Sentence.use(other), {}, other), ".");
    return said;
  }

  // the place of the word whose probability changes most, in two answers of the same words; null if none visibly does
  function largest_change(whole, broken) {
    const probability = ({ ids, steps }, t) => steps[t].probabilities[ids[t]];
    const changes = broken.ids.map((_, t) => ({ t, before: probability(whole, t), now: probability(broken, t) }));
    if (changes.every(({ before, now }) => percent(before) === percent(now))) return { t: null };

    const size = ({ before, now }) => Math.abs(now - before);
    return changes.sort((a, b) => size(b) - size(a))[0];
  }

  // ---- The switches ----

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
    if (part === "positions" && is_gone && State.is_of_words()) {
      return [element("p", {}, button("shuffle", Sentence.shuffle, { class: "touch-inline" }, "Shuffle the words"))];
    }
    if (part === "layer_norm" && state.name !== "copier" && AnnotatedTransformer.names.includes("copier")) {
      return [element("p", {}, "You see it best on a model that wasn't sure before. ",
        button("try copier", try_copier, { class: "touch-inline" }, "Try the Copier"))];
    }
    return [];
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
