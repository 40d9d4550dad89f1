// Temperature, top-k, top-p and min-p on one distribution, in the order of the library's sampler.

start('sampling', (stage, { words, log_probs, shown, fits }) => {
  const n = words.length, off = 'off';
  const controls = make(stage, 'div', { class: 'controls four' });
  const slider = (name, limits, say) => range(controls, name, limits, () => update(), say);
  const temperature = slider('Temperature', { min: .1, max: 3, step: .1, value: 1 }, x => fixed(x, 1));
  const topK = slider('Top-k', { min: 1, max: shown + 1, value: shown + 1 }, k => k > shown ? off : k);
  const topP = slider('Top-p', { min: .05, max: 1, step: .05, value: 1 }, p => p === 1 ? off : fixed(p));
  const minP = slider('Min-p', { min: 0, max: 1, step: .05, value: 0 }, p => p === 0 ? off : fixed(p));

  const table = make(stage, 'div', { class: 'choices number' });
  const names = [...words.slice(0, shown), `${n - shown} others`];
  const rows = names.map(name => {
    const word = make(table, 'span', {}, name), track = make(table, 'span', { class: 'track' });
    const [before, bar] = ['before', 'bar'].map(look => make(track, 'span', { class: look }));
    return { word, before, bar, said: make(table, 'span') };
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });
  const draws = make(stage, 'div', { class: 'controls draws' });
  button(draws, 'Draw 20 words', () => {
    const counts = new Map();
    for (let i = 0; i < 20; i++) {
      let rest = Math.random(), word = 0;
      while (word < n - 1 && (rest -= probs[word]) >= 0) word++;
      while (!probs[word]) word--; // rounding at the end
      counts.set(words[word], (counts.get(words[word]) || 0) + 1);
    }
    // the draw before this one stays, to compare
    while (drawn.children.length > 1) drawn.lastChild.remove();
    const line = make(drawn, 'p', { class: 'draw' });
    drawn.prepend(line);
    const isFit = word => fits.includes(word);
    const nFit = sum([...counts].filter(([word]) => isFit(word)).map(pair => pair[1]));
    make(line, 'b', {}, settings() + (fits.length ? `: ${nFit} of 20 fit.` : ':'));
    [...counts].sort((a, b) => b[1] - a[1]).forEach(([word, n], i) => {
      line.append(i ? ', ' : ' ');
      make(line, isFit(word) ? 'mark' : 'span', {}, `${word} ${n}`);
    });
  });
  button(draws, 'Reset', () => {
    [temperature.value, topK.value, topP.value, minP.value] = [1, shown + 1, 1, 0];
    update();
  });
  const drawn = make(stage, 'div', { class: 'drawn', 'aria-live': 'polite' });
  const settings = () => [`Temperature ${fixed(temperature.value, 1)}`,
    ...[['top-k', topK], ['top-p', topP], ['min-p', minP]].filter(([, slider]) => slider.input.getAttribute('aria-valuetext') !== off)
      .map(([name, slider]) => `${name} ${slider.input.getAttribute('aria-valuetext')}`)].join(', ');

  // Words are in order, the best first; so is what a filter keeps.
  const keep = (scores, may) => scores.map((score, i) => may(i) ? score : -Infinity);
  let probs = [];
  const update = () => {
    const scores = log_probs.map(score => (score - log_probs[0]) / temperature.value);
    const before = softmax(scores);
    let kept = scores;
    if (topK.value <= shown) kept = keep(kept, i => i < topK.value);
    if (topP.value < 1) {
      let better = 0;
      const found = softmax(kept);
      kept = keep(kept, i => {
        const enough = better >= topP.value;
        better += found[i];
        return !enough;
      });
    }
    if (minP.value > 0) kept = keep(kept, i => kept[i] >= Math.log(minP.value));
    probs = softmax(kept);
    const isLeft = kept.map(score => score > -Infinity);

    const together = all => [...all.slice(0, shown), sum(all.slice(shown))];
    const [first, last] = [together(before), together(probs)];
    rows.forEach((row, i) => {
      row.before.style.width = `${100 * first[i]}%`;
      row.bar.style.width = `${100 * last[i]}%`;
      const left = i < shown ? isLeft[i] : isLeft.slice(shown).includes(true);
      row.said.textContent = left ? fixed(last[i]) : 'cut';
      row.word.className = row.said.className = left ? '' : 'muted';
    });
    const left = isLeft.filter(is => is).length;
    said.textContent = left === n ? `All ${n} tokens can be drawn.`
      : `${left} of ${n} tokens can be drawn. The ${n - left} that are cut had ${fixed(sum(before.filter((_, i) => !isLeft[i])))} together.`;
  };
  update();
});
