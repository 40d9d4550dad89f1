// Weights of random keys, with and without the division by the root of d_k. The dot products are stored.

start('scaled-weights', (stage, { sizes, products }) => {
  let draw = 0;
  const controls = make(stage, 'div', { class: 'controls' });
  const size = range(controls, 'd_k, the length of a key', { min: 0, max: sizes.length - 1, value: sizes.length - 1 },
    () => update(), i => String(sizes[i]));
  button(controls, 'Other vectors', () => {
    draw = (draw + 1) % products[0].length;
    update();
  });

  const table = make(stage, 'div', { class: 'both number' });
  make(table, 'span');
  for (const head of ['weight without the division', 'weight']) make(table, 'span', { class: 'muted head' }, head);
  const rows = products[0][0].map((_, i) => {
    make(table, 'span', {}, `key ${i + 1}`);
    return ['bar raw', 'bar'].map(look => {
      const bar = make(make(table, 'span', { class: 'track' }), 'span', { class: look });
      return { bar, said: make(table, 'span') };
    });
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  const update = () => {
    const d_k = sizes[size.value], found = products[size.value][draw];
    const both = [softmax(found), softmax(found.map(product => product / Math.sqrt(d_k)))];
    rows.forEach((row, i) => row.forEach(({ bar, said }, column) => {
      bar.style.width = `${100 * both[column][i]}%`;
      said.textContent = fixed(both[column][i]);
    }));
    const most = both.map(weights => fixed(Math.max(...weights)));
    said.textContent = `The dot products go from ${fixed(Math.min(...found), 1)} to ${fixed(Math.max(...found), 1)}. `
      + `The largest weight is ${most[0]} without the division and ${most[1]} with it.`;
  };
  update();
});
