import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const key = 'cadre.theme'
const listeners = new Set<() => void>()

/** The theme that this browser has chosen; `public/theme.js` sets it before the first page is drawn. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => (document.documentElement.dataset.theme ?? 'system') as Theme,
  )
  return [theme, setTheme]
}

function setTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(key)
  } else {
    document.documentElement.dataset.theme = theme
    localStorage.setItem(key, theme)
  }
  for (const listener of listeners) listener()
}
