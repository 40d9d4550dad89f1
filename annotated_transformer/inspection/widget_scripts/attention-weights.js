// The weights of one query, whose strength can be changed. It fits one of the keys.

start('attention-weights', (stage, { words, fits, strength, d_k }) => {
  const controls = make(stage, 'div', { class: 'controls' });
  const power = range(controls, 'Strength of the query', { min: 0, max: 8, step: .1, value: strength }, () => update());

  const said = make(stage, 'p', { 'aria-live': 'polite', class: 'number' });
  const table = make(stage, 'div', { class: 'weights number' });
  const rows = words.map(word => {
    make(table, 'span', {}, word);
    const bar = make(make(table, 'span', { class: 'track' }), 'span', { class: 'bar' });
    return { bar, weight: make(table, 'span') };
  });

  const update = () => {
    const score = power.value / Math.sqrt(d_k);
    const weights = softmax(words.map((_, i) => i === fits ? score : 0));
    rows.forEach((row, i) => {
      row.bar.style.width = `${100 * weights[i]}%`;
      row.weight.textContent = fixed(weights[i]);
    });
    said.textContent = `Score of ${words[fits]}: ${power.value} / √${d_k} = ${fixed(score)}. All other scores are 0,`
      + ` so ${words[fits]} gets the weight ${fixed(weights[fits])}.`;
  };
  update();
});
