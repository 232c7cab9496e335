import { useLocation, useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'

/** The query of the address: filters, tabs, what is open. Pages read and write it with `useSearchState`. */
export type Search = Record<string, string | number | boolean | undefined>

/**
 * What the address says behind `?`, and a way to change some of it: `undefined` takes a word out. A change of what is shown goes
 * into the history; one while typing (`replace`) does not.
 */
export function useSearchState<T extends Search>(): [T, (change: Partial<T>, options?: { replace?: boolean }) => void] {
  const search = useLocation().search as T
  const navigate = useNavigate()
  const change = useCallback(
    (change: Partial<T>, { replace = false } = {}) => {
      void navigate({
        to: '.',
        search: ((before: Search) => without({ ...before, ...change })) as never,
        replace,
        resetScroll: false,
      })
    },
    [navigate],
  )
  return [search, change]
}

function without(search: Search): Search {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined && value !== ''))
}
