// The parts of a model whose queries are the same share a row of buttons: one token is chosen, every head answers.

// Mouse and keyboard: pointing shows a token, a click or the focus chooses it.
const walk = (bar, buttons, heads) => {
  let chosen = 0; const last = buttons.length - 1;
  const show = q => {
    buttons.forEach((b, i) => b.classList.toggle('shown', i == q));
    for (const { part, l, h, cells, said } of heads) {
      const weights = cells.map((_, k) => part.weight(l, h, q, k));
      const most = weights.indexOf(Math.max(...weights));
      cells.forEach((cell, k) => {
        cell.style.setProperty('--w', weights[k]);
        const percent = Math.round(100 * weights[k]);
        cell.title = `${part.queries[q]} reads ${part.keys[k]}: ${percent} %`;
      });
      said.textContent = `${part.keys[most]}, ${Math.round(100 * weights[most])} %`;
    }
  };
  const choose = q => {
    buttons.forEach((b, i) => b.setAttribute('aria-pressed', i == q));
    buttons.forEach((b, i) => { b.tabIndex = i == q ? 0 : -1 });
    show(chosen = q);
  };
  buttons.forEach((b, q) => Object.assign(b, { type: 'button',
    onmouseenter: () => show(q), onclick: () => choose(q), onfocus: () => choose(q) }));
  bar.onmouseleave = () => show(chosen);
  bar.onkeydown = event => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1,
                 Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    buttons[Math.min(last, Math.max(0, to))].focus();
  };
  choose(Math.floor(buttons.length / 2)); // the first row is often the dullest
};

// The weights travel as bytes, 0 to 255.
const grouped = data => { // parts by their queries, each with a function for its weights
  const groups = new Map();
  for (const part of JSON.parse(data)) {
    const bytes = Uint8Array.from(atob(part.weights), c => c.charCodeAt(0));
    const [L, H, Q, K] = part.shape;
    part.weight = (l, h, q, k) => bytes[((l * H + h) * Q + q) * K + k] / 255;
    const name = JSON.stringify(part.queries);
    groups.set(name, [...groups.get(name) || [], part]);
  }
  return [...groups.values()];
};

// Scripts whose characters stand upright where a line runs downwards.
const isUpright = text =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(text);

// Light letters mean a dark page. The system doesn't tell, as an editor can have a theme of its own.
const readPage = root => {
  const [r, g, b] = getComputedStyle(root.parentElement).color.match(/[\d.]+/g).map(Number);
  root.dataset.page = r + g + b > 384 ? 'dark' : 'light';
};

// Each part is a grid, heads by keys. A view whose data a careful host took out is left alone, with its picture.
const make = (into, tag, kind, text = '') =>
  Object.assign(into.appendChild(document.createElement(tag)),
                { className: kind, textContent: text });
document.querySelectorAll('.attention-view:not([data-live])').forEach(root => {
  const data = root.querySelector('script[type="application/json"]');
  if (!data) return;
  for (const parts of grouped(data.textContent)) {
    const names = parts.map(part => part.name).join(' and '), heads = [];
    make(root, 'p', '', `${names}: from (point, click, or use the arrow keys)`);
    const bar = make(root, 'div', 'bar');
    bar.setAttribute('role', 'toolbar'); bar.setAttribute('aria-label', `${names}, from`);
    for (const part of parts) {
      make(root, 'p', '', `${part.name}: to`);
      const [L, H, Q, K] = part.shape, scroll = make(root, 'div', 'scroll');
      const grid = make(scroll, 'div', 'grid');
      scroll.tabIndex = 0;
      grid.style.gridTemplateColumns = `auto repeat(${K}, ${K > 30 ? 13 : 22}px) auto`;
      for (const key of ['', ...part.keys, ''])
        make(grid, 'span', isUpright(key) ? 'key downwards' : 'key', key);
      for (let l = 0; l < L; l++) for (let h = 0; h < H; h++) {
        make(grid, 'span', 'head', `layer ${l + 1}, head ${h + 1}`);
        const cells = part.keys.map(() => make(grid, 'span', 'cell'));
        heads.push({ part, l, h, cells, said: make(grid, 'span', 'said') });
      }
    }
    walk(bar, parts[0].queries.map(word => make(bar, 'button', '', word)), heads);
  }
  root.addEventListener('keydown', event => { // a notebook has shortcuts of its own
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
  root.dataset.live = '';
  readPage(root);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => readPage(root));
  root.querySelector('.still').hidden = true;
});
