// A query among keys in two dimensions. The query can be dragged, and the weights follow.

start('query-arrows', (stage, { query, keys, names, limits }) => {
  const UNIT = 46, [right, top] = limits;
  const width = 2 * (right + .4) * UNIT, height = 2 * (top + .4) * UNIT;
  const at = ([x, y]) => [width / 2 + UNIT * x, height / 2 - UNIT * y];

  const sides = make(stage, 'div', { class: 'sides' });
  const plane = make(sides, 'div', { class: 'plane' });
  const svg = make(plane, 'svg', { viewBox: `0 0 ${width} ${height}`, 'aria-hidden': true });
  for (let x = -right; x <= right; x++)
    make(svg, 'path', { class: x ? 'grid' : 'axis', d: `M${at([x, 0])[0]} 0V${height}` });
  for (let y = -top; y <= top; y++)
    make(svg, 'path', { class: y ? 'grid' : 'axis', d: `M0 ${at([0, y])[1]}H${width}` });

  const toKeys = keys.map(() => arrow(svg, { stroke: 'currentColor' }));
  const labels = keys.map((key, i) => {
    const [x, y] = at(key);
    return make(svg, 'text', { x, y: y + (key[1] < 0 ? 18 : -8), 'text-anchor': 'middle' }, names[i]);
  });
  const toQuery = arrow(svg, { stroke: 'var(--hot)' });
  const called = make(svg, 'text', { class: 'called', 'text-anchor': 'middle' }, 'query');
  const handle = make(plane, 'button', { type: 'button', class: 'handle',
    'aria-label': 'Tip of the query: drag it, or use the arrow keys' });

  const results = make(sides, 'div');
  const table = make(results, 'div', { class: 'rows number' });
  for (const head of ['', 'q · k', 'q · k / √2', 'weight']) make(table, 'span', { class: 'muted' }, head);
  const rows = names.map(name => {
    make(table, 'span', {}, name);
    const [product, score, place] = ['span', 'span', 'span'].map(tag => make(table, tag));
    const bar = make(make(place, 'span', { class: 'track' }), 'span', { class: 'bar' });
    return { product, score, bar, weight: make(place, 'span') };
  });
  const controls = make(results, 'div', { class: 'controls' });
  const sliders = ['First number of the query', 'Second number of the query'].map((words, axis) =>
    range(controls, words, { min: -limits[axis], max: limits[axis], step: .1, value: query[axis] },
      () => { query[axis] = sliders[axis].value; update(); }, x => fixed(x, 1)));
  const said = make(results, 'p', { 'aria-live': 'polite' });

  const update = () => {
    const products = keys.map(key => key[0] * query[0] + key[1] * query[1]);
    const scores = products.map(product => product / Math.SQRT2);
    const weights = softmax(scores);
    const [x, y] = at(query), origin = at([0, 0]);
    toQuery(...origin, x, y, 4);
    // its name lies beyond its tip
    const length = Math.hypot(...query) || 1;
    const within = (place, edge, end) => Math.max(edge, Math.min(end - edge, place));
    called.setAttribute('x', within(x + 48 * query[0] / length, 24, width));
    called.setAttribute('y', within(y - 36 * (query[1] || !query[0]) / length + 4, 14, height));
    handle.style.left = `${100 * x / width}%`;
    handle.style.top = `${100 * y / height}%`;
    rows.forEach((row, i) => {
      toKeys[i](...origin, ...at(keys[i]), 1.5 + 7 * weights[i]);
      labels[i].style.fontWeight = weights[i] > .5 ? 'bold' : '';
      row.product.textContent = fixed(products[i]);
      row.score.textContent = fixed(scores[i]);
      row.weight.textContent = fixed(weights[i]);
      row.bar.style.width = `${100 * weights[i]}%`;
    });
    const most = weights.indexOf(Math.max(...weights));
    const equal = Math.max(...weights) - Math.min(...weights) < .005;
    said.textContent = `The query has length ${fixed(Math.hypot(...query))}. ` +
      (equal ? 'All keys get the same weight.' : `Most weight goes to ${names[most]}: ${fixed(weights[most])}.`);
  };

  const move = to => {
    query = to;
    sliders.forEach((slider, axis) => { slider.value = query[axis]; });
    update();
  };
  dragged(plane, handle, UNIT * 100 / width, limits, () => query, move);
  update();
});
