import { useSyncExternalStore } from 'react'

/** A word that this browser keeps under `key`: what it is now, which all who show it follow, and how it is changed; null where there is none. */
export function storedValue(key: string): () => [word: string | null, keep: (word: string | null) => void] {
  const listeners = new Set<() => void>()
  const listen = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const keep = (word: string | null): void => {
    if (word === null) localStorage.removeItem(key)
    else localStorage.setItem(key, word)
    for (const listener of listeners) listener()
  }
  return () => [useSyncExternalStore(listen, () => localStorage.getItem(key)), keep]
}
