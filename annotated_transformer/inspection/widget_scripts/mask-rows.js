// A causal mask with one row selected: what may this position attend to?

start('mask-rows', (stage, { words, targets }) => {
  const last = words.length - 1;
  const controls = make(stage, 'div', { class: 'controls' });
  const steps = stepper(controls, 'Row', last, () => update(), i => `${i + 1} of ${words.length}`);
  const isCausal = check(make(stage, 'div', { class: 'controls' }), 'causal mask', true, () => update());

  const names = words.map((word, i) => `${word} → ${targets[i]}`);
  const heading = 'reads → predicts';
  const grid = make(make(stage, 'div', { class: 'scroll' }), 'div', { class: 'mask', 'aria-hidden': true });
  grid.style.setProperty('--name', `${.56 * Math.max(heading.length, ...names.map(name => name.length))}em`);
  const head = make(grid, 'div', { class: 'mask-row' });
  make(head, 'span', { class: 'muted' }, heading);
  for (const word of words) make(make(head, 'span', { class: 'key' }), 'span', {}, word);
  const rows = names.map((name, i) => {
    const line = make(grid, 'div', { class: 'mask-row' });
    line.addEventListener('click', () => steps.reset(last, i));
    make(line, 'span', {}, name);
    return { line, cells: words.map(() => make(line, 'span')) };
  });

  const MARKS = { yes: '✓', no: '', bad: '!', later: '' };
  const entries = {};
  const legend = make(stage, 'p', { class: 'mask-legend' });
  for (const [look, meaning] of [['yes', 'may attend'], ['no', 'hidden'], ['bad', 'may attend: the word to predict'], ['later', 'may attend: another later word']]) {
    const entry = entries[look] = make(legend, 'span');
    make(entry, 'span', { class: `cell ${look}`, 'aria-hidden': true }, MARKS[look]);
    entry.append(meaning);
  }
  const said = make(stage, 'p', { class: 'mask-said', 'aria-live': 'polite' });

  const update = () => {
    const now = steps.value, isOn = isCausal.value;
    rows.forEach(({ line, cells }, i) => {
      line.className = i === now ? 'mask-row pick now' : 'mask-row pick';
      cells.forEach((cell, j) => {
        const look = j <= i ? 'yes' : isOn ? 'no' : j === i + 1 ? 'bad' : 'later';
        cell.className = `cell ${look}`;
        cell.textContent = MARKS[look];
      });
    });
    // the legend keeps its height
    for (const [look, isShown] of [['no', isOn], ['bad', !isOn], ['later', !isOn]])
      entries[look].style.visibility = isShown ? '' : 'hidden';
    const seen = isOn ? words.slice(0, now + 1) : words;
    const parts = [`${words[now]} may attend to: ${seen.join(', ')}.`, `It has to predict ${targets[now]}.`];
    if (!isOn && now < last) parts.push(`That’s the next word, so it can copy it.`);
    if (!isOn && now === last) parts.push(`No word comes after it, so there is nothing to copy.`);
    said.textContent = parts.join(' ');
  };
  steps.reset(last, 1);
});
