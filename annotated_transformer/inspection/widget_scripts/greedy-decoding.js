// Greedy decoding step by step. The reader may take another word than the most probable one, and
// greedy decoding goes on from there. What follows is stored: each step has three numbers for each
// of its words: the word, its probability in millionths, and the step after it (0: not stored).

start('greedy-decoding', (stage, { source, words, steps, others }) => {
  const choicesOf = row => Array.from({ length: row.length / 3 }, (_, rank) => {
    const [word, millionths, next] = row.slice(3 * rank, 3 * rank + 3);
    return { word: words[word], p: millionths / 1e6, next, rank };
  });
  const rest = row => 1 - sum(choicesOf(row).map(choice => choice.p));

  // The way from the start: the words that were picked, and the first ones elsewhere.
  const follow = picked => {
    const way = [];
    for (let place = 0, more = true; more;) {
      const choices = choicesOf(steps[place]), taken = choices[picked[way.length] || 0];
      way.push({ choices, taken, rest: rest(steps[place]) });
      place = taken.next;
      more = taken.word !== 'EOS' && place > 0;
    }
    return way;
  };
  const total = way => way.reduce((p, { taken }) => p * taken.p, 1);
  const textOf = way => way.map(({ taken }) => taken.word).filter(word => word !== 'EOS').join(' ');
  const greedy = follow([]);
  let way = greedy;

  if (source) make(stage, 'p', { class: 'source' }, `Source: ${source}`);
  const controls = make(stage, 'div', { class: 'controls' });
  const stepping = stepper(controls, 'Step', way.length, () => update(),
    i => i < way.length ? `${i + 1} of ${way.length}` : 'the end');
  button(controls, 'Start again', () => {
    way = greedy;
    stepping.reset(way.length);
  });
  const written = make(stage, 'p', { class: 'written' });
  const table = make(stage, 'div', { class: 'next-words number', role: 'group', 'aria-label': 'Next word' });
  const most = Math.max(...steps.map(row => row.length / 3));
  const rows = Array.from({ length: most }, (_, rank) => addRow(button(table, '', () => pick(rank))));
  const restRow = addRow(make(table, 'div', { class: 'muted' }));
  const said = make(stage, 'p', { 'aria-live': 'polite' });

  function addRow(row) {
    const word = make(row, 'span', { class: 'word' });
    const bar = make(make(row, 'span', { class: 'track' }), 'span', { class: 'bar' });
    return { row, word, bar, p: make(row, 'span') };
  }
  const fill = ({ word, bar, p }, text, probability) => {
    word.textContent = text;
    bar.style.width = `${100 * probability}%`;
    p.textContent = fixed(probability);
  };

  const pick = rank => {
    const now = stepping.value, { word, next } = way[now].choices[rank];
    if (word !== 'EOS' && !next) {
      said.textContent = `What comes after ${word} isn't stored here. `
        + `You can take ${others} ${others === 1 ? 'word' : 'words'} of your own in a sentence. Step back, or start again.`;
      return;
    }
    if (rank !== way[now].taken.rank) { // greedy decoding goes on from here
      way = follow([...way.slice(0, now).map(({ taken }) => taken.rank), rank]);
    }
    stepping.reset(way.length, now + 1);
  };

  const update = () => {
    const now = stepping.value, isOver = now === way.length;
    written.replaceChildren('Written: ', make(written, 'span', {}, 'BOS'));
    for (const { taken } of way.slice(0, now)) {
      written.append(' ');
      make(written, 'span', taken.rank ? { class: 'other' } : {}, taken.word);
    }

    // what has the focus goes away at the end
    if (isOver && table.contains(document.activeElement)) controls.querySelector('button').focus();
    // the box keeps its height without the table
    if (isOver && !table.hidden) stage.style.minHeight = getComputedStyle(stage).height;
    if (!isOver) stage.style.minHeight = '';
    table.hidden = isOver;
    if (isOver) {
      const isOwn = way.some(({ taken }) => taken.rank > 0), p = fixed(total(way), 3);
      said.textContent = `The translation is: ${textOf(way)}. Its probability, the product of all steps, is ${p}.`
        + (isOwn ? ` Greedy decoding alone gets ${fixed(total(greedy), 3)}, with: ${textOf(greedy)}.` : '');
      return;
    }

    const { choices, taken, rest } = way[now];
    rows.forEach((row, rank) => {
      row.row.hidden = rank >= choices.length;
      if (row.row.hidden) return;
      const { word, p, next } = choices[rank];
      fill(row, word, p);
      row.row.setAttribute('aria-pressed', rank === taken.rank);
      row.row.className = word !== 'EOS' && !next ? 'unknown' : '';
    });
    fill(restRow, 'all others', rest);
    said.textContent = taken.rank ? `You took ${taken.word}. The most probable word was ${choices[0].word}.`
      : `Greedy decoding takes ${taken.word}. Press Next, or take another word.`;
  };
  stepping.update();
});
