const DATA = JSON.parse(document.getElementById('data').textContent);

// A number as the page shows it: four digits, or a word where JSON had none for it.
function show(number) {
  if (typeof number === 'string') return number.replace('nan', 'NaN').replace('inf', '∞');
  if (number === null || number === undefined) return '–';
  if (Number.isInteger(number) && Math.abs(number) < 1e6) return String(number);
  const size = Math.abs(number);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? number.toExponential(2) : String(Number(number.toPrecision(4)));
}

// An element with attributes and children; strings become text, never markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// The button that changes between light and dark.
for (const button of document.querySelectorAll('[data-switch=theme]')) {
  button.addEventListener('click', () => {
    const root = document.documentElement;
    const isDark = root.classList.contains('dark')
      || (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
    root.classList.toggle('dark', !isDark);
    root.classList.toggle('light', isDark);
  });
}
