/* What the page says about the parts of a Transformer: those it draws, and those it can take away. */

const Parts = (() => {
  "use strict";

  // behind the sentence, to show what the padding mask is for
  const N_PADS = 8;

  // the three places of attention; `unmasked` is said of one without the causal mask
  const ATTENTION = {
    "decoder cross": {
      label: "Cross-attention",
      says: "Each word of the answer looks at the words of the sentence. The decoder doesn't see the bare words: the "
        + "encoder has already mixed each one with its neighbours. EOS marks the end. Many heads look there, because "
        + "it has gathered something from every word. A head can look at a word and still not change the answer.",
    },
    "encoder self": {
      label: "Encoder",
      says: "Each word of the sentence looks at all its words, itself included.",
    },
    "decoder self": {
      label: "Decoder",
      says: "Each word of the answer looks at what has been written before it. BOS is the beginning.",
      unmasked: "Without the causal mask, each word also looks at what was written after it. This is how it looks "
        + "when the last word is chosen.",
    },
  };

  // what can be taken away, in the order of the chapters, and what to look for then
  const REMOVABLE = {
    scale: {
      label: "the division by √dₖ",
      chapter: "02_attention",
      look: "Scores get larger, so softmax gets sharper: many heads now read a single word. Choose one above. "
        + "English → German still answers correctly. The Copier doesn't.",
    },
    padding_mask: {
      label: "the padding mask",
      chapter: "03_masks",
      look: `We put ${N_PADS} PADs behind the sentence. With the mask nobody sees them. Without it, look at the `
        + "lines that go to PAD.",
    },
    causal_mask: {
      label: "the causal mask",
      chapter: "03_masks",
      look: "Normally a word sees only those before it. Otherwise, in training, it could copy the solution. Now "
        + "earlier words see later ones, too. Look for missing words, often at the end. A model of one layer doesn't "
        + "notice.",
    },
    head: {
      label: "one head",
      chapter: "04_multi_head_attention",
      look: "Take away one after the other. For most of them the answer stays, because the others make up for it. "
        + "A few have a job of their own: look for the one word that changes.",
    },
    residuals: {
      label: "the residual connections",
      chapter: "05_layers",
      look: "Normally each layer adds to the word. Now it replaces it, and the word itself is lost. Look for an answer "
        + "that is empty, or repeats one word.",
    },
    layer_norm: {
      label: "layer norm",
      chapter: "05_layers",
      look: "The sizes of the vectors get out of hand. Look at the probabilities: often the model is just as sure "
        + "when it's wrong.",
    },
    positions: {
      label: "positions",
      chapter: "07_positions",
      look: "The sentence is now a bag of words: shuffle them, and the answer stays the same. Look for words that "
        + "come twice, and answers that never end.",
    },
    cross_attention: {
      label: "all cross-attention",
      chapter: "08_transformer",
      look: "The decoder no longer sees your sentence. Type anything: you get the same answer. It's made up, and often "
        + "looks well-formed.",
    },
  };

  const name_of_head = ({ part, layer, head }) => `${ATTENTION[part].label}, layer ${layer + 1}, head ${head + 1}`;

  // what is missing, by name; `without` is as in transformer.js
  function missing(without) {
    const parts = Object.keys(REMOVABLE).filter(part => without[part]);
    return parts.map(part => part === "head" ? `one head (${name_of_head(without.head)})` : REMOVABLE[part].label);
  }

  return { N_PADS, ATTENTION, REMOVABLE, name_of_head, missing };
})();
