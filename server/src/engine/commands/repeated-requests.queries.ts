import { raw, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/** A request as it looks for an earlier equal one; `again` where its client says itself that it repeats. */
export interface AskedRequest {
  credential_id: string
  hash: Buffer
  again: boolean
}

/** Whether the request in this place, from 1, of these has an earlier equal one, as a condition. */
export function isRepeated(
  { fragment }: Pick<Sql, 'fragment'>,
  all: readonly AskedRequest[],
  place: Fragment,
): Fragment {
  const of = (values: unknown, type: string): Fragment => fragment`(${values}::${raw(type)}[])[${place}]`
  const credential = of(
    all.map(({ credential_id }) => credential_id),
    'text',
  )
  const hash = fragment`decode(${of(
    all.map((asked) => asked.hash.toString('hex')),
    'text',
  )}, 'hex')`
  const equal = fragment`r.credential_id = ${credential} and r.hash = ${hash}`
  const again = of(
    all.map((asked) => asked.again),
    'boolean',
  )
  return fragment`(exists (select from door_request r where ${equal} and r.state <> 'answered')
      or ${again} and exists (select from door_request r where ${equal}))`
}
