/* The page "Touch a Transformer": its places, and its start. nbs/touch.md has the text, and loads these files in order:

     ../transformer.js   the model itself
     elements.js         makes elements, and puts numbers into words
     number_words.js     what "siebenundsiebzig" means
     models.js           what is said about each model
     parts.js            what is said about the parts of a Transformer
     state.js            what was chosen, and what the model answers to it
     sentence.js         choosing a model, typing a sentence
     answer.js           the answer, word by word
     next_word.js        the bars: what could come next
     attention.js        the picture of attention, heads.js all heads in small
     away.js             switches that take parts away, compared.js the answers with and without them
     beam.js             beam search as a tree
     page.js             this file

   They are plain scripts, because a page that was opened from a file can't load modules. Each defines one object, such
   as `Beam`. Whoever changes the state says what is to be drawn again: Page.draw_all(), or less. */

const Page = (() => {
  "use strict";

  const { element, place, say } = Elements;

  const make = (name, tag = "div", attributes = {}, ...children) =>
    element(tag, { id: `touch-${name}`, class: `touch-${name}`, ...attributes }, ...children);

  function build() {
    const submit = event => {
      event.preventDefault();
      Sentence.read(place("text").value);
    };
    const field = make("text", "input", {
      type: "text",
      oninput: () => Answer.draw_words(),
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      maxlength: 200,
      "aria-describedby": "touch-fault",
    });

    document.getElementById("touch").append(
      make("models"),
      make("about"),
      element("form", { class: "touch-form", onsubmit: submit },
        make("field", "label", { for: "touch-text" }),
        field,
        element("button", { type: "submit", class: "touch-main" }, "Write the answer")),
      make("fault", "p", { role: "alert" }),
      make("remark", "p"),
      make("examples"),
      make("banner"),

      element("div", { class: "touch-written" },
        make("answer", "p"),
        make("gloss", "p"),
        make("said", "p", { "aria-live": "polite" }),
        make("steps")),

      element("div", { class: "touch-columns" },
        make("picture", "div", {},
          make("parts"),
          make("drawing"),
          make("caption", "p"),
          make("says")),
        element("div", { class: "touch-next" }, make("bars"))),

      make("heads"));

    document.getElementById("touch-away").append(
      element("div", { class: "touch-result" }, make("compare"), make("verdict", "p")),
      make("legend", "p", { class: "touch-note" }),
      make("cards"));

    document.getElementById("touch-beam").append(
      make("beam_size"),
      make("beam_of"),
      make("tree"),
      make("answers"),
      make("beam_example"));
  }

  // all but the beam, which takes longer
  function draw_all() {
    Sentence.draw_text();
    Answer.draw();
    Attention.draw();
    NextWord.draw();
    Away.draw();
    const outcomes = [...document.querySelectorAll(".touch-outcome")].map(line => line.textContent);
    say(Answer.spoken(), place("remark").textContent, ...outcomes);
  }

  // what is shown of one word of the answer, when another one was chosen or written
  function draw_explorer() {
    Answer.draw();
    NextWord.draw();
    draw_attention();
    say(Answer.spoken(), place("caption").textContent);
  }

  // the pictures of attention, when another part or head was chosen
  function draw_attention() {
    Attention.draw();
    Compared.draw_panes();
    say(place("caption").textContent);
  }

  async function start() {
    await AnnotatedTransformer.load("cat"); // nothing can be typed before there is a model

    build();
    await Sentence.choose_model("cat");
    document.documentElement.dataset.touch = "ready";
  }

  start().catch(error => {
    // the still picture again
    document.documentElement.classList.remove("touch-runs");
    throw error;
  });

  return { draw_all, draw_explorer, draw_attention };
})();
