/* The answer, word by word, and the buttons that write it. */

const Answer = (() => {
  "use strict";

  const { element, em, place, fill, button, pressed, listed } = Elements;
  const { state } = State;

  // ---- Actions ----

  function write_next() {
    State.write_next();
    Page.draw_explorer();
  }

  function write_rest() {
    State.write_rest();
    Page.draw_explorer();
  }

  function look_at(step) {
    State.look_at(step);
    Page.draw_explorer();
  }

  // ---- Drawing ----

  function draw() {
    draw_banner();
    draw_words();
    draw_steps();
  }

  function draw_banner() {
    const missing = State.missing();
    const put_back = button("restore", Away.put_everything_back, {}, "Put everything back");
    const banner = element("p", {},
      "This is the model without ", element("strong", {}, listed(missing)), ". ", put_back);
    fill(place("banner"), missing.length ? banner : null);
  }

  // each token can be clicked, as in the picture of attention
  function draw_words() {
    const ids = State.written();
    const tokens = ids.filter(id => !State.is_end(id)).map((id, t) =>
      button(`token ${t}`, () => look_at(t), pressed(t === state.step), State.word(id)));

    const text = State.decoded(ids) || (ids.length ? "(nothing)" : "…");
    const goes_on = state.complete && !State.has_ended(ids) ? " … and so on" : "";
    const value = state.complete ? value_of(ids) : "";

    // beside a text that was refused, or not yet sent, stands the answer to the one before
    const label = Sentence.is_answered() ? ["Its answer: "] : ["Its answer to ", em(state.text), ": "];

    const attributes = { lang: State.about().language, class: State.is_of_words() ? "blanks" : "" };
    fill(place("answer"),
      element("span", { class: "touch-label" }, ...label),
      element("span", attributes, ...tokens, tokens.length ? "" : text, goes_on),
      " ",
      value ? element("span", { class: "touch-label touch-value" }, value) : null);
    place("gloss").textContent = gloss(ids) && `word for word: ${gloss(ids)}`;
  }

  // the answer for those who hear the page
  function spoken() {
    const ids = State.written();
    const goes_on = state.complete && !State.has_ended(ids) ? " and so on" : "";
    const value = state.complete ? value_of(ids) : "";
    return `Its answer: ${State.decoded(ids) || "nothing"}${goes_on}${value && `, ${value}`}.`;
  }

  // word for word in English, for those who can't read the language; "" where we have no words for it
  function gloss(ids) {
    const { gloss } = State.about();
    if (!gloss) return "";
    return gloss(State.words(ids.filter(id => !State.is_end(id)))).join(" ");
  }

  // an answer in a sentence of the page, perhaps with its gloss
  function in_both_languages(ids) {
    const meaning = gloss(ids) || value_of(ids);
    return [em(State.decoded(ids), State.about().language), meaning ? ` (${meaning})` : ""];
  }

  // "= 77", for those who can't read the language
  function value_of(ids) {
    const { value } = State.about();
    if (!value) return "";
    const number = value(State.decoded(ids));
    return number === null ? "(no number)" : `= ${number.toLocaleString("en")}`;
  }

  function draw_steps() {
    const { complete, run, begin } = state;
    const { unit, language } = State.about();
    const next = complete ? again()
      : [`Write the next ${unit}: `, element("span", { lang: language }, State.word(run.ids[begin.length]))];
    fill(place("steps"),
      button("next", write_next, { class: "touch-main" }, ...next),
      complete ? null : button("rest", write_rest, {}, "Write the rest"));
  }

  function again() {
    const { unit, language } = State.about();
    const picked = State.decoded(state.forced);
    if (!picked) return [`Write it again, ${unit} by ${unit}`];
    return ["Go on from “", element("span", { lang: language }, picked), `”, ${unit} by ${unit}`];
  }

  return { draw, draw_words, spoken, look_at, value_of, gloss, in_both_languages };
})();
