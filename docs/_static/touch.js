/* The page "Touch a Transformer": nbs/touch.md has its text and its places, transformer.js the model. */

// Numbers in words, below a million: to say what an answer means, and how to write digits
const NumberWords = (() => {
  "use strict";

  // the value of a Chinese numeral, as spell_chinese of chapter 47 writes it; null for what is none
  function chinese(text) {
    if (text === "零") return 0;
    const [large, small, ...more] = text.includes("万") ? text.split("万") : ["", text];
    if (!text || more.length || text.includes("万") !== Boolean(large)) return null;
    const values = [large, small].map(below_10000);
    return values.includes(null) ? null : 10000 * values[0] + values[1];
  }

  const CHINESE = "零一二三四五六七八九";

  function below_10000(text) {
    const found = /^零?(?:(.)千)?零?(?:(.)百)?零?(?:([^零]?)十)?零?(.)?$/u.exec(text);
    if (!found) return null;
    const [thousands, hundreds, tens, ones] = found.slice(1).map(digit => digit === "两" ? 2 : digit === undefined ? 0 : CHINESE.indexOf(digit));
    const ten = found[3] === "" ? 1 : tens; // 十 alone is ten
    if ([thousands, hundreds, ten, ones].includes(-1)) return null;
    return 1000 * thousands + 100 * hundreds + 10 * ten + ones;
  }

  const GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf", "dreizehn",
    "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"];
  const GERMAN_TENS = [null, null, "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"];

  // the value of a German one, as num2words writes it; null for what is none
  function german(text) {
    for (const [unit, size] of [["tausend", 1000], ["hundert", 100]]) {
      const at = text.indexOf(unit);
      if (at < 0) continue;
      const [count, rest] = [text.slice(0, at), text.slice(at + unit.length)];
      const [many, more] = [count === "" ? 1 : german(count.replace(/ein$/, "eins")), rest === "" ? 0 : german(rest)];
      const fits = many > 0 && (size === 1000 ? many < 1000 : many < 10) && more !== null && more < size;
      return fits ? size * many + more : null;
    }
    if (GERMAN.includes(text)) return GERMAN.indexOf(text);
    if (GERMAN_TENS.includes(text)) return 10 * GERMAN_TENS.indexOf(text);

    // one and twenty
    const [one, ten, ...more] = text.split("und");
    const [ones, tens] = [one === "ein" ? 1 : GERMAN.indexOf(one), GERMAN_TENS.indexOf(ten)];
    return !more.length && 1 <= ones && ones <= 9 && tens > 0 && one !== "eins" ? 10 * tens + ones : null;
  }

  const ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"];
  const ENGLISH_TENS = [null, null, "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

  // as the English language writes a number below a million
  function english(number) {
    if (number < 20) return ENGLISH[number];
    if (number < 100) return ENGLISH_TENS[Math.floor(number / 10)] + (number % 10 ? `-${ENGLISH[number % 10]}` : "");
    const size = number < 1000 ? 100 : 1000;
    const rest = number % size;
    const between = !rest ? "" : rest < 100 ? " and " : " ";
    return `${english(Math.floor(number / size))} ${size === 100 ? "hundred" : "thousand"}${between}${rest ? english(rest) : ""}`;
  }

  return { chinese, german, english };
})();

(() => {
  "use strict";

  const LONGEST_SOURCE = 24; // tokens of a sentence that the drawing has room for
  const N_PADS = 8;          // put behind the sentence to show what the padding mask is for
  const N_BARS = 6;
  const ROW = 36;            // pixels of a word in the drawing, as in touch.css

  // ---- What is said about the models ----

  // `about` is a line above the sentence, `more` is folded; `english` are the words of a sentence, for a list of its own
  const PIECES = "Its tokens are pieces of words; ▁ is a space. It has two layers with four heads each.";
  const NUMBERS = {
    task: "translates", field: "Your number",
    click: "Click a piece of the answer to see which pieces of the number the model looked at. Then type a number of your own.",
    about: ["English numbers below a million, in words: ", "forty-two", ", not 42."],
    more: PIECES,
    examples: ["three hundred and forty-two", "seventy-seven", "twelve thousand three hundred and five", "six hundred and ninety-one",
      "seven hundred and forty-eight thousand and six"],
  };
  const ABOUT = {
    "cat": {
      label: "English → German", language: "de", task: "translates", field: "Your sentence",
      click: "Click a German word to see which English words the model looked at. Then type a sentence of your own.",
      about: ["Sentences such as ", "she has (not) seen the dog (today)", "."],
      more: "A sentence is a person, have or has, perhaps not, a verb, the or a, an animal, perhaps today or again. "
        + "Only one of not, today and again. The model has two layers with four heads each.",
      english: [["I", "you", "he", "she", "we", "they"], ["have", "has"], ["not"],
        ["seen", "heard", "found", "bought", "fed", "drawn", "called", "lost", "loved", "counted"], ["the", "a"],
        ["cat", "dog", "horse", "bird", "mouse", "cow", "sheep", "fish", "goat", "rabbit"], ["today", "again"]],
      examples: ["I have seen the cat", "she has not fed a horse", "they have lost the dog today", "you have found a cow again",
        "he has bought the fish", "we have called the goat"],
    },
    "numbers-en-de": { ...NUMBERS, label: "Numbers → German", language: "de", value: NumberWords.german },
    "numbers-en-zh": { ...NUMBERS, label: "Numbers → Chinese", language: "zh", value: NumberWords.chinese },
    "copier": {
      label: "Copier", task: "copies", field: "Your numbers",
      click: "Click a number of the answer to see which numbers the model looked at. Then type some of your own.",
      learned: [5, 12],
      about: ["It repeats 5 to 12 numbers, each from 3 to 12."],
      more: "One layer, one head: as small as a Transformer gets. It is 91 % sure of every number, and no more, because it was trained with "
        + "label smoothing of 0.1 (chapter 11): that asks for 90 %, and for a twelfth of the other 10 %.",
      examples: ["7 3 9 9 4 12", "3 3 3 3 3 3 3 3", "5 6 7 8 9 10 11 12", "12 4 4 8 10 3 6"],
    },
  };

  const PARTS = {
    "decoder cross": { label: "Cross-attention", says: "Each word of the answer looks at the words of the sentence. EOS is its end. "
      + "The decoder sees what the encoder made of them: each word already holds something of its neighbours, and EOS often collects what "
      + "concerns the whole sentence. Looking at a word isn't yet using it." },
    "encoder self": { label: "Encoder", says: "Each word of the sentence looks at all its words, itself included." },
    "decoder self": { label: "Decoder", says: "Each word of the answer looks at what has been written before it. BOS is the beginning.",
      unmasked: "Without the causal mask, each word also looks at what was written after it. This is how it looks when the last word is chosen." },
  };

  // what can be taken away, in the order of the chapters, and what to look for
  const AWAY = {
    scale: { label: "the division by √dₖ", chapter: "02_attention",
      look: "Scores get larger, so softmax gets sharper. Click a single head: most now read one word. English → German still "
        + "answers correctly. The Copier doesn't." },
    padding_mask: { label: "the padding mask", chapter: "03_masks",
      look: `We put ${N_PADS} PADs behind the sentence. With the mask nobody sees them. Without it, look at the lines that go to PAD.` },
    causal_mask: { label: "the causal mask", chapter: "03_masks",
      look: "In training, it hides the words to be guessed. Here, words already written now see the ones after them. "
        + "Look for missing words, often at the end. A model of one layer doesn't notice." },
    head: { label: "one head", chapter: "04_multi_head_attention",
      look: "Some heads have a job of their own. Take away one after the other, and look for the one word that changes. "
        + "Mostly the others make up for it." },
    residuals: { label: "the residual connections", chapter: "05_layers",
      look: "Each layer now passes on only its own result, and the word itself is lost. Look for an answer that is empty, or repeats one word." },
    layer_norm: { label: "layer norm", chapter: "05_layers",
      look: "The sizes of the vectors get out of hand. Look at the probabilities: often the model is still very sure, even when it's wrong. "
        + "Sometimes it's torn between two words." },
    positions: { label: "positions", chapter: "07_positions",
      look: "The sentence is now a bag of words: shuffle them, and the answer stays the same. Look for words that come twice, and answers that never end." },
    cross_attention: { label: "all cross-attention", chapter: "08_transformer",
      look: "The decoder no longer sees your sentence. Look for the same answer, whatever you type. It's made up, and often looks well-formed." },
  };

  // ---- State ----

  const state = {
    name: null, model: null, text: "",
    begin: [], complete: true,     // what was written by hand or step by step, and whether the model goes on alone
    forced: [],                    // the beginning up to the last word that was picked by hand
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
  const about = () => ABOUT[state.name] || { examples: ["twelve"], about: [] };
  const name_of_head = ({ part, layer, head }) => `${PARTS[part].label}, layer ${layer + 1}, head ${head + 1}`;

  // the names of what is taken away
  function gone() {
    return Object.keys(AWAY).filter(part => state.without[part])
      .map(part => part === "head" ? `one head (${name_of_head(state.gone_head)})` : AWAY[part].label);
  }
  const listed = names => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

  const quoted = names => listed(names.map(name => `“${name}”`));

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

  function write_answer(begin = [], complete = true) {
    Object.assign(state, { begin, complete, key: null });
    compute();
    const last = state.complete ? run.ids.filter(id => !is_end(id)).length - 1 : state.begin.length;
    state.step = Math.max(0, Math.min(last, run.ids.length - 1));
  }

  // after a part was taken away or put back: as many words as before, those that were picked by hand among them
  function write_again() {
    const { step, begin, complete, forced } = state;
    write_answer(forced);
    if (complete) {
      state.step = Math.min(step, run.ids.length - 1);
      return;
    }
    const written = run.ids.slice(0, begin.length);
    write_answer(written, is_end(written.at(-1)));
  }

  // what the model is to read: capitals and a full stop at the end don't matter. Or { fault }, what is wrong with it
  function understood(typed) {
    const { tokenizer } = state.model;
    const text = typed.trim().replace(/\s*[.!?]+$/, "");
    if (!text) return { fault: "Type something first." };
    return tokenizer.labels ? understood_words(text, tokenizer) : understood_number(text.toLowerCase());
  }

  function understood_words(text, tokenizer) {
    const in_any_case = new Map([...tokenizer.ids.keys()].map(word => [word.toLowerCase(), word]));
    const typed = text.split(/\s+/);
    const found = typed.map(word => tokenizer.ids.has(word) ? word : in_any_case.get(word.toLowerCase()));

    const { english } = about();
    const foreign = found.filter(word => word && english && !english.flat().includes(word));
    if (foreign.length) return { fault: `${quoted(foreign)} ${foreign.length > 1 ? "are" : "is"} German. This model reads English. “More about it” lists its words.` };

    const unknown = [...new Set(typed.filter((_, i) => !found[i]))];
    if (!unknown.length) return { text: found.join(" ") };
    return { fault: `${quoted(unknown)} ${unknown.length > 1 ? "aren't words" : "isn't a word"} this model knows. “More about it” lists its words.` };
  }

  function understood_number(text) {
    const digits = text.match(/\d[\d,.]*/g);
    if (!digits || !about().value) return { text };
    const number = shown => Number(shown.replace(/[,.]/g, ""));
    if (digits.some(shown => number(shown) >= 1e6)) return { fault: "This model reads numbers below a million, in words." };
    return { fault: `Write ${listed(digits.map(shown => `${shown} as “${NumberWords.english(number(shown))}”`))}.` };
  }

  // answer what was typed; or say what is wrong with it, and grey the answer that is there
  function read(typed) {
    const { text, fault } = understood(typed);
    if (fault) return say_fault(fault);
    const src = state.model.source(text);
    if (src.length > LONGEST_SOURCE) return say_fault(`That's ${src.length} tokens. This page draws ${LONGEST_SOURCE} at most.`);

    Object.assign(state, { text, forced: [], word: Math.max(0, src.length - 2) });
    write_answer();
    say_fault("");
    const { learned } = about();
    const length = src.length - 1;
    const is_odd = learned && (length < learned[0] || length > learned[1]);
    places.remark.textContent = is_odd ? `It learned rows of ${learned[0]} to ${learned[1]} numbers, and this has ${length}: expect mistakes.` : "";
    draw_all();
    search_later();
  }

  function say_fault(text) {
    places.fault.textContent = text;
    places.input.setAttribute("aria-invalid", String(Boolean(text)));
    document.getElementById("touch").classList.toggle("stale", Boolean(text));
    if (text) draw_answer(written());
  }

  let wanted = null;  // the model that was chosen last: another one may still be loading
  // it is whole at first, unless something is to be taken away
  async function choose_model(name, without = {}) {
    wanted = name;
    const model = await AnnotatedTransformer.load(name);
    if (wanted !== name) return;

    const head = model.config.n_heads > 1 ? null : 0;
    Object.assign(state, { name, model, without, part: "decoder cross", layer: model.config.n_layers - 1, head });
    state.gone_head = { part: "decoder cross", layer: model.config.n_layers - 1, head: Math.min(2, model.config.n_heads - 1) };
    draw_model();
    use(examples()[0]);
  }

  function use(example) {
    places.input.value = example;
    read(example);
  }

  function examples() { return about().examples; }

  // the running example, for what the page says to try
  async function begin_with_cat() {
    await choose_model("cat");
    document.getElementById("touch").scrollIntoView();
    places.input.focus({ preventScroll: true });
  }

  // the words of the sentence in another order
  function shuffle() {
    const typed = state.text.split(" ");
    const key = new Map(typed.map((word, i) => [i, Math.random()]));
    const mixed = [...typed.keys()].sort((a, b) => key.get(a) - key.get(b)).map(i => typed[i]);
    const text = mixed.join(" ");
    use(text === state.text ? mixed.reverse().join(" ") : text);
  }

  async function try_copier() {
    await choose_model("copier", { layer_norm: true });
    use(examples().find(changes) || examples()[0]);
    places.cards.querySelector("[data-key=layer_norm]").focus({ preventScroll: true });
  }

  function write_next() {
    if (state.complete) {
      state.forced = [];
      write_answer([], false);
    } else {
      const begin = [...state.begin, run.ids[state.begin.length]];
      write_answer(begin, is_end(begin.at(-1)) || begin.length >= max_length(source()));
    }
    draw_explorer();
  }

  function write_rest() {
    write_answer(state.begin, true);
    draw_explorer();
  }

  // another word than the model would write; then it goes on from there
  function pick(id) {
    const { step, complete } = state;
    state.forced = [...run.ids.slice(0, step), id];
    write_answer(state.forced, complete || is_end(id));
    if (state.complete) state.step = step;
    draw_all();
  }

  function take_away(part, on) {
    if (on) state.without[part] = part === "head" ? state.gone_head : true;
    else delete state.without[part];
    write_again();
    draw_all();
    search_later();
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

    places.remark = h("p", { class: "touch-remark", "aria-live": "polite" });
    places.field = h("label", { for: "touch-text" });
    document.getElementById("touch").append(
      place("models"), place("about"),
      h("form", { class: "touch-form", onsubmit: event => { event.preventDefault(); read(places.input.value); } },
        places.field, places.input, h("button", { type: "submit", class: "touch-main" }, "Write the answer")),
      places.fault, places.remark, place("examples"), place("banner"),
      h("div", { class: "touch-written" }, places.answer, places.said, place("steps")),
      h("div", { class: "touch-columns" },
        h("div", { class: "touch-look", id: "touch-picture" }, place("parts"), place("drawing"), places.caption, place("says")),
        h("div", { class: "touch-next" }, place("bars"))),
      place("heads"));

    document.getElementById("touch-away").append(
      h("div", { class: "touch-result" }, place("compare"), places.verdict), place("cards"));
    document.getElementById("touch-beam").append(place("beam_size"), place("beam_of"), place("answers"), place("tree"));
    addEventListener("resize", fade);
  }

  function draw_all() {
    draw_text();
    draw_explorer();
    draw_away();
  }

  // ---- Choosing a model and a sentence ----

  function draw_model() {
    const names = Object.keys(ABOUT).filter(name => AnnotatedTransformer.names.includes(name));
    const others = AnnotatedTransformer.names.filter(name => !names.includes(name));
    const options = [...names, ...others].map(name => ({ value: name, text: ABOUT[name]?.label || name }));
    fill(places.models, choices("Model", options, state.name, name => choose_model(name).catch(error => say_fault(error.message))));
    places.field.textContent = about().field || "Your text";

    const [first, example, last] = about().about;
    places.more = h("details", {}, h("summary", { "data-key": "more" }, "More about it"), h("p", {}, about().more || ""), ...word_lists());
    fill(places.about, h("p", {}, first, example ? em(example) : null, last), places.more);

    const chip = text => button(text, () => use(text), {}, text);
    fill(places.examples, h("span", { id: "touch-try" }, "Or try"),
      h("span", { class: "touch-chips", role: "group", "aria-labelledby": "touch-try" }, ...examples().map(chip)));
  }

  // all that a model of words knows, by language if it knows two
  function word_lists() {
    const { labels } = state.model.tokenizer;
    if (!labels) return [];
    const known = labels.slice(3);
    const { english } = about();
    if (!english) return [h("p", {}, `It knows ${known.join(", ")}.`)];

    const german = known.filter(word => !english.flat().includes(word));
    return [h("p", {}, h("strong", {}, "English: "), english.map(kind => kind.join(", ")).join("; ")),
      h("p", { lang: "de" }, h("strong", { lang: "en" }, "German: "), german.join(", "))];
  }

  // the text around the model follows it
  function draw_text() {
    const { task, click } = about();
    document.getElementById("touch-now")?.replaceChildren(`A small Transformer ${task || "reads"} `, em(state.text), ".");
    if (click) document.getElementById("touch-click")?.replaceChildren(click);

    const is_there = state.name === "cat" && state.text === examples()[0] && !gone().length && !state.forced.length;
    const start = button("begin with cat", begin_with_cat, { class: "touch-inline" }, "Take me there");
    document.getElementById("touch-start")?.replaceChildren(...is_there ? [] : [start]);
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
    const is_stale = Boolean(places.fault.textContent);
    const label = is_stale ? ["Its answer to ", em(state.text), ": "] : ["Its answer: "];
    const value = state.complete ? value_of(ids) : "";
    fill(places.answer, h("span", { class: "touch-label" }, ...label),
      h("span", { lang: answer_language(), class: has_blanks() ? "blanks" : "" }, ...tokens.map(token), tokens.length ? "" : text, goes_on),
      " ", value ? h("span", { class: "touch-label touch-value" }, value) : null);
    const said = `Its answer: ${text}${goes_on}${value && `, ${value}`}`;
    if (places.said.textContent !== said) places.said.textContent = said;
  }

  // "= 77", for those who can't read the language
  function value_of(ids) {
    if (!about().value) return "";
    const value = about().value(state.model.tokenizer.decode(ids));
    return value === null ? "(no number)" : `= ${value.toLocaleString("en")}`;
  }

  // a word of the answer: where the model looked to write it, and what it could have written
  function look_at(step) {
    Object.assign(state, { step, key: null, part: state.part === "encoder self" ? "decoder cross" : state.part });
    draw_explorer();
  }

  // between its tokens
  const has_blanks = () => Boolean(state.model.tokenizer.labels);

  function answer_language() { return about().language; }

  function restore() {
    state.without = {};
    write_again();
    draw_all();
    search_later();
    if (document.activeElement === document.body) places.steps.firstChild.focus({ preventScroll: true });
  }

  function draw_bars() {
    const { step } = state;
    const { probabilities, best } = run.steps[step];
    const is_pending = !state.complete && step === state.begin.length;
    const { pad_id, bos_id } = state.model;
    const order = [...probabilities.keys()].filter(id => id !== pad_id && id !== bos_id).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, N_BARS);
    const chosen = run.ids[step];
    if (!is_pending && !order.includes(chosen)) order[N_BARS - 1] = chosen;

    const before = (step > 4 ? "… " : "") + words(run.ids.slice(0, step)).slice(-4).join(has_blanks() ? " " : "");
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

  // the heads of a layer that weren't taken away
  function heads_left(part, layer) {
    const { cross_attention, head } = state.without;
    if (cross_attention && part === "decoder cross") return [];
    const all = [...Array(config().n_heads).keys()];
    return head && head.part === part && head.layer === layer ? all.filter(i => i !== head.head) : all;
  }

  const is_gone = (part, layer, head) => head === null ? !heads_left(part, layer).length : !heads_left(part, layer).includes(head);

  const is_unmasked = part => part === "decoder self" && Boolean(state.without.causal_mask);

  // the weights of a query, in one head or in the mean of all that are left; zeros where the part was taken away
  function weights_of(part, layer, head, query) {
    // without the causal mask, words look at later ones: the last step has them all
    const at = part === "encoder self" ? 0 : is_unmasked(part) ? run.steps.length - 1 : query;
    const step = run.steps[at];
    const rows = step.attention[part][layer].map(matrix => matrix.row(query));
    const read = is_gone(part, layer, head) ? [] : head === null ? heads_left(part, layer).map(i => rows[i]) : [rows[head]];
    return rows[0].map((_, k) => read.reduce((sum, row) => sum + row[k] / read.length, 0));
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

    // to point at a word shows its lines, its percentages and its sentence, until one points elsewhere
    const chosen = { query, key: state.key };
    const pointed = at => ({ onpointerenter: () => show(at), onpointerleave: () => show(chosen) });

    // a click chooses a query, and shows whom it looks at; a click on a key shows who looks at it
    const weight = () => h("span", { class: "touch-weight" });
    const key_button = (label, k) => {
      const is_chosen = k === state.key;
      const click = () => {
        state.key = is_chosen ? null : k;
        draw_attention();
      };
      return button(`key ${k}`, click, { ...pressed(is_chosen), ...pointed({ query, key: k }) }, weight(), label);
    };

    const query_button = (label, q) => {
      const click = () => {
        if (of_answer) return look_at(q);
        Object.assign(state, { word: q, key: null });
        draw_attention();
      };
      return button(`query ${q}`, click, { ...pressed(q === query && state.key === null), "aria-label": label === "?" ? "the next word" : null,
        ...pointed({ query: q, key: null }) }, label, weight());
    };

    const drawn = lines(weights, height, ROW, () => false);
    const key_buttons = keys.map(key_button);
    const query_buttons = queries.map(query_button);

    // the lines of one query, or of one key
    function show({ query, key }) {
      const is_hot = path => key === null ? Number(path.dataset.q) === query : Number(path.dataset.k) === key;
      const [cold, hot] = [false, true].map(wanted => [...drawn.children].filter(path => is_hot(path) === wanted));
      cold.forEach(path => path.classList.remove("hot"));
      hot.forEach(path => path.classList.add("hot"));
      drawn.append(...hot); // on top of the others

      const set = (button, weight, percentage) => {
        button.style.setProperty("--weight", weight.toFixed(3));
        button.querySelector(".touch-weight").textContent = percentage >= 0.05 ? percent(percentage) : "";
      };
      key_buttons.forEach((button, k) => {
        const weight = weights[query][k] || 0;
        if (key === null) set(button, weight, weight);
        else set(button, Number(k === key), 0);
      });
      query_buttons.forEach((button, q) => {
        const weight = key === null ? 0 : weights[q][key] || 0;
        set(button, weight, weight);
      });
      places.caption.replaceChildren(...caption(queries, keys, weights, query, key));
    }

    fill(places.drawing,
      h("div", { class: "touch-heads-of-columns", "aria-hidden": "true" },
        h("span", {}, part === "decoder self" ? "what it has read" : "the sentence"),
        h("span", {}, part === "encoder self" ? "the sentence" : "what it writes")),
      h("div", { class: "touch-words" },
        h("div", { class: "touch-side keys", role: "group", "aria-label": "Looked at" }, ...key_buttons),
        h("div", { class: "touch-lines", style: `height: ${height}px` }, drawn),
        h("div", { class: "touch-side queries", role: "group", "aria-label": "Looking" }, ...query_buttons)));
    fill(places.says, h("p", {}, is_unmasked(part) ? PARTS[part].unmasked : PARTS[part].says));
    show(chosen);
    draw_heads();
  }

  // the picture in a sentence
  function caption(queries, keys, weights, query, key) {
    const { layer, head, part } = state;
    if (state.without.cross_attention && part === "decoder cross") return ["Taken away: the decoder gets nothing from the sentence."];
    if (is_gone(part, layer, head)) return ["This head is taken away: nothing of what it reads arrives."];

    const { n_heads, n_layers } = config();
    const left = heads_left(part, layer).length;
    const who = n_heads === 1 ? "The only head" : head !== null ? `Head ${head + 1}` : left === n_heads ? "Average of all heads"
      : `Average of the other ${left} heads`;
    const where = n_layers === 1 ? who : `${who} of layer ${layer + 1}`;

    const largest = (numbers, labels) => listed([...numbers.keys()].filter(i => numbers[i] >= 0.05).sort((a, b) => numbers[b] - numbers[a])
      .slice(0, 3).map(i => `${labels[i]} (${percent(numbers[i])})`));
    if (key !== null) {
      const column = weights.map(row => row[key] || 0);
      const named = queries.map(label => label === "?" ? "the next word" : label);
      return [`${where}: `, em(keys[key]), ` is looked at by ${largest(column, named) || "nobody much"}.`];
    }
    const looks = `${largest(weights[query], keys) || "nothing much"}.`;
    if (part === "encoder self") return [`${where}: `, em(queries[query]), " looks at ", looks];

    // whoever chooses it: the looking comes before
    const next = queries[query] === "?" ? ["the next word"] : [em(queries[query])];
    if (is_unmasked(part)) return [`${where}, without the causal mask: the place that wrote `, ...next, " looks at ", looks];
    return [`${where}, before `, ...next, " is chosen: here the model looks at ", looks];
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
      const gone = is_gone(part, layer, head);
      const short = `${head === null ? "all" : name}${gone ? ", gone" : ""}`;
      const click = () => {
        Object.assign(state, { layer, head });
        draw_attention();
      };
      return button(`head ${layer} ${head}`, click,
        { ...pressed(state.layer === layer && state.head === head), class: gone ? "gone" : null,
          "aria-label": `Layer ${layer + 1}, ${gone ? short : name}` },
        lines(weights, 10 * size, 10, (q, k) => state.key === null ? q === query : k === state.key, 0.05),
        h("span", { "aria-hidden": "true" }, short));
    };
    const n_heads = config().n_heads;
    const heads = n_heads > 1 ? [null, ...Array(n_heads).keys()] : [0];
    const row = layer => h("div", { class: "touch-layer", role: "group", "aria-label": `Layer ${layer + 1}` },
      h("span", { class: "touch-layer-name", "aria-hidden": "true" }, `Layer ${layer + 1}`), ...heads.map(head => picture(layer, head)));
    fill(places.heads, h("h3", {}, "Every head"), h("p", {}, "Each small picture is one head: on the left what is looked at, on the right who looks. Click one to see it large."),
      ...[...Array(config().n_layers).keys()].map(row));
  }

  // ---- Take something away ----

  function draw_away() {
    const names = gone();
    const [whole, broken] = both(source(), state.forced);
    const [kept_whole, kept_broken] = common(whole.ids, broken.ids);

    fill(places.compare,
      pane("whole", "With everything", whole, kept_whole),
      pane("broken", names.length ? `Without ${listed(names)}` : "Without …", names.length ? broken : null, kept_broken));
    places.verdict.replaceChildren(...verdict(names, whole, broken));

    fill(places.cards, ...Object.entries(AWAY).map(([part, { label, look, chapter }]) => {
      const on = Boolean(state.without[part]);
      const number = `Chapter ${chapter.slice(0, 2)}`;
      return h("div", { class: "touch-card" },
        button(part, () => take_away(part, !on), { role: "switch", "aria-checked": String(on), "aria-describedby": `touch-look-${part}` },
          h("span", { class: "touch-switch", "aria-hidden": "true" }), h("span", {}, "Take away ", h("strong", {}, label))),
        part === "head" ? head_choice() : null,
        h("p", { id: `touch-look-${part}` }, look, part === "head" && config().n_heads === 1 ? " Here it is the only one." : "", " ", h("a", { href: `${chapter}.html`, "aria-label": `${number}, about ${label}` }, number)),
        part === "positions" && on && has_blanks()
          ? h("p", {}, button("shuffle", shuffle, { class: "touch-inline" }, "Shuffle the words")) : null,
        part === "layer_norm" && state.name !== "copier" && AnnotatedTransformer.names.includes("copier")
          ? h("p", {}, "You see it best on a model that wasn't sure before. ", button("try copier", try_copier, { class: "touch-inline" }, "Try the Copier"))
          : null);
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

  function pane(kind, title, found, kept) {
    const ended = found && is_end(found.ids.at(-1));
    return h("div", { class: `touch-pane ${kind}` }, h("h3", {}, title), found
      ? h("p", { class: "touch-tokens", lang: answer_language() }, ...found.ids.map((id, t) => {
        const p = found.steps[t].probabilities[id];
        return h("span", { class: kept.has(t) ? "" : "changed" }, h("span", {}, word(id)), h("small", {}, percent(p)));
      }), ended ? null : h("span", {}, "…"), about().value ? h("span", { lang: "en" }, value_of(found.ids)) : null,
        kind === "broken" ? h("a", { href: "#touch-picture" }, "Look at its attention") : null)
      : h("p", {}, "Flip one of the switches below."));
  }

  // a sentence about the difference, and if there is none, an example where there is one
  function verdict(names, whole, broken) {
    const same = state.forced.length ? [" Both begin with what you picked: ", em(state.model.tokenizer.decode(state.forced)), "."] : [];
    if (!names.length) return ["The number below a word is its probability."];
    const after = [" ", button("put back", restore, {}, "Put everything back")];
    if (String(whole.ids) !== String(broken.ids)) {
      if (!broken.text) return ["The answer is now empty: the model ends it at once.", ...same, ...after];
      const text = h("span", { class: "touch-said" }, `It now writes: ${broken.text}. `);
      return [text, `The answer changes${is_end(broken.ids.at(-1)) ? "" : ", and doesn't end"}. What differs is underlined.`, ...same, ...after];
    }

    // the word whose probability changes most
    const probabilities = found => found.steps.map((step, t) => step.probabilities[found.ids[t]]);
    const [before, now] = [probabilities(whole), probabilities(broken)];
    const t = now.map((p, t) => [Math.abs(p - before[t]), t]).sort((a, b) => b[0] - a[0])[0][1];
    const said = before.every((p, t) => percent(p) === percent(now[t])) ? ["No visible change here: the answer stays the same, and so do its probabilities. "]
      : ["The answer stays the same. The probability of ", em(word(broken.ids[t])), ` changes most, from ${percent(before[t])} to ${percent(now[t])}. `];
    const other = examples().find(text => text !== state.text && changes(text));
    if (other) said.push("Try ", button("try another", () => use(other), {}, other), ".");
    return [...said, ...same, ...after];
  }

  // the answers of the whole model and of the broken one
  function both(src, begin = []) {
    const options = { begin, max_length: max_length(src) };
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
    const src = source();
    const limit = gone().length ? { max_length: max_length(src) } : {};
    search = state.model.beam_search(src, { beam_size: state.beam_size, ...limit }, state.without);
    state.answer = 0;
    draw_beam();
  }

  const [BOX_HEIGHT, GAP] = [40, 18]; // pixels, as in touch.css

  // pixels of a text, in bold
  const canvas = document.createElement("canvas").getContext("2d");
  function width_of(text, size) {
    canvas.font = `600 ${size}px ${getComputedStyle(places.tree).fontFamily}`;
    return canvas.measureText(text).width;
  }

  // at the sides where more can be scrolled to
  function fade() {
    const scroll = places.tree.firstChild;
    if (!scroll) return;
    scroll.classList.toggle("more-left", scroll.scrollLeft > 2);
    scroll.classList.toggle("more-right", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
  }

  function draw_beam() {
    const options = [1, 2, 3, 4, 5].map(value => ({ value, text: String(value), title: `Beam of ${value}` }));
    const choose = size => {
      state.beam_size = size;
      search_now();
    };
    fill(places.beam_size, h("span", { "aria-hidden": "true" }, "Hypotheses kept: "), choices("Beam size", options, state.beam_size, choose));

    const { answers, steps } = search;
    const answer = ({ ids, text, score }, i) => {
      const click = () => {
        state.answer = i;
        draw_beam();
      };
      const rounded = (Math.round(100 * score) / 100 || 0).toFixed(2).replace("-", "−");
      return h("li", {}, button(`answer ${i}`, click, pressed(i === state.answer),
        h("span", {}, h("span", { lang: answer_language() }, text || "(empty)", is_end(ids.at(-1)) ? "" : " …"),
          about().value ? ` ${value_of(ids)}` : null),
        " ", h("small", {}, `score ${rounded}`)));
    };
    const names = gone();
    fill(places.beam_of, names.length ? h("p", {}, "This is the beam of the model without ", h("strong", {}, listed(names)), ".") : null);
    fill(places.answers, h("h3", {}, answers.length > 1 ? "The finished answers, best first" : "The finished answer"),
      h("ol", {}, ...answers.map(answer)),
      h("p", { class: "touch-note" }, "The score is the log-probability of the answer, divided by ((5 + n) / 6)^0.6, where n is its number of tokens with EOS. "
        + "Without the division, short answers would win too often. The closer to 0, the better. ",
        h("a", { href: "22_search.html#length-penalty" }, "Chapter 22")),
      h("p", { class: "touch-note" }, `A column has up to ${state.beam_size} beginnings that go on, and besides them the answers that end there. The search `
        + "stops when no beginning can still beat the best answer, so there may be fewer answers than the beam is wide."));

    // those that were kept, in columns; a path leads to the chosen answer
    const is_kept = (candidate, t) => candidate.state === "finished" || (candidate.state === "alive" && t + 1 < steps.length);
    const columns = steps.map((candidates, t) => candidates.map((candidate, place) => ({ ...candidate, place }))
      .filter(candidate => is_kept(candidate, t))).filter(column => column.length);
    const chosen = String(answers[state.answer].ids);
    const on_path = ids => `${chosen},`.startsWith(`${ids},`);
    const widths = columns.map(column => Math.ceil(Math.max(...column.map(({ ids, log_prob }) =>
      16 + Math.max(width_of(word(ids.at(-1)), 16), width_of(percent(Math.exp(log_prob)), 12.5))))));
    const x = t => widths.slice(0, t).reduce((sum, width) => sum + width + GAP, 0);
    const y = rank => rank * (BOX_HEIGHT + 8);

    const paths = [];
    const boxes = [];
    columns.forEach((column, t) => column.forEach((box, rank) => {
      const hot = on_path(box.ids);
      const goes_on = box.state === "finished" || columns[t + 1]?.some(next => next.parent === box.place);
      const from = t ? columns[t - 1].findIndex(before => before.place === box.parent) : 0;
      if (t) {
        const [y1, y2] = [y(from) + BOX_HEIGHT / 2, y(rank) + BOX_HEIGHT / 2];
        const [x1, x2] = [x(t) - GAP, x(t)];
        paths.push(h("path", { d: `M${x1} ${y1} C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}`, class: hot ? "hot" : "" }));
      }
      boxes.push(h("span", { class: `touch-box ${hot ? "hot" : ""} ${goes_on ? "" : "dead"}`, style: `width: ${widths[t]}px; left: ${x(t)}px; top: ${y(rank)}px` },
        h("span", {}, word(box.ids.at(-1))), h("small", {}, percent(Math.exp(box.log_prob)))));
    }));
    const [width, height] = [x(columns.length) - GAP, y(Math.max(...columns.map(column => column.length)))];
    fill(places.tree, h("div", { class: "touch-scroll", onscroll: fade, tabindex: "0", role: "group", "aria-label": "The beam as a tree, scrolls sideways" },
      h("div", { class: "touch-canvas", style: `width: ${width}px; height: ${height}px` },
        h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...paths), ...boxes)));

    // to where the path leaves that of the best answer
    const branch = answers[state.answer].ids.findIndex((id, t) => id !== answers[0].ids[t]);
    places.tree.firstChild.scrollLeft = branch > 1 ? x(branch - 1) : 0;
    fade();
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
