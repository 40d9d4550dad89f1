// What all widgets share. The script of one widget follows in the same block, and calls `start`.

const SVG = 'http://www.w3.org/2000/svg';

// A new element at the end of another one.
const make = (into, tag, attributes = {}, text = '') => {
  const inSvg = tag === 'svg' || into.namespaceURI === SVG;
  const element = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return into.appendChild(element);
};

// A number as readers write it: a real minus, and no -0.00.
const fixed = (x, digits = 2) => {
  const text = x.toFixed(digits);
  return (+text === 0 ? text.replace('-', '') : text).replace('-', '−');
};

const sum = numbers => numbers.reduce((a, b) => a + b, 0);

const softmax = scores => {
  const most = Math.max(...scores);
  const exps = scores.map(score => Math.exp(score - most));
  const total = sum(exps);
  return exps.map(x => x / total);
};

// A slider with its label and its value in words.
const range = (into, words, { min, max, step = 1, value }, changed, say = String) => {
  const label = make(into, 'label', { class: 'range' });
  label.append(`${words}: `);
  const shown = make(label, 'b', { class: 'number' });
  const input = make(label, 'input', { type: 'range', min, max, step, 'aria-label': words });
  const show = () => {
    shown.textContent = say(+input.value);
    input.setAttribute('aria-valuetext', say(+input.value));
  };
  input.value = value;
  input.addEventListener('input', () => { show(); changed(); });
  show();
  return {
    input,
    get value() { return +input.value },
    set value(x) { input.value = x; show(); },
  };
};

const check = (into, words, checked, changed) => {
  const label = make(into, 'label', { class: 'check' });
  const input = make(label, 'input', { type: 'checkbox' });
  input.checked = checked;
  input.addEventListener('change', changed);
  label.append(words);
  return { get value() { return input.checked } };
};

const button = (into, words, pressed) => {
  const made = make(into, 'button', { type: 'button' }, words);
  made.addEventListener('click', pressed);
  return made;
};

// One step back and one step on, with a slider over all steps between the two.
const stepper = (into, words, last, changed, say) => {
  const move = by => { steps.value = steps.value + by; update(); };
  const back = button(into, 'Back', () => move(-1));
  const next = button(into, 'Next', () => move(1));
  const update = () => {
    // a button that is disabled would lose the focus; these two only say that they are
    back.setAttribute('aria-disabled', steps.value <= 0);
    next.setAttribute('aria-disabled', steps.value >= steps.input.max);
    changed();
  };
  const steps = range(into, words, { min: 0, max: last, value: 0 }, update, say);
  return {
    update,
    get value() { return steps.value },
    reset(newLast, value = 0) { steps.input.max = newLast; steps.value = value; update(); },
  };
};

// An arrow in an SVG; `place` moves it.
const arrow = (svg, look) => {
  const line = make(svg, 'path', { fill: 'none', ...look });
  const tip = make(svg, 'polygon', { fill: look.stroke });
  return (x0, y0, x1, y1, thick = 2) => {
    const length = Math.hypot(x1 - x0, y1 - y0), size = Math.min(7 + thick, length);
    const [dx, dy] = length ? [(x1 - x0) / length, (y1 - y0) / length] : [0, 0];
    const [bx, by] = [x1 - size * dx, y1 - size * dy], half = size / 2;
    line.setAttribute('d', `M${x0} ${y0}L${bx} ${by}`);
    line.setAttribute('stroke-width', thick);
    tip.setAttribute('points',
      `${x1},${y1} ${bx - half * dy},${by + half * dx} ${bx + half * dy},${by - half * dx}`);
  };
};

// Let a handle on a plane be dragged, or moved by the arrow keys. `unit` is a length of 1, in percent
// of the plane's width; zero is in its middle.
const dragged = (plane, handle, unit, limits, where, moved) => {
  const move = to => moved(to.map((x, axis) =>
    Math.round(10 * Math.max(-limits[axis], Math.min(limits[axis], x))) / 10));
  const drag = event => {
    const box = plane.getBoundingClientRect(), one = unit * box.width / 100;
    move([(event.clientX - box.x - box.width / 2) / one, (box.y + box.height / 2 - event.clientY) / one]);
  };
  plane.addEventListener('pointerdown', event => {
    // beside the handle, a finger scrolls the page
    if (event.target !== handle && event.pointerType !== 'mouse') return;
    plane.setPointerCapture(event.pointerId);
    drag(event);
  });
  plane.addEventListener('pointermove', event => {
    if (plane.hasPointerCapture(event.pointerId)) drag(event);
  });
  handle.addEventListener('keydown', event => {
    const by = { ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, .1], ArrowDown: [0, -.1] }[event.key];
    if (!by) return;
    event.preventDefault();
    move(where().map((x, axis) => x + by[axis]));
  });
};

// Light letters mean a dark page. The system doesn't tell, as an editor can have a theme of its own.
const readPage = root => {
  const ink = getComputedStyle(root.parentElement).color.match(/[\d.]+/g).slice(0, 3);
  root.dataset.page = sum(ink.map(Number)) > 384 ? 'dark' : 'light';
};

// Build each widget of this kind that is not yet built. One whose data a careful host took out
// is left alone, with its table.
const start = (name, build) => {
  for (const root of document.querySelectorAll(`.book-widget[data-widget="${name}"]`)) {
    const data = root.querySelector('script[type="application/json"]');
    if (!data || 'live' in root.dataset) continue;
    const stage = make(root, 'div', { class: 'stage' });
    build(stage, JSON.parse(data.textContent));
    stage.addEventListener('keydown', event => { // a notebook has shortcuts of its own
      if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    });
    root.dataset.live = '';
    readPage(root);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => readPage(root));
    root.querySelector('.still').hidden = true;
  }
};
