import { badParameter } from './problems.ts'

/** A page of a complete list, with the cursor of the OpenAI protocol; newest first by default. */
export function pageOf<Item extends { id: string }>(
  items: readonly Item[],
  { after, limit = 20, order = 'desc' }: { after?: string; limit?: number; order?: 'asc' | 'desc' },
) {
  const sorted = order === 'asc' ? [...items] : items.toReversed()
  const at = after === undefined ? -1 : sorted.findIndex(({ id }) => id === after)
  if (after !== undefined && at < 0) throw badParameter('after', 'after must be the id of an item of this list.')
  const data = sorted.slice(at + 1, at + 1 + limit)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: at + 1 + limit < sorted.length,
  }
}
