/* Every head as a small picture that can be chosen. */

const Heads = (() => {
  "use strict";

  const { element, em, place, fill, button, pressed } = Elements;
  const { state } = State;

  const ROW = 10;  // of a word, in the units of the picture

  function choose(layer, head) {
    Object.assign(state, { layer, head });
    Page.draw_attention();
  }

  function draw() {
    const { n_layers } = State.config();
    const layers = [...Array(n_layers).keys()].map(draw_layer);
    fill(place("heads"),
      element("h3", {}, "Every head"),
      element("p", {}, "A head is one of several lookups that run side by side. ", layers_are(n_layers),
        "Each small picture is one head (“all” is their average), drawn like the big one. ",
        ...about_links(), " Click one to see it large."),
      ...layers,
      // on a phone the large picture is out of sight
      element("p", { class: "touch-caption-again", "aria-hidden": "true" }, place("caption").textContent));
  }

  const layers_are = n_layers => n_layers === 1 ? "" : `There are ${n_layers} layers of them, one after the other. `;

  // what stands below each picture
  function about_links() {
    const { queries, keys } = Attention.sides(state.part);
    const { unit, language } = State.about();
    if (state.key !== null) {
      const key = em(keys[state.key], state.part === "decoder self" ? language : null);
      return ["The label says what looks at ", key, " most."];
    }

    const query = queries[Attention.selected_query()];
    const looking = query === "?" ? `the next ${unit}` : em(query, state.part === "encoder self" ? null : language);
    return ["The label says what ", looking, " looks at most."];
  }

  // the mean of all heads, then each of them
  function draw_layer(layer) {
    const { n_heads } = State.config();
    const heads = n_heads > 1 ? [null, ...Array(n_heads).keys()] : [0];
    const name = `Layer ${layer + 1}`;
    return element("div", { class: "touch-layer", role: "group", "aria-label": name },
      element("span", { class: "touch-layer-name", "aria-hidden": "true" }, name),
      ...heads.map(head => draw_head(layer, head)));
  }

  function draw_head(layer, head) {
    const { part, key } = state;
    const { queries, keys } = Attention.sides(part);
    const query = Attention.selected_query();
    const weights = Attention.weights_of(part, layer, head);

    const is_hot = (q, k) => key === null ? q === query : k === key;
    const n_rows = Math.max(queries.length, keys.length);
    const picture = Attention.lines_in_rows(weights, n_rows, ROW, { is_hot, smallest: 0.05 });

    // the strongest of the lines that stand out
    const hot = key === null ? weights[query] : weights.map(row => row[key] || 0);
    const link = Attention.largest(hot, key === null ? keys : queries, 1);

    // its layer is only heard: those who see it have a name at the beginning of the row
    const is_gone = Attention.is_gone(part, layer, head);
    const name = `${head === null ? "all" : `head ${head + 1}`}${is_gone ? ", gone" : ""}`;
    const attributes = {
      ...pressed(state.layer === layer && state.head === head),
      class: is_gone ? "gone" : null,
    };
    return button(`head ${layer} ${head}`, () => choose(layer, head), attributes,
      picture,
      element("span", { class: "touch-said" }, `Layer ${layer + 1}, `),
      element("span", {}, name),
      " ",
      is_gone ? null : element("span", { class: "touch-link" }, link || "–"));
  }

  return { draw };
})();
