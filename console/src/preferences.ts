import { queryOptions } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { defaultPreferences, localZone } from '#contract/accounts/preference-choices.ts'
import { isTimeZone } from '#contract/core/timestamps.ts'
import type { Operations } from '#sdk/types.ts'
import { api } from './api/client.ts'
import { writeAs, type TimeZone } from './format.ts'
import { tellFailure } from './ui/toast.tsx'

export type Preferences = Operations['getPreferences']['result']

const defaults: Preferences = { ...defaultPreferences, task_views: [] }

/** The copy of this browser, which `public/theme.js` reads before the first page is drawn. */
const key = 'cadre.preferences'
const listeners = new Set<() => void>()

let shown: Preferences = defaults

/** Raised when a change is sent and when it was answered: what was read meanwhile may be older than the change. */
let changes = 0
let underWay = 0

/** What the user has chosen, in any browser. It takes effect as it is read. */
export const preferencesQuery = queryOptions({
  queryKey: ['preferences'],
  staleTime: 60_000,
  async queryFn() {
    const before = changes
    const found = await api.user.preferences()
    if (underWay === 0 && changes === before) show(found)
    return found
  },
})

/** One preference, and how it is changed: here at once, and by the service for all browsers of the user. */
export function usePreference<Name extends keyof Preferences>(
  name: Name,
): [Preferences[Name], (next: Preferences[Name]) => void] {
  const value = useSyncExternalStore(listen, () => shown[name])
  return [value, (next) => void change({ [name]: next })]
}

async function change(given: Partial<Preferences>): Promise<void> {
  show({ ...shown, ...given })
  changes++
  underWay++
  try {
    await api.user.updatePreferences(given)
  } catch (error) {
    tellFailure('The preference was saved in this browser only', error)
  } finally {
    changes++
    underWay--
  }
}

function show(next: Preferences): void {
  localStorage.setItem(key, JSON.stringify(next))
  take(next)
}

let besideUtc: TimeZone = localZone

/** The zone that the user had before UTC: what a switch between the two goes back to. */
export function zoneBesideUtc(): TimeZone {
  return besideUtc
}

function take(next: Preferences): void {
  // A browser may not know a zone that another one knows.
  shown = next.time_zone === localZone || isTimeZone(next.time_zone) ? next : { ...next, time_zone: localZone }
  if (shown.time_zone !== 'UTC') besideUtc = shown.time_zone
  writeAs(next.date_form)
  const { dataset } = document.documentElement
  if (next.theme === 'system') delete dataset['theme']
  else dataset['theme'] = next.theme
  for (const listener of listeners) listener()
}

function listen(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Preferences that the copy lacks, because an earlier version wrote it, are the default ones. */
function storedCopy(): Preferences {
  try {
    return { ...defaults, ...(JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Preferences>) }
  } catch {
    return defaults
  }
}

take(storedCopy())
// Another tab has changed one.
addEventListener('storage', (event) => {
  if (event.key === key) take(storedCopy())
})
