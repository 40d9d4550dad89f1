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

start('byte-pairs', (stage, { text, merges, bytes }) => {
  const pairs = merges.map(merge => merge.split(' '));
  const known = new Set(pairs.flat());
  const shown = bytes ? readable : token => token;

  const label = make(stage, 'label', { class: 'text' });
  label.append('Your text:');
  const input = make(label, 'input', { type: 'text', maxlength: 120, spellcheck: 'false', autocomplete: 'off' });
  input.value = text;
  const controls = make(stage, 'div', { class: 'controls' });
  let stages = [];
  const steps = stepper(controls, 'Merges applied', 1, () => update(), i => `${i} of the ${stages.length - 1} that fit`);
  const row = make(stage, 'div', { class: 'tokens' });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  // The pieces at first, and again after each merge that applies, with what it made.
  const cut = () => {
    const words = bytes ? input.value.match(PIECES) || [] : input.value.split(' ').filter(word => word);
    let pieces = words.map(word => bytes ? inLetters(word) : [...word]);
    stages = [{ pieces: pieces.map(tokens => tokens.map(token => ({ text: token }))) }];
    pairs.forEach((pair, rank) => {
      const joined = pieces.map(tokens => join(tokens, pair));
      if (!joined.some(tokens => tokens.some(token => token.made))) return;
      pieces = joined.map(tokens => tokens.map(token => token.text));
      stages.push({ pair, rank, pieces: joined });
    });
    steps.reset(stages.length - 1, stages.length - 1);
  };

  const update = () => {
    const { pair, rank, pieces } = stages[steps.value];
    row.replaceChildren();
    let n = 0;
    const unknown = new Set();
    for (const tokens of pieces) {
      const word = make(row, 'span', { class: 'piece' });
      for (const token of tokens) {
        const isKnown = bytes || known.has(token.text) || [...token.text].length > 1;
        if (!isKnown) unknown.add(token.text);
        make(word, 'span', { class: token.made ? 'made' : isKnown ? '' : 'unknown' }, shown(token.text));
        n++;
      }
    }
    const count = `${n} token${n === 1 ? '' : 's'}`;
    const from = bytes ? 'Bytes' : 'Characters';
    said.textContent = !n ? 'Type a text.'
      : (stages.length === 1 ? `None of the ${pairs.length} merges fits. ${count}.`
        : pair ? `${count}, after ${shown(pair[0])} + ${shown(pair[1])}, number ${rank + 1} of the ${pairs.length} merges.`
        : `${from}, before any merge: ${count}.`)
      + (unknown.size ? ` Unknown: ${[...unknown].join(' ')}` : '');
  };
  input.addEventListener('input', cut);
  cut();
});
