/** The query of the address: filters, tabs, what is open. */
export type Search = Record<string, string | number | boolean | undefined>

/** A query with some of it changed: what is undefined or empty is taken out. */
export function changedSearch(search: Search, change: Search): Search {
  return Object.fromEntries(
    Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined && value !== ''),
  )
}

/** A query with all of it as text. */
export function searchAsText(search: Search): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  )
}

/** A query from texts, of which a whole number is written as one, so that it stands in the address without quotes. */
export function searchOfText(params: Record<string, string | undefined>): Search {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : value,
    ]),
  )
}
