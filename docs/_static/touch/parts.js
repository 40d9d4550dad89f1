/* What the page says about the parts of a Transformer: those it draws, and those it can take away. */

const Parts = (() => {
  "use strict";

  // behind the sentence, to show what the padding mask is for
  const N_PADS = 8;

  // the three places of attention; `unmasked` is said of one without the causal mask. What a model reads has an
  // `input` of one `unit` after the other, as in models.js
  const ATTENTION = {
    "decoder cross": {
      label: "Cross-attention",
      says: ({ unit, input }) => `The encoder reads the ${input}, and the decoder writes the answer. Here each ${unit} `
        + `of the answer looks at those of the ${input}, which the encoder has already mixed with their neighbours. `
        + "Many heads look at EOS, the end: it has gathered a bit of everything, so it's a summary. Click on the left to "
        + "see who looks there.",
    },
    "encoder self": {
      label: "Encoder",
      says: ({ unit, input }) => `Each ${unit} of the ${input} looks at all of them, itself included.`,
    },
    "decoder self": {
      label: "Decoder",
      says: ({ unit }) => `Each ${unit} of the answer looks at what has been written before it. BOS is the beginning.`,
      unmasked: ({ unit }) => `Without the causal mask, each ${unit} also looks at what was written after it. This is `
        + `how it looks when the last ${unit} is chosen.`,
    },
  };

  // What can be taken away, and what to look for then: first what breaks most. `short` is its name where there is
  // little room. `shows_on` names a model that shows it well, if not every model does
  const REMOVABLE = {
    cross_attention: {
      label: "all cross-attention",
      short: "cross-attention",
      chapter: "1_model/8_transformer",
      look: "The decoder no longer sees what you typed. Type anything: you get the same answer. It's made up, and often "
        + "looks well-formed.",
    },
    padding_mask: {
      label: "the padding mask",
      short: "padding mask",
      chapter: "1_model/3_masks",
      look: "Sentences that are read together are filled up to one length with PAD, and the mask hides PAD from the "
        + `model. We added ${N_PADS} of them. Now the model reads them as if they were words.`,
    },
    residuals: {
      label: "the residual connections",
      short: "residual connections",
      chapter: "1_model/5_layers",
      look: "Normally each layer adds to the word. Now it replaces it, and the word itself is lost. Look for an answer "
        + "that is empty, or repeats one word.",
    },
    positions: {
      label: "positions",
      short: "positions",
      chapter: "1_model/7_positions",
      look: "What the model reads is now a bag of words. Look for words that come twice, and answers that never end.",
      shows_on: { name: "numbers-en-zh", why: "In numbers order matters most: 342 becomes 243.", label: "Try 342" },
    },
    head: {
      label: "one head",
      short: "head",
      chapter: "1_model/4_multi_head_attention",
      look: "A head is one of several lookups that run side by side. For most of them the answer stays, because the "
        + "others make up for it.",
    },
    layer_norm: {
      label: "layer norm",
      short: "layer norm",
      chapter: "1_model/5_layers",
      look: "The numbers inside the model grow too big. Look at the probabilities: often it's just as sure when it's "
        + "wrong.",
      shows_on: {
        name: "copier",
        why: "The Copier goes from 91 % sure and right to 100 % sure and wrong.",
        label: "Try the Copier",
      },
    },
    causal_mask: {
      label: "the causal mask",
      short: "causal mask",
      chapter: "1_model/3_masks",
      look: "Normally a word sees only the words before it, or in training the model could just copy the next one. Now "
        + "it sees later words, too, which it never learned to deal with. Look for missing words, often at the end.",
      shows_on: { name: "cat", why: "A model of one layer doesn't notice.", label: "Try English → German" },
    },
    scale: {
      label: "the division by √dₖ",
      short: "division by √dₖ",
      chapter: "1_model/2_attention",
      look: "It keeps the scores of attention small, before softmax makes percentages of them. Without it a head stares "
        + "at one word: click one at the top of the page.",
      shows_on: {
        name: "copier",
        why: "Models with several heads still answer correctly. The Copier has one, and doesn't.",
        label: "Try the Copier",
      },
    },
  };

  const name_of_head = ({ part, layer, head }) => `${ATTENTION[part].label}, layer ${layer + 1}, head ${head + 1}`;

  // all heads of a model, by the place where they are
  function heads({ n_layers, n_heads }) {
    const places = Object.keys(ATTENTION).flatMap(part => [...Array(n_layers).keys()].map(layer => ({ part, layer })));
    return places.flatMap(place => [...Array(n_heads).keys()].map(head => ({ ...place, head })));
  }

  // what is missing, by name; `without` is as in transformer.js
  const names_missing = without => Object.keys(REMOVABLE).filter(part => without[part]);

  function missing(without) {
    return names_missing(without).map(part =>
      part === "head" ? `one head (${name_of_head(without.head)})` : REMOVABLE[part].label);
  }

  function missing_in_short(without) {
    return names_missing(without).map(part =>
      part === "head" ? `head ${without.head.layer + 1}.${without.head.head + 1}` : REMOVABLE[part].short);
  }

  return { N_PADS, ATTENTION, REMOVABLE, name_of_head, heads, missing, missing_in_short };
})();
