import { notFound, Problem } from '#contract/core/problems.ts'
import { writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A stored input to test an agent with. */
export interface TestCaseRow {
  id: string
  agent_id: string
  name: string
  /** The input in the form of tasks. */
  input: unknown
  expected: string | null
  created_by: string
  created_at: string
  updated_at: string
}

/** Key of a test case within its agent. */
export interface TestCaseKey {
  id: string
  agent_id: string
}

const columns = (sql: Sql) => sql.fragment`id, agent_id, name, input, expected, created_by, created_at, updated_at`

/**
 * A test case of an agent; throws 404 if it does not exist. With `lock` its row is locked until the transaction ends.
 */
export async function requireTestCase(
  sql: Sql,
  { id, agent_id }: TestCaseKey,
  { lock = false } = {},
): Promise<TestCaseRow> {
  const [row] = isId('case', id)
    ? await sql.run<TestCaseRow>(sql.fragment`
        select ${columns(sql)} from test_case where id = ${id} and agent_id = ${agent_id}
        ${lock ? sql.fragment`for update` : sql.fragment``}`)
    : []
  if (!row) throw notFound('test_case_not_found', 'test_case', id.slice(0, 100))
  return row
}

/** Inserts a test case. Throws `resource_conflict` for a taken name, or if the agent has too many. */
export async function insertTestCase(
  sql: Sql,
  { id, agent_id }: TestCaseKey,
  content: Pick<TestCaseRow, 'name' | 'input' | 'expected' | 'created_by'>,
  testCasesMax: number,
): Promise<TestCaseRow> {
  const { name, input, expected, created_by } = content
  return writeUniqueName(sql, uniqueName(sql, agent_id, name), async (tx) => {
    const [row] = await tx.run<TestCaseRow>(tx.fragment`
      insert into test_case (id, agent_id, name, input, expected, created_by)
      select ${id}, ${agent_id}, ${name}, ${jsonb(input)}::jsonb, ${expected}, ${created_by}
      where (select count(*) from test_case where agent_id = ${agent_id}) < ${testCasesMax}
      returning ${columns(tx)}`)
    if (row) return row
    throw new Problem(
      'resource_conflict',
      { resource_type: 'agent', resource_id: agent_id },
      { message: `An agent may have at most ${testCasesMax} test cases.` },
    )
  })
}

/** Changes a locked test case. */
export async function updateTestCase(
  sql: Sql,
  { id, agent_id, name, input, expected }: Pick<TestCaseRow, 'id' | 'agent_id' | 'name' | 'input' | 'expected'>,
): Promise<TestCaseRow> {
  return writeUniqueName(sql, uniqueName(sql, agent_id, name), async (tx) => {
    const [row] = await tx.run<TestCaseRow>(tx.fragment`
      update test_case set name = ${name}, input = ${jsonb(input)}::jsonb, expected = ${expected},
        updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} and agent_id = ${agent_id}
      returning ${columns(tx)}`)
    if (!row) throw notFound('test_case_not_found', 'test_case', id)
    return row
  })
}

/** Deletes a test case; returns false if it did not exist. */
export async function deleteTestCase(sql: Sql, { id, agent_id }: TestCaseKey): Promise<boolean> {
  const rows = await sql`delete from test_case where id = ${id} and agent_id = ${agent_id} returning id`
  return rows.length > 0
}

/** A page of an agent's test cases, newest first. There are few (`bounds.test_cases_per_agent`), so they are counted. */
export async function listTestCases(
  sql: Sql,
  { agent_id, limit, offset }: { agent_id: string; limit: number; offset: number },
): Promise<{ test_cases: TestCaseRow[]; total: number }> {
  const [count] = await sql<{ total: number }>`
    select count(*) as total from test_case where agent_id = ${agent_id}`
  const test_cases = await sql.run<TestCaseRow>(sql.fragment`
    select ${columns(sql)} from test_case where agent_id = ${agent_id} order by id desc limit ${limit} offset ${offset}`)
  return { test_cases, total: count?.total ?? 0 }
}

function uniqueName(sql: Sql, agent_id: string, name: string): UniqueName {
  const findId = async (): Promise<string | undefined> => {
    const [row] = await sql<{ id: string }>`select id from test_case where agent_id = ${agent_id} and name = ${name}`
    return row?.id
  }
  return { resource_type: 'test_case', name, owner: { resource_type: 'agent', id: agent_id }, findId }
}
