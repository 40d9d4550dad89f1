// Greedy decoding and beam search as a tree, a step at a time. The scores are stored.

start('beam-tree', (stage, { searches, size }) => {
  for (const search of searches)
    search.levels = search.levels.map(level => level.map(([word, p, parent, state]) => ({ word, p, parent, state })));
  const ROW = 64, HEIGHT = 38;
  const longest = Math.max(...searches.flatMap(({ levels }) => levels.flat().map(node => node.word.length)));
  const COLUMN = 14 + 7.4 * Math.max(longest, 6), WIDTH = COLUMN - 4; // five boxes fit a phone
  let search = searches[0];
  const controls = make(stage, 'div', { class: 'controls' });
  const sizes = searches.map(search => search.size);
  const sizeButtons = sizes.map((n, i) => button(controls, n === 1 ? 'Greedy' : `Beam of ${n}`, () => {
    const isAtEnd = steps.value === search.levels.length;
    choose(i, isAtEnd ? Infinity : steps.value);
  }));
  const stepping = make(stage, 'div', { class: 'controls' });
  const steps = stepper(stepping, 'Step', 1, () => update(), i => `${i} of ${search.levels.length}`);
  const said = make(stage, 'div', { class: 'beginnings', 'aria-live': 'polite' });
  const scroll = make(stage, 'div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Tree' });
  const hint = make(stage, 'p', { class: 'muted' }, 'The tree is wider than the page: scroll it sideways.');

  const STATES = { kept: 'kept for the next row', finished: 'finished', beaten: "best alive, but can't win any more", dropped: 'best of the dropped', answer: 'the answer' };
  const legend = make(stage, 'p', { class: 'tree-legend' });
  for (const [state, meaning] of Object.entries(STATES)) {
    const entry = make(legend, 'span');
    const svg = make(entry, 'svg', { width: 22, height: 16, 'aria-hidden': true });
    make(make(svg, 'g', { class: `node ${state}` }), 'rect', { x: 2, y: 2, width: 18, height: 12, rx: 3 });
    entry.append(meaning);
  }

  const choose = (i, step) => {
    search = searches[i];
    sizeButtons.forEach((b, j) => b.setAttribute('aria-pressed', i === j));
    const last = search.levels.length;
    steps.reset(last, Math.min(step, last));
  };

  const update = () => {
    const now = steps.value, levels = [[{ word: 'BOS', p: 1, state: 'kept' }], ...search.levels];
    const done = now === levels.length - 1;
    const widest = Math.max(...levels.map(level => level.length));
    const width = widest * COLUMN + 4, height = levels.length * ROW; // the same at all steps
    scroll.replaceChildren();
    const svg = make(scroll, 'svg', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': true });

    // all nodes from the root to this one
    const path = (depth, i) => {
      const found = [];
      for (; depth >= 0; depth--) {
        found.unshift(levels[depth][i]);
        i = levels[depth][i].parent;
      }
      return found;
    };
    const answer = new Set(done ? path(...search.answer) : []);
    const place = (level, i) => 2 + COLUMN * (i + .5 + (widest - level.length) / 2);
    for (let depth = 1; depth <= now; depth++)
      levels[depth].forEach((node, i) => {
        const look = node.state === 'dropped' ? 'var(--line)' : 'var(--edge)';
        const above = place(levels[depth - 1], node.parent), y = depth * ROW;
        arrow(svg, { stroke: look })(above, y - ROW + HEIGHT + 4, place(levels[depth], i), y + 1, 1.5);
      });
    for (let depth = 0; depth <= now; depth++)
      levels[depth].forEach((node, i) => {
        const x = place(levels[depth], i), y = depth * ROW + 2;
        const group = make(svg, 'g', { class: `node ${answer.has(node) ? 'answer' : node.state}` });
        make(group, 'rect', { x: x - WIDTH / 2, y, width: WIDTH, height: HEIGHT, rx: 5 });
        make(group, 'text', { x, y: y + 16, 'text-anchor': 'middle' }, node.word);
        make(group, 'text', { x, y: y + 32, 'text-anchor': 'middle' }, depth ? fixed(node.p, 3) : '1');
      });
    hint.hidden = scroll.scrollWidth <= scroll.clientWidth;

    // each beginning in full, the most probable first
    said.replaceChildren();
    if (now === 0) make(said, 'p', {}, 'No word is written yet.');
    for (const [state, head] of [['kept', 'Kept'], ['finished', 'Finished'], ['beaten', "Best alive, but can't win any more"], ['dropped', 'Dropped']]) {
      const found = []; // what has finished stays on the list
      for (let depth = state === 'finished' ? 1 : now; now && depth <= now; depth++)
        levels[depth].forEach((node, i) => node.state === state && found.push([node.p, path(depth, i)]));
      const text = found.sort((a, b) => b[0] - a[0])
        .map(([p, nodes]) => `${nodes.slice(1).map(node => node.word).join(' ')} ${fixed(p, 3)}`).join('; ');
      if (text) make(said, 'p', {}, `${head}: ${text}.`);
    }
    if (done) make(said, 'p', {}, `The answer is ${search.text}, with ${fixed(search.p, 3)}.`);
  };
  choose(sizes.indexOf(size), 1);
});
