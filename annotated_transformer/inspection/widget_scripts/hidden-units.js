// Two hidden units on the plane of two facts: where each is active, and what they give together.

start('hidden-units', (stage, { phrases, units, weights }) => {
  const formulas = ['s − v', 'v − s'], axes = ['subject s', 'verb v'];
  const ticks = [['they: −1', 'she: +1'], ['have: −1', 'has: +1']];
  let point = [1, -1];
  const LIMIT = 1.7, CELLS = 34, SIZE = 306, UNIT = SIZE / (2 * LIMIT), COLOURS = ['var(--warm)', 'var(--violet)'];
  const at = ([x, y]) => [SIZE / 2 + UNIT * x, SIZE / 2 - UNIT * y];
  const sides = make(stage, 'div', { class: 'sides' });
  const plane = make(sides, 'div', { class: 'plane' });
  const svg = make(plane, 'svg', { viewBox: `0 0 ${SIZE} ${SIZE}`, 'aria-hidden': true });
  make(svg, 'rect', { width: SIZE, height: SIZE, class: 'ground' });
  const cells = [];
  const side = SIZE / CELLS;
  for (let i = 0; i < CELLS; i++) for (let j = 0; j < CELLS; j++) {
    const cell = make(svg, 'rect', { x: i * side, y: j * side, width: side, height: side, 'shape-rendering': 'crispEdges' });
    cells.push({ cell, place: [(i + .5) * side, (j + .5) * side] });
  }

  // the line where a unit becomes 0, its name on its side, and the axes below and on the left
  for (const [i, [a, b]] of units.entries()) {
    const far = LIMIT / Math.max(Math.abs(a), Math.abs(b));
    make(svg, 'path', { d: `M${at([-far * b, far * a])}L${at([far * b, -far * a])}`, class: 'edge' });
    const [x, y] = at([.65 * a + .35 * Math.sign(a), .65 * b + .35 * Math.sign(a)]);
    make(svg, 'text', { x, y, 'text-anchor': 'middle' }, `unit ${i + 1}`);
  }
  for (const [axis, names] of ticks.entries())
    for (const [i, name] of names.entries()) {
      const [x, y] = at(axis ? [-LIMIT, 2 * i - 1] : [2 * i - 1, -LIMIT]);
      const turned = axis ? { transform: `rotate(-90 ${x - 6} ${y})` } : {};
      make(svg, 'text', { x: axis ? x - 6 : x, y: axis ? y : y + 16, 'text-anchor': 'middle', ...turned }, name);
    }
  for (const [words, place] of Object.entries(phrases)) {
    const [x, y] = at(place);
    make(svg, 'circle', { cx: x, cy: y, r: 4, fill: 'currentColor' });
    make(svg, 'text', { x, y: y + 32, 'text-anchor': 'middle', class: 'phrase' }, words);
  }
  const handle = make(plane, 'button', { type: 'button', class: 'handle',
    'aria-label': 'The phrase: drag it, or use the arrow keys' });

  const right = make(sides, 'div');
  const switches = make(right, 'div', { class: 'controls' });
  const isOn = units.map((_, i) => check(switches, `hidden unit ${i + 1}`, true, () => paint()));
  const isCut = check(switches, 'negatives become 0 (ReLU)', true, () => paint());
  const controls = make(right, 'div', { class: 'controls' });
  const sliders = axes.map((axis, i) => range(controls, axis, { min: -LIMIT, max: LIMIT, step: .1, value: point[i] },
    () => { point[i] = sliders[i].value; update(); }, x => fixed(x, 1)));
  const table = make(right, 'div', { class: 'sums number' });
  const rows = [...units.keys()].map(i => {
    const name = make(table, 'span'), value = make(table, 'b');
    return { name, value, formula: formulas[i] };
  });
  const total = { name: make(table, 'span', {}, 'sum'), value: make(table, 'b') };
  make(right, 'p', { class: 'muted' }, 'Colour: orange is unit 1, violet is unit 2, grey is a sum below 0.');
  const said = make(right, 'p', { 'aria-live': 'polite' });

  const parts = place => units.map((unit, i) => {
    const z = unit[0] * place[0] + unit[1] * place[1];
    return isOn[i].value ? weights[i] * (isCut.value ? Math.max(0, z) : z) : 0;
  });
  const paint = () => { // the plane, which only the switches change
    for (const { cell, place: [x, y] } of cells) {
      const found = parts([(x - SIZE / 2) / UNIT, (SIZE / 2 - y) / UNIT]), output = sum(found);
      const most = found.indexOf(Math.max(...found));
      cell.setAttribute('fill', output < 0 ? 'var(--edge)' : COLOURS[most % 2]);
      cell.setAttribute('fill-opacity', Math.min(.75, Math.abs(output) / 4.5).toFixed(3));
    }
    rows.forEach((row, i) => {
      row.name.textContent = `unit ${i + 1}: ${isCut.value ? `max(0, ${row.formula})` : row.formula}`;
    });
    update();
  };
  const update = () => {
    const [x, y] = at(point), found = parts(point), output = sum(found);
    handle.style.left = `${100 * x / SIZE}%`;
    handle.style.top = `${100 * y / SIZE}%`;
    rows.forEach((row, i) => {
      row.value.textContent = isOn[i].value ? fixed(found[i], 1) : 'off';
    });
    total.value.textContent = fixed(output, 1);
    const near = Object.keys(phrases).find(words =>
      Math.hypot(point[0] - phrases[words][0], point[1] - phrases[words][1]) < .35);
    said.textContent = `${near ? `At ${near}` : 'Here'}, the sum is ${fixed(output, 1)}.`;
  };
  dragged(plane, handle, 100 * UNIT / SIZE, [LIMIT, LIMIT], () => point, to => {
    point = to;
    sliders.forEach((slider, i) => { slider.value = point[i]; });
    update();
  });
  paint();
});
