// Byte pairs merging in a text that the reader types, with the merges of a tokenizer.

// Where merges may not join: as GPT-2 cuts, and between characters of scripts without spaces.
const UNSPACED = '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}'
  + '\\u30fc\\uff70\\u3099\\u309a\\uff9e\\uff9f';
const PIECES = new RegExp(`[${UNSPACED}]\\p{M}*|'s|'t|'re|'ve|'m|'ll|'d`
  + `| ?(?:(?![${UNSPACED}])\\p{L})+| ?(?:(?![${UNSPACED}])\\p{N})+| ?[^\\s\\p{L}\\p{N}${UNSPACED}]+|\\s+(?!\\S)|\\s+`, 'gu');

// Visible characters that stand for bytes: most for themselves, the others from U+0100 on.
const letters = [];
for (let byte = 0, others = 0; byte < 256; byte++) {
  const visible = (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
  letters.push(String.fromCharCode(visible ? byte : 256 + others++));
}
const inLetters = text => [...new TextEncoder().encode(text)].map(byte => letters[byte]);

// A token as text: a space is ▁, and a byte that is no whole character is \x and two digits.
const readable = token => {
  const bytes = Uint8Array.from(token, letter => letters.indexOf(letter));
  let text = '';
  for (let i = 0; i < bytes.length;) {
    let taken = 0;
    for (let n = 1; n <= 4 && !taken; n++) {
      try {
        text += new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.slice(i, i + n));
        taken = n;
      } catch { /* no character of n bytes */ }
    }
    if (!taken) text += `\\x${bytes[i].toString(16).padStart(2, '0')}`;
    i += taken || 1;
  }
  return text.replaceAll(' ', '▁');
};

const join = (tokens, [first, second]) => {
  const joined = [];
  for (const token of tokens) {
    if (token === second && joined.at(-1)?.text === first && !joined.at(-1).made) {
      joined[joined.length - 1] = { text: first + second, made: true };
    } else joined.push({ text: token, made: false });
  }
  return joined;
};

// The characters of a word of which a token has some bytes and not all.
const parts = (word, from, to) => {
  const owners = [...word].flatMap((character, i) => inLetters(character).map(() => [i, character]));
  const isCut = at => at > 0 && at < owners.length && owners[at - 1][0] === owners[at][0];
  const found = new Map();
  if (isCut(from)) found.set(...owners[from]);
  if (isCut(to)) found.set(...owners[to - 1]);
  return [...found.values()];
};

start('byte-pairs', (stage, { text, merges, bytes, spaced }) => {
  const LIMIT = 120; // characters
  const pairs = merges.map(merge => merge.split(' '));
  const known = new Set(pairs.flat());
  // what has no shape of its own, as its number in Unicode
  const visible = token => token.replace(/[\p{C}\p{Z}\ufe00-\ufe0f]/gu,
    sign => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
  const shown = bytes ? readable : visible;

  const label = make(stage, 'label', { class: 'text' });
  label.append('Your text:');
  const input = make(label, 'input', { type: 'text', maxlength: LIMIT, spellcheck: 'false', autocomplete: 'off' });
  input.value = text;
  const controls = make(stage, 'div', { class: 'controls' });
  let lines = [], ranks = []; // the text, and again with a space before it; the merges that apply
  const steps = stepper(controls, 'Step', 1, () => update(), i => `${i} of ${ranks.length}`);
  const rows = [0, 1].slice(0, spaced ? 2 : 1).map(i => {
    if (i) make(stage, 'p', { class: 'muted' }, 'With a space before it:');
    return make(stage, 'div', { class: bytes ? 'tokens bytes' : 'tokens' });
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  // a short list of merges is shown
  const list = make(stage, 'p', { class: 'merges' }, 'The merges, in order: ');
  const chips = pairs.length > 20 ? [] : pairs.map(pair => make(list, 'span', {}, pair.map(shown).join(' + ')));
  list.hidden = !chips.length;

  // The pieces at first, and again after each merge that applies, with what it made.
  const line = text => {
    const words = bytes ? text.match(PIECES) || [] : text.split(' ').filter(word => word);
    let pieces = words.map(word => bytes ? inLetters(word) : [...word]);
    const stages = [{ rank: -1, pieces: pieces.map(tokens => tokens.map(token => ({ text: token }))) }];
    pairs.forEach((pair, rank) => {
      const joined = pieces.map(tokens => join(tokens, pair));
      if (!joined.some(tokens => tokens.some(token => token.made))) return;
      pieces = joined.map(tokens => tokens.map(token => token.text));
      stages.push({ rank, pieces: joined });
    });
    return { words, stages };
  };
  const cut = () => {
    lines = rows.map((_, i) => line(i && input.value ? ` ${input.value}` : input.value));
    const found = lines.flatMap(({ stages }) => stages.slice(1).map(stage => stage.rank));
    ranks = [...new Set(found)].sort((a, b) => a - b);
    steps.reset(ranks.length, ranks.length);
  };

  const update = () => {
    const now = steps.value, last = ranks.length;
    const rank = now ? ranks[now - 1] : -1, pair = pairs[rank];
    const unknown = new Set();
    const [n, more] = lines.map(({ words, stages }, k) => {
      const { rank: latest, pieces } = stages.findLast(stage => stage.rank <= rank);
      rows[k].replaceChildren();
      pieces.forEach((tokens, i) => {
        const word = make(rows[k], 'span', { class: 'piece' });
        let from = 0;
        for (const token of tokens) {
          const isKnown = bytes || known.has(token.text) || [...token.text].length > 1;
          if (!isKnown) unknown.add(shown(token.text));
          const unit = make(word, 'span', { class: 'unit' });
          make(unit, 'span', { class: token.made && latest === rank ? 'cut made' : isKnown ? 'cut' : 'cut unknown' }, shown(token.text));
          const of = bytes ? parts(words[i], from, from + token.text.length) : [];
          if (of.length) make(unit, 'span', { class: 'muted' }, `of ${of.map(visible).join(', ')}`);
          from += token.text.length;
        }
      });
      return sum(pieces.map(tokens => tokens.length));
    });
    const used = new Set(ranks.slice(0, now));
    chips.forEach((chip, i) => { chip.className = i === rank ? 'made' : used.has(i) ? 'used' : 'muted'; });

    const count = (many, word) => `${many} ${word}${many === 1 ? '' : 's'}`;
    const all = `the ${count(pairs.length, 'merge')}`;
    const joins = pair && `joins ${shown(pair[0])} + ${shown(pair[1])}`;
    const tokens = count(n, 'token') + (more ? `, and ${more} with the space.` : '.');
    const sentences = !n ? ['Type something.']
      : !last ? [`None of ${all} applies.`, tokens]
      : now === last ? [`${last} of ${all} ${last === 1 ? 'applies' : 'apply'}.`,
        `The last one, number ${rank + 1}, ${joins}.`, tokens]
      : now ? [`Step ${now} ${joins}, number ${rank + 1} of ${all}.`, tokens]
      : [`${count(n, bytes ? 'byte' : 'character')}, before any merge.`];
    if (unknown.size) sentences.push(`Unknown: ${[...unknown].join(' ')}`);
    if (input.value.length >= LIMIT) sentences.push(`No more than ${LIMIT} characters fit.`);
    said.textContent = sentences.join(' ');
  };
  input.addEventListener('input', cut);
  cut();
});
