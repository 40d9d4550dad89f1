// Greedy decoding and beam search as a tree that grows step by step. The scores are stored.

start('beam-tree', (stage, { searches, size }) => {
  const COLUMN = 80, ROW = 64, BOX = [75, 38];
  let search = searches[0];
  const controls = make(stage, 'div', { class: 'controls' });
  const sizes = searches.map(search => search.size);
  const sizeButtons = sizes.map((n, i) => button(controls, n === 1 ? 'Greedy' : `Beam of ${n}`, () => choose(i)));
  const stepping = make(stage, 'div', { class: 'controls' });
  const steps = stepper(stepping, 'Step', 1, () => update(), i => `${i} of ${search.levels.length}`);
  const scroll = make(stage, 'div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Tree' });
  const more = make(stage, 'p', { class: 'muted' }, 'The tree is wider than the page: scroll it sideways.');
  const legend = make(stage, 'p', { class: 'legend muted' });
  for (const state of ['answer', 'kept', 'finished', 'dropped']) {
    const entry = make(legend, 'span'), svg = make(entry, 'svg', { width: 18, height: 14, 'aria-hidden': true });
    make(make(svg, 'g', { class: `node ${state}` }), 'rect', { x: 1, y: 1, width: 16, height: 12, rx: 3 });
    entry.append(state === 'answer' ? 'the answer' : state);
  }
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  // the step stays, to compare, and so does the end
  const choose = i => {
    const isAtEnd = steps.value >= search.levels.length, now = steps.value;
    search = searches[i];
    sizeButtons.forEach((b, j) => b.setAttribute('aria-pressed', i === j));
    const last = search.levels.length;
    steps.reset(last, isAtEnd ? last : Math.min(now, last));
  };

  const percent = p => fixed(p, 3);
  const update = () => {
    const now = steps.value, levels = [[{ word: 'BOS', p: 1, state: 'kept' }], ...search.levels];
    const done = now === levels.length - 1;
    const widest = Math.max(...levels.map(level => level.length));
    const width = widest * COLUMN + 4, height = (now + 1) * ROW;
    scroll.replaceChildren();
    const svg = make(scroll, 'svg', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': true });

    // the way to the answer, from its end to the root
    const answer = new Set();
    if (done) {
      let [depth, i] = search.answer;
      for (; depth > 0; depth--) {
        answer.add(levels[depth][i]);
        i = levels[depth][i].parent;
      }
      answer.add(levels[0][0]);
    }
    const place = (level, i) => 2 + COLUMN * (i + .5 + (widest - level.length) / 2);
    for (let depth = 1; depth <= now; depth++)
      levels[depth].forEach((node, i) => {
        const look = node.state === 'dropped' ? 'var(--line)' : 'var(--edge)';
        const above = place(levels[depth - 1], node.parent), y = depth * ROW;
        arrow(svg, { stroke: look })(above, y - ROW + BOX[1] + 4, place(levels[depth], i), y + 1, 1.5);
      });
    for (let depth = 0; depth <= now; depth++)
      levels[depth].forEach((node, i) => {
        const x = place(levels[depth], i), y = depth * ROW + 2;
        const group = make(svg, 'g', { class: `node ${answer.has(node) ? 'answer' : node.state}` });
        make(group, 'rect', { x: x - BOX[0] / 2, y, width: BOX[0], height: BOX[1], rx: 5 });
        make(group, 'text', { x, y: y + 16, 'text-anchor': 'middle' }, node.word);
        make(group, 'text', { x, y: y + 32, 'text-anchor': 'middle', class: 'p' }, depth ? percent(node.p) : '1');
      });

    more.hidden = scroll.scrollWidth <= scroll.clientWidth;
    if (now === 0) {
      said.textContent = search.size === 1 ? 'Greedy decoding keeps one beginning at each step.'
        : `At each step the ${search.size} most probable beginnings are kept.`;
      return;
    }
    const named = state => levels[now].filter(node => node.state === state)
      .sort((a, b) => b.p - a.p).map(node => `${node.word} ${percent(node.p)}`).join(', ');
    const parts = ['kept', 'finished', 'dropped'].map(state => [state, named(state)]).filter(pair => pair[1]);
    const text = parts.map(([state, words]) => `${state}: ${words}`).join('; ');
    said.textContent = `${text[0].toUpperCase()}${text.slice(1)}.`
      + (done ? ` The answer is ${search.text}, with ${percent(search.p)}.` : '');
  };
  const first = sizes.indexOf(size);
  search = searches[first];
  steps.reset(search.levels.length, search.levels.length);
  choose(first);
});
