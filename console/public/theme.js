// Before anything is drawn, so that no page flashes in the other theme. A file of its own, because the page allows no inline scripts.
;(() => {
  let kept
  try {
    kept = localStorage.getItem('cadre.theme')
  } catch {
    // Storage may be switched off; then the system's theme it is.
  }
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept
})()
