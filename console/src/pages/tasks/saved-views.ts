import { useCallback, useState } from 'react'
import type { Search } from '../../search-text.ts'

/** A name for what the address of the list of tasks says. */
export interface SavedView {
  name: string
  search: Search
}

export const viewBounds = { views: 20, name: 40 } as const

const key = (project: string): string => `cadre.views.tasks.${project}`

/** Named views, stored by this browser for each project. */
export function useSavedViews(project: string) {
  const [views, setViews] = useState(() => readViews(project))
  const put = useCallback(
    (next: SavedView[]) => {
      setViews(next)
      localStorage.setItem(key(project), JSON.stringify(next))
    },
    [project],
  )
  return {
    views,
    /** Takes the place of the one with that name. */
    save: (view: SavedView) => put([...readViews(project).filter(({ name }) => name !== view.name), view]),
    forget: (name: string) => put(readViews(project).filter((view) => view.name !== name)),
  }
}

/** What is wrong with a view's name; undefined where nothing is. */
export function viewFault(name: string, views: readonly SavedView[]): string | undefined {
  if (name.length > viewBounds.name) return `At most ${viewBounds.name} characters`
  if (views.length >= viewBounds.views && !views.some((view) => view.name === name))
    return `There are ${viewBounds.views} views already: remove one first`
  return undefined
}

/** Whether two addresses ask for the same. */
export function isSameSearch(one: Search, other: Search): boolean {
  return wordsOf(one) === wordsOf(other)
}

function wordsOf(search: Search): string {
  const said = Object.entries(search).filter(([, value]) => value !== undefined)
  return JSON.stringify(said.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Entries of another version, or edited by hand, are dropped. */
function readViews(project: string): SavedView[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key(project)) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isView).slice(0, viewBounds.views) : []
  } catch {
    return []
  }
}

function isView(kept: unknown): kept is SavedView {
  const { name, search } = (kept ?? {}) as Partial<SavedView>
  return typeof name === 'string' && name !== '' && typeof search === 'object' && search !== null
}
