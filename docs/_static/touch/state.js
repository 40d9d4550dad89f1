/* What the reader has chosen, and what the model answers to it. Nothing in this file draws.

   The answer has a beginning, `begin`: what was written step by step, or picked by hand. Either the model goes on from
   there alone (`complete`), or it waits for the next step. */

const State = (() => {
  "use strict";

  const state = {
    // the model, and the sentence it reads
    name: null,
    model: null,
    text: "",

    // what is taken away, as in transformer.js; `gone_head` is the head that goes if one is to go
    without: {},
    gone_head: null,

    // the answer
    begin: [],
    forced: [],       // the beginning up to the last word that was picked by hand
    complete: true,
    run: null,        // what greedy_decode returned

    // what is looked at
    step: 0,          // the word of the answer
    word: 0,          // the word of the sentence, where the encoder is drawn
    key: null,        // a word that is looked at by others, if one was chosen instead
    part: "decoder cross",
    layer: 0,
    head: null,       // null: the mean of all heads

    compared: null,   // the place of a word in the two answers that are compared; null: the word that changes most

    // the beam
    beam_size: 4,
    search: null,     // what beam_search returned
    greedy: null,     // and greedy_decode, from the same beginning
    chosen_answer: 0, // its place among those that the search found
  };

  // ---- The model and its words ----

  const about = () => Models.about(state.name);
  const config = () => state.model.config;
  const words = ids => state.model.tokenizer.words(ids);
  const word = id => words([id])[0];
  const decoded = ids => state.model.tokenizer.decode(ids);
  const is_end = id => id === state.model.eos_id;
  const has_ended = ids => is_end(ids.at(-1));

  // whether there are spaces between its tokens
  const is_of_words = () => state.model.tokenizer instanceof AnnotatedTransformer.WordTokenizer;

  // a model of one head has no mean of all heads
  function use_model(name, model, without) {
    const { n_layers, n_heads } = model.config;
    const last_cross_attention = { part: "decoder cross", layer: n_layers - 1 };
    Object.assign(state, { name, model, without, ...last_cross_attention, head: n_heads > 1 ? null : 0 });
    state.gone_head = { ...last_cross_attention, head: Math.min(2, n_heads - 1) };

    // this model may not have the head that is missing in the other one
    if (without.head) state.without = { ...without, head: state.gone_head };
  }

  // the sentence as the encoder reads it
  function source(text = state.text) {
    const src = state.model.source(text);
    if (!state.without.padding_mask) return src;
    return [...src, ...Array(Parts.N_PADS).fill(state.model.pad_id)];
  }

  // tokens of an answer, less than the model could write: without positions, some never end
  const max_length = src => Math.max(16, src.length + 4);

  // ---- The answer ----

  function write_answer(begin = [], complete = true) {
    Object.assign(state, { begin, complete, key: null, compared: null });

    const src = source();
    const limit = complete ? max_length(src) : begin.length + 1;
    state.run = state.model.greedy_decode(src, { begin, max_length: limit }, state.without);

    // look at the last word, or at the one to be written
    const { ids } = state.run;
    const last = complete ? ids.filter(id => !is_end(id)).length - 1 : begin.length;
    state.step = Math.max(0, Math.min(last, ids.length - 1));
  }

  // the ids that the reader sees: step by step, the next one is computed but not yet written
  const written = () => state.complete ? state.run.ids : state.begin;

  const is_pending = step => !state.complete && step === state.begin.length;

  // another sentence; the encoder's picture begins with its last word
  function read(text) {
    const n_words = state.model.source(text).length - 1;
    Object.assign(state, { text, forced: [], word: Math.max(0, n_words - 1) });
    write_answer();
  }

  // one step; after a whole answer, from the beginning again, or from what was picked by hand
  function write_next() {
    if (state.complete) {
      const { forced } = state;
      write_answer(has_ended(forced) ? forced.slice(0, -1) : forced, false);
      return;
    }
    const begin = [...state.begin, state.run.ids[state.begin.length]];
    write_answer(begin, has_ended(begin) || begin.length >= max_length(source()));
  }

  function write_rest() {
    write_answer(state.begin, true);
  }

  // another word than the model would write; then it goes on from there
  function pick(id) {
    const { step, complete } = state;
    state.forced = [...state.run.ids.slice(0, step), id];
    write_answer(state.forced, complete || is_end(id));
    if (state.complete) state.step = step;
  }

  // after a part was taken away or put back: as many words as before, those that were picked by hand among them
  function write_again() {
    const { step, begin, complete, forced } = state;
    write_answer(forced);
    if (complete) {
      state.step = Math.min(step, state.run.ids.length - 1);
      return;
    }
    const as_many = state.run.ids.slice(0, begin.length);
    write_answer(as_many, has_ended(as_many));
  }

  // in the encoder no word of the answer looks at anything
  const part_of_answer = () => state.part === "encoder self" ? "decoder cross" : state.part;

  // a word of the answer: where the model looked to write it, and what it could have written
  function look_at(step) {
    Object.assign(state, { step, key: null, part: part_of_answer() });
  }

  // ---- Something taken away ----

  function take_away(part) {
    state.without[part] = part === "head" ? state.gone_head : true;
    write_again();
  }

  function put_back(part) {
    delete state.without[part];
    write_again();
  }

  function put_everything_back() {
    state.without = {};
    write_again();
  }

  const missing = () => Parts.missing(state.without);

  // the answers to a sentence of the whole model, and of the broken one
  function both(text = state.text, begin = []) {
    const src = source(text);
    const options = { begin, max_length: max_length(src) };
    const whole = state.model.greedy_decode(src, options);
    const broken = state.model.greedy_decode(src, options, state.without);
    return [whole, broken];
  }

  const same_ids = (one, other) => String(one.ids) === String(other.ids);

  // what the whole model answers to the examples: asked for again and again. It doesn't see the padding
  const known_answers = new Map();

  function whole_answer(text) {
    const key = `${state.name}: ${text}`;
    if (!known_answers.has(key)) {
      const src = state.model.source(text);
      known_answers.set(key, state.model.greedy_decode(src, { max_length: max_length(src) }));
    }
    return known_answers.get(key);
  }

  // whether what is missing changes the answer to a sentence
  function changes(text) {
    const { model, without } = state;
    const src = source(text);
    const whole = whole_answer(text);
    if (!without.causal_mask) return !model.writes(whole.ids, src, without);
    return !same_ids(whole, model.greedy_decode(src, { max_length: max_length(src) }, without));
  }

  // another example whose answer changes, if there is one
  const example_that_changes = () => about().examples.find(text => text !== state.text && changes(text));

  // ---- Which heads the answer needs ----

  let needed = { key: null, heads: [] };
  const key_of_needed = () => `${state.name}: ${state.text}: ${state.forced}`;

  // the heads that the whole model can't lose without writing another answer; computed once for an answer
  function needed_heads() {
    if (!is_needed_known()) {
      const { model, forced, text } = state;
      const src = model.source(text);
      const { ids } = model.greedy_decode(src, { begin: forced, max_length: max_length(src) });
      const is_needed = head => !model.writes(ids, src, { head }, forced.length);
      needed = { key: key_of_needed(), heads: Parts.heads(config()).filter(is_needed) };
    }
    return needed.heads;
  }

  // it takes a while, so it waits until somebody wants to know
  const is_needed_known = () => needed.key === key_of_needed();

  return {
    state, about, config, words, word, decoded, is_end, has_ended, is_of_words, use_model, source, max_length,
    written, is_pending, read, write_next, write_rest, pick, part_of_answer, look_at,
    take_away, put_back, put_everything_back, missing, both, same_ids, changes, example_that_changes,
    needed_heads, is_needed_known,
  };
})();
