/* What the page says about each model: what it reads, and which sentences to try. */

const Models = (() => {
  "use strict";

  // Of a model:
  //   label       on its button
  //   language    of its answers
  //   task        "A small Transformer TASKS I have seen the cat."
  //   field       the name of the field for the sentence
  //   click       what to do first
  //   about       a line above the sentence, with what is set in italics between its two halves
  //   more        what "More about it" unfolds
  //   examples    sentences to try, the first of them at the start
  //   english     the words of a sentence by their kind, where the model's words are of two languages
  //   value       the number that an answer means
  //   learned     how many tokens the shortest and the longest sentence of its training had

  const numbers = {
    task: "translates",
    field: "Your number",
    click: "Click a piece of the answer to see which pieces of the number the model looked at. "
      + "Then type a number of your own.",
    about: ["English numbers below a million, in words: ", "forty-two", ", not 42."],
    more: "Its tokens are pieces of words; ▁ is a space. It has two layers with four heads each.",
    examples: [
      "three hundred and forty-two",
      "seventy-seven",
      "twelve thousand three hundred and five",
      "six hundred and ninety-one",
      "seven hundred and forty-eight thousand and six",
    ],
  };

  const cat = {
    label: "English → German",
    language: "de",
    task: "translates",
    field: "Your sentence",
    click: "Click a German word to see which English words the model looked at. Then type a sentence of your own.",
    about: ["Sentences such as ", "she has (not) seen the dog (today)", "."],
    more: "A sentence is a person, have or has, perhaps not, a verb, the or a, an animal, perhaps today or again. "
      + "Only one of not, today and again. The model has two layers with four heads each.",
    examples: [
      "I have seen the cat",
      "she has not fed a horse",
      "they have lost the dog today",
      "you have found a cow again",
      "he has bought the fish",
      "we have called the goat",
    ],
    english: [
      ["I", "you", "he", "she", "we", "they"],
      ["have", "has"],
      ["not"],
      ["seen", "heard", "found", "bought", "fed", "drawn", "called", "lost", "loved", "counted"],
      ["the", "a"],
      ["cat", "dog", "horse", "bird", "mouse", "cow", "sheep", "fish", "goat", "rabbit"],
      ["today", "again"],
    ],
  };

  const copier = {
    label: "Copier",
    task: "copies",
    field: "Your numbers",
    click: "Click a number of the answer to see which numbers the model looked at. Then type some of your own.",
    about: ["It repeats 5 to 12 numbers, each from 3 to 12."],
    more: "One layer, one head: as small as a Transformer gets. It is 91 % sure of every number, and no more, "
      + "because it was trained with label smoothing of 0.1 (chapter 11): that asks for 90 %, and for a twelfth of "
      + "the other 10 %.",
    examples: ["7 3 9 9 4 12", "3 3 3 3 3 3 3 3", "5 6 7 8 9 10 11 12", "12 4 4 8 10 3 6"],
    learned: [5, 12],
  };

  const known = {
    "cat": cat,
    "numbers-en-de": { ...numbers, label: "Numbers → German", language: "de", value: NumberWords.german },
    "numbers-en-zh": { ...numbers, label: "Numbers → Chinese", language: "zh", value: NumberWords.chinese },
    "copier": copier,
  };

  // a model that came later, and of which nothing is said yet
  const unknown = { task: "reads", field: "Your text", about: [], more: "", examples: ["twelve"] };

  const about = name => known[name] || { ...unknown, label: name };

  // all that this site has, those we say something about first
  function names() {
    const first = Object.keys(known).filter(name => AnnotatedTransformer.names.includes(name));
    return [...first, ...AnnotatedTransformer.names.filter(name => !first.includes(name))];
  }

  return { about, names };
})();
