import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, FreeObject, Named, Timestamp } from '../core/schemas.ts'

const common = { error_format: 'control', tag: 'Utility', method: 'GET' } as const

export const hello = defineOperation({
  ...common,
  id: 'hello',
  command: 'hello',
  sdk: 'service.hello',
  path: '/api/v1/hello',
  summary: 'Say hello',
  description: 'Returns a greeting; a way to check a credential.',
  credentials: anyCredential,
  scope: null,
  bucket: 'general',
  query: Type.Object({
    name: Type.Optional(Type.String({ maxLength: bounds.hello_name, default: 'World', description: 'Name to greet.' })),
  }),
  responses: [
    { status: 200, description: 'A greeting.', schema: Confirmation({}), example: { message: 'Hello, World!' } },
  ],
  problems: ['invalid_query'],
})

export const getStatus = defineOperation({
  ...common,
  id: 'getStatus',
  command: 'status',
  sdk: 'service.status',
  path: '/api/v1/status',
  summary: "Read the service's status",
  description: 'Public. Responds 503 while the database cannot be reached.',
  credentials: [],
  scope: null,
  bucket: null,
  responses: [
    {
      status: 200,
      description: 'The status.',
      schema: Named(
        'ServiceStatus',
        Type.Object({
          status: Choice(['operational', 'degraded']),
          version: Type.String(),
          timestamp: Timestamp,
          uptime_seconds: Type.Integer({ minimum: 0 }),
          checks: Type.Object({
            database: Choice(['ok']),
            workers: Type.Optional(Choice(['ok', 'silent'])),
            webhooks: Type.Optional(
              Choice(['ok', 'behind'], {
                description: '`behind` if a delivery has been due for ten minutes and was not sent.',
              }),
            ),
          }),
        }),
      ),
      example: {
        status: 'operational',
        version: '0.1.0',
        timestamp: '2026-11-20T09:30:00.000Z',
        uptime_seconds: 60,
        checks: { database: 'ok', workers: 'ok', webhooks: 'ok' },
      },
    },
  ],
  problems: [],
})

const docsTag = { ETag: 'Version of the document, for `If-None-Match`.' }

export const getDocs = defineOperation({
  ...common,
  id: 'getDocs',
  command: 'api',
  sdk: 'service.docs',
  path: '/api/v1/docs',
  summary: 'Read this document',
  description: 'The OpenAPI 3.0.3 description of the API. Public.',
  credentials: [],
  scope: null,
  bucket: 'docs',
  responses: [
    {
      status: 200,
      description: 'An OpenAPI document.',
      schema: FreeObject,
      example: { openapi: '3.0.3', info: { title: 'Cadre', version: '1.0.0' }, paths: {} },
      headers: docsTag,
    },
    { status: 304, description: '`If-None-Match` has the current `ETag`.', headers: docsTag },
  ],
  problems: [],
})

export const utilityOperations: Operation[] = [hello, getStatus, getDocs] as Operation[]
