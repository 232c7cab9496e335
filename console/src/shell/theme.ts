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

const systemIsDark = matchMedia('(prefers-color-scheme: dark)')

/** The current theme, for canvas drawings: it follows the system's unless the user chose one. */
export function useShownTheme(): 'light' | 'dark' {
  const [theme] = useTheme()
  const isDark = useSyncExternalStore(
    (listener) => {
      systemIsDark.addEventListener('change', listener)
      return () => systemIsDark.removeEventListener('change', listener)
    },
    () => systemIsDark.matches,
  )
  if (theme !== 'system') return theme
  return isDark ? 'dark' : 'light'
}
