// Temperature, top-k, top-p and min-p on one distribution, in the order of the library's sampler.

start('sampling', (stage, { words, log_probs, shown, fitting }) => {
  const n = words.length, most = Math.min(20, n - 1), off = 'off';
  const controls = make(stage, 'div', { class: 'controls four' });
  const slider = (name, limits, say) => {
    const made = range(controls, name, limits, () => update(), say);
    return Object.assign(made, { name, start: limits.value, say });
  };
  const temperature = slider('Temperature', { min: .1, max: 3, step: .1, value: 1 }, x => fixed(x, 1));
  const topK = slider('Top-k', { min: 1, max: most + 1, value: most + 1 }, k => k > most ? off : k);
  const topP = slider('Top-p', { min: .05, max: 1, step: .05, value: 1 }, p => p === 1 ? off : fixed(p));
  const minP = slider('Min-p', { min: 0, max: 1, step: .05, value: 0 }, p => p === 0 ? off : fixed(p));
  const sliders = [temperature, topK, topP, minP];

  const table = make(stage, 'div', { class: 'choices number' });
  const names = [...words.slice(0, shown), `${n - shown} others`];
  const rows = names.map((name, i) => {
    const word = make(table, 'span', {}, name), track = make(table, 'span', { class: 'track' });
    const before = make(track, 'span', { class: 'before' });
    const bar = make(track, 'span', { class: i < shown ? 'bar' : 'bar rest' });
    return { word, before, bar, said: make(table, 'span') };
  });
  const said = make(stage, 'p', { class: 'left', 'aria-live': 'polite' });

  const fit = word => fitting.includes(word);
  const draws = make(stage, 'div', { class: 'controls draws' });
  button(draws, 'Draw 20 words', () => {
    before.replaceChildren(...latest.childNodes);
    if (before.firstChild) before.firstChild.data = before.firstChild.data.replace('At', 'Before that, at');
    const counts = new Map();
    for (let i = 0; i < 20; i++) {
      let rest = Math.random(), word = 0;
      while (word < n - 1 && (rest -= probs[word]) >= 0) word++;
      while (!probs[word]) word--; // rounding at the end
      counts.set(words[word], (counts.get(words[word]) || 0) + 1);
    }
    const settings = sliders.map(({ name, value, say }) => `${name.toLowerCase()} ${say(value)}`)
      .filter((text, i) => !i || !text.endsWith(off)).join(', ');
    latest.textContent = `At ${settings}: `;
    [...counts].sort((a, b) => b[1] - a[1]).forEach(([word, count], i) => {
      latest.append(i ? ', ' : '');
      make(latest, fit(word) ? 'b' : 'span', {}, word);
      latest.append(` ${count}`);
    });
    const good = sum([...counts].filter(([word]) => fit(word)).map(([, count]) => count));
    latest.append(fitting.length ? `. ${good} of 20 fit.` : '.');
    latest.className = 'drawn';
  });
  button(draws, 'Reset the sliders', () => {
    for (const one of sliders) one.value = one.start;
    update();
  });
  const latest = make(stage, 'p', { class: 'drawn', 'aria-live': 'polite' });
  const before = make(stage, 'p', { class: 'drawn muted' });

  // Words are in order, the best first; so is what a filter keeps.
  const keep = (scores, may) => scores.map((score, i) => may(i) ? score : -Infinity);
  let probs = [];
  const update = () => {
    const scores = log_probs.map(score => (score - log_probs[0]) / temperature.value);
    const unfiltered = softmax(scores);
    let kept = scores;
    if (topK.value <= most) kept = keep(kept, i => i < topK.value);
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
    const [first, last] = [together(unfiltered), together(probs)];
    rows.forEach((row, i) => {
      row.before.style.width = `${100 * first[i]}%`;
      row.bar.style.width = `${100 * last[i]}%`;
      const left = i < shown ? isLeft[i] : isLeft.slice(shown).includes(true);
      row.said.textContent = left ? fixed(last[i]) : '–';
      row.word.className = row.said.className = left ? '' : 'muted';
    });
    const left = isLeft.filter(is => is).length;
    if (left === n) said.textContent = `None of the ${n} tokens is cut.`;
    else {
      said.textContent = `${left} of ${n} tokens ${left === 1 ? 'is' : 'are'} left`;
      if (left <= 20) words.slice(0, left).forEach((word, i) => {
        said.append(i ? ', ' : ': ');
        make(said, fit(word) ? 'b' : 'span', {}, word);
      });
      said.append(`. Those that are cut had ${fixed(sum(unfiltered.filter((_, i) => !isLeft[i])))} together.`);
    }
    latest.className = 'drawn muted'; // drawn with other settings
  };
  update();
});
