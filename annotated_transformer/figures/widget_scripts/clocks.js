// A position as the hands of clocks, one for each frequency; a second position may follow it.

start('clocks', (stage, { words, position, offset, frequencies, names, last }) => {
  const controls = make(stage, 'div', { class: 'controls' });
  const pos = range(controls, 'Position', { min: 0, max: last, value: position }, () => update(),
    p => words[p] ? `${p}, ${words[p]}` : p);
  const ahead = offset === null ? null : range(controls, 'Second position',
    { min: -20, max: 20, value: offset }, () => update(), k => `${fixed(Math.abs(k), 0)} ${k < 0 ? 'before' : 'after'}`);

  const faces = make(stage, 'div', { class: 'clocks number' });
  const clocks = names.map(name => {
    const face = make(faces, 'div');
    make(face, 'div', {}, `ω = ${name}`);
    const svg = make(face, 'svg', { viewBox: '-60 -60 120 120', 'aria-hidden': true });
    make(svg, 'circle', { r: 50, class: 'face' });
    for (let i = 0; i < 4; i++) make(svg, 'path', { class: 'face', d: 'M0 -50V-44', transform: `rotate(${90 * i})` });
    const second = ahead && arrow(svg, { stroke: 'var(--warm)' });
    const first = arrow(svg, { stroke: 'var(--hot)' });
    return { first, second, sin: make(face, 'div'), cos: make(face, 'div') };
  });
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  const update = () => {
    const p = pos.value, second = ahead && p + ahead.value;
    clocks.forEach((clock, i) => {
      const angle = p * frequencies[i];
      const at = (a, length) => [length * Math.sin(a), -length * Math.cos(a)];
      if (ahead) clock.second(0, 0, ...at(second * frequencies[i], 44), 3);
      clock.first(0, 0, ...at(angle, 44), 4);
      clock.sin.textContent = `sin ${fixed(Math.sin(angle))}`;
      clock.cos.textContent = `cos ${fixed(Math.cos(angle))}`;
    });
    if (ahead) {
      const product = sum(frequencies.map(w => Math.cos(ahead.value * w)));
      said.textContent = `Blue: position ${p}. Orange: position ${fixed(second, 0)}. ` +
        `Their dot product is ${fixed(product)}, the sum of the cosines of the angles between the hands.`;
    } else {
      const rounds = frequencies.map(w => p * w / (2 * Math.PI));
      said.textContent = `The fastest hand has gone round ${fixed(rounds[0], 1)} times, ` +
        `the slowest ${rounds.at(-1) < .001 ? 'hardly at all' : fixed(rounds.at(-1), 3) + ' times'}.`;
    }
  };
  update();
});
