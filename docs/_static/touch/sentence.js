/* Choosing a model, and typing a sentence for it. */

const Sentence = (() => {
  "use strict";

  const { element, em, place, fill, button, choices, listed, quoted } = Elements;
  const { state } = State;

  const LONGEST = 24; // tokens that the drawing has room for

  // ---- Understanding what was typed ----

  // { text }, what the model is to read, or { fault }, what is wrong; capitals and a full stop don't matter
  function understood(typed) {
    const text = typed.trim().replace(/\s*[.!?]+$/, "");
    if (!text) return { fault: "Type something first." };

    const found = State.is_of_words() ? understood_words(text) : understood_number(text.toLowerCase());
    if (found.fault) return found;

    const { length } = state.model.source(found.text);
    if (length > LONGEST) return { fault: `That's ${length} tokens. This page draws ${LONGEST} at most.` };
    return found;
  }

  function understood_words(text) {
    const { ids } = state.model.tokenizer;
    const in_any_case = new Map([...ids.keys()].map(word => [word.toLowerCase(), word]));
    const typed = text.split(/\s+/);
    const found = typed.map(word => ids.has(word) ? word : in_any_case.get(word.toLowerCase()));

    // the vocabulary has the words of both languages
    const { english } = State.about();
    const known = new Set(found.filter(word => word));
    const foreign = english ? [...known].filter(word => !english.flat().includes(word)) : [];
    if (foreign.length) {
      const are_german = foreign.length > 1 ? "are German" : "is German";
      return { fault: `${quoted(foreign)} ${are_german}. This model reads English. “More about it” lists its words.` };
    }

    const unknown = [...new Set(typed.filter((_, i) => !found[i]))];
    if (unknown.length) {
      const { unit } = State.about();
      const are_not = unknown.length > 1 ? `aren't ${unit}s` : `isn't a ${unit}`;
      const known = ids.size > LONGEST ? `“More about it” lists its ${unit}s` : `It knows ${listed([...ids.keys()])}`;
      return { fault: `${quoted(unknown)} ${are_not} this model knows. ${known}.` };
    }
    return { text: found.join(" ") };
  }

  // a model of numbers reads them in words
  function understood_number(text) {
    const digits = text.match(/[-−]?\d[\d,.]*/g);
    if (!digits || !State.about().value) return { text };

    // 12 or 12,345 or 12.345: points and commas only before three digits
    const is_readable = shown => /^\d+$|^\d{1,3}([,.]\d{3})+$/.test(shown);
    const value = shown => Number(shown.replace(/[,.]/g, ""));
    if (!digits.every(shown => is_readable(shown) && value(shown) < 1e6)) {
      return { fault: "This model reads whole numbers from zero to below a million, in words." };
    }
    const in_words = [...new Set(digits)].map(shown => `${shown} as “${NumberWords.english(value(shown))}”`);
    return { fault: `Write ${listed(in_words)}.` };
  }

  // ---- Actions ----

  // answer what was typed; or say what is wrong with it, and grey the answer that is there
  function read(typed) {
    const { text, fault } = understood(typed);
    if (fault) {
      say_fault(fault);
      return;
    }

    State.read(text);
    say_fault("");
    place("remark").textContent = State.about().surprise(text);
    Page.draw_all();
    Beam.search_later();
  }

  function say_fault(text) {
    place("fault").textContent = text;
    place("text").setAttribute("aria-invalid", String(Boolean(text)));
    document.getElementById("touch").classList.toggle("stale", Boolean(text));
    if (!text) return;

    // what was said of the text before
    place("remark").textContent = "";
    Answer.draw_words();
  }

  // whether the answer on the page is to what stands in the field
  const is_answered = () => understood(place("text").value).text === state.text;

  function use(example) {
    place("text").value = example;
    read(example);
  }

  // the model that was chosen last: another one may still be loading
  let wanted = null;

  // Whether the page shows it now: it may not load, and another one may have been chosen in the meantime. What is taken
  // away is missing here, too, unless something else is said
  async function choose_model(name, without = state.without) {
    wanted = name;
    const model = await AnnotatedTransformer.load(name).catch(() => null);
    if (wanted !== name) return false;
    if (!model) {
      place("fault").textContent = `The model “${Models.about(name).label}” can't be loaded. Try again.`;
      return false;
    }

    State.use_model(name, model, without);
    draw();
    use(State.about().examples[0]);
    return true;
  }

  // the running example, for what the page says to try
  async function begin_with_cat() {
    if (!await choose_model("cat", {})) return;
    document.getElementById("touch").scrollIntoView();
    place("answer").querySelector("button").focus({ preventScroll: true }); // the field would open a keyboard
  }

  // ---- Drawing ----

  // the models, what is said of the chosen one, and its examples
  function draw() {
    const { field, about, more, examples } = State.about();

    const options = Models.names.map(name => ({ value: name, text: Models.about(name).label }));
    fill(place("models"), choices("Model", options, state.name, choose_model));
    place("field").textContent = field;

    const [before, example, after] = about;
    const line = element("p", {}, before, example ? em(example) : null, after);
    const summary = element("summary", { "data-key": "more" }, "More about it");
    const details = element("details", {}, summary, element("p", {}, more), ...word_lists());
    fill(place("about"), line, details);

    const chips = examples.map(text => button(text, () => use(text), {}, text));
    fill(place("examples"),
      element("span", { id: "touch-try" }, "Or try"),
      element("span", { class: "touch-chips", role: "group", "aria-labelledby": "touch-try" }, ...chips));
  }

  // all that a model of words knows, by language if it knows two
  function word_lists() {
    if (!State.is_of_words()) return [];
    const known = [...state.model.tokenizer.ids.keys()];
    const { english } = State.about();
    if (!english) return [element("p", {}, `It knows ${known.join(", ")}.`)];

    const german = known.filter(word => !english.flat().includes(word));
    const by_kind = english.map(kind => kind.join(", ")).join("; ");
    return [
      element("p", {}, element("strong", {}, "English: "), by_kind),
      element("p", { lang: "de" }, element("strong", { lang: "en" }, "German: "), german.join(", ")),
    ];
  }

  // the page's text around the model follows it
  function draw_text() {
    const { task, click, examples } = State.about();
    place("now").replaceChildren(`A small Transformer ${task} `, em(state.text), ".");
    place("click").replaceChildren(click);

    // the things to try are for the running example
    const is_whole = !State.missing().length && !state.forced.length;
    const is_there = state.name === "cat" && state.text === examples[0] && is_whole;
    const start = button("begin with cat", begin_with_cat, { class: "touch-inline" }, "Take me there");
    place("start").replaceChildren(...is_there ? [] : [start]);
  }

  return { read, is_answered, use, choose_model, draw_text };
})();
