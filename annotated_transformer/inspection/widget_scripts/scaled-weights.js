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
  for (const head of ['without the division', 'with the division']) make(table, 'span', { class: 'muted head' }, head);
  const rows = products[0][0].map((_, i) => {
    make(table, 'span', {}, `key ${i + 1}`);
    return ['bar raw', 'bar'].map(look => {
      const bar = make(make(table, 'span', { class: 'track' }), 'span', { class: look });
      return { bar, said: make(table, 'span') };
    });
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' }), counted = make(stage, 'p');

  const update = () => {
    const d_k = sizes[size.value], found = products[size.value][draw];
    const both = [softmax(found), softmax(found.map(product => product / Math.sqrt(d_k)))];
    rows.forEach((row, i) => row.forEach(({ bar, said }, column) => {
      bar.style.width = `${100 * both[column][i]}%`;
      said.textContent = fixed(both[column][i]);
    }));
    const most = both.map(weights => fixed(Math.max(...weights)));
    said.replaceChildren();
    make(said, 'b', {}, `The dot products go from ${fixed(Math.min(...found), 1)} to ${fixed(Math.max(...found), 1)}.`);
    said.append(` The largest weight is ${most[0]} without the division and ${most[1]} with it.`);

    // one draw can mislead, so all of them are counted
    const all = products[size.value], n = all.length;
    const largest = [1, Math.sqrt(d_k)].map(root =>
      all.map(scores => Math.max(...softmax(scores.map(score => score / root)))));
    const [above, mean] = [weights => weights.filter(w => w > .9).length, weights => fixed(sum(weights) / n)];
    counted.textContent = `In all ${n} draws with d_k = ${d_k}, the largest weight is above 0.9 in ${above(largest[0])} without the division`
      + ` and in ${above(largest[1])} with it. Its mean is ${mean(largest[0])} without and ${mean(largest[1])} with it.`;
  };
  update();
});
