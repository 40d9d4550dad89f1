// The weights of one query, whose strength and length can be changed. It fits one of the keys.

start('attention-weights', (stage, { words, fits, strength, d_k }) => {
  const controls = make(stage, 'div', { class: 'controls' });
  const power = range(controls, 'Strength of the query', { min: 0, max: 8, step: .1, value: strength },
    () => update());
  const size = range(controls, 'd_k, the length of a key', { min: 0, max: 8, value: Math.log2(d_k) },
    () => update(), exponent => String(2 ** exponent));
  const isDivided = check(controls, 'divide by √d_k', true, () => update());

  const said = make(stage, 'p', { 'aria-live': 'polite', class: 'number' });
  const table = make(stage, 'div', { class: 'weights number' });
  const rows = words.map(word => {
    make(table, 'span', {}, word);
    const bar = make(make(table, 'span', { class: 'track' }), 'span', { class: 'bar' });
    return { bar, weight: make(table, 'span') };
  });

  const update = () => {
    const length = 2 ** size.value, product = power.value;
    const score = isDivided.value ? product / Math.sqrt(length) : product;
    const weights = softmax(words.map((_, i) => i === fits ? score : 0));
    rows.forEach((row, i) => {
      row.bar.style.width = `${100 * weights[i]}%`;
      row.weight.textContent = fixed(weights[i]);
    });
    const division = isDivided.value ? `${product} / √${length} = ` : '';
    said.textContent = `Score of ${words[fits]}: ${division}${fixed(score)}. All other scores are 0,`
      + ` so ${words[fits]} gets the weight ${fixed(weights[fits])}.`;
  };
  update();
});
