import Type from 'typebox'
import { ofAgent } from '../resources/agents.ts'
import { bounds } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import {
  Confirmation,
  Named,
  NameText,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'
import { taskInput } from './tasks.ts'

const name = NameText(bounds.test_case_name, 'Unique among the test cases of the agent.')
const expected = Nullable(
  Type.String({
    minLength: 1,
    maxLength: bounds.test_case_expected,
    description: 'Description of a good answer, for the person who judges it.',
  }),
)

const TestCase = Named(
  'TestCase',
  Type.Object({
    id: Type.String(),
    agent_id: Type.String(),
    project_id: Type.String({ description: "`proj_` and the project's number." }),
    name: Type.String(),
    input: taskInput,
    expected,
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)
const example = {
  id: 'case_01jcm3x5v8f9a2b4c6d8e0g2h4',
  agent_id: ofAgent.params.agent_id.example,
  project_id: 'proj_42',
  name: 'Opening hours',
  input: 'What are your opening hours?',
  expected: 'Nine to five, Monday to Friday.',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

const ofOwner = { ...ofAgent, tag: 'Test cases', extension: true, path: `${ofAgent.path}/test-cases` } as const
const one = {
  ...ofOwner,
  path: `${ofOwner.path}/{test_case_id}`,
  params: { ...ofAgent.params, test_case_id: { description: 'The test case.', example: example.id } },
} as const

export const createTestCase = defineOperation({
  ...ofOwner,
  id: 'createTestCase',
  audit: 'test_case.created',
  command: 'test-cases create',
  sdk: 'testCases.create',
  method: 'POST',
  summary: 'Create a test case',
  description: 'Stores an input to run the agent with again after it has changed, and a description of a good answer.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ name, input: taskInput, expected: Type.Optional(expected) }),
  body_example: { name: example.name, input: example.input, expected: example.expected },
  responses: [{ status: 201, description: 'The test case.', schema: TestCase, example }],
  problems: ['file_not_found', 'project_not_found', 'agent_not_found', 'resource_conflict'],
})

export const listTestCases = defineOperation({
  ...ofOwner,
  id: 'listTestCases',
  command: 'test-cases list',
  sdk: 'testCases.list',
  method: 'GET',
  summary: 'List test cases',
  description: 'Test cases of the agent, newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of test cases.',
      schema: Named('TestCaseList', Type.Object({ test_cases: Type.Array(TestCase), pagination: OffsetPagination })),
      example: { test_cases: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

export const getTestCase = defineOperation({
  ...one,
  id: 'getTestCase',
  command: 'test-cases get',
  sdk: 'testCases.get',
  method: 'GET',
  summary: 'Read a test case',
  description: 'One test case of the agent.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The test case.', schema: TestCase, example }],
  problems: ['project_not_found', 'agent_not_found', 'test_case_not_found'],
})

export const updateTestCase = defineOperation({
  ...one,
  id: 'updateTestCase',
  audit: 'test_case.updated',
  command: 'test-cases update',
  sdk: 'testCases.update',
  method: 'PUT',
  summary: 'Change a test case',
  description: 'Changes the given members; `expected` may be null.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ name: Type.Optional(name), input: Type.Optional(taskInput), expected: Type.Optional(expected) }),
  body_example: { expected: 'Nine to six, Monday to Friday.' },
  responses: [{ status: 200, description: 'The test case.', schema: TestCase, example }],
  problems: ['file_not_found', 'project_not_found', 'agent_not_found', 'test_case_not_found', 'resource_conflict'],
})

export const deleteTestCase = defineOperation({
  ...one,
  id: 'deleteTestCase',
  audit: 'test_case.deleted',
  command: 'test-cases delete',
  sdk: 'testCases.delete',
  method: 'DELETE',
  summary: 'Delete a test case',
  description: 'Tasks that were created with it stay.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The test case is deleted.',
      schema: Confirmation({ test_case_id: Type.String() }),
      example: { message: 'Test case deleted', test_case_id: example.id },
    },
  ],
  problems: ['project_not_found', 'agent_not_found', 'test_case_not_found'],
})

/** Operations on test cases of agents. */
export const testCaseOperations: Operation[] = [
  createTestCase,
  listTestCases,
  getTestCase,
  updateTestCase,
  deleteTestCase,
] as Operation[]
