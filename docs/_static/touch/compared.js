/* The answers with everything and without what was taken away, side by side, each under a picture of its attention. */

const Compared = (() => {
  "use strict";

  const { element, em, place, fill, button, pressed, fade, percent, listed } = Elements;
  const { state } = State;

  const FADED = 40;  // pixels at a side where more can be scrolled to, as in touch.css

  const SMALLEST_CHANGE = 0.02;  // of a probability, to be named
  const SMALLEST_LINE_CHANGE = 0.1;  // of a weight, to be seen

  // ---- Drawing ----

  let answers = null;   // [whole, broken], as greedy_decode returned them
  let pictures = [];    // those on the page: { scroll, between, above, below, weights, query }

  function draw(both) {
    answers = both;
    draw_panes();
    fill(place("verdict"), ...verdict(...answers));
  }

  // after another head or word was chosen: the answers are the same
  function draw_panes() {
    const missing = State.missing();
    const [whole, broken] = answers;
    const [kept_whole, kept_broken] = kept_words(whole.ids, broken.ids);
    const t = state.compared ?? decisive_step(whole, broken);

    pictures = [];
    const with_everything = draw_answer("whole", whole, {}, kept_whole, t);
    const without = missing.length ? draw_answer("broken", broken, state.without, kept_broken, t)
      : [element("p", {}, "Flip one of the switches below.")];
    fill(place("compare"),
      pane("whole", "With everything", with_everything),
      pane("broken", heading_without(whole, broken), without));
    draw_legend();
    pictures.forEach(scroll_to_chosen);
    draw_lines();
    watch_sizes();
  }

  // on a phone it's what stays in sight, so it says what became of the answer
  function heading_without(whole, broken) {
    const missing = Parts.missing_in_short(state.without);
    if (!missing.length) return "Without …";
    return `Without ${listed(missing)}: ${State.same_ids(whole, broken) ? "the same answer" : "another answer"}`;
  }

  function draw_legend() {
    const { label } = Parts.ATTENTION[state.part];
    const heads = Attention.name_of_chosen({}).toLowerCase();
    place("legend").replaceChildren(`A percentage is the probability of the ${State.about().unit} above it. The lines are `
      + `the attention that you chose at the top of the page: ${label}, ${heads}. Click in an answer to see others.`);
  }

  function pane(kind, title, content) {
    return element("div", { class: `touch-pane ${kind}` }, element("h3", {}, title), ...content);
  }

  // where PAD is read most, if it is; where two answers begin to differ, or the probability of a word changes most; or
  // else the word that is looked at
  function decisive_step(whole, broken) {
    if (state.without.padding_mask && state.part === "decoder cross") return step_that_reads_pad(broken);
    if (State.same_ids(whole, broken)) return largest_change(whole, broken).t ?? state.step;
    return whole.ids.findIndex((id, t) => id !== broken.ids[t]);
  }

  function step_that_reads_pad(broken) {
    const { part, layer, head } = state;
    const { keys } = Attention.sides(part, broken, true);
    const on_pad = weights => weights.reduce((sum, weight, k) => sum + (keys[k] === "PAD" ? weight : 0), 0);
    const all = Attention.weights_of(part, layer, head, broken, state.without).map(on_pad);
    return all.indexOf(Math.max(...all));
  }

  // in both answers
  function look_at(t) {
    Object.assign(state, { compared: t, part: State.part_of_answer() });
    Page.draw_attention();
  }

  // an answer, and the words it looks at; `t` is the step that stands out, and `kept` has those of the words that both
  // answers have
  function draw_answer(name, run, without, kept, t) {
    const { part, layer, head } = state;
    const { queries, keys } = Attention.sides(part, run, true);
    const weights = Attention.weights_of(part, layer, head, run, without);
    const step = Math.min(t, run.ids.length - 1);
    const query = part === "encoder self" ? state.word : step;

    const tokens = run.ids.map((_, i) => draw_token(name, run, i, { is_chosen: i === step, is_kept: kept.has(i) }));
    const key_words = short(keys).map((label, k) =>
      element("span", { style: `--weight: ${(weights[query][k] || 0).toFixed(3)}` }, label));

    // in the encoder the words look at each other, and the answer is below
    const query_words = part !== "encoder self" ? null
      : queries.map((label, q) => element("span", { class: q === query ? "hot" : null }, label));

    const between = element("div", { class: "touch-between", "aria-hidden": "true" });
    const row = words => element("div", { class: "touch-strip-words", "aria-hidden": "true" }, ...words);
    const scroll = element("div", { class: "touch-scroll", onscroll: () => fade(scroll) },
      element("div", { class: "touch-strip" },
        row(key_words), between, query_words ? row(query_words) : null, draw_tokens(tokens, run.ids)));
    pictures.push({ scroll, between, above: key_words, below: query_words || tokens, weights, query });

    const looks = Attention.is_gone(part, layer, head, without) ? "nothing: that is taken away"
      : Attention.largest(weights[query], keys) || "nothing much";
    const language = part === "encoder self" ? null : State.about().language;
    return [scroll, element("p", { class: "touch-strip-says" }, em(queries[query], language), ` looks at ${looks}`)];
  }

  // of a row of PADs only the first is named, so that it needs little room
  function short(labels) {
    return labels.map((label, i) => label === "PAD" && labels[i - 1] === "PAD" ? "·" : label);
  }

  function draw_tokens(tokens, ids) {
    const value = Answer.value_of(ids);
    return element("div", { class: "touch-tokens", lang: State.about().language },
      ...tokens,
      State.has_ended(ids) ? null : element("span", {}, "…"),
      value ? element("span", { lang: "en" }, value) : null);
  }

  // a token over its probability
  function draw_token(name, { ids, steps }, t, { is_chosen, is_kept }) {
    const attributes = { ...pressed(is_chosen), class: is_kept ? null : "changed" };
    return button(`${name} ${t}`, () => look_at(t), attributes,
      element("span", {}, State.word(ids[t])),
      " ",
      element("small", {}, percent(steps[t].probabilities[ids[t]])));
  }

  // they depend on where the words are on the page
  function draw_lines() {
    for (const picture of pictures) {
      picture.between.replaceChildren(lines_between(picture));
      fade(picture.scroll);
    }
  }

  // the lines follow the words when a window or a sidebar changes its size; of the pictures, because on a phone what is
  // around them has no box
  const sizes = new ResizeObserver(draw_lines);

  function watch_sizes() {
    sizes.disconnect();
    pictures.forEach(({ between }) => sizes.observe(between));
  }

  function scroll_to_chosen({ scroll }) {
    const chosen = scroll.querySelector("[aria-pressed=true]");
    const is_outside = chosen.offsetLeft + chosen.offsetWidth > scroll.clientWidth - FADED;
    scroll.scrollLeft = is_outside ? chosen.offsetLeft - scroll.clientWidth / 2 : 0;
  }

  // from the middle of a word above to the middle of one below
  function lines_between({ between, above, below, weights, query }) {
    const { x: left, width, height } = between.getBoundingClientRect();
    // in fractions of a pixel, which offsetLeft rounds
    const middle = word => {
      const box = word.getBoundingClientRect();
      return box.x + box.width / 2 - left;
    };
    const curve = (q, k) => {
      const [x1, x2] = [middle(above[k]), middle(below[q])];
      return `M${x1} 0 C${x1} ${height / 2} ${x2} ${height / 2} ${x2} ${height}`;
    };
    const is_hot = q => q === query;
    return Attention.lines(weights, { width, height, curve, is_hot, thickest: 5, smallest: 0.05 });
  }

  // ---- What the difference is, in a sentence ----

  function verdict(whole, broken) {
    if (!State.missing().length) return [];

    const said = State.same_ids(whole, broken) ? said_of_same(whole, broken) : said_of_changed(broken);
    const forced = state.forced.length
      ? [" Both begin with ", em(State.decoded(state.forced), State.about().language),
        ", up to what you picked, however improbable it is."] : [];
    const put_back = button("put back", Away.put_everything_back, { class: "touch-inline" }, "Put everything back");
    return [...said, ...forced, " ", put_back];
  }

  function said_of_changed(broken) {
    if (!broken.text) return ["The answer is now empty: the model ends it at once."];
    const and_goes_on = State.has_ended(broken.ids) ? "" : ", and doesn't end";
    return [`The answer changes${and_goes_on}. What differs is underlined.`];
  }

  // the probabilities may have changed, and the lines
  function said_of_same(whole, broken) {
    const { t, before, now } = largest_change(whole, broken);
    const look = same_lines() ? "" : " But look at the lines.";
    if (t === null) return [`No change in the answer, nor in its probabilities.${look}`];
    if (Math.abs(now - before) < SMALLEST_CHANGE) return [`No change in the answer, and little in its probabilities.${look}`];
    return ["No change in the answer. The probability of ", em(State.word(broken.ids[t]), State.about().language),
      ` changes most, from ${percent(before)} to ${percent(now)}.${look}`];
  }

  // whether no line of the two pictures visibly differs
  function same_lines() {
    const [one, other] = pictures.map(({ weights }) => weights);
    return one.every((row, q) => row.every((weight, k) => Math.abs(weight - other[q][k]) < SMALLEST_LINE_CHANGE));
  }

  // the place of the word whose probability changes most, in two answers of the same words; null if none visibly does
  function largest_change(whole, broken) {
    const probability = ({ ids, steps }, t) => steps[t].probabilities[ids[t]];
    const changes = broken.ids.map((_, t) => ({ t, before: probability(whole, t), now: probability(broken, t) }));
    if (changes.every(({ before, now }) => percent(before) === percent(now))) return { t: null };

    const size = ({ before, now }) => Math.abs(now - before);
    return changes.sort((a, b) => size(b) - size(a))[0];
  }

  // ---- Which words both have ----

  // the places of the words that both have. An end that comes too early, or too late, is a difference
  function kept_words(whole, broken) {
    const [in_whole, in_broken] = common(whole, broken);
    const fork = whole.findIndex((id, t) => id !== broken[t]);
    if (State.is_end(whole[fork])) in_whole.delete(fork);
    if (State.is_end(broken[fork])) in_broken.delete(fork);
    return [in_whole, in_broken];
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

  return { draw, draw_panes };
})();
