/* Numbers in words, from 0 to 999,999: to say what an answer means, and how to write digits. */

const NumberWords = (() => {
  "use strict";

  // ---- Chinese, as spell_chinese of “Numbers in words” writes it ----

  const CHINESE_DIGITS = "零一二三四五六七八九";
  const CHINESE_BELOW_10000 = /^零?(?:(.)千)?零?(?:(.)百)?零?(?:([^零]?)十)?零?(.)?$/u;

  // the value of a Chinese numeral; null for what is none
  function chinese(text) {
    if (text === "零") return 0;
    if (text.endsWith("零")) return null; // it stands for a gap between digits

    // 万 is ten thousand: what stands before it is counted in those
    const halves = text.split("万");
    if (halves.length > 2 || halves[0] === "") return null;

    const values = halves.map(chinese_below_10000);
    if (values.includes(null)) return null;
    return values.length === 2 ? 10000 * values[0] + values[1] : values[0];
  }

  function chinese_below_10000(text) {
    const found = CHINESE_BELOW_10000.exec(text);
    if (!found) return null;

    const [thousands, hundreds, tens, ones] = found.slice(1).map(chinese_digit);
    const counted_tens = found[3] === "" ? 1 : tens; // 十 alone is ten
    if ([thousands, hundreds, counted_tens, ones].includes(-1)) return null;
    return 1000 * thousands + 100 * hundreds + 10 * counted_tens + ones;
  }

  // 0 for a digit that isn't there, -1 for another character
  function chinese_digit(digit) {
    if (digit === undefined) return 0;
    return digit === "两" ? 2 : CHINESE_DIGITS.indexOf(digit);
  }

  // ---- German, as num2words writes it ----

  const GERMAN = [
    "null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
    "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
  ];
  const GERMAN_TENS = [
    null, null, "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig",
  ];

  // the value of a German numeral; null for what is none
  function german(text) {
    if (text.includes("tausend")) return german_count_and_rest(text, "tausend", 1000, 999);
    if (text.includes("hundert")) return german_count_and_rest(text, "hundert", 100, 9);
    return german_below_100(text);
  }

  // zweihundertdrei: how many of a unit, and what is left
  function german_count_and_rest(text, unit, size, most) {
    const at = text.indexOf(unit);
    const before = text.slice(0, at).replace(/ein$/, "eins");
    const after = text.slice(at + unit.length);

    const count = before === "" ? 1 : german(before);
    const rest = after === "" ? 0 : german(after);
    if (count === null || count < 1 || count > most) return null;
    if (rest === null || rest >= size) return null;
    return size * count + rest;
  }

  function german_below_100(text) {
    if (GERMAN.includes(text)) return GERMAN.indexOf(text);
    if (GERMAN_TENS.includes(text)) return 10 * GERMAN_TENS.indexOf(text);

    // einundzwanzig: one and twenty
    const parts = text.split("und");
    if (parts.length !== 2 || parts[0] === "eins") return null;
    const ones = parts[0] === "ein" ? 1 : GERMAN.indexOf(parts[0]);
    const tens = GERMAN_TENS.indexOf(parts[1]);
    if (ones < 1 || ones > 9 || tens < 0) return null;
    return 10 * tens + ones;
  }

  // ---- English ----

  const ENGLISH = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
  ];
  const ENGLISH_TENS = [
    null, null, "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
  ];

  // a number in English words
  function english(number) {
    if (number < 20) return ENGLISH[number];
    if (number < 100) {
      const tens = ENGLISH_TENS[Math.floor(number / 10)];
      const ones = number % 10;
      return ones ? `${tens}-${ENGLISH[ones]}` : tens;
    }

    const [size, unit] = number < 1000 ? [100, "hundred"] : [1000, "thousand"];
    const count = english(Math.floor(number / size));
    const rest = number % size;
    if (!rest) return `${count} ${unit}`;
    return `${count} ${unit}${rest < 100 ? " and" : ""} ${english(rest)}`;
  }

  // whether a text is a number as `english` writes it
  function is_english(text) {
    const value = value_of_english(text.split(" "));
    return value !== null && value < 1e6 && english(value) === text;
  }

  // A number in the usual English words, for a text that says the same but for hyphens and "and"; or else null
  function usual_english(text) {
    const plain = text => text.split(/[\s-]+/).filter(word => word !== "and").join(" ");
    const value = value_of_english(plain(text).split(" "));
    if (value === null || value >= 1e6) return null;
    const usual = english(value);
    return plain(usual) === plain(text) ? usual : null;
  }

  // of words that may not be in the right order; null if one is no number
  function value_of_english(words) {
    let thousands = 0;
    let below = 0;
    for (const word of words) {
      if (word === "and") continue;
      if (word === "hundred") below *= 100;
      else if (word === "thousand") [thousands, below] = [1000 * below, 0];
      else if (english_below_100.has(word)) below += english_below_100.get(word);
      else return null;
    }
    return thousands + below;
  }

  const english_below_100 = new Map([...Array(100).keys()].map(number => [english(number), number]));

  return { chinese, german, english, is_english, usual_english };
})();
