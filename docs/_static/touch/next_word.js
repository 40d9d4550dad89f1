/* The bars: which words the model could write next, and how probable each is. */

const NextWord = (() => {
  "use strict";

  const { element, em, place, fill, button, pressed, percent } = Elements;
  const { state } = State;

  const N_BARS = 6;
  const SURE = 0.98;  // the other bars can't be seen then

  function pick(id) {
    State.pick(id);
    Page.draw_all();
    Beam.search_later();
  }

  // the most probable tokens; the one that was written is there, too
  function shown(probabilities, written) {
    const { pad_id, bos_id } = state.model;
    const ids = [...probabilities.keys()].filter(id => id !== pad_id && id !== bos_id);
    ids.sort((a, b) => probabilities[b] - probabilities[a]);

    const best = ids.slice(0, N_BARS);
    if (written !== null && !best.includes(written)) best[N_BARS - 1] = written;
    return best;
  }

  function draw() {
    const { step, run } = state;
    const { probabilities, best } = run.steps[step];
    const is_pending = State.is_pending(step);
    const written = is_pending ? null : run.ids[step];

    const bar = (id, rank) => {
      const width = Math.max(0.5, 100 * probabilities[id]);
      return element("li", {}, button(`bar ${rank}`, () => pick(id), pressed(id === written),
        element("span", { class: "touch-bar-word", lang: State.about().language }, State.word(id)),
        " ",
        element("span", { class: "touch-bar" }, element("span", { style: `width: ${width}%` })),
        element("span", { class: "touch-bar-number" }, percent(probabilities[id]))));
    };

    const { unit } = State.about();
    const is_sure = probabilities[best] > SURE ? "The model is sure. " : "";
    const hint = is_pending ? `Click a ${unit} to write it.`
      : `Click another ${unit}, and the model goes on from there.`;

    // the new answer may be out of sight
    const was_picked = written !== null && written !== best;
    const { language } = State.about();
    const answer = State.decoded(run.ids) ? Answer.in_both_languages(run.ids) : ["empty"];
    const now = state.complete ? [" Now its answer is ", element("strong", {}, ...answer), "."] : [];
    const note = () => element("p", { class: "touch-note" },
      "You picked ", em(State.word(written), language), ". The model would have written ",
      em(State.word(best), language), ".", ...now);

    fill(place("bars"),
      element("h3", {}, ...question(run.ids.slice(0, step))),
      element("p", {}, is_sure, hint),
      element("ol", {}, ...shown(probabilities, written).map(bar)),
      was_picked ? note() : null);
  }

  // the last words before it
  function question(before) {
    if (!before.length) return ["What comes first?"];
    const last = State.words(before).slice(-4).join(State.is_of_words() ? " " : "");
    return ["What comes after ", em(before.length > 4 ? `… ${last}` : last, State.about().language), "?"];
  }

  return { draw };
})();
