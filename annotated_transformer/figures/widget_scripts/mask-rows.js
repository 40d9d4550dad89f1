// A mask, a row at a time: which keys may this position attend to?

start('mask-rows', (stage, { words, targets, pad, causal, padding }) => {
  const controls = make(stage, 'div', { class: 'controls' });
  const steps = stepper(controls, 'Row', words.length - 1, () => update(),
    i => `${i + 1} of ${words.length}`);
  const masks = make(stage, 'div', { class: 'controls' });
  const isCausal = check(masks, 'causal mask', causal, () => update());
  const isPadded = check(masks, 'padding mask', padding, () => update());

  const grid = make(make(stage, 'div', { class: 'scroll' }), 'div', { class: 'mask', 'aria-hidden': true });
  grid.style.setProperty('--columns', words.length);
  make(grid, 'span', { class: 'muted' }, 'reads → predicts');
  for (const word of words) make(grid, 'span', { class: word === pad ? 'key muted' : 'key' }, word);
  const rows = words.map((word, i) => {
    const name = make(grid, 'span', {}, word === pad ? pad : `${word} → ${targets[i]}`);
    return { name, cells: words.map(() => make(grid, 'span', { class: 'cell' })) };
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  const allowed = (i, j) =>
    (!isCausal.value || j <= i) && (!isPadded.value || words[j] !== pad);
  const update = () => {
    const now = steps.value;
    rows.forEach(({ name, cells }, i) => {
      name.className = i === now ? 'now' : i < now ? '' : 'later';
      cells.forEach((cell, j) => {
        const leaks = j > i && words[i] !== pad && words[j] !== pad;
        const look = !allowed(i, j) ? 'no' : leaks || words[j] === pad ? 'bad' : 'yes';
        cell.className = `cell ${i > now ? 'later' : look}`;
        cell.textContent = i > now ? '' : { no: '', yes: '✓', bad: '!' }[look];
      });
    });
    const seen = words.filter((_, j) => allowed(now, j));
    const isPad = words[now] === pad;
    const parts = [`${words[now]} may attend to: ${seen.join(', ')}.`];
    if (isPad) parts.push(`It is padding, so nobody uses what it gets.`);
    else if (allowed(now, now + 1) && now + 1 < words.length && words[now + 1] !== pad)
      parts.push(`That includes ${words[now + 1]}, the word it has to predict. It can copy it.`);
    if (!isPad && seen.includes(pad))
      parts.push(`Some of its weight goes to ${pad}, which means nothing.`);
    said.textContent = parts.join(' ');
  };
  steps.update();
});
