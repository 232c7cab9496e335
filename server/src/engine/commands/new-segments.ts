import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/**
 * A response of a protocol door that begins with a new task, stored by the statement or the transaction that creates it
 * (decision 0029).
 */
export interface NewSegment {
  id: string
  /** What was asked for, in the words of the protocol, as far as it is shown again. */
  request: Record<string, unknown>
  /** Items of the request, in the words of the protocol. */
  input: unknown[]
  store: boolean
  /** A wait for an approval ends it, because its credential may resolve approvals. */
  resolves: boolean
  /** The request as its client would repeat it without a key. */
  asked_by: { credential_id: string; hash: Buffer; process_id: string }
}

/** A task whose creation stores a segment. */
interface Segmented {
  id: string
  segment?: NewSegment
}

/**
 * Expressions of a `with` that store the segments of those tasks that the expression `created` has, and the column that gives the
 * number of the recorded request of each. Empty where no task has a segment.
 */
export function segmentParts(
  { fragment }: Sql,
  tasks: readonly Segmented[],
  created: Fragment,
): { parts: Fragment; column: Fragment } {
  const rows = tasks.flatMap(({ id: task_id, segment }) => {
    if (!segment) return []
    const { asked_by, ...response } = segment
    return [{ ...response, ...asked_by, task_id, hash: asked_by.hash.toString('hex') }]
  })
  if (rows.length === 0) return { parts: fragment``, column: fragment`` }
  const parts = fragment`, segment as (
      select s.*, c.project_id from jsonb_to_recordset(${jsonb(rows)}::jsonb) as s(id text, task_id text, request jsonb, input jsonb, store boolean,
        resolves boolean, credential_id text, hash text, process_id text)
      join ${created} c on c.id = s.task_id
    ), responded as (
      insert into door_response (id, project_id, task_id, ordinal, first_sequence, request, input, store, resolves)
      select id, project_id, task_id, 1, 1, request, input, store, resolves from segment
    ), recorded as (
      insert into door_request (credential_id, hash, response_id, task_id, state, process_id)
      select credential_id, decode(hash, 'hex'), id, task_id, 'open', process_id from segment returning id, task_id
    )`
  return { parts, column: fragment`, (select r.id from recorded r where r.task_id = created.id) as request_record` }
}
