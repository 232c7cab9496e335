import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/**
 * A response of a protocol door that begins with a new task. The statement or transaction that creates the task stores
 * it (decision 0029).
 */
export interface NewSegment {
  id: string
  /** The request in the protocol's form, as far as responses show it again. */
  request: Record<string, unknown>
  /** The input items of the request, in the protocol's form. */
  input: unknown[]
  store: boolean
  /** Whether an approval's wait ends the response, because its credential may resolve approvals. */
  resolves: boolean
  /** Identifies a repetition of the request without an idempotency key. */
  asked_by: { credential_id: string; hash: Buffer; process_id: string }
}

/** A task that is created together with a segment. */
interface Segmented {
  id: string
  segment?: NewSegment
}

/**
 * Expressions of a `with` that store the segments of the tasks in the expression `created`, and the column with the
 * number of each task's recorded request. Both are empty if no task has a segment.
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
