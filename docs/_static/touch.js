/* The page "Touch a Transformer": nbs/touch.md has its text and its places, transformer.js the model. */
(() => {
  "use strict";

  const LONGEST_SOURCE = 24; // tokens of a sentence that the drawing has room for
  const N_PADS = 8;          // put behind the sentence to show what the padding mask is for
  const N_BARS = 6;
  const ROW = 36;            // pixels of a word in the drawing, as in touch.css

  // ---- What is said about the models ----

  const ABOUT = {
    "cat": {
      label: "English → German",
      about: "71 English and German words, and one kind of sentence; two layers with four heads each.",
      examples: ["I have seen the cat", "she has not fed a horse", "they have lost the dog today", "you have found a cow again",
        "he has bought the fish", "we have called the goat"],
    },
    "numbers-en-de": {
      label: "Numbers → German",
      about: "English numbers below a million, in words and in lower case. Its tokens are pieces of words; ▁ is a space.",
      examples: ["three hundred and forty-two", "twelve", "nineteen", "seven hundred and forty-eight thousand and six",
        "ninety-nine thousand nine hundred and ninety-nine"],
    },
    "numbers-en-zh": {
      label: "Numbers → Chinese",
      about: "English numbers in words and in lower case. Its tokens are pieces of words; ▁ is a space.",
      examples: ["three hundred and forty-two", "twelve", "nineteen", "seven hundred and forty-eight thousand and six"],
    },
    "copier": {
      label: "Copier",
      about: "It repeats 5 to 12 numbers from 3 to 12. One layer, one head: as small as a Transformer gets.",
      examples: ["7 3 9 9 4 12", "3 3 3 3 3 3 3 3", "5 6 7 8 9 10 11 12", "12 4 4 8 10 3 6"],
    },
  };

  const PARTS = {
    "decoder cross": { label: "Cross-attention", says: "Each word of the answer looks at the words of the sentence. EOS is its end." },
    "encoder self": { label: "Encoder", says: "Each word of the sentence looks at all its words, itself included." },
    "decoder self": { label: "Decoder", says: "Each word of the answer looks at what has been written before it. BOS is the beginning." },
  };

  // what can be taken away, in the order of the chapters, and what to look for
  const AWAY = {
    scale: { label: "the division by √dₖ", chapter: "02_attention",
      look: "Scores get larger, so softmax gets sharper. Look at the heads above: most words now read a single word, and no mixture." },
    padding_mask: { label: "the padding mask", chapter: "03_masks",
      look: `We put ${N_PADS} PADs behind the sentence. With the mask nobody sees them. Without it, look at the lines that go to PAD.` },
    causal_mask: { label: "the causal mask", chapter: "03_masks",
      look: "In training, it hides the words to be guessed. Here, words already written now see the ones after them. "
        + "Look for an answer that stops early. A model of one layer doesn't notice." },
    head: { label: "one head", chapter: "04_multi_head_attention",
      look: "Some heads have a job of their own. Take away one after the other, and look for the one word that changes. "
        + "Mostly the others make up for it." },
    residuals: { label: "the residual connections", chapter: "05_layers",
      look: "Each layer now passes on only its own result, and the word itself is lost. Look for an answer that is empty, or repeats one word." },
    layer_norm: { label: "layer norm", chapter: "05_layers",
      look: "The vectors grow from layer to layer. Look at the probabilities: the model becomes very sure, also where it's wrong." },
    positions: { label: "positions", chapter: "07_positions",
      look: "The sentence is now a bag of words. Look for words in the wrong order, words that come twice, and answers that never end." },
    cross_attention: { label: "all cross-attention", chapter: "08_transformer",
      look: "The decoder no longer sees your sentence. Look for the same answer, whatever you type: fluent, and made up." },
  };

  // ---- State ----

  const state = {
    name: null, model: null, text: "",
    begin: [], complete: true,     // what was written by hand or step by step, and whether the model goes on alone
    step: 0, word: 0, key: null,   // the word of the answer, and of the sentence, that is looked at; a key that is pointed at
    part: "decoder cross", layer: 0, head: null,  // null: the mean of all heads
    without: {}, gone_head: null,
    beam_size: 4, answer: 0,
  };
  let run = null;       // what greedy_decode returned
  let search = null;    // what beam_search returned

  // ---- Small helpers ----

  // h("button", { class: "x", onclick: f }, "text", another) makes an element; null children are left out
  function h(tag, attributes = {}, ...children) {
    const svg = ["svg", "path"].includes(tag);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.filter(child => child != null));
    return element;
  }

  // fill a place anew, and give the focus back to the control that had it
  function fill(place, ...children) {
    const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    place.replaceChildren(...children.filter(child => child != null));
    if (key) [...place.querySelectorAll("[data-key]")].find(e => e.dataset.key === key)?.focus({ preventScroll: true });
  }

  // its key gives it back the focus, and is its name in tests
  function button(key, onclick, attributes, ...children) {
    return h("button", { type: "button", "data-key": key, onclick, ...attributes }, ...children);
  }

  const pressed = is_pressed => ({ "aria-pressed": String(is_pressed) });
  const em = text => h("em", {}, text);

  function choices(label, options, chosen, choose) {
    return h("div", { class: "touch-choices", role: "group", "aria-label": label }, ...options.map(({ value, text, title }) =>
      button(`${label} ${value}`, () => choose(value), { ...pressed(value === chosen), "aria-label": title }, text)));
  }

  function percent(p) {
    if (p >= 0.1) return `${Math.round(100 * p)} %`;
    if (p >= 0.00001) return `${Number((100 * p).toPrecision(2))} %`;
    return "<0.001 %";
  }

  const words = ids => state.model.tokenizer.words(ids);
  const word = id => words([id])[0];
  const is_end = id => id === state.model.eos_id;
  const config = () => state.model.config;
  const name_of_head = ({ part, layer, head }) => `${PARTS[part].label}, layer ${layer + 1}, head ${head + 1}`;

  // the names of what is taken away
  function gone() {
    return Object.keys(AWAY).filter(part => state.without[part])
      .map(part => part === "head" ? `one head (${name_of_head(state.gone_head)})` : AWAY[part].label);
  }
  const listed = names => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

  // tokens of an answer, less than the model could write: without positions, some never end
  const max_length = src => Math.max(16, src.length + 4);

  // the sentence as the encoder reads it
  function source(text = state.text) {
    const src = state.model.source(text);
    return state.without.padding_mask ? [...src, ...Array(N_PADS).fill(state.model.pad_id)] : src;
  }

  // ---- Actions ----

  // everything that depends on the sentence, the words picked so far, and what was taken away
  function compute() {
    const { model, begin, complete, without } = state;
    const src = source();
    run = model.greedy_decode(src, { begin, max_length: complete ? max_length(src) : begin.length + 1 }, without);
  }

  function written() { return state.complete ? run.ids : state.begin; }

  function answer_anew(begin = [], complete = true) {
    Object.assign(state, { begin, complete, key: null });
    compute();
    const last = state.complete ? run.ids.filter(id => !is_end(id)).length - 1 : state.begin.length;
    state.step = Math.max(0, Math.min(last, run.ids.length - 1));
  }

  // of a sentence that the model can read; else say what is wrong, and keep the answer that is there
  function read(text) {
    let src;
    try {
      src = state.model.source(text);
    } catch (error) {
      if (!error.word) throw error;
      return say_fault(`“${error.word}” isn't a word this model knows. The list is below.`);
    }
    if (src.length < 2) return say_fault("Type a sentence first.");
    if (src.length > LONGEST_SOURCE) return say_fault(`That's ${src.length} tokens. This page draws ${LONGEST_SOURCE} at most.`);

    say_fault("");
    state.text = text;
    state.word = Math.max(0, src.length - 2);
    answer_anew();
    draw_all();
    search_later();
  }

  function say_fault(text) {
    places.fault.textContent = text;
    places.input.setAttribute("aria-invalid", String(Boolean(text)));
    if (text && places.known) places.known.open = true;
  }

  let wanted = null;  // the model that was chosen last: another one may still be loading
  async function choose_model(name) {
    wanted = name;
    const model = await AnnotatedTransformer.load(name);
    if (wanted !== name) return;

    Object.assign(state, { name, model, part: "decoder cross", layer: model.config.n_layers - 1, head: null });
    state.gone_head = { part: "decoder cross", layer: model.config.n_layers - 1, head: Math.min(2, model.config.n_heads - 1) };
    if (state.without.head) state.without.head = state.gone_head;
    draw_model();
    use(examples()[0]);
  }

  function use(example) {
    places.input.value = example;
    read(example);
  }

  function examples() { return ABOUT[state.name]?.examples || ["twelve"]; }

  function write_next() {
    if (state.complete) answer_anew([], false);
    else {
      const begin = [...state.begin, run.ids[state.begin.length]];
      answer_anew(begin, is_end(begin.at(-1)) || begin.length >= max_length(source()));
    }
    draw_explorer();
  }

  function write_rest() {
    answer_anew(state.begin, true);
    draw_explorer();
  }

  // another word than the model would write; then it goes on from there
  function pick(id) {
    const { step, complete } = state;
    answer_anew([...run.ids.slice(0, step), id], complete || is_end(id));
    if (state.complete) state.step = step;
    draw_explorer();
  }

  function take_away(part, on) {
    if (on) state.without[part] = part === "head" ? state.gone_head : true;
    else delete state.without[part];
    answer_anew();
    draw_explorer();
    draw_away();
  }

  // ---- The places on the page ----

  const places = {};

  function build() {
    const place = name => places[name] = h("div", { class: `touch-${name}` });

    places.input = h("input", { type: "text", id: "touch-text", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      maxlength: 200, "aria-describedby": "touch-fault" });
    places.fault = h("p", { id: "touch-fault", class: "touch-fault", role: "alert" });
    places.answer = h("p", { class: "touch-answer" });
    places.said = h("p", { class: "touch-said", "aria-live": "polite" });  // for those who hear the page
    places.caption = h("p", { class: "touch-caption", "aria-live": "polite" });
    places.verdict = h("p", { class: "touch-verdict", "aria-live": "polite" });

    document.getElementById("touch").append(
      place("models"), place("about"),
      h("form", { class: "touch-form", onsubmit: event => { event.preventDefault(); read(places.input.value); } },
        h("label", { for: "touch-text" }, "Your sentence"), places.input,
        h("button", { type: "submit", class: "touch-main" }, "Write the answer")),
      places.fault, place("examples"), place("known_list"),
      place("banner"), places.answer, places.said, place("steps"),
      h("div", { class: "touch-columns" },
        h("div", { class: "touch-look" }, place("parts"), place("drawing"), places.caption),
        h("div", { class: "touch-next" }, place("bars"))),
      place("heads"));

    document.getElementById("touch-away").append(
      h("div", { class: "touch-result" }, place("compare"), places.verdict), place("cards"));
    document.getElementById("touch-beam").append(place("beam_size"), place("answers"), place("tree"));
  }

  function draw_all() {
    draw_explorer();
    draw_away();
  }

  // ---- Choosing a model and a sentence ----

  function draw_model() {
    const names = Object.keys(ABOUT).filter(name => AnnotatedTransformer.names.includes(name));
    const others = AnnotatedTransformer.names.filter(name => !names.includes(name));
    const options = [...names, ...others].map(name => ({ value: name, text: ABOUT[name]?.label || name }));
    fill(places.models, choices("Model", options, state.name, name => choose_model(name).catch(error => say_fault(error.message))));
    fill(places.about, h("p", {}, ABOUT[state.name]?.about || ""));

    const chip = text => button(text, () => use(text), {}, text);
    fill(places.examples, h("span", { id: "touch-try" }, "Or try "),
      h("span", { class: "touch-chips", role: "group", "aria-labelledby": "touch-try" }, ...examples().map(chip)));

    places.known = null;
    const { labels } = state.model.tokenizer;
    if (labels) {
      const title = `The ${labels.length - 3} words it knows`;
      places.known = h("details", {}, h("summary", {}, title), h("p", {}, labels.slice(3).join(", ")));
    }
    fill(places.known_list, places.known);
  }

  // ---- The explorer: answer, next word, attention ----

  function draw_explorer() {
    const ids = written();
    const names = gone();
    fill(places.banner, names.length ? h("p", {}, "This is the model without ", h("strong", {}, listed(names)), ". ",
      button("restore", restore, {}, "Put everything back")) : null);

    draw_answer(ids);

    fill(places.steps,
      button("next", write_next, { class: "touch-main" },
        state.complete ? "Write it again, word by word" : `Write the next word: ${word(run.ids[state.begin.length])}`),
      state.complete ? null : button("rest", write_rest, {}, "Write the rest"));

    draw_attention();
    draw_bars();
  }

  // each token can be clicked, as in the drawing below
  function draw_answer(ids) {
    const text = state.model.tokenizer.decode(ids) || (ids.length ? "(nothing)" : "…");
    const goes_on = state.complete && !is_end(ids.at(-1)) ? " … and so on" : "";
    const tokens = ids.filter(id => !is_end(id));

    const token = (id, t) => button(`token ${t}`, () => look_at(t), pressed(t === state.step), word(id));
    fill(places.answer, h("span", { class: "touch-label" }, "Its answer: "),
      h("span", { lang: answer_language(), class: has_blanks() ? "blanks" : "" }, ...tokens.map(token), tokens.length ? "" : text, goes_on));
    const said = `Its answer: ${text}${goes_on}`;
    if (places.said.textContent !== said) places.said.textContent = said;
  }

  // a word of the answer: where the model looked to write it, and what it could have written
  function look_at(step) {
    Object.assign(state, { step, key: null, part: state.part === "encoder self" ? "decoder cross" : state.part });
    draw_explorer();
  }

  // between its tokens
  const has_blanks = () => Boolean(state.model.tokenizer.labels);

  function answer_language() { return { "cat": "de", "numbers-en-de": "de", "numbers-en-zh": "zh" }[state.name]; }

  function restore() {
    state.without = {};
    answer_anew();
    draw_all();
    if (document.activeElement === document.body) places.steps.firstChild.focus({ preventScroll: true });
  }

  function draw_bars() {
    const { step } = state;
    const { probabilities, best } = run.steps[step];
    const is_pending = !state.complete && step === state.begin.length;
    const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]).slice(0, N_BARS);
    const chosen = run.ids[step];
    if (!is_pending && !order.includes(chosen)) order[N_BARS - 1] = chosen;

    const before = words(run.ids.slice(0, step)).slice(-4).join(has_blanks() ? " " : "");
    const question = before ? ["What comes after ", em(before), "?"] : ["What comes first?"];
    const hint = is_pending ? "Click a word to write it." : "Click another word, and the model goes on from there.";

    const bar = (id, place) => {
      const p = probabilities[id];
      return h("li", {}, button(`bar ${place}`, () => pick(id), pressed(!is_pending && id === chosen),
        h("span", { class: "touch-bar-word" }, word(id)),
        " ", h("span", { class: "touch-bar" }, h("span", { style: `width: ${Math.max(0.5, 100 * p)}%` })),
        h("span", { class: "touch-bar-number" }, percent(p))));
    };
    const picked = chosen !== best && !is_pending;
    fill(places.bars, h("h3", {}, ...question), h("p", {}, hint), h("ol", {}, ...order.map(bar)),
      picked ? h("p", { class: "touch-note" }, "You picked ", em(word(chosen)), "; the model would have written ", em(word(best)), ".") : null);
  }

  // labels of who looks and of what is looked at
  function sides(part) {
    const src = words(source());
    const read = words([state.model.bos_id, ...run.ids.slice(0, -1)]);
    const answer = words(run.ids);
    if (!state.complete) answer[answer.length - 1] = "?";
    return { queries: part === "encoder self" ? src : answer, keys: part === "decoder self" ? read : src };
  }

  // the weights of a query, in one head or in the mean of all
  function weights_of(part, layer, head, query) {
    const step = run.steps[part === "encoder self" ? 0 : query];
    const rows = step.attention[part][layer].map(matrix => matrix.row(query));
    return head === null ? rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length) : rows[head];
  }

  const selected_query = () => state.part === "encoder self" ? state.word : state.step;

  // lines from the keys on the left to the queries on the right; `strong` says which ones matter
  function lines(weights, height, row, strong, smallest = 0.01) {
    const paths = [];
    weights.forEach((of_query, q) => of_query.forEach((weight, k) => {
      if (weight < smallest) return;
      const hot = strong(q, k);
      const [y1, y2] = [(k + 0.5) * row, (q + 0.5) * row];
      paths.push([hot, h("path", { d: `M0 ${y1} C50 ${y1} 50 ${y2} 100 ${y2}`, class: hot ? "hot" : "", "data-q": q, "data-k": k,
        style: `--weight: ${weight.toFixed(3)}`, "stroke-width": (0.5 + weight * row / 6).toFixed(1) })]);
    }));
    paths.sort((a, b) => a[0] - b[0]); // the strong ones on top
    return h("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...paths.map(([, path]) => path));
  }

  function draw_attention() {
    const options = Object.entries(PARTS).map(([value, { label }]) => ({ value, text: label }));
    fill(places.parts, choices("Attention of", options, state.part, part => {
      Object.assign(state, { part, key: null });
      draw_attention();
    }));

    const { part, layer, head } = state;
    const { queries, keys } = sides(part);
    const weights = queries.map((_, q) => weights_of(part, layer, head, q));
    const query = selected_query();
    const height = ROW * Math.max(queries.length, keys.length);
    const of_answer = part !== "encoder self";

    const strong = (q, k) => state.key === null ? q === query : k === state.key;

    // to point at a word shows its lines until one points elsewhere
    const light = is_hot => places.drawing.querySelectorAll("path")
      .forEach(path => path.classList.toggle("hot", is_hot(Number(path.dataset.q), Number(path.dataset.k))));
    const pointed = is_hot => ({ onpointerenter: () => light(is_hot), onpointerleave: () => light(strong) });

    // a click chooses a query, and shows whom it looks at; a click on a key shows who looks at it
    const share = weight => weight >= 0.05 ? h("span", { class: "touch-weight" }, percent(weight)) : null;

    const key_button = (label, k) => {
      const is_chosen = k === state.key;
      const weight = state.key === null ? weights[query][k] || 0 : Number(is_chosen);
      const click = () => {
        state.key = is_chosen ? null : k;
        draw_attention();
      };
      return button(`key ${k}`, click,
        { ...pressed(is_chosen), style: `--weight: ${weight.toFixed(3)}`, ...pointed((_, of_path) => of_path === k) },
        state.key === null ? share(weight) : null, label);
    };

    const query_button = (label, q) => {
      const weight = state.key === null ? 0 : weights[q][state.key] || 0;
      const click = () => {
        if (of_answer) return look_at(q);
        Object.assign(state, { word: q, key: null });
        draw_attention();
      };
      return button(`query ${q}`, click, { ...pressed(q === query && state.key === null), "aria-label": label === "?" ? "the next word" : null,
        style: `--weight: ${weight.toFixed(3)}`, ...pointed(of_path => of_path === q) }, label, share(weight));
    };

    fill(places.drawing,
      h("p", { class: "touch-says" }, PARTS[part].says),
      h("div", { class: "touch-heads-of-columns", "aria-hidden": "true" },
        h("span", {}, part === "decoder self" ? "what it has read" : "the sentence"),
        h("span", {}, part === "encoder self" ? "the sentence" : "what it writes")),
      h("div", { class: "touch-words" },
        h("div", { class: "touch-side keys", role: "group", "aria-label": "Looked at" }, ...keys.map(key_button)),
        h("div", { class: "touch-lines", style: `height: ${height}px` }, lines(weights, height, ROW, strong)),
        h("div", { class: "touch-side queries", role: "group", "aria-label": "Looking" }, ...queries.map(query_button))));
    places.caption.replaceChildren(...caption(queries, keys, weights, query));
    draw_heads();
  }

  // the picture in a sentence
  function caption(queries, keys, weights, query) {
    const { layer, head, part } = state;
    const where = head === null ? `All heads of layer ${layer + 1} together` : `Head ${head + 1} of layer ${layer + 1}`;
    const largest = (numbers, labels) => listed([...numbers.keys()].filter(i => numbers[i] >= 0.05).sort((a, b) => numbers[b] - numbers[a])
      .slice(0, 3).map(i => `${labels[i]} (${percent(numbers[i])})`));

    const named = label => label === "?" ? "the next word" : label;

    if (state.key !== null) {
      const column = weights.map(row => row[state.key] || 0);
      return [`${where}: `, em(keys[state.key]), ` is looked at by ${largest(column, queries.map(named)) || "nobody much"}.`];
    }
    const looks = `${largest(weights[query], keys)}.`;
    if (part === "encoder self") return [`${where}: `, em(queries[query]), " looks at ", looks];
    return [`${where}: to write `, em(named(queries[query])), ", the model looks at ", looks];
  }

  // every head as a small picture that can be chosen
  function draw_heads() {
    const { part } = state;
    const { queries, keys } = sides(part);
    const size = Math.max(queries.length, keys.length);
    const query = selected_query();

    const picture = (layer, head) => {
      const weights = queries.map((_, q) => weights_of(part, layer, head, q));
      const name = head === null ? "all heads" : `head ${head + 1}`;
      const click = () => {
        Object.assign(state, { layer, head });
        draw_attention();
      };
      return button(`head ${layer} ${head}`, click,
        { ...pressed(state.layer === layer && state.head === head), "aria-label": `Layer ${layer + 1}, ${name}` },
        lines(weights, 10 * size, 10, (q, k) => state.key === null ? q === query : k === state.key, 0.05),
        h("span", { "aria-hidden": "true" }, head === null ? "all" : name));
    };
    const n_heads = config().n_heads;
    const heads = n_heads > 1 ? [null, ...Array(n_heads).keys()] : [0];
    const row = layer => h("div", { class: "touch-layer", role: "group", "aria-label": `Layer ${layer + 1}` },
      h("span", { class: "touch-layer-name", "aria-hidden": "true" }, `Layer ${layer + 1}`), ...heads.map(head => picture(layer, head)));
    fill(places.heads, h("h3", {}, "Every head"), h("p", {}, "Each small picture is one head. Click one to see it large."),
      ...[...Array(config().n_layers).keys()].map(row));
  }

  // ---- Take something away ----

  function draw_away() {
    const names = gone();
    const [whole, broken] = both(source());
    const [kept_whole, kept_broken] = common(whole.ids, broken.ids);

    fill(places.compare,
      pane("With everything", whole, kept_whole),
      pane(names.length ? `Without ${listed(names)}` : "Without …", names.length ? broken : null, kept_broken));
    places.verdict.replaceChildren(...verdict(names, whole, broken));

    fill(places.cards, ...Object.entries(AWAY).map(([part, { label, look, chapter }]) => {
      const on = Boolean(state.without[part]);
      const number = `Chapter ${chapter.slice(0, 2)}`;
      return h("div", { class: "touch-card" },
        button(part, () => take_away(part, !on), { role: "switch", "aria-checked": String(on), "aria-describedby": `touch-look-${part}` },
          h("span", { class: "touch-switch", "aria-hidden": "true" }), h("span", {}, "Take away ", h("strong", {}, label))),
        part === "head" ? head_choice() : null,
        h("p", { id: `touch-look-${part}` }, look, " ", h("a", { href: `${chapter}.html`, "aria-label": `${number}, about ${label}` }, number)));
    }));
  }

  function head_choice() {
    const options = [];
    for (const part of Object.keys(PARTS)) {
      for (let layer = 0; layer < config().n_layers; layer++) {
        for (let head = 0; head < config().n_heads; head++) options.push({ part, layer, head });
      }
    }
    const same = option => ["part", "layer", "head"].every(name => option[name] === state.gone_head[name]);
    return h("label", {}, "Which one ", h("select", { "data-key": "which head", onchange: event => {
      state.gone_head = options[event.target.selectedIndex];
      take_away("head", true);
    } }, ...options.map(option => h("option", { selected: same(option) }, name_of_head(option)))));
  }

  function pane(title, found, kept) {
    const ended = found && is_end(found.ids.at(-1));
    return h("div", { class: "touch-pane" }, h("h3", {}, title), found
      ? h("p", { class: "touch-tokens", lang: answer_language() }, ...found.ids.map((id, t) => {
        const p = found.steps[t].probabilities[id];
        return h("span", { class: kept.has(t) ? "" : "changed" }, h("span", {}, word(id)), h("small", {}, percent(p)));
      }), ended ? null : h("span", {}, "…"))
      : h("p", {}, "Flip one of the switches below."));
  }

  // a sentence about the difference, and if there is none, an example where there is one
  function verdict(names, whole, broken) {
    if (!names.length) return ["The number below a word is its probability."];
    const after = [" Look at ", h("a", { href: "#touch" }, "its attention"), ", or ",
      button("put back", restore, {}, "put everything back"), "."];
    if (String(whole.ids) !== String(broken.ids)) {
      const text = h("span", { class: "touch-said" }, `It now writes: ${broken.text || "nothing"}. `);
      return [text, `The answer changes${is_end(broken.ids.at(-1)) ? "" : ", and doesn't end"}. What differs is underlined.`, ...after];
    }

    const lowest = broken.steps.map((step, t) => [step.probabilities[broken.ids[t]], t]).sort((a, b) => a[0] - b[0])[0];
    const said = ["The answer stays the same. Its least certain word is ", em(word(broken.ids[lowest[1]])), `, with ${percent(lowest[0])}. `];
    const other = examples().find(text => text !== state.text && changes(text));
    if (other) said.push("Try ", button("try another", () => use(other), {}, other), ".");
    return [...said, ...after];
  }

  // the answers of the whole model and of the broken one
  function both(src) {
    const options = { max_length: max_length(src) };
    return [state.model.greedy_decode(src, options), state.model.greedy_decode(src, options, state.without)];
  }

  function changes(text) {
    const [whole, broken] = both(source(text));
    return String(whole.ids) !== String(broken.ids);
  }

  // the places of the longest common subsequence, in each of two lists
  function common(a, b) {
    const longest = Array.from({ length: a.length + 1 }, () => Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    const [in_a, in_b] = [new Set(), new Set()];
    for (let i = 0, j = 0; i < a.length && j < b.length;) {
      if (a[i] === b[j]) { in_a.add(i++); in_b.add(j++); }
      else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
      else j++;
    }
    return [in_a, in_b];
  }

  // ---- Beam search ----

  let waiting = null;
  // it takes longer than a step, so the rest of the page comes first
  function search_later() {
    clearTimeout(waiting);
    waiting = setTimeout(search_now, 150);
  }

  function search_now() {
    search = state.model.beam_search(state.model.source(state.text), { beam_size: state.beam_size });
    state.answer = 0;
    draw_beam();
  }

  const [BOX_HEIGHT, GAP] = [40, 18]; // pixels, as in touch.css

  function draw_beam() {
    const options = [1, 2, 3, 4, 5].map(value => ({ value, text: String(value), title: `Beam of ${value}` }));
    const choose = size => {
      state.beam_size = size;
      search_now();
    };
    fill(places.beam_size, h("span", { "aria-hidden": "true" }, "Hypotheses kept: "), choices("Beam size", options, state.beam_size, choose));

    const { answers, steps } = search;
    const answer = ({ text, score }, i) => {
      const click = () => {
        state.answer = i;
        draw_beam();
      };
      const rounded = (Math.round(100 * score) / 100 || 0).toFixed(2).replace("-", "−");
      return h("li", {}, button(`answer ${i}`, click, pressed(i === state.answer),
        h("span", { lang: answer_language() }, text || "(empty)"), " ", h("small", {}, `score ${rounded}`)));
    };
    fill(places.answers, h("h3", {}, answers.length > 1 ? "The finished answers, best first" : "The finished answer"),
      h("ol", {}, ...answers.map(answer)));

    // those that were kept, in columns; a path leads to the chosen answer
    const is_kept = (candidate, t) => candidate.state === "finished" || (candidate.state === "alive" && t + 1 < steps.length);
    const columns = steps.map((candidates, t) => candidates.map((candidate, place) => ({ ...candidate, place }))
      .filter(candidate => is_kept(candidate, t)));
    const chosen = String(answers[state.answer].ids);
    const on_path = ids => `${chosen},`.startsWith(`${ids},`);
    const longest = Math.max(...columns.flat().map(box => word(box.ids.at(-1)).length));
    const box_width = Math.max(84, Math.min(18 + 8.5 * longest, 150));
    const x = t => t * (box_width + GAP);
    const y = rank => rank * (BOX_HEIGHT + 8);

    const paths = [];
    const boxes = [];
    columns.forEach((column, t) => column.forEach((box, rank) => {
      const hot = on_path(box.ids);
      const goes_on = box.state === "finished" || columns[t + 1].some(next => next.parent === box.place);
      const from = t ? columns[t - 1].findIndex(before => before.place === box.parent) : 0;
      if (t) {
        const [y1, y2] = [y(from) + BOX_HEIGHT / 2, y(rank) + BOX_HEIGHT / 2];
        const [x1, x2] = [x(t) - GAP, x(t)];
        paths.push(h("path", { d: `M${x1} ${y1} C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}`, class: hot ? "hot" : "" }));
      }
      boxes.push(h("span", { class: `touch-box ${hot ? "hot" : ""} ${goes_on ? "" : "dead"}`, style: `width: ${box_width}px; left: ${x(t)}px; top: ${y(rank)}px` },
        h("span", {}, word(box.ids.at(-1))), h("small", {}, percent(Math.exp(box.log_prob)))));
    }));
    const [width, height] = [x(columns.length) - GAP, y(Math.max(...columns.map(column => column.length)))];
    fill(places.tree, h("div", { class: "touch-scroll", tabindex: "0", role: "group", "aria-label": "The beam as a tree, scrolls sideways" },
      h("div", { class: "touch-canvas", style: `width: ${width}px; height: ${height}px` },
        h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...paths), ...boxes)));
  }

  // ---- Start ----

  async function start() {
    build();
    await choose_model(AnnotatedTransformer.names.includes("cat") ? "cat" : AnnotatedTransformer.names[0]);
    document.documentElement.dataset.touch = "ready";
  }
  start().catch(error => {
    // the still picture again
    document.documentElement.classList.remove("touch-runs");
    throw error;
  });
})();
