import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { notFound } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import * as operations from '#contract/tasks/test-cases.ts'
import { requireKeptFiles } from '../../engine/files/input-files.ts'
import { requireInput } from '../../engine/tools/data-schema.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { newId } from '../../platform/ids.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import {
  deleteTestCase,
  insertTestCase,
  listTestCases,
  requireTestCase,
  updateTestCase,
  type TestCaseRow,
} from './test-cases.queries.ts'

/** Routes of test cases. */
export function testCaseRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.createTestCase, {
    load: loadAgent,
    run: async ({ sql, loaded: { id: agent_id, project_id, config }, body, principal, actor }) => {
      const { name, input, expected = null } = body
      await judgeInput(config, input, { ...principal, project_id })
      requireInput(config, input)
      await requireKeptFiles(sql, project_id, input)
      const content = { name: name.normalize('NFC'), input, expected, created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const key = { id: newId('case'), agent_id }
        const made = view(await insertTestCase(tx, key, content, bounds.test_cases_per_agent), project_id)
        await recordAudit(tx, actor, { action: 'test_case.created', target: made.id, project_id, after: made })
        return made
      })
    },
  })

  handle(app, http, operations.listTestCases, {
    load: loadAgent,
    run: async ({ sql, loaded: { id: agent_id, project_id }, query: { limit, offset } }) => {
      const { test_cases, total } = await listTestCases(sql, { agent_id, limit, offset })
      return {
        test_cases: test_cases.map((row) => view(row, project_id)),
        pagination: offsetPagination(total, limit, offset, test_cases.length),
      }
    },
  })

  handle(app, http, operations.getTestCase, {
    load: loadTestCase,
    run: async ({ loaded: { row, project_id } }) => view(row, project_id),
  })

  handle(app, http, operations.updateTestCase, {
    load: loadTestCase,
    run: async ({ sql, loaded: { row, project_id, config }, body, principal, actor }) => {
      await judgeInput(config, body.input, { ...principal, project_id })
      return sql.begin(async (tx) => {
        const before = await requireTestCase(tx, row, { lock: true })
        if (body.input !== undefined) requireInput(config, body.input)
        await requireKeptFiles(tx, project_id, body.input)
        const { name = before.name, input = before.input, expected = before.expected } = body
        const after = await updateTestCase(tx, { ...before, name: name.normalize('NFC'), input, expected })
        const change = { before: view(before, project_id), after: view(after, project_id) }
        await recordAudit(tx, actor, { action: 'test_case.updated', target: after.id, project_id, ...change })
        return change.after
      })
    },
  })

  handle(app, http, operations.deleteTestCase, {
    load: loadTestCase,
    run: ({ sql, loaded: { row, project_id }, actor }) =>
      sql.begin(async (tx) => {
        if (!(await deleteTestCase(tx, row))) throw notFound('test_case_not_found', 'test_case', row.id)
        const before = view(row, project_id)
        await recordAudit(tx, actor, { action: 'test_case.deleted', target: row.id, project_id, before })
        return { message: 'Test case deleted', test_case_id: row.id }
      }),
  })
}

function view(row: TestCaseRow, project_id: number) {
  return { ...row, input: row.input as string, project_id: projectId(project_id) }
}

async function loadAgent({ sql, params, principal }: Loading) {
  const { id: project_id } = await requireProject(sql, params.project_id!, principal)
  return requireAgent(sql, { id: params.agent_id!, project_id })
}

async function loadTestCase(loading: Loading) {
  const { id: agent_id, project_id, config } = await loadAgent(loading)
  return { project_id, config, row: await requireTestCase(loading.sql, { id: loading.params.test_case_id!, agent_id }) }
}
