/* Beam search: the answers it found, and the tree of all beginnings that were kept. */

const Beam = (() => {
  "use strict";

  const { element, em, place, fill, button, pressed, choices, fade, percent, listed } = Elements;
  const { state } = State;

  // pixels, as in touch.css
  const BOX_HEIGHT = 40;
  const BETWEEN_BOXES = 8;
  const BETWEEN_COLUMNS = 28;
  const BOX_PADDING = 16;
  const WORD_SIZE = 16;
  const PERCENT_SIZE = 12.5;

  // Where greedy decoding and the beam differ. For English → German there is no such sentence of the kind it learned:
  // we tried all 4,800. The Copier learned rows of up to 12 numbers, and this one has 13.
  const DIFFERENT = { name: "copier", text: "4 3 3 9 4 6 4 3 5 10 4 11 5" };

  // where several answers are nearly as good
  const UNSURE = { name: "cat", text: "I have seen a" };

  // ---- Searching ----

  let waiting = null;

  // it takes longer than a step, so the rest of the page comes first. What was found before belongs to another model or
  // sentence
  function search_later() {
    state.search = null;
    clearTimeout(waiting);
    waiting = setTimeout(search_now, 150);
  }

  // it begins with what was picked by hand, as the answer above does
  function search_now() {
    clearTimeout(waiting);
    const { model, without, beam_size, forced } = state;
    const src = State.source();

    // a broken model may never end its answers
    const max_length = State.missing().length ? State.max_length(src) : model.max_length(src);
    state.search = model.beam_search(src, { beam_size, begin: forced, max_length }, without);
    state.greedy = model.greedy_decode(src, { begin: forced, max_length }, without);
    state.chosen_answer = 0;
    draw();
  }

  function choose_size(size) {
    state.beam_size = size;
    search_now();
  }

  function choose_answer(i) {
    if (!state.search) return; // the answers on the page are about to be replaced
    state.chosen_answer = i;
    draw();
  }

  async function show({ name, text }) {
    if (!await Sentence.choose_model(name, {})) return;
    state.beam_size = 4;
    Sentence.use(text);
    search_now();
    place("beam_size").scrollIntoView();
  }

  // ---- Drawing ----

  function draw() {
    draw_sizes();
    draw_conditions();
    draw_answers();
    draw_tree();
    draw_example();
  }

  // what it is the beam of: a part may be missing, and its beginning given
  function draw_conditions() {
    const missing = State.missing();
    const model = missing.length
      ? element("p", {}, "This is the beam of the model without ", element("strong", {}, listed(missing)), ".") : null;
    const picked = em(State.decoded(state.forced) || "EOS", State.about().language);
    const beginning = state.forced.length
      ? element("p", {}, "All its answers begin with ", picked, ", up to what you picked. That beginning counts as "
        + "certain: 100 %.") : null;
    fill(place("beam_of"), element("p", {}, "What it reads: ", em(state.text)), model, beginning);
  }

  function draw_example() {
    const show_button = (key, example, label) => button(key, () => show(example), { class: "touch-inline" }, label);
    fill(place("beam_example"),
      element("h3", {}, "Where a beam helps"),
      element("p", {},
        "English → German is at least 99 % sure of every word, in all 4,800 sentences of the kind it learned. So the "
        + "beam and greedy decoding agree on each of them. It hesitates when a sentence isn't finished: ",
        show_button("beam unsure", UNSURE, UNSURE.text)),
      element("p", {},
        "Give the Copier 13 numbers, one more than it has ever seen. Greedy decoding misses the end and writes on. The "
        + "beam stops after the 13th, as it should. ",
        show_button("beam example", DIFFERENT, "Show me where they differ")));
  }

  function draw_sizes() {
    const options = [1, 2, 3, 4, 5].map(value => ({ value, text: String(value), title: `Beam of ${value}` }));
    fill(place("beam_size"),
      element("span", { "aria-hidden": "true" }, "Beginnings kept: "),
      choices("Beam size", options, state.beam_size, choose_size));
  }

  // Made once, so that it stays unfolded. The formula is that of `penalty` in transformer.js
  const about_score = element("details", {},
    element("summary", { "data-key": "score" }, "How is the score computed?"),
    element("p", {},
      "It is the log-probability of the answer, divided by ((5 + n) / 6)^0.6, where n is its number of tokens with "
      + "EOS. Without the division, short answers would win too often. The closer to 0, the better. ",
      element("a", { href: "3_decoding/4_beam_search.html#length-penalty" }, "Chapter 3.4")));

  function draw_answers() {
    const { answers } = state.search;
    fill(place("answers"),
      element("h3", {}, answers.length > 1 ? "The finished answers, best first" : "The finished answer"),
      element("ol", {}, ...answers.map(draw_answer)),
      element("p", { class: "touch-greedy" }, ...beside_greedy()),
      about_score);
  }

  function draw_answer({ ids, text, score }, i) {
    const goes_on = State.has_ended(ids) ? "" : " …";
    const value = Answer.value_of(ids);
    const words = element("span", {},
      element("span", { lang: State.about().language }, text || "(empty)", goes_on),
      value ? ` ${value}` : null);
    return element("li", {}, button(`answer ${i}`, () => choose_answer(i), pressed(i === state.chosen_answer),
      words, " ", element("small", {}, `score ${two_digits(score)}`)));
  }

  // whether greedy decoding, which the rest of the page uses, writes the same
  function beside_greedy() {
    const { search, greedy, beam_size } = state;
    const { unit, language } = State.about();
    if (beam_size === 1) return [`A beam of 1 is greedy decoding: always the most probable next ${unit}.`];
    const [best] = search.answers;
    if (State.same_ids(best, greedy)) return ["Greedy decoding, without a beam, writes the best of them, too."];

    // as much of it as at the top of the page
    const shown = greedy.ids.slice(0, State.max_length(State.source()));
    const words = element("span", { lang: language }, State.decoded(shown) || "(empty)");
    const goes_on = State.has_ended(shown) ? "" : " … and so on";
    const fork = first_difference(best.ids, greedy.ids);
    const next = ids => em(State.word(ids[fork]), language);
    return [
      element("strong", {}, "Greedy decoding, without a beam, writes something else: "), words, goes_on,
      ". They part at ", `${unit} ${fork + 1}: the best answer has `, next(best.ids), " there, and greedy decoding ",
      next(greedy.ids), ". The tree shows greedy decoding's way in double frames, as long as the beam kept it.",
    ];
  }

  const first_difference = (one, other) => one.findIndex((id, t) => id !== other[t]);

  // with a real minus sign, and no -0.00
  function two_digits(number) {
    const rounded = Math.round(100 * number) / 100 || 0;
    return rounded.toFixed(2).replace("-", "−");
  }

  // ---- The tree ----

  // the candidates of each step that were kept; each knows its index among all candidates of its step.
  // Only the last column can be empty, where the search stopped for an answer that it had found before
  function kept_columns(steps) {
    const is_kept = (candidate, t) => {
      const goes_on = candidate.state === "alive" && t + 1 < steps.length;
      return candidate.state === "finished" || goes_on;
    };
    const columns = steps.map((candidates, t) => candidates
      .map((candidate, index) => ({ ...candidate, index }))
      .filter(candidate => is_kept(candidate, t)));
    return columns.filter(column => column.length);
  }

  function draw_tree() {
    const { search, greedy } = state;
    const { answers, steps } = search;
    const chosen = answers[state.chosen_answer];
    const listed_ids = answers.map(({ ids }) => String(ids));
    const columns = kept_columns(steps);
    const widths = columns.map(width_of_column);

    // where a column and a row begin
    const x = t => widths.slice(0, t).reduce((sum, width) => sum + width + BETWEEN_COLUMNS, 0);
    const y = rank => rank * (BOX_HEIGHT + BETWEEN_BOXES);

    const paths = [];
    const boxes = [];
    columns.forEach((column, t) => column.forEach((candidate, rank) => {
      const is_hot = is_beginning(candidate.ids, chosen.ids);
      const is_greedy = !is_hot && is_beginning(candidate.ids, greedy.ids);
      const is_dead = candidate.state === "finished" ? !listed_ids.includes(String(candidate.ids))
        : !columns[t + 1]?.some(next => next.parent === candidate.index);
      const kinds = { hot: is_hot, greedy: is_greedy, dead: is_dead };
      boxes.push(draw_box(candidate, kinds, { left: x(t), top: y(rank), width: widths[t] }));

      if (t > 0) {
        const parent = columns[t - 1].findIndex(before => before.index === candidate.parent);
        paths.push(draw_path(x(t), y(parent) + BOX_HEIGHT / 2, y(rank) + BOX_HEIGHT / 2, is_hot));
      }
    }));

    const width = x(columns.length) - BETWEEN_COLUMNS;
    const height = y(Math.max(...columns.map(column => column.length)));
    const canvas = element("div", { class: "touch-canvas", style: `width: ${width}px; height: ${height}px` },
      element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...paths),
      ...boxes);
    const scroll = element("div", {
      class: "touch-scroll",
      onscroll: fade_tree,
      tabindex: "0",
      role: "group",
      "aria-label": "The beam as a tree, scrolls sideways",
    }, canvas);
    fill(place("tree"), scroll, element("p", { class: "touch-note" }, about_columns()));

    // scroll to where the path leaves that of the best answer; and the best one leaves that of greedy decoding
    const other = state.chosen_answer ? answers[0] : greedy;
    const fork = first_difference(chosen.ids, other.ids);
    place("tree").firstChild.scrollLeft = fork > 1 ? x(fork - 1) - BETWEEN_COLUMNS : 0;
    fade_tree();
  }

  function about_columns() {
    const { beam_size } = state;
    const [beginnings, answers] = beam_size === 1 ? ["beginning", "answer"]
      : [`${beam_size} beginnings`, `${beam_size} finished answers`];
    return `Each column: the best ${beginnings}, and answers that just ended (EOS). At the end the best ${answers} `
      + "are left, or fewer: the search stops when no beginning could still beat the best answer, even if the rest of "
      + "it were certain.";
  }

  const is_beginning = (beginning, ids) => beginning.every((id, t) => id === ids[t]);

  // its classes are those of `kinds` that are true
  function draw_box({ ids, log_prob }, kinds, { left, top, width }) {
    const names = Object.keys(kinds).filter(kind => kinds[kind]).join(" ");
    return element("span", { class: `touch-box ${names}`, style: `width: ${width}px; left: ${left}px; top: ${top}px` },
      element("span", { lang: State.about().language }, State.word(ids.at(-1))),
      element("small", {}, percent(Math.exp(log_prob))));
  }

  // from the column before to the one at x
  function draw_path(x, y_before, y, is_hot) {
    const before = x - BETWEEN_COLUMNS;
    const middle = x - BETWEEN_COLUMNS / 2;
    const d = `M${before} ${y_before} C${middle} ${y_before} ${middle} ${y} ${x} ${y}`;
    return element("path", { d, class: is_hot ? "hot" : "" });
  }

  function width_of_column(column) {
    const widths = column.map(({ ids, log_prob }) => Math.max(
      width_of_text(State.word(ids.at(-1)), WORD_SIZE),
      width_of_text(percent(Math.exp(log_prob)), PERCENT_SIZE)));
    return Math.ceil(BOX_PADDING + Math.max(...widths));
  }

  const pen = document.createElement("canvas").getContext("2d");

  // in bold, as the chosen path is
  function width_of_text(text, size) {
    pen.font = `600 ${size}px ${getComputedStyle(place("tree")).fontFamily}`;
    return pen.measureText(text).width;
  }

  function fade_tree() {
    const scroll = place("tree")?.firstChild; // none while the page loads
    if (scroll) fade(scroll);
  }

  addEventListener("resize", fade_tree);

  return { search_later };
})();
