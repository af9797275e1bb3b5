function group(title, bars) {
  return element('div', { class: 'group' }, title && element('b', {}, title), ...bars);
}

// The lines of an answer: shares, or numbers that are as long as their size.
function rowsOf({ rows }) {
  const isShare = PAGE.settings.output !== 'values';
  const most = Math.max(1e-12, ...rows.map(({ value }) => Math.abs(value)));
  return rows.slice(0, 40).map(({ name, value, isPlain }) => (
    bar(name, isShare ? value : Math.abs(value) / most, isShare && !isPlain ? percent(value) : show(value))
  ));
}
