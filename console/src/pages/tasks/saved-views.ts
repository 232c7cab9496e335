import { taskViewName } from '#contract/accounts/preference-choices.ts'
import { bounds } from '#contract/core/limits.ts'
import { usePreference } from '../../preferences.ts'
import { searchAsText, searchOfText, type Search } from '../../search-text.ts'

/** A name for what the address of the list of tasks says. */
export interface SavedView {
  name: string
  search: Search
}

/** Named views of the user in a project, and those of all projects together. */
export function useSavedViews(project_id: string) {
  const [all, put] = usePreference('task_views')
  const without = (name: string) => all.filter((one) => one.project_id !== project_id || one.name !== name)
  return {
    views: all
      .filter((one) => one.project_id === project_id)
      .map(({ name, query }): SavedView => ({ name, search: searchOf(query) })),
    total: all.length,
    /** Takes the place of the one with that name. */
    save: ({ name, search }: SavedView) => put([...without(name), { project_id, name, query: queryOf(search) }]),
    forget: (name: string) => put(without(name)),
  }
}

/** What is wrong with a view's name; undefined where nothing is. `total`: how many there are in all projects. */
export function viewFault(
  name: string,
  { views, total }: { views: readonly SavedView[]; total: number },
): string | undefined {
  if (name.length > taskViewName.max) return `At most ${taskViewName.max} characters`
  if (total >= bounds.task_views && !views.some((view) => view.name === name))
    return `There are ${bounds.task_views} views already: remove one first`
  return undefined
}

/** Whether two addresses ask for the same. */
export function isSameSearch(one: Search, other: Search): boolean {
  return sorted(one) === sorted(other)
}

function sorted(search: Search): string {
  const query = new URLSearchParams(queryOf(search))
  query.sort()
  return query.toString()
}

function queryOf(search: Search): string {
  const said = Object.entries(searchAsText(search)).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return new URLSearchParams(said).toString()
}

function searchOf(query: string): Search {
  return searchOfText(Object.fromEntries(new URLSearchParams(query)))
}
