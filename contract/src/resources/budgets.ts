import Type from 'typebox'
import { TaskBudget } from './agents.ts'
import { budgetPeriods, budgetScopes, budgetWarning_percent } from './budget-window.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'

const dollars = (description: string) => Type.Number({ minimum: 0, description })
const tokens = (description: string) => Type.Integer({ minimum: 0, description })

const amountMembers = { cost_usd: dollars('US dollars.'), tokens: tokens('Input and output tokens.') }

/** A spending limit. */
export const Budget = Named(
  'Budget',
  Type.Object({
    id: Type.String(),
    scope: Choice(budgetScopes),
    subject: Type.String({ description: 'The agent, project, API key or organization that it limits.' }),
    max_cost_usd: Nullable(dollars('US dollars per period; null for no limit.')),
    max_tokens: Nullable(tokens('Input and output tokens per period; null for no limit.')),
    max_sandbox_seconds: Nullable(
      Type.Integer({ minimum: 0, description: 'Seconds of sandbox programs per period; null for no limit.' }),
    ),
    period: Choice(budgetPeriods),
    warn_percent: Type.Integer({
      minimum: 1,
      maximum: 100,
      description: 'Percentage of a limit at which `budget.warning` is sent, once per period.',
    }),
    spent: Type.Object(
      {
        ...amountMembers,
        sandbox_seconds: Type.Number({
          minimum: 0,
          description: 'Seconds of programs. A running program counts with its maximum duration.',
        }),
      },
      { description: 'Spending in the current period.' },
    ),
    reserved: Type.Object(amountMembers, { description: 'Reservations of running model calls.' }),
    resets_at: Nullable(Timestamp),
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)

const budgetExample = {
  id: 'budget_01jcm3x5v8f9a2b4c6d8e0g2h4',
  scope: 'project',
  subject: 'proj_42',
  max_cost_usd: 25,
  max_tokens: null,
  max_sandbox_seconds: null,
  period: 'month',
  warn_percent: 80,
  spent: { cost_usd: 3.1874, tokens: 1_204_331, sandbox_seconds: 12.5 },
  reserved: { cost_usd: 0.0049, tokens: 4210 },
  resets_at: '2026-12-01T00:00:00.000Z',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

const common = {
  error_format: 'agents',
  tag: 'Budgets and usage',
  credentials: anyCredential,
  extension: true,
} as const
const ofProject = {
  ...common,
  path: '/api/v1/projects/{project_id}/budgets',
  params: { project_id: projectParameter },
} as const
const one = {
  ...common,
  path: `${ofProject.path}/{budget_id}`,
  params: { ...ofProject.params, budget_id: { description: 'The budget.', example: budgetExample.id } },
} as const

const limits = {
  max_cost_usd: Type.Optional(
    Nullable(
      Type.Number({
        minimum: 0,
        maximum: bounds.budget_cost_usd,
        description: 'US dollars, with up to nine decimals.',
      }),
    ),
  ),
  max_tokens: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 1_000_000_000_000 }))),
  max_sandbox_seconds: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: 'Seconds of sandbox programs. If none are left, programs do not run, and the model gets an error.',
      }),
    ),
  ),
}
const warn_percent = {
  minimum: 1,
  maximum: 100,
  description: 'Percentage of a limit at which `budget.warning` is sent.',
}
const aligned = 'Aligned to UTC; `total` never resets.'

export const createBudget = defineOperation({
  ...ofProject,
  id: 'createBudget',
  audit: 'budget.created',
  command: 'budgets create',
  sdk: 'budgets.create',
  method: 'POST',
  summary: 'Create a budget',
  description:
    'Spending counts from now on. Every model call first reserves the most that it can use, so the limit is never exceeded; if a budget has no room, tasks wait until it has. A subject may have one budget per period. Only owners and admins may set budgets of the organization and of API keys of others.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    scope: Choice(budgetScopes),
    subject: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'The agent or API key. Optional for a project or an organization, which is always the current one.',
      }),
    ),
    ...limits,
    period: Type.Optional(Choice(budgetPeriods, { default: 'month', description: aligned })),
    warn_percent: Type.Optional(Type.Integer({ ...warn_percent, default: budgetWarning_percent })),
  }),
  body_example: { scope: 'project', max_cost_usd: 25, period: 'month' },
  responses: [{ status: 201, description: 'The budget.', schema: Budget, example: budgetExample }],
  problems: ['project_not_found', 'agent_not_found', 'api_key_not_found', 'resource_conflict'],
})

export const listBudgets = defineOperation({
  ...ofProject,
  id: 'listBudgets',
  command: 'budgets list',
  sdk: 'budgets.list',
  method: 'GET',
  summary: 'List budgets',
  description: 'Budgets of the project, of the organization and of its API keys, newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    scope: Type.Optional(Choice(budgetScopes, { description: 'Only budgets of this scope.' })),
    subject: Type.Optional(Type.String({ maxLength: 64, description: 'Only budgets of this subject.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of budgets.',
      schema: Named('BudgetList', Type.Object({ budgets: Type.Array(Budget), pagination: OffsetPagination })),
      example: { budgets: [budgetExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getBudget = defineOperation({
  ...one,
  id: 'getBudget',
  command: 'budgets get',
  sdk: 'budgets.get',
  method: 'GET',
  summary: 'Read a budget',
  description: 'The budget with its spending and reservations.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The budget.', schema: Budget, example: budgetExample }],
  problems: ['project_not_found', 'budget_not_found'],
})

export const updateBudget = defineOperation({
  ...one,
  id: 'updateBudget',
  audit: 'budget.updated',
  command: 'budgets update',
  sdk: 'budgets.update',
  method: 'PUT',
  summary: 'Change a budget',
  description:
    'Null removes a limit; one must remain. Spending is kept, unless the period changes: then it starts at zero. Tasks that wait for the budget continue if it has room.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    ...limits,
    period: Type.Optional(Choice(budgetPeriods, { description: aligned })),
    warn_percent: Type.Optional(Type.Integer(warn_percent)),
  }),
  body_example: { max_cost_usd: 50 },
  responses: [
    { status: 200, description: 'The budget.', schema: Budget, example: { ...budgetExample, max_cost_usd: 50 } },
  ],
  problems: ['project_not_found', 'budget_not_found', 'resource_conflict'],
})

export const deleteBudget = defineOperation({
  ...one,
  id: 'deleteBudget',
  audit: 'budget.deleted',
  command: 'budgets delete',
  sdk: 'budgets.delete',
  method: 'DELETE',
  summary: 'Delete a budget',
  description: 'Tasks that wait for the budget continue.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The budget is deleted.',
      schema: Confirmation({ budget_id: Type.String() }),
      example: { message: 'Budget deleted', budget_id: budgetExample.id },
    },
  ],
  problems: ['project_not_found', 'budget_not_found'],
})

const task_id = { description: 'The task.', example: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4' }

export const updateTaskBudget = defineOperation({
  ...common,
  path: '/api/v1/projects/{project_id}/tasks/{task_id}/budget',
  params: { project_id: projectParameter, task_id },
  id: 'updateTaskBudget',
  audit: 'task.budget_changed',
  command: 'tasks budget',
  sdk: 'tasks.updateBudget',
  method: 'PUT',
  summary: "Change a task's own budget",
  description: 'Null removes a limit. If the task waits for its budget, it continues.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: TaskBudget,
  body_example: { max_cost_usd: 2 },
  responses: [
    {
      status: 200,
      description: 'The limits of the task.',
      schema: Confirmation({ task_id: Type.String(), budget: TaskBudget }),
      example: { message: 'Budget changed', task_id: task_id.example, budget: { max_cost_usd: 2 } },
    },
  ],
  problems: ['project_not_found', 'task_not_found', 'task_already_finished'],
})

export const budgetOperations: Operation[] = [
  createBudget,
  listBudgets,
  getBudget,
  updateBudget,
  deleteBudget,
  updateTaskBudget,
] as Operation[]
