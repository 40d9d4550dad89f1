/* Making elements of the page, and putting names and numbers into words. */

const Elements = (() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";

  // element("button", { class: "x", onclick: f }, "text", another); children that are null are left out
  function element(tag, attributes = {}, ...children) {
    const is_svg = ["svg", "path"].includes(tag);
    const made = is_svg ? document.createElementNS(SVG, tag) : document.createElement(tag);

    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value != null) made.setAttribute(name, value);
    }
    made.append(...children.filter(child => child != null));
    return made;
  }

  // `lang` where it isn't English
  const em = (text, lang = null) => element("em", { lang }, text);

  // the element that page.js made for a part of the page, such as "bars"
  const place = name => document.getElementById(`touch-${name}`);

  // for those who hear the page: what is new, in one place, so that no two voices speak at once
  function say(...texts) {
    const text = texts.filter(text => text).join(" ");
    if (place("said").textContent !== text) place("said").textContent = text;
  }

  // fill a place anew, and give the focus back to the control that had it, or to the first one if it is gone
  function fill(target, ...children) {
    const key = target.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    target.replaceChildren(...children.filter(child => child != null));

    if (key) {
      const controls = [...target.querySelectorAll("[data-key]")];
      const again = controls.find(control => control.dataset.key === key) || controls[0];
      again?.focus({ preventScroll: true });
    }
  }

  // `key` is its name when a place is filled anew, and in tests
  function button(key, onclick, attributes, ...children) {
    return element("button", { type: "button", "data-key": key, onclick, ...attributes }, ...children);
  }

  const pressed = is_pressed => ({ "aria-pressed": String(is_pressed) });

  // buttons of which one is chosen; an option is { value, text, title }
  function choices(label, options, chosen, choose) {
    const buttons = options.map(({ value, text, title }) => {
      const attributes = { ...pressed(value === chosen), "aria-label": title };
      return button(`${label} ${value}`, () => choose(value), attributes, text);
    });
    return element("div", { class: "touch-choices", role: "group", "aria-label": label }, ...buttons);
  }

  // at the sides where more can be scrolled to
  function fade(scroll) {
    const { scrollLeft, clientWidth, scrollWidth } = scroll;
    scroll.classList.toggle("more-left", scrollLeft > 2);
    scroll.classList.toggle("more-right", scrollLeft + clientWidth < scrollWidth - 2);
  }

  // ---- Words ----

  // the space doesn't break
  function percent(probability) {
    if (probability >= 0.1) return `${Math.round(100 * probability)}\u00a0%`;
    if (probability >= 0.00001) return `${Number((100 * probability).toPrecision(2))}\u00a0%`;
    return "<0.001\u00a0%";
  }

  // "a, b and c"
  function listed(names) {
    if (names.length < 2) return names.join("");
    return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  }

  const quoted = names => listed(names.map(name => `“${name}”`));

  return { element, em, place, say, fill, button, pressed, choices, fade, percent, listed, quoted };
})();
