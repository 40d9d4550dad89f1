// A mask whose rows can be chosen: which keys may this position attend to?

start('mask-rows', (stage, { words, targets, pad, causal, padding, row }) => {
  const LOOKS = { yes: '✓', future: '!', pad: '○', no: '' };
  const masks = make(stage, 'div', { class: 'controls' });
  const isCausal = check(masks, 'causal mask', causal, () => update());
  const isPadded = check(masks, 'padding mask', padding, () => update());

  const grid = make(make(stage, 'div', { class: 'scroll' }), 'div', { class: 'mask', role: 'group',
    'aria-label': 'Rows of the mask' });
  grid.style.setProperty('--columns', words.length);
  make(grid, 'span', { class: 'muted' }, 'reads → predicts');
  for (const word of words) make(grid, 'span', { class: word === pad ? 'key muted' : 'key' }, word);
  const choose = i => { row = i; update(); };
  const rows = words.map((word, i) => {
    const name = button(grid, word === pad ? pad : `${word} → ${targets[i]}`, () => choose(i));
    const cells = words.map(() => make(grid, 'span', { class: 'cell', 'aria-hidden': true }));
    for (const cell of cells) cell.addEventListener('click', () => choose(i));
    return { name, cells };
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  const legend = make(stage, 'p', { class: 'legend muted' });
  const meanings = { yes: 'may attend', future: 'sees a word it has to predict', pad: 'sees padding', no: 'masked' };
  for (const [look, meaning] of Object.entries(meanings)) {
    const entry = make(legend, 'span');
    make(entry, 'span', { class: `cell ${look}`, 'aria-hidden': true }, LOOKS[look]);
    entry.append(meaning);
  }

  const allowed = (i, j) =>
    (!isCausal.value || j <= i) && (!isPadded.value || words[j] !== pad);
  const lookOf = (i, j) => {
    if (!allowed(i, j)) return 'no';
    if (words[j] === pad) return 'pad';
    return j > i && words[i] !== pad ? 'future' : 'yes';
  };
  const update = () => {
    rows.forEach(({ name, cells }, i) => {
      name.setAttribute('aria-pressed', i === row);
      cells.forEach((cell, j) => {
        const look = lookOf(i, j);
        cell.className = `cell ${look}${i === row ? ' now' : ''}`;
        cell.textContent = LOOKS[look];
      });
    });
    const seen = words.filter((_, j) => allowed(row, j));
    const isPad = words[row] === pad;
    const parts = [`${words[row]} may attend to: ${seen.join(', ')}.`];
    if (isPad) parts.push(`It is padding, so nobody uses what it gets.`);
    else if (lookOf(row, row + 1) === 'future')
      parts.push(`That includes ${words[row + 1]}, the word it has to predict. It can copy it.`);
    if (!isPad && seen.includes(pad))
      parts.push(`Some of its weight goes to ${pad}, which means nothing.`);
    said.textContent = parts.join(' ');
  };
  update();
});
