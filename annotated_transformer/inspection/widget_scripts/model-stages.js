// One sentence through the whole model, stage by stage. What each stage returns is stored.

const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));

const ABOUT = {
  ids: 'Each word is a number, its place in the vocabulary.',
  embedding: 'Each id takes its row of the embedding matrix, and the vector of its position is added.',
  'self-attention': 'Each word has added values of the words that it attends to. Then come sum and norm. The weights in %, mean of all heads:',
  'masked self-attention': 'Each word has added values of itself and of the words before it (×: masked). Then come sum and norm. The weights in %, mean of all heads:',
  'cross-attention': 'Each German word has added values of the encoder\'s output, the memory of stage MEMORY. Then come sum and norm. The weights in %, mean of all heads:',
  'feed-forward': 'Each row has gone through the network alone. Then come sum and norm.',
  output: 'A linear layer gives each word of the vocabulary a logit, and softmax makes them probabilities. The best three for each position:',
};

start('model-stages', (stage, { words, stages }) => {
  const controls = make(stage, 'div', { class: 'controls' });
  const steps = stepper(controls, 'Stage', stages.length - 1, () => update(), i => `${i + 1} of ${stages.length}`);
  const sides = make(stage, 'div', { class: 'sides' });
  const map = make(sides, 'div', { class: 'map' });
  const columns = Object.fromEntries(['encoder', 'decoder'].map(side => {
    const column = make(map, 'div');
    make(column, 'b', {}, side[0].toUpperCase() + side.slice(1));
    return [side, column];
  }));
  const nameOf = ({ kind, layer }) => layer ? `${layer} ${kind.replace('masked ', '')}` : kind;
  const buttons = stages.map((one, i) => button(columns[one.side], nameOf(one), () => go(i)));
  const panel = make(sides, 'div', { class: 'panel' });
  const said = make(panel, 'p', { 'aria-live': 'polite' });
  const shown = make(panel, 'div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'What the stage returns' });

  // Rows of numbers as colours: blue is positive, orange negative.
  const colours = (rows, names, heads, cell, isMasked = () => false) => {
    const [left, height] = [62, 20], width = left + cell * rows[0].length + 2;
    const top = heads ? 18 : 2;
    const svg = make(shown, 'svg', { viewBox: `0 0 ${width} ${top + height * rows.length}`, width, height: top + height * rows.length, 'aria-hidden': true });
    (heads || []).forEach((head, j) =>
      make(svg, 'text', { x: left + cell * (j + .5), y: 12, 'text-anchor': 'middle', class: 'small' }, head));
    rows.forEach((row, i) => {
      make(svg, 'text', { x: left - 6, y: top + height * i + 14, 'text-anchor': 'end' }, names[i]);
      row.forEach((x, j) => make(svg, 'rect', { x: left + cell * j, y: top + height * i + 1, width: cell, height: height - 2,
        fill: x < 0 ? 'var(--warm)' : 'var(--hot)', 'fill-opacity': Math.min(1, Math.abs(x)).toFixed(2) }));
      row.forEach((x, j) => heads && make(svg, 'text', { x: left + cell * (j + .5), y: top + height * i + 15, 'text-anchor': 'middle',
        class: isMasked(i, j) ? 'masked' : x > .75 ? 'small strong' : 'small' }, isMasked(i, j) ? '×' : Math.round(100 * x)));
    });
  };
  const cut = (numbers, n) => Array.from({ length: numbers.length / n }, (_, i) => numbers.slice(n * i, n * (i + 1)));

  const update = () => {
    const one = stages[steps.value], names = words[one.side];
    buttons.forEach((b, i) => b.setAttribute('aria-pressed', i === steps.value));
    const shape = one.kind === 'ids' ? `${names.length} numbers` : `${names.length} × ${one.width}`;
    said.replaceChildren();
    const layer = one.layer ? `, layer ${one.layer}: ` : ': ';
    make(said, 'b', {}, `${one.side[0].toUpperCase()}${one.side.slice(1)}${layer}${one.kind}, ${shape}. `);
    const memory = stages.findIndex(({ side }) => side === 'decoder'); // the stage before it, counted from 1
    const readers = stages.flatMap(({ kind }, i) => kind === 'cross-attention' ? i + 1 : []);
    said.append(ABOUT[one.kind].replace('MEMORY', memory) + (steps.value + 1 === memory
      ? ` This is the memory, which every cross-attention reads (stage${readers.length > 1 ? 's' : ''} ${readers.join(' and ')}).` : ''));
    shown.replaceChildren();
    if (one.kind === 'ids' || one.kind === 'output') {
      const table = make(shown, 'div', { class: 'lines number' });
      names.forEach((name, i) => {
        make(table, 'span', {}, name);
        make(table, 'span', {}, one.ids ? one.ids[i]
          : one.best[i].map(([word, p]) => `${word} ${p ? fixed(100 * p, 1) : '< 0.1'} %`).join(', '));
      });
      return;
    }
    if (one.weights) {
      const keys = words[one.kind === 'cross-attention' ? 'encoder' : one.side];
      colours(cut([...bytes(one.weights)].map(x => x / 255), keys.length), names, keys, 44,
        (i, j) => one.kind === 'masked self-attention' && j > i);
    }
    make(shown, 'p', {}, `What comes out, ${shape} (blue is positive, orange negative):`);
    const values = [...bytes(one.values)].map(x => (x - 128) / 127);
    colours(cut(values, one.width), names, null, Math.max(3, 256 / one.width));
  };

  // as high as the tallest stage, so that nothing below moves
  const go = i => steps.reset(stages.length - 1, i);
  const reserve = () => {
    const now = steps.value;
    panel.style.minHeight = '';
    const heights = stages.map((_, i) => { go(i); return panel.offsetHeight; });
    panel.style.minHeight = `${Math.max(...heights)}px`;
    go(now);
  };
  go(stages.findIndex(one => one.weights)); // ids and embedding come before it
  new ResizeObserver(reserve).observe(controls); // it has the width of the stage
});
