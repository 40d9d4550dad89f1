/* The picture of attention: lines from the words that are looked at, on the left, to those that look, on the right. */

const Attention = (() => {
  "use strict";

  const { element, em, place, say, fill, button, pressed, choices, percent, listed } = Elements;
  const { state } = State;

  const ROW = 36;               // pixels of a word, as in touch.css
  const SMALLEST_NAMED = 0.05;  // smaller weights are drawn, and not put into words

  // ---- Weights ----

  // the heads of a layer that weren't taken away
  function heads_left(part, layer, without = state.without) {
    const { cross_attention, head } = without;
    if (cross_attention && part === "decoder cross") return [];

    const all = [...Array(State.config().n_heads).keys()];
    const is_here = head && head.part === part && head.layer === layer;
    return is_here ? all.filter(i => i !== head.head) : all;
  }

  // of one head, or of all of them if `head` is null
  function heads_read(part, layer, head, without = state.without) {
    const left = heads_left(part, layer, without);
    return head === null ? left : left.filter(i => i === head);
  }

  const is_gone = (part, layer, head, without = state.without) => !heads_read(part, layer, head, without).length;

  const is_unmasked = (part, without = state.without) => part === "decoder self" && Boolean(without.causal_mask);

  // what each query looks at, in one head or in the mean of those that are left; zeros where all were taken away.
  // `run` is what greedy_decode returned, `without` what was missing then
  function weights_of(part, layer, head, run = state.run, without = state.without) {
    const { steps } = run;
    const read = heads_read(part, layer, head, without);
    const [first] = steps[0].attention[part][layer];
    const n_queries = part === "encoder self" ? first.rows : steps.length;

    return [...Array(n_queries).keys()].map(query => {
      const heads = steps[step_of(part, query, steps, without)].attention[part][layer];
      const mean = new Float32Array(heads[0].cols);
      for (const i of read) {
        heads[i].row(query).forEach((weight, k) => { mean[k] += weight / read.length; });
      }
      return mean;
    });
  }

  // the step that has the weights of a query
  function step_of(part, query, steps, without) {
    if (part === "encoder self") return 0;

    // without the causal mask, words look at later ones: the last step has them all
    return is_unmasked(part, without) ? steps.length - 1 : query;
  }

  // the words that look, and those they look at
  function sides(part, run = state.run, complete = state.complete) {
    const sentence = State.words(State.source());
    const answer = State.words(run.ids);
    if (!complete) answer[answer.length - 1] = "?"; // computed, and not yet written

    const has_read = State.words([state.model.bos_id, ...run.ids.slice(0, -1)]);
    return {
      queries: part === "encoder self" ? sentence : answer,
      keys: part === "decoder self" ? has_read : sentence,
    };
  }

  const selected_query = () => state.part === "encoder self" ? state.word : state.step;

  // ---- Lines ----

  // a line for each weight, in a box of `width` and `height`. `curve(q, k)` says where it goes, `is_hot(q, k)` whether
  // it stands out; `thickest` is the width of the line of a weight of 1
  function lines(weights, { width, height, curve, is_hot, thickest, smallest = 0.01 }) {
    const cold = [];
    const hot = [];
    weights.forEach((of_query, q) => of_query.forEach((weight, k) => {
      if (weight < smallest) return;
      const path = element("path", {
        d: curve(q, k),
        class: is_hot(q, k) ? "hot" : "",
        "data-q": q,
        "data-k": k,
        style: `--weight: ${weight.toFixed(3)}`,
        "stroke-width": (0.5 + weight * thickest).toFixed(1),
      });
      (is_hot(q, k) ? hot : cold).push(path);
    }));

    // those that stand out on top
    const box = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    return element("svg", box, ...cold, ...hot);
  }

  // from the keys on the left to the queries on the right, in rows of one height; stretched to any width
  function lines_in_rows(weights, n_rows, row, options) {
    const curve = (q, k) => {
      const [y1, y2] = [(k + 0.5) * row, (q + 0.5) * row];
      return `M0 ${y1} C50 ${y1} 50 ${y2} 100 ${y2}`;
    };
    return lines(weights, { width: 100, height: n_rows * row, curve, thickest: row / 6, ...options });
  }

  // ---- Drawing ----

  function choose_part(part) {
    Object.assign(state, { part, key: null });
    Page.draw_attention();
  }

  // who is looked at by whom: a click on a key shows it, another click hides it
  function choose_key(key) {
    state.key = key === state.key ? null : key;
    draw();
    say(place("caption").textContent);
  }

  function choose_query(query) {
    if (state.part !== "encoder self") {
      Answer.look_at(query);
      return;
    }
    Object.assign(state, { word: query, key: null });
    Page.draw_attention();
  }

  function draw() {
    const options = Object.entries(Parts.ATTENTION).map(([value, { label }]) => ({ value, text: label }));
    fill(place("parts"), choices("Attention of", options, state.part, choose_part));

    draw_picture();

    const { says, unmasked } = Parts.ATTENTION[state.part];
    const is_all_gone = state.part === "decoder cross" && state.without.cross_attention;
    const said = is_unmasked(state.part) ? unmasked : says;
    fill(place("says"), is_all_gone ? null : element("p", {}, said(State.about())));
    Heads.draw();
  }

  function draw_picture() {
    const { part, layer, head } = state;
    const { queries, keys } = sides(part);
    const weights = weights_of(part, layer, head);
    const n_rows = Math.max(queries.length, keys.length);
    const chosen = { query: selected_query(), key: state.key };
    const { language } = State.about();

    const drawn = lines_in_rows(weights, n_rows, ROW, { is_hot: () => false });
    const percentage = () => element("span", { class: "touch-weight" });

    // to point at a word shows its lines, its percentages and its sentence, until one points elsewhere
    const pointed = at => ({ onpointerenter: () => show(at), onpointerleave: () => show(chosen) });

    const key_buttons = keys.map((label, k) => {
      const attributes = { ...pressed(k === chosen.key), ...pointed({ query: chosen.query, key: k }) };
      return button(`key ${k}`, () => choose_key(k), attributes, percentage(), label);
    });

    const query_buttons = queries.map((label, q) => {
      const attributes = {
        ...pressed(q === chosen.query && chosen.key === null),
        ...pointed({ query: q, key: null }),
        "aria-label": label === "?" ? "the next word" : null,
      };
      return button(`query ${q}`, () => choose_query(q), attributes, label, percentage());
    });

    // the lines of one query, or of one key
    function show({ query, key }) {
      light(drawn, query, key);

      const of_keys = keys.map((_, k) => weights[query][k] || 0);
      const of_queries = queries.map((_, q) => key === null ? 0 : weights[q][key] || 0);
      key_buttons.forEach((button, k) => {
        if (key === null) set_weight(button, of_keys[k], of_keys[k]);
        else set_weight(button, k === key ? 1 : 0, 0);
      });
      query_buttons.forEach((button, q) => set_weight(button, of_queries[q], of_queries[q]));

      place("caption").replaceChildren(...caption(queries, keys, weights, query, key));
    }

    const input = `the ${State.about().input}`;
    const headings = [
      element("span", {}, part === "decoder self" ? "what it has read" : input),
      element("span", {}, part === "encoder self" ? input : "what it writes"),
    ];
    const language_of_keys = part === "decoder self" ? language : null;
    const language_of_queries = part === "encoder self" ? null : language;
    fill(place("drawing"),
      element("div", { class: "touch-column-names", "aria-hidden": "true" }, ...headings),
      element("div", { class: "touch-words" },
        element("div", { class: "touch-side keys", role: "group", "aria-label": "Looked at", lang: language_of_keys },
          ...key_buttons),
        element("div", { class: "touch-lines", style: `height: ${n_rows * ROW}px` }, drawn),
        element("div", { class: "touch-side queries", role: "group", "aria-label": "Looking", lang: language_of_queries },
          ...query_buttons)));
    show(chosen);
  }

  // make the lines of a query stand out, or those of a key if there is one
  function light(drawn, query, key) {
    const hot = [];
    for (const path of drawn.children) {
      const is_hot = key === null ? Number(path.dataset.q) === query : Number(path.dataset.k) === key;
      path.classList.toggle("hot", is_hot);
      if (is_hot) hot.push(path);
    }
    drawn.append(...hot); // on top of the others
  }

  // the colour of a word, and the number beside it
  function set_weight(button, colour, weight) {
    button.style.setProperty("--weight", colour.toFixed(3));
    button.querySelector(".touch-weight").textContent = weight >= SMALLEST_NAMED ? percent(weight) : "";
  }

  // ---- The picture in a sentence ----

  function caption(queries, keys, weights, query, key) {
    const { layer, head, part } = state;
    if (state.without.cross_attention && part === "decoder cross") {
      return [`Taken away: the decoder gets nothing from the ${State.about().input}.`];
    }
    if (is_gone(part, layer, head)) return ["This head is taken away: nothing of what it reads arrives."];

    const where = name_of_chosen();
    const { unit, language } = State.about();
    const next_word = label => label === "?" ? `the next ${unit}` : label;
    if (key !== null) {
      const by = largest(weights.map(row => row[key] || 0), queries.map(next_word));
      const looked_at = em(keys[key], part === "decoder self" ? language : null);
      return [`${where}: `, looked_at, ` is looked at by ${by || "nobody much"}.`];
    }

    const looks = `${largest(weights[query], keys) || "nothing much"}.${about_eos(weights[query], keys)}`;
    if (part === "encoder self") return [`${where}: `, em(queries[query]), " looks at ", looks];

    // the looking comes before the word
    const next = queries[query] === "?" ? `the next ${unit}` : em(queries[query], language);
    if (is_unmasked(part)) {
      return [`${where}, without the causal mask: the place that wrote `, next, " looks at ", looks];
    }
    return ["To choose ", next, ", the model looks at ", looks, ` (${where}.)`];
  }

  // "Head 2 of layer 1"
  function name_of_chosen(without = state.without) {
    const { n_heads, n_layers } = State.config();
    const { part, layer, head } = state;
    const n_left = heads_left(part, layer, without).length;

    let who = `Head ${head + 1}`;
    if (n_heads === 1) who = "The only head";
    else if (head === null) who = n_left === n_heads ? "Average of all heads" : `Average of the other ${n_left} heads`;
    return n_layers === 1 ? who : `${who} of layer ${layer + 1}`;
  }

  // one expects it to look at a word
  function about_eos(weights, keys) {
    const is_first = weights.indexOf(Math.max(...weights)) === keys.indexOf("EOS");
    if (state.part !== "decoder cross" || !is_first) return "";
    const { input } = State.about();
    return ` EOS is the end of the ${input}, and the encoder has gathered a bit of everything there.`;
  }

  // "seen (99 %) and cat (7 %)": up to three
  function largest(weights, labels, count = 3) {
    if (are_even(weights)) return "all about equally";
    const named = pads_together([...weights], labels).filter(({ weight }) => weight >= SMALLEST_NAMED);
    named.sort((a, b) => b.weight - a.weight);
    return listed(named.slice(0, count).map(({ label, weight }) => `${label} (${percent(weight)})`));
  }

  // each PAD gets little, and all of them much
  function pads_together(weights, labels) {
    const each = weights.map((weight, i) => ({ label: labels[i], weight }));
    const pads = each.filter(({ label }) => label === "PAD");
    if (!pads.length) return each;

    const weight = pads.reduce((sum, pad) => sum + pad.weight, 0);
    return [...each.filter(({ label }) => label !== "PAD"), { label: `the ${pads.length} PADs together`, weight }];
  }

  // no word stands out; those that may not be seen have no weight
  function are_even(weights) {
    const seen = weights.filter(weight => weight > 0);
    const mean = seen.reduce((sum, weight) => sum + weight, 0) / seen.length;
    return seen.length > 3 && Math.max(...seen) < 1.2 * mean;
  }

  return { draw, weights_of, sides, selected_query, lines, lines_in_rows, is_gone, largest, name_of_chosen };
})();
