// Before anything is drawn, so that no page flashes in the other theme. A file of its own, because the page allows no inline scripts.
;(() => {
  let theme
  try {
    theme = JSON.parse(localStorage.getItem('cadre.preferences'))?.theme
  } catch {
    // Storage may be switched off; then the system's theme it is.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
})()
