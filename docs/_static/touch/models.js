/* What the page says about each model: what it reads, and which sentences to try. */

const Models = (() => {
  "use strict";

  // Of a model:
  //   label       on its button
  //   language    of its answers
  //   task        "A small Transformer TASKS I have seen the cat."
  //   field       the name of the field for the sentence
  //   unit        what it reads and writes one of at a time
  //   input       what it reads, as a whole
  //   click       what to do first
  //   about       a line above the sentence, with what is set in italics between its two halves
  //   more        what "More about it" unfolds
  //   examples    sentences to try, the first of them at the start
  //   english     the words of a sentence by their kind, where the model's words are of two languages
  //   gloss       English for the words of an answer, one for each
  //   value       the number that an answer means
  //   surprise    what to say of a text unlike those it learned, or ""

  const numbers = {
    task: "translates",
    field: "Your number",
    unit: "piece",
    input: "number",
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
    surprise: text => {
      const typed = text.toLowerCase();
      if (NumberWords.is_english(typed)) return "";
      const usual = NumberWords.usual_english(typed);
      return usual ? `It learned to read this as “${usual}”: expect mistakes.`
        : "It learned to read numbers below a million, and this isn't one: expect mistakes.";
    },
  };

  const cat = {
    label: "English → German",
    language: "de",
    task: "translates",
    field: "Your sentence",
    unit: "word",
    input: "sentence",
    click: "Click a German word to see which English words the model looked at. Then type a sentence of your own.",
    about: ["Sentences such as ", "she has (not) seen the dog (today)", "."],
    more: "Its sentences have the form: person + have/has + (not) + verb + the/a + animal + (today/again). Use at most "
      + "one of not, today and again. The model has two layers with four heads each. It never saw “I have seen the "
      + "cat” in training.",
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
    gloss: words => words.map((word, i) => word === "sie" ? meaning_of_sie(words[i + 1]) : in_english[word] ?? word),
    surprise: text => is_usual_sentence(text.split(" ")) ? ""
      : "This isn't a sentence of the form it learned: expect mistakes. “More about it” shows the form.",
  };

  const in_english = {
    ich: "I", du: "you", er: "he", wir: "we",
    habe: "have", hast: "have", hat: "has", haben: "have",
    nicht: "not", heute: "today", wieder: "again",
    der: "the", die: "the", das: "the", den: "the", ein: "a", eine: "a", einen: "a",
    Katze: "cat", Hund: "dog", Pferd: "horse", Vogel: "bird", Maus: "mouse",
    Kuh: "cow", Schaf: "sheep", Fisch: "fish", Ziege: "goat", Kaninchen: "rabbit",
    gesehen: "seen", gehört: "heard", gefunden: "found", gekauft: "bought", gefüttert: "fed",
    gezeichnet: "drawn", gerufen: "called", verloren: "lost", geliebt: "loved", gezählt: "counted",
  };

  // the verb tells
  const meaning_of_sie = verb => ({ hat: "she", haben: "they" })[verb] ?? "she/they";

  function is_usual_sentence(words) {
    const kinds = words.map(word => cat.english.findIndex(kind => kind.includes(word)));
    const [PERSON, HAVE, NOT, VERB, ARTICLE, ANIMAL, TIME] = cat.english.keys();
    const main = [VERB, ARTICLE, ANIMAL];
    const forms = [main, [NOT, ...main], [...main, TIME]].map(rest => [PERSON, HAVE, ...rest]);

    const is_he_or_she = ["he", "she"].includes(words[0]);
    const agrees = words[1] === (is_he_or_she ? "has" : "have");
    return agrees && forms.some(form => String(form) === String(kinds));
  }

  const copier = {
    label: "Copier",
    task: "copies",
    field: "Your numbers",
    unit: "number",
    input: "row",
    click: "Click a number of the answer to see which numbers the model looked at. Then type some of your own.",
    about: ["It repeats 5 to 12 numbers, each from 3 to 12."],
    more: "One layer, one head: as small as a Transformer gets. It is 91 % sure of every number: it was trained "
      + "never to be surer than that (label smoothing, chapter 2.2).",
    examples: ["7 3 9 9 4 12", "3 3 3 3 3 3 3 3", "5 6 7 8 9 10 11 12", "12 4 4 8 10 3 6"],
    surprise: text => {
      const length = text.split(" ").length;
      if (5 <= length && length <= 12) return "";
      return `It learned rows of 5 to 12 numbers, and yours has ${length}: expect mistakes.`;
    },
  };

  const known = {
    "cat": cat,
    "numbers-en-de": { ...numbers, label: "Numbers → German", language: "de", value: NumberWords.german },
    "numbers-en-zh": { ...numbers, label: "Numbers → Chinese", language: "zh", value: NumberWords.chinese },
    "copier": copier,
  };

  const about = name => known[name];

  return { about, names: Object.keys(known) };
})();
