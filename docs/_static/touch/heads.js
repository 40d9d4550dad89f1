/* Every head as a small picture that can be chosen. */

const Heads = (() => {
  "use strict";

  const { element, place, fill, button, pressed } = Elements;
  const { state } = State;

  const ROW = 10;  // of a word, in the units of the picture

  function choose(layer, head) {
    Object.assign(state, { layer, head });
    Attention.draw();
  }

  function draw() {
    const { n_layers } = State.config();
    const layers = [...Array(n_layers).keys()].map(draw_layer);
    fill(place("heads"),
      element("h3", {}, "Every head"),
      element("p", {}, "Each small picture is one head: on the left what is looked at, on the right who looks. "
        + "Click one to see it large."),
      ...layers);
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
    const is_hot = (q, k) => key === null ? q === query : k === key;
    const height = ROW * Math.max(queries.length, keys.length);
    const picture = Attention.lines(Attention.weights_of(part, layer, head), height, ROW, is_hot, 0.05);

    const is_gone = Attention.is_gone(part, layer, head);
    const name = head === null ? "all heads" : `head ${head + 1}`;
    const label = `${head === null ? "all" : name}${is_gone ? ", gone" : ""}`;
    const attributes = {
      ...pressed(state.layer === layer && state.head === head),
      class: is_gone ? "gone" : null,
      "aria-label": `Layer ${layer + 1}, ${is_gone ? label : name}`,
    };
    return button(`head ${layer} ${head}`, () => choose(layer, head), attributes,
      picture, element("span", { "aria-hidden": "true" }, label));
  }

  return { draw };
})();
