// A position as the hands of clocks, one for each frequency; a second position may follow it.

start('clocks', (stage, { words, position, offset, frequencies, names }) => {
  const last = 100;
  const controls = make(stage, 'div', { class: 'controls' });
  const pos = stepper(controls, 'Position', last, () => update(), p => words[p] ? `${p}, ${words[p]}` : p);
  const jumps = make(controls, 'div', { class: 'jumps' });
  for (const by of [-10, 10])
    button(jumps, by < 0 ? '10 back' : '10 on', () =>
      pos.reset(last, Math.max(0, Math.min(last, pos.value + by))));
  const ahead = offset === null ? null : range(make(stage, 'div', { class: 'controls' }), 'Distance of the second position',
    { min: 0, max: 20, value: offset }, () => update());
  const product = ahead && make(stage, 'p', { class: 'number' });

  const faces = make(stage, 'div', { class: 'clocks number' });
  const clocks = names.map(name => {
    const face = make(faces, 'div');
    make(face, 'div', {}, `ω = ${name}`);
    const svg = make(face, 'svg', { viewBox: '-60 -60 120 120', 'aria-hidden': true });
    make(svg, 'circle', { r: 50, class: 'face' });
    for (let i = 0; i < 4; i++) make(svg, 'path', { class: 'face', d: 'M0 -50V-44', transform: `rotate(${90 * i})` });
    if (!ahead) make(svg, 'path', { class: 'start', d: 'M0 0V-44' });
    const second = ahead && arrow(svg, { stroke: 'var(--warm)' });
    const first = arrow(svg, { stroke: 'var(--hot)' });
    return { first, second, said: ahead ? [make(face, 'div')] : [make(face, 'div'), make(face, 'div')] };
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  const update = () => {
    const p = pos.value, second = ahead && p + ahead.value;
    clocks.forEach((clock, i) => {
      const angle = p * frequencies[i];
      const at = (a, length) => [length * Math.sin(a), -length * Math.cos(a)];
      if (ahead) clock.second(0, 0, ...at(second * frequencies[i], 44), 3);
      clock.first(0, 0, ...at(angle, 44), 4);
      const texts = ahead ? [`cosine ${fixed(Math.cos(ahead.value * frequencies[i]))}`]
        : [`sin ${fixed(Math.sin(angle))}`, `cos ${fixed(Math.cos(angle))}`];
      clock.said.forEach((line, j) => { line.textContent = texts[j]; });
    });
    if (ahead) {
      const cosines = frequencies.map(w => Math.cos(ahead.value * w));
      product.textContent = `Dot product: ${cosines.map(x => fixed(x)).join(' + ').replaceAll('+ −', '− ')} = `;
      make(product, 'b', {}, fixed(sum(cosines)));
      said.textContent = `Blue is position ${p}, orange is position ${second}. Below each clock is the cosine of the angle between its hands.`;
    } else {
      const rounds = p * frequencies[0] / (2 * Math.PI);
      said.textContent = `The fastest hand has gone round ${fixed(rounds, 1)} times. Grey: position 0.`;
    }
  };
  pos.reset(last, position);
});
