import { useLocation, useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'
import { changedSearch, searchAsText, searchOfText, type Search } from './search-text.ts'

/**
 * What the address says behind `?`, and a way to change some of it: `undefined` takes a word out. A change of what is shown goes
 * into the history; one while typing (`replace`) does not.
 */
export function useSearchState<T extends Search>(): [
  Partial<T>,
  (change: Partial<T>, options?: { replace?: boolean }) => void,
] {
  const search = useLocation().search as T
  const navigate = useNavigate()
  const change = useCallback(
    (change: Partial<T>, { replace = false } = {}) => {
      void navigate({
        to: '.',
        search: ((before: Search) => changedSearch(before, change)) as never,
        replace,
        resetScroll: false,
      })
    },
    [navigate],
  )
  return [search, change]
}

type Words = Record<string, string | undefined>

/** The same for pages that take all of it as text. */
export function useSearchText(): [Words, (change: Words, options?: { replace?: boolean }) => void] {
  const [search, change] = useSearchState()
  return [searchAsText(search), (params, options) => change(searchOfText(params), options)]
}
